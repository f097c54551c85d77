"""Where EM starts: the default, which tries several starts, beside one start of a kind.

On the same points, with the same true relations and the same seed: what a run from the start of
either name reaches, and what it costs. *Bad* is a run that ends more than five nats below the run
from the true classes, which is measured too: other maxima are tens of nats away. *Harmed* is a run
that true relations made worse: its adjusted Rand index (ARI) is more than 0.02 below that of the
same seed without relations, which is one start of k-means++. Differences of ARI are paired over
draws, and told with their standard error.

    python benchmarks/starts.py

The problems are groups that overlap a little, with few relations; with must-links in some groups
only; with groups of unequal sizes; in 2, 10 and 50 dimensions; and data sets with pairs and with
teachers. ``--repeats N`` for more draws, ``--smoke`` for one of each, of the first problems.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import common
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from cgmm import ConstrainedGaussianMixture, scenarios
from cgmm.datasets import load
from cgmm.metrics import paired_difference
from cgmm.metrics.paired import FEWEST_DRAWS

STARTS = {"default": "auto", "chunklets": "chunklets", "k-means++": "k-means++"}
TRUTH, ALONE = "from the truth", "no relations"
BAD, HARMED = 5.0, 0.02
EQUAL, UNEQUAL = (0.2,) * 5, (0.6, 0.2, 0.1, 0.06, 0.04)


class Problem(NamedTuple):
    """What is drawn, by the number of the draw: points (N, D), classes (N,), relations."""

    case: str
    n_points: int
    draw: Callable[[int], tuple[np.ndarray, np.ndarray, scenarios.Relations]]
    covariance_type: str = "full"


# ---------------------------------------------------------------------------- problems


def groups(
    seed: int, n_pairs: int, n_dims: int = 4, shares: tuple[float, ...] = EQUAL
) -> tuple[np.ndarray, np.ndarray, scenarios.Relations]:
    """Five elongated groups of 500 points, means as far apart in any dimension, and pairs."""
    rng, n_groups, n_points = np.random.default_rng(seed), len(shares), 500
    means = 4 / np.sqrt(n_dims) * rng.normal(size=(n_groups, n_dims))
    shapes = rng.normal(size=(n_groups, n_dims, n_dims)) / np.sqrt(n_dims) + np.eye(n_dims) / 2
    y = rng.choice(n_groups, n_points, p=shares)
    noise = rng.normal(size=(n_points, n_dims))
    X = means[y] + np.einsum("nij,nj->ni", shapes[y], noise)
    return X, y, scenarios.random_pairs(y, n_pairs, random_state=seed)


def one_group_untold(seed: int) -> tuple[np.ndarray, np.ndarray, scenarios.Relations]:
    """Forty must-links in four of five groups: their centroids seed no fifth one."""
    X, y, pairs = groups(seed, 240)
    inside = pairs.must_link[y[pairs.must_link[:, 0]] != 0][:40]
    return X, y, scenarios.Relations(inside, np.empty((0, 2), dtype=int))


def data_set(seed: int, name: str, kind: str) -> tuple[np.ndarray, np.ndarray, scenarios.Relations]:
    """Sixty pairs that do not overlap, or ten teachers with eight points each."""
    X, y, *_ = load(name)
    if kind == "pairs":
        return X, y, scenarios.random_pairs(y, 60, random_state=seed)
    return X, y, scenarios.teachers(y, 10, 8, random_state=seed)


SIZES = {"iris": 150, "wine": 178, "two_models": 140, "vertical_classes": 600}
PROBLEMS = [
    *(Problem(f"{n} pairs", 500, partial(groups, n_pairs=n)) for n in (20, 50, 100)),
    Problem("one group untold", 500, one_group_untold),
    Problem("groups unequal", 500, partial(groups, n_pairs=50, shares=UNEQUAL)),
    *(Problem(f"D = {d}", 500, partial(groups, n_pairs=50, n_dims=d)) for d in (2, 10)),
    Problem("D = 50, diag", 500, partial(groups, n_pairs=50, n_dims=50), "diag"),
    *(
        Problem(f"{name}, {kind}", size, partial(data_set, name=name, kind=kind))
        for name, size in SIZES.items()
        for kind in ("pairs", "teachers")
    ),
]
CASES = {(problem.case, problem.n_points) for problem in PROBLEMS}


# ---------------------------------------------------------------------------- fits


def fits(problem: Problem, seed: int) -> dict[str, common.Measured]:
    """Time and ARI of a run from each start, and how far it ends behind that from the truth.

    Of a fit that fails, nothing. The distance is in nats, negative where a run comes higher; four
    digits of the evidence itself would not tell.
    """
    X, y, relations = problem.draw(seed)
    K = len(np.unique(y))
    truth = np.eye(K)[np.unique(y, return_inverse=True)[1]]
    known = relations._asdict()
    asked = {TRUTH: (truth, known)} | {name: (start, known) for name, start in STARTS.items()}
    asked |= {ALONE: ("k-means++", {})}
    measured: dict[str, common.Measured] = {}
    highest = np.nan
    for name, (start, told) in asked.items():
        model = ConstrainedGaussianMixture(
            K, covariance_type=problem.covariance_type, init_params=start, random_state=seed,
            max_iter=300, reg_covar=1e-4,
        )  # fmt: skip
        try:
            seconds = common.seconds(lambda m=model, t=told: m.fit(X, **t))
        except ValueError:
            measured[name] = None, {}
            continue
        highest = model.log_evidence_ if name == TRUTH else highest
        quality = {"ARI": adjusted_rand_score(y, model.labels_)}
        if told:
            quality["behind"] = highest - model.log_evidence_
        measured[name] = seconds, quality
    return measured


def report(problem: Problem, draws: list[dict[str, common.Measured]]) -> None:
    """A line a start: median time, shares of bad and of harmed runs, mean ARI, and its gain."""

    def column(method: str, quantity: str) -> np.ndarray:
        return np.array([draw[method][1].get(quantity, np.nan) for draw in draws])

    print(problem.case)
    for method in STARTS:
        gains = column(method, "ARI") - column(ALONE, "ARI")
        took = np.median([draw[method][0] or np.nan for draw in draws])
        bad = np.mean(~(column(method, "behind") <= BAD))
        line = f"    {method:12}{1e3 * took:8.0f} ms  bad {bad:4.2f}"
        line += f"  harmed {np.mean(gains < -HARMED):4.2f}  ARI {column(method, 'ARI').mean():.3f}"
        kept = np.isfinite(gains)
        if kept.sum() >= FEWEST_DRAWS:
            gain = paired_difference(column(method, "ARI")[kept], column(ALONE, "ARI")[kept])
            line += f"  beyond {ALONE} {gain}"
        print(line, flush=True)


# ---------------------------------------------------------------------------- main


def main() -> None:
    """Measure, print what was found and write both files."""
    options = common.options(__doc__, repeats=12)
    warnings.simplefilter("ignore", ConvergenceWarning)
    print(common.head())
    times: list[common.Row] = []
    quality: list[common.Quality] = []
    for problem in PROBLEMS[:4] if options.smoke else PROBLEMS:
        draws = [fits(problem, seed) for seed in range(options.repeats)]
        report(problem, draws)
        measured = {method: [draw[method] for draw in draws] for method in draws[0]}
        rows, found = common.tabulate("starts", problem.case, problem.n_points, measured)
        times, quality = times + rows, quality + found
    common.write(options.results, times)
    common.write_quality(options.results, quality)


if __name__ == "__main__":
    main()
