"""Scores of a clustering against known classes: on points, on pairs, and on neighbourhoods.

A clustering has no names for its clusters, so a score must not depend on them. Scores on points
give clusters the names under which most points are right. Scores on pairs need no names: they ask
whether classes and clusters agree that two points belong together, the question which must-links
and cannot-links answer. The purity of neighbourhoods judges a metric instead of a clustering:
the nearest neighbours of a point should belong to its class. All chapters use these functions.

====  ==========================================================================
N     number of points; c_i the class of point i, ĉ_i its predicted cluster
n_ab  number of points of class a in cluster b, the contingency table
T     pairs of one class, Σ_a C(Σ_b n_ab, 2)
Q     pairs of one cluster, Σ_b C(Σ_a n_ab, 2)
B     pairs of one class and of one cluster, Σ_ab C(n_ab, 2)
M     all unordered pairs, C(N, 2)
p     exponent of the distance between points, e.g. 2
====  ==========================================================================

All pair counts are computed from the non-empty cells of the table, of which there are at most N.
Nothing here loops over the N²/2 pairs or needs more memory than the labels do.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment
from scipy.spatial import KDTree

from cgmm.numerics import BoolArray, FloatArray, IntArray, check_integer, check_labels, check_pairs

# ------------------------------------------------------------ points


def matched_accuracy(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Return the share of points in the right class, under the best matching with clusters.

    The matching is one-to-one. This is the classification accuracy of lu2007, sect. 5.1.2: the
    sum over the diagonal of the confusion matrix, with clusters in the best order. Points of a
    cluster without a class count as errors.

    Parameters
    ----------
    y_true, y_pred : (N,) int array_like
        Class and predicted cluster of each point, any integers; their values do not matter.

    Returns
    -------
    float
        In (0, 1]. With K classes of equal size and K clusters it is never below 1/K.

    Raises
    ------
    ValueError
        If the two differ in length, are empty, not one-dimensional or not of integers.

    Examples
    --------
    >>> matched_accuracy([0, 0, 0, 1, 1], [7, 7, 3, 3, 3])
    0.8
    """
    classes, clusters = check_classes_and_clusters(y_true, y_pred)
    *_, hits = _best_matching(classes, clusters)
    return int(hits.sum()) / len(classes)


def match_labels(y_true: ArrayLike, y_pred: ArrayLike) -> dict[int, int]:
    """Name each cluster after the class that the best matching gives it.

    The matching is one-to-one and puts as many points as possible into their class (the Hungarian
    method). Clusters that outnumber the classes get new names, from ``max(y_true) + 1`` on.

    Parameters
    ----------
    y_true, y_pred : (N,) int array_like
        Class and predicted cluster of each point.

    Returns
    -------
    dict of int to int
        The name of every cluster in ``y_pred``, in ascending order of the clusters. No two clusters
        share a name; with as many clusters as classes it is a permutation.

    Raises
    ------
    ValueError
        As in :func:`matched_accuracy`.

    Examples
    --------
    >>> y_true, y_pred = [0, 0, 0, 1, 1], [1, 1, 1, 0, 0]
    >>> names = match_labels(y_true, y_pred)
    >>> names
    {0: 1, 1: 0}
    >>> [names[k] for k in y_pred]
    [0, 0, 0, 1, 1]
    >>> match_labels([0, 0, 0, 1], [5, 5, 6, 7])
    {5: 0, 6: 2, 7: 1}
    """
    classes, clusters = check_classes_and_clusters(y_true, y_pred)
    names, matched, _ = _best_matching(classes, clusters)
    surplus = np.setdiff1d(clusters, matched)
    fresh = classes.max() + 1 + np.arange(len(surplus))
    keys, values = np.concatenate([matched, surplus]), np.concatenate([names, fresh])
    return dict(sorted(zip(keys.tolist(), values.tolist(), strict=True)))


