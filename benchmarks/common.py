"""Shared parts of the benchmarks: one thread, times and ratios, options, files of results.

A script imports this module before anything that computes. Then every linear algebra library runs
on one thread, and times are of the processor, so that other programs hardly count. What is compared
is measured in turn, A B A B, in one process, and told by the median of the ratios of neighbours,
with their quartiles.

A script writes ``<benchmark>.csv`` with a row a measurement, ``quality/<benchmark>.csv`` if it
measures more than times, and says in ``machine.toml`` where and when that was, among which versions
and how busy the machine was. Of these the page "How fast is it?" of the book is made.
"""

from __future__ import annotations

import os

# Before numpy is imported: its libraries read these once.
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
# Some measurements use the simulations and scenes of book/reruns/.
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


def seconds(
    work: Callable[[], object],
    at_least: float = 0.0,
    clock: Callable[[], float] = time.process_time,
) -> float:
    """Return the mean time of a call, over as many calls as take ``at_least``."""
    n_calls, began = 0, clock()
    while n_calls == 0 or clock() - began < at_least:
        work()
        n_calls += 1
    return (clock() - began) / n_calls


def in_turn(works: Mapping[str, Callable[[], float]], repeats: int) -> dict[str, list[float]]:
    """Return the times of works in turn (A B A B), so a slow moment affects all of them."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, measure in works.items():
            times[name].append(measure())
    return times


def ratios(times: Sequence[float], of: Sequence[float]) -> np.ndarray:
    """Return sorted ratios of neighbouring times, without failed ones (NaN)."""
    quotients = np.divide(times, of)
    return np.sort(quotients[~np.isnan(quotients)])


def spread(quotients: np.ndarray, digits: int = 2) -> str:
    """Return median and quartiles."""
    if len(quotients) == 0:
        return "-"
    low, middle, high = (f"{q:.{digits}f}" for q in np.quantile(quotients, [0.25, 0.5, 0.75]))
    return f"{middle} ({low} to {high})"


# ---------------------------------------------------------------------------- options


class Options(NamedTuple):
    """The options of the command line."""

    repeats: int
    smoke: bool
    results: Path


def options(doc: str, repeats: int, arguments: Sequence[str] | None = None) -> Options:
    """Parse the options that every script has; ``--smoke`` is one repetition."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument(
        "--repeats", type=int, default=repeats, help=f"repetitions (default: {repeats})"
    )
    parser.add_argument("--smoke", action="store_true", help="small problems, once, in seconds")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for the results")
    given = parser.parse_args(arguments)
    return Options(1 if given.smoke else given.repeats, given.smoke, given.results)


def without(peer: str) -> None:
    """Print that a peer is not installed, and how to install it."""
    print(
        f"{peer} is not installed here: it is left out. Everything that is compared:\n"
        "    python -m venv .venv-peers\n"
        "    .venv-peers/bin/python -m pip install -e . -r benchmarks/requirements.txt\n"
        "    make bench BIN=.venv-peers/bin"
    )


# ---------------------------------------------------------------------------- results


class Row(NamedTuple):
    """One measurement; it has no seconds if a method refused or failed."""

    benchmark: str
    case: str
    size: int
    method: str
    repetition: int
    seconds: float | None


def rows(
    benchmark: str, case: str, size: int, times: Mapping[str, Iterable[float]]
) -> Iterable[Row]:
    """Return the rows of times from :func:`in_turn`."""
    for method, measured in times.items():
        for repetition, took in enumerate(measured):
            yield Row(benchmark, case, size, method, repetition, None if np.isnan(took) else took)


def write(folder: Path, measured: Sequence[Row]) -> None:
    """Write the file of a benchmark with four digits, and its table in ``machine.toml``."""
    (benchmark,) = {row.benchmark for row in measured}
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / f"{benchmark}.csv", "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(Row._fields)
        for *head, took in measured:
            out.writerow([*head, "" if took is None else f"{took:.4g}"])
    _tell_machine(folder / "machine.toml", benchmark)


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
"""What a method did in one draw: seconds, none if it refused, and what is no time."""


def tabulate(
    benchmark: str, case: str, size: int, measured: Mapping[str, Sequence[Measured]]
) -> tuple[list[Row], list[Quality]]:
    """Return the rows of both files from the measurements of each method and draw."""
    times: list[Row] = []
    quality: list[Quality] = []
    for method, draws in measured.items():
        for repetition, (seconds, found) in enumerate(draws):
            place = benchmark, case, size, method, repetition
            times.append(Row(*place, seconds))
            quality += [Quality(*place, *item) for item in found.items()]
    return times, quality


def write_quality(folder: Path, found: Sequence[Quality]) -> None:
    """Write the file of a benchmark in the folder ``quality`` with four digits."""
    (benchmark,) = {row.benchmark for row in found}
    (folder / "quality").mkdir(parents=True, exist_ok=True)
    with open(folder / "quality" / f"{benchmark}.csv", "w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(Quality._fields)
        for *head, value in found:
            out.writerow([*head, f"{value:.4g}"])


def _tell_machine(path: Path, benchmark: str) -> None:
    """Write this benchmark's table into the file that describes the machines."""
    tables = tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    tables[benchmark] = machine()
    lines = ["# Where and when each file was measured; written by benchmarks/common.py."]
    for name in sorted(tables):
        lines += ["", f"[{name}]"]
        lines += [
            f'{key} = "{value}"' if isinstance(value, str) else f"{key} = {value}"
            for key, value in tables[name].items()
        ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def machine() -> dict[str, str | int | float]:
    """Return processor, versions, day, and the load of the last five minutes."""
    found: dict[str, str | int | float] = {
        "processor": processor(),
        "cores": os.cpu_count() or 1,
        "load": round(os.getloadavg()[1], 1) if hasattr(os, "getloadavg") else 0.0,
        "date": date.today().isoformat(),
        "python": platform.python_version(),
        "blas": blas(),
    }
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def processor() -> str:
    """Return the model's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def blas() -> str:
    """Return name and version of the linear algebra library that numpy was built with."""
    found = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return f"{found['name']} {found['version']}"


def head() -> str:
    """Return one line on the machine, for the top of the output."""
    facts = machine()
    return f"{facts.pop('processor')}, " + ", ".join(f"{key} {facts[key]}" for key in facts)
