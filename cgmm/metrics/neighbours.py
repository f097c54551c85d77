"""Purity of neighbourhoods: a score of a metric rather than a clustering.

Chapter 12 judges learnt metrics by it: points of a class should be each other's nearest neighbours.

Letters: N points in D dimensions; p the exponent of the distance.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import KDTree

from cgmm.numerics import BoolArray, FloatArray, IntArray, check_integer, check_labels


def cumulative_neighbour_purity(
    X: ArrayLike, y: ArrayLike, n_neighbours: int = 10, *, p: float = 2.0
) -> FloatArray:
    """Return the mean share of neighbours of the right class among the nearest 1, 2, ...

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
    [barhillel2005, sect. 8], the curves of its figures 4, 6, 7 and 9.

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
    # A point that coincides with others need not come first among its own nearest points.
    is_self: BoolArray = nearest == np.arange(len(X))[:, None]
    is_self[~is_self.any(axis=1), -1] = True
    others = nearest[~is_self].reshape(len(X), n_neighbours)
    right = (classes[others] == classes[:, None]).mean(axis=0)
    return np.cumsum(right) / np.arange(1, n_neighbours + 1)
