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

from cgmm.numerics import FloatArray, IntArray

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
    points = np.asarray(X, dtype=float)
    _check(points, n_answers, n_neighbourhoods, then)
    rng = np.random.default_rng(random_state)
    known = _Known(points, ask, n_answers, n_neighbourhoods)
    known.join(int(rng.integers(len(points))), 0)
    while known.may_go_on():
        exploring = len(known.centroids) < n_neighbourhoods
        if exploring or then == "min_max":
            x = int(known.distance.argmax())
        else:
            x = int(rng.choice(np.flatnonzero(known.of == -1)))
        known.settle(x)
    return Asked(np.array(known.answers, dtype=np.intp).reshape(-1, 3), known.of)


class _Known:
    """Neighbourhoods while they grow."""

    def __init__(self, X: FloatArray, ask: Callable[[int, int], bool], n_answers: int, K: int):
        self.X, self.ask, self.n_answers, self.K = X, ask, n_answers, K
        self.answers = list[tuple[int, int, bool]]()
        self.of = np.full(len(X), -1)
        # To the nearest point that is known; -inf for those themselves.
        self.distance = np.full(len(X), np.inf)
        self.centroids = list[FloatArray]()

    def may_go_on(self) -> bool:
        """Whether a question and a point are left."""
        return len(self.answers) < self.n_answers and bool((self.of == -1).any())

    def join(self, x: int, h: int) -> None:
        """Put a point into a neighbourhood, perhaps a new one."""
        self.of[x] = h
        self.distance = np.minimum(self.distance, np.linalg.norm(self.X - self.X[x], axis=1))
        self.distance[self.of >= 0] = -np.inf
        self.centroids[h:] = [self.X[self.of == h].mean(axis=0), *self.centroids[h + 1 :]]

    def settle(self, x: int) -> None:
        """Ask of a point beside one neighbourhood after the other, the nearest first."""
        order = np.linalg.norm(np.array(self.centroids) - self.X[x], axis=1).argsort(kind="stable")
        for turn, h in enumerate(order):
            if turn == self.K - 1:
                # It is of one of K classes, and not of the others.
                return self.join(x, int(h))
            if len(self.answers) == self.n_answers:
                return None
            member = self._nearest_member(x, int(h))
            together = bool(self.ask(x, member))
            self.answers.append((x, member, together))
            if together:
                return self.join(x, int(h))
        return self.join(x, len(order))

    def _nearest_member(self, x: int, h: int) -> int:
        """The point of a neighbourhood that is nearest."""
        members = np.flatnonzero(self.of == h)
        return int(members[np.linalg.norm(self.X[members] - self.X[x], axis=1).argmin()])


def _check(X: FloatArray, n_answers: int, n_neighbourhoods: int, then: str) -> None:
    """Refuse what cannot be asked about."""
    if X.ndim != 2 or X.size == 0 or not np.isfinite(X).all():
        raise ValueError(f"X has shape {X.shape}; it must be (N, D), finite and not empty.")
    if n_answers < 1 or n_neighbourhoods < 1:
        raise ValueError(
            f"n_answers is {n_answers} and n_neighbourhoods {n_neighbourhoods}; both must be at "
            "least 1: farthest_first(X, ask, 100, 3)."
        )
    if then not in THEN:
        raise ValueError(f"then is {then!r}; it must be one of {', '.join(map(repr, THEN))}.")
