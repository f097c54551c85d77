"""Time and memory of one EM iteration: cgmm beside scikit-learn, in turn, in one process.

Run it with ``make bench`` or ``python benchmarks/plain_mixture.py``; ``--repeats N`` for more
pairs, ``--smoke`` for a hundredth of the points. Both packages run on one thread, from the same
start, with no early stop. An iteration's time is the difference between fits of 1 + n and of 1
iterations, divided by n; peak memory is what a fit allocates beyond the data. The ratio is
scikit-learn / cgmm: above one means that cgmm is faster.
"""

from __future__ import annotations

import tracemalloc
import warnings
from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

import common
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from cgmm import ConstrainedGaussianMixture


class Problem(NamedTuple):
    """Size of a benchmark, and how many iterations make a measurable time."""

    n_samples: int
    n_dims: int
    n_components: int
    covariance_type: str
    n_iterations: int

    @property
    def case(self) -> str:
        return f"{self.covariance_type}, D={self.n_dims}, K={self.n_components}"


PROBLEMS = [
    Problem(10_000, 2, 3, "full", 60),
    Problem(10_000, 16, 8, "full", 20),
    Problem(100_000, 16, 16, "full", 3),
    Problem(20_000, 64, 10, "full", 4),
    Problem(100_000, 16, 16, "diag", 8),
]
CASES = {(p.case, p.n_samples) for p in PROBLEMS}


def data_and_models(
    problem: Problem,
) -> tuple[np.ndarray, ConstrainedGaussianMixture, GaussianMixture]:
    """Overlapping Gaussian blobs and the two estimators, set to the same start."""
    rng = np.random.default_rng(0)
    n, d, k = problem[:3]
    centres = 2 * rng.normal(size=(k, d))
    X = centres[rng.integers(k, size=n)] + rng.normal(size=(n, d))
    weights, means = np.full(k, 1 / k), centres + 0.3 * rng.normal(size=(k, d))
    identity = {"full": np.stack([np.eye(d)] * k), "diag": np.ones((k, d))}[problem.covariance_type]
    start = {
        "covariance_type": problem.covariance_type,
        "weights_init": weights,
        "means_init": means,
        "tol": 0.0,
    }
    ours = ConstrainedGaussianMixture(k, covariances_init=identity, **start)
    theirs = GaussianMixture(
        k, precisions_init=identity, init_params="random_from_data", random_state=0, **start
    )
    return X, ours, theirs


def seconds_per_iteration(model, X: np.ndarray, n_iterations: int) -> float:
    """Difference of a long and a short fit, so that the start and the checks cancel."""

    def fit(max_iter: int) -> float:
        model.set_params(max_iter=max_iter)
        return common.seconds(lambda: model.fit(X))

    return (fit(1 + n_iterations) - fit(1)) / n_iterations


def peak_mebibytes(model, X: np.ndarray) -> float:
    """Most memory that a fit of two iterations holds beyond the data."""
    model.set_params(max_iter=2)
    tracemalloc.start()
    model.fit(X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / 2**20


def compare(problem: Problem, n_repeats: int) -> Iterable[common.Row]:
    """Measure a problem in pairs, ours and theirs in turn, and print a line."""
    X, ours, theirs = data_and_models(problem)
    models = {"cgmm": ours, "scikit-learn": theirs}
    each = partial(seconds_per_iteration, X=X, n_iterations=problem.n_iterations)
    seconds_per_iteration(ours, X, 1)
    times = common.in_turn({name: partial(each, m) for name, m in models.items()}, n_repeats)
    ratios = common.ratios(times["scikit-learn"], of=times["cgmm"])
    milliseconds = "".join(f"{1e3 * np.median(took):9.2f}" for took in times.values())
    memory = "".join(f"{peak_mebibytes(model, X):8.1f}" for model in models.values())
    print(
        f"{problem.n_samples:>9,}  {problem.case:<18}{milliseconds} ms   "
        f"{common.spread(ratios):<22}{memory} MiB",
        flush=True,
    )
    return common.rows("plain_mixture", problem.case, problem.n_samples, times)


def main() -> None:
    """Print the table and write the file."""
    options = common.options(__doc__, repeats=7)
    warnings.simplefilter("ignore", ConvergenceWarning)
    print(common.head())
    print(f"{'problem':<31}cgmm  sklearn      ratio (quartiles)     peak extra memory")
    measured = []
    for problem in PROBLEMS:
        if options.smoke:
            problem = problem._replace(n_samples=problem.n_samples // 100, n_iterations=2)
        measured += compare(problem, options.repeats)
    common.write(options.results, measured)


if __name__ == "__main__":
    main()
