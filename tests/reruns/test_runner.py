"""Test the runner of experiments: workers and interruptions do not change files; its commands."""

from collections import Counter

import numpy as np
import pytest
from distributed import Client, LocalCluster
from joblib import parallel_config
from toy_experiments import (
    FAST,
    InterruptedDraw,
    draw,
    fail_to_download,
    make_experiment,
    run_and_read,
)

from cgmm.datasets import tables
from reruns import EXPERIMENTS, Setting, read_rows, replicate
from reruns.__main__ import COMPARISONS, main
from reruns.verdicts import read_comparisons

TOY = make_experiment(draw)


def test_the_result_file_does_not_depend_on_the_number_of_workers(tmp_path):
    expected = run_and_read(FAST, tmp_path / "one", realisations=3)
    with parallel_config(backend="threading"):
        assert run_and_read(FAST, tmp_path / "two", realisations=3, jobs=2) == expected


def test_settings_with_missing_data_are_reported_and_the_others_are_run(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "fetch_openml", fail_to_download)
    experiment = make_experiment(draw, design=(Setting("iris", (2,)), Setting("pima", (2,))))
    (message,) = replicate(experiment, tmp_path, data_home=tmp_path / "empty")
    assert f"pima is not at {tmp_path / 'empty' / 'pima.csv'}" in message
    assert Counter(r["data"] for r in read_rows(tmp_path / "toy-fig1.csv")) == {"iris": 8}


def test_the_result_file_has_a_row_for_each_realisation_and_method(tmp_path):
    run_and_read(TOY, tmp_path)
    rows = read_rows(tmp_path / "toy-fig1.csv")
    names = "paper,figure,data,n,method,realisation,seed,quantity,value,reason"
    assert ",".join(rows[0]) == names
    assert [(r["n"], r["realisation"], r["method"]) for r in rows] == [
        (n, str(r), method) for n in ("2", "10") for r in range(4) for method in ("mean", "rash")
    ]
    for row in rows:
        results = draw(None, int(row["n"]), np.random.default_rng(int(row["seed"])))
        (result,) = (r for r in results if r.method == row["method"])
        value = "" if result.value is None else f"{result.value:.8g}"
        assert (row["value"], row["reason"]) == (value, result.reason)


def test_interrupted_runs_are_continued_even_after_an_incomplete_line(tmp_path):
    expected = run_and_read(TOY, tmp_path / "uninterrupted")
    partial = tmp_path / "toy-fig1.partial"
    for at in (0, 3, 2):
        with pytest.raises(KeyboardInterrupt):
            replicate(make_experiment(InterruptedDraw(at)), tmp_path)
        assert not (tmp_path / "toy-fig1.csv").exists()
        if at == 3:
            partial.write_text(partial.read_text(encoding="utf-8")[:-20], encoding="utf-8")
    last_run = InterruptedDraw()
    assert run_and_read(make_experiment(last_run), tmp_path) == expected
    assert len(last_run.calls) == 8 - (3 - 1 + 2)


def test_more_realisations_are_added_and_the_option_fresh_starts_over(tmp_path):
    expected = run_and_read(TOY, tmp_path / "in_one_run")
    run_and_read(TOY, tmp_path, realisations=1, quick=True)
    longer_run = InterruptedDraw()
    assert run_and_read(make_experiment(longer_run), tmp_path) == expected
    assert len(longer_run.calls) == 7
    assert run_and_read(make_experiment(InterruptedDraw(0)), tmp_path, realisations=2) == expected
    # The first run stops after two realisations; a fresh run drops them and stops after one.
    (tmp_path / "toy-fig1.csv").unlink()
    for at, fresh in ((2, False), (1, True)):
        with pytest.raises(KeyboardInterrupt):
            replicate(make_experiment(InterruptedDraw(at)), tmp_path, fresh=fresh)
    last_run = InterruptedDraw()
    assert run_and_read(make_experiment(last_run), tmp_path) == expected
    assert len(last_run.calls) == 8 - 1
    assert len(run_and_read(TOY, tmp_path, realisations=1, fresh=True)) < len(expected)


def test_results_of_different_seeds_or_columns_are_never_mixed(tmp_path):
    first = run_and_read(TOY, tmp_path)
    with pytest.raises(ValueError, match=r"another seed than 1; use --fresh"):
        replicate(TOY, tmp_path, seed=1)
    with pytest.raises(ValueError, match="other columns"):
        replicate(make_experiment(draw, columns=("m",)), tmp_path)
    assert run_and_read(TOY, tmp_path, seed=1, fresh=True) != first


def test_the_command_names_the_file_of_an_interrupted_run(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(EXPERIMENTS, "toy-fig1", make_experiment(InterruptedDraw(3)))
    command = ["toy-fig1", "--results", str(tmp_path)]
    assert main([*command, "--quick"]) == 0
    assert len(read_rows(tmp_path / "toy-fig1.csv")) == 2 * 2
    assert main(command) == 130
    assert f"what is finished is in {tmp_path / 'toy-fig1.partial'}" in capsys.readouterr().err
    monkeypatch.setitem(EXPERIMENTS, "toy-fig1", TOY)
    assert main(command) == 0
    assert len(read_rows(tmp_path / "toy-fig1.csv")) == 8 * 2


def test_the_command_reports_missing_data_and_unknown_experiments(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tables, "fetch_openml", fail_to_download)
    needs_download = make_experiment(draw, design=(Setting("pima", (2,)),))
    monkeypatch.setitem(EXPERIMENTS, "toy-fig1", needs_download)
    options = ["--results", str(tmp_path), "--data-home", str(tmp_path)]
    assert main(["toy-fig1", *options]) == 1
    assert "no route to host" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["fig99", *options])
    assert "unknown: fig99" in capsys.readouterr().err


@pytest.mark.slow  # The test with two threads is a quicker twin.
def test_a_dask_cluster_of_two_workers_writes_the_same_file(tmp_path):
    expected = run_and_read(FAST, tmp_path / "one", realisations=3)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
    ):
        command = ["barhillel2005-fig3", "--realisations", "3", "--results", str(tmp_path / "dask")]
        assert main([*command, "--scheduler", cluster.scheduler_address]) == 0
    assert (tmp_path / "dask" / f"{FAST.name}.csv").read_bytes() == expected


def test_the_command_prints_all_verdicts_and_none_differs_from_the_written_one(capsys):
    assert main(["--verdicts"]) == 0
    output = capsys.readouterr().out
    claims = read_comparisons(COMPARISONS)
    assert output.count("\n  verdict  ") == len(claims)
    assert "WRITTEN" not in output
    assert output.endswith(f"\n0 of {len(claims)} verdicts are not as written down.\n")
    for claim in claims:
        assert claim.verdict == "reproduced" or claim.why, claim
        assert claim.figure in EXPERIMENTS[claim.file].figure
        assert claim.paper == EXPERIMENTS[claim.file].paper
