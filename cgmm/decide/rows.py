"""Choose the rows for the questions of an interview: far, unplaced and doubtful ones.

Exploring needs distances only and finds a row of each class: it compares the farthest row with the
groups found so far until there are K. With a model, rows of uncertain class are compared with
certain ones. :class:`cgmm.decide.Interview` chooses between the two; chapter 15 compares them.

=========  ====================================================================
group      rows that "same" answers connect, e.g. {3, 17, 20}
found      groups that are mutually different, in the order of asking, e.g. [0, 4, 9]
Z          coordinates of the rows: standardised numbers, and scaled indicators of categories
=========  ====================================================================
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import entr

from cgmm.decide.answer_file import Answer
from cgmm.decide.implied import ImpliedPairs
from cgmm.mixture.missing import filled, with_gaps
from cgmm.numerics import FloatArray, IntArray

N_DOUBTFUL = 25
"""Number of the most doubtful rows, from which the most informative question is chosen."""
N_CERTAIN = 3
"""Number of the most certain rows of each class with which doubtful rows are compared."""


class RowsByDistance:
    """Choose pairs of a row and the nearest row of the groups found.

    Parameters
    ----------
    Z : (N, n) array
        The rows, from ``coordinates``.
    implied : ImpliedPairs
        Consequences of the answers.
    answers : sequence of Answer
        The answers.
    seed : int
        Seed for the first row and for random rows.
    """

    def __init__(
        self, Z: FloatArray, implied: ImpliedPairs, answers: Sequence[Answer], seed: int
    ) -> None:
        self._Z, self._implied, self._answers, self._seed = Z, implied, answers, seed
        self.found, self._unplaced = self._find_groups()
        self._places = [np.flatnonzero(implied.group == g) for g in self.found]

    def _find_groups(self) -> tuple[list[int], list[int]]:
        """Find groups that are mutually different, and groups compared with only some of them."""
        found, unplaced = list[int](), list[int]()
        for g in self._implied.groups_asked_about:
            unknown = [h for h in found if not self._implied.is_apart(g, h)]
            if not unknown and len(found) < self._implied.n_components:
                found.append(g)
            elif any(not self._implied.is_closed(g, h) for h in unknown):
                unplaced.append(g)
        return found, unplaced

    def explore(self) -> tuple[int, int] | None:
        """Return a row of a possibly new class and a row to compare; None if K are found."""
        if len(self.found) == self._implied.n_components:
            return None
        if self._unplaced:
            x = int(np.flatnonzero(self._implied.group == self._unplaced[0])[0])
            return self._pair_with_nearest(x, self._places)
        first = int(np.random.default_rng(self._seed).integers(len(self._Z)))
        places = self._places or [np.array([first])]
        x = self._farthest_row(np.concatenate(places))
        return None if x is None else self._pair_with_nearest(x, places)

    def place_one(self) -> tuple[int, int] | None:
        """Return a random row of unknown class and a row to compare it with."""
        rng = np.random.default_rng([self._seed, len(self._answers), 1])
        for x in rng.permutation(len(self._Z)).tolist():
            if self._implied.group[x] not in self.found:
                pair = self._pair_with_nearest(x, self._places)
                if pair is not None:
                    return pair
        return None

    def _pair_with_nearest(self, x: int, places: Sequence[IntArray]) -> tuple[int, int] | None:
        """Return x and the nearest row of the groups whose relation to x is open."""
        open_ = [rows for rows in places if self._implied.is_open(x, int(rows[0]))]
        if not open_:
            return None
        rows = np.concatenate(open_)
        return x, int(rows[self._distances(x)[rows].argmin()])

    def _farthest_row(self, known: IntArray) -> int | None:
        """Return the row farthest from the known ones; None if answers mention all rows."""
        distance = np.min([self._distances(row) for row in known], axis=0)
        mentioned = [row for answer in self._answers for row in answer[:2]]
        distance[[*mentioned, *known]] = -1.0
        return int(distance.argmax()) if distance.max() >= 0 else None

    def _distances(self, x: int) -> FloatArray:
        return np.asarray(np.linalg.norm(self._Z - self._Z[x], axis=1))


def coordinates(X: FloatArray, n_numbers: int) -> FloatArray:
    """Return coordinates in which distances between rows count each column equally.

    Parameters
    ----------
    X : (N, D) array
        Columns of numbers, then codes of categories; NaN where a cell is empty.
    n_numbers : int
        Number of columns of numbers.

    Returns
    -------
    (N, n) array
        Standardised numbers, with empty cells regressed on the present ones. Then an indicator of
        each category, scaled so that a column of categories has the mean squared distance of a
        standardised column; a row whose category is unknown is at the average.

    Examples
    --------
    >>> coordinates(np.array([[1.0, 0.0], [3.0, 1.0], [3.0, np.nan], [1.0, 1.0]]), 1).round(2)
    array([[-1. ,  1.5,  0. ],
           [ 1. ,  0. ,  1.5],
           [ 1. ,  0.5,  1. ],
           [-1. ,  0. ,  1.5]])
    """
    numbers = filled(with_gaps(X[:, :n_numbers], rows_may_be_empty=True))
    spread = numbers.std(axis=0)
    columns = [(numbers - numbers.mean(axis=0)) / np.where(spread > 0, spread, 1)]
    for codes in X[:, n_numbers:].T:
        is_known = ~np.isnan(codes)
        indicators = (codes[:, None] == np.unique(codes[is_known])).astype(float)
        indicators[~is_known] = shares = indicators[is_known].mean(axis=0)
        p_differ = 1 - np.square(shares).sum()
        columns.append(indicators / np.sqrt(p_differ) if p_differ > 0 else 0 * indicators)
    return np.concatenate(columns, axis=1)


def doubtful_pairs(r: FloatArray, implied: ImpliedPairs) -> list[tuple[int, int]]:
    """Return open pairs of a row of uncertain class and a certain row of a class.

    Parameters
    ----------
    r : (N, K) array
        Responsibilities.
    implied : ImpliedPairs
        Consequences of the answers.

    Returns
    -------
    list of tuple of int
        Pairs of row numbers, those of the most doubtful rows first.
    """
    doubtful = np.argsort(-entr(r).sum(axis=1), kind="stable")[:N_DOUBTFUL]
    certain = np.argsort(-r, axis=0, kind="stable")[:N_CERTAIN].T
    pairs = list[tuple[int, int]]()
    for i in doubtful.tolist():
        for members in certain.tolist():
            pairs += [(i, j) for j in members if implied.is_open(i, j)][:1]
    return pairs
