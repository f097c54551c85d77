"""Every benchmark runs, writes rows of one form, and is stored completely; times decide nothing."""

import csv
import importlib
import sys
import tomllib
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = ROOT / "benchmarks"
STORED = ROOT / "book" / "_data" / "benchmarks"
if not SCRIPTS.is_dir():
    pytest.skip("an installed package is tested: no measurements", allow_module_level=True)

# These are no measurements: helpers, and experiments of a chapter with tests of their own.
HELPERS = {"common", "metric_learn_peer", "asking", "interview", "nightly"}
BENCHMARKS = sorted(path.stem for path in SCRIPTS.glob("*.py") if path.stem not in HELPERS)
COLUMNS = ["benchmark", "case", "size", "method", "repetition", "seconds"]
# Trials of more than two seconds; the others have the same form.
HEAVY = {
    "cluster", "dense", "inference", "kinds", "methods", "must_links", "plain_mixture",
    "segmentation", "threads",
}  # fmt: skip


def read(path: Path) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf8") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def load(monkeypatch):
    """Import a script by its name, as other benchmarks do."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return importlib.import_module


def require_form(rows: list[dict[str, str]], benchmark: str) -> None:
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
    "benchmark",
    [pytest.param(b, marks=[pytest.mark.slow] * (b in HEAVY)) for b in BENCHMARKS],
)
def test_a_trial_runs_and_writes_rows(benchmark, tmp_path, load, monkeypatch):
    """Run trials in this process; tests below call the scripts as commands."""
    monkeypatch.setattr(sys, "argv", [benchmark, "--smoke", "--results", str(tmp_path)])
    with warnings.catch_warnings(action="ignore"):
        load(benchmark).main()
    written = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*")}
    assert written - {f"quality/{benchmark}.csv"} == {f"{benchmark}.csv", "machine.toml"}
    rows = read(tmp_path / f"{benchmark}.csv")
    require_form(rows, benchmark)
    assert {row["repetition"] for row in rows} == {"0"}
    assert {row["case"] for row in rows} <= {case for case, _ in load(benchmark).CASES}
    machine = tomllib.loads((tmp_path / "machine.toml").read_text(encoding="utf8"))
    assert set(machine) == {benchmark}


def test_the_experiment_on_asking_resumes(tmp_path, load, monkeypatch):
    path = tmp_path / "answers.csv"
    monkeypatch.setattr(sys, "argv", ["asking", "--smoke", "--results", str(path)])
    asking = load("asking")
    asking.main()
    rows, text = read(path), path.read_text(encoding="utf8")
    assert tuple(rows[0]) == asking.COLUMNS
    assert {row["strategy"] for row in rows} == set(asking.STRATEGIES)
    assert {row["answers"] for row in rows} == {"0", "10", "20"}
    # Without an answer all strategies have the same fit.
    assert len({row["ari"] for row in rows if row["answers"] == "0"}) == 1
    path.write_text("".join(text.splitlines(keepends=True)[:-3]), encoding="utf8")
    asking.main()
    assert path.read_text(encoding="utf8") == text


def test_the_simulated_interview_resumes(tmp_path, load, monkeypatch):
    path = tmp_path / "interview.csv"
    options = ["--draws", "1", "--datasets", "iris", "--wrong", "0", "--unsure", "0.5"]
    given = [
        "interview",
        *options,
        "--strategies",
        "interview,random,interview at random",
        "--results",
        str(path),
    ]
    monkeypatch.setattr(sys, "argv", given)
    interview = load("interview")
    monkeypatch.setattr(interview, "AT", (10, 20))
    interview.main()
    rows, text = read(path), path.read_text(encoding="utf8")
    assert tuple(rows[0]) == interview.COLUMNS
    assert [row["questions"] for row in rows] == ["10", "20"] * 3
    assert all(0.4 < float(row["accuracy"]) <= 1 for row in rows)
    path.write_text("".join(text.splitlines(keepends=True)[:-2]), encoding="utf8")
    interview.main()
    assert path.read_text(encoding="utf8") == text


def test_the_nightly_measurement_reports_a_fit_that_takes_a_quarter_longer(
    tmp_path, load, monkeypatch, capsys
):
    nightly = load("nightly")
    history = tmp_path / "history.csv"
    times = {"default": 1.0, "one start": 2.0, "relations": 3.0}
    monkeypatch.setattr(nightly, "build_fits", lambda: {name: name for name in times})
    monkeypatch.setattr(nightly, "measure", lambda fit, repeats: times[fit])

    def run(*options, **slow):
        times.update(slow)
        return nightly.main(["--history", str(history), *options])

    assert [run(), run(default=1.1), run(default=1.0)] == [0, 0, 0]
    assert run(relations=3.75) == 1
    assert "SLOWER: relations: 3.75 times" in capsys.readouterr().out
    # The slow fit did not become the measure of the next night, until that is accepted.
    assert run() == 1
    assert run("--accept") == 0
    assert run() == 0
    assert {entry.fit for entry in nightly.read_history(history)} == set(times)


def test_each_nightly_fit_is_measured(load):
    nightly = load("nightly")
    for fit in nightly.build_fits().values():
        assert 0.01 < nightly.measure(fit, repeats=1) < 1000


# ----------------------------------------------------------------------------- common


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_stored_files_have_every_case_and_no_other(benchmark, load):
    rows = read(STORED / f"{benchmark}.csv")
    require_form(rows, benchmark)
    # In a trial the difference of two short fits may come out negative; here it must not.
    assert all(float(row["seconds"]) > 0 for row in rows if row["seconds"])
    assert {(row["case"], int(row["size"])) for row in rows} == load(benchmark).CASES


def test_the_readme_quotes_the_range_of_what_is_stored():
    """Compare medians over rounds in which the packages take turns."""
    times = defaultdict(lambda: defaultdict(list))
    for row in read(STORED / "whole_fits.csv"):
        times[row["case"], int(row["size"])][row["method"]].append(float(row["seconds"]))

    def quoted_in(ours, peer, sizes):
        """Return the smallest and the largest ratio among problems of these sizes."""
        ratios = [
            np.median(np.divide(t[ours], t[peer]))
            for (_, size), t in times.items()
            if peer in t and size in sizes
        ]
        return f"{min(ratios):.2f} to {max(ratios):.2f}"

    text = (ROOT / "README.md").read_text(encoding="utf8").replace("\n", " ")
    ten = "GaussianMixture, ten starts"
    large, small = (quoted_in("default", ten, sizes) for sizes in ((30_000, 300_000), (300, 3000)))
    one = quoted_in("kmeans", "GaussianMixture", (300, 3000, 30_000, 300_000))
    assert f"it takes {large} from 30,000 points on and {small} below" in text
    assert f"a fit takes {one} times as long as" in text