def _best_matching(classes: IntArray, clusters: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return the one-to-one matching of clusters with classes that gets most points right.

    The result is three (m,) arrays, where m is the smaller number of classes and clusters: matched
    classes, their clusters, and the number of points that each match gets right.
    """
    class_names, a = np.unique(classes, return_inverse=True)
    cluster_names, b = np.unique(clusters, return_inverse=True)
    shape = len(class_names), len(cluster_names)
    table = np.bincount(a * shape[1] + b, minlength=shape[0] * shape[1]).reshape(shape)
    rows, columns = linear_sum_assignment(table, maximize=True)
    return class_names[rows], cluster_names[columns], table[rows, columns]


def check_classes_and_clusters(y_true: ArrayLike, y_pred: ArrayLike) -> tuple[IntArray, IntArray]:
    """Return classes and clusters as arrays of integers, or raise an error if they do not fit."""
    classes = check_labels("y_true", y_true, least=None)
    return classes, check_labels("y_pred", y_pred, len(classes), least=None)


# ------------------------------------------------------------ pairs


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
    _require_pairs(pairs.same_class, "no two points share a class in y_true: recall is undefined")
    _require_pairs(
        pairs.same_cluster, "no two points share a cluster in y_pred: precision is undefined"
    )
    return PairwiseScores(
        precision=pairs.both / pairs.same_cluster,
        recall=pairs.both / pairs.same_class,
        # [shental2003, sect. 3]: f½ = 2PR / (R + P), rearranged so that `pairs.both` = 0 needs no
        # special case.
        f_half=2 * pairs.both / (pairs.same_cluster + pairs.same_class),
    )


def balanced_rand_index(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Compute the Rand index with equal total weights of same-class and two-class pairs.

    A fair coin decides if a pair is drawn from the pairs of one class or from the pairs of two
    classes. The index is the probability that the clustering is right about this pair
    [barhillel2005, sect. 8.3, note 8]. The note draws pairs by "cluster"; here they are drawn by
    true class, since a score that is weighted by the prediction would let the prediction choose its
    own weights.

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
    _require_pairs(
        pairs.same_class, "no two points share a class in y_true: nothing to keep together"
    )
    _require_pairs(two_classes, "all points share one class in y_true: nothing to keep apart")
    kept_together = pairs.both / pairs.same_class
    kept_apart = 1 - (pairs.same_cluster - pairs.both) / two_classes
    return (kept_together + kept_apart) / 2


def _require_pairs(count: int, message: str) -> None:
    """Raise an error with the message if there are no pairs, which a score would divide by."""
    if count == 0:
        raise ValueError(f"{message}. Score more points, or use matched_accuracy.")


class _PairCounts(NamedTuple):
    """Numbers of pairs of points, by whether the points share a class and a cluster."""

    both: int
    """B, pairs of one class and of one cluster."""
    same_class: int
    """T, pairs of one class."""
    same_cluster: int
    """Q, pairs of one cluster."""
    all: int
    """M, all pairs."""


def _count_pairs(y_true: ArrayLike, y_pred: ArrayLike) -> _PairCounts:
    """Count B, T, Q and M from the non-empty cells of the contingency table."""
    # Here a and b are the class and the cluster of each point, and n_a and n_b their sizes.
    (_, a, n_a), (_, b, n_b) = (
        np.unique(labels, return_inverse=True, return_counts=True)
        for labels in check_classes_and_clusters(y_true, y_pred)
    )
    n_ab = np.unique(a * len(n_b) + b, return_counts=True)[1]
    return _PairCounts(*map(_count_pairs_within, (n_ab, n_a, n_b, [len(a)])))


def _count_pairs_within(sizes: ArrayLike) -> int:
    """Return Σ n (n - 1) / 2 over groups of the given sizes, exact up to N of about 10⁹."""
    n = np.asarray(sizes, dtype=np.int64)
    return int((n * (n - 1) // 2).sum())


# ------------------------------------------------------------ given relations


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


# ------------------------------------------------------------ neighbours


def cumulative_neighbour_purity(
    X: ArrayLike, y: ArrayLike, n_neighbours: int = 10, *, p: float = 2.0
) -> FloatArray:
    """Return the mean share of neighbours with a point's own class among its nearest 1, 2, ...

    The score judges a metric: the nearest neighbours of a point should be of its class.

    Parameters
    ----------
    X : (N, D) array_like
        The points; transform them first to judge a learnt metric.
    y : (N,) int array_like
        Class of each point.
    n_neighbours : int, default=10
        Length of the curve, from 1 to N - 1.
    p : float, default=2.0
        Minkowski exponent of the distance: 1 for L1, 2 for Euclid.

    Returns
    -------
    (n_neighbours,) array
        Entry k - 1 is the share of a point's class among its k nearest neighbours, as a mean over
        all points. A point is not its own neighbour.

    Raises
    ------
    ValueError
        If X and y do not fit together, hold NaN, or n_neighbours is out of range.

    Notes
    -----
    These are the curves in figures 4, 6, 7 and 9 of [barhillel2005, sect. 8].

    Examples
    --------
    >>> X = [[0.0], [1.0], [2.5], [10.0], [11.0]]
    >>> cumulative_neighbour_purity(X, [0, 0, 1, 1, 1], 2)
    array([0.8, 0.6])
    """
    X, classes = np.asarray(X, dtype=float), check_labels("y", y, least=None)
    if X.ndim != 2 or len(X) != len(classes) or not np.isfinite(X).all():
        raise ValueError(
            f"X has shape {X.shape}; it must have one row of finite numbers for each of the "
            f"{len(classes)} entries of y."
        )
    check_integer("n_neighbours", n_neighbours, 1, len(X) - 1)
    nearest: IntArray = np.asarray(KDTree(X).query(X, k=n_neighbours + 1, p=p)[1])
    # If other points coincide with a point, it may not be among its own nearest points. In
    # this case, remove the last of them instead.
    is_self: BoolArray = nearest == np.arange(len(X))[:, None]
    is_self[~is_self.any(axis=1), -1] = True
    others = nearest[~is_self].reshape(len(X), n_neighbours)
    right = (classes[others] == classes[:, None]).mean(axis=0)
    return np.cumsum(right) / np.arange(1, n_neighbours + 1)
