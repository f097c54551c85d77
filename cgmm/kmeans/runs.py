"""A run of Lloyd's loop, followed until it converges; runs kept and compared. Chapter 11.

Runs of other loops, such as EM, are compared by the same function, :func:`~cgmm.mixture.best_of`.

========  ============================================================
t         iteration: 0 is the start, with its assignment
tol       squared distance by which centres may move and yet stay
========  ============================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from cgmm.kmeans.loop import Step
from cgmm.network import NetworkError
from cgmm.numerics import is_better, warn_caller

AnyRun = TypeVar("AnyRun", bound=Any)
"""What is kept and compared: a NamedTuple with ``score`` and ``interrupted``."""


class Run(NamedTuple):
    """One run, as far as it went."""

    step: Step
    """The last step."""
    history: list[float]
    """The objective of every step."""
    n_iter: int
    """Iterations, counted as scikit-learn does."""
    converged: bool
    """Whether centres or assignments stayed where they were."""
    interrupted: bool = False
    """Whether the keyboard ended it."""

    @property
    def score(self) -> float:
        """Runs are compared by their objective: the lower, the better."""
        return -self.step.objective


def follow(
    steps: Iterator[Step], tol: float, max_iter: int, verbose: int = 0, number: int = 0
) -> Run:
    """Take steps until centres or assignments stay; at an interrupt from the keyboard, so far."""
    history, run = list[float](), cast("Run", None)
    try:
        for t, step in enumerate(islice(steps, max_iter + 1)):
            history = [*history, step.objective]
            if verbose > 1:
                print(f"  iteration {t:4d}   objective {step.objective:.6f}")
            arrived = t > 0 and bool(np.square(step.centres - run.step.centres).sum() <= tol)
            same = 0 < t < max_iter and not arrived and np.array_equal(step.labels, run.step.labels)
            # scikit-learn counts one more where it took a step to see that no assignment changed.
            run = Run(step, history, t + same, arrived or same)
            if run.converged:
                break
    except KeyboardInterrupt:
        if run is None or run.n_iter == 0:
            raise
        return run._replace(interrupted=True)
    if verbose:
        state = "converged" if run.converged else "stopped"
        print(f"run {number}: {state} after {run.n_iter} iterations, objective {history[-1]:.6f}")
    return run


def best_of(one_run: Callable[[int], AnyRun], n_init: int) -> AnyRun:
    """The run of highest score; one that fails or is interrupted does not lose the others.

    Parameters
    ----------
    one_run : callable
        From the run's number to the run: a :class:`Run`, or another NamedTuple with ``score`` and
        ``interrupted``.
    n_init : int
        How many, at least one.

    Returns
    -------
    Run
        The best.

    Raises
    ------
    NetworkError
        At once, as it would fail every run.
    ValueError
        That of the last run, if all failed.
    KeyboardInterrupt
        If there is no run yet that could be kept.
    """
    best: Any = None
    failure = ValueError(f"n_init is {n_init}; there must be one run at least.")
    try:
        for number in range(n_init):
            try:
                run = one_run(number)
            except NetworkError:
                raise
            except ValueError as error:
                failure = error
                if n_init > 1:
                    warn_caller(f"run {number} of {n_init} failed: {error}", ConvergenceWarning)
                continue
            if best is None or is_better(run.score, best.score):
                best = run
            if run.interrupted:
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        if best is None:
            raise
        return best._replace(interrupted=True)
    if best is None:
        raise failure
    return best


def random_source(random_state: object) -> np.random.RandomState:
    """The source of randomness that an estimator's ``random_state`` stands for.

    Parameters
    ----------
    random_state : int, RandomState, Generator or None
        A seed, or a source that each fit goes on drawing from; None: numpy's own.

    Returns
    -------
    RandomState
        Of a Generator the same stream of bits.

    Examples
    --------
    >>> random_source(np.random.default_rng(0)).randint(1000, size=2)
    array([607, 975])
    """
    if isinstance(random_state, np.random.Generator):
        return np.random.RandomState(random_state.bit_generator)
    return check_random_state(random_state)
