"""Test that every benchmark runs, and that its stored results are complete and well-formed.

Measured times are not compared, because they depend on the machine.
"""

import csv
import importlib
import sys
import tomllib
import warnings
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = ROOT / "benchmarks"
STORED = ROOT / "book" / "_data" / "benchmarks"
if not SCRIPTS.is_dir():
    pytest.skip("an installed package has no benchmarks", allow_module_level=True)

# These files are helpers, or experiments with tests of their own.
HELPERS = {"common", "metric_learn_peer", "asking", "interview", "nightly"}
BENCHMARKS = sorted(path.stem for path in SCRIPTS.glob("*.py") if path.stem not in HELPERS)
COLUMNS = ["benchmark", "case", "size", "method", "repetition", "seconds"]
# The smallest problems of these benchmarks take more than two seconds.
SLOW = {
    "cluster", "dense", "inference", "kinds", "methods", "must_links", "plain_mixture",
    "segmentation", "threads",
}  # fmt: skip


def read_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file as dictionaries."""
    with open(path, newline="", encoding="utf8") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def load(monkeypatch):
    """Return a function that imports a benchmark by name; the folder is on the path."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return importlib.import_module


def check_rows(rows: list[dict[str, str]], benchmark: str) -> None:
    """Check that rows have the right columns and valid values, and that no case occurs twice."""
    assert rows
    assert all(list(row) == COLUMNS for row in rows)
    assert {row["benchmark"] for row in rows} == {benchmark}
    for row in rows:
        assert row["case"]
        assert row["method"]
        assert int(row["size"]) > 0
        assert row["seconds"] == "" or abs(float(row["seconds"])) < 3600
    keys = [tuple(row[c] for c in COLUMNS[1:-1]) for row in rows]
    assert len(set(keys)) == len(keys)


# ---------------------------------------------------------------------------- scripts


@pytest.mark.parametrize(
    "benchmark", [pytest.param(b, marks=[pytest.mark.slow] * (b in SLOW)) for b in BENCHMARKS]
)
def test_smallest_benchmark_runs_and_writes_rows(benchmark, tmp_path, load, monkeypatch):
    """The option ``--smoke`` selects the smallest problems and a single repetition."""
    monkeypatch.setattr(sys, "argv", [benchmark, "--smoke", "--results", str(tmp_path)])
    with warnings.catch_warnings(action="ignore"):
        load(benchmark).main()
    written = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*")}
    assert written - {f"quality/{benchmark}.csv"} == {f"{benchmark}.csv", "machine.toml"}
    rows = read_rows(tmp_path / f"{benchmark}.csv")
    check_rows(rows, benchmark)
    assert {row["repetition"] for row in rows} == {"0"}
    assert {row["case"] for row in rows} <= {case for case, _ in load(benchmark).CASES}
    machine = tomllib.loads((tmp_path / "machine.toml").read_text(encoding="utf8"))
    assert set(machine) == {benchmark}


def run_and_resume(module, path: Path, n_removed: int) -> list[dict[str, str]]:
    """Run an experiment, remove its last rows, run it again, and return all rows."""
    module.main()
    rows, text = read_rows(path), path.read_text(encoding="utf8")
    path.write_text("".join(text.splitlines(keepends=True)[:-n_removed]), encoding="utf8")
    module.main()
    assert path.read_text(encoding="utf8") == text
    assert tuple(rows[0]) == module.COLUMNS
    return rows


def test_experiment_on_asking_resumes_after_an_interruption(tmp_path, load, monkeypatch):
    path = tmp_path / "answers.csv"
    monkeypatch.setattr(sys, "argv", ["asking", "--smoke", "--results", str(path)])
    asking = load("asking")
    rows = run_and_resume(asking, path, 3)
    assert {row["strategy"] for row in rows} == set(asking.STRATEGIES)
    assert {row["answers"] for row in rows} == {"0", "10", "20"}
    # Before the first answer all strategies have the same fit.
    assert len({row["ari"] for row in rows if row["answers"] == "0"}) == 1


def test_simulated_interview_resumes_after_an_interruption(tmp_path, load, monkeypatch):
    path = tmp_path / "interview.csv"
    arguments = ["interview", "--draws", "1", "--datasets", "iris", "--wrong", "0"]
    arguments += ["--unsure", "0.5", "--strategies"]
    arguments += ["interview,random,interview at random", "--results", str(path)]
    monkeypatch.setattr(sys, "argv", arguments)
    interview = load("interview")
    monkeypatch.setattr(interview, "AT", (10, 20))
    rows = run_and_resume(interview, path, 2)
    assert [row["questions"] for row in rows] == ["10", "20"] * 3
    assert all(0.4 < float(row["accuracy"]) <= 1 for row in rows)


def test_nightly_measurement_reports_a_slower_fit(tmp_path, load, monkeypatch, capsys):
    nightly = load("nightly")
    history = tmp_path / "history.csv"
    times = {"default": 1.0, "one start": 2.0, "relations": 3.0}
    monkeypatch.setattr(nightly, "build_fits", lambda: {name: name for name in times})
    monkeypatch.setattr(nightly, "measure", lambda fit, repeats: times[fit])

    def run(*options, **seconds):
        times.update(seconds)
        return nightly.main(["--history", str(history), *options])

    assert [run(), run(default=1.1), run(default=1.0)] == [0, 0, 0]
    assert run(relations=3.75) == 1
    assert "SLOWER: relations: 3.75 times" in capsys.readouterr().out
    # Later runs are compared with the fast time until ``--accept`` stores the slow one.
    assert run() == 1
    assert run("--accept") == 0
    assert run() == 0
    assert {entry.fit for entry in nightly.read_history(history)} == set(times)


def test_every_nightly_fit_can_be_measured(load):
    nightly = load("nightly")
    for fit in nightly.build_fits().values():
        assert 0.01 < nightly.measure(fit, repeats=1) < 1000


# ---------------------------------------------------------------------------- stored results


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_stored_results_have_every_case_and_no_other(benchmark, load):
    rows = read_rows(STORED / f"{benchmark}.csv")
    check_rows(rows, benchmark)
    # Some times are differences between two fits, which only full measurements make positive.
    assert all(float(row["seconds"]) > 0 for row in rows if row["seconds"])
    assert {(row["case"], int(row["size"])) for row in rows} == load(benchmark).CASES


def test_readme_prints_the_stored_ratios_of_times():
    """README.md states the range of the median ratios of times over the problems."""
    table = pd.read_csv(STORED / "whole_fits.csv")
    times = table.set_index(["case", "size", "repetition", "method"])["seconds"].unstack()

    def format_range(ours, peer, sizes):
        """Return the smallest and largest median ratio for problems of these sizes, as text."""
        ratios = (times[ours] / times[peer]).groupby(["case", "size"]).median().dropna()
        chosen = ratios.loc[:, sizes]
        return f"{chosen.min():.2f} to {chosen.max():.2f}"

    text = (ROOT / "README.md").read_text(encoding="utf8").replace("\n", " ")
    ten = "GaussianMixture, ten starts"
    large = format_range("default", ten, [30_000, 300_000])
    small = format_range("default", ten, [300, 3000])
    kmeans = format_range("kmeans", "GaussianMixture", [300, 3000, 30_000, 300_000])
    n_init = "`GaussianMixture(n_init=10)`"
    assert f"It takes {large} times as long as {n_init} for 30,000 points" in text
    assert f"and {small} times for fewer" in text
    assert f"a fit takes {kmeans} times as long as" in text
