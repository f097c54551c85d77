"""Read tables with numeric and categorical columns, both of which may have missing values.

:class:`~cgmm.mixture.MixedMixture` calls ``Columns.learn`` in ``fit`` and ``Columns.read`` for
every table after that. A value is missing if it is NaN, None, or the missing value of pandas or
polars.

=====  ====================================================================
N, D   rows and columns of a table
C_d    number of categories of column d, e.g. 3 islands
=====  ====================================================================
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array

from cgmm.given import is_missing
from cgmm.mixture.missing import EMPTY_ROW
from cgmm.numerics import BoolArray, FloatArray, IntArray

FROM_DTYPE = "from_dtype"
# Columns hold categories if the name of their type begins like "category", "Enum", "bool" or "<U3".
CATEGORICAL = re.compile(r"categor|enum|bool|str|[<>|][us]", re.IGNORECASE)
UNKNOWN = -2


class Columns(NamedTuple):
    """Names, kinds and categories of the columns of the training table."""

    names: list[Any]
    """(D,) names of the columns, or their indices if they have no names."""
    is_categorical: BoolArray
    """(D,) True for columns of categories."""
    categories: list[list[Any]]
    """Sorted categories of each categorical column."""

    @classmethod
    def learn(cls, X: Any, categorical_features: Any) -> Columns:
        """Find the kinds and categories of the columns of a checked table."""
        columns = get_columns(X)
        is_categorical = find_categorical_columns(columns, categorical_features)
        categories = [
            find_categories(name, column)
            for (name, column), is_one in zip(columns.items(), is_categorical, strict=True)
            if is_one
        ]
        return cls(list(columns), is_categorical, categories)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of categories C_d of each categorical column."""
        return tuple(map(len, self.categories))

    def read(self, X: Any, unknown_is_missing: bool) -> tuple[FloatArray, IntArray]:
        """Return numbers (NaN if missing) and codes of categories (-1 if missing).

        Raise an error for a row without any value, for infinity, and for categories that did not
        occur in the fit, unless ``unknown_is_missing``.
        """
        numbers, codes, known = list[FloatArray](), list[IntArray](), iter(self.categories)
        for (name, column), is_one in zip(get_columns(X).items(), self.is_categorical, strict=True):
            if is_one:
                codes.append(encode(name, column, next(known), unknown_is_missing))
            else:
                numbers.append(convert_to_numbers(name, column))
        table = np.array(numbers, dtype=float).reshape(-1, len(X)).T
        coded = np.array(codes, dtype=np.intp).reshape(-1, len(X)).T
        is_empty = np.isnan(table).all(axis=1) & (coded < 0).all(axis=1)
        if is_empty.any():
            raise ValueError(EMPTY_ROW.format(int(is_empty.argmax()), int(is_empty.sum())))
        return table, coded

    def join(self, X: Any, numbers: FloatArray, codes: IntArray) -> Any:
        """Join numbers and coded categories into a table of X's type, or an array if X is None."""
        left, coded, known = iter(numbers.T), iter(codes.T), iter(self.categories)
        columns = [
            np.array(next(known), dtype=object)[next(coded)] if is_one else next(left)
            for is_one in self.is_categorical
        ]
        if not hasattr(X, "columns"):
            return np.array(columns, dtype=object if len(codes.T) else float).T
        joined = type(X)(dict(zip(self.names, map(list, columns), strict=True)))
        if hasattr(X, "index"):
            joined.index = X.index
        return joined


def check_table(X: Any, min_rows: int = 1) -> Any:
    """Check a table; return it unchanged if its columns have names, otherwise as an array."""
    if not hasattr(X, "dtype") and not hasattr(X, "columns"):
        # Otherwise NumPy would convert all numbers to strings if an entry is a string.
        X = np.array(X, dtype=object)
    table = check_array(X, dtype=None, ensure_all_finite=False, ensure_min_samples=min_rows)
    return X if hasattr(X, "columns") else table


def encode_table(X: Any) -> tuple[FloatArray, int]:
    """Return numeric columns followed by category codes, and the number of numeric columns."""
    table = check_table(X, 2)
    numbers, codes = Columns.learn(table, FROM_DTYPE).read(table, unknown_is_missing=False)
    return np.hstack([numbers, np.where(codes < 0, np.nan, codes)]), numbers.shape[1]


