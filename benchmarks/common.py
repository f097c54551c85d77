"""Measure times and ratios, parse options, and write files of results, for all benchmarks.

A script must import this module before numpy, so that every linear algebra library runs on one
thread. Times are processor times, so other programs have little influence. Methods to compare are
measured in turn (A B A B) in one process, and the result is the median of the ratios of
neighbouring times, with their quartiles.

A script writes ``<benchmark>.csv`` with a row per measurement, and ``quality/<benchmark>.csv`` if
it also measures other quantities than times. It records the machine, its load, the date and the
versions of packages in ``machine.toml``. The page "How fast is it?" of the book shows these files.
"""

from __future__ import annotations

import os

# Set these before numpy is imported, because its libraries read them only once.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import csv
import platform
import sys
import time
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

import numpy as np

BOOK = Path(__file__).resolve().parents[1] / "book"
# Some benchmarks use the simulations of book/reruns/.
sys.path.append(str(BOOK))
RESULTS = BOOK / "_data" / "benchmarks"
PACKAGES = (
    "numpy",
    "scipy",
    "scikit-learn",
    "pyagrum",
    "metric-learn",
    "active-semi-supervised-clustering",
    "distributed",
    "pomegranate",
    "torch",
)


# ------------------------------------------------------------------------------ times


def measure_seconds(
    function: Callable[[], object],
    at_least: float = 0.0,
    clock: Callable[[], float] = time.process_time,
) -> float:
    """Return the mean time of a call in seconds, over all calls within ``at_least`` seconds."""
    n_calls, start = 0, clock()
    while n_calls == 0 or clock() - start < at_least:
        function()
        n_calls += 1
    return (clock() - start) / n_calls


def measure_in_turn(
    functions: Mapping[str, Callable[[], float]], repeats: int
) -> dict[str, list[float]]:
    """Return times from functions that are called in turn (A B A B).

    If the machine is slow for a moment, this affects all functions.
    """
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(repeats):
        for name, measure in functions.items():
            times[name].append(measure())
    return times


def compute_ratios(times: Sequence[float], of: Sequence[float]) -> np.ndarray:
    """Return the sorted ratios of times measured in turn, without NaN (a failed measurement)."""
    ratios = np.divide(times, of)
    return np.sort(ratios[~np.isnan(ratios)])


def format_quartiles(values: np.ndarray, digits: int = 2) -> str:
    """Return the median and the quartiles of values as text."""
    if len(values) == 0:
        return "-"
    low, middle, high = (f"{q:.{digits}f}" for q in np.quantile(values, [0.25, 0.5, 0.75]))
    return f"{middle} ({low} to {high})"


# ---------------------------------------------------------------------------- options


class Options(NamedTuple):
    """Options of the command line."""

    repeats: int
    smoke: bool
    results: Path


def parse_options(doc: str, repeats: int, arguments: Sequence[str] | None = None) -> Options:
    """Parse the options that all scripts have; ``--smoke`` means one repetition."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument(
        "--repeats", type=int, default=repeats, help=f"repetitions (default: {repeats})"
    )
    parser.add_argument("--smoke", action="store_true", help="small problems, once, in seconds")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for the results")
    options = parser.parse_args(arguments)
    return Options(1 if options.smoke else options.repeats, options.smoke, options.results)


def report_missing_package(package: str) -> None:
    """Print that a package is not installed, and how to install all packages to compare with."""
    print(
        f"{package} is not installed here: it is left out. To install all packages compared:\n"
        "    python -m venv .venv-peers\n"
        "    .venv-peers/bin/python -m pip install -e . -r benchmarks/requirements.txt\n"
        "    make bench BIN=.venv-peers/bin"
    )


# ---------------------------------------------------------------------------- results


class Row(NamedTuple):
    """One time measurement; ``seconds`` is None if the method raised an error."""

    benchmark: str
    case: str
    size: int
    method: str
    repetition: int
    seconds: float | None


def yield_rows(
    benchmark: str, case: str, size: int, times: Mapping[str, Iterable[float]]
) -> Iterable[Row]:
    """Yield a row for each time from :func:`measure_in_turn`."""
    for method, method_times in times.items():
        for repetition, seconds in enumerate(method_times):
            is_missing = np.isnan(seconds)
            yield Row(benchmark, case, size, method, repetition, None if is_missing else seconds)


def write_times(folder: Path, rows: Sequence[Row]) -> None:
    """Write the times of a benchmark with four digits, and describe the machine."""
    (benchmark,) = {row.benchmark for row in rows}
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / f"{benchmark}.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Row._fields)
        for *fields, seconds in rows:
            writer.writerow([*fields, "" if seconds is None else f"{seconds:.4g}"])
    _write_machine(folder / "machine.toml", benchmark)


class Quality(NamedTuple):
    """A measured quantity that is not a time."""

    benchmark: str
    case: str
    size: int
    method: str
    repetition: int
    quantity: str
    value: float


Measured = tuple[float | None, dict[str, float]]
"""Seconds of a method in one draw (None if it raised an error), and its other quantities."""


def tabulate(
    benchmark: str, case: str, size: int, measured: Mapping[str, Sequence[Measured]]
) -> tuple[list[Row], list[Quality]]:
    """Return rows of times and rows of other quantities, from measurements by method and draw."""
    times: list[Row] = []
    quality: list[Quality] = []
    for method, draws in measured.items():
        for repetition, (seconds, quantities) in enumerate(draws):
            fields = benchmark, case, size, method, repetition
            times.append(Row(*fields, seconds))
            quality += [Quality(*fields, *item) for item in quantities.items()]
    return times, quality


def write_quality(folder: Path, rows: Sequence[Quality]) -> None:
    """Write the other quantities of a benchmark to the folder ``quality``, with four digits."""
    (benchmark,) = {row.benchmark for row in rows}
    (folder / "quality").mkdir(parents=True, exist_ok=True)
    with open(folder / "quality" / f"{benchmark}.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Quality._fields)
        for *fields, value in rows:
            writer.writerow([*fields, f"{value:.4g}"])


def _write_machine(path: Path, benchmark: str) -> None:
    """Write a description of this machine to the file, as the table of this benchmark."""
    tables = tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    tables[benchmark] = describe_machine()
    lines = ["# Where and when each file was measured; written by benchmarks/common.py."]
    for name in sorted(tables):
        lines += ["", f"[{name}]"]
        lines += [
            f'{key} = "{value}"' if isinstance(value, str) else f"{key} = {value}"
            for key, value in tables[name].items()
        ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def describe_machine() -> dict[str, str | int | float]:
    """Return processor, load of the last five minutes, date, and versions of packages."""
    facts: dict[str, str | int | float] = {
        "processor": get_processor_name(),
        "cores": os.cpu_count() or 1,
        "load": round(os.getloadavg()[1], 1) if hasattr(os, "getloadavg") else 0.0,
        "date": date.today().isoformat(),
        "python": platform.python_version(),
        "blas": get_blas_name(),
    }
    for package in PACKAGES:
        try:
            facts[package] = version(package)
        except PackageNotFoundError:
            continue
    return facts


def get_processor_name() -> str:
    """Return the model name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def get_blas_name() -> str:
    """Return name and version of the linear algebra library that numpy was built with."""
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return f"{blas['name']} {blas['version']}"


def format_machine() -> str:
    """Return the description of the machine as one line of text."""
    facts = describe_machine()
    return f"{facts.pop('processor')}, " + ", ".join(f"{key} {facts[key]}" for key in facts)
