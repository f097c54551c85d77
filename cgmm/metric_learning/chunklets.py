"""Scatter within chunklets and in all. Chapter 12."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cgmm.numerics import FloatArray, IntArray, blocks

# ---------------------------------------------------------------------------- covariances


def within_chunklet_covariance(
    X: FloatArray, chunklet_of: IntArray, *, unbiased: bool = False
) -> FloatArray:
    """Covariance of points about the means of their chunklets.

    Parameters
    ----------
    X : (N, D) array
        The points.
    chunklet_of : (N,) int array
        The chunklet of each point, -1 for none. A chunklet of one point says nothing about
        scatter and does not count.
    unbiased : bool, default=False
        Divide by N - n instead of N, the number of points in n chunklets.

    Returns
    -------
    (D, D) array
        Ĉ, in squared units of the data.

    Raises
    ------
    ValueError
        If no chunklet has two points, an entry of ``chunklet_of`` is not a chunklet, or squares of
        the data overflow or vanish.

    Notes
    -----
    With chunklets of one size k the biased Ĉ is (k - 1) / k of the unbiased one: half of it for
    pairs, however many there are. Only the scale of the metric feels it. Chunklets of several
    sizes are pooled by degrees of freedom, which of all unbiased means has the least variance and
    is the printed one where all sizes are k. Takes O(N + D²) memory beyond the data.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [2.0, 0.0], [5.0, 1.0], [5.0, 3.0], [9.0, 9.0]])
    >>> within_chunklet_covariance(X, [0, 0, 1, 1, -1])
    array([[0.5, 0. ],
           [0. , 0.5]])
    >>> within_chunklet_covariance(X, [0, 0, 1, 1, -1], unbiased=True)
    array([[1., 0.],
           [0., 1.]])
    """
    X = np.asarray(X, dtype=np.float64)
    require_squares(X)
    groups = group_points(read_chunklets(chunklet_of, len(X)))
    if len(groups.sizes) == 0:
        raise ValueError(
            "no two points share a chunklet: there is no scatter within chunklets to measure. Give "
            "chunklet_of with at least one chunklet of two points."
        )
    return within_groups(X, groups, unbiased)


def total_covariance(X: FloatArray) -> FloatArray:
    """Covariance of all points about their common mean, divided by N.

    Parameters
    ----------
    X : (N, D) array
        The points.

    Returns
    -------
    (D, D) array
        S_t of [barhillel2005, eq. 14].

    Raises
    ------
    ValueError
        If squares of the data overflow or vanish.

    Examples
    --------
    >>> total_covariance(np.array([[0.0, 1.0], [4.0, 1.0]]))
    array([[4., 0.],
           [0., 0.]])
    """
    X = np.asarray(X, dtype=np.float64)
    require_squares(X)
    return total_scatter(X)


class Groups(NamedTuple):
    """Points in chunklets of two or more, chunklet after chunklet."""

    order: IntArray  # (N,) their rows
    sizes: IntArray  # (n,) n_j

    @property
    def starts(self) -> IntArray:
        """(n,) where each chunklet starts in ``order``."""
        return np.cumsum(self.sizes) - self.sizes

    @property
    def freedom(self) -> int:
        """Σ_j (n_j - 1)."""
        return int(self.sizes.sum()) - len(self.sizes)


def within_groups(X: FloatArray, groups: Groups, unbiased: bool = False) -> FloatArray:
    # [barhillel2005, eq. 1], N being the number of points in chunklets as in eq. 11;
    # [barhillel2005, sect. 5] for the unbiased one
    return _scatter(X, groups) / (groups.freedom if unbiased else len(groups.order))


def total_scatter(X: FloatArray) -> FloatArray:
    return _scatter(X, Groups(np.arange(len(X)), np.array([len(X)]))) / len(X)


def read_chunklets(chunklet_of: ArrayLike, n_samples: int) -> IntArray:
    """(N,) integers from -1, or the first entry that is none."""
    array = np.asarray(chunklet_of)
    if array.shape != (n_samples,):
        raise ValueError(
            f"y has shape {array.shape}; it must be ({n_samples},), the chunklet of each sample, "
            "-1 for none."
        )
    try:
        array = array if array.dtype.kind in "iu" else array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"Unknown label type of y, {array.dtype}: chunklets are integers from 0, -1 for none. "
            "Encode names, by numpy.unique(y, return_inverse=True)[1] for instance."
        ) from error
    with np.errstate(invalid="ignore"):
        whole = array.astype(np.intp)
    wrong = np.flatnonzero((whole != array) | (whole < -1))
    if len(wrong):
        raise ValueError(
            f"y[{wrong[0]}] is {array[wrong[0]]}; a chunklet must be an integer from 0, or -1 for "
            "none."
        )
    return whole


def group_points(chunklet_of: IntArray) -> Groups:
    members = np.flatnonzero(chunklet_of >= 0)
    order = members[np.argsort(chunklet_of[members], kind="stable")]
    starts = np.flatnonzero(np.diff(chunklet_of[order], prepend=-1))
    sizes = np.diff(starts, append=len(order))
    return Groups(order[np.repeat(sizes > 1, sizes)], sizes[sizes > 1])


def _scatter(X: FloatArray, groups: Groups) -> FloatArray:
    """Σ_j Σ_i (x_ji - m_j)(x_ji - m_j)ᵗ, over blocks that may cut chunklets anywhere."""
    order, starts = groups.order, groups.starts
    scatter = np.zeros((X.shape[1], X.shape[1]))
    seen, mean = 0, np.zeros(X.shape[1])
    for block in blocks(len(order), 2 * X.shape[1]):
        first, last = np.searchsorted(starts, [block.start, block.stop - 1], side="right")
        begins = np.maximum(starts[first - 1 : last] - block.start, 0)
        counts = np.diff(begins, append=block.stop - block.start)
        rows, means = centre_groups(X[order[block]], begins, counts)
        scatter += rows.T @ rows
        if starts[first - 1] == block.start:
            seen = 0
        # Two parts of a chunklet scatter about their common mean as well.
        apart = means[0] - mean
        scatter += np.outer(apart, apart) * (seen * counts[0] / (seen + counts[0]))
        mean = means[-1] + (seen * (mean - means[-1]) / (seen + counts[0])) * (len(begins) == 1)
        seen = counts[-1] + seen * (len(begins) == 1)
    return scatter


def centre_groups(
    rows: FloatArray, begins: IntArray, counts: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Rows less the mean of their group, and these means."""
    # By the first row of each group first: equal rows then leave exact zeros, and no offset of the
    # data costs digits.
    anchors = rows[begins]
    rows -= np.repeat(anchors, counts, axis=0)
    means = np.add.reduceat(rows, begins, axis=0) / counts[:, None]
    rows -= np.repeat(means, counts, axis=0)
    return rows, anchors + means


def require_squares(X: FloatArray) -> None:
    """Refuse data whose squares overflow, or vanish."""
    with np.errstate(over="ignore"):
        low, high = X.min(axis=0), X.max(axis=0)
        ranges, sizes = high - low, np.maximum(high, -low)
        reach = (np.square(ranges).sum() + sizes.max()) * len(X)
    if not np.isfinite(reach):
        worst = np.maximum(ranges, sizes).argmax()
        raise ValueError(
            f"column {worst} spans {low[worst]:.3g} to {high[worst]:.3g}: its squares overflow. "
            "Divide the data by a constant."
        )
    small = np.flatnonzero((ranges > 0) & (ranges < 1e-150))
    if len(small):
        raise ValueError(
            f"column {small[0]} spans {ranges[small[0]]:.3g}: its squares vanish. Multiply the "
            "data by a constant, or drop the column."
        )