def get_columns(X: Any) -> dict[Any, Any]:
    """Return a dict of the columns of a table, by name or, without names, by index."""
    return {name: X[name] for name in X.columns} if hasattr(X, "columns") else dict(enumerate(X.T))


def find_categorical_columns(columns: dict[Any, Any], choice: ArrayLike | str | None) -> BoolArray:
    """Return a (D,) mask of the categorical columns, as ``categorical_features`` specifies."""
    if isinstance(choice, str) and choice == FROM_DTYPE:
        return np.array([holds_categories(column) for column in columns.values()])
    chosen, names = np.asarray([] if choice is None else choice), list(columns)
    if chosen.dtype == bool and chosen.shape == (len(names),):
        return chosen
    found = np.zeros(len(names), dtype=bool)
    for name in chosen.ravel().tolist():
        is_place = type(name) is int and name not in names and 0 <= name < len(names)
        if name not in names and not is_place:
            raise ValueError(
                f"categorical_features names {name!r}, but the columns of X are {names}. Give "
                f"names or numbers of columns, a mask of {len(names)} booleans, or 'from_dtype'."
            )
        found[name if is_place else names.index(name)] = True
    return found


def holds_categories(column: Any) -> bool:
    """Return whether a column has a categorical type, or contains strings or booleans."""
    if CATEGORICAL.match(str(column.dtype)):
        return True
    has_objects = np.asarray(column).dtype == object
    return has_objects and any(isinstance(entry, str | bool | np.bool_) for entry in column)


def find_categories(name: Any, column: Any) -> list[Any]:
    """Return the sorted categories of a column, numbers before strings."""
    found = {entry for entry in np.asarray(column).tolist() if not is_missing(entry)}
    if not found:
        raise ValueError(f"column {name!r} of X is empty: no row has a category. Leave it out.")
    return sorted(found, key=lambda entry: (isinstance(entry, str), entry))


def encode(name: Any, column: Any, categories: list[Any], unknown_is_missing: bool) -> IntArray:
    """Return the index of each entry in the list of categories, -1 if it is missing."""
    places = {category: place for place, category in enumerate(categories)}
    entries = np.asarray(column).tolist()
    codes = np.array([-1 if is_missing(entry) else places.get(entry, UNKNOWN) for entry in entries])
    if not unknown_is_missing:
        reason = (
            f"a category that the fit has not seen; it knows {categories}. Correct the entry, or "
            "let unknown categories count as missing: set_params(handle_unknown='missing')."
        )
        raise_for_wrong_entry(codes == UNKNOWN, name, entries, reason)
    return np.maximum(codes, -1)


def convert_to_numbers(name: Any, column: Any) -> FloatArray:
    """Convert a column to floats, NaN if missing, or raise an error that names an entry."""
    entries: NDArray[Any] = np.asarray(column)
    if entries.dtype.kind not in "iufb":
        cells = [np.nan if is_missing(entry) else entry for entry in entries.tolist()]
        reason = (
            "which is not a number. If the column holds categories, list it: "
            f"categorical_features=[..., {name!r}]."
        )
        raise_for_wrong_entry([not is_number(cell) for cell in cells], name, cells, reason)
        entries = np.array(cells, dtype=object)
    numbers = entries.astype(float)
    reason = "but a number must not be infinity. Correct the entry, or mark it as missing by NaN."
    raise_for_wrong_entry(np.isinf(numbers), name, numbers.tolist(), reason)
    return numbers


def is_number(entry: Any) -> bool:
    """Return whether an entry is a number, or a string like "1.5"."""
    try:
        float(entry)
    except (TypeError, ValueError):
        return False
    return True


def raise_for_wrong_entry(is_wrong: ArrayLike, name: Any, entries: list[Any], reason: str) -> None:
    """Raise ``ValueError`` about the first wrong entry of a column, if there is any."""
    if np.any(is_wrong):
        row = int(np.argmax(is_wrong))
        raise ValueError(f"column {name!r} of X holds {entries[row]!r} in row {row}, {reason}")
