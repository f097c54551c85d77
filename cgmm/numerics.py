"""Small tools that several rooms share: types of arrays, blocks, normalisation in logs, pairs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["blocks", "check_pairs", "log_normalise"]

if TYPE_CHECKING:
    FloatArray = NDArray[np.float64]
    IntArray = NDArray[np.integer[Any]]
    BoolArray = NDArray[np.bool_]
else:
    # As the API page shows them: what lies in an array, its docstring says better.
    FloatArray = IntArray = BoolArray = np.ndarray

AnyArray = TypeVar("AnyArray", bound=NDArray[Any])
# What comes out of a function has the type that went in.

# One mebibyte of float64: what one block of work may occupy, so that it stays in a core's cache.
BLOCK_CELLS = 131_072


def blocks(n_rows: int, width: int, *, at_least: int = 1) -> Iterator[slice]:
    """Cut ``n_rows`` rows into slices whose ``width`` columns of float64 fit the cache.

    Parameters
    ----------
    n_rows : int
        Number of rows to cover.
    width : int
        Numbers that the work on one row keeps alive.
    at_least : int, default=1
        Rows below which a slice is not worth its calls, whatever their width.

    Yields
    ------
    slice
        Consecutive, disjoint, in order; together they cover ``range(n_rows)``.

    Examples
    --------
    >>> [(part.start, part.stop) for part in blocks(10, 32_768)]
    [(0, 4), (4, 8), (8, 10)]
    """
    height = max(at_least, BLOCK_CELLS // max(1, width))
    for start in range(0, n_rows, height):
        yield slice(start, min(start + height, n_rows))


def log_normalise(log_values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Turn rows of log-weights into probabilities and their log-normalisers.

    Parameters
    ----------
    log_values : (N, K) array
        Natural logarithms; ``-inf`` means impossible.

    Returns
    -------
    probabilities : (N, K) array
        ``exp(log_values - log_totals[:, None])``: each row sums to one.
    log_totals : (N,) array
        ``log Σ_k exp(log_values[i, k])``, safe against overflow and underflow.

    Raises
    ------
    ValueError
        If a row has no possible entry (all ``-inf``) or holds NaN or ``+inf``; the row is named.

    Examples
    --------
    >>> p, log_total = log_normalise(np.log([[1.0, 3.0]]) - 1000)
    >>> p.round(12), (log_total + 1000).round(12)
    (array([[0.25, 0.75]]), array([1.38629436]))
    """
    n_rows, n_columns = log_values.shape
    # Column-major, as log densities are: sums over k then run along contiguous memory.
    probabilities = np.empty((n_columns, n_rows)).T
    log_totals = np.empty(n_rows)
    for part in blocks(n_rows, n_columns):
        top = log_values[part].max(axis=1)
        _require_possible(top, part.start)
        p = np.subtract(log_values[part], top[:, None], out=probabilities[part])
        np.exp(p, out=p)
        total = p.sum(axis=1)
        p /= total[:, None]
        log_totals[part] = top + np.log(total)
    return probabilities, log_totals


def _require_possible(top: FloatArray, offset: int) -> None:
    """Name the first row whose largest log-weight is not finite."""
    if np.isfinite(top).all():
        return
    row = int(np.flatnonzero(~np.isfinite(top))[0])
    if top[row] == -np.inf:
        raise ValueError(
            f"row {offset + row} has no possible value: every log-weight is -inf. "
            "A point may lie too far from every component for its density to be represented, "
            "or its evidence excludes every class; rescale the data or revise the evidence."
        )
    raise ValueError(
        f"row {offset + row} holds a log-weight of {top[row]}; log-weights must be below +inf."
    )


def check_pairs(name: str, pairs: ArrayLike | None, n_points: int | None = None) -> IntArray:
    """Pairs of points as an array of indices, or an error that names the first bad row.

    Parameters
    ----------
    name : str
        What the caller's argument is called.
    pairs : (P, 2) array-like or None
        Indices of points; None and anything empty is no pair.
    n_points : int, default=None
        How many points there are; None: any index that is not negative will do.

    Returns
    -------
    (P, 2) int array
        The indices.

    Raises
    ------
    ValueError
        If the shape is another, or a row does not name two points that exist.

    Examples
    --------
    >>> check_pairs("must_link", [[0, 2], [1, 5]], 5)
    Traceback (most recent call last):
        ...
    ValueError: must_link[1] is [1, 5]; it must name two points by index, 0 to 4.
    """
    array = np.asarray(() if pairs is None else pairs)
    if array.size == 0:
        return np.empty((0, 2), dtype=np.intp)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iuf":
        raise ValueError(
            f"{name} has shape {array.shape} and type {array.dtype}; it must be (P, 2), a pair of "
            "indices a row."
        )
    with np.errstate(invalid="ignore"):
        whole = array.astype(np.intp)
    limit = np.inf if n_points is None else n_points
    wrong = np.flatnonzero(((whole != array) | (whole < 0) | (whole >= limit)).any(axis=1))
    if len(wrong):
        existing = "from 0 on" if n_points is None else f"0 to {n_points - 1}"
        raise ValueError(
            f"{name}[{wrong[0]}] is {array[wrong[0]].tolist()}; it must name two points by index, "
            f"{existing}."
        )
    return whole
