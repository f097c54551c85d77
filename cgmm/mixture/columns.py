"""Read tables whose columns are numbers or categories, with empty cells in both.

:class:`~cgmm.mixture.MixedMixture` calls ``Columns.learn`` in ``fit`` and ``read`` for every
table after that. A cell is empty if it holds NaN, None, or what pandas and polars have for them.

=====  ====================================================================
N, D   rows and columns of a table
C_d    number of categories of column d, e.g. 3 islands
=====  ====================================================================
"""

from __future__ import annotations

import re
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array

from cgmm.given import is_missing
from cgmm.mixture.missing import EMPTY_ROW
from cgmm.numerics import BoolArray, FloatArray, IntArray

FROM_DTYPE = "from_dtype"
UNKNOWN = -2


class Columns(NamedTuple):
    """The columns of a table: their names, kinds and categories, as a fit has found them."""

    names: list[Any]
    """(D,) names, or numbers where columns have none."""
    is_categorical: BoolArray
    """(D,) whether a column holds categories."""
    categories: list[list[Any]]
    """The categories of each of these columns, sorted."""

    @classmethod
    def learn(cls, X: Any, categorical_features: Any) -> Columns:
        """Return the kinds of columns of a checked table, and the categories that they hold."""
        names, columns = split(X)
        is_categorical = which_categorical(X, names, columns, categorical_features)
        categories = [
            distinct_entries(name, column)
            for name, column, is_one in zip(names, columns, is_categorical, strict=True) if is_one
        ]  # fmt: skip
        return cls(names, is_categorical, categories)

    @property
    def sizes(self) -> tuple[int, ...]:
        """C_d of each column of categories."""
        return tuple(map(len, self.categories))

    def read(self, X: Any, unknown_is_missing: bool) -> tuple[FloatArray, IntArray]:
        """Return numbers, NaN where empty, and codes of categories, -1 where empty.

        A row that is empty altogether is refused, and so are infinity and, unless they count as
        missing, categories that the fit has not seen.
        """
        names, columns = split(X)
        numbers, codes, known = [], [], iter(self.categories)
        for name, column, is_one in zip(names, columns, self.is_categorical, strict=True):
            if is_one:
                codes.append(encode(name, column, next(known), unknown_is_missing))
            else:
                numbers.append(as_numbers(name, column))
        n_points = len(columns[0])
        table = np.array(numbers, dtype=float).reshape(len(numbers), n_points).T
        coded = np.array(codes, dtype=np.intp).reshape(len(codes), n_points).T
        is_empty = np.isnan(table).all(axis=1) & (coded < 0).all(axis=1)
        if is_empty.any():
            raise ValueError(EMPTY_ROW.format(int(is_empty.argmax()), int(is_empty.sum())))
        return table, coded

    def join(self, X: Any, numbers: FloatArray, codes: IntArray) -> Any:
        """Return numbers and coded categories as a table like X, or as an array without X."""
        columns, own, left = [], iter(codes.T), iter(numbers.T)
        known = iter(self.categories)
        for is_one in self.is_categorical:
            entries = np.array([*next(known), None], dtype=object) if is_one else None
            columns.append(next(left) if entries is None else entries[next(own)])
        if hasattr(X, "columns"):
            made = type(X)(
                {name: list(column) for name, column in zip(self.names, columns, strict=True)}
            )
            if hasattr(X, "index"):
                made.index = X.index
            return made
        dtype = object if self.is_categorical.any() else float
        return np.array(columns, dtype=dtype).T


def as_table(X: Any, n_least: int = 1) -> Any:
    """Return a table with named columns unchanged, and anything else as a checked array."""
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        if len(X) < n_least:
            raise ValueError(
                f"Found array with {len(X)} sample(s) while a minimum of {n_least} is required."
            )
        return X
    X = X if hasattr(X, "dtype") else np.array(X, dtype=object)
    is_number = X.dtype.kind in "iufbc"
    return check_array(
        X, dtype="numeric" if is_number else None, ensure_min_samples=n_least,
        ensure_all_finite="allow-nan" if is_number else False,
    )  # fmt: skip


