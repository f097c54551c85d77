"""How well does a clustering agree with the classes? Scores on points and on pairs of points.

A clustering has no names for its clusters, so a score must not depend on them. There are two ways
out. *Match* clusters with classes, then count points. Or ask only of each *pair* of points
whether the two belong together, which is also the question that must-links and cannot-links
answer.

Letters, as in the book:

====  ==========================================================================
N     number of points; c_i the class of point i, ĉ_i its predicted cluster
n_ab  number of points of class a in cluster b, the contingency table
T     pairs of one class, Σ_a C(Σ_b n_ab, 2)
Q     pairs of one cluster, Σ_b C(Σ_a n_ab, 2)
B     pairs of one class and of one cluster, Σ_ab C(n_ab, 2)
M     all unordered pairs, C(N, 2)
====  ==========================================================================

Every pair count comes from the non-empty cells of the table: at most N of them, so nothing here
walks over the N²/2 pairs or needs more memory than the labels do.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment
from scipy.spatial import KDTree

from cgmm.numerics import BoolArray, FloatArray, IntArray, check_pairs

__all__ = [
    "BrokenRelations",
    "PairwiseScores",
    "balanced_rand_index",
    "broken_relations",
    "cumulative_neighbour_purity",
    "match_labels",
    "matched_accuracy",
    "pairwise_scores",
    "rand_index",
]


class PairwiseScores(NamedTuple):
    """Precision, recall and their harmonic mean over pairs of points."""

    precision: float
    """B / Q: of the pairs put into one cluster, the share that are of one class."""
    recall: float
    """B / T: of the pairs of one class, the share that are put into one cluster."""
    f_half: float
    """f½ = 2PR / (P + R) = 2B / (Q + T) [shental2003, sect. 3]."""


class BrokenRelations(NamedTuple):
    """How many relations a clustering breaks."""

    must_link: int
    """Must-links whose two points are in different clusters."""
    cannot_link: int
    """Cannot-links whose two points share a cluster."""


class _PairCounts(NamedTuple):
    both: int  # B
    same_class: int  # T
    same_cluster: int  # Q
    all: int  # M


# ---------------------------------------------------------------------------- points


def matched_accuracy(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Share of points in the right class, under the best matching of clusters with classes.

    The matching is one-to-one. This is the classification accuracy of lu2007, sect. 5.1.2: the
    sum over the diagonal of the confusion matrix, once the clusters stand in the best order.
    Points of a cluster that is left without a class count as errors.

    Parameters
    ----------
    y_true, y_pred : (N,) int array_like
        Class and predicted cluster of each point; any integers, names play no part.

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
    classes, clusters = _labels(y_true, y_pred)
    return int(_best_matching(classes, clusters).hits.sum()) / len(classes)


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
        As :func:`matched_accuracy`.

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
    classes, clusters = _labels(y_true, y_pred)
    matching = _best_matching(classes, clusters)
    named = dict(zip(matching.clusters.tolist(), matching.classes.tolist(), strict=True))
    surplus = sorted(set(np.unique(clusters).tolist()) - named.keys())
    fresh = range(int(classes.max()) + 1, int(classes.max()) + 1 + len(surplus))
    return dict(sorted({**named, **dict(zip(surplus, fresh, strict=True))}.items()))


# ---------------------------------------------------------------------------- pairs


def pairwise_scores(y_true: ArrayLike, y_pred: ArrayLike) -> PairwiseScores:
    """Precision, recall and f½ over all pairs of points [shental2003, sect. 3].

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
        As :func:`matched_accuracy`; also if no two points share a class (recall has no meaning)
        or no two points share a cluster (precision has none).

    Examples
    --------
    >>> pairwise_scores([0, 0, 0, 1, 1], [0, 0, 1, 1, 1])
    PairwiseScores(precision=0.5, recall=0.5, f_half=0.5)

    One cluster for all retrieves every pair, and is right on two of five:

    >>> pairwise_scores([0, 0, 0, 1, 1], [4, 4, 4, 4, 4])
    PairwiseScores(precision=0.4, recall=1.0, f_half=0.5714285714285714)
    """
    pairs = _count_pairs(*_labels(y_true, y_pred))
    _require(pairs.same_class, "no two points share a class in y_true: recall is undefined")
    _require(pairs.same_cluster, "no two points share a cluster in y_pred: precision is undefined")
    return PairwiseScores(
        precision=pairs.both / pairs.same_cluster,
        recall=pairs.both / pairs.same_class,
        # [shental2003, sect. 3]  f½ = 2PR / (R + P), written so that B = 0 needs no special case
        f_half=2 * pairs.both / (pairs.same_cluster + pairs.same_class),
    )


def rand_index(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Share of pairs on which classes and clusters agree: together in both, or apart in both.

    Parameters
    ----------
    y_true, y_pred : (N,) int array_like
        Class and predicted cluster of each point.

    Returns
    -------
    float
        In [0, 1]. Not corrected for chance: with many classes nearly every pair is apart in both,
        and any clustering scores high. :func:`balanced_rand_index` answers that.

    Raises
    ------
    ValueError
        As :func:`matched_accuracy`; also if there are fewer than two points.

    Examples
    --------
    >>> rand_index([0, 0, 0, 1, 1], [0, 0, 1, 1, 1])
    0.6
    """
    pairs = _count_pairs(*_labels(y_true, y_pred))
    _require(pairs.all, "a single point makes no pair: there is nothing to agree on")
    # [barhillel2005, sect. 8.3]  Σ_{i>j} 1{1{c_i = c_j} = 1{ĉ_i = ĉ_j}} / (0.5 N (N - 1))
    apart_in_both = pairs.all - pairs.same_class - pairs.same_cluster + pairs.both
    return (pairs.both + apart_in_both) / pairs.all


