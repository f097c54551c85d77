"""``python -m cgmm.replicate``: what it runs, what it says, and its exit status."""

from __future__ import annotations

import sys

import pytest
from distributed import Client, LocalCluster
from toy_experiments import FAST, ROOT, Interrupted, draw, no_network, toy, written

from cgmm.datasets import fetched
from cgmm.replicate import EXPERIMENTS, Setting, read_rows
from cgmm.replicate.__main__ import COMPARISONS, main
from cgmm.replicate.verdicts import read_comparisons


def test_the_command_line_runs_a_part_and_says_where_it_stopped(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(EXPERIMENTS, "toy-fig1", toy(Interrupted(3)))
    command = ["toy-fig1", "--results", str(tmp_path)]
    assert main([*command, "--quick"]) == 0
    assert len(read_rows(tmp_path / "toy-fig1.csv")) == 2 * 2
    assert main(command) == 130
    assert f"what is finished is in {tmp_path / 'toy-fig1.partial'}" in capsys.readouterr().err
    monkeypatch.setitem(EXPERIMENTS, "toy-fig1", toy(draw))
    assert main(command) == 0
    assert len(read_rows(tmp_path / "toy-fig1.csv")) == 8 * 2


def test_the_command_line_complains_about_data_and_names(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(fetched, "fetch_openml", no_network)
    monkeypatch.setitem(EXPERIMENTS, "toy-fig1", toy(draw, design=(Setting("pima", (2,)),)))
    options = ["--results", str(tmp_path), "--data-home", str(tmp_path)]
    assert main(["toy-fig1", *options]) == 1
    assert "no route to host" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["fig99", *options])
    assert "unknown: fig99" in capsys.readouterr().err


def test_a_dask_cluster_of_two_workers_writes_the_same_file(tmp_path):
    alone = written(FAST, tmp_path / "alone", realisations=3)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
    ):
        command = ["barhillel2005-fig3", "--realisations", "3", "--results", str(tmp_path / "dask")]
        assert main([*command, "--backend", "dask", "--scheduler", cluster.scheduler_address]) == 0
    assert (tmp_path / "dask" / f"{FAST.name}.csv").read_bytes() == alone


def test_without_dask_the_command_line_says_what_to_install(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(SystemExit):
        main([FAST.name, "--backend", "dask", "--results", str(tmp_path)])
    assert 'pip install "dask[distributed]"' in capsys.readouterr().err


def test_the_command_line_judges_what_is_stored(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert main(["--verdicts"]) == 0
    shown = capsys.readouterr().out
    claims = read_comparisons(COMPARISONS)
    n_claims = len(claims)
    assert shown.count(" -> ") == n_claims
    assert "WRITTEN" not in shown
    assert shown.endswith(f"0 of {n_claims} verdicts are not as written down.\n")
    for claim in claims:
        assert claim.verdict == "reproduced" or claim.why, claim
        assert claim.figure in EXPERIMENTS[claim.file].figure
        assert claim.paper == EXPERIMENTS[claim.file].paper
