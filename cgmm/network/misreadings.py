"""Checks for input that may be misread: some is refused, some raises a warning. Chapter 5.

Row numbers within a fold, names that look like row numbers, probabilities where log-odds are read,
labels where none are: each has an answer, and a wrong one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from cgmm.given import read_rows
from cgmm.network.classes import number_classes
from cgmm.network.rows import PairsAmong
from cgmm.numerics import is_own, warn_caller

# Where scikit-learn fits to some of the rows, and what stands around a method called directly.
CUTS_ROWS = "sklearn.model_selection._validation"
WRAPS = {"sklearn.base", "sklearn.utils._set_output"}


def callers() -> Iterator[str]:
    """Modules of the package and of scikit-learn that led here, up to the user's own line."""
    frame = sys._getframe(1)
    while frame is not None and is_own(frame):
        yield str(frame.f_globals.get("__name__"))
        frame = frame.f_back


def check_rows(X: Any, **relations: Any) -> None:
    """Raise an error for plain pairs where scikit-learn selects rows; warn where rows have names.

    The numbers of plain pairs mean other points within a fold; only here can that be noticed.
    """
    plain = [name for name, value in relations.items() if _is_plain(value)]
    if not plain:
        return
    if CUTS_ROWS in callers():
        raise ValueError(
            f"{plain[0]} holds row numbers of the whole table, but cross-validation fits to some "
            "of its rows, where they mean other points. Say how many rows there are, and the "
            f"relations of each fold are selected: {plain[0]}=cgmm.network.PairsAmong({plain[0]}, "
            "len(X))."
        )
    _warn_of_names(X, plain[0])


def _is_plain(value: Any) -> bool:
    return not (value is None or isinstance(value, PairsAmong | str)) and np.size(value) > 0


def _warn_of_names(X: Any, name: str) -> None:
    """Warn if the index has integers that differ from row positions."""
    index = getattr(X, "index", None)
    if callable(index) or getattr(index, "dtype", np.dtype(object)).kind not in "iu":
        return
    names = np.asarray(index)
    if np.array_equal(names, np.arange(len(names))):
        return
    warn_caller(
        f"{name} is read as row numbers, but X has an index of integers of its own, of which the "
        f"first is {names[0]}. If {name} holds entries of the index: {name}="
        f"cgmm.network.positions({name}, X.index). If row numbers are meant, say so: "
        f"{name}=cgmm.network.PairsAmong({name}, len(X)).",
        UserWarning,
    )


# ---------------------------------------------------------------------------- certainties


def warn_of_certainties(preferences: ArrayLike | None) -> None:
    """Warn where log-odds look like probabilities."""
    odds = read_rows("preferences", preferences, 3)[:, 2]
    if len(odds) == 0 or not ((odds > 0) & (odds < 1)).all():
        return
    # Log-odds of round certainties, as 0.405... of 0.6, are no certainties themselves.
    certainties = expit(odds)
    if np.allclose(certainties, certainties.round(3), rtol=0, atol=1e-9):
        return
    warn_caller(
        "all preferences lie between 0 and 1, as probabilities do, but are read as log-odds: "
        f"{odds[0]:.3g} is a certainty of {certainties[0]:.3g}. From certainties: preferences="
        "cgmm.scenarios.preferences(must_link, cannot_link, certainty=0.9), or log-odds one by one:"
        " cgmm.scenarios.weight_from_certainty(certainties).",
        UserWarning,
    )


# ---------------------------------------------------------------------------- labels not read


def warn_ignored(y: Any, instead: str) -> None:
    """Warn that ``y`` is ignored, if it looks like known classes.

    That is where it holds -1, None or NaN beside classes; or where few classes are handed over
    by the user's own line, not by a pipeline or a search. Cross-validation itself is silent: its
    search fits once more to all rows.
    """
    if y is None:
        return
    modules = set(callers())
    by_others = {name for name in modules if name.startswith("sklearn.")} - WRAPS
    if CUTS_ROWS in modules:
        return
    said = _what_it_holds(y)
    if said == "unknown" or (said == "classes" and not by_others):
        warn_caller(f"y is not read here: this estimator ignores it. {instead}", UserWarning)


def _what_it_holds(y: Any) -> str | None:
    """Classes some of which are unknown, classes, or nothing of the kind."""
    array = np.asarray(y)
    if array.ndim != 1 or array.dtype.kind not in "iubfUSO" or len(array) == 0:
        return None
    try:
        classes, numbers = number_classes(y)
    except (ValueError, TypeError):
        # Texts that may mean unknown, or names of several types: labels in any case.
        return "unknown"
    few = 2 * len(classes) <= len(numbers)
    if few and len(classes) and (numbers < 0).any():
        return "unknown"
    return "classes" if few and len(classes) > 1 else None
