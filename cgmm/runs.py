"""Shared tools of estimators: restarts, random numbers, and versions in pickles.

K-means, the mixtures and metric learning use this file. Chapter 3 explains restarts.
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
# A run is a NamedTuple with fields ``score`` and ``interrupted``.
AnyRun = TypeVar("AnyRun", bound=Any)


def best_of(
    one_run: Callable[[int], AnyRun], n_init: int, n_most: int = 0,
    is_usable: Callable[[AnyRun], bool] = lambda run: True,
) -> AnyRun:  # fmt: skip
    """Make several runs and return the one of highest score, even if some fail.

    Parameters
    ----------
    one_run : callable
        Function from the number of a run to its result, a NamedTuple with fields ``score`` and
        ``interrupted``.
    n_init : int
        Number of usable runs, at least one.
    n_most : int, default=0
        Maximum number of runs that may be made to obtain ``n_init`` usable ones, if it is larger
        than ``n_init``.
    is_usable : callable, optional
        Function that returns True if a run is usable. If no run is, the first one is returned.

    Returns
    -------
    NamedTuple
        The best run.

    Raises
    ------
    NetworkError
        If a run raises this error; no further run is made, because all would fail.
    ValueError
        If all runs fail; this is the error of the last run.
    KeyboardInterrupt
        If the user interrupts the first run.
    """
    best: Any = None
    best_is_usable, n_usable = False, 0
    failure = ValueError(f"n_init is {n_init}; there must be at least one run.")
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
            if best is None or (
                usable and (not best_is_usable or is_better(run.score, best.score))
            ):
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
    """Mixin that stores the package's version in pickles, and warns if it differs on loading."""

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
    """Return a RandomState for the argument ``random_state`` of an estimator.

    Parameters
    ----------
    random_state : int, RandomState, Generator or None
        A seed, or a source from which every fit continues to draw; None means NumPy's global one.

    Returns
    -------
    RandomState
        The source of randomness. It shares the bit stream of a Generator.

    Examples
    --------
    >>> random_source(np.random.default_rng(0)).randint(1000, size=2)
    array([607, 975])
    """
    if isinstance(random_state, np.random.Generator):
        return np.random.RandomState(random_state.bit_generator)
    return check_random_state(random_state)
