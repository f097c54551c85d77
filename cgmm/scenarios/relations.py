"""Draw relations from known classes or positions: pairs, grids, and chunklets sorted by teachers.

Chapter 5 explains the functions, and most later chapters call them. The second part simulates
teachers who sort points, and chunklets (sets of points known to share a class), as shental2003 and
barhillel2005 do.

====  ===========================================================================
N     number of points; y_i the class of point i
P     number of pairs
K_c   number of connected components of the points
T, L  number of teachers, and of points that each one is given
M     number of classes (K elsewhere; M here and in the papers)
r     L / M, points per class that a teacher sees, e.g. 2
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
from scipy.special import bdtrc, gammainc

from cgmm.numerics import IntArray, Seed, check_integer, check_labels, generator

# ------------------------------------------------------------ pairs


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
    """Return the distinct pairs in the order of their first occurrence."""
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


# ------------------------------------------------------------ chunklets


def teachers(
    y: ArrayLike,
    n_teachers: int,
    n_points: int,
    *,
    minimal: bool = False,
    random_state: Seed = None,
) -> Relations:
    """Simulate distributed learning: independent teachers sort small piles of points.

    Each of T teachers gets L points at random and partitions them into classes: within a part all
    pairs are must-links, between two parts all pairs are cannot-links. Names of parts are not
    recorded, since each teacher uses others. Piles of different teachers may overlap.

    Parameters
    ----------
    y : (N,) int array_like
        True classes.
    n_teachers : int
        T.
    n_points : int
        L, points of each teacher, drawn without replacement; at most N.
    minimal : bool, default=False
        True: give the same information with as few pairs as possible, a chain through each part and
        one cannot-link between two parts. False: give all T L (L - 1) / 2 pairs.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the teachers' points.

    Returns
    -------
    Relations
        Relations, ordered by teacher; a pair that two teachers sorted appears twice.

    Raises
    ------
    ValueError
        If a number is out of range, or y is not a vector of integers.

    Notes
    -----
    [shental2003, sect. 3], where T and L are called N and K, and [barhillel2005, sect. 8.1.2].

    Examples
    --------
    >>> relations = teachers([0, 0, 1, 1], 1, 4, random_state=0)
    >>> np.sort(relations.must_link, axis=1).tolist()
    [[0, 1], [2, 3]]
    >>> len(relations.cannot_link)
    4
    >>> len(teachers([0, 0, 1, 1], 1, 4, minimal=True, random_state=0).cannot_link)
    1
    """
    y = check_labels("y", y, least=None)
    check_integer("n_teachers", n_teachers, 1)
    check_integer("n_points", n_points, 1, len(y))
    rng = generator(random_state)
    draws = [rng.choice(len(y), n_points, replace=False) for _ in range(n_teachers)]
    piles = np.array(draws, dtype=np.int64)
    # Sort the points of each pile by class, so that points of one class are contiguous.
    piles = np.take_along_axis(piles, np.argsort(y[piles], axis=1, kind="stable"), axis=1)
    i, j = np.triu_indices(n_points, 1)
    together = y[piles[:, i]] == y[piles[:, j]]
    apart = ~together
    if minimal:
        # Chains link each part; one cannot-link joins the first points of each two parts.
        is_first = np.ones(piles.shape, dtype=bool)
        is_first[:, 1:] = y[piles[:, 1:]] != y[piles[:, :-1]]
        together &= j == i + 1
        apart &= is_first[:, i] & is_first[:, j]
    pairs = np.stack([piles[:, i], piles[:, j]], axis=-1)
    return Relations(pairs[together], pairs[apart])


def expected_chunklet_size(ratio: float, n_classes: int | None = None) -> float:
    """Return the mean size of a teacher's chunklets, where a chunklet has at least two points.

    Parameters
    ----------
    ratio : float
        r = L / M, points of a teacher per class; positive.
    n_classes : int, default=None
        M, the number of equally probable classes. The number of points of a class is binomial,
        B(r M, 1/M), and r M must be an integer of at least two. None: the limit of many classes.

    Returns
    -------
    float
        E[x | x ≥ 2], about 2.9 at r = 2.

    Raises
    ------
    ValueError
        If ratio is not positive, or n_classes does not make ``ratio * n_classes`` such an integer.

    Notes
    -----
    [barhillel2005, App. D]: E = r (1 - e^-r) / (1 - (r + 1) e^-r), for classes of equal probability
    and a data set that is large compared with L.

    Examples
    --------
    >>> round(expected_chunklet_size(2), 2), round(expected_chunklet_size(2, n_classes=30), 2)
    (2.91, 2.89)
    """
    if not 0 < ratio < np.inf:
        raise ValueError(f"ratio is {ratio}; r = L / M must be positive and finite.")
    if n_classes is None:
        # [barhillel2005, App. D]; gammainc(2, r) = 1 - (r + 1) e^-r without cancellation
        return float(-ratio * np.expm1(-ratio) / gammainc(2, ratio))
    n_points = round(ratio * n_classes)
    if n_classes < 1 or n_points < 2 or not np.isclose(n_points, ratio * n_classes, rtol=1e-9):
        raise ValueError(
            f"ratio * n_classes is {ratio * n_classes:g}; it is the number of points of one "
            "teacher, and must be an integer of at least two."
        )
    # [barhillel2005, App. D], before its approximation of p(x = 0) and p(x = 1)
    in_chunklets = ratio * (1 - (1 - 1 / n_classes) ** (n_points - 1))
    return float(in_chunklets / bdtrc(1, n_points, 1 / n_classes))


def equal_chunklets(
    y: ArrayLike, size: int, n_points: int, *, random_state: Seed = None
) -> IntArray:
    """Draw chunklets of one size from a random part of the data.

    Parameters
    ----------
    y : (N,) int array_like
        True classes.
    size : int
        Points in each chunklet, all of one class; at least 2.
    n_points : int
        Number of points drawn at random to be divided into chunklets. In each class a remainder of
        fewer than ``size`` points gets no chunklet.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the points and of their division.

    Returns
    -------
    (N,) int array
        The chunklet of each point, 0, 1, ...; -1 for none. :func:`links_of_chunklets` converts
        it to must-links.

    Raises
    ------
    ValueError
        If a number is out of range.

    Notes
    -----
    [barhillel2005, sect. 8.1.6], with 30 % of the points and sizes 2 to 10.

    Examples
    --------
    >>> chunklets = equal_chunklets([0] * 5 + [1] * 5, 2, 10, random_state=0)
    >>> np.unique(chunklets, return_counts=True)
    (array([-1,  0,  1,  2,  3]), array([2, 2, 2, 2, 2]))
    """
    y = check_labels("y", y, least=None)
    check_integer("size", size, 2)
    check_integer("n_points", n_points, 0, len(y))
    drawn = generator(random_state).choice(len(y), n_points, replace=False)
    drawn = drawn[np.argsort(y[drawn], kind="stable")]
    _, starts, counts = np.unique(y[drawn], return_index=True, return_counts=True)
    position = np.arange(n_points) - np.repeat(starts, counts)
    used = position < np.repeat(counts // size * size, counts)
    chunklets = np.full(len(y), -1, dtype=np.int64)
    chunklets[drawn[used]] = np.arange(used.sum()) // size
    return chunklets


def links_of_chunklets(chunklets: ArrayLike) -> IntArray:
    """Return must-links that form the given chunklets, a chain through each.

    Parameters
    ----------
    chunklets : (N,) int array_like
        The chunklet of each point; -1 for none.

    Returns
    -------
    (P, 2) int array
        must_link; P is the number of points in chunklets minus the number of chunklets.

    Raises
    ------
    ValueError
        If chunklets is not a vector of integers.

    Examples
    --------
    >>> links_of_chunklets([4, -1, 7, 4, 4, 7]).tolist()
    [[0, 3], [3, 4], [2, 5]]
    """
    chunklets = check_labels("chunklets", chunklets)
    order = np.argsort(chunklets, kind="stable").astype(np.int64)
    order = order[chunklets[order] >= 0]
    chained = chunklets[order[:-1]] == chunklets[order[1:]]
    return np.stack([order[:-1], order[1:]], axis=1)[chained]
