"""Q_P and Q_N, the must-linked and the cannot-linked pairs that Xing's metric is learnt from.

Chapter 12. Classes imply far too many pairs to list, so that a set of pairs is held in two parts:
some by index, and all those within groups of points (for Q_P), or between them (for Q_N).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.random import sample_without_replacement

from cgmm.metric_learning.chunklets import Groups, close_chunklets, group_points
from cgmm.network import SideInformation, number_classes
from cgmm.network.classes import read_classes
from cgmm.numerics import FloatArray, IntArray, blocks, check_pairs

NO_PAIR = np.empty((0, 2), dtype=np.intp)


class Pairs(NamedTuple):
    """A set of unordered pairs: some by index, and all within, or between, groups of points."""

    listed: IntArray
    """(P, 2) indices, each pair once, none of them implied by the groups."""
    groups: Groups
    """Points in groups: of Q_P in those of two or more, of Q_N in groups of any size."""


def check_classes(X: FloatArray, y: ArrayLike | None) -> IntArray:
    """(N,) integers from -1 that name the class of each point; other values are numbered."""
    if y is None:
        return np.full(len(X), -1)
    y = column_or_1d(check_array(read_classes(y), ensure_2d=False, dtype=None, input_name="y"))
    check_consistent_length(X, y)
    # Errors name a class as the user does.
    if np.issubdtype(y.dtype, np.integer) and y.min() >= -1:
        return y.astype(np.intp)
    return number_classes(y)[1]


def check_relations(
    classes: IntArray, must_link: ArrayLike | None, cannot_link: ArrayLike | str | None
) -> tuple[Pairs, Pairs]:
    """Q_P and Q_N, neither of them empty, and without contradictions."""
    rest = isinstance(cannot_link, str)
    if rest and cannot_link != "rest":
        raise ValueError(f'cannot_link is {cannot_link!r}; it must be pairs of points, or "rest".')
    cannot = NO_PAIR if rest else check_pairs("cannot_link", cannot_link, len(classes))
    labels = classes if classes.max() >= 0 else None
    side = SideInformation.build(
        len(classes), labels=labels, must_link=must_link, cannot_link=cannot
    )
    near = Pairs(_distinct(side.must_link, classes), group_points(classes))
    if rest:
        far = Pairs(NO_PAIR, group_points(close_chunklets(classes, side.must_link).node_of, 1))
    else:
        far = Pairs(_distinct(cannot, classes), group_points(classes, 1))
    _require_both(near, far)
    return near, far


def _distinct(pairs: IntArray, groups: IntArray) -> IntArray:
    """Each unordered pair once, without a point's tie to itself and without what groups imply."""
    i, j = np.sort(pairs.reshape(-1, 2).astype(np.intp), axis=1).T
    new = (i != j) & ((groups[i] < 0) | (groups[j] < 0))
    return np.column_stack(np.divmod(np.unique(i[new] * len(groups) + j[new]), len(groups)))


def _require_both(near: Pairs, far: Pairs) -> None:
    """Refuse relations of one kind alone."""
    if len(near.listed) == 0 and len(near.groups.sizes) == 0:
        raise ValueError(
            "there is no must-link: nothing says which distances should be small. Give must_link, "
            "or y with two points of one class."
        )
    if len(far.listed) == 0 and len(far.groups.sizes) < 2:
        raise ValueError(
            "there is no cannot-link: nothing says which distances should be large. Give "
            'cannot_link, or y with two classes, or cannot_link="rest" for all pairs that no '
            "must-link ties."
        )


def sample_far_pairs(far: Pairs, limit: int | None, rng: np.random.RandomState) -> Pairs:
    """Q_N itself, or if more than ``limit`` pairs are between its groups a random sample of these.

    Listed pairs are all kept.
    """
    order, ends = far.groups.order, far.groups.ends
    last = np.cumsum(len(order) - ends)
    if limit is None or len(order) == 0 or last[-1] <= limit:
        return far
    # Pairs are numbered along rows: the k-th joins the row in whose stretch k falls with one of
    # the points that stand behind the row's group.
    k = np.sort(sample_without_replacement(last[-1], limit, random_state=rng))
    row = np.searchsorted(last, k, side="right")
    drawn = np.column_stack([order[row], order[len(order) - last[row] + k]])
    return Pairs(np.concatenate([far.listed, drawn]), Groups(order[:0], far.groups.sizes[:0]))


def differences(X: FloatArray, pairs: IntArray) -> Iterator[FloatArray]:
    """(any, D) x_i - x_j of the pairs, in blocks."""
    for part in blocks(len(pairs), 4 * X.shape[1], at_least=4 * X.shape[1]):
        yield X[pairs[part, 0]] - X[pairs[part, 1]]
