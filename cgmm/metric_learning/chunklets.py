"""Chunklets, and the covariance of points within them.

The points of a chunklet share a class, whichever it is, so their scatter about the mean of their
chunklet is variability that has nothing to do with classes. All metric learners sort their points
and measure this scatter here. The first half of chapter 12 explains it.

=========  ===================================================================================
N, D       points in chunklets of two or more, and their dimensions
n, n_j     number of these chunklets, and their sizes; Σ_j (n_j - 1) degrees of freedom
x_ji, m_j  point i of chunklet j, and the mean of the chunklet
Ĉ, S_t     covariance within chunklets; total covariance, that of one chunklet of all points
=========  ===================================================================================
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cgmm.network import SideInformation
from cgmm.numerics import FloatArray, IntArray, blocks, check_labels, check_pairs, check_ranges


def within_chunklet_covariance(
    X: FloatArray, chunklet_of: IntArray, *, unbiased: bool = False
) -> FloatArray:
    """Compute the covariance of points about the means of their chunklets.

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
    pairs, however many there are. This changes only the scale of the metric. Chunklets of
    several sizes are pooled by degrees of freedom: of all unbiased means this has the least
    variance, and it equals the printed one if all sizes are k. The function takes O(N + D²) memory
    beyond the data.

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
    check_ranges(X)
    groups = group_points(check_labels("chunklet_of", chunklet_of, len(X)))
    if len(groups.sizes) == 0:
        raise ValueError(
            "no two points share a chunklet: there is no scatter within chunklets to measure. Give "
            "chunklet_of with at least one chunklet of two points."
        )
    return pooled_covariance(X, groups, unbiased)


def total_covariance(X: FloatArray) -> FloatArray:
    """Compute the covariance of all points about their common mean, divided by N.

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
    check_ranges(X)
    return covariance_of_all(X)


# ---------------------------------------------------------------------------- points in groups


class Groups(NamedTuple):
    """Points sorted by the group that they belong to; points of no group are left out."""

    order: IntArray
    """(N,) rows of the points, group after group."""
    sizes: IntArray
    """(n,) number of points in each group, n_j."""

    @property
    def starts(self) -> IntArray:
        """(n,) position in ``order`` at which each group starts."""
        return np.cumsum(self.sizes) - self.sizes

    @property
    def ends(self) -> IntArray:
        """(N,) position in ``order`` at which the group of each point ends."""
        return np.repeat(np.cumsum(self.sizes), self.sizes)

    @property
    def freedom(self) -> int:
        """Degrees of freedom, Σ_j (n_j - 1)."""
        return int(self.sizes.sum()) - len(self.sizes)


def group_points(group_of: IntArray, smallest: int = 2) -> Groups:
    """Sort points by group, without -1 and groups of fewer than ``smallest`` points."""
    members = np.flatnonzero(group_of >= 0)
    order = members[np.argsort(group_of[members], kind="stable")]
    starts = np.flatnonzero(np.diff(group_of[order], prepend=-1))
    sizes = np.diff(starts, append=len(order))
    large = sizes >= smallest
    return Groups(order[np.repeat(large, sizes)], sizes[large])


def check_chunklets(y: ArrayLike | None, n_points: int) -> IntArray:
    """Return the (N,) chunklet of each point, -1 for none; without ``y`` all are -1."""
    if y is None:
        return np.full(n_points, -1)
    array = np.asarray(y)
    # Columns of a table may hold numbers as objects; converting their list restores numbers.
    return check_labels("y", array.tolist() if array.dtype == object else array, n_points)


def close_chunklets(chunklet_of: IntArray, must_link: ArrayLike | None) -> SideInformation:
    """Close chunklets and must-links together: points linked by chains of both share a node."""
    chunklets = group_points(chunklet_of)
    # Links from its first point to all others connect a chunklet.
    centres = np.repeat(chunklets.order[chunklets.starts], chunklets.sizes)
    stars = np.column_stack([centres, chunklets.order])
    given = check_pairs("must_link", must_link, len(chunklet_of))
    return SideInformation.build(len(chunklet_of), must_link=np.concatenate([given, stars]))


# ---------------------------------------------------------------------------- covariances


def pooled_covariance(X: FloatArray, groups: Groups, unbiased: bool = False) -> FloatArray:
    """Compute Ĉ of points in groups of two or more."""
    # [barhillel2005, eq. 1], where N is the number of points in chunklets as in eq. 11.
    # [barhillel2005, sect. 5] gives the unbiased one.
    return _scatter(X, groups) / (groups.freedom if unbiased else len(groups.order))


def covariance_of_all(X: FloatArray) -> FloatArray:
    """Compute S_t, the covariance if all points are one group."""
    return pooled_covariance(X, Groups(np.arange(len(X)), np.array([len(X)])))


def _scatter(X: FloatArray, groups: Groups) -> FloatArray:
    """Compute Σ_j Σ_i (x_ji - m_j)(x_ji - m_j)ᵗ over blocks that may cut groups anywhere."""
    order, starts = groups.order, groups.starts
    scatter = np.zeros((X.shape[1], X.shape[1]))
    # A block may cut a group: these are the number and mean of its points in earlier blocks.
    before, mean = 0, np.zeros(X.shape[1])
    for block in blocks(len(order), 2 * X.shape[1]):
        first, last = np.searchsorted(starts, [block.start, block.stop - 1], side="right")
        begins = np.maximum(starts[first - 1 : last] - block.start, 0)
        counts = np.diff(begins, append=block.stop - block.start)
        rows, means = centre_groups(X[order[block]], begins, counts)
        scatter += rows.T @ rows
        if starts[first - 1] == block.start:
            before = 0
        # The means of the two parts of a group scatter about its common mean, too.
        apart = means[0] - mean
        scatter += np.outer(apart, apart) * (before * counts[0] / (before + counts[0]))
        if len(begins) > 1:
            before, mean = counts[-1], means[-1]
        else:
            total = before + counts[0]
            before, mean = total, means[0] - before * apart / total
    return scatter


def centre_groups(
    rows: FloatArray, starts: IntArray, sizes: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Subtract the mean of its group from each row, in place; return rows and means."""
    # The first row of each group is subtracted first: then equal rows leave exact zeros, and an
    # offset of the data costs no digits.
    anchors = rows[starts]
    rows -= np.repeat(anchors, sizes, axis=0)
    means = np.add.reduceat(rows, starts, axis=0) / sizes[:, None]
    rows -= np.repeat(means, sizes, axis=0)
    return rows, anchors + means


def chunklet_deviations(X: FloatArray, chunklets: Groups) -> list[FloatArray]:
    """Return each chunklet's (n_j, D) points minus their mean, in the order of first points."""
    rows, _ = centre_groups(X[chunklets.order], chunklets.starts, chunklets.sizes)
    parts = np.split(rows, chunklets.starts[1:])
    return [parts[j] for j in np.argsort(chunklets.order[chunklets.starts])]


# ---------------------------------------------------------------------------- rounding


def rounding_noise(X: FloatArray) -> FloatArray:
    """Return (D,) bounds on the rounding errors of the entries of each column."""
    return 4 * np.finfo(float).eps * np.maximum(X.max(axis=0), -X.min(axis=0))


def require_scatter(within: FloatArray, noise: FloatArray) -> None:
    """Raise an error if points of a chunklet differ by more than rounding in no column."""
    if not (np.sqrt(within.diagonal()) > noise).any():
        raise ValueError(
            "the points of every chunklet coincide, or differ by no more than rounding, so they "
            "tell nothing of how a class scatters. Give must-links between points that differ."
        )
