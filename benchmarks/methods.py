"""Compare the time of each method with that of K-means, for growing N, K and number of relations.

    python benchmarks/methods.py                all cases, a few minutes
    python benchmarks/methods.py --smoke        two sizes of each case, once, in seconds

``--repeats N`` sets the number of data sets. If a method raises an error, its seconds are empty.
The methods are those of ``reruns.choosing``, each with five restarts by k-means++, until
convergence; so the times are those of whole fits, not of iterations. All methods are measured in
turn on the same points, in one process on one thread. Times are processor times; compare them by
ratios.

*apart*: no point is in two relations, so exact inference has a closed form. *overlapping*: both
points of a relation are drawn at random. If there are more relations than half the number of
points, most of them are connected, and exact inference becomes expensive.
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
    """Size of a case, where all other sizes have their default values."""

    case: str
    size: int
    n_points: int = N_POINTS
    n_classes: int = N_CLASSES
    n_relations: int = N_RELATIONS
    overlapping: bool = False


PROBLEMS = [
    # The number of relations is a tenth of the number of points, so it grows as well.
    *(Problem("points", n, n_points=n, n_relations=n // 10) for n in (300, 1000, 3000, 10_000)),
    *(Problem("classes", k, n_classes=k) for k in (2, 3, 5, 10, 20)),
    *(Problem("relations apart", p, n_relations=p) for p in (50, 100, 200, 500)),
    *(
        Problem("relations overlapping", p, n_relations=p, overlapping=True)
        for p in (50, 200, 500, 700)
    ),
]
CASES = {(p.case, p.size) for p in PROBLEMS}


def draw_data(problem: Problem, seed: int) -> tuple[np.ndarray, Known]:
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


def measure_fit(fit: Callable) -> float | None:
    """Return the processor time of a fit, or None if it raises an error."""
    try:
        return common.measure_seconds(fit)
    except (ValueError, RuntimeError):
        return None


def measure_methods(problem: Problem, n_repetitions: int) -> Iterator[common.Row]:
    """Measure all methods in turn, on new points in each repetition, and yield the rows."""
    for repetition in range(n_repetitions):
        X, known = draw_data(problem, repetition)
        for method, fit in methods(X, problem.n_classes, known, repetition, "k-means++").items():
            yield common.Row(
                "methods", problem.case, problem.size, method, repetition, measure_fit(fit)
            )


def select_first_sizes(problems: list[Problem], n: int) -> list[Problem]:
    """Return the first n sizes of each case."""
    cases = dict.fromkeys(p.case for p in problems)
    return [p for case in cases for p in [q for q in problems if q.case == case][:n]]


def report(problem: Problem, measured: list[common.Row]) -> None:
    """Print the median ratio of each method's time to that of K-means on the same points."""
    times: dict[str, list[float]] = {}
    for row in measured:
        times.setdefault(row.method, []).append(np.nan if row.seconds is None else row.seconds)
    plain = np.array(times["K-means"])
    ratios = {name: np.median(np.array(of) / plain) for name, of in times.items()}
    shown = "  ".join(f"{name} {ratio:.1f}" for name, ratio in ratios.items() if name != "K-means")
    print(f"{problem.case:21} {problem.size:6}  {1e3 * np.median(plain):7.1f} ms  {shown}")


def main() -> None:
    """Measure all problems, print the ratios and write the file."""
    options = common.parse_options(__doc__, repeats=5)
    warnings.simplefilter("ignore")
    problems = select_first_sizes(PROBLEMS, 2) if options.smoke else PROBLEMS
    print(common.format_machine())
    print("median time of K-means, and of the others as multiples of it")
    # The first calls load libraries, so they do not count.
    list(measure_methods(PROBLEMS[0], 1))
    measured: list[common.Row] = []
    for problem in problems:
        rows = list(measure_methods(problem, options.repeats))
        report(problem, rows)
        measured += rows
    common.write_times(options.results, measured)


if __name__ == "__main__":
    main()
