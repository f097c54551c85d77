"""Test the runner: files do not depend on workers or interruptions, and its command line."""

from collections import Counter

import numpy as np
import pytest
from distributed import Client, LocalCluster
from joblib import parallel_config
from toy_experiments import FAST, Interrupted, draw, no_network, toy, written

from cgmm.datasets import tables
from reruns import EXPERIMENTS, Setting, read_rows, replicate
from reruns.__main__ import COMPARISONS, main
from reruns.verdicts import read_comparisons


def test_the_file_does_not_depend_on_the_workers(tmp_path):
    alone = written(FAST, tmp_path / "alone", realisations=3)
    with parallel_config(backend="threading"):
        assert written(FAST, tmp_path / "many", realisations=3, jobs=2) == alone


def test_missing_data_are_reported_and_the_rest_is_run(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "fetch_openml", no_network)
    experiment = toy(draw, design=(Setting("iris", (2,)), Setting("pima", (2,))))
    (complaint,) = replicate(experiment, tmp_path, data_home=tmp_path / "empty")
    assert f"pima is not at {tmp_path / 'empty' / 'pima.csv'}" in complaint
    assert Counter(r["data"] for r in read_rows(tmp_path / "toy-fig1.csv")) == {"iris": 8}


def test_a_row_is_a_realisation_and_a_method(tmp_path):
    written(toy(draw), tmp_path)
    rows = read_rows(tmp_path / "toy-fig1.csv")
    names = "paper,figure,data,n,method,realisation,seed,quantity,value,reason"
    assert ",".join(rows[0]) == names
    assert [(r["n"], r["realisation"], r["method"]) for r in rows] == [
        (n, str(r), method) for n in ("2", "10") for r in range(4) for method in ("mean", "rash")
    ]
    for row in rows:
        results = draw(None, int(row["n"]), np.random.default_rng(int(row["seed"])))
        (made,) = (r for r in results if r.method == row["method"])
        value = "" if made.value is None else f"{made.value:.8g}"
        assert (row["value"], row["reason"]) == (value, made.reason)


def test_two_interruptions_and_a_line_cut_off_in_writing(tmp_path):
    whole = written(toy(draw), tmp_path / "whole")
    partial = tmp_path / "toy-fig1.partial"
    for at in (0, 3, 2):
        with pytest.raises(KeyboardInterrupt):
            replicate(toy(Interrupted(at)), tmp_path)
        assert not (tmp_path / "toy-fig1.csv").exists()
        if at == 3:
            partial.write_text(partial.read_text(encoding="utf-8")[:-20], encoding="utf-8")
    rest = Interrupted()
    assert written(toy(rest), tmp_path) == whole
    assert len(rest.calls) == 8 - (3 - 1 + 2)


def test_more_realisations_are_added_and_fresh_starts_again(tmp_path):
    whole = written(toy(draw), tmp_path / "whole")
    written(toy(draw), tmp_path, realisations=1, quick=True)
    more = Interrupted()
    assert written(toy(more), tmp_path) == whole
    assert len(more.calls) == 7
    assert written(toy(Interrupted(0)), tmp_path, realisations=2) == whole
    # An interrupted run left two realisations of the same seed, which wait to be continued.
    (tmp_path / "toy-fig1.csv").unlink()
    for at, fresh in ((2, False), (1, True)):
        with pytest.raises(KeyboardInterrupt):
            replicate(toy(Interrupted(at)), tmp_path, fresh=fresh)
    again = Interrupted()
    assert written(toy(again), tmp_path) == whole
    assert len(again.calls) == 8 - 1
    assert len(written(toy(draw), tmp_path, realisations=1, fresh=True)) < len(whole)


def test_another_seed_gives_another_file_and_never_a_mixture(tmp_path):
    first = written(toy(draw), tmp_path)
    with pytest.raises(ValueError, match=r"another seed than 1; use --fresh"):
        replicate(toy(draw), tmp_path, seed=1)
    with pytest.raises(ValueError, match="other columns"):
        replicate(toy(draw, columns=("m",)), tmp_path)
    assert written(toy(draw), tmp_path, seed=1, fresh=True) != first


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
    monkeypatch.setattr(tables, "fetch_openml", no_network)
    monkeypatch.setitem(EXPERIMENTS, "toy-fig1", toy(draw, design=(Setting("pima", (2,)),)))
    options = ["--results", str(tmp_path), "--data-home", str(tmp_path)]
    assert main(["toy-fig1", *options]) == 1
    assert "no route to host" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["fig99", *options])
    assert "unknown: fig99" in capsys.readouterr().err


@pytest.mark.slow  # the same with two threads, above
def test_a_dask_cluster_of_two_workers_writes_the_same_file(tmp_path):
    alone = written(FAST, tmp_path / "alone", realisations=3)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
    ):
        command = ["barhillel2005-fig3", "--realisations", "3", "--results", str(tmp_path / "dask")]
        assert main([*command, "--scheduler", cluster.scheduler_address]) == 0
    assert (tmp_path / "dask" / f"{FAST.name}.csv").read_bytes() == alone


def test_the_command_line_judges_what_is_stored(capsys):
    assert main(["--verdicts"]) == 0
    shown = capsys.readouterr().out
    claims = read_comparisons(COMPARISONS)
    n_claims = len(claims)
    assert shown.count("\n  verdict  ") == n_claims
    assert "WRITTEN" not in shown
    assert shown.endswith(f"\n0 of {n_claims} verdicts are not as written down.\n")
    for claim in claims:
        assert claim.verdict == "reproduced" or claim.why, claim
        assert claim.figure in EXPERIMENTS[claim.file].figure
        assert claim.paper == EXPERIMENTS[claim.file].paper
