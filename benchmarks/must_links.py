"""Measure the time of an EM iteration on a million points, with and without 200,000 must-links.

Both variants start at the same means, and are fitted with two numbers of iterations. The difference
of the two times, divided by the difference of the numbers of iterations, does not include
validation, contraction and initialisation. The variants are measured in turn, in one process on one
thread.

    python benchmarks/must_links.py

``--repeats N`` sets the number of rounds, ``--smoke`` uses a tenth of the points.
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


def draw_data(n_points: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw points of three round classes; return points, initial means and true must-links."""
    rng = np.random.default_rng(0)
    n_links = n_points * N_LINKS // N
    z = rng.integers(K, size=n_points)
    centres = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
    members = [np.flatnonzero(z == k) for k in range(K)]
    sizes = [n_links - 2 * (n_links // 3), n_links // 3, n_links // 3]
    links = [rng.choice(m, (size, 2)) for m, size in zip(members, sizes, strict=True)]
    return rng.normal(size=(n_points, D)) + centres[z], centres + 1, np.concatenate(links)


def measure_fit(X, means, max_iter: int, **known) -> float:
    """Return the processor time of a fit."""
    model = ConstrainedGaussianMixture(K, means_init=means, max_iter=max_iter, tol=0)
    return common.measure_seconds(lambda: model.fit(X, **known))


def measure_iteration(X, means, **known) -> float:
    """Return the processor time of an iteration: the difference of a long and a short fit."""
    short, long = (measure_fit(X, means, n, **known) for n in (SHORT, LONG))
    return (long - short) / (LONG - SHORT)


def main() -> None:
    """Measure both variants, print the times and their ratio, and write the file."""
    options = common.parse_options(__doc__, repeats=ROUNDS)
    warnings.simplefilter("ignore", ConvergenceWarning)
    X, means, must_link = draw_data(N // 10 if options.smoke else N)
    plain = partial(measure_iteration, X, means)
    # The first call loads libraries, so it does not count.
    measure_fit(X, means, SHORT, must_link=must_link)
    times = common.measure_in_turn(
        {"plain": plain, "must-links": partial(plain, must_link=must_link)}, options.repeats
    )
    ratios = common.compute_ratios(times["must-links"], of=times["plain"])
    milliseconds = [1e3 * np.median(of) for of in times.values()]
    print(common.format_machine())
    print(f"N = {len(X):,}, D = {D}, K = {K}, {len(must_link):,} must-links")
    print("plain {:.1f} ms, with must-links {:.1f} ms an iteration".format(*milliseconds))
    print(f"ratio {common.format_quartiles(ratios)}")
    common.write_times(options.results, list(common.yield_rows("must_links", CASE, len(X), times)))


if __name__ == "__main__":
    main()
