"""What 200,000 must-links cost over a million points: time per iteration, with them and without.

Both fits start at the same means and run the same two numbers of iterations; the difference of
the times, divided by that of the iterations, is free of validation, contraction and start. The
two take turns, in one process and on one thread.

    OMP_NUM_THREADS=1 python benchmarks/must_links.py
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cgmm import ConstrainedGaussianMixture

N, D, K, N_LINKS = 1_000_000, 2, 3, 200_000
FEW, MANY, ROUNDS = 2, 12, 7


def problem() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points of three round classes, their centres, and pairs of the same class."""
    rng = np.random.default_rng(0)
    z = rng.integers(K, size=N)
    centres = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
    members = [np.flatnonzero(z == k) for k in range(K)]
    sizes = [N_LINKS - 2 * (N_LINKS // 3), N_LINKS // 3, N_LINKS // 3]
    links = [rng.choice(m, (size, 2)) for m, size in zip(members, sizes, strict=True)]
    return rng.normal(size=(N, D)) + centres[z], centres + 1, np.concatenate(links)


def seconds(X, means, max_iter: int, **known) -> float:
    """Processor time of one fit."""
    model = ConstrainedGaussianMixture(K, means_init=means, max_iter=max_iter, tol=0)
    start = time.process_time()
    model.fit(X, **known)
    return time.process_time() - start


def per_iteration(X, means, **known) -> float:
    """Seconds of one iteration."""
    few, many = (seconds(X, means, n, **known) for n in (FEW, MANY))
    return (many - few) / (MANY - FEW)


def main() -> None:
    """Print the times and their ratio."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    X, means, must_link = problem()
    times = np.array(
        [
            [per_iteration(X, means), per_iteration(X, means, must_link=must_link)]
            for _ in range(ROUNDS)
        ]
    )
    plain, linked = np.median(times, axis=0) * 1e3
    ratios = times[:, 1] / times[:, 0]
    print(f"N = {N:,}, D = {D}, K = {K}, {N_LINKS:,} must-links; {ROUNDS} rounds")
    print(f"plain {plain:.1f} ms, with must-links {linked:.1f} ms an iteration")
    print(f"ratio {np.median(ratios):.2f} (from {ratios.min():.2f} to {ratios.max():.2f})")


if __name__ == "__main__":
    main()
