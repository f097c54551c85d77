"""Compare the time of an EM iteration in cgmm, scikit-learn and pomegranate.

Run it with ``make bench`` or ``python benchmarks/plain_mixture.py``; ``--repeats N`` sets the
number of rounds, ``--smoke`` uses a hundredth of the points. All packages are measured in turn, in
one process on one thread, from the same initial parameters, without early stopping. The time of an
iteration is the difference between fits of 1 + n and of 1 iterations, divided by n. Peak memory is
what a fit allocates beyond the data; it is not measured for pomegranate, because torch does not
report allocations. The ratios are peer / cgmm, so cgmm is faster if they are above one. The time
depends on how far the components are apart. So each problem is measured with four spreads of the
centres, and the file contains the one with the worst ratio of scikit-learn to cgmm.
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
    """Size of a problem, and a number of iterations whose time can be measured precisely."""

    n_samples: int
    n_dims: int
    n_components: int
    covariance_type: str
    n_iterations: int

    @property
    def case(self) -> str:
        """Name of the case in the file of results."""
        return f"{self.covariance_type}, D={self.n_dims}, K={self.n_components}"


PROBLEMS = [
    Problem(10_000, 2, 3, "full", 60),
    Problem(10_000, 16, 8, "full", 20),
    Problem(100_000, 16, 16, "full", 3),
    Problem(20_000, 64, 10, "full", 4),
    Problem(100_000, 16, 16, "diag", 8),
]
# This problem is printed, but not written to the file.
SMALL = Problem(300, 2, 3, "full", 200)
# These are standard deviations of the centres; points of a component have standard deviation one.
SPREADS = (0.3, 1.0, 2.5, 6.0)
CASES = {(p.case, p.n_samples) for p in PROBLEMS}


class Pomegranate:
    """Estimator that creates a new mixture of pomegranate in each fit, because a fit changes it."""

    def __init__(self, kind: str, weights: np.ndarray, means: np.ndarray, covariances: np.ndarray):
        self.kind = kind
        self.start = weights, means, covariances

    def set_params(self, max_iter: int) -> None:
        """Set the number of iterations."""
        self.max_iter = max_iter

    def fit(self, X: np.ndarray) -> Any:
        """Fit a new mixture from the initial parameters."""
        weights, *rest = map(torch.tensor, self.start)
        parts = [Normal(m, c, covariance_type=self.kind) for m, c in zip(*rest, strict=True)]
        model = GeneralMixtureModel(parts, priors=weights, max_iter=self.max_iter, tol=-np.inf)
        return model.fit(torch.from_numpy(X))


def make_data_and_models(
    problem: Problem, spread: float = 2.0
) -> tuple[np.ndarray, dict[str, Any]]:
    """Return points of Gaussian clusters, and estimators with the same initial parameters."""
    rng = np.random.default_rng(0)
    n, d, k = problem[:3]
    centres = spread * rng.normal(size=(k, d))
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


def measure_iteration(model, X: np.ndarray, n_iterations: int) -> float:
    """Return seconds per iteration: the difference of a long and a short fit."""

    def measure_fit(max_iter: int) -> float:
        model.set_params(max_iter=max_iter)
        return common.measure_seconds(lambda: model.fit(X))

    return (measure_fit(1 + n_iterations) - measure_fit(1)) / n_iterations


def measure_peak_memory(model, X: np.ndarray) -> float:
    """Return the peak memory of a fit of two iterations beyond the data, in MiB."""
    model.set_params(max_iter=2)
    tracemalloc.start()
    model.fit(X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / 2**20


def compare(problem: Problem, spread: float, n_repeats: int) -> tuple[float, Iterable[common.Row]]:
    """Measure all packages in turn, print a line, and return the median ratio and the rows."""
    X, models = make_data_and_models(problem, spread)
    measure = partial(measure_iteration, X=X, n_iterations=problem.n_iterations)
    for model in models.values():
        measure_iteration(model, X, 1)
    functions = {name: partial(measure, model) for name, model in models.items()}
    times = common.measure_in_turn(functions, n_repeats)
    line = f"{problem.n_samples:>9,}  {problem.case:<18}{spread:4}"
    line += f"{1e3 * np.median(times['cgmm']):9.2f} ms"
    for peer in list(models)[1:]:
        ratio = common.format_quartiles(common.compute_ratios(times[peer], of=times["cgmm"]))
        line += f"{1e3 * np.median(times[peer]):10.2f} ms  {ratio:<22}"
    memory = (measure_peak_memory(models[name], X) for name in ("cgmm", "scikit-learn"))
    print(line + "".join(f"{peak:8.1f}" for peak in memory) + " MiB", flush=True)
    ratio = float(np.median(common.compute_ratios(times["scikit-learn"], of=times["cgmm"])))
    return ratio, common.yield_rows("plain_mixture", problem.case, problem.n_samples, times)


def main() -> None:
    """Measure all problems, print the table and write the file."""
    options = common.parse_options(__doc__, repeats=7)
    warnings.simplefilter("ignore", ConvergenceWarning)
    print(common.format_machine())
    if GeneralMixtureModel is None:
        common.report_missing_package("pomegranate")
    else:
        torch.set_num_threads(1)
    head = f"{'problem, spread of centres':<35}cgmm, then each peer: time, ratio (quartiles);"
    print(f"{head} peak memory of two")
    measured = []
    for problem in [SMALL, *PROBLEMS]:
        resized = problem
        if options.smoke:
            n_reduced = max(20, problem.n_samples // 100)
            resized = problem._replace(n_samples=n_reduced, n_iterations=2)
        results = [compare(resized, spread, options.repeats) for spread in SPREADS]
        _, worst = min(results, key=itemgetter(0))
        measured += [] if problem is SMALL else worst
    common.write_times(options.results, measured)


if __name__ == "__main__":
    main()
