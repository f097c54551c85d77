"""Relations and labels as they are given: read as tables, or refused in words. Chapter 5.

What comes is named, and so is the call that turns it into what is wanted. ``read_rows`` stands
behind every check of relations, ``explain_missing`` before every table of points.

=====  ==============================================================
name   what the caller's argument is called
P      number of relations, one a row
=====  ==============================================================
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

# What a table of relations is, by its number of columns.
WANTED = {
    2: "it must be (P, 2), a pair of indices a row",
    3: "it must be (P, 3), rows of i, j, log-odds",
}


def read_rows(name: str, value: Any, width: int) -> NDArray[Any]:
    """(P, width) real numbers, one relation a row; None and anything empty is no relation."""
    if value is None:
        return np.empty((0, width), dtype=np.intp)
    _require_table(name, value, width)
    array = _as_array(name, value, width)
    if array.size == 0:
        return np.empty((0, width), dtype=np.intp)
    if array.dtype == object and array.ndim == 2:
        # Columns of a table may hold numbers as objects; a list of them makes an array of numbers.
        array = np.array(array.tolist())
    if array.dtype.kind in "OUSMm":
        raise ValueError(_no_row_numbers(name, np.asarray(value, dtype=object), width))
    if array.ndim != 2 or array.shape[1] != width or array.dtype.kind not in "iuf":
        raise ValueError(
            f"{name} has shape {array.shape} and type {array.dtype}; {WANTED[width]}."
            + _remedy_for_shape(name, array, width)
        )
    return array


def require_samples(name: str, value: Any, n_points: int | None) -> None:
    """Refuse relations that say among how many rows they are, where there are others."""
    among = getattr(value, "n_samples", None)
    if among is not None and n_points is not None and among != n_points:
        raise ValueError(
            f"{name} holds relations among {among} samples, but {n_points} came. Select those of "
            f"the rows that came: {name}[rows]."
        )


def of_other_rows(name: str) -> str:
    """What to do where row numbers are larger than there are rows."""
    return (
        " If points were left out, as cross-validation does, the pairs among the rows that are "
        f"left are cgmm.network.PairsAmong({name}, n_before)[rows]; names of points become row "
        f"numbers by cgmm.network.positions({name}, names)."
    )


def _require_table(name: str, value: Any, width: int) -> None:
    """Refuse what is no table, and say which call makes one of it."""
    if hasattr(value, "must_link") and hasattr(value, "cannot_link"):
        raise ValueError(
            f"{name} is {type(value).__name__}, must-links and cannot-links together; take them "
            "apart: must_link=relations.must_link, cannot_link=relations.cannot_link, or with a "
            "star, preferences(*relations, certainty=0.9)."
        )
    made_by = None
    if sparse.issparse(value):
        made_by = f"np.column_stack({name}.nonzero())"
        if width == 3:
            # Of a symmetric matrix each relation would come twice, and log-odds add up.
            made_by = f"np.column_stack(scipy.sparse.find(scipy.sparse.triu({name}, 1)))"
    elif isinstance(value, Mapping):
        made_by = f"list({name})"
        if width == 3:
            made_by = f"[(i, j, odds) for (i, j), odds in {name}.items()]"
    elif not hasattr(value, "__array__") and not isinstance(value, Sequence):
        made_by = f"list({name})"
    if made_by is not None:
        raise ValueError(
            f"{name} is of type {type(value).__name__}; {WANTED[width]}: {name}={made_by}."
        )


def _as_array(name: str, value: Any, width: int) -> NDArray[Any]:
    """As an array, or an error that names the first row of another length."""
    try:
        return np.asarray(value)
    except ValueError:
        row = next((i for i, row in enumerate(value) if np.shape(row) != (width,)), 0)
        raise ValueError(
            f"{name}[{row}] is {value[row]!r}; {WANTED[width]}. Remove the row, or mend it."
        ) from None


def _no_row_numbers(name: str, array: NDArray[Any], width: int) -> str:
    """What to do where points are named by something else than the numbers of their rows."""
    rows = array.reshape(len(array), -1) if array.ndim else array.reshape(1, 1)
    others = np.array([not isinstance(entry, int | float | np.number) for entry in rows.flat])
    row, column = np.divmod(int(others.argmax()), rows.shape[1])
    return (
        f"{name}[{row}] holds {rows[row, column]!r}, which is no number; {WANTED[width]}. Names "
        f"of points become row numbers by {name}=cgmm.network.positions({name}, names), where "
        "names holds the name of each row, as X.index does."
    )


def _remedy_for_shape(name: str, array: NDArray[Any], width: int) -> str:
    """A call that makes the table wanted of an array that has another shape."""
    if array.ndim == 2 and len(array) == array.shape[1] > 3 and width == 2:
        return f" Of a matrix with an entry a pair: {name}=np.argwhere(np.triu({name}, 1))."
    if array.ndim == 2 and len(array) == width and array.dtype.kind in "iu":
        return f" Pairs in columns are turned: {name}=np.transpose({name})."
    if array.shape == (width,):
        return f" One alone is a table of one row: {name}=[{name}]."
    if array.ndim == 2 and (array.shape[1], width) == (3, 2):
        return f" Three columns are for preferences; pairs alone: {name}=np.asarray({name})[:, :2]."
    if array.ndim == 2 and (array.shape[1], width) == (2, 3):
        return (
            " Pairs of which one is γ certain, say 0.9: cgmm.scenarios.preferences("
            f"must_link={name}, certainty=0.9)."
        )
    return ""


def no_number(array: NDArray[Any]) -> str:
    """The first entry that is no number, if it is one that makes the array what it is."""
    for row, label in enumerate(array.tolist()):
        if not isinstance(label, int | float):
            return f", as {label!r} in row {row} makes it"
    return ""


@contextmanager
def explain_missing(X: Any) -> Iterator[None]:
    """Where scikit-learn refuses missing values among the points, name them and what helps."""
    try:
        yield
    except ValueError as error:
        if "Input X contains NaN." not in str(error):
            raise
        raise ValueError(f"Input X contains NaN{_where_missing(X)}. {ON_MISSING}") from None


ON_MISSING = (
    "A row must be complete. Leave out those that are not: keep = ~np.isnan(X).any(axis=1), then "
    "fit(X[keep], must_link=cgmm.network.PairsAmong(must_link, len(X))[keep]), and likewise other "
    "relations; or fill them in: sklearn.impute.SimpleImputer().fit_transform(X)."
)


def _where_missing(X: Any) -> str:
    """The first row and column, and how many rows."""
    X = X if isinstance(X, np.memmap) else np.asarray(X, dtype=float)
    rows = np.asarray(np.isnan(X).any(axis=1))
    row, count = int(rows.argmax()), int(rows.sum())
    column = int(np.isnan(X[row]).argmax())
    return f": first in row {row}, column {column}, and in {count} of {len(rows)} rows"
