"""Check the relations, labels and points that a user passes, and explain errors.

An error message describes the input and shows the call that converts it. Every check of relations
calls ``read_rows``, and every estimator checks its table of points inside ``explain_missing``.
Chapter 5 explains the formats of relations.

=====  ==============================================================
name   name of the caller's argument, e.g. "must_link"
P      number of relations, one per row, e.g. 20
=====  ==============================================================
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, time, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

# Description of a valid table of relations for error messages, by its number of columns.
EXPECTED = {
    2: "it must be (P, 2), a pair of indices per row",
    3: "it must be (P, 3), rows of i, j, log-odds",
}


def read_rows(name: str, value: Any, width: int) -> NDArray[Any]:
    """Check a table of relations and return it as (P, width) numbers; None gives P = 0."""
    if value is None:
        return np.empty((0, width), dtype=np.intp)
    refuse_mask(name, value, MASKED_RELATIONS.format(name))
    _require_table(name, value, width)
    array = _as_array(name, value, width)
    if array.size == 0:
        return np.empty((0, width), dtype=np.intp)
    if array.dtype == object and array.ndim == 2:
        # A data frame may store numbers as objects; conversion through a list makes them numeric.
        array = np.array(array.tolist())
    if array.dtype.kind in "OUSMm":
        raise ValueError(_describe_names(name, np.asarray(value, dtype=object), width))
    if array.ndim != 2 or array.shape[1] != width or array.dtype.kind not in "iuf":
        raise ValueError(
            f"{name} has shape {array.shape} and type {array.dtype}; {EXPECTED[width]}."
            + _suggest_conversion(name, array, width)
        )
    return array


def require_samples(name: str, value: Any, n_points: int | None) -> None:
    """Raise ``ValueError`` if relations were made for another number of rows than ``n_points``."""
    among = getattr(value, "n_samples", None)
    if among is not None and n_points is not None and among != n_points:
        raise ValueError(
            f"{name} holds relations among {among} samples, but {n_points} came. Select those of "
            f"the rows that came: {name}[rows]."
        )


def advise_on_rows(name: str) -> str:
    """Return advice for an error about row numbers that exceed the number of rows."""
    return (
        " If points were left out, as in cross-validation, the pairs among the remaining rows are "
        f"cgmm.network.PairsAmong({name}, n_before)[rows]. If these are names of points, convert "
        f"them to row numbers by cgmm.network.positions({name}, names)."
    )


def _require_table(name: str, value: Any, width: int) -> None:
    """Raise ``ValueError`` for a value that is no table, and show the call that converts it."""
    if hasattr(value, "must_link") and hasattr(value, "cannot_link"):
        raise ValueError(
            f"{name} is {type(value).__name__}, which contains must-links and cannot-links; pass "
            "them separately: must_link=relations.must_link, cannot_link=relations.cannot_link, or "
            "with a star, preferences(*relations, certainty=0.9)."
        )
    made_by = None
    if sparse.issparse(value):
        made_by = f"np.column_stack({name}.nonzero())"
        if width == 3:
            # A symmetric matrix contains each relation twice, which would double its log-odds.
            made_by = f"np.column_stack(scipy.sparse.find(scipy.sparse.triu({name}, 1)))"
    elif isinstance(value, Mapping):
        made_by = f"list({name})"
        if width == 3:
            made_by = f"[(i, j, odds) for (i, j), odds in {name}.items()]"
    elif not hasattr(value, "__array__") and not isinstance(value, Sequence):
        made_by = f"list({name})"
    if made_by is not None:
        raise ValueError(
            f"{name} is of type {type(value).__name__}; {EXPECTED[width]}: {name}={made_by}."
        )


def _as_array(name: str, value: Any, width: int) -> NDArray[Any]:
    """Return the value as an array, or raise an error for the first row of wrong length."""
    try:
        return np.asarray(value)
    except ValueError:
        row = next((i for i, row in enumerate(value) if np.shape(row) != (width,)), 0)
        raise ValueError(
            f"{name}[{row}] is {value[row]!r}; {EXPECTED[width]}. Remove or correct the row."
        ) from None


def _describe_names(name: str, array: NDArray[Any], width: int) -> str:
    """Return the error message for relations with names of points instead of row numbers."""
    rows = array.reshape(len(array), -1) if array.ndim else array.reshape(1, 1)
    is_name = np.array([not isinstance(entry, int | float | np.number) for entry in rows.flat])
    row, column = np.divmod(int(is_name.argmax()), rows.shape[1])
    return (
        f"{name}[{row}] holds {rows[row, column]!r}, which is no number; {EXPECTED[width]}. "
        f"Convert names of points to row numbers by {name}=cgmm.network.positions({name}, names), "
        "where names contains the name of each row, as X.index does."
    )


def _suggest_conversion(name: str, array: NDArray[Any], width: int) -> str:
    """Return advice with the call that converts an array of another shape, or an empty text."""
    if array.ndim == 2 and len(array) == array.shape[1] > 3 and width == 2:
        return f" From a matrix with an entry per pair: {name}=np.argwhere(np.triu({name}, 1))."
    if array.ndim == 2 and len(array) == width and array.dtype.kind in "iu":
        return f" Pairs in columns must be transposed: {name}=np.transpose({name})."
    if array.shape == (width,):
        return f" A single one is a table of one row: {name}=[{name}]."
    if array.ndim == 2 and (array.shape[1], width) == (3, 2):
        return f" Three columns are for preferences; pairs alone: {name}=np.asarray({name})[:, :2]."
    if array.ndim == 2 and (array.shape[1], width) == (2, 3):
        return (
            " From pairs and their certainty γ, such as 0.9: cgmm.scenarios.preferences("
            f"must_link={name}, certainty=0.9)."
        )
    return ""


def show_first_text(array: NDArray[Any]) -> str:
    """Return a phrase that shows the first entry that is not a number, or an empty text."""
    for row, label in enumerate(array.tolist()):
        if not isinstance(label, int | float):
            return f" because of {label!r} in row {row}"
    return ""


# ---------------------------------------------------------------------------- points


def is_dask(X: Any) -> bool:
    """Return True if X is a collection of Dask."""
    return "dask" in sys.modules and bool(sys.modules["dask"].is_dask_collection(X))


def as_points(X: Any) -> Any:
    """Convert points to an array if they are a list or a data frame; return others unchanged."""
    return X if hasattr(X, "dtype") else np.asarray(X, dtype=float)


@contextmanager
def explain_missing(X: Any) -> Iterator[None]:
    """Context manager that replaces scikit-learn's errors by messages that show the bad entry.

    Masked arrays and times raise an error at the start, because scikit-learn would ignore masks and
    read times as nanoseconds.
    """
    refuse_mask("X", X, MASKED_POINTS)
    if times := _list_time_columns(X):
        raise ValueError(_describe_non_numeric(X, times))
    try:
        yield
    except (ValueError, TypeError) as error:
        if explanation := _explain_bad_entries(X, str(error)):
            raise ValueError(explanation) from None
        raise


MASKED_POINTS = (
    "X.astype(float).filled(np.nan) marks these entries as missing, which "
    "cgmm.ConstrainedGaussianMixture takes; other estimators need the complete rows alone."
)
ON_MISSING = (
    "A row must be complete here; cgmm.ConstrainedGaussianMixture takes NaN, in memory. "
    "Leave out rows that are not: keep = {}, then "
    "fit(X[keep], must_link=cgmm.network.PairsAmong(must_link, len(X))[keep]), and likewise other "
    "relations; or fill them in: cgmm.ConstrainedGaussianMixture(K).fit(X).impute(X)."
)
ON_TEXT = (
    "Tables of categories and numbers are clustered by cgmm.MixedMixture; a Gaussian mixture fits "
    "categories coded as 0 and 1 badly. Tables of categories alone are clustered by "
    "cgmm.ConstrainedCategoricalMixture too, as numbers: "
    "sklearn.preprocessing.OrdinalEncoder().fit_transform(X)."
)
ON_TIMES = "A time becomes a number as the days since the first one: {}."


MASKED_RELATIONS = "Keep only the relations without a masked entry: np.ma.compress_rows({})."
MASKED_LABELS = "If a masked label means an unknown one: {}.filled(-1)."
MASKED_WEIGHTS = "If a masked weight means that the point is left out: {}.filled(0)."


def refuse_mask(name: str, value: Any, remedy: str) -> None:
    """Raise ``ValueError`` for an array of ``numpy.ma`` with a mask, which would be ignored."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        masked = np.argwhere(np.ma.getmaskarray(value)).tolist()
        raise ValueError(
            f"{name} masks {len(masked)} of its entries, first {name}{masked[0]}, but masks are "
            f"ignored. {remedy}"
        )


