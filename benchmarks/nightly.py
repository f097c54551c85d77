"""Measure three whole fits, append them to a history, and fail if one has become slower.

    python benchmarks/nightly.py --history FILE
    python benchmarks/nightly.py --history FILE --accept    a fit may be slower from now on

A fit is timed beside a fixed amount of numpy's work, A B A B, and the history stores the median of
the ratios of neighbours: so machines of different speed share one history. A fit is reported as
slower if its ratio is more than 1.15 times the median of its last ten in the history. The workflow
``nightly`` runs this file. The stored measurements of the other scripts compare methods with each
other; this file compares the package with its own past.
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
from whole_fits import Problem, draw

from cgmm import ConstrainedGaussianMixture

HISTORY = Path(__file__).with_name("history.csv")
REPEATS = 15
N_PAST = 10
LARGEST_RATIO = 1.15


class Entry(NamedTuple):
    """One line of the history: a fit's time in units of the fixed work."""

    date: str
    commit: str
    fit: str
    ratio: float


def fits() -> dict[str, Callable[[], object]]:
    """Return the three fits: with all starts, with one start, and with relations."""
    many, one, pairs = Problem(3000, 10, 3), Problem(30_000, 10, 10), Problem(300, 4, 2, 30)
    starts = {"default": "auto", "one start": "kmeans", "relations": "auto"}
    made = {}
    for (name, start), problem in zip(starts.items(), (many, one, pairs), strict=True):
        X, known = draw(problem)
        model = ConstrainedGaussianMixture(problem.n_components, init_params=start, random_state=0)
        made[name] = partial(model.fit, X, **known)
    return made


def fixed_work() -> float:
    """Run products, exponentials and sorts in the proportions of a fit."""
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
    """Return the median of the fit's time divided by the fixed work's."""
    works = {
        "fit": partial(common.seconds, fit, 0.2),
        "work": partial(common.seconds, fixed_work, 0.2),
    }
    times = common.in_turn(works, repeats)
    return float(np.median(common.ratios(times["fit"], times["work"])))


def slower(past: Sequence[Entry], now: Sequence[Entry]) -> list[str]:
    """Return a message for each fit that takes more than ``LARGEST_RATIO`` times its past."""
    messages = []
    for entry in now:
        before = [old.ratio for old in past if old.fit == entry.fit][-N_PAST:]
        if before and entry.ratio > LARGEST_RATIO * np.median(before):
            messages.append(
                f"{entry.fit}: {entry.ratio:.2f} times the fixed work, {np.median(before):.2f} "
                f"in the median of the last {len(before)} measurements"
            )
    return messages


def read(path: Path) -> list[Entry]:
    """Return the history in a file, which may not exist yet."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf8") as file:
        return [Entry(*row[:3], float(row[3])) for row in list(csv.reader(file))[1:]]


def write(path: Path, history: Sequence[Entry]) -> None:
    """Write the history."""
    with path.open("w", newline="", encoding="utf8") as file:
        csv.writer(file, lineterminator="\n").writerows([Entry._fields, *history])


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, compare and store; return 1 if a fit has become slower."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--history", type=Path, default=HISTORY, help="a CSV file")
    parser.add_argument("--repeats", type=int, default=REPEATS, help=f"(default: {REPEATS})")
    parser.add_argument("--accept", action="store_true", help="begin a new history")
    options = parser.parse_args(arguments)
    command = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    now = [
        Entry(date.today().isoformat(), commit, name, round(measure(fit, options.repeats), 3))
        for name, fit in fits().items()
    ]
    past = [] if options.accept else read(options.history)
    messages = slower(past, now)
    print(*(f"{entry.fit}: {entry.ratio}" for entry in now), sep="\n")
    print(*(f"SLOWER: {message}" for message in messages), sep="\n")
    # A slow fit stays out of the history: it would become the measure of the next night.
    kept = [entry for entry in now if not any(m.startswith(f"{entry.fit}:") for m in messages)]
    write(options.history, [*past, *kept])
    return int(bool(messages))


if __name__ == "__main__":
    raise SystemExit(main())
