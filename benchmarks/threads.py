"""Measure the gain from a second thread in an iteration of EM, for cgmm and scikit-learn.

Run it with ``python benchmarks/threads.py``; ``--repeats N`` for more rounds, ``--smoke`` for a
hundredth of the points. The problems of ``plain_mixture.py`` and a long, narrow one, with
``n_jobs`` 1 and 2, and scikit-learn with its linear algebra at one thread and at a thread a core,
as it comes. Of each the processor's time, summed over the threads, and the time on the clock, which
is what one waits for. The latter counts other programs, too: on a busy machine it says little.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import common
import numpy as np
from plain_mixture import PROBLEMS as PLAIN
from plain_mixture import Problem, data_and_models
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

PROBLEMS = [*PLAIN, Problem(1_000_000, 4, 5, "full", 4)]
CASES = {(p.case, p.n_samples) for p in PROBLEMS}
# Wall time varies more than processor time, so this many times more iterations are run.
LONGER = 5
CLOCKS = (time.process_time, time.perf_counter)
OURS = {1: "1 thread", 2: "2 threads"}
THEIRS = {1: "scikit-learn, 1 thread", os.cpu_count() or 1: "scikit-learn, all threads"}


def measure(model: Any, X: np.ndarray, n_iterations: int, n_threads: int | None) -> np.ndarray:
    """Return times of an iteration by both clocks: a long fit less a short one."""

    def fit(max_iter: int) -> np.ndarray:
        model.set_params(max_iter=max_iter)
        began = [clock() for clock in CLOCKS]
        model.fit(X)
        return np.array([clock() for clock in CLOCKS]) - began

    # cgmm gives linear algebra one thread for each block.
    with threadpool_limits(n_threads):
        return (fit(1 + n_iterations) - fit(1)) / n_iterations


def works(problem: Problem) -> dict[str, Callable[[], np.ndarray]]:
    """Return each measurement by its name."""
    X, models = data_and_models(problem)
    every = {name: (clone(models["cgmm"]).set_params(n_jobs=n), None) for n, name in OURS.items()}
    every |= {name: (models["scikit-learn"], n) for n, name in THEIRS.items()}
    return {
        name: partial(measure, model, X, LONGER * problem.n_iterations, n_threads)
        for name, (model, n_threads) in every.items()
    }


def compare(problem: Problem, n_repeats: int) -> Iterable[common.Row]:
    """Measure in turn, and print a line."""
    each = works(problem)
    for work in each.values():
        work()
    both = {name: np.array(took) for name, took in common.in_turn(each, n_repeats).items()}
    clock = {name: took[:, 1] for name, took in both.items()}
    line = f"{problem.n_samples:>9,}  {problem.case:<18}"
    line += "".join(f"{1e3 * np.median(took):9.2f}" for took in clock.values()) + " ms"
    one, two, theirs = (clock[name] for name in (OURS[1], OURS[2], THEIRS[max(THEIRS)]))
    for ratio in ((one, two), (theirs, one), (theirs, two)):
        line += f"  {common.spread(common.ratios(ratio[0], of=ratio[1]))}"
    print(line, flush=True)
    times = {
        f"{name}, {by}": took[:, column]
        for name, took in both.items()
        for column, by in enumerate(("processor", "clock"))
    }
    return common.rows("threads", problem.case, problem.n_samples, times)


def main() -> None:
    """Print the table and write the file."""
    options = common.options(__doc__, repeats=7)
    warnings.simplefilter("ignore", ConvergenceWarning)
    print(common.head())
    print(f"by the clock: {', '.join([*OURS.values(), *THEIRS.values()])};")
    print("one thread / two, scikit-learn with all threads / one, and / two")
    measured: list[common.Row] = []
    for problem in PROBLEMS:
        if options.smoke:
            problem = problem._replace(n_samples=problem.n_samples // 100, n_iterations=1)
        measured += compare(problem, options.repeats)
    common.write(options.results, measured)


if __name__ == "__main__":
    main()
