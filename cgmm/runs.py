"""What loops that begin anew share: the best of several runs, and where chance comes from.

K-means, EM and metrics stand on it. Chapter 3.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from cgmm.network import NetworkError
from cgmm.numerics import Seed, is_better, warn_caller

__all__ = ["random_source"]

Rng = np.random.RandomState
AnyRun = TypeVar("AnyRun", bound=Any)
# What is kept and compared: a NamedTuple with ``score`` and ``interrupted``.


def best_of(
    one_run: Callable[[int], AnyRun], n_init: int, n_most: int = 0,
    is_usable: Callable[[AnyRun], bool] = lambda run: True,
) -> AnyRun:  # fmt: skip
    """The run of highest score; one that fails or is interrupted does not lose the others.

    Parameters
    ----------
    one_run : callable
        From the run's number to the run, a NamedTuple with ``score`` and ``interrupted``.
    n_init : int
        How many, at least one.
    n_most : int, default=0
        How many runs may be made until ``n_init`` of them are usable.
    is_usable : callable, optional
        Whether a run may be kept; one that may not is kept only if none may.

    Returns
    -------
    NamedTuple
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
    best_is_usable, n_usable = False, 0
    failure = ValueError(f"n_init is {n_init}; there must be one run at least.")
    try:
        for number in range(max(n_init, n_most)):
            if n_usable == n_init:
                break
            try:
                run = one_run(number)
            except NetworkError:
                raise
            except ValueError as error:
                failure = error
                if n_init > 1:
                    warn_caller(f"run {number} of {n_init} failed: {error}", ConvergenceWarning)
                continue
            usable = is_usable(run)
            n_usable += usable
            is_first = best is None or (usable and not best_is_usable)
            if is_first or (usable == best_is_usable and is_better(run.score, best.score)):
                best, best_is_usable = run, usable
            if run.interrupted:
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        if best is None:
            raise
        return best._replace(interrupted=True)
    if best is None:
        raise failure
    return best


class Versioned:
    """Mixin of the estimators: a pickle carries the version that has written it."""

    def __getstate__(self) -> dict[str, Any]:
        state = cast("dict[str, Any]", super().__getstate__())
        return state | {"_cgmm_version": sys.modules["cgmm"].__version__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        written, here = state.pop("_cgmm_version", "unknown"), sys.modules["cgmm"].__version__
        self.__dict__.update(state)
        if written != here:
            warn_caller(
                f"this {type(self).__name__} was saved by cgmm {written} and is loaded by {here}: "
                "attributes may be missing or mean something else. Fit it again, or load it with "
                "the version that saved it.",
                UserWarning,
            )


def random_source(random_state: Seed) -> np.random.RandomState:
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
