"""Asking by distance alone: farthest first, then at random or by the min-max rule.

No model is needed, only distances and somebody to ask. A *neighbourhood* is a set of points known
to belong together; all neighbourhoods are known to be apart. *Explore* asks of the point farthest
from all of them until there are K; *consolidate* goes on with points drawn at random [Basu et al.],
or again with the farthest [Mallapragada et al.], each asked beside the nearest centroids first.

=======  ======================================================================
N, D     number of points, of dimensions; K neighbourhoods looked for
x        the point asked of
h        a neighbourhood
=======  ======================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array

from cgmm.given import explain_missing
from cgmm.numerics import FloatArray, IntArray, check_integer

THEN = ("random", "min_max")


class Asked(NamedTuple):
    """What was asked and what follows from it."""

    answers: IntArray
    """(P, 3) rows i, j, said: 1 if "together", 0 if "apart"; in the order of asking."""
    neighbourhoods: IntArray
    """(N,) the neighbourhood of each point, from 0 as they were found, -1 where not known."""


def farthest_first(
    X: ArrayLike,
    ask: Callable[[int, int], bool],
    n_answers: int,
    n_neighbourhoods: int,
    *,
    then: str = "random",
    random_state: int | np.random.Generator | None = None,
) -> Asked:
    """Ask of the points farthest from what is known, until there is a point of each class.

    Parameters
    ----------
    X : (N, D) array_like
        The points, in a space whose Euclidean distances mean something.
    ask : callable
        From two row numbers to whether the points belong together.
    n_answers : int
        How many questions may be asked.
    n_neighbourhoods : int
        K, the number of classes. When there are as many, a point apart from all but one is known
        to be of that one, and is not asked about.
    then : {"random", "min_max"}, default="random"
        Of which points to ask after that: at random, or still the farthest.
    random_state : int, Generator or None, default=None
        The first point, and those at random.

    Returns
    -------
    Asked
        Answers, at most ``n_answers``, fewer where all points are known; and neighbourhoods.
        ``neighbourhoods`` are labels for ``fit(X, labels=...)`` where answers are certain.

    Raises
    ------
    ValueError
        If ``X`` is no finite table, a number is not positive, or ``then`` is unknown.

    Notes
    -----
    Where classes are farther from each other than they are wide, K neighbourhoods are found by
    K (K - 1) / 2 questions. The rule min-max takes the point whose largest similarity to the known
    ones is least; for a similarity that falls with distance it is the farthest one.

    Basu, Banerjee and Mooney (2004), Active semi-supervision for pairwise constrained clustering,
    algorithms 2 and 3. Mallapragada, Jin and Jain (2008), Active query selection for
    semi-supervised clustering.

    Examples
    --------
    >>> y = [0, 0, 1, 1]
    >>> X = [[0.0], [1.0], [5.0], [6.0]]
    >>> asked = farthest_first(X, lambda i, j: y[i] == y[j], 2, 2, random_state=0)
    >>> asked.answers.tolist(), asked.neighbourhoods.tolist()
    ([[0, 3, 0], [2, 3, 1]], [1, -1, 0, 0])
    """
    with explain_missing(X):
        points = check_array(X, dtype=np.float64, input_name="X")
    check_integer("n_answers", n_answers, 1)
    check_integer("n_neighbourhoods", n_neighbourhoods, 1)
    if then not in THEN:
        raise ValueError(f"then is {then!r}; it must be one of {', '.join(map(repr, THEN))}.")
    rng = np.random.default_rng(random_state)
    of, answers = np.full(len(points), -1), list[tuple[int, int, bool]]()
    # To the nearest point that is known
    distance = np.full(len(points), np.inf)
    x, h = int(rng.integers(len(points))), 0
    while h >= 0:
        of[x] = h
        distance = np.minimum(distance, _distances(points, points[x]))
        unknown = np.flatnonzero(of == -1)
        if len(answers) == n_answers or len(unknown) == 0:
            break
        if of.max() + 1 < n_neighbourhoods or then == "min_max":
            x = int(unknown[distance[unknown].argmax()])
        else:
            x = int(rng.choice(unknown))
        h, told = _settle(points, of, x, ask, n_neighbourhoods, n_answers - len(answers))
        answers += told
    return Asked(np.array(answers, dtype=np.intp).reshape(-1, 3), of)


def _settle(
    X: FloatArray, of: IntArray, x: int, ask: Callable[[int, int], bool], K: int, n_left: int
) -> tuple[int, list[tuple[int, int, bool]]]:
    """The neighbourhood of a point, -1 if questions ran out, and what was asked, nearest first."""
    n_found, told = int(of.max()) + 1, list[tuple[int, int, bool]]()
    centroids = np.array([X[of == h].mean(axis=0) for h in range(n_found)])
    for h in _distances(centroids, X[x]).argsort(kind="stable"):
        if len(told) == K - 1:
            # It is of one of K classes, and not of the others.
            return int(h), told
        if len(told) == n_left:
            return -1, told
        members = np.flatnonzero(of == h)
        nearest = int(members[_distances(X[members], X[x]).argmin()])
        told.append((x, nearest, bool(ask(x, nearest))))
        if told[-1][2]:
            return int(h), told
    return n_found, told


def _distances(X: FloatArray, x: FloatArray) -> FloatArray:
    """Euclidean, of rows to a point."""
    return np.asarray(np.linalg.norm(X - x, axis=1))
