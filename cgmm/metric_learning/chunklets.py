"""Group points into chunklets, and compute the covariance of points within chunklets.

A chunklet is a set of points known to share a class, though not which class. So the scatter of its
points about their mean has nothing to do with differences between classes. All metric learners
group their points and compute this scatter with these functions. The first half of chapter 12
explains it.

=========  ===================================================================================
N, D       number of points in chunklets of two or more points, and number of dimensions
n, n_j     number of these chunklets, and of points in each; Σ_j (n_j - 1) degrees of freedom
x_ji, m_j  point i of chunklet j, and the mean of the chunklet
Ĉ, S_t     covariance within chunklets; total covariance, as if one chunklet had all points
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
        The chunklet of each point, -1 for none. Chunklets of one point have no scatter, and are
        ignored.
    unbiased : bool, default=False
        True: divide by N - n. False: divide by N.

    Returns
    -------
    (D, D) array
        Ĉ, in squared units of the data.

    Raises
    ------
    ValueError
        If no chunklet has two points, an entry of ``chunklet_of`` is no integer from -1, or squares
        of the data overflow or underflow.

    Notes
    -----
    If all chunklets have k points, the biased Ĉ is (k - 1) / k times the unbiased one: half of it
    for pairs, however many there are. This changes only the scale of the metric. Chunklets of
    different sizes are weighted by their degrees of freedom: of all unbiased weighted means this
    one has the smallest variance, and it equals the estimate in [barhillel2005] if all chunklets
    have k points. The function takes O(N + D²) memory beyond the data.

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
        If squares of the data overflow or underflow.

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
    """Row numbers of points, sorted by group; points without a group are left out."""

    order: IntArray
    """(N,) row numbers of the points, group after group."""
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


def group_points(group_of: IntArray, min_size: int = 2) -> Groups:
    """Sort points by group, without group -1 and groups of fewer than ``min_size`` points."""
    members = np.flatnonzero(group_of >= 0)
    order = members[np.argsort(group_of[members], kind="stable")]
    starts = np.flatnonzero(np.diff(group_of[order], prepend=-1))
    sizes = np.diff(starts, append=len(order))
    is_large = sizes >= min_size
    return Groups(order[np.repeat(is_large, sizes)], sizes[is_large])


def check_chunklets(y: ArrayLike | None, n_points: int) -> IntArray:
    """Return the (N,) chunklet of each point, -1 for none; all are -1 if ``y`` is None."""
    if y is None:
        return np.full(n_points, -1)
    array = np.asarray(y)
    # A column of a DataFrame may contain integers as objects; a list of them becomes an int array.
    return check_labels("y", array.tolist() if array.dtype == object else array, n_points)


def close_chunklets(chunklet_of: IntArray, must_link: ArrayLike | None) -> SideInformation:
    """Return the transitive closure of chunklets and must-links, as nodes of a network."""
    chunklets = group_points(chunklet_of)
    # Represent each chunklet by must-links from its first point to all of its points.
    first_points = np.repeat(chunklets.order[chunklets.starts], chunklets.sizes)
    links = np.column_stack([first_points, chunklets.order])
    pairs = check_pairs("must_link", must_link, len(chunklet_of))
    return SideInformation.build(len(chunklet_of), must_link=np.concatenate([pairs, links]))


# ---------------------------------------------------------------------------- covariances


def pooled_covariance(X: FloatArray, groups: Groups, unbiased: bool = False) -> FloatArray:
    """Return Ĉ, the covariance of points about the means of their groups."""
    # [barhillel2005, eq. 1], where N is the number of points in chunklets as in eq. 11.
    # [barhillel2005, sect. 5] gives the unbiased estimate.
    return _compute_scatter(X, groups) / (groups.freedom if unbiased else len(groups.order))


def covariance_of_all(X: FloatArray) -> FloatArray:
    """Return S_t, the covariance of all points about their common mean."""
    return pooled_covariance(X, Groups(np.arange(len(X)), np.array([len(X)])))


def _compute_scatter(X: FloatArray, groups: Groups) -> FloatArray:
    """Return Σ_j Σ_i (x_ji - m_j)(x_ji - m_j)ᵗ, computed in blocks of points to save memory."""
    order, starts = groups.order, groups.starts
    scatter = np.zeros((X.shape[1], X.shape[1]))
    # If a block begins inside a group: number and mean of the group's points in earlier blocks.
    n_earlier, mean = 0, np.zeros(X.shape[1])
    for block in blocks(len(order), 2 * X.shape[1]):
        first, last = np.searchsorted(starts, [block.start, block.stop - 1], side="right")
        starts_in_block = np.maximum(starts[first - 1 : last] - block.start, 0)
        counts = np.diff(starts_in_block, append=block.stop - block.start)
        rows, means = centre_groups(X[order[block]], starts_in_block, counts)
        scatter += rows.T @ rows
        if starts[first - 1] == block.start:
            n_earlier = 0
        # If the first group began in an earlier block, add the scatter between its two parts.
        shift = means[0] - mean
        scatter += np.outer(shift, shift) * (n_earlier * counts[0] / (n_earlier + counts[0]))
        if len(starts_in_block) > 1:
            n_earlier, mean = counts[-1], means[-1]
        else:
            n_points = n_earlier + counts[0]
            n_earlier, mean = n_points, means[0] - n_earlier * shift / n_points
    return scatter


def centre_groups(
    rows: FloatArray, starts: IntArray, sizes: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Subtract from each row the mean of its group, in place; return the rows and the means."""
    # Subtract the first row of each group before the mean: then equal rows become exactly zero, and
    # a large offset of the data costs no precision.
    anchors = rows[starts]
    rows -= np.repeat(anchors, sizes, axis=0)
    means = np.add.reduceat(rows, starts, axis=0) / sizes[:, None]
    rows -= np.repeat(means, sizes, axis=0)
    return rows, anchors + means


def chunklet_deviations(X: FloatArray, chunklets: Groups) -> list[FloatArray]:
    """Return the (n_j, D) points of each chunklet minus their mean, in order of first points."""
    rows, _ = centre_groups(X[chunklets.order], chunklets.starts, chunklets.sizes)
    parts = np.split(rows, chunklets.starts[1:])
    return [parts[j] for j in np.argsort(chunklets.order[chunklets.starts])]


# ---------------------------------------------------------------------------- rounding


def rounding_noise(X: FloatArray) -> FloatArray:
    """Return (D,) bounds on the rounding errors of the entries of each column."""
    return 4 * np.finfo(float).eps * np.maximum(X.max(axis=0), -X.min(axis=0))


def require_scatter(within: FloatArray, noise: FloatArray) -> None:
    """Raise an error if points of each chunklet are equal, apart from rounding errors."""
    if not (np.sqrt(within.diagonal()) > noise).any():
        raise ValueError(
            "the points of every chunklet coincide, or differ by no more than rounding, so the "
            "scatter of a class is unknown. Give must-links between points that differ."
        )
