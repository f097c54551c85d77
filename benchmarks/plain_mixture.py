"""Time and memory of one EM iteration: cgmm beside scikit-learn, in turn, in one process.

Run it with ``make bench`` or ``python benchmarks/plain_mixture.py``; ``--repeats N`` for more
pairs, ``--quick`` for tenfold smaller problems. Both packages run on one thread, from the same
start, with no early stop. An iteration's time is the difference between fits of 1 + n and of 1
iterations, divided by n; peak memory is what a fit allocates beyond the data. The ratio is
scikit-learn / cgmm: above one means that cgmm is faster.
"""

from __future__ import annotations

import os

# Before numpy is imported: its libraries read these once.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import platform
import time
import tracemalloc
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import sklearn
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

    def __str__(self) -> str:
        size = f"{self.n_samples:,} x {self.n_dims}"
        return f"{size:>13}  K={self.n_components:<2} {self.covariance_type:<5}"


PROBLEMS = [
    Problem(10_000, 2, 3, "full", 60),
    Problem(10_000, 16, 8, "full", 20),
    Problem(100_000, 16, 16, "full", 3),
    Problem(20_000, 64, 10, "full", 4),
    Problem(100_000, 16, 16, "diag", 8),
]


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

    def seconds(max_iter: int) -> float:
        model.set_params(max_iter=max_iter)
        began = time.perf_counter()
        model.fit(X)
        return time.perf_counter() - began

    return (seconds(1 + n_iterations) - seconds(1)) / n_iterations


def peak_mebibytes(model, X: np.ndarray) -> float:
    """Most memory that a fit of two iterations holds beyond the data."""
    model.set_params(max_iter=2)
    tracemalloc.start()
    model.fit(X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / 2**20


def compare(problem: Problem, n_repeats: int, report: Callable[[str], None]) -> float:
    """Measure a problem in pairs, ours and theirs in turn; return the median ratio of times."""
    X, ours, theirs = data_and_models(problem)
    seconds_per_iteration(ours, X, 1)
    pairs = np.array(
        [
            [seconds_per_iteration(model, X, problem.n_iterations) for model in (ours, theirs)]
            for _ in range(n_repeats)
        ]
    )
    ratios = np.sort(pairs[:, 1] / pairs[:, 0])
    milliseconds = 1e3 * np.median(pairs, axis=0)
    memory = [peak_mebibytes(model, X) for model in (ours, theirs)]
    report(
        f"{problem}  {milliseconds[0]:8.2f} {milliseconds[1]:8.2f} ms   "
        f"{np.median(ratios):5.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})   "
        f"{memory[0]:7.1f} {memory[1]:7.1f} MiB"
    )
    return float(np.median(ratios))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7, help="pairs of measurements")
    parser.add_argument("--quick", action="store_true", help="a tenth of the points")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    print(
        f"{platform.processor() or platform.machine()}, {platform.python_implementation()}", end=" "
    )
    print(
        f"{platform.python_version()}, numpy {np.__version__}, scikit-learn {sklearn.__version__}"
    )
    print("problem                      cgmm  sklearn      ratio (range)         peak extra memory")
    for problem in PROBLEMS:
        if options.quick:
            problem = problem._replace(n_samples=problem.n_samples // 10)
        compare(problem, options.repeats, lambda line: print(line, flush=True))


if __name__ == "__main__":
    main()