def is_missing(entry: object) -> bool:
    """Return True if an entry is None, NaN, or pandas' NA or NaT."""
    try:
        return entry is None or bool(entry != entry)
    except TypeError:
        return True


def _explain_bad_entries(X: Any, error: str) -> str:
    """Return a message about missing or non-numeric entries of a table, or an empty text."""
    if hasattr(X, "dask"):  # For a Dask array, cgmm.large.chunks has already explained the error.
        return ""
    if getattr(X, "dtype", np.dtype(object)).kind in "iufbc":
        is_about_nan = "Input X contains NaN." in error
        return _describe_missing(X, np.asarray(np.isnan(X))) if is_about_nan else ""
    try:
        table = np.asarray(X, dtype=object)
    except ValueError:  # Rows of different lengths cannot become a table.
        return ""
    # Do not use np.frompyfunc, because it warns about comparisons with NaN from NumPy 2.5 on.
    missing, texts = (
        np.array([are(entry) for entry in table.flat], dtype=bool).reshape(table.shape)
        for are in (is_missing, is_text)
    )
    # An estimator that accepts missing entries or texts may reject a table for another reason, so
    # test what its error is about.
    if table.ndim == 2 and missing.any() and re.search("contains NaN|NAType|NoneType", error):
        return _describe_missing(X, missing)
    if table.ndim == 2 and texts.any() and re.search("convert|numeric|float|parse", error):
        return _describe_non_numeric(X, np.flatnonzero(texts.any(axis=0)).tolist())
    return ""


