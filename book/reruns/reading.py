"""Result files as arrays, and how well their means are known. Chapter 13.

A result file has a row for every data set, setting, method, realisation and quantity, as
:func:`~reruns.replicate` writes it. Here rows become one array for each method. Entry r belongs to
realisation r, so that methods can be compared on the same relations and starts.

Letters, as in the book:

=====  ====================================================================
R      realisations, counted from 0; v_r the value of one, e.g. 0.93
δ, s   mean and standard deviation of the differences between two methods
n      number of realisations of an experiment that is being planned
=====  ====================================================================
"""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence, Set
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from cgmm.numerics import FloatArray
from reruns.design import format_value

__all__ = [
    "Spread", "by_realisation", "realisations_needed", "series", "spread", "wrong_order",
]  # fmt: skip

Rows = Sequence[Mapping[str, str]]
Group = tuple[str, ...]


# ---------------------------------------------------------------------------- rows to arrays


def read_rows(path: str | os.PathLike[str]) -> list[dict[str, str]]:
    """Return the rows of a result file by column.

    Parameters
    ----------
    path : path
        A file that :func:`~reruns.replicate` wrote.

    Returns
    -------
    list of dict
        All values are text; an empty ``value`` means that the method failed.
    """
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def by_realisation(
    rows: Rows, by: str | Sequence[str] = "method", **where: object
) -> dict[Any, FloatArray]:
    """Return values of rows of a result file, one array a group, ordered by realisation.

    Parameters
    ----------
    rows : sequence of mappings of str to str
        As :func:`~reruns.read_rows` returns them.
    by : str or sequence of str, default="method"
        Column, or columns, whose values name a group.
    **where
        Column = value, or list of values: the rows that count.

    Returns
    -------
    dict of str or tuple of str to (R,) array
        In the order of the file; a name if ``by`` is a name, else a tuple. nan where a method
        failed, or where a realisation is not in the file.

    Raises
    ------
    ValueError
        If there is no such column or no such row, or if a group has several values for one
        realisation: then a column is missing in ``by`` or ``where``.

    Examples
    --------
    >>> file = [
    ...     {"method": "EM", "realisation": "1", "value": "0.9"},
    ...     {"method": "EM", "realisation": "0", "value": "0.7"},
    ...     {"method": "K-means", "realisation": "1", "value": ""},
    ... ]
    >>> by_realisation(file)
    {'EM': array([0.7, 0.9]), 'K-means': array([nan, nan])}
    """
    names = (by,) if isinstance(by, str) else tuple(by)
    require_columns(rows, {*names, *where})
    groups = grouped(matching(rows, where), names)
    if not groups:
        raise ValueError(f"no row of the file agrees with {where}.")
    n = 1 + max(map(max, groups.values()))
    arrays = {group: np.full(n, np.nan) for group in groups}
    for group, found in groups.items():
        arrays[group][list(found)] = list(found.values())
    return {group[0] if isinstance(by, str) else group: v for group, v in arrays.items()}


def series(
    rows: Rows, column: str, **where: object
) -> tuple[FloatArray, dict[str, list[FloatArray]]]:
    """Return values of every method at every level of a setting, for curves and ladders.

    Parameters
    ----------
    rows : sequence of mappings of str to str
        As :func:`~reruns.read_rows` returns them.
    column : str
        Of the setting; its values are numbers.
    **where
        As for :func:`by_realisation`, which says what is raised.

    Returns
    -------
    levels : (M,) array
        Increasing.
    values : dict of str to list of M (R,) arrays
        Of each method; all nan at a level at which the method was not run.

    Examples
    --------
    >>> file = [
    ...     {"q": "0.3", "method": "EM", "realisation": "0", "value": "0.7"},
    ...     {"q": "0.15", "method": "EM", "realisation": "0", "value": "0.9"},
    ... ]
    >>> series(file, "q")
    (array([0.15, 0.3 ]), {'EM': [array([0.9]), array([0.7])]})
    """
    groups = by_realisation(rows, ("method", column), **where)
    levels = sorted({level for _, level in groups}, key=float)
    methods = dict.fromkeys(method for method, _ in groups)
    nothing = np.full(len(next(iter(groups.values()))), np.nan)
    values = {m: [groups.get((m, level), nothing) for level in levels] for m in methods}
    return np.array(levels, dtype=float), values


def require_columns(rows: Rows, columns: Set[str]) -> None:
    """Raise for columns that the file does not have."""
    unknown = columns - set(rows[0] if rows else ())
    if unknown:
        raise ValueError(
            f"the file has no column {', '.join(sorted(unknown))}; "
            f"it has {', '.join(rows[0]) if rows else 'no rows'}."
        )


