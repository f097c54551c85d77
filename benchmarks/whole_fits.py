"""Measure whole fits, from raw points to labels, beside scikit-learn's GaussianMixture.

What a user waits for: checks, the choice of a start and all iterations until each stops by its own
default. ``init_params="kmeans"`` starts as GaussianMixture does; the default tries about fifty
starts, so it stands beside GaussianMixture with ten. Classes have random covariances. With
relations, true answers about random pairs, there is no peer, and seconds are all that is told.

    python benchmarks/whole_fits.py

``--repeats N`` for more rounds, ``--smoke`` for one round of the smallest problems.
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
    """Numbers of points, columns, components, and answered pairs."""

    n_points: int
    n_dims: int
    n_components: int
    n_pairs: int = 0

    @property
    def case(self) -> str:
        pairs = f", {self.n_pairs} pairs" if self.n_pairs else ""
        return f"D={self.n_dims}, K={self.n_components}{pairs}"


SIZES = (300, 3000, 30_000, 300_000)
PROBLEMS = [
    *(
        Problem(n, d, k)
        for n, d, k in product(SIZES, (2, 10, 50), (3, 10))
        # There are fewer points than numbers in the covariances, so full covariances are
        # impossible.
        if n >= k * d
    ),
    *(Problem(n, 4, k, n // 10) for n, k in product((300, 1000, 3000), (2, 5))),
]
CASES = {(p.case, p.n_points) for p in PROBLEMS}


def draw(problem: Problem) -> tuple[np.ndarray, dict[str, Any]]:
    """Draw points of classes with random covariances, and true answers."""
    rng = np.random.default_rng(0)
    n, d, k, n_pairs = problem
    means = 5 * rng.normal(size=(k, d)) / np.sqrt(d)
    shapes = rng.normal(size=(k, d, d)) / np.sqrt(d) / 2 + 0.7 * np.eye(d)
    y = rng.integers(k, size=n)
    X = means[y] + np.einsum("nij,nj->ni", shapes[y], rng.normal(size=(n, d)))
    return X, random_pairs(y, n_pairs, random_state=0)._asdict() if n_pairs else {}


def works(problem: Problem) -> dict[str, Callable[[], float]]:
    """Return the fits to compare, each as a function that returns its seconds."""
    X, known = draw(problem)
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
    return {name: partial(common.seconds, fit, 0.05) for name, fit in fits.items()}


def main() -> None:
    """Print the table and write the file."""
    options = common.options(__doc__, repeats=3)
    warnings.simplefilter("ignore")
    print(common.head())
    measured: list[common.Row] = []
    for problem in PROBLEMS[:2] if options.smoke else PROBLEMS:
        fits = works(problem)
        fits["default"]()  # the first call of all compiles and loads
        times = common.in_turn(fits, options.repeats)
        line = f"{problem.n_points:>9,}  {problem.case:<18}{np.median(times['default']):8.3f} s"
        for name, of in (("kmeans", "GaussianMixture"), ("default", "GaussianMixture"),
                         ("default", "GaussianMixture, ten starts")):  # fmt: skip
            if of in times:
                line += f"  {name} / {of}: {np.median(common.ratios(times[name], times[of])):.2f}"
        print(line, flush=True)
        measured += common.rows("whole_fits", problem.case, problem.n_points, times)
    common.write(options.results, measured)


if __name__ == "__main__":
    main()
