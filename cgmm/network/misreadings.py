"""Check for valid input that probably means something else, and raise an error or a warning.

Examples are row numbers of the whole table in a fold, names that look like row numbers,
probabilities in place of log-odds, and labels that an estimator ignores. Each would give a wrong
result without an error. Estimators call these checks in ``fit``. Chapter 5 explains them.
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
from cgmm.network.labels import number_classes
from cgmm.network.relations import PairsAmong
from cgmm.numerics import FloatArray, is_internal, warn_caller

# The call stack of a user's direct call of ``fit`` contains these modules of scikit-learn.
WRAPPER_MODULES = {"sklearn.base", "sklearn.utils._set_output"}


def iterate_frames() -> Iterator[FrameType]:
    """Yield the calling frames of the package and of scikit-learn, ending with the user's frame."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_internal(frame):
        yield frame
        frame = frame.f_back
    if frame is not None:
        yield frame


def list_callers() -> set[str]:
    """Return the names of the calling modules of the package and of scikit-learn."""
    frames = filter(is_internal, iterate_frames())
    return {str(frame.f_globals.get("__name__")) for frame in frames}


def is_cross_validation(modules: set[str]) -> bool:
    """Return True if scikit-learn is fitting to a selection of the rows of a table.

    scikit-learn has no function that reports this, so the names of the calling modules decide. All
    its searches and learning curves select rows in the module of ``cross_validate``; a test fails
    if a version does so in another module.
    """
    model_selection = sys.modules.get("sklearn.model_selection")
    return model_selection is not None and model_selection.cross_validate.__module__ in modules


# ------------------------------------------------------------ rows


def check_rows(X: Any, **relations: Any) -> None:
    """Raise ``ValueError`` for plain pairs in cross-validation; warn if X is indexed or selected.

    In a fold, row numbers of the whole table refer to the wrong points. Whether a fit is part of
    cross-validation is visible only in the call stack.
    """
    plain = [name for name, value in relations.items() if _is_plain_array(value)]
    if not plain:
        return
    if is_cross_validation(list_callers()):
        raise ValueError(
            f"{plain[0]} contains row numbers of the whole table, but cross-validation fits to "
            "some of its rows, where they refer to other points. State the number of rows, so that "
            f"each fold selects its relations: {plain[0]}=cgmm.network.PairsAmong({plain[0]}, "
            "len(X))."
        )
    _warn_of_index(X, plain[0])
    _warn_of_selected_rows(X, plain[0])


def _is_plain_array(value: Any) -> bool:
    """Return True for a plain array of pairs, which unlike ``PairsAmong`` has no row count."""
    return not (value is None or isinstance(value, PairsAmong | str)) and np.size(value) > 0


def _warn_of_index(X: Any, name: str) -> None:
    """Warn if X has an index of integers that are not its row numbers."""
    index = getattr(X, "index", None)
    if callable(index) or getattr(index, "dtype", np.dtype(object)).kind not in "iu":
        return
    names = np.asarray(index)
    if np.array_equal(names, np.arange(len(names))):
        return
    warn_caller(
        f"{name} is read as row numbers, but X has an index of other integers, and the first is "
        f"{names[0]}. If {name} contains entries of the index: {name}="
        f"cgmm.network.positions({name}, X.index). If row numbers are meant, state this: "
        f"{name}=cgmm.network.PairsAmong({name}, len(X)).",
        UserWarning,
    )


def _warn_of_selected_rows(X: Any, name: str) -> None:
    """Warn if the caller selects rows of X but not of the relations.

    An example is ``fit(table[rows], must_link=pairs)``.
    """
    *own, user = iterate_frames()
    if not isinstance(X, np.ndarray) or "fit" not in {frame.f_code.co_name for frame in own}:
        return
    if found := _find_selection(X, _list_arrays(user)):
        table, rows = found
        warn_caller(
            f"the points are {table}[{rows}], and {name} is read as row numbers of this selection. "
            f"If {name} contains row numbers of all of {table}: {name}=cgmm.network.PairsAmong("
            f"{name}, len({table}))[{rows}]. If row numbers of the selection are meant, state "
            f"this: {name}=cgmm.network.PairsAmong({name}, {len(X)}).",
            UserWarning,
        )


