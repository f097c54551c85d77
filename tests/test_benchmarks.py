"""Every measurement runs, writes rows of one form, and is stored whole. No time decides a test."""

from __future__ import annotations

import csv
import importlib.util
import itertools
import re
import subprocess
import sys
import tomllib
import warnings
from operator import itemgetter
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = ROOT / "benchmarks"
STORED = ROOT / "book" / "_data" / "benchmarks"
if not SCRIPTS.is_dir():
    pytest.skip("an installed package is tested: no measurements", allow_module_level=True)

# Not a measurement: helpers, and an experiment of a chapter, which has a test of its own.
HELPERS = {"common", "metric_learn_peer", "asking"}
BENCHMARKS = sorted(path.stem for path in SCRIPTS.glob("*.py") if path.stem not in HELPERS)
COLUMNS = ["benchmark", "case", "size", "method", "repetition", "seconds"]
# What the stored files must have been measured with.
PEERS = {
    "inference": {"pyAgrum, first", "pyAgrum, E-step"},
    "kmeans": {"active-semi-supervised-clustering"},
    "mmc": {"metric-learn"},
    "plain_mixture": {"scikit-learn", "pomegranate"},
    "rca": {"metric-learn"},
}
PACKAGES = {
    "inference": {"pyagrum"},
    "kmeans": {"active-semi-supervised-clustering"},
    "mmc": {"metric-learn"},
    "plain_mixture": {"pomegranate", "torch"},
    "rca": {"metric-learn"},
}
# What is measured beside times, by the names in the files of the folder "quality".
QUALITY = {
    "cluster": {"MiB"},
    "dense": {"ARI", "broken", "approximated", "width", "unsettled", "residual", "error"},
    "kinds": {"ARI", "iterations"},
    "starts": {"ARI", "behind"},
}
# Not asked for every case: chapter 14 reads these times, and shows no machine beside them.
ELSEWHERE = {"methods"}
HEAVY = {"cluster", "dense", "methods", "segmentation"}  # trials; the others have the same form
ON_THE_PAGE = sorted(set(BENCHMARKS) - ELSEWHERE)


