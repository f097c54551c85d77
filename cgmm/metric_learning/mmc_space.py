"""The space in which MMC works: units, rank, and whether a maximum exists. Chapter 12."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple, cast

import numpy as np

from cgmm.metric_learning.mmc_pairs import Pairs, by_group
from cgmm.numerics import FloatArray, IntArray, blocks

EPS = np.finfo(float).eps

# ---------------------------------------------------------------------------- whitening


class Units(NamedTuple):
    """What the data were divided by, and how exact they are."""

    ranges: FloatArray
    """(D,) range of each feature, one where it is constant."""
    noise: FloatArray
    """(D,) rounding of the data, in these units."""


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


def in_units_of_range(X: FloatArray) -> tuple[FloatArray, Units]:
    """Features between -½ and ½, so that nothing depends on their units."""
    with np.errstate(over="ignore"):
        ranges = X.max(axis=0) - X.min(axis=0)
    wrong = np.flatnonzero((ranges > 1e150) | ((ranges > 0) & (ranges < 1e-150)))
    if len(wrong):
        raise ValueError(
            f"column {wrong[0]} spans {ranges[wrong[0]]:.3g}: its squares cannot be represented. "
            "Multiply the data by a constant."
        )
    ranges = np.where(ranges > 0, ranges, 1.0)
    noise = EPS * np.maximum(1, abs(X).max(axis=0) / ranges)
    return (X - X.min(axis=0)) / ranges - 0.5, Units(ranges, noise)


def whiten_space(X: FloatArray, units: Units, near: Pairs, diagonal: bool) -> Space:
    """Coordinates in which the scatter over Q_P is the identity, and the directions without any.

    Columns are first divided by their own scatter, so that a feature in small units is not taken
    for a missing one.
    """
    R = root_of_scatter(X, near)
    scatter = np.linalg.norm(R, axis=0)
    # Each difference carries the rounding of two numbers; 4 is a margin.
    noise = 4 * units.noise * np.sqrt(_weight(near))
    seen = scatter > noise
    s = np.where(seen, scatter, 1.0)
    scaled, axes = np.diag(1 / s)[:, seen], np.eye(len(s))
    W, flat, leak = scaled, axes[:, :0], 0.0
    if not diagonal:
        cut = np.linalg.norm(noise[seen] / s[seen])
        turned, leak = _principal(R[:, seen] / s[seen], cut + max(X.shape) * EPS, X @ scaled)
        W, flat = (scaled @ part for part in turned)
    of_data = 8 * np.linalg.norm(units.noise / s)
    slack = np.concatenate([2 * noise[~seen], np.full(flat.shape[1], leak + of_data)])
    whitened_noise = 8 * float(np.linalg.norm(units.noise @ abs(W)))
    return Space(W, s, np.hstack([axes[:, ~seen], flat]), slack, whitened_noise)


def _principal(
    R: FloatArray, cut: float, X: FloatArray
) -> tuple[tuple[FloatArray, FloatArray], float]:
    """Axes of R, split into whitened ones and those of no length; and what leaks into the latter.

    A flat axis is known only as exactly as ``cut``, relative to the longest: a difference seems to
    have a part along it that is ``cut`` times its whitened length. Must-linked ones are below 1.
    """
    _, sigma, axes = np.linalg.svd(R)
    cut *= sigma.max(initial=0.0)
    rank = int((sigma > cut).sum())
    whitened, flat = axes[:rank].T / sigma[:rank], axes[rank:].T
    return (whitened, flat), cut * (1 + np.linalg.norm(np.ptp(X @ whitened, axis=0)))


def root_of_scatter(X: FloatArray, near: Pairs) -> FloatArray:
    """R, triangular, with Rᵀ R = Σ (x_i - x_j)(x_i - x_j)ᵀ over Q_P.

    By QR, block by block. The scatter is never formed: small directions would drown in its squares.
    """
    R: FloatArray = np.zeros((X.shape[1], X.shape[1]))
    for rows in chain(differences_of(X, near.pairs), _spreads(X, near.groups)):
        R = cast("FloatArray", np.linalg.qr(np.vstack([R, rows]), mode="r"))
    return R


def differences_of(X: FloatArray, pairs: IntArray) -> Iterator[FloatArray]:
    """x_i - x_j of the pairs, in blocks."""
    for part in blocks(len(pairs), 4 * X.shape[1], at_least=4 * X.shape[1]):
        yield X[pairs[part, 0]] - X[pairs[part, 1]]


def _spreads(X: FloatArray, groups: IntArray) -> Iterator[FloatArray]:
    """√n (x_i - mean) for each point of a group of n, in blocks.

    Over all pairs of a group, Σ (x_i - x_j)(x_i - x_j)ᵀ is n times the scatter about its mean.
    """
    order, ends = by_group(groups)
    if len(order) == 0:
        return
    stops, group, n = np.unique(ends, return_inverse=True, return_counts=True)
    means = np.add.reduceat(X[order], stops - n) / n[:, None]
    for part in blocks(len(order), X.shape[1], at_least=4 * X.shape[1]):
        yield (X[order[part]] - means[group[part]]) * np.sqrt(n[group[part], None])


def _weight(near: Pairs) -> float:
    """How many times the square of a number's rounding enters a column of the scatter."""
    sizes = np.bincount(near.groups[near.groups >= 0]).astype(float)
    return 2.0 * len(near.pairs) + float(np.square(sizes).sum())


# ---------------------------------------------------------------------------- no maximum


def require_maximum(X: FloatArray, space: Space, far: Pairs) -> None:
    """Cannot-linked points must not differ where must-linked ones agree: A could grow for ever."""
    order, _ = by_group(far.groups)
    for direction, slack in zip(space.free.T, space.slack, strict=True):
        along = X @ direction
        # Points of one group are must-linked and agree here: extremes are of different groups.
        candidates = [order[[along[order].argmin(), along[order].argmax()]]] if len(order) else []
        if len(far.pairs):
            gaps = abs(along[far.pairs[:, 0]] - along[far.pairs[:, 1]])
            candidates.append(far.pairs[gaps.argmax()])
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
