"""Measure the time of three fits, store it in a history, and fail if a fit has become slower.

    python benchmarks/nightly.py --history FILE
    python benchmarks/nightly.py --history FILE --accept    begin a new history

Each fit is timed in turn with a fixed computation in numpy (A B A B). The history stores the median
ratio of the two times, so measurements of machines with different speeds can be compared. A fit is
reported as slower if its ratio is more than 1.15 times the median of its last ten ratios. The
workflow ``nightly`` runs this file. The other benchmarks compare methods with each other; this one
compares the package with its earlier versions.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import NamedTuple

import common
import numpy as np
from whole_fits import Problem, draw_data

from cgmm import ConstrainedGaussianMixture

HISTORY = Path(__file__).with_name("history.csv")
REPEATS = 15
N_PAST = 10
LARGEST_RATIO = 1.15


class Entry(NamedTuple):
    """Row of the history: the time of a fit, divided by the time of the fixed computation."""

    date: str
    commit: str
    fit: str
    ratio: float


def build_fits() -> dict[str, Callable[[], object]]:
    """Return three fits by name: with default restarts, with one restart, and with relations."""
    problems = Problem(3000, 10, 3), Problem(30_000, 10, 10), Problem(300, 4, 2, 30)
    inits = {"default": "auto", "one start": "kmeans", "relations": "auto"}
    fit_of = {}
    for (name, init), problem in zip(inits.items(), problems, strict=True):
        X, known = draw_data(problem)
        model = ConstrainedGaussianMixture(problem.n_components, init_params=init, random_state=0)
        fit_of[name] = partial(model.fit, X, **known)
    return fit_of


def run_fixed_computation() -> float:
    """Compute products, exponentials and sorts in the same proportions as a fit."""
    rng = np.random.default_rng(0)
    total = 0.0
    for _ in range(8):
        X = rng.normal(size=(20_000, 10))
        density = np.exp(-0.5 * (X @ rng.normal(size=(10, 10))) ** 2)
        total += float(np.sort(density[:, 0])[0] + (density.T @ X).sum())
    for _ in range(20_000):
        total += float(np.add(total, 1.0))
    return total


def measure(fit: Callable[[], object], repeats: int = REPEATS) -> float:
    """Return the median ratio of the time of a fit to the time of the fixed computation."""
    functions = {
        "fit": partial(common.measure_seconds, fit, 0.2),
        "fixed": partial(common.measure_seconds, run_fixed_computation, 0.2),
    }
    times = common.measure_in_turn(functions, repeats)
    return float(np.median(common.compute_ratios(times["fit"], times["fixed"])))


def find_slower_fits(past: Sequence[Entry], now: Sequence[Entry]) -> list[str]:
    """Return a message for each fit whose ratio exceeds ``LARGEST_RATIO`` times its past median."""
    messages = []
    for entry in now:
        before = [old.ratio for old in past if old.fit == entry.fit][-N_PAST:]
        if before and entry.ratio > LARGEST_RATIO * np.median(before):
            messages.append(
                f"{entry.fit}: {entry.ratio:.2f} times the fixed computation, "
                f"{np.median(before):.2f} in the median of the last {len(before)} measurements"
            )
    return messages


def read_history(path: Path) -> list[Entry]:
    """Return the history in a file, or an empty list if the file does not exist."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf8") as file:
        return [Entry(*row[:3], float(row[3])) for row in list(csv.reader(file))[1:]]


def write_history(path: Path, history: Sequence[Entry]) -> None:
    """Write the history to a file."""
    with path.open("w", newline="", encoding="utf8") as file:
        csv.writer(file, lineterminator="\n").writerows([Entry._fields, *history])


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the fits, compare them with the history, and return 1 if a fit is slower."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--history", type=Path, default=HISTORY, help="a CSV file")
    parser.add_argument("--repeats", type=int, default=REPEATS, help=f"(default: {REPEATS})")
    parser.add_argument("--accept", action="store_true", help="begin a new history")
    options = parser.parse_args(arguments)
    command = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    now = [
        Entry(date.today().isoformat(), commit, name, round(measure(fit, options.repeats), 3))
        for name, fit in build_fits().items()
    ]
    past = [] if options.accept else read_history(options.history)
    messages = find_slower_fits(past, now)
    print(*(f"{entry.fit}: {entry.ratio}" for entry in now), sep="\n")
    print(*(f"SLOWER: {message}" for message in messages), sep="\n")
    # Do not store a slower fit, because later measurements would then be compared with it.
    kept = [entry for entry in now if not any(m.startswith(f"{entry.fit}:") for m in messages)]
    write_history(options.history, [*past, *kept])
    return int(bool(messages))


if __name__ == "__main__":
    raise SystemExit(main())
