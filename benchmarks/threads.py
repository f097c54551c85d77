"""Measure how much a second thread speeds up an iteration of EM, for cgmm and scikit-learn.

Run it with ``python benchmarks/threads.py``; ``--repeats N`` sets the number of rounds, ``--smoke``
uses a hundredth of the points. The problems are those of ``plain_mixture.py``, and one with many
points and a small number of columns. cgmm runs with ``n_jobs`` 1 and 2; scikit-learn runs with one
thread for linear algebra, and with its default of one thread per core. Both the processor time,
summed over threads, and the wall time are measured. The wall time is what users wait for, but on a
busy machine it depends mainly on other programs.
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
from plain_mixture import Problem, make_data_and_models
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

PROBLEMS = [*PLAIN, Problem(1_000_000, 4, 5, "full", 4)]
CASES = {(p.case, p.n_samples) for p in PROBLEMS}
# Wall time varies more than processor time, so run this many times more iterations.
LONGER = 5
CLOCKS = (time.process_time, time.perf_counter)
OURS = {1: "1 thread", 2: "2 threads"}
THEIRS = {1: "scikit-learn, 1 thread", os.cpu_count() or 1: "scikit-learn, all threads"}


def measure(model: Any, X: np.ndarray, n_iterations: int, n_threads: int | None) -> np.ndarray:
    """Return processor and wall time of an iteration: the difference of a long and a short fit."""

    def fit(max_iter: int) -> np.ndarray:
        model.set_params(max_iter=max_iter)
        start = [clock() for clock in CLOCKS]
        model.fit(X)
        return np.array([clock() for clock in CLOCKS]) - start

    # This limits scikit-learn; cgmm itself limits linear algebra to one thread per block.
    with threadpool_limits(n_threads):
        return (fit(1 + n_iterations) - fit(1)) / n_iterations


def build_measurements(problem: Problem) -> dict[str, Callable[[], np.ndarray]]:
    """Return functions by name that measure a model with a number of threads."""
    X, models = make_data_and_models(problem)
    cases = {name: (clone(models["cgmm"]).set_params(n_jobs=n), None) for n, name in OURS.items()}
    cases |= {name: (models["scikit-learn"], n) for n, name in THEIRS.items()}
    return {
        name: partial(measure, model, X, LONGER * problem.n_iterations, n_threads)
        for name, (model, n_threads) in cases.items()
    }


def compare(problem: Problem, n_repeats: int) -> Iterable[common.Row]:
    """Measure both packages in turn, print a line of the table, and return the rows."""
    functions = build_measurements(problem)
    for measure_once in functions.values():
        measure_once()
    both_times = {
        name: np.array(times)
        for name, times in common.measure_in_turn(functions, n_repeats).items()
    }
    wall = {name: times[:, 1] for name, times in both_times.items()}
    line = f"{problem.n_samples:>9,}  {problem.case:<18}"
    line += "".join(f"{1e3 * np.median(times):9.2f}" for times in wall.values()) + " ms"
    one, two, theirs = (wall[name] for name in (OURS[1], OURS[2], THEIRS[max(THEIRS)]))
    for times, of in ((one, two), (theirs, one), (theirs, two)):
        line += f"  {common.format_quartiles(common.compute_ratios(times, of=of))}"
    print(line, flush=True)
    times = {
        f"{name}, {clock}": times[:, column]
        for name, times in both_times.items()
        for column, clock in enumerate(("processor", "clock"))
    }
    return common.yield_rows("threads", problem.case, problem.n_samples, times)


def main() -> None:
    """Measure all problems, print the table and write the file."""
    options = common.parse_options(__doc__, repeats=7)
    warnings.simplefilter("ignore", ConvergenceWarning)
    print(common.format_machine())
    print(f"wall time: {', '.join([*OURS.values(), *THEIRS.values()])};")
    print("one thread / two, scikit-learn with all threads / one, and / two")
    measured: list[common.Row] = []
    for problem in PROBLEMS:
        if options.smoke:
            problem = problem._replace(n_samples=problem.n_samples // 100, n_iterations=1)
        measured += compare(problem, options.repeats)
    common.write_times(options.results, measured)


if __name__ == "__main__":
    main()
