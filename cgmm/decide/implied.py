"""Derive what answers about pairs of rows imply for other pairs, and find contradictions.

Rows that answers "same" connect form a group. An answer "different" separates the groups of its two
rows. A group that is separated from K - 1 of K classes belongs to the remaining class.
:class:`cgmm.decide.Interview` does not ask about pairs whose answer is implied; chapter 15 explains
why this loses no information.

=================  ============================================================
group              (N,) group of each row, numbered in the order of first rows, e.g. [0, 1, 0]
separated groups   two groups about which an answer was "different"
settled pair       two rows of one group, of separated groups, or of groups about which an answer
                   was "unsure"; any other pair is *open*
_reply_between     the reply about two groups, e.g. {(0, 4): "different", (4, 0): "different"}
=================  ============================================================
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations, pairwise, permutations
from typing import NamedTuple

import numpy as np

from cgmm.decide.answer_file import Answer
from cgmm.network.relations import closure, must_link_chain
from cgmm.numerics import IntArray


class Contradiction(NamedTuple):
    """Set of answers that cannot all be right."""

    numbers: list[int]
    """Positions of these answers; the first answer contradicts the others."""
    message: str
    """Sentence that describes the contradiction, with row numbers."""


class ImpliedPairs:
    """Groups and separated groups of rows that follow from the answers.

    Parameters
    ----------
    n_rows : int
        N, the number of rows of the table.
    n_components : int
        K, the number of classes.
    answers : sequence of Answer
        The answers, in the order of asking.
    """

    def __init__(self, n_rows: int, n_components: int, answers: Sequence[Answer]) -> None:
        self.contradictions: list[Contradiction] = []
        self._answers, self.n_components = answers, n_components
        must_links = [a[:2] for a in answers if a.answer == "same"]
        self._derive_groups(n_rows, must_links)
        self._find_contradictory_chains()
        # A must-link implied by the number of classes may imply further ones, so repeat.
        while (must_link := self._find_implied_must_link()) is not None:
            must_links.append(must_link)
            self._derive_groups(n_rows, must_links)
        self._find_too_many_classes()

    def _derive_groups(self, n_rows: int, must_links: Sequence[tuple[int, int]]) -> None:
        """Derive the groups, and the reply between groups; "different" overrides "unsure"."""
        self._must_links = np.array(must_links, dtype=np.intp).reshape(-1, 2)
        self.group = closure(n_rows, self._must_links)
        self._reply_between = {
            pair: reply
            for reply in ("unsure", "different")
            for a in self._answers if a.answer == reply
            for pair in permutations(self.group[[a.i, a.j]].tolist())
        }  # fmt: skip

    @property
    def groups_asked_about(self) -> list[int]:
        """Groups that occur in answers, in the order of asking, row j of an answer before row i."""
        rows = [row for a in self._answers if a.answer != "unsure" for row in (a.j, a.i)]
        return list(dict.fromkeys(self.group[rows].tolist()))

    def are_separated(self, g: int, h: int) -> bool:
        """Return True if an answer "different" separates two groups."""
        return self._reply_between.get((g, h)) == "different"

    def are_settled(self, g: int, h: int) -> bool:
        """Return True if a question about two groups would be superfluous."""
        return g == h or (g, h) in self._reply_between

    def is_open(self, i: int, j: int) -> bool:
        """Return True if the answer about two rows is neither given nor implied."""
        return not self.are_settled(int(self.group[i]), int(self.group[j]))

    def draw_open_pair(self, rng: np.random.Generator) -> tuple[int, int] | None:
        """Draw an open pair of rows at random, or return None if no pair is open."""
        n = len(self.group)
        for _ in range(100):
            i, j = rng.integers(n, size=2).tolist()
            if self.is_open(i, j):
                return i, j
        # After 100 failures there are probably only a small number of groups, so list all pairs.
        first_rows = self._find_first_rows().tolist()
        pairs = [pair for pair in combinations(first_rows, 2) if self.is_open(*pair)]
        return pairs[int(rng.integers(len(pairs)))] if pairs else None

    def _find_first_rows(self) -> IntArray:
        """Return the first row of each group."""
        return np.unique(self.group, return_index=True)[1]

    # ------------------------------------------------------------------------ K classes

    def _find_separated_groups(self) -> list[int]:
        """Find a set of mutually separated groups, greedily by decreasing number of separations."""
        degree = Counter(g for g, h in self._reply_between if g != h and self.are_separated(g, h))
        separated = list[int]()
        for g in sorted(degree, key=lambda g: (-degree[g], g)):
            if all(self.are_separated(g, h) for h in separated):
                separated.append(g)
        return separated

    def _find_implied_must_link(self) -> tuple[int, int] | None:
        """Return a must-link to the only class from which a group is not separated, or None."""
        classes, first_rows = self._find_separated_groups(), self._find_first_rows()
        if len(classes) == self.n_components > 1:
            for g in sorted({g for g, _ in self._reply_between} - set(classes)):
                candidates = [h for h in classes if not self.are_separated(g, h)]
                if len(candidates) == 1:
                    return int(first_rows[g]), int(first_rows[candidates[0]])
        return None

    # ------------------------------------------------------------------------ contradictions

    def _find_contradictory_chains(self) -> None:
        """Record each answer "different" about two rows that a chain of answers "same" connects."""
        number_of = {
            frozenset(a[:2]): number
            for number, a in enumerate(self._answers) if a.answer == "same"
        }  # fmt: skip
        for number, answer in enumerate(self._answers):
            if answer.answer == "different" and self.group[answer.i] == self.group[answer.j]:
                chain = must_link_chain(self._must_links, answer.i, answer.j)
                numbers = [number, *(number_of[frozenset(pair)] for pair in pairwise(chain))]
                text = " - ".join(map(str, chain))
                self.contradictions.append(Contradiction(
                    numbers,
                    f"Rows {answer.i} and {answer.j} are said to be different, but the answers "
                    f'"same" connect them: {text}.',
                ))  # fmt: skip

    def _find_too_many_classes(self) -> None:
        """Record a contradiction if more than K groups are mutually separated."""
        separated = self._find_separated_groups()
        if len(separated) <= self.n_components:
            return
        numbers = [
            number for number, a in enumerate(self._answers)
            if a.answer == "different" and {*self.group[[a.i, a.j]].tolist()} <= {*separated}
        ][::-1]  # fmt: skip
        rows = ", ".join(map(str, self._find_first_rows()[separated].tolist()))
        message = f"Rows {rows} are all said to be different, but there are only"
        self.contradictions.append(Contradiction(numbers, f"{message} {self.n_components} groups."))