def _describe_missing(X: Any, missing: NDArray[np.bool_]) -> str:
    """Return a message with the first missing entry, the number of such rows, and a remedy."""
    rows = np.asarray(missing.any(axis=1))
    row = int(rows.argmax())
    complete = "X.notna().all(axis=1)" if hasattr(X, "notna") else "~np.isnan(X).any(axis=1)"
    return (
        f"Input X contains NaN: first in row {row}, column {missing[row].argmax()}, and in "
        f"{rows.sum()} of {len(rows)} rows. {ON_MISSING.format(complete)}"
    )


def is_text(entry: object) -> bool:
    """Return True for a time, and for a text that is not a number like "1.5"."""
    if isinstance(entry, date | time | timedelta | np.datetime64 | np.timedelta64):
        return True
    try:
        float(entry)  # type: ignore[arg-type]
    except ValueError:
        return True
    except TypeError:  # Objects that are neither text nor number are rejected by scikit-learn.
        return False
    return False


def _list_time_columns(X: Any) -> list[int]:
    """Return the columns of dates, times and durations of an array or a data frame."""
    if hasattr(X, "dask"):  # For Dask arrays all tests of attributes are true, so test this first.
        return []
    if hasattr(X, "columns"):
        types = [str(kind).lower() for kind in X.dtypes]
        return [d for d, kind in enumerate(types) if re.match("date|time|duration", kind)]
    times = getattr(X, "dtype", np.dtype(object)).kind in "mM" and np.ndim(X) == 2
    return list(range(np.shape(X)[1])) if times else []


def _describe_non_numeric(X: Any, columns: list[int]) -> str:
    """Return a message with the non-numeric columns, an entry of the first one, and a remedy."""
    if not hasattr(X, "columns"):
        names, drop = columns, f"np.delete(X, {columns}, axis=1).astype(float)"
        entries = np.asarray(X, dtype=object)[:, columns[0]].tolist()
        days = "(X - X.min(axis=0)) / np.timedelta64(1, 'D')"
    else:
        of_pandas = hasattr(X, "iloc")
        names = [X.columns[d] for d in columns]
        drop, entries = f"X.drop({'columns=' * of_pandas}{names})", list(X[names[0]])
        days = f"(X[{names[0]!r}] - X[{names[0]!r}].min()).dt."
        days += "days" if of_pandas else "total_days()"
    row = next((row for row, entry in enumerate(entries) if is_text(entry)), 0)
    remedy = ON_TEXT if isinstance(entries[row], str) else ON_TIMES.format(days)
    return (
        f"column {names[0]!r} of X holds {entries[row]!r} in row {row}, which is no number. Leave "
        f"out such columns: {drop}. {remedy}"
    )
