"""Choose pairs of rows for the questions of an interview, by distance or by a fitted model.

Exploring uses distances only, to find a row of each class: it compares the row that is farthest
from all known rows with the known classes, until there are K. Once a model is fitted, rows whose
class is uncertain are compared with rows whose class is certain. :class:`cgmm.decide.Interview`
chooses between these methods; chapter 15 compares them.

===============  ==============================================================
group            rows that answers "same" connect, e.g. {3, 17, 20}
classes          mutually separated groups, at most K, in the order of asking, e.g. [0, 4, 9]
unplaced group   a group that has not been compared with all classes
Z                coordinates of the rows: standardised numbers, and scaled indicators of categories
===============  ==============================================================
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import entr

from cgmm.decide.answer_file import Answer
from cgmm.decide.implied import ImpliedPairs
from cgmm.mixture.missing import fill_by_regression, with_gaps
from cgmm.numerics import FloatArray, IntArray

N_DOUBTFUL = 25
"""Number of rows with the most uncertain class that are candidates for the next question."""
N_CERTAIN = 3
"""Number of rows per class, the most certain ones, with which candidates are compared."""


class RowsByDistance:
    """Choose pairs that consist of a new row and the nearest row of a known class.

    Parameters
    ----------
    Z : (N, n) array
        Coordinates of the rows, from ``compute_coordinates``.
    implied : ImpliedPairs
        Groups that the answers imply.
    answers : sequence of Answer
        The answers.
    seed : int
        Seed for the first row and for random rows.

    Attributes
    ----------
    classes : list of int
        Mutually separated groups, at most K, in the order of asking.
    """

    def __init__(
        self, Z: FloatArray, implied: ImpliedPairs, answers: Sequence[Answer], seed: int
    ) -> None:
        self._Z, self._implied, self._answers, self._seed = Z, implied, answers, seed
        self.classes, self._unplaced = self._find_classes()
        self._rows_of_classes = [np.flatnonzero(implied.group == g) for g in self.classes]

    def _find_classes(self) -> tuple[list[int], list[int]]:
        """Find up to K mutually separated groups, and the groups still to compare with them."""
        classes, unplaced = list[int](), list[int]()
        for g in self._implied.groups_asked_about:
            candidates = [h for h in classes if not self._implied.are_separated(g, h)]
            if not candidates and len(classes) < self._implied.n_components:
                classes.append(g)
            elif any(not self._implied.are_settled(g, h) for h in candidates):
                unplaced.append(g)
        return classes, unplaced

    def choose_exploring_pair(self) -> tuple[int, int] | None:
        """Return a row of a possibly new class, and a known row; None if K classes are known."""
        if len(self.classes) == self._implied.n_components:
            return None
        if self._unplaced:
            x = int(np.flatnonzero(self._implied.group == self._unplaced[0])[0])
            return self._pair_with_nearest_row(x, self._rows_of_classes)
        first = int(np.random.default_rng(self._seed).integers(len(self._Z)))
        rows_of_classes = self._rows_of_classes or [np.array([first])]
        x = self._find_farthest_row(np.concatenate(rows_of_classes))
        return None if x is None else self._pair_with_nearest_row(x, rows_of_classes)

    def choose_random_pair(self) -> tuple[int, int] | None:
        """Return a random row of unknown class, and the nearest row of a class."""
        rng = np.random.default_rng([self._seed, len(self._answers), 1])
        for x in rng.permutation(len(self._Z)).tolist():
            if self._implied.group[x] not in self.classes:
                pair = self._pair_with_nearest_row(x, self._rows_of_classes)
                if pair is not None:
                    return pair
        return None

    def _pair_with_nearest_row(
        self, x: int, rows_of_classes: Sequence[IntArray]
    ) -> tuple[int, int] | None:
        """Return row x and the nearest row of the classes to which x may still belong."""
        candidates = [rows for rows in rows_of_classes if self._implied.is_open(x, int(rows[0]))]
        if not candidates:
            return None
        rows = np.concatenate(candidates)
        return x, int(rows[self._compute_distances(x)[rows].argmin()])

    def _find_farthest_row(self, known_rows: IntArray) -> int | None:
        """Return the row farthest from the known rows; None if all rows occur in answers."""
        distance = np.min([self._compute_distances(row) for row in known_rows], axis=0)
        answered_rows = [row for answer in self._answers for row in answer[:2]]
        distance[[*answered_rows, *known_rows]] = -1.0
        return int(distance.argmax()) if distance.max() >= 0 else None

    def _compute_distances(self, x: int) -> FloatArray:
        """Return the (N,) distances of all rows from row x."""
        return np.asarray(np.linalg.norm(self._Z - self._Z[x], axis=1))


def compute_coordinates(X: FloatArray, n_numbers: int) -> FloatArray:
    """Return coordinates in which each column contributes equally to distances between rows.

    Parameters
    ----------
    X : (N, D) array
        Columns of numbers, then codes of categories; NaN where a cell is empty.
    n_numbers : int
        Number of columns of numbers.

    Returns
    -------
    (N, n) array
        Standardised numbers, with empty cells predicted by regression on the observed cells of the
        row. Then one indicator per category, scaled so that a column of categories has the same
        mean squared distance as a standardised column. A row whose category is unknown has the
        mean of the indicators.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [3.0, 1.0], [3.0, np.nan], [1.0, 1.0]])
    >>> compute_coordinates(X, 1).round(2)
    array([[-1. ,  1.5,  0. ],
           [ 1. ,  0. ,  1.5],
           [ 1. ,  0.5,  1. ],
           [-1. ,  0. ,  1.5]])
    """
    numbers = fill_by_regression(with_gaps(X[:, :n_numbers], rows_may_be_empty=True))
    spread = numbers.std(axis=0)
    columns = [(numbers - numbers.mean(axis=0)) / np.where(spread > 0, spread, 1)]
    for codes in X[:, n_numbers:].T:
        is_known = ~np.isnan(codes)
        indicators = (codes[:, None] == np.unique(codes[is_known])).astype(float)
        indicators[~is_known] = shares = indicators[is_known].mean(axis=0)
        p_differ = 1 - np.square(shares).sum()
        columns.append(indicators / np.sqrt(p_differ) if p_differ > 0 else 0 * indicators)
    return np.concatenate(columns, axis=1)


def find_doubtful_pairs(r: FloatArray, implied: ImpliedPairs) -> list[tuple[int, int]]:
    """Return open pairs of a row whose class is uncertain and a row whose class is certain.

    Parameters
    ----------
    r : (N, K) array
        Responsibilities.
    implied : ImpliedPairs
        Groups that the answers imply.

    Returns
    -------
    list of tuple of int
        Pairs of row numbers, in the order of decreasing uncertainty of the first row.
    """
    doubtful = np.argsort(-entr(r).sum(axis=1), kind="stable")[:N_DOUBTFUL]
    certain = np.argsort(-r, axis=0, kind="stable")[:N_CERTAIN].T
    pairs = list[tuple[int, int]]()
    for i in doubtful.tolist():
        for members in certain.tolist():
            pairs += [(i, j) for j in members if implied.is_open(i, j)][:1]
    return pairs
