"""Where relations come from: the ways in which the papers make side information from known classes.

An experiment needs side information of which the truth is known. Each function here plays somebody
who knows something about the classes, and writes it down in the estimators' formats. None of them
looks at the points, only at their classes y, or at their places in a grid.

Letters, as in the book:

====  ===========================================================================
N     number of points; y_i the class of point i
P     number of pairs
T, L  number of teachers, and of points that each one is given
M     number of classes (K elsewhere; M here and in the papers)
r     L / M
q     probability that a relation is wrong
γ     certainty of a relation, 1 - q
w     log-odds of a relation, logit γ
====  ===========================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from cgmm.numerics import IntArray
from cgmm.scenarios.checks import check_classes, require_between

# None, an int, or a numpy Generator.
Seed = int | np.random.Generator | None


class Relations(NamedTuple):
    """Pairs of sample indices, as the estimators' fit takes them."""

    must_link: IntArray
    """(P, 2) int64, pairs said to be of one class."""
    cannot_link: IntArray
    """(P', 2) int64, pairs said to be of two classes."""


def links_of_chunklets(chunklets: ArrayLike) -> IntArray:
    """Must-links that make the given chunklets: a chain through each.

    Parameters
    ----------
    chunklets : (N,) int array_like
        The chunklet of each point; -1 for none.

    Returns
    -------
    (P, 2) int array
        must_link; P is the number of points in chunklets less the number of chunklets.

    Raises
    ------
    ValueError
        If chunklets is not a vector of integers.

    Examples
    --------
    >>> links_of_chunklets([4, -1, 7, 4, 4, 7]).tolist()
    [[0, 3], [3, 4], [2, 5]]
    """
    chunklets = check_classes(chunklets, "chunklets")
    order = np.argsort(chunklets, kind="stable").astype(np.int64)
    order = order[chunklets[order] >= 0]
    chained = chunklets[order[:-1]] == chunklets[order[1:]]
    return np.stack([order[:-1], order[1:]], axis=1)[chained]


# ---------------------------------------------------------------------------- pairs


def random_pairs(y: ArrayLike, n_pairs: int, *, random_state: Seed = None) -> Relations:
    """Pairs that do not overlap, drawn without replacement, and what they are.

    Parameters
    ----------
    y : (N,) int array_like
        True classes.
    n_pairs : int
        P; no point is in two pairs, so at most N / 2.
    random_state : int, Generator or None, default=None
        Which pairs.

    Returns
    -------
    Relations
        P relations in all: must-links where the two share a class, cannot-links elsewhere.

    Raises
    ------
    ValueError
        If there are too few points, or y is not a vector of integers.

    Notes
    -----
    [lu2007, sect. 5.1.1]. Every point is in at most one relation, so inference is in closed form.

    Examples
    --------
    >>> must_link, cannot_link = random_pairs([0, 0, 0, 1, 1, 1], 3, random_state=0)
    >>> len(must_link) + len(cannot_link), len(np.unique(np.concatenate([must_link, cannot_link])))
    (3, 6)
    """
    y = check_classes(y)
    require_between(n_pairs, 0, len(y) // 2, "n_pairs")
    pairs = np.random.default_rng(random_state).permutation(len(y))[: 2 * n_pairs].reshape(-1, 2)
    together = y[pairs[:, 0]] == y[pairs[:, 1]]
    return Relations(pairs[together], pairs[~together])


def pairs_until(y: ArrayLike, n_components: int, *, random_state: Seed = None) -> IntArray:
    """Random must-links, added until the data fall into so many connected components.

    Parameters
    ----------
    y : (N,) int array_like
        True classes.
    n_components : int
        K_c, from the number of classes to N. The paper takes 0.9 N for little and 0.7 N for much
        side information. Close to the number of classes it takes nearly all pairs.
    random_state : int, Generator or None, default=None
        Which pairs.

    Returns
    -------
    (P, 2) int array
        must_link: different pairs, in random order, all pairs of one class equally likely. The last
        one brings the number of components down to ``n_components``.

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
    y = check_classes(y)
    require_between(n_components, len(np.unique(y)), len(y), "n_components")
    rng = np.random.default_rng(random_state)
    pairs = np.empty((0, 2), dtype=np.int64)
    n_draws = len(y) - n_components
    while _count_components(pairs, len(y)) > n_components:
        pairs = _first_occurrences(np.concatenate([pairs, _same_class_pairs(y, n_draws, rng)]))
        n_draws *= 2
    return pairs[: _shortest_prefix(pairs, len(y), n_components)]


def _same_class_pairs(y: IntArray, n_draws: int, rng: np.random.Generator) -> IntArray:
    """(n_draws, 2) pairs i < j of one class, each such pair equally likely, with replacement."""
    order = np.argsort(y, kind="stable").astype(np.int64)
    _, starts, codes, counts = np.unique(
        y[order], return_index=True, return_inverse=True, return_counts=True
    )
    partners = (counts - 1)[codes].astype(float)
    first = rng.choice(len(y), n_draws, p=partners / partners.sum())
    start, count = starts[codes[first]], counts[codes[first]]
    second = start + (first - start + rng.integers(1, count)) % count
    return np.sort(np.stack([order[first], order[second]], axis=1), axis=1)


def _first_occurrences(pairs: IntArray) -> IntArray:
    """Drop repetitions; what remains keeps its order."""
    _, first = np.unique(pairs, axis=0, return_index=True)
    return pairs[np.sort(first)]


def _shortest_prefix(pairs: IntArray, n_points: int, n_components: int) -> int:
    """How many of the pairs, from the first, bring the points down to so many components."""
    too_few, enough = -1, len(pairs)
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        if _count_components(pairs[:middle], n_points) > n_components:
            too_few = middle
        else:
            enough = middle
    return enough


def _count_components(pairs: IntArray, n_points: int) -> int:
    ties = (np.ones(len(pairs), dtype=bool), (pairs[:, 0], pairs[:, 1]))
    matrix = sparse.coo_array(ties, shape=(n_points, n_points))
    n_parts: Any = connected_components(matrix, directed=False, return_labels=False)
    return int(n_parts)


# ---------------------------------------------------------------------------- grids and series


def grid_neighbours(shape: int | Sequence[int]) -> IntArray:
    """Pairs of neighbours in a grid: four to a pixel, two to a moment.

    Parameters
    ----------
    shape : int or sequence of int
        Extent along each axis: ``(rows, columns)`` of an image, a length for a series in time.

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
    places = np.arange(np.prod(shape), dtype=np.int64).reshape(shape)
    along = [np.moveaxis(places, axis, 0) for axis in range(len(shape))]
    return np.concatenate([np.stack([p[:-1].ravel(), p[1:].ravel()], axis=1) for p in along])
