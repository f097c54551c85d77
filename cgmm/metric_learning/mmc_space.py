"""The space in which Xing's metric is searched for: units, rank, and whether a maximum exists.

Chapter 12. In coordinates W whitened by the scatter over Q_P, "must-linked points are near" becomes
a trace of at most one. Directions in which no must-linked points differ have no place there: either
no cannot-linked points differ along them, or the objective has no maximum.

=========  =================================================================================
Q_P, Q_N   must-linked and cannot-linked pairs
R          triangular, with Rᵀ R = Σ (x_i - x_j)(x_i - x_j)ᵀ over Q_P, the scatter
W, r       whitening by the scatter, (D, r); its rank
=========  =================================================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple, cast

import numpy as np

from cgmm.metric_learning.chunklets import Groups, centre_groups, rounding_noise
from cgmm.metric_learning.mmc_pairs import Pairs, differences
from cgmm.numerics import FloatArray, blocks, check_ranges

EPS = np.finfo(float).eps


class Space(NamedTuple):
    """Where the must-links hold the metric, and where they do not."""

    whitening: FloatArray
    """(D, r) W; the scatter over Q_P becomes the identity, or for a diagonal metric its diagonal
    ones."""
    scatter: FloatArray
    """(D,) root of each feature's scatter over Q_P, one where it has none."""
    free: FloatArray
    """(D, q) directions in which no must-linked points differ."""
    slack: FloatArray
    """(q,) differences along them that rounding can make."""
    noise: float
    """Whitened differences that rounding can make."""

    @property
    def rank(self) -> int:
        """The dimensions that the metric can use."""
        return self.whitening.shape[1]


def in_units_of_range(X: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Features over their range, so that nothing depends on their units; ranges; rounding noise.

    Offsets are taken from the median, so that a point far from all others costs these no digits.
    The range of a constant feature is taken for one.
    """
    ranges = check_ranges(X)
    ranges = np.where(ranges > 0, ranges, 1.0)
    noise = np.maximum(4 * EPS, rounding_noise(X) / ranges)
    return (X - np.median(X, axis=0)) / ranges, ranges, noise


def whiten_by_scatter(X: FloatArray, noise: FloatArray, near: Pairs, diagonal: bool) -> Space:
    """Coordinates in which the scatter over Q_P is the identity, and the directions without any.

    Columns are first divided by their own scatter, so that a feature in small units is not taken
    for a missing one.
    """
    R = root_of_scatter(X, near)
    scatter = np.linalg.norm(R, axis=0)
    # How often the square of a number's rounding enters a column: twice for a listed pair, and n²
    # times for a group of n points.
    weight = 2.0 * len(near.listed) + np.square(near.groups.sizes).sum()
    least = noise * np.sqrt(weight)
    seen = scatter > least
    s = np.where(seen, scatter, 1.0)
    scaled, axes = np.diag(1 / s)[:, seen], np.eye(len(s))
    W, flat, leak = scaled, axes[:, :0], 0.0
    if not diagonal:
        cut = np.linalg.norm(least[seen] / s[seen]) + max(X.shape) * EPS
        turn, flat, leak = _split_axes(R[:, seen] / s[seen], cut, X @ scaled)
        W, flat = scaled @ turn, scaled @ flat
    of_data = 2 * np.linalg.norm(noise / s)
    slack = np.concatenate([2 * least[~seen], np.full(flat.shape[1], leak + of_data)])
    whitened_noise = 2 * float(np.linalg.norm(noise @ abs(W)))
    return Space(W, s, np.hstack([axes[:, ~seen], flat]), slack, whitened_noise)


def _split_axes(R: FloatArray, cut: float, X: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Axes of R, whitened, and those of no length; and what leaks into the latter.

    A flat axis is known only as exactly as ``cut``, relative to the longest: a difference seems to
    have a part along it that is ``cut`` times its whitened length. Must-linked ones are below 1.
    """
    _, sigma, axes = np.linalg.svd(R)
    cut *= sigma.max(initial=0.0)
    rank = int((sigma > cut).sum())
    whitened, flat = axes[:rank].T / sigma[:rank], axes[rank:].T
    return whitened, flat, cut * (1 + np.linalg.norm(np.ptp(X @ whitened, axis=0)))


def root_of_scatter(X: FloatArray, near: Pairs) -> FloatArray:
    """R, by QR, block by block.

    The scatter is never formed: small directions would drown in its squares.
    """
    R: FloatArray = np.zeros((X.shape[1], X.shape[1]))
    for rows in chain(differences(X, near.listed), _spreads(X, near.groups)):
        R = cast("FloatArray", np.linalg.qr(np.vstack([R, rows]), mode="r"))
    return R


def _spreads(X: FloatArray, groups: Groups) -> Iterator[FloatArray]:
    """√n (x_i - mean) for each point of a group of n, in blocks.

    Over all pairs of a group, Σ (x_i - x_j)(x_i - x_j)ᵀ is n times the scatter about its mean.
    """
    rows, _ = centre_groups(X[groups.order], groups.starts, groups.sizes)
    root_n = np.sqrt(np.repeat(groups.sizes, groups.sizes))
    for part in blocks(len(rows), X.shape[1], at_least=4 * X.shape[1]):
        yield rows[part] * root_n[part, None]


# ---------------------------------------------------------------------------- no answer


def require_maximum(X: FloatArray, space: Space, far: Pairs) -> None:
    """Refuse cannot-linked points that differ where must-linked ones agree: A grows for ever."""
    order = far.groups.order
    for direction, slack in zip(space.free.T, space.slack, strict=True):
        along = X @ direction
        # Points of one group are must-linked and agree here: extremes are of different groups.
        candidates = [order[[along[order].argmin(), along[order].argmax()]]] if len(order) else []
        if len(far.listed):
            gaps = abs(along[far.listed[:, 0]] - along[far.listed[:, 1]])
            candidates.append(far.listed[gaps.argmax()])
        for i, j in candidates:
            if abs(along[i] - along[j]) > slack:
                raise ValueError(_explain_unbounded(min(i, j), max(i, j), direction, space))


def _explain_unbounded(i: int, j: int, direction: FloatArray, space: Space) -> str:
    n_dims, rank = space.whitening.shape
    fewer = f", or reduce the data to {rank} dimensions or fewer (PCA, or drop features)"
    return (
        f"the cannot-linked points {i} and {j} differ in a direction, mostly that of feature "
        f"{abs(direction).argmax()}, in which no must-linked points differ (these span {rank} of "
        f"{n_dims} dimensions): the metric could grow along it for ever, and there is no maximum. "
        f"Give more must-links{fewer if rank else ', between points that differ'}."
    )


def require_difference(mean_length: float, space: Space) -> None:
    """Refuse cannot-linked points that differ by rounding alone: no metric tells them apart."""
    if mean_length <= space.noise * np.sqrt(space.rank):
        raise ValueError(
            "all cannot-linked pairs are pairs of identical points, or of points that differ by "
            "rounding alone: no metric can tell them apart. Give cannot-links between points that "
            "differ."
        )
