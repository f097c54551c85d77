"""A run of Lloyd's loop, followed until it converges; runs kept and compared. Chapter 11.

Other loops, such as EM, are kept and compared by the same two functions,
:func:`~cgmm.mixture.last_of` and :func:`~cgmm.mixture.best_of`.

========  ============================================================
t         iteration: 0 is the start, with its assignment
tol       squared distance by which centres may move and yet stay
========  ============================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from cgmm.kmeans.loop import Step
from cgmm.network import NetworkError
from cgmm.numerics import is_better, warn_caller

AnyRun = TypeVar("AnyRun", bound=Any)
"""What is kept and compared: a NamedTuple with ``n_iter``, ``score`` and ``interrupted``."""


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


def growing(
    steps: Iterator[Step], tol: float, max_iter: int, verbose: int = 0, number: int = 0
) -> Iterator[Run]:
    """The run as it stands at each step, until centres or assignments stay."""
    history: list[float] = []
    before, arrived, same = None, False, False
    for t, step in enumerate(steps):  # pragma: no branch - Lloyd's loop never ends
        history.append(step.objective)
        if verbose > 1:
            print(f"  iteration {t:4d}   objective {step.objective:.6f}")
        if before is not None:
            arrived = bool(np.square(step.centres - before.centres).sum() <= tol)
            same = not arrived and t < max_iter and np.array_equal(step.labels, before.labels)
        # scikit-learn counts one more where it took a step to see that no assignment changed.
        run = Run(step, history.copy(), t + same, arrived or same)
        yield run
        if run.converged or t == max_iter:
            break
        before = step
    if verbose:
        state = "converged" if run.converged else "stopped"
        print(f"run {number}: {state} after {run.n_iter} iterations, objective {history[-1]:.6f}")


def last_of(runs: Iterator[AnyRun]) -> AnyRun:
    """The last state of a run that grows; at an interrupt from the keyboard, the last so far.

    Parameters
    ----------
    runs : iterator of Run
        The run as it stands after each step: a :class:`Run`, or another NamedTuple with ``n_iter``
        and ``interrupted``.

    Returns
    -------
    Run
        The last; ``interrupted`` if the keyboard ended it.

    Raises
    ------
    KeyboardInterrupt
        If no iteration is complete that could be kept.

    Examples
    --------
    >>> def loop():
    ...     yield Run("the start", [], 0, False)
    ...     yield Run("one step on", [-3.0], 1, False)
    ...     raise KeyboardInterrupt
    >>> run = last_of(loop())
    >>> run.step, run.n_iter, run.interrupted
    ('one step on', 1, True)
    """
    run: Any = None
    try:
        for run in runs:  # noqa: B007
            pass
    except KeyboardInterrupt:
        if run is None or run.n_iter == 0:
            raise
        return run._replace(interrupted=True)
    return run


def best_of(
    one_run: Callable[[int], AnyRun],
    n_init: int,
    *,
    fatal: tuple[type[ValueError], ...] = (NetworkError,),
) -> AnyRun:
    """The run of highest score; one that fails or is interrupted does not lose the others.

    Parameters
    ----------
    one_run : callable
        From the run's number to the run: a :class:`Run`, or another NamedTuple with ``score`` and
        ``interrupted``.
    n_init : int
        How many.
    fatal : tuple of exceptions, default=(NetworkError,)
        What would fail every run, and is raised at once.

    Returns
    -------
    Run
        The best.

    Raises
    ------
    ValueError
        That of the last run, if all failed; at once what is fatal.
    KeyboardInterrupt
        If there is no run yet that could be kept.
    """
    best: Any = None
    failure = ValueError(f"n_init is {n_init}; there must be one run at least.")
    try:
        for number in range(n_init):
            try:
                run = one_run(number)
            except fatal:
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
