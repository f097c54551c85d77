"""Measure an iteration on a million points with and without 200,000 must-links.

Both fits start at the same means and run the same two numbers of iterations; the difference of
the times, divided by that of the iterations, is free of validation, contraction and start. The
two take turns, in one process and on one thread.

    python benchmarks/must_links.py

``--repeats N`` for more rounds, ``--smoke`` for a tenth of it.
"""

from __future__ import annotations

import warnings
from functools import partial

import common
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cgmm import ConstrainedGaussianMixture

N, D, K, N_LINKS = 1_000_000, 2, 3, 200_000
SHORT, LONG, ROUNDS = 2, 52, 7
CASE = "must-links for a fifth of the points"
CASES = {(CASE, N)}


def problem(n_points: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return points of three round classes, their centres, and pairs of the same class."""
    rng = np.random.default_rng(0)
    n_links = n_points * N_LINKS // N
    z = rng.integers(K, size=n_points)
    centres = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
    members = [np.flatnonzero(z == k) for k in range(K)]
    sizes = [n_links - 2 * (n_links // 3), n_links // 3, n_links // 3]
    links = [rng.choice(m, (size, 2)) for m, size in zip(members, sizes, strict=True)]
    return rng.normal(size=(n_points, D)) + centres[z], centres + 1, np.concatenate(links)


def seconds(X, means, max_iter: int, **known) -> float:
    """Return the processor time of one fit."""
    model = ConstrainedGaussianMixture(K, means_init=means, max_iter=max_iter, tol=0)
    return common.seconds(lambda: model.fit(X, **known))


def per_iteration(X, means, **known) -> float:
    """Return the seconds of one iteration."""
    short, many = (seconds(X, means, n, **known) for n in (SHORT, LONG))
    return (many - short) / (LONG - SHORT)


def main() -> None:
    """Print the times and their ratio, and write the file."""
    options = common.options(__doc__, repeats=ROUNDS)
    warnings.simplefilter("ignore", ConvergenceWarning)
    X, means, must_link = problem(N // 10 if options.smoke else N)
    plain = partial(per_iteration, X, means)
    seconds(X, means, SHORT, must_link=must_link)  # the first call loads libraries
    times = common.in_turn(
        {"plain": plain, "must-links": partial(plain, must_link=must_link)}, options.repeats
    )
    ratios = common.ratios(times["must-links"], of=times["plain"])
    milliseconds = [1e3 * np.median(took) for took in times.values()]
    print(common.head())
    print(f"N = {len(X):,}, D = {D}, K = {K}, {len(must_link):,} must-links")
    print("plain {:.1f} ms, with must-links {:.1f} ms an iteration".format(*milliseconds))
    print(f"ratio {common.spread(ratios)}")
    common.write(options.results, list(common.rows("must_links", CASE, len(X), times)))


if __name__ == "__main__":
    main()
