"""Two small tools that several rooms share: cache-sized blocks and normalisation in logs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

__all__ = ["blocks", "log_normalise"]

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


def log_normalise(log_values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
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


def _require_possible(top: np.ndarray, offset: int) -> None:
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
