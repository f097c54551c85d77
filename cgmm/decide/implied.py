"""Consequences of answers about pairs: groups, groups that differ, and contradictions.

"Same" connects rows to groups. "Different" keeps two groups apart. A group that is apart from K - 1
of K classes belongs to the last one. :class:`cgmm.decide.Interview` does not ask about implied
pairs; chapter 15 explains why this loses no information.

=========  ====================================================================
group      (N,) group of each row, numbered by first rows, e.g. [0, 1, 0]
apart      pairs of groups about which the answer was "different"
closed     pairs of groups that are apart, or about which the answer was "unsure"
between    the answer about a pair of groups, e.g. {(0, 4): "different", (4, 0): "different"}
=========  ====================================================================
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
    """Answers that cannot all be right."""

    numbers: list[int]
    """Positions of the answers, beginning with the one that completes the contradiction."""
    message: str
    """The chain of answers in words, with row numbers."""


class ImpliedPairs:
    """Consequences of the answers so far.

    Parameters
    ----------
    n_rows : int
        N, the number of rows of the table.
    n_components : int
        K, the number of classes.
    answers : sequence of Answer
        The answers.
    """

    def __init__(self, n_rows: int, n_components: int, answers: Sequence[Answer]) -> None:
        self.contradictions: list[Contradiction] = []
        self._answers, self.n_components = answers, n_components
        links = [a[:2] for a in answers if a.answer == "same"]
        self._read(n_rows, links)
        self._report_chains()
        # Each link that K implies may imply another one.
        while (link := self._link_by_count()) is not None:
            links.append(link)
            self._read(n_rows, links)
        self._report_too_many()

    def _read(self, n_rows: int, links: Sequence[tuple[int, int]]) -> None:
        """Derive groups, and the answers between them; "different" counts more than "unsure"."""
        self._must = np.array(links, dtype=np.intp).reshape(-1, 2)
        self.group = closure(n_rows, self._must)
        self._between = {
            pair: reply
            for reply in ("unsure", "different")
            for a in self._answers if a.answer == reply
            for pair in permutations(self.group[[a.i, a.j]].tolist())
        }  # fmt: skip

    @property
    def groups_asked_about(self) -> list[int]:
        """Groups of the rows in answers, each once; for each answer that of row j before row i."""
        rows = [row for a in self._answers if a.answer != "unsure" for row in (a.j, a.i)]
        return list(dict.fromkeys(self.group[rows].tolist()))

    def is_apart(self, g: int, h: int) -> bool:
        """Return True if answers keep two groups apart."""
        return self._between.get((g, h)) == "different"

    def is_closed(self, g: int, h: int) -> bool:
        """Return True if there is nothing to ask about two groups."""
        return g == h or (g, h) in self._between

    def is_open(self, i: int, j: int) -> bool:
        """Return True if a pair of rows is neither answered nor implied."""
        return not self.is_closed(int(self.group[i]), int(self.group[j]))

    def random_open_pair(self, rng: np.random.Generator) -> tuple[int, int] | None:
        """Draw one of the open pairs of rows; None if there is none."""
        n = len(self.group)
        for _ in range(100):
            i, j = rng.integers(n, size=2).tolist()
            if self.is_open(i, j):
                return i, j
        # After 100 failures only a small number of groups is left, so list all pairs.
        pairs = [p for p in combinations(self._first_rows().tolist(), 2) if self.is_open(*p)]
        return pairs[int(rng.integers(len(pairs)))] if pairs else None

    def _first_rows(self) -> IntArray:
        return np.unique(self.group, return_index=True)[1]

    # ------------------------------------------------------------------------ K classes

    def _find_mutually_apart(self) -> list[int]:
        """Find groups that are mutually apart, greedily by decreasing number of differences."""
        degree = Counter(g for g, h in self._between if g != h and self.is_apart(g, h))
        found = list[int]()
        for g in sorted(degree, key=lambda g: (-degree[g], g)):
            if all(self.is_apart(g, h) for h in found):
                found.append(g)
        return found

    def _link_by_count(self) -> tuple[int, int] | None:
        """Return first rows of two groups that must be one class, since all others are apart."""
        found, first = self._find_mutually_apart(), self._first_rows()
        if len(found) == self.n_components > 1:
            for g in sorted({g for g, _ in self._between} - set(found)):
                left = [h for h in found if not self.is_apart(g, h)]
                if len(left) == 1:
                    return int(first[g]), int(first[left[0]])
        return None

    # ------------------------------------------------------------------------ contradictions

    def _report_chains(self) -> None:
        """Find each "different" answer within a group, with the chain of "same" answers."""
        same_links = {
            frozenset(a[:2]): number
            for number, a in enumerate(self._answers) if a.answer == "same"
        }  # fmt: skip
        for number, answer in enumerate(self._answers):
            if answer.answer == "different" and self.group[answer.i] == self.group[answer.j]:
                chain = must_link_chain(self._must, answer.i, answer.j)
                links = [same_links[frozenset(pair)] for pair in pairwise(chain)]
                text = " - ".join(map(str, chain))
                self.contradictions.append(Contradiction(
                    [number, *links],
                    f"Rows {answer.i} and {answer.j} are said to be different, but the answers "
                    f'"same" connect them: {text}.',
                ))  # fmt: skip

    def _report_too_many(self) -> None:
        """Find more than K groups that are mutually different."""
        found = self._find_mutually_apart()
        if len(found) <= self.n_components:
            return
        numbers = [
            number for number, a in enumerate(self._answers)
            if a.answer == "different" and {*self.group[[a.i, a.j]].tolist()} <= {*found}
        ][::-1]  # fmt: skip
        rows = ", ".join(map(str, self._first_rows()[found].tolist()))
        message = f"Rows {rows} are all said to be different, but there are only"
        self.contradictions.append(Contradiction(numbers, f"{message} {self.n_components} groups."))
