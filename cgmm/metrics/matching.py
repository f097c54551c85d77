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

from cgmm.metrics.checks import check_labels
from cgmm.numerics import IntArray

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
    classes, clusters = check_labels(y_true, y_pred)
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
    classes, clusters = check_labels(y_true, y_pred)
    matching = _best_matching(classes, clusters)
    named = dict(zip(matching.clusters.tolist(), matching.classes.tolist(), strict=True))
    surplus = sorted(set(np.unique(clusters).tolist()) - named.keys())
    fresh = range(int(classes.max()) + 1, int(classes.max()) + 1 + len(surplus))
    return dict(sorted({**named, **dict(zip(surplus, fresh, strict=True))}.items()))


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
