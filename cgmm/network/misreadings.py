"""Checks for input that may be misread: some is refused, some raises a warning. Chapter 5.

Row numbers within a fold, names that look like row numbers, probabilities where log-odds are read,
labels where none are: each has an answer, and a wrong one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from cgmm.given import read_rows
from cgmm.network.classes import number_classes
from cgmm.network.rows import PairsAmong
from cgmm.numerics import FloatArray, is_own, warn_caller

# Modules of scikit-learn that stand around a method which the user calls directly.
WRAPS = {"sklearn.base", "sklearn.utils._set_output"}


def own_frames() -> Iterator[FrameType]:
    """Yield the frames of the package and of scikit-learn that led here, and then the user's."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_own(frame):
        yield frame
        frame = frame.f_back
    if frame is not None:
        yield frame


def callers() -> set[str]:
    """Return the names of the modules of the package and of scikit-learn that led here."""
    return {str(frame.f_globals.get("__name__")) for frame in own_frames() if is_own(frame)}


def is_cross_validation(modules: set[str]) -> bool:
    """Return whether scikit-learn is fitting to some of the rows of a table.

    scikit-learn offers no hook that says so. All its searches and curves select rows in the module
    of `cross_validate`; a test fails if another version does it elsewhere.
    """
    model_selection = sys.modules.get("sklearn.model_selection")
    return model_selection is not None and model_selection.cross_validate.__module__ in modules


# ---------------------------------------------------------------------------- rows


def check_rows(X: Any, **relations: Any) -> None:
    """Raise an error for plain pairs where scikit-learn selects rows; warn where rows have names.

    The numbers of plain pairs mean other points within a fold; only here can that be noticed.
    """
    plain = [name for name, value in relations.items() if _is_plain(value)]
    if not plain:
        return
    if is_cross_validation(callers()):
        raise ValueError(
            f"{plain[0]} holds row numbers of the whole table, but cross-validation fits to some "
            "of its rows, where they mean other points. Say how many rows there are, and the "
            f"relations of each fold are selected: {plain[0]}=cgmm.network.PairsAmong({plain[0]}, "
            "len(X))."
        )
    _warn_of_names(X, plain[0])
    _warn_of_selection(X, plain[0])


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


def _warn_of_selection(X: Any, name: str) -> None:
    """Warn where a line as `fit(table[rows], must_link=pairs)` selects rows of points alone."""
    *own, user = own_frames()
    if not isinstance(X, np.ndarray) or "fit" not in {frame.f_code.co_name for frame in own}:
        return
    if found := _find_selection(X, _variables(user)):
        table, rows = found
        warn_caller(
            f"the points are {table}[{rows}], and {name} is read as row numbers of this selection. "
            f"If {name} holds row numbers of all of {table}: {name}=cgmm.network.PairsAmong("
            f"{name}, len({table}))[{rows}]. If row numbers of the selection are meant, say so: "
            f"{name}=cgmm.network.PairsAmong({name}, {len(X)}).",
            UserWarning,
        )


def _variables(frame: FrameType) -> dict[str, Any]:
    """Return the arrays that a frame's code can name."""
    names = {name: frame.f_globals.get(name) for name in frame.f_code.co_names}
    variables = names | dict(frame.f_locals)
    return {name: value for name, value in variables.items() if isinstance(value, np.ndarray)}


def _find_selection(X: NDArray[Any], arrays: dict[str, NDArray[Any]]) -> tuple[str, str] | None:
    """Return the names of a larger table and of the row numbers or mask that select X from it."""
    for table, whole in arrays.items():
        if whole.ndim == X.ndim == 2 and whole.shape[1] == X.shape[1] and len(whole) > len(X):
            for name, rows in arrays.items():
                if _selects(rows, X, whole):
                    return table, name
    return None


def _selects(rows: NDArray[Any], X: NDArray[Any], whole: NDArray[Any]) -> bool:
    if rows.ndim != 1 or len(rows) == 0:
        return False
    if rows.dtype == bool:
        can_select = len(rows) == len(whole)
    else:
        can_select = rows.dtype.kind in "iu" and len(rows) == len(X) and rows.max() < len(whole)
        can_select = can_select and rows.min() >= 0
    return can_select and np.array_equal(whole[rows], X)


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


def warn_of_fractions(power: FloatArray | None) -> None:
    """Warn if weighted points with relations count as fractions of a point, as shares do."""
    if power is None:
        return
    # Points without relations have the power one.
    weights = power[(power > 0) & (power != 1)]
    if len(weights) and weights.mean() < 0.5:
        warn_caller(
            f"points with relations have sample_weight {weights.mean():.3g} on average and count "
            "as such fractions of a point: relations then outweigh what the points say. Weights "
            "are numbers of points; scale them to the mean 1, sample_weight * len(X) / "
            "sample_weight.sum().",
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
    modules = callers()
    by_others = {name for name in modules if name.startswith("sklearn.")} - WRAPS
    if is_cross_validation(modules):
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
