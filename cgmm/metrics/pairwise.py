"""Scores over pairs of points: precision, recall, Rand indices."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cgmm.metrics.checks import check_labels, require_that
from cgmm.numerics import IntArray


class PairwiseScores(NamedTuple):
    """Precision, recall and their harmonic mean over pairs of points."""

    precision: float
    """B / Q: of the pairs put into one cluster, the share that are of one class."""
    recall: float
    """B / T: of the pairs of one class, the share that are put into one cluster."""
    f_half: float
    """f½ = 2PR / (P + R) = 2B / (Q + T) [shental2003, sect. 3]."""


class _PairCounts(NamedTuple):
    both: int  # B
    same_class: int  # T
    same_cluster: int  # Q
    all: int  # M


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
    pairs = _count_pairs(*check_labels(y_true, y_pred))
    require_that(pairs.same_class, "no two points share a class in y_true: recall is undefined")
    require_that(
        pairs.same_cluster, "no two points share a cluster in y_pred: precision is undefined"
    )
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
    pairs = _count_pairs(*check_labels(y_true, y_pred))
    require_that(pairs.all, "a single point makes no pair: there is nothing to agree on")
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
    pairs = _count_pairs(*check_labels(y_true, y_pred))
    two_classes = pairs.all - pairs.same_class
    require_that(
        pairs.same_class, "no two points share a class in y_true: nothing to keep together"
    )
    require_that(two_classes, "all points share one class in y_true: nothing to keep apart")
    kept_together = pairs.both / pairs.same_class
    kept_apart = 1 - (pairs.same_cluster - pairs.both) / two_classes
    return (kept_together + kept_apart) / 2


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
