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

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.special import bdtrc, expit, gammainc, logit

from cgmm.numerics import BoolArray, FloatArray, IntArray, check_pairs

__all__ = [
    "Relations",
    "allowed_classes",
    "certainty_from_weight",
    "class_set_stars",
    "equal_chunklets",
    "estimate_flip_rate",
    "expected_chunklet_size",
    "flip",
    "grid_neighbours",
    "links_between_class_sets",
    "links_of_chunklets",
    "pairs_until",
    "partial_labels",
    "preferences",
    "random_pairs",
    "teachers",
    "weight_from_certainty",
]

# None, an int, or a numpy Generator.
Seed = int | np.random.Generator | None


class Relations(NamedTuple):
    """Pairs of sample indices, as the estimators' fit takes them."""

    must_link: IntArray
    """(P, 2) int64, pairs said to be of one class."""
    cannot_link: IntArray
    """(P', 2) int64, pairs said to be of two classes."""


# ---------------------------------------------------------------------------- teachers


def teachers(
    y: ArrayLike,
    n_teachers: int,
    n_points: int,
    *,
    minimal: bool = False,
    random_state: Seed = None,
) -> Relations:
    """Distributed learning: teachers who do not know each other sort small piles of points.

    Each of T teachers is given L points at random and partitions them into classes, under names of
    their own: within a part all pairs are must-links, between two parts all pairs are cannot-links.
    Names are lost, and piles of different teachers may overlap.

    Parameters
    ----------
    y : (N,) int array_like
        True classes.
    n_teachers : int
        T.
    n_points : int
        L, points that each teacher is given, drawn without replacement; at most N.
    minimal : bool, default=False
        Say the same with as few pairs as possible: a chain through each part, and one cannot-link
        between two parts. The default says it with all T L (L - 1) / 2 pairs.
    random_state : int, Generator or None, default=None
        Who gets which points.

    Returns
    -------
    Relations
        Teacher by teacher; a pair that two teachers saw stands there twice.

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
    y = _classes(y)
    _require_between(n_teachers, 1, None, "n_teachers")
    _require_between(n_points, 1, len(y), "n_points")
    rng = np.random.default_rng(random_state)
    draws = [rng.choice(len(y), n_points, replace=False) for _ in range(n_teachers)]
    piles = np.array(draws, dtype=np.int64)
    piles = np.take_along_axis(piles, np.argsort(y[piles], axis=1, kind="stable"), axis=1)
    i, j = np.triu_indices(n_points, 1)
    together = y[piles[:, i]] == y[piles[:, j]]
    apart = ~together
    if minimal:
        is_first = np.ones(piles.shape, dtype=bool)
        is_first[:, 1:] = y[piles[:, 1:]] != y[piles[:, :-1]]
        together &= j == i + 1
        apart &= is_first[:, i] & is_first[:, j]
    pairs = np.stack([piles[:, i], piles[:, j]], axis=-1)
    return Relations(pairs[together], pairs[apart])


def expected_chunklet_size(ratio: float, n_classes: int | None = None) -> float:
    """How large a teacher's chunklets are on average, where only two points or more make one.

    Parameters
    ----------
    ratio : float
        r = L / M, points that a teacher is given for each class; positive.
    n_classes : int, default=None
        M equally probable classes: the number of points of a class is then binomial, B(r M, 1/M),
        and r M must be an integer, at least two. None: the limit of many classes.

    Returns
    -------
    float
        E[x | x ≥ 2]. About 2.9 at r = 2.

    Raises
    ------
    ValueError
        If ratio is not positive, or n_classes does not make ``ratio * n_classes`` such an integer.

    Notes
    -----
    [barhillel2005, App. D]: E = r (1 - e^-r) / (1 - (r + 1) e^-r), for classes of equal probability
    and a data set that is large beside L.

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
    """Chunklets of one size from a random part of the data.

    Parameters
    ----------
    y : (N,) int array_like
        True classes.
    size : int
        Points in each chunklet, all of one class; at least 2.
    n_points : int
        Points drawn at random to be divided into chunklets. Of each class the remainder, fewer than
        ``size`` points, stays outside.
    random_state : int, Generator or None, default=None
        Which points, and how they are divided.

    Returns
    -------
    (N,) int array
        The chunklet of each point, 0, 1, ...; -1 for none. :func:`links_of_chunklets` makes
        must-links of it.

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
    y = _classes(y)
    _require_between(size, 2, None, "size")
    _require_between(n_points, 0, len(y), "n_points")
    drawn = np.random.default_rng(random_state).choice(len(y), n_points, replace=False)
    drawn = drawn[np.argsort(y[drawn], kind="stable")]
    _, starts, counts = np.unique(y[drawn], return_index=True, return_counts=True)
    place = np.arange(n_points) - np.repeat(starts, counts)
    used = place < np.repeat(counts // size * size, counts)
    chunklets = np.full(len(y), -1, dtype=np.int64)
    chunklets[drawn[used]] = np.arange(used.sum()) // size
    return chunklets


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
    chunklets = _classes(chunklets, "chunklets")
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
    y = _classes(y)
    _require_between(n_pairs, 0, len(y) // 2, "n_pairs")
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
    y = _classes(y)
    _require_between(n_components, len(np.unique(y)), len(y), "n_components")
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


# ---------------------------------------------------------------------------- labels, class sets


def partial_labels(y: ArrayLike, n_labelled: int, *, random_state: Seed = None) -> IntArray:
    """Keep the labels of some points, drawn at random, and hide the others.

    Parameters
    ----------
    y : (N,) int array_like
        True classes, from 0 on.
    n_labelled : int
        How many labels stay.
    random_state : int, Generator or None, default=None
        Which ones.

    Returns
    -------
    (N,) int array
        labels: y where it is known, -1 elsewhere.

    Raises
    ------
    ValueError
        If a number is out of range.

    Notes
    -----
    The labelled and unlabelled parts of [schmidt2016, sect. 1] and green.

    Examples
    --------
    >>> labels = partial_labels([0, 1, 2, 0, 1, 2], 2, random_state=0)
    >>> int((labels >= 0).sum())
    2
    """
    y = _classes(y)
    _require_between(n_labelled, 0, len(y), "n_labelled")
    _require_entries(y, 0, None, "y")
    shown = np.random.default_rng(random_state).choice(len(y), n_labelled, replace=False)
    labels = np.full(len(y), -1, dtype=np.int64)
    labels[shown] = y[shown]
    return labels


def allowed_classes(
    set_of: ArrayLike, class_sets: Sequence[Iterable[int]], n_classes: int
) -> BoolArray:
    """Which classes each point may have, where only a set of classes is known of it.

    Parameters
    ----------
    set_of : (N,) int array_like
        The class set of each point, an index into ``class_sets``; -1 where nothing is known.
    class_sets : sequence of iterables of int
        The classes in each set, e.g. ``[[0, 1, 2], [3, 4], [5]]``.
    n_classes : int
        Number of classes.

    Returns
    -------
    (N, n_classes) bool array
        labels, as a mask.

    Raises
    ------
    ValueError
        If a set is empty, or an index or a class does not exist.

    Notes
    -----
    [lu2007, sect. 5.2.1]. The mask says more than cannot-links between the sets do: it names the
    classes.

    Examples
    --------
    >>> allowed_classes([0, 1, -1], [[0, 1], [2]], 3).astype(int)
    array([[1, 1, 0],
           [0, 0, 1],
           [1, 1, 1]])
    """
    set_of = _classes(set_of, "set_of")
    masks = np.zeros((len(class_sets) + 1, n_classes), dtype=bool)
    masks[-1] = True  # where -1 points
    for index, members in enumerate(class_sets):
        members = np.asarray(list(members), dtype=int)
        if len(members) == 0 or members.min() < 0 or members.max() >= n_classes:
            raise ValueError(
                f"class set {index} is {members.tolist()}; it must have at least one class, "
                f"from 0 to {n_classes - 1}."
            )
        masks[index, members] = True
    _require_entries(set_of, -1, len(class_sets) - 1, "set_of")
    return masks[set_of]


def links_between_class_sets(set_of: ArrayLike) -> IntArray:
    """All cannot-links that follow from class sets: two points of different sets differ in class.

    Parameters
    ----------
    set_of : (N,) int array_like
        The class set of each point; the sets are disjoint. -1 where nothing is known.

    Returns
    -------
    (P, 2) int array
        cannot_link, every pair of known points from two sets, i < j. This is a dense network: with
        more than a few points use :func:`class_set_stars` or :func:`allowed_classes`.

    Raises
    ------
    ValueError
        If set_of is not a vector of integers.

    Notes
    -----
    [lu2007, sect. 5.2.1].

    Examples
    --------
    >>> links_between_class_sets([0, 0, 1, -1, 2]).tolist()
    [[0, 2], [0, 4], [1, 2], [1, 4], [2, 4]]
    """
    set_of = _classes(set_of, "set_of")
    known = np.flatnonzero(set_of >= 0)
    i, j = np.triu_indices(len(known), 1)
    pairs = np.stack([known[i], known[j]], axis=1)
    return pairs[set_of[pairs[:, 0]] != set_of[pairs[:, 1]]]


def class_set_stars(
    set_of: ArrayLike, centre: int, n_partners: int = 6, *, random_state: Seed = None
) -> IntArray:
    """Cannot-links from each point of one class set to a few points of others, used once each.

    The network falls into stars of 1 + ``n_partners`` points, which exact inference likes.

    Parameters
    ----------
    set_of : (N,) int array_like
        The class set of each point; -1 where nothing is known.
    centre : int
        The set whose points become centres.
    n_partners : int, default=6
        Cannot-links of each centre, to points of other sets drawn without replacement.
    random_state : int, Generator or None, default=None
        Which partners.

    Returns
    -------
    (P, 2) int array
        cannot_link: the centre first; P is the number of centres times ``n_partners``.

    Raises
    ------
    ValueError
        If there is no centre, or there are too few partners.

    Notes
    -----
    [lu2007, sect. 5.2.1]: six snow blocks for each block without snow.

    Examples
    --------
    >>> cannot_link = class_set_stars([0, 0, 1, 1, 1, 1], centre=0, n_partners=2, random_state=0)
    >>> cannot_link[:, 0].tolist(), sorted(cannot_link[:, 1].tolist())
    ([0, 0, 1, 1], [2, 3, 4, 5])
    """
    set_of = _classes(set_of, "set_of")
    _require_between(n_partners, 1, None, "n_partners")
    if centre < 0 or not (set_of == centre).any():
        raise ValueError(f"no point is of class set {centre}, so nothing can be a centre.")
    centres = np.repeat(np.flatnonzero(set_of == centre), n_partners)
    others = np.flatnonzero((set_of >= 0) & (set_of != centre))
    if len(others) < len(centres):
        raise ValueError(
            f"{len(centres)} partners are needed, {n_partners} for each centre, but only "
            f"{len(others)} points are known to be of other sets; lower n_partners, or take "
            "another set for the centres."
        )
    partners = np.random.default_rng(random_state).choice(others, len(centres), replace=False)
    return np.stack([centres, partners], axis=1)


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


# ---------------------------------------------------------------------------- noise and certainty


def flip(relations: Relations, q: float, *, random_state: Seed = None) -> Relations:
    """Flipping noise: each relation turns into its opposite with probability q.

    Parameters
    ----------
    relations : Relations
        True relations.
    q : float
        Probability of a flip, from 0 to 0.5.
    random_state : int, Generator or None, default=None
        Which relations.

    Returns
    -------
    Relations
        As many in all; those that were flipped stand behind those that were not.

    Raises
    ------
    ValueError
        If q is out of range.

    Notes
    -----
    [lu2007, sect. 5.1.4], with q = 0.15 and 0.3; the weight to go with it is that of eq. 5.1,
    ``weight_from_certainty(1 - q)``.

    Examples
    --------
    >>> true = Relations(np.array([[0, 1], [2, 3]]), np.array([[4, 5]]))
    >>> flip(true, 0.0).must_link.tolist()
    [[0, 1], [2, 3]]
    >>> noisy = flip(true, 0.5, random_state=0)
    >>> noisy.must_link.tolist(), noisy.cannot_link.tolist()
    ([[0, 1], [4, 5]], [[2, 3]])
    """
    if not 0 <= q <= 0.5:
        raise ValueError(f"q is {q}; a probability of flips must be from 0 to 0.5.")
    must, cannot = (check_pairs(name, pairs) for name, pairs in zip(_NAMES, relations, strict=True))
    rng = np.random.default_rng(random_state)
    wrong, bad = rng.random(len(must)) < q, rng.random(len(cannot)) < q
    return Relations(
        np.concatenate([must[~wrong], cannot[bad]]), np.concatenate([cannot[~bad], must[wrong]])
    )


def preferences(
    must_link: ArrayLike = (),
    cannot_link: ArrayLike = (),
    *,
    certainty: float | ArrayLike,
) -> FloatArray:
    """Soft relations: pairs with log-odds that they belong together, from how certain one is.

    Parameters
    ----------
    must_link, cannot_link : (P, 2), (P', 2) int array_like
        Pairs said to be of one class, and of two; either may be empty.
    certainty : float or (P + P',) array_like
        γ, the probability that a relation is right: one for all, or one each, must-links first.

    Returns
    -------
    (P + P', 3) array
        Columns i, j, w, with w = logit γ for must-links and -logit γ for cannot-links; ±inf at
        γ = 1.

    Raises
    ------
    ValueError
        If a certainty is not a probability, or their number does not fit.

    Notes
    -----
    [lu2007, eq. 2.15]; our w counts each pair once, so it is the paper's 2 W^p.

    Examples
    --------
    >>> preferences([[0, 1]], [[2, 3]], certainty=0.8).round(3)
    array([[ 0.   ,  1.   ,  1.386],
           [ 2.   ,  3.   , -1.386]])
    """
    must, cannot = check_pairs("must_link", must_link), check_pairs("cannot_link", cannot_link)
    n_relations = len(must) + len(cannot)
    weights = weight_from_certainty(certainty)
    if np.ndim(weights) and np.shape(weights) != (n_relations,):
        raise ValueError(
            f"certainty has shape {np.shape(weights)} for {n_relations} relations; give one number "
            "for all, or one for each, must-links first."
        )
    # [lu2007, eq. 2.15]
    # [lu2007, eqs. 5.1 and B.3], with q = 1 - γ and w = 2 W^p
    w = np.repeat([1.0, -1.0], [len(must), len(cannot)]) * weights
    return np.column_stack([np.concatenate([must, cannot]), w])


def weight_from_certainty(certainty: float | ArrayLike) -> float | FloatArray:
    """Log-odds w = logit γ of a relation that is right with probability γ.

    Parameters
    ----------
    certainty : float or array_like
        γ in [0, 1]. Below 0.5 the weight is negative: the opposite relation is the likelier one.

    Returns
    -------
    float or array
        w; infinite, hence hard, at γ = 1. An edge adds w to the log-weight of its two ends' being
        equal.

    Raises
    ------
    ValueError
        If γ is not a probability.

    Notes
    -----
    [lu2007, eqs. 2.15 and 5.2] with w = 2 W^p.

    Examples
    --------
    >>> weight_from_certainty(0.5), round(weight_from_certainty(0.85), 4), weight_from_certainty(1)
    (0.0, 1.7346, inf)
    """
    gamma = np.asarray(certainty, dtype=float)
    wrong = ~((gamma >= 0) & (gamma <= 1))
    if wrong.any():
        raise ValueError(f"a certainty of {gamma[wrong].flat[0]:g} is not a probability.")
    # [lu2007, eq. 2.15]
    w = logit(gamma)
    return w if gamma.ndim else float(w)


def certainty_from_weight(weight: float | ArrayLike) -> float | FloatArray:
    """The certainty γ = 1 / (1 + e^-w) that log-odds stand for; undoes weight_from_certainty.

    Parameters
    ----------
    weight : float or array_like
        w.

    Returns
    -------
    float or array
        γ.

    Examples
    --------
    >>> round(certainty_from_weight(weight_from_certainty(0.7)), 12)
    0.7
    """
    gamma = expit(np.asarray(weight, dtype=float))
    return gamma if gamma.ndim else float(gamma)


def estimate_flip_rate(
    y: ArrayLike, must_link: ArrayLike = (), cannot_link: ArrayLike = ()
) -> float:
    """Maximum-likelihood estimate of q: the share of relations that a labelled example breaks.

    Parameters
    ----------
    y : (N,) int array_like
        True classes of an example, such as a segmented image.
    must_link, cannot_link : (P, 2), (P', 2) int array_like
        Relations as somebody, or a rule such as :func:`grid_neighbours`, states them.

    Returns
    -------
    float
        q̂ in [0, 1]. Zero if no relation is broken: then ``1 - q`` makes hard relations, which a
        small example hardly justifies.

    Raises
    ------
    ValueError
        If there is no relation, or one refers to no point.

    Notes
    -----
    [lu2007, sect. 2.4.2], whose adjacent pairs are all must-links.

    Examples
    --------
    >>> y = np.array([[0, 0, 1], [0, 0, 1]]).ravel()
    >>> round(estimate_flip_rate(y, grid_neighbours((2, 3))), 3)
    0.286
    """
    y = _classes(y)
    must = check_pairs("must_link", must_link, len(y))
    cannot = check_pairs("cannot_link", cannot_link, len(y))
    pairs = np.concatenate([must, cannot])
    if len(pairs) == 0:
        raise ValueError("there is no relation from which to estimate q; give at least one pair.")
    together = y[pairs[:, 0]] == y[pairs[:, 1]]
    said_together = np.arange(len(pairs)) < len(must)
    # [lu2007, sect. 2.4.2]
    return float(np.mean(together != said_together))


# ---------------------------------------------------------------------------- checks

_NAMES = ("must_link", "cannot_link")


def _classes(y: ArrayLike, name: str = "y") -> IntArray:
    y = np.asarray(y)
    if y.ndim != 1 or y.size == 0 or y.dtype.kind not in "iub":
        raise ValueError(
            f"{name} has shape {y.shape} and type {y.dtype}; it must be one-dimensional, of "
            "integers, and not empty."
        )
    return y


def _require_between(value: int, low: int, high: int | None, name: str) -> None:
    if value < low or (high is not None and value > high):
        limits = f"at least {low}" if high is None else f"from {low} to {high}"
        raise ValueError(f"{name} is {value}; it must be {limits}.")


def _require_entries(array: IntArray, low: int, high: int | None, name: str) -> None:
    """Check every entry, and name the first one that is out of range by its place."""
    wrong = np.argwhere((array < low) | (False if high is None else array > high))
    if len(wrong):
        place = tuple(wrong[0].tolist())
        _require_between(array[place], low, high, f"{name}[{', '.join(map(str, place))}]")