def encode_table(X: Any) -> tuple[FloatArray, int]:
    """Return numbers, then codes of categories, NaN where empty; and the number of the former."""
    table = as_table(X, 2)
    columns = Columns.learn(table, FROM_DTYPE)
    numbers, codes = columns.read(table, unknown_is_missing=False)
    return np.hstack([numbers, np.where(codes < 0, np.nan, codes)]), numbers.shape[1]


def split(X: Any) -> tuple[list[Any], list[NDArray[Any]]]:
    """Return the names of columns, or their numbers, and the columns as arrays."""
    if not hasattr(X, "columns"):
        return list(range(X.shape[1])), list(X.T)
    names = list(X.columns)
    return names, [X[name].to_numpy() for name in names]


def which_categorical(
    X: Any, names: list[Any], columns: list[NDArray[Any]], given: ArrayLike | str | None
) -> BoolArray:
    """Return (D,) whether each column holds categories, as ``categorical_features`` says."""
    if given is None:
        return np.zeros(len(names), dtype=bool)
    if isinstance(given, str) and given == FROM_DTYPE:
        kinds = [str(kind).lower() for kind in getattr(X, "dtypes", [""] * len(names))]
        named = [bool(re.match("categor|enum|bool|str", kind)) for kind in kinds]
        held = [holds_texts(column) for column in columns]
        return np.array(named) | np.array(held)
    array = np.asarray(given)
    if array.dtype == bool and array.shape == (len(names),):
        return array
    chosen = np.zeros(len(names), dtype=bool)
    for name in array.ravel().tolist():
        is_place = isinstance(name, Integral) and not isinstance(name, bool) and name not in names
        place = int(name) if is_place else (names.index(name) if name in names else len(names))
        if not 0 <= place < len(names):
            raise ValueError(
                f"categorical_features names {name!r}, but the columns of X are {names}. Give "
                f"names or numbers of columns, a mask of {len(names)} booleans, or 'from_dtype'."
            )
        chosen[place] = True
    return chosen


def holds_texts(column: NDArray[Any]) -> bool:
    """Return whether entries are texts or booleans."""
    if column.dtype.kind != "O":
        return column.dtype.kind in "bUS"
    return any(isinstance(entry, str | bool | np.bool_) for entry in column.tolist())


def distinct_entries(name: Any, column: NDArray[Any]) -> list[Any]:
    """Return the categories of a column, numbers before texts."""
    found = {entry for entry in column.tolist() if not is_missing(entry)}
    if not found:
        raise ValueError(f"column {name!r} of X is empty: no row holds a category. Leave it out.")
    return sorted(found, key=lambda entry: (isinstance(entry, str), entry))


def encode(
    name: Any, column: NDArray[Any], categories: list[Any], unknown_is_missing: bool
) -> IntArray:
    """Return the number of each entry among the categories, -1 where empty."""
    places = {category: place for place, category in enumerate(categories)}
    entries = column.tolist()
    codes = np.array([-1 if is_missing(entry) else places.get(entry, UNKNOWN) for entry in entries])
    unknown = np.flatnonzero(codes == UNKNOWN)
    if len(unknown) and not unknown_is_missing:
        raise ValueError(
            f"column {name!r} of X holds {entries[unknown[0]]!r} in row {unknown[0]}, a category "
            f"that the fit has not seen; it knows {categories}. Correct the entry, or let unknown "
            "categories count as missing: set_params(handle_unknown='missing')."
        )
    return np.maximum(codes, -1)


def as_numbers(name: Any, column: NDArray[Any]) -> FloatArray:
    """Return a column as floats, NaN where empty, or an error that names an entry."""
    if column.dtype.kind in "iufb":
        numbers = column.astype(float)
    else:
        entries, row = column.tolist(), 0
        try:
            numbers = np.empty(len(entries))
            for row, entry in enumerate(entries):
                numbers[row] = np.nan if is_missing(entry) else float(entry)
        except (TypeError, ValueError):
            raise ValueError(
                f"column {name!r} of X holds {entries[row]!r} in row {row}, which is no number. If "
                f"the column holds categories, say so: categorical_features=[..., {name!r}]."
            ) from None
    if np.isinf(numbers).any():
        row = int(np.isinf(numbers).argmax())
        raise ValueError(
            f"Input X contains infinity: column {name!r} in row {row}. Correct the entry, or mark "
            "it as missing by NaN."
        )
    return numbers