def _list_arrays(frame: FrameType) -> dict[str, Any]:
    """Return the local and global variables of a frame that are arrays, by name."""
    names = {name: frame.f_globals.get(name) for name in frame.f_code.co_names}
    variables = names | dict(frame.f_locals)
    return {name: value for name, value in variables.items() if isinstance(value, np.ndarray)}


def _find_selection(X: NDArray[Any], arrays: dict[str, NDArray[Any]]) -> tuple[str, str] | None:
    """Return the names of a table and of an index or mask that selects X from it, or None."""
    for table, full in arrays.items():
        if full.ndim == X.ndim == 2 and full.shape[1] == X.shape[1] and len(full) > len(X):
            for name, rows in arrays.items():
                if _is_selection(rows, X, full):
                    return table, name
    return None


def _is_selection(rows: NDArray[Any], X: NDArray[Any], full: NDArray[Any]) -> bool:
    """Return True if ``full[rows]`` equals X."""
    if rows.ndim != 1 or len(rows) == 0:
        return False
    if rows.dtype == bool:
        can_select = len(rows) == len(full)
    else:
        can_select = rows.dtype.kind in "iu" and len(rows) == len(X) and rows.max() < len(full)
        can_select = can_select and rows.min() >= 0
    return can_select and np.array_equal(full[rows], X)


# ------------------------------------------------------------ probabilities and fractions


def warn_of_certainties(preferences: ArrayLike | None) -> None:
    """Warn if all log-odds lie between 0 and 1, as probabilities do."""
    odds = read_rows("preferences", preferences, 3)[:, 2]
    if len(odds) == 0 or not ((odds > 0) & (odds < 1)).all():
        return
    # Do not warn if all of them are the log-odds of round probabilities: 0.6 has log-odds 0.405...
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
    """Warn if the sample weights of points with relations are fractions rather than counts."""
    if power is None:
        return
    # Points without relations have power 1 whatever their weight, so leave out all powers of 1.
    weights = power[(power > 0) & (power != 1)]
    if len(weights) and weights.mean() < 0.5:
        warn_caller(
            f"points with relations have sample_weight {weights.mean():.3g} on average and count "
            "as fractions of a point, so relations outweigh the density of the points. Weights "
            "are numbers of points; scale them to the mean 1, sample_weight * len(X) / "
            "sample_weight.sum().",
            UserWarning,
        )


# ------------------------------------------------------------ ignored labels


def warn_ignored(y: Any, advice: str) -> None:
    """Warn that the estimator ignores ``y``, if ``y`` looks like known classes.

    This is the case if ``y`` contains -1, None or NaN beside classes. It is also the case if ``y``
    has a small number of classes and the user's own code passes it, not a pipeline or a search.
    Fits within cross-validation do not warn: a search ends with a fit to all rows, which warns.
    """
    if y is None:
        return
    modules = list_callers()
    by_others = {name for name in modules if name.startswith("sklearn.")} - WRAPPER_MODULES
    if is_cross_validation(modules):
        return
    content = _classify_content(y)
    if content == "unknown" or (content == "classes" and not by_others):
        warn_caller(f"y is not read here: this estimator ignores it. {advice}", UserWarning)


def _classify_content(y: Any) -> str | None:
    """Return "unknown" for partially known classes, "classes" for known ones, None otherwise."""
    array = np.asarray(y)
    if array.ndim != 1 or array.dtype.kind not in "iubfUSO" or len(array) == 0:
        return None
    try:
        classes, numbers = number_classes(y)
    except (ValueError, TypeError):
        # An error means that y contains ambiguous texts or mixed types, so it does contain labels.
        return "unknown"
    is_repeated = 2 * len(classes) <= len(numbers)
    if is_repeated and len(classes) and (numbers < 0).any():
        return "unknown"
    return "classes" if is_repeated and len(classes) > 1 else None
