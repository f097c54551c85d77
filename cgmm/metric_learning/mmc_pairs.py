"""Similar and dissimilar pairs, as they are given to MMC. Chapter 12."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.random import sample_without_replacement

from cgmm.network import SideInformation
from cgmm.numerics import FloatArray, IntArray

# ---------------------------------------------------------------------------- relations


class Pairs(NamedTuple):
    """A set of unordered pairs: some by index, and all within, or between, groups of points."""

    pairs: IntArray
    """(P, 2) indices, each pair once, none of them implied by the groups."""
    groups: IntArray
    """(N,) the group of each point, -1 for none."""


def check_y(X: FloatArray, y: ArrayLike | None) -> IntArray | None:
    """(N,) integers from -1 that name the class of each point; other values are numbered."""
    if y is None:
        return None
    y = column_or_1d(check_array(y, ensure_2d=False, dtype=None, input_name="y"))
    check_consistent_length(X, y)
    if np.issubdtype(y.dtype, np.integer) and y.min() >= -1:
        return y.astype(np.intp)
    values, codes = np.unique(y, return_inverse=True)
    codes = codes.astype(np.intp)
    return np.where(y == -1, -1, codes) if np.issubdtype(values.dtype, np.number) else codes


def read_pairs(
    X: FloatArray,
    y: IntArray | None,
    must_link: ArrayLike | None,
    cannot_link: ArrayLike | str | None,
) -> tuple[Pairs, Pairs]:
    """Q_P and Q_N, checked not to contradict each other and not to be empty."""
    rest = isinstance(cannot_link, str)
    if rest and cannot_link != "rest":
        raise ValueError(f'cannot_link is {cannot_link!r}; it must be pairs of points, or "rest".')
    cannot = _NONE if rest or cannot_link is None else np.asarray(cannot_link)
    side = SideInformation.build(len(X), labels=y, must_link=must_link, cannot_link=cannot)
    classes = np.full(len(X), -1) if y is None else y
    near = Pairs(_distinct(side.must_link, classes), classes)
    far = Pairs(_distinct(cannot, classes), classes)
    if rest:
        closed = np.concatenate([side.must_link, _stars(classes)])
        far = Pairs(_NONE, SideInformation.build(len(X), must_link=closed).node_of)
    _require_both(near, far)
    return near, far


_NONE = np.empty((0, 2), dtype=np.intp)


def _distinct(pairs: IntArray, groups: IntArray) -> IntArray:
    """Each unordered pair once, without a point's tie to itself and without what groups imply."""
    i, j = np.sort(pairs.reshape(-1, 2).astype(np.intp), axis=1).T
    new = (i != j) & ((groups[i] < 0) | (groups[j] < 0))
    return np.column_stack(np.divmod(np.unique(i[new] * len(groups) + j[new]), len(groups)))


def _stars(classes: IntArray) -> IntArray:
    """Must-links that tie every member of a class to its first."""
    members = np.flatnonzero(classes >= 0)
    _, first, codes = np.unique(classes[members], return_index=True, return_inverse=True)
    return np.column_stack([members[first[codes]], members])


def _require_both(near: Pairs, far: Pairs) -> None:
    """There must be must-links and cannot-links."""
    sizes = np.bincount(near.groups[near.groups >= 0])
    if len(near.pairs) == 0 and sizes.max(initial=0) < 2:
        raise ValueError(
            "there is no must-link: nothing says which distances should be small. Give must_link, "
            "or y with two points of one class."
        )
    if len(far.pairs) == 0 and len(np.unique(far.groups[far.groups >= 0])) < 2:
        raise ValueError(
            "there is no cannot-link: nothing says which distances should be large. Give "
            'cannot_link, or y with two classes, or cannot_link="rest" for all pairs that no '
            "must-link ties."
        )


def at_most(far: Pairs, limit: int | None, rng: np.random.RandomState) -> Pairs:
    """The pairs between groups, or if they are too many a random sample of them."""
    order, ends = by_group(far.groups)
    last = np.cumsum(len(order) - ends)
    if limit is None or len(order) == 0 or last[-1] <= limit:
        return far
    # Pairs are numbered along rows: the k-th joins the row in whose stretch k falls with one of
    # the points that stand behind the row's group.
    k = np.sort(sample_without_replacement(last[-1], limit, random_state=rng))
    row = np.searchsorted(last, k, side="right")
    drawn = np.column_stack([order[row], order[len(order) - last[row] + k]])
    nobody = np.full(len(far.groups), -1)
    return Pairs(_distinct(np.concatenate([far.pairs, drawn]), nobody), nobody)


def by_group(groups: IntArray) -> tuple[IntArray, IntArray]:
    """Points in the order of their groups, and for each the position where its group ends."""
    order = np.argsort(groups, kind="stable")
    order = order[np.searchsorted(groups[order], 0) :]
    return order, np.searchsorted(groups[order], groups[order], side="right")
