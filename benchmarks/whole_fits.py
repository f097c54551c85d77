"""Compare the time of whole fits, from points to labels, with scikit-learn's GaussianMixture.

The times include all that a user waits for: checks, initialisation, and all iterations until the
default stopping rule of each package. With ``init_params="kmeans"`` cgmm initialises like
GaussianMixture. By default it tries about fifty initialisations, so it is compared with
GaussianMixture with ten restarts, too. Classes have random covariances. For problems with relations
(true answers about random pairs) there is no other package, so only seconds are measured.

    python benchmarks/whole_fits.py

``--repeats N`` sets the number of rounds; ``--smoke`` measures the smallest problems once.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import common
import numpy as np
from sklearn.mixture import GaussianMixture

from cgmm import ConstrainedGaussianMixture
from cgmm.scenarios import random_pairs


class Problem(NamedTuple):
    """Numbers of points, columns, components, and pairs with a relation."""

    n_points: int
    n_dims: int
    n_components: int
    n_pairs: int = 0

    @property
    def case(self) -> str:
        """Name of the case in the file of results."""
        pairs = f", {self.n_pairs} pairs" if self.n_pairs else ""
        return f"D={self.n_dims}, K={self.n_components}{pairs}"


SIZES = (300, 3000, 30_000, 300_000)
PROBLEMS = [
    *(
        Problem(n, d, k)
        for n, d, k in product(SIZES, (2, 10, 50), (3, 10))
        # With fewer points than this, full covariances cannot be estimated.
        if n >= k * d
    ),
    *(Problem(n, 4, k, n // 10) for n, k in product((300, 1000, 3000), (2, 5))),
]
CASES = {(p.case, p.n_points) for p in PROBLEMS}


def draw_data(problem: Problem) -> tuple[np.ndarray, dict[str, Any]]:
    """Draw points of classes with random covariances, and true relations."""
    rng = np.random.default_rng(0)
    n, d, k, n_pairs = problem
    means = 5 * rng.normal(size=(k, d)) / np.sqrt(d)
    shapes = rng.normal(size=(k, d, d)) / np.sqrt(d) / 2 + 0.7 * np.eye(d)
    y = rng.integers(k, size=n)
    X = means[y] + np.einsum("nij,nj->ni", shapes[y], rng.normal(size=(n, d)))
    return X, random_pairs(y, n_pairs, random_state=0)._asdict() if n_pairs else {}


def build_measurements(problem: Problem) -> dict[str, Callable[[], float]]:
    """Return functions by name, each of which fits a model and returns the seconds."""
    X, known = draw_data(problem)
    K = problem.n_components
    ours = partial(ConstrainedGaussianMixture, K, random_state=0)
    fits = {
        "default": partial(ours().fit, X, **known),
        "kmeans": partial(ours(init_params="kmeans").fit, X, **known),
    }
    if not known:
        peer = partial(GaussianMixture, K, random_state=0)
        fits["GaussianMixture"] = partial(peer().fit, X)
        fits["GaussianMixture, ten starts"] = partial(peer(n_init=10).fit, X)
    return {name: partial(common.measure_seconds, fit, 0.05) for name, fit in fits.items()}


def main() -> None:
    """Measure all problems, print the table and write the file."""
    options = common.parse_options(__doc__, repeats=3)
    warnings.simplefilter("ignore")
    print(common.format_machine())
    measured: list[common.Row] = []
    for problem in PROBLEMS[:2] if options.smoke else PROBLEMS:
        functions = build_measurements(problem)
        # The first call loads libraries, so it does not count.
        functions["default"]()
        times = common.measure_in_turn(functions, options.repeats)
        line = f"{problem.n_points:>9,}  {problem.case:<18}{np.median(times['default']):8.3f} s"
        for name, of in (("kmeans", "GaussianMixture"), ("default", "GaussianMixture"),
                         ("default", "GaussianMixture, ten starts")):  # fmt: skip
            if of in times:
                ratios = common.compute_ratios(times[name], times[of])
                line += f"  {name} / {of}: {np.median(ratios):.2f}"
        print(line, flush=True)
        measured += common.yield_rows("whole_fits", problem.case, problem.n_points, times)
    common.write_times(options.results, measured)


if __name__ == "__main__":
    main()
