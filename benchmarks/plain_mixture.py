"""Measure one EM iteration: cgmm beside scikit-learn and pomegranate, in turn.

Run it with ``make bench`` or ``python benchmarks/plain_mixture.py``; ``--repeats N`` for more
rounds, ``--smoke`` for a hundredth of the points. All packages run in one process on one thread,
from the same start, with no early stop. An iteration's time is the difference between fits of 1 + n
and of 1 iterations, divided by n; peak memory is what a fit allocates beyond the data, as far as
numpy tells: torch, behind pomegranate, does not. The ratios are peer / cgmm: above one means that
cgmm is faster. How far apart the components are counts: each problem is measured with centres of
four deviations, and what goes into the file is the one that is worst for cgmm beside scikit-learn.
"""

from __future__ import annotations

import tracemalloc
import warnings
from collections.abc import Iterable
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import common
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from cgmm import ConstrainedGaussianMixture

try:
    import torch
    from pomegranate.distributions import Normal
    from pomegranate.gmm import GeneralMixtureModel
except ImportError:
    GeneralMixtureModel = None


class Problem(NamedTuple):
    """Size of a benchmark, and the number of iterations that can be timed well."""

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
SMALL = Problem(300, 2, 3, "full", 200)  # printed alone
# Deviations of the centres, where the points of a component deviate by one.
APART = (0.3, 1.0, 2.5, 6.0)
CASES = {(p.case, p.n_samples) for p in PROBLEMS}


class Pomegranate:
    """A factory of pomegranate's mixture, because a fit changes it."""

    def __init__(self, kind: str, weights: np.ndarray, means: np.ndarray, covariances: np.ndarray):
        self.kind = kind
        self.start = weights, means, covariances

    def set_params(self, max_iter: int) -> None:
        self.max_iter = max_iter

    def fit(self, X: np.ndarray) -> Any:
        weights, *rest = map(torch.tensor, self.start)
        parts = [Normal(m, c, covariance_type=self.kind) for m, c in zip(*rest, strict=True)]
        model = GeneralMixtureModel(parts, priors=weights, max_iter=self.max_iter, tol=-np.inf)
        return model.fit(torch.from_numpy(X))


def data_and_models(problem: Problem, apart: float = 2.0) -> tuple[np.ndarray, dict[str, Any]]:
    """Return Gaussian blobs and the estimators with the same start."""
    rng = np.random.default_rng(0)
    n, d, k = problem[:3]
    centres = apart * rng.normal(size=(k, d))
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
    models = {"cgmm": ours, "scikit-learn": theirs}
    if GeneralMixtureModel is not None:
        models["pomegranate"] = Pomegranate(problem.covariance_type, weights, means, identity)
    return X, models


def seconds_per_iteration(model, X: np.ndarray, n_iterations: int) -> float:
    """Subtract a short fit from a long one, so that start and checks cancel."""

    def fit(max_iter: int) -> float:
        model.set_params(max_iter=max_iter)
        return common.seconds(lambda: model.fit(X))

    return (fit(1 + n_iterations) - fit(1)) / n_iterations


def peak_mebibytes(model, X: np.ndarray) -> float:
    """Return the peak memory of a fit of two iterations beside the data."""
    model.set_params(max_iter=2)
    tracemalloc.start()
    model.fit(X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / 2**20


def compare(problem: Problem, apart: float, n_repeats: int) -> tuple[float, Iterable[common.Row]]:
    """Measure a problem in rounds, print a line, and return the ratio and the rows."""
    X, models = data_and_models(problem, apart)
    each = partial(seconds_per_iteration, X=X, n_iterations=problem.n_iterations)
    for model in models.values():
        seconds_per_iteration(model, X, 1)
    times = common.in_turn({name: partial(each, m) for name, m in models.items()}, n_repeats)
    line = f"{problem.n_samples:>9,}  {problem.case:<18}{apart:4}"
    line += f"{1e3 * np.median(times['cgmm']):9.2f} ms"
    for peer in list(models)[1:]:
        ratio = common.spread(common.ratios(times[peer], of=times["cgmm"]))
        line += f"{1e3 * np.median(times[peer]):10.2f} ms  {ratio:<22}"
    memory = (peak_mebibytes(models[name], X) for name in ("cgmm", "scikit-learn"))
    print(line + "".join(f"{peak:8.1f}" for peak in memory) + " MiB", flush=True)
    ratio = float(np.median(common.ratios(times["scikit-learn"], of=times["cgmm"])))
    return ratio, common.rows("plain_mixture", problem.case, problem.n_samples, times)


def main() -> None:
    """Print the table and write the file."""
    options = common.options(__doc__, repeats=7)
    warnings.simplefilter("ignore", ConvergenceWarning)
    print(common.head())
    if GeneralMixtureModel is None:
        common.without("pomegranate")
    else:
        torch.set_num_threads(1)
    head = f"{'problem, centres apart':<35}cgmm, then each peer: time, ratio (quartiles);"
    print(f"{head} peak memory of two")
    measured = []
    for problem in [SMALL, *PROBLEMS]:
        sized = problem
        if options.smoke:
            n_reduced = max(20, problem.n_samples // 100)
            sized = problem._replace(n_samples=n_reduced, n_iterations=2)
        found = [compare(sized, apart, options.repeats) for apart in APART]
        _, worst = min(found, key=itemgetter(0))
        measured += [] if problem is SMALL else worst
    common.write(options.results, measured)


if __name__ == "__main__":
    main()