def matching(rows: Rows, where: Mapping[str, object]) -> Rows:
    """Return the rows with the wanted values, of which a list allows several.

    Numbers are compared as they are written in a file: 1.0 agrees with "1", 0.30 with "0.3".

    Examples
    --------
    >>> matching([{"n": "1"}, {"n": "2"}, {"n": "10"}], {"n": [1.0, "2"]})
    [{'n': '1'}, {'n': '2'}]
    """
    several = {c: v if isinstance(v, list | tuple) else [v] for c, v in where.items()}
    wanted = {column: set(map(format_value, values)) for column, values in several.items()}
    return [row for row in rows if all(row[c] in texts for c, texts in wanted.items())]


def grouped(rows: Rows, by: Sequence[str]) -> dict[Group, dict[int, float]]:
    """Return values by group and realisation, nan where the method failed.

    Examples
    --------
    >>> grouped([{"data": "iris", "realisation": "0", "value": "0.7"}], ["data"])
    {('iris',): {0: 0.7}}
    """
    groups: dict[Group, dict[int, float]] = {}
    for row in rows:
        group, r = tuple(row[column] for column in by), int(row["realisation"])
        found = groups.setdefault(group, {})
        if r in found:
            raise ValueError(
                f"group {group} has several values for realisation {r}, one of them in {row}; "
                "name another column in by or where."
            )
        found[r] = float(row["value"] or "nan")
    return groups


# ---------------------------------------------------------------------------- means


class Spread(NamedTuple):
    """A mean over realisations with its standard error."""

    mean: float
    """nan if every realisation failed."""
    standard_error: float
    """Of the mean; nan for a single realisation."""
    n: int
    """Realisations that count."""
    n_failed: int
    """Realisations without a value."""


def spread(values: FloatArray) -> Spread:
    """Return the mean of realisations and its standard error.

    The standard error is s / √R, with s² = Σ (v_r - mean)² / (R - 1). It tells what another draw of
    relations and starts would have changed; nothing of another data set.

    Parameters
    ----------
    values : (R,) array
        One number a realisation, or a difference of two; nan where it failed.

    Returns
    -------
    Spread
        Over those that did not fail.

    Examples
    --------
    >>> spread(np.array([0.7, np.nan, 0.9]))
    Spread(mean=0.8, standard_error=0.1, n=2, n_failed=1)
    """
    values = np.asarray(values, dtype=float)
    kept = values[~np.isnan(values)]
    n = len(kept)
    mean = float(kept.mean()) if n else np.nan
    error = float(kept.std(ddof=1) / np.sqrt(n)) if n > 1 else np.nan
    return Spread(mean, error, n, len(values) - n)


def wrong_order(difference: FloatArray, n: FloatArray | int) -> FloatArray:
    """Return the probability ``Φ(-√n |δ| / s)`` that a mean of n has the wrong sign.

    Parameters
    ----------
    difference : (R,) array
        Differences of two methods, realisation by realisation; δ and s are estimated from them.
    n : int or array of int
        Realisations of an experiment that is yet to be made.

    Returns
    -------
    float or array, like n
        By the central limit theorem, so for n that is not tiny; 1/2 where δ is 0.

    Examples
    --------
    >>> wrong_order(np.array([1.0, 2.0, 3.0]), 1).round(4)
    np.float64(0.0228)
    """
    delta, s = _effect(difference)
    if s == 0:
        return np.zeros_like(n, dtype=float) if delta else np.full_like(n, 0.5, dtype=float)
    return ndtr(-np.sqrt(n) * abs(delta) / s)


def realisations_needed(difference: FloatArray, risk: float = 0.05) -> float:
    """Return the number of realisations for a wrong sign with probability ``risk`` at most.

    Parameters
    ----------
    difference : (R,) array
        As for :func:`wrong_order`.
    risk : float, default=0.05
        Between 0 and 1/2.

    Returns
    -------
    float
        A whole number; infinity if the mean difference is 0.

    Raises
    ------
    ValueError
        If the risk is not between 0 and 1/2.

    Examples
    --------
    >>> realisations_needed(np.array([0.0, 1.0, 2.0, 1.0]))
    2.0
    """
    if not 0 < risk < 0.5:
        raise ValueError(f"risk={risk}: it must be between 0 and 1/2, which is a coin's.")
    delta, s = _effect(difference)
    if delta == 0:
        return np.inf
    return float(max(1.0, np.ceil((ndtri(risk) * s / delta) ** 2)))


def _effect(difference: FloatArray) -> tuple[float, float]:
    """Return δ and s."""
    kept = np.asarray(difference, dtype=float)
    kept = kept[~np.isnan(kept)]
    if len(kept) < 2:
        raise ValueError(f"{len(kept)} differences tell nothing of their spread; give two or more.")
    return float(kept.mean()), float(kept.std(ddof=1))
