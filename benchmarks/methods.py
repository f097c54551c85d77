"""Measure the time of each method beside plain K-means as N, K and the relations grow.

    python benchmarks/methods.py                all of it, a few minutes
    python benchmarks/methods.py --smoke        two sizes of each case, once, in seconds

``--repeats N`` for more sets of points. Where a method refuses, seconds are empty. The methods are
those of ``reruns.choosing``, each with five starts by k-means++, run until it converges: what a
user waits for, not what an iteration costs. All take turns on the same points, in one process and
on one thread; the times are of the process. Compare them by ratios.

*apart*: no point is in two relations, so exact inference is in closed form. *overlapping*: both
ends of a relation are drawn at random; where relations outnumber half of the points, most of them
hang together, and exact inference grows dear.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import NamedTuple

import common
import numpy as np

from cgmm.scenarios import Relations
from reruns.choosing import Known, ask, methods, sample_truth

N_POINTS, N_CLASSES, N_RELATIONS = 1000, 3, 100


class Problem(NamedTuple):
    """One size of one case, with all other sizes at their defaults."""

    case: str
    size: int
    n_points: int = N_POINTS
    n_classes: int = N_CLASSES
    n_relations: int = N_RELATIONS
    overlapping: bool = False


PROBLEMS = [
    # A tenth of the points in a relation each, so that relations grow as well.
    *(Problem("points", n, n_points=n, n_relations=n // 10) for n in (300, 1000, 3000, 10_000)),
    *(Problem("classes", k, n_classes=k) for k in (2, 3, 5, 10, 20)),
    *(Problem("relations apart", p, n_relations=p) for p in (50, 100, 200, 500)),
    *(
        Problem("relations overlapping", p, n_relations=p, overlapping=True)
        for p in (50, 200, 500, 700)
    ),
]
CASES = {(p.case, p.size) for p in PROBLEMS}


def draw(problem: Problem, seed: int) -> tuple[np.ndarray, Known]:
    """Draw points of round classes, and true side information."""
    rng = np.random.default_rng(seed)
    truth = sample_truth("spherical", problem.n_classes, rng)
    X, y = truth.sample(problem.n_points, rng)
    if not problem.overlapping:
        return X, ask(y, problem.n_relations, 0.0, rng)
    pairs = rng.integers(len(y), size=(problem.n_relations, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    together = y[pairs[:, 0]] == y[pairs[:, 1]]
    labels = np.full(len(y), -1)
    labels[pairs[:, 0]] = y[pairs[:, 0]]
    return X, Known(Relations(pairs[together], pairs[~together]), labels)


def seconds(fit: Callable) -> float | None:
    """Return the processor time of one fit, or None if it refuses."""
    try:
        return common.seconds(fit)
    except (ValueError, RuntimeError):
        return None


def rows(problem: Problem, n_repetitions: int) -> Iterator[common.Row]:
    """Measure all methods in turn, then again on new points."""
    for repetition in range(n_repetitions):
        X, known = draw(problem, repetition)
        for method, fit in methods(X, problem.n_classes, known, repetition, "k-means++").items():
            yield common.Row(
                "methods", problem.case, problem.size, method, repetition, seconds(fit)
            )


def smallest(problems: list[Problem], n: int) -> list[Problem]:
    """Return the first sizes of each case."""
    cases = dict.fromkeys(p.case for p in problems)
    return [p for case in cases for p in [q for q in problems if q.case == case][:n]]


def report(problem: Problem, measured: list[common.Row]) -> None:
    """Print the median ratio of each method to plain K-means in the same repetition."""
    times: dict[str, list[float]] = {}
    for row in measured:
        times.setdefault(row.method, []).append(np.nan if row.seconds is None else row.seconds)
    plain = np.array(times["K-means"])
    ratios = {name: np.median(np.array(took) / plain) for name, took in times.items()}
    shown = "  ".join(f"{name} {ratio:.1f}" for name, ratio in ratios.items() if name != "K-means")
    print(f"{problem.case:21} {problem.size:6}  {1e3 * np.median(plain):7.1f} ms  {shown}")


def main() -> None:
    """Measure, print the ratios and write the file."""
    options = common.options(__doc__, repeats=5)
    warnings.simplefilter("ignore")
    problems = smallest(PROBLEMS, 2) if options.smoke else PROBLEMS
    print(common.head())
    print("median time of K-means, and of the others as multiples of it")
    list(rows(PROBLEMS[0], 1))  # the first calls load libraries; they do not count
    measured: list[common.Row] = []
    for problem in problems:
        new = list(rows(problem, options.repeats))
        report(problem, new)
        measured += new
    common.write(options.results, measured)


if __name__ == "__main__":
    main()