def read(path: Path) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf8") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def load(monkeypatch):
    """A script as a module, with its neighbours importable; both are forgotten afterwards."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(name, "1")
    before = set(sys.modules)

    def load_one(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return module

    yield load_one
    for name in set(sys.modules) - before:
        if str(SCRIPTS) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


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
    by_method: dict[tuple[str, ...], list[int]] = {}
    for *problem, repetition in keys:
        by_method.setdefault(tuple(problem), []).append(int(repetition))
    assert all(found == list(range(len(found))) for found in by_method.values())


def require_quality(found: list[dict[str, str]], rows: list[dict[str, str]]) -> None:
    """Every value belongs to a fit that was measured, and stands there once."""
    place = itemgetter(*COLUMNS[:-1])
    assert {place(row) for row in found} <= {place(row) for row in rows}
    assert {row["quantity"] for row in found} <= QUALITY[rows[0]["benchmark"]]
    assert all(np.isfinite(float(row["value"])) for row in found)
    keys = [(*place(row), row["quantity"]) for row in found]
    assert len(set(keys)) == len(keys)


# ---------------------------------------------------------------------------- scripts


@pytest.mark.parametrize(
    "benchmark",
    [pytest.param(b, marks=[pytest.mark.slow] * (b in HEAVY)) for b in BENCHMARKS],
)
def test_a_trial_runs_and_writes_rows(benchmark, tmp_path, load, monkeypatch):
    """In this process; as commands, with other packages, the scripts below are called."""
    monkeypatch.setattr(sys, "argv", [benchmark, "--smoke", "--results", str(tmp_path)])
    with warnings.catch_warnings(action="ignore"):
        load(benchmark).main()
    written = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*")}
    more = {f"quality/{benchmark}.csv"} if benchmark in QUALITY else set()
    assert written == {f"{benchmark}.csv", "machine.toml"} | more
    rows = read(tmp_path / f"{benchmark}.csv")
    require_form(rows, benchmark)
    assert {row["repetition"] for row in rows} == {"0"}
    assert {row["case"] for row in rows} <= {case for case, _ in load(benchmark).CASES}
    told = tomllib.loads((tmp_path / "machine.toml").read_text(encoding="utf8"))
    assert set(told) == {benchmark}
    if more:
        require_quality(read(tmp_path / "quality" / f"{benchmark}.csv"), rows)


@pytest.mark.parametrize(
    "benchmark",
    ["rca", *(pytest.param(b, marks=pytest.mark.slow) for b in sorted(set(PEERS) - {"rca"}))],
)
def test_a_script_without_its_peer_says_so_and_measures_cgmm(benchmark, tmp_path):
    blocked = "import sys; sys.modules.update(dict.fromkeys(%r)); sys.argv = %r; import runpy; %s"
    peers = ["pyagrum", "metric_learn", "active_semi_clustering", "pomegranate"]
    script = str(SCRIPTS / f"{benchmark}.py")
    argv = [script, "--smoke", "--results", str(tmp_path)]
    path = f"sys.path.insert(0, {str(SCRIPTS)!r}); "
    run = path + f"runpy.run_path({script!r}, run_name='__main__')"
    call = [sys.executable, "-c", blocked % (peers, argv, run)]
    done = subprocess.run(call, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "is not installed here" in done.stdout
    assert "benchmarks/requirements.txt" in done.stdout
    rows = read(tmp_path / f"{benchmark}.csv")
    assert rows
    assert all(row["method"].startswith(("cgmm", "scikit-learn")) for row in rows)


def test_the_experiment_on_asking_takes_up_what_is_missing(tmp_path, load, monkeypatch):
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


def test_the_stored_curves_are_whole(load):
    asking = load("asking")
    rows = read(asking.FILE)
    assert tuple(rows[0]) == asking.COLUMNS
    found = {(r["dataset"], r["strategy"], r["draw"], r["answers"]) for r in rows}
    datasets, draws = {r["dataset"] for r in rows}, {r["draw"] for r in rows}
    answers = {r["answers"] for r in rows}
    assert found == set(itertools.product(datasets, asking.STRATEGIES, draws, answers))
    assert len(found) == len(rows)


# ----------------------------------------------------------------------------- common


def test_ratios_are_of_neighbours_and_leave_failures_out(load):
    common = load("common")
    found = common.ratios([2.0, 9.0, np.nan, 8.0], of=[1.0, 3.0, 1.0, 1.0])
    np.testing.assert_array_equal(found, [2.0, 3.0, 8.0])
    assert common.spread(found) == "3.00 (2.50 to 5.50)"
    assert common.spread(found, 0) == "3 (2 to 6)"
    assert common.spread(np.array([])) == "-"


def test_measurements_take_turns(load):
    order = []
    works = {name: lambda n=name: (order.append(n), float(len(order)))[1] for name in "ab"}
    assert load("common").in_turn(works, 2) == {"a": [1.0, 3.0], "b": [2.0, 4.0]}
    assert order == ["a", "b", "a", "b"]


def test_seconds_are_the_mean_of_enough_calls(load):
    now, calls = [0.0], []

    def work():
        calls.append(now[0])
        now[0] += 0.25

    common = load("common")
    assert common.seconds(work, clock=lambda: now[0]) == 0.25
    assert len(calls) == 1
    assert common.seconds(work, at_least=1.0, clock=lambda: now[0]) == 0.25
    assert len(calls) == 1 + 4


def test_a_file_has_a_row_a_measurement_and_machines_are_kept(load, tmp_path):
    common = load("common")
    for benchmark in ("b", "a"):
        times = {"fast": [0.123456, np.nan], "slow": [2e-7]}
        common.write(tmp_path, list(common.rows(benchmark, "a case, quoted", 7, times)))
    assert (tmp_path / "a.csv").read_bytes().decode().splitlines() == [
        ",".join(COLUMNS),
        'a,"a case, quoted",7,fast,0,0.1235',
        'a,"a case, quoted",7,fast,1,',
        'a,"a case, quoted",7,slow,0,2e-07',
    ]
    told = tomllib.loads((tmp_path / "machine.toml").read_text(encoding="utf8"))
    assert list(told) == ["a", "b"]
    assert told["a"] == told["b"]
    assert told["a"]["numpy"] == np.__version__
    assert told["a"]["cores"] >= 1


def test_options_of_a_trial_are_one_repetition(load):
    options = load("common").options
    assert options("Text.", 7, []).repeats == 7
    assert options("Text.", 7, ["--repeats", "2"])[:2] == (2, False)
    assert options("Text.", 7, ["--smoke"])[:2] == (1, True)
    assert options("Text.", 7, []).results == STORED


# ----------------------------------------------------------------------- stored files


@pytest.mark.parametrize("benchmark", [*ON_THE_PAGE, "methods"])
def test_stored_files_have_every_case_and_no_other(benchmark, load):
    rows = read(STORED / f"{benchmark}.csv")
    require_form(rows, benchmark)
    # In a trial the difference of two short fits may come out negative; here it must not.
    assert all(float(row["seconds"]) > 0 for row in rows if row["seconds"])
    assert {(row["case"], int(row["size"])) for row in rows} == load(benchmark).CASES


@pytest.mark.parametrize("benchmark", PEERS)
def test_every_comparison_was_measured_with_its_peer(benchmark):
    with_peer: dict[str, set[str]] = {}
    for row in read(STORED / f"{benchmark}.csv"):
        with_peer.setdefault(row["case"], set()).add(row["method"])
    alone = re.compile(r"all pairs|cliques of|chain of 100,000")
    for case, methods in with_peer.items():
        assert PEERS[benchmark] <= methods or alone.search(case), case


@pytest.mark.parametrize("benchmark", ON_THE_PAGE)
def test_the_machine_of_every_file_is_named(benchmark):
    text = (STORED / "machine.toml").read_text(encoding="utf8")
    told = tomllib.loads(text)[benchmark]
    needed = {"processor", "cores", "load", "date", "python", "blas", "numpy", "scikit-learn"}
    assert needed | PACKAGES.get(benchmark, set()) <= set(told)
    assert not re.search(r"[/\\](home|tmp|work|root|usr)\b", text)


def test_theory_is_told_for_every_case_of_the_scaling(load):
    scaling = load("scaling")
    for case in {case for case, _ in scaling.CASES}:
        assert re.search(rf"^{case}\b", scaling.__doc__, re.M), case
        sizes = {size for c, size in scaling.CASES if c == case}
        assert len(sizes) >= 5, case


def test_starts_are_compared_on_the_same_draws_and_no_fit_failed(load):
    """Twelve draws at least, as paired differences need, and every value of every draw."""
    rows, found = (read(STORED / folder / "starts.csv") for folder in ("", "quality"))
    require_quality(found, rows)
    assert all(row["seconds"] for row in rows)
    starts = load("starts")
    n_draws = len(rows) / len(starts.PROBLEMS) / (len(starts.STARTS) + 2)
    assert n_draws >= 12
    assert n_draws == int(n_draws)
    # Without relations an evidence is of other data: there is the ARI alone.
    assert len(found) == 2 * len(rows) - n_draws * len(starts.PROBLEMS)
