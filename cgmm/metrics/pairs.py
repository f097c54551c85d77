"""Scores on pairs of points: do classes and clusters agree on whether the two belong together?

A clustering has no names for its clusters, and a question about pairs needs none. Must-links and
cannot-links settle the same question. Chapters 3, 5, 7 and 12 to 14 use these scores.

Letters, as in the book:

====  ==========================================================================
N     number of points; c_i the class of point i, ĉ_i its predicted cluster
n_ab  number of points of class a in cluster b, the contingency table
T     pairs of one class, Σ_a C(Σ_b n_ab, 2)
Q     pairs of one cluster, Σ_b C(Σ_a n_ab, 2)
B     pairs of one class and of one cluster, Σ_ab C(n_ab, 2)
M     all unordered pairs, C(N, 2)
====  ==========================================================================

All pair counts are computed from the non-empty cells of the table, of which there are at most N.
Nothing here loops over the N²/2 pairs or needs more memory than the labels do.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cgmm.metrics.matching import check_both
from cgmm.numerics import check_labels, check_pairs


class PairwiseScores(NamedTuple):
    """Precision, recall and their harmonic mean over pairs of points."""

    precision: float
    """Share of pairs of one class among the pairs in one cluster, B / Q."""
    recall: float
    """Share of pairs in one cluster among the pairs of one class, B / T."""
    f_half: float
    """Harmonic mean f½ = 2PR / (P + R) = 2B / (Q + T) [shental2003, sect. 3]."""


def pairwise_scores(y_true: ArrayLike, y_pred: ArrayLike) -> PairwiseScores:
    """Compute precision, recall and f½ over all pairs of points [shental2003, sect. 3].

    A pair is *retrieved* when its two points share a cluster, and *relevant* when they share a
    class.

    Parameters
    ----------
    y_true, y_pred : (N,) int array_like
        Class and predicted cluster of each point.

    Returns
    -------
    PairwiseScores
        ``precision``, ``recall``, ``f_half``, each in [0, 1].

    Raises
    ------
    ValueError
        As in :func:`matched_accuracy`; also if no two points share a class (recall is undefined)
        or no two points share a cluster (precision is undefined).

    Examples
    --------
    >>> pairwise_scores([0, 0, 0, 1, 1], [0, 0, 1, 1, 1])
    PairwiseScores(precision=0.5, recall=0.5, f_half=0.5)

    A single cluster of all points retrieves every pair, and is right on two of five:

    >>> pairwise_scores([0, 0, 0, 1, 1], [4, 4, 4, 4, 4])
    PairwiseScores(precision=0.4, recall=1.0, f_half=0.5714285714285714)
    """
    pairs = _count_pairs(y_true, y_pred)
    _require(pairs.same_class, "no two points share a class in y_true: recall is undefined")
    _require(pairs.same_cluster, "no two points share a cluster in y_pred: precision is undefined")
    return PairwiseScores(
        precision=pairs.both / pairs.same_cluster,
        recall=pairs.both / pairs.same_class,
        # [shental2003, sect. 3]  f½ = 2PR / (R + P), written so that B = 0 needs no special case
        f_half=2 * pairs.both / (pairs.same_cluster + pairs.same_class),
    )


def balanced_rand_index(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Compute the Rand index with equal total weights of same-class and two-class pairs.

    This is the probability that the clustering is right about a pair which is drawn, with equal
    chance, from the pairs of one class or from the pairs of two classes [barhillel2005, sect. 8.3,
    note 8]. The note draws pairs by "cluster"; here they are drawn by true class, since a score
    that is weighted by the prediction would let the prediction choose its own weights.

    Parameters
    ----------
    y_true, y_pred : (N,) int array_like
        Class and predicted cluster of each point.

    Returns
    -------
    float
        In [0, 1]: ½ (share of same-class pairs kept together + share of two-class pairs kept
        apart). A single cluster scores ½, and so does a separate cluster for each point.

    Raises
    ------
    ValueError
        As in :func:`matched_accuracy`; also if no two points share a class, or all do.

    Examples
    --------
    >>> balanced_rand_index([0, 0, 0, 1, 1], [0, 0, 0, 1, 1])
    1.0
    >>> balanced_rand_index([0, 0, 0, 1, 1], [4, 4, 4, 4, 4])
    0.5
    """
    pairs = _count_pairs(y_true, y_pred)
    two_classes = pairs.all - pairs.same_class
    _require(pairs.same_class, "no two points share a class in y_true: nothing to keep together")
    _require(two_classes, "all points share one class in y_true: nothing to keep apart")
    kept_together = pairs.both / pairs.same_class
    kept_apart = 1 - (pairs.same_cluster - pairs.both) / two_classes
    return (kept_together + kept_apart) / 2


def _require(count: int, complaint: str) -> None:
    """Raise an error if the denominator of a share is zero."""
    if count == 0:
        raise ValueError(f"{complaint}. Score more points, or use matched_accuracy.")


class _PairCounts(NamedTuple):
    both: int  # B
    same_class: int  # T
    same_cluster: int  # Q
    all: int  # M


def _count_pairs(y_true: ArrayLike, y_pred: ArrayLike) -> _PairCounts:
    """Count B, T, Q and M from the non-empty cells of the contingency table."""
    # Here a and b number the classes and clusters from 0, and n_a and n_b count their points.
    (_, a, n_a), (_, b, n_b) = (
        np.unique(labels, return_inverse=True, return_counts=True)
        for labels in check_both(y_true, y_pred)
    )
    n_ab = np.unique(a * len(n_b) + b, return_counts=True)[1]
    return _PairCounts(*map(_pairs_within, (n_ab, n_a, n_b, [len(a)])))


def _pairs_within(sizes: ArrayLike) -> int:
    """Return Σ n (n - 1) / 2 over groups of the given sizes, exact up to N of about 10⁹."""
    n = np.asarray(sizes, dtype=np.int64)
    return int((n * (n - 1) // 2).sum())


# ---------------------------------------------------------------------------- given relations


class BrokenRelations(NamedTuple):
    """The numbers of relations that a clustering breaks."""

    must_link: int
    """Must-links whose two points are in different clusters."""
    cannot_link: int
    """Cannot-links whose two points share a cluster."""


def broken_relations(
    y_pred: ArrayLike, must_link: ArrayLike = (), cannot_link: ArrayLike = ()
) -> BrokenRelations:
    """Count the relations that a clustering breaks.

    Parameters
    ----------
    y_pred : (N,) int array_like
        Predicted cluster of each point.
    must_link, cannot_link : (P, 2), (P', 2) int array_like
        Pairs of sample indices; either may be empty. A pair that is given twice counts twice.

    Returns
    -------
    BrokenRelations
        ``must_link`` and ``cannot_link``, both zero for a clustering that satisfies every relation.

    Raises
    ------
    ValueError
        If the labels are no vector of integers, or a pair refers to no point.

    Examples
    --------
    >>> broken_relations([0, 0, 1, 1], must_link=[[0, 1], [1, 2]], cannot_link=[[0, 3], [2, 3]])
    BrokenRelations(must_link=1, cannot_link=1)
    """
    clusters = check_labels("y_pred", y_pred, least=None)
    must_a, must_b = clusters[check_pairs("must_link", must_link, len(clusters))].T
    cannot_a, cannot_b = clusters[check_pairs("cannot_link", cannot_link, len(clusters))].T
    return BrokenRelations(int(np.sum(must_a != must_b)), int(np.sum(cannot_a == cannot_b)))
