"""What a second thread of the linear algebra library does to a fit of a mixture.

Run it with ``python benchmarks/threads.py``; ``--repeats N`` for more rounds, ``--smoke`` for
tenfold fewer points. The same fit with one thread and with two, in turn, in one process; of each
the processor's time, summed over the threads, and the time on the clock, which is what one waits
for. The latter counts other programs, too: on a busy machine it says little.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

import common
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_info, threadpool_limits

from cgmm import ConstrainedGaussianMixture


class Problem(NamedTuple):
    """Size of a fit with full covariances."""

    n_points: int
    n_dims: int
    n_components: int

    @property
    def case(self) -> str:
        return f"full, D={self.n_dims}, K={self.n_components}"


PROBLEMS = [Problem(8_000, 24, 12), Problem(100_000, 16, 16), Problem(20_000, 64, 10)]
CASES = {(p.case, p.n_points) for p in PROBLEMS}
N_ITERATIONS = 5
CLOCKS = {"processor": time.process_time, "clock": time.perf_counter}


def model_and_data(problem: Problem) -> tuple[ConstrainedGaussianMixture, np.ndarray]:
    """Overlapping blobs, and a fit of a few iterations from given means."""
    rng = np.random.default_rng(0)
    n, d, k = problem
    centres = 2 * rng.normal(size=(k, d))
    X = centres[rng.integers(k, size=n)] + rng.normal(size=(n, d))
    start = centres + 0.3 * rng.normal(size=(k, d))
    return ConstrainedGaussianMixture(k, means_init=start, max_iter=N_ITERATIONS, tol=0.0), X


def measure(model: ConstrainedGaussianMixture, X: np.ndarray, n_threads: int) -> tuple[float, ...]:
    """Both times of the same fit."""
    with threadpool_limits(n_threads):
        found = {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}
        if found != {n_threads}:
            raise RuntimeError(f"{n_threads} threads were asked for, the library runs {found}")
        began = [clock() for clock in CLOCKS.values()]
        model.fit(X)
        return tuple(clock() - b for clock, b in zip(CLOCKS.values(), began, strict=True))


def compare(problem: Problem, n_repeats: int) -> Iterable[common.Row]:
    """Measure in turn, and print a line."""
    model, X = model_and_data(problem)
    measure(model, X, 1)
    both = common.in_turn({n: partial(measure, model, X, n) for n in (1, 2)}, n_repeats)
    times = {
        f"{n} {'threads' if n > 1 else 'thread'}, {clock}": [took[c] for took in of]
        for n, of in both.items()
        for c, clock in enumerate(CLOCKS)
    }
    line = f"{len(X):>9,}  {problem.case:<18}"
    for clock in CLOCKS:
        one, two = times[f"1 thread, {clock}"], times[f"2 threads, {clock}"]
        line += f"{1e3 * np.median(one):9.1f} {1e3 * np.median(two):9.1f} ms "
        line += f"{common.spread(common.ratios(two, of=one)):<22}"
    print(line, flush=True)
    return common.rows("threads", problem.case, len(X), times)


def main() -> None:
    """Print the table and write the file."""
    options = common.options(__doc__, repeats=7)
    warnings.simplefilter("ignore", ConvergenceWarning)
    print(common.head())
    print(f"{'problem':<31}processor: 1, 2 threads, ratio        clock: 1, 2 threads, ratio")
    measured: list[common.Row] = []
    for problem in PROBLEMS:
        if options.smoke:
            problem = problem._replace(n_points=problem.n_points // 10)
        measured += compare(problem, options.repeats)
    common.write(options.results, measured)


if __name__ == "__main__":
    main()