def balanced_rand_index(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Rand index in which pairs of one class weigh as much, in all, as pairs of two classes.

    The probability that the clustering is right about a pair which is drawn, with equal chance,
    from the pairs of one class or from the pairs of two classes [barhillel2005, sect. 8.3, note 8].
    The note says "cluster" for what is drawn; here it is the true class, since a score that is
    weighted by the prediction would let the prediction choose its own weights.

    Parameters
    ----------
    y_true, y_pred : (N,) int array_like
        Class and predicted cluster of each point.

    Returns
    -------
    float
        In [0, 1]: ½ (share of same-class pairs kept together + share of two-class pairs kept
        apart). One cluster for all scores ½, and so does a cluster for each point.

    Raises
    ------
    ValueError
        As :func:`matched_accuracy`; also if no two points share a class, or all do.

    Examples
    --------
    >>> balanced_rand_index([0, 0, 0, 1, 1], [0, 0, 0, 1, 1])
    1.0
    >>> balanced_rand_index([0, 0, 0, 1, 1], [4, 4, 4, 4, 4])
    0.5
    """
    pairs = _count_pairs(*_labels(y_true, y_pred))
    two_classes = pairs.all - pairs.same_class
    _require(pairs.same_class, "no two points share a class in y_true: nothing to keep together")
    _require(two_classes, "all points share one class in y_true: nothing to keep apart")
    kept_together = pairs.both / pairs.same_class
    kept_apart = 1 - (pairs.same_cluster - pairs.both) / two_classes
    return (kept_together + kept_apart) / 2


# ---------------------------------------------------------------------------- relations


def broken_relations(
    y_pred: ArrayLike, must_link: ArrayLike = (), cannot_link: ArrayLike = ()
) -> BrokenRelations:
    """Count the relations that a clustering breaks.

    Parameters
    ----------
    y_pred : (N,) int array_like
        Predicted cluster of each point.
    must_link, cannot_link : (P, 2), (P', 2) int array_like
        Pairs of sample indices; either may be empty. A pair that stands there twice counts twice.

    Returns
    -------
    BrokenRelations
        ``must_link`` and ``cannot_link``, both zero for a clustering that honours every relation.

    Raises
    ------
    ValueError
        If the labels are no vector of integers, or a pair refers to no point.

    Examples
    --------
    >>> broken_relations([0, 0, 1, 1], must_link=[[0, 1], [1, 2]], cannot_link=[[0, 3], [2, 3]])
    BrokenRelations(must_link=1, cannot_link=1)
    """
    clusters = _integers(y_pred, "y_pred")
    must_a, must_b = clusters[check_pairs("must_link", must_link, len(clusters))].T
    cannot_a, cannot_b = clusters[check_pairs("cannot_link", cannot_link, len(clusters))].T
    return BrokenRelations(int(np.sum(must_a != must_b)), int(np.sum(cannot_a == cannot_b)))


# ---------------------------------------------------------------------------- neighbours


def cumulative_neighbour_purity(
    X: ArrayLike, y: ArrayLike, n_neighbours: int = 10, *, p: float = 2.0
) -> FloatArray:
    """Share of neighbours of the right class among the first 1, 2, ..., as a mean over points.

    It judges a metric rather than a clustering: points of a class should find each other first.

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
        Entry k - 1: the mean, over all points, of the share of their class among the k nearest
        others. A point is not its own neighbour.

    Raises
    ------
    ValueError
        If X and y do not fit together, hold NaN, or n_neighbours is out of range.

    Notes
    -----
    [barhillel2005, sect. 8], the curves of its figures 4, 6, 7 and 9.

    Examples
    --------
    >>> X = [[0.0], [1.0], [2.5], [10.0], [11.0]]
    >>> cumulative_neighbour_purity(X, [0, 0, 1, 1, 1], 2)
    array([0.8, 0.6])
    """
    X, classes = np.asarray(X, dtype=float), _integers(y, "y")
    if X.ndim != 2 or len(X) != len(classes) or not np.isfinite(X).all():
        raise ValueError(
            f"X has shape {X.shape}; it must have one row of finite numbers for each of the "
            f"{len(classes)} entries of y."
        )
    if not 1 <= n_neighbours <= len(X) - 1:
        raise ValueError(f"n_neighbours is {n_neighbours}; it must be from 1 to N - 1.")
    nearest: IntArray = np.asarray(KDTree(X).query(X, k=n_neighbours + 1, p=p)[1])
    # A point may share its place with others, and then need not be the first that it finds.
    itself: BoolArray = nearest == np.arange(len(X))[:, None]
    itself[~itself.any(axis=1), -1] = True
    others = nearest[~itself].reshape(len(X), n_neighbours)
    right = (classes[others] == classes[:, None]).mean(axis=0)
    return np.cumsum(right) / np.arange(1, n_neighbours + 1)


# ---------------------------------------------------------------------------- the contingency table


def _count_pairs(classes: IntArray, clusters: IntArray) -> _PairCounts:
    """B, T, Q and M from the non-empty cells of the contingency table."""
    (a, n_a), (b, n_b) = _codes(classes), _codes(clusters)
    cells = np.unique(a * len(n_b) + b, return_counts=True)[1]
    return _PairCounts(*map(_pairs_within, (cells, n_a, n_b, [len(classes)])))


def _codes(labels: IntArray) -> tuple[IntArray, IntArray]:
    """Number the distinct labels from 0: the number of each point, and how often each occurs."""
    _, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    return codes, counts


def _pairs_within(sizes: ArrayLike) -> int:
    """Σ n (n - 1) / 2 over groups of the given sizes, exact up to N of some 10⁹."""
    n = np.asarray(sizes, dtype=np.int64)
    return int((n * (n - 1) // 2).sum())


class _Matching(NamedTuple):
    classes: IntArray  # (m,) the matched classes, m = min(number of classes, number of clusters)
    clusters: IntArray  # (m,) their clusters
    hits: IntArray  # (m,) points that each match gets right


def _best_matching(classes: IntArray, clusters: IntArray) -> _Matching:
    """The one-to-one matching of clusters with classes that gets most points right."""
    class_names, a = np.unique(classes, return_inverse=True)
    cluster_names, b = np.unique(clusters, return_inverse=True)
    shape = len(class_names), len(cluster_names)
    table = np.bincount(a * shape[1] + b, minlength=shape[0] * shape[1]).reshape(shape)
    rows, columns = linear_sum_assignment(table, maximize=True)
    return _Matching(class_names[rows], cluster_names[columns], table[rows, columns])


# ---------------------------------------------------------------------------- checks


def _labels(y_true: ArrayLike, y_pred: ArrayLike) -> tuple[IntArray, IntArray]:
    """Both label vectors as arrays, or a ValueError that says what is wrong with which."""
    classes, clusters = _integers(y_true, "y_true"), _integers(y_pred, "y_pred")
    if len(classes) != len(clusters):
        raise ValueError(
            f"y_true has {len(classes)} labels and y_pred {len(clusters)}; "
            "give one label of each for every point."
        )
    return classes, clusters


def _integers(labels: ArrayLike, name: str) -> IntArray:
    labels = np.asarray(labels)
    if labels.ndim != 1 or labels.size == 0:
        raise ValueError(
            f"{name} has shape {labels.shape}; it must be one-dimensional and not empty."
        )
    if labels.dtype.kind not in "iub":
        raise ValueError(
            f"{name} is of type {labels.dtype}; labels must be integers. "
            "np.unique(labels, return_inverse=True)[1] numbers labels of any type."
        )
    return labels


def _require(count: int, complaint: str) -> None:
    if count == 0:
        raise ValueError(f"{complaint}. Score more points, or use matched_accuracy.")
