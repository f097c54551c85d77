"""Scores on points: match clusters with classes, then count the points in the right class.

A clustering has no names for its clusters, so a score must not depend on them. These functions give
clusters the names under which most points are right. All chapters use them.

Letters, as in the book: N points; n_ab the number of points of class a in cluster b, the
contingency table.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment

from cgmm.numerics import IntArray, check_labels


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
    classes, clusters = check_both(y_true, y_pred)
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
    classes, clusters = check_both(y_true, y_pred)
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


def check_both(y_true: ArrayLike, y_pred: ArrayLike) -> tuple[IntArray, IntArray]:
    """Return classes and clusters as arrays of arbitrary integers, or raise an error."""
    classes = check_labels("y_true", y_true, least=None)
    return classes, check_labels("y_pred", y_pred, len(classes), least=None)
