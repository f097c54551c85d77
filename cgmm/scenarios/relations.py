"""Pairs of points with their relations, drawn at random or read off a grid.

The functions derive relations from known classes or from positions. Chapter 5 explains them, and
most later chapters call them.

====  ===========================================================================
N     number of points; y_i the class of point i
P     number of pairs
K_c   number of connected components of the points
====  ===========================================================================
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from cgmm.numerics import IntArray, Seed, check_integer, check_labels, generator


class Relations(NamedTuple):
    """Pairs of sample indices, as the estimators' fit takes them."""

    must_link: IntArray
    """(P, 2) int64, pairs of points of one class."""
    cannot_link: IntArray
    """(P', 2) int64, pairs of points of two classes."""


def random_pairs(y: ArrayLike, n_pairs: int, *, random_state: Seed = None) -> Relations:
    """Draw disjoint pairs of points, and return them as must-links and cannot-links.

    Parameters
    ----------
    y : (N,) int array_like
        True classes.
    n_pairs : int
        P; no point is in two pairs, so at most N / 2.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the choice of pairs.

    Returns
    -------
    Relations
        P relations in total: must-links if both points share a class, otherwise cannot-links.

    Raises
    ------
    ValueError
        If there are too few points, or y is not a vector of integers.

    Notes
    -----
    [lu2007, sect. 5.1.1]. Every point is in at most one relation, so inference has a closed form.

    Examples
    --------
    >>> must_link, cannot_link = random_pairs([0, 0, 0, 1, 1, 1], 3, random_state=0)
    >>> len(must_link) + len(cannot_link), len(np.unique(np.concatenate([must_link, cannot_link])))
    (3, 6)
    """
    y = check_labels("y", y, least=None)
    if n_pairs > len(y) // 2:
        raise ValueError(
            f"n_pairs is {n_pairs}; it must be an integer from 0 to {len(y) // 2}, since no two "
            f"pairs share one of {len(y)} points. Others: rng.integers({len(y)}, size=(P, 2))."
        )
    check_integer("n_pairs", n_pairs, 0, len(y) // 2)
    pairs = generator(random_state).permutation(len(y))[: 2 * n_pairs].reshape(-1, 2)
    together = y[pairs[:, 0]] == y[pairs[:, 1]]
    return Relations(pairs[together], pairs[~together])


def pairs_until(y: ArrayLike, n_components: int, *, random_state: Seed = None) -> IntArray:
    """Draw random must-links until the data form a given number of connected components.

    Parameters
    ----------
    y : (N,) int array_like
        True classes.
    n_components : int
        K_c, from the number of classes to N. The paper takes 0.9 N for little and 0.7 N for much
        side information. Values close to the number of classes need nearly all pairs.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the choice of pairs.

    Returns
    -------
    (P, 2) int array
        must_link: distinct pairs in random order, where all pairs of one class are equally likely.
        The last one reduces the number of components to ``n_components``.

    Raises
    ------
    ValueError
        If n_components is out of range, or y is not a vector of integers.

    Notes
    -----
    [barhillel2005, sect. 8.3], after Xing et al. (2003).

    Examples
    --------
    >>> must_link = pairs_until([0] * 10 + [1] * 10, 18, random_state=0)
    >>> must_link.shape
    (2, 2)
    """
    y = check_labels("y", y, least=None)
    check_integer("n_components", n_components, len(np.unique(y)), len(y))
    rng = generator(random_state)
    pairs = np.empty((0, 2), dtype=np.int64)
    n_draws = len(y) - n_components
    while _count_components(pairs, len(y)) > n_components:
        pairs = _drop_repeated(np.concatenate([pairs, _draw_same_class_pairs(y, n_draws, rng)]))
        n_draws *= 2
    # More pairs never increase the number of components, so bisection finds the smallest number.
    enough = bisect_left(
        range(len(pairs)), -n_components, key=lambda n: -_count_components(pairs[:n], len(y))
    )
    return pairs[:enough]


def _draw_same_class_pairs(y: IntArray, n_draws: int, rng: np.random.Generator) -> IntArray:
    """Draw (n_draws, 2) pairs i < j of one class uniformly, with replacement."""
    order = np.argsort(y, kind="stable").astype(np.int64)
    _, starts, codes, counts = np.unique(
        y[order], return_index=True, return_inverse=True, return_counts=True
    )
    partners = (counts - 1)[codes].astype(float)
    first = rng.choice(len(y), n_draws, p=partners / partners.sum())
    start, count = starts[codes[first]], counts[codes[first]]
    second = start + (first - start + rng.integers(1, count)) % count
    return np.sort(np.stack([order[first], order[second]], axis=1), axis=1)


def _drop_repeated(pairs: IntArray) -> IntArray:
    """Drop repeated pairs; the others keep their order."""
    _, first = np.unique(pairs, axis=0, return_index=True)
    return pairs[np.sort(first)]


def _count_components(pairs: IntArray, n_points: int) -> int:
    links = (np.ones(len(pairs), dtype=bool), (pairs[:, 0], pairs[:, 1]))
    matrix = sparse.coo_array(links, shape=(n_points, n_points))
    n_parts: Any = connected_components(matrix, directed=False, return_labels=False)
    return int(n_parts)


def grid_neighbours(shape: int | Sequence[int]) -> IntArray:
    """Return the pairs of neighbours in a grid: four neighbours per pixel, two per time step.

    Parameters
    ----------
    shape : int or sequence of int
        Extent along each axis: ``(rows, columns)`` of an image, or the length of a time series.

    Returns
    -------
    (P, 2) int array
        Pairs i < j that differ by one along one axis. Points are numbered row by row, as by
        ``image.ravel()``.

    Raises
    ------
    ValueError
        If an extent is not positive.

    Notes
    -----
    The soft links of [lu2007, sect. 5.2.2], once ``preferences`` gives them a weight.

    Examples
    --------
    >>> grid_neighbours((2, 2)).tolist()
    [[0, 2], [1, 3], [0, 1], [2, 3]]
    >>> grid_neighbours(3).tolist()
    [[0, 1], [1, 2]]
    """
    shape = tuple(np.atleast_1d(shape).tolist())
    if min(shape, default=0) < 1:
        raise ValueError(f"shape is {shape}; every extent must be positive.")
    indices = np.arange(np.prod(shape), dtype=np.int64).reshape(shape)
    along = [np.moveaxis(indices, axis, 0) for axis in range(len(shape))]
    return np.concatenate([np.stack([p[:-1].ravel(), p[1:].ravel()], axis=1) for p in along])
