"""Downhill from the most probable states to an assignment that breaks no cannot-link. Chapter 10.

Each node's most probable state is, taken together, no assignment that anybody would choose: two
nodes that must differ may both prefer the same state. From there it goes downhill three times:

1. by exchanges along Kempe chains (:mod:`~cgmm.inference.exchange`), where a cannot-link that is
   still broken weighs little at first and then more and more, at last more than everything else;
2. what is broken after that is coloured anew within a ball around it, all else held; if there is no
   colouring, in a larger ball, at last in the whole component (:mod:`~cgmm.inference.feasible`);
3. by exchanges again, of single nodes, of chains, and of whatever preferences hold in place, until
   none helps. No cannot-link is broken any more.

Then cannot-links may give way for a moment, and all begins anew; what is better is kept.

=======  =====================================================================
z        (n_nodes,) states
costs    (n_nodes, K) what a node's state costs: zero is its best alone
hard     (E, 2) cannot-links;  soft  (n_nodes, n_nodes) finite log-weights
=======  =====================================================================
"""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components as components_of

from cgmm.inference.colour_search import FIRST_STEPS, ColourSearch, Rng
from cgmm.inference.colouring import adjacency
from cgmm.inference.exchange import exchange, indicators
from cgmm.inference.feasible import SearchBudgetError, around_core, feasible_assignment
from cgmm.network import Graph, NetworkError, connected_components
from cgmm.numerics import BoolArray, FloatArray, IntArray

# A broken cannot-link first weighs that share of what a state costs as a rule, then twice, ...
FIRST_WEIGHT, N_WEIGHTS = 0.25, 10
# What cannot-links weigh, in the same unit, each time that they may give way for a moment.
RELAXED = (0.3, 0.5, 1.0)
# Steps of a search that does not ask where z is: what was tried near it has failed.
FAR_STEPS = 50_000
# Balls around what is broken grow up to this radius, then the whole component is searched.
MAX_RADIUS = 16


def induced(graph: Graph, nodes: IntArray) -> Graph:
    """The graph of some nodes, under new names 0, 1, ... in the order given."""
    place = np.full(graph.n_nodes, -1)
    place[nodes] = np.arange(len(nodes))
    edges = place[graph.edges]
    inside = (edges >= 0).all(axis=1)
    return Graph(len(nodes), edges[inside], graph.weights[inside])


class AssignmentSearch:
    """The search for a good assignment of one graph at given unaries."""

    def __init__(
        self,
        graph: Graph,
        unary: FloatArray,
        max_search: int,
        rng: Rng | None = None,
        remedy: str | None = None,
    ):
        self.graph, self.max_search = graph, max_search
        self.rng, self.remedy = rng or Rng(0), remedy
        self.allowed = np.isfinite(unary)
        # What a node pays in every state decides nothing, but would cost digits.
        self.costs = unary.max(axis=1, keepdims=True) - unary
        is_hard = graph.weights == -np.inf
        self.hard = graph.edges[is_hard]
        self.soft = adjacency(graph._replace(weights=np.where(is_hard, 0.0, graph.weights)))
        top = np.where(self.allowed, self.costs, 0.0).max(axis=1)
        # What a state costs as a rule, and more than all costs together.
        self.unit = float(np.median(top)) or 1.0
        self.dear = 1.0 + 2 * float(top.sum() + np.abs(self.soft.data).sum())

    def best(self, z: IntArray, known: IntArray | None) -> IntArray:
        """An assignment that no move improves, from one that may break cannot-links.

        No worse than what a known one, that breaks nothing, is improved to.
        """
        z = self._improve(self.honour(z, known))
        if known is not None and self._is_allowed(known):
            z = self._better(z, self._improve(known))
        for share in RELAXED if len(self.hard) else ():
            none = np.empty((0, 2), dtype=np.intp)
            relaxed = exchange(self.costs, none, z, self._penalised(self.hard, share * self.unit))
            z = self._better(z, self._improve(self.honour(relaxed, z)))
        return z

    def honour(self, z: IntArray, known: IntArray | None) -> IntArray:
        """An assignment near z that breaks no cannot-link; in need the known one."""
        z = self._mend(z)
        if known is not None and not self._is_allowed(known):
            known = None
        if self._broken(z).any():
            z = self._recolour(z, self.max_search if known is None else len(z) + FIRST_STEPS)
        if self._broken(z).any():
            z = self._replaced(z, known)
        return z

    def _is_allowed(self, z: IntArray) -> bool:
        """Whether an assignment breaks no cannot-link and no mask."""
        return bool(self.allowed[np.arange(len(z)), z].all() and not self._broken(z).any())

    def _better(self, z: IntArray, other: IntArray) -> IntArray:
        """Of two assignments that break nothing, the better one in each component."""
        label = connected_components(self.graph)
        own = np.bincount(label, self._shares(z)) - np.bincount(label, self._shares(other))
        return np.where(own[label] > 0, other, z)

    def _shares(self, z: IntArray) -> FloatArray:
        """(n_nodes,) what a node costs, with half of what its preferences gain."""
        every, n_states = np.arange(len(z)), self.costs.shape[1]
        gained = (self.soft @ indicators(z, n_states))[every, z]
        return self.costs[every, z] - 0.5 * gained

    def _broken(self, z: IntArray) -> BoolArray:
        """(E,) which cannot-links an assignment breaks."""
        return z[self.hard[:, 0]] == z[self.hard[:, 1]]

    def _penalised(self, links: IntArray, weight: float) -> sparse.csr_array:
        """The preferences, and some cannot-links as preferences to differ of that weight."""
        added = Graph(len(self.costs), links, np.full(len(links), -weight))
        return (self.soft + adjacency(added)).tocsr()

    def _mend(self, z: IntArray) -> IntArray:
        """Descend while broken cannot-links cost more and more, until none more is mended."""
        for weight in [*self.unit * FIRST_WEIGHT * 2.0 ** np.arange(N_WEIGHTS), *3 * [self.dear]]:
            broken = self._broken(z)
            if not broken.any():
                break
            soft = self._penalised(self.hard[broken], weight)
            z = exchange(self.costs, self.hard[~broken], z, soft)
        return z

    def _recolour(self, z: IntArray, max_steps: int) -> IntArray:
        """Colour balls around what is broken anew, larger ones if need be."""
        z, radius = z.copy(), 1
        matrix = adjacency(Graph(len(z), self.hard, np.ones(len(self.hard))))
        search = ColourSearch(max_steps, self.rng)
        while (broken := self._broken(z)).any() and radius <= MAX_RADIUS and search.steps_left > 0:
            inside = np.zeros(len(z), dtype=bool)
            inside[self.hard[broken]] = True
            for _ in range(radius):
                inside |= matrix @ inside > 0
            self._colour_balls(matrix, inside, z, search)
            radius *= 2
        return z

    def _colour_balls(
        self, matrix: sparse.csr_array, inside: BoolArray, z: IntArray, search: ColourSearch
    ) -> None:
        """Colour, in place, each component of the nodes inside, where the others keep theirs."""
        nodes = np.flatnonzero(inside)
        states = indicators(z, self.costs.shape[1])
        taken = matrix[nodes] @ np.where(inside[:, None], 0.0, states) > 0
        lists, part = self.allowed[nodes] & ~taken, matrix[nodes][:, nodes]
        n_balls, ball = components_of(part, directed=False)
        members = np.split(np.argsort(ball, kind="stable"), np.cumsum(np.bincount(ball))[:-1])
        for places in members[:n_balls]:
            found = _coloured(part[places][:, places], lists[places], z[nodes[places]], search)
            if found is not None:
                z[nodes[places]] = found

    def _replaced(self, z: IntArray, known: IntArray | None) -> IntArray:
        """An assignment that breaks nothing, in components where something is broken still."""
        label = connected_components(Graph(len(z), self.hard, np.ones(len(self.hard))))
        wrong = np.flatnonzero(np.isin(label, label[self.hard[self._broken(z)]]))
        states = self._searched(wrong, z[wrong]) if known is None else known[wrong]
        z = z.copy()
        z[wrong] = states
        return z

    def _searched(self, nodes: IntArray, near: IntArray) -> IntArray:
        """States of whole components: found far from where z is, or near, or proved impossible."""
        find = partial(
            feasible_assignment, induced(self.graph, nodes), self.costs.shape[1],
            allowed=self.allowed[nodes], rng=self.rng, remedy=self.remedy,
        )  # fmt: skip
        try:
            try:
                return find(max_search=min(FAR_STEPS, self.max_search))
            except SearchBudgetError:
                return find(max_search=self.max_search, hint=lambda: near)
        except NetworkError as error:
            raise error.renamed(nodes) from None

    def _improve(self, z: IntArray) -> IntArray:
        """Descend by single nodes and chains, then by what preferences hold in place as well."""
        if self.soft.nnz == 0:
            return exchange(self.costs, self.hard, z)
        levels = np.unique(np.quantile(np.abs(self.soft.data), [0.0, 0.5, 0.9]))[::-1]
        z, settled = exchange(self.costs, self.hard, z, self.soft), False
        while not settled:
            before = z
            for tied in levels:
                z = exchange(self.costs, self.hard, z, self.soft, tied=float(tied))
            z = exchange(self.costs, self.hard, z, self.soft)
            settled = np.array_equal(z, before)
        return z


def _coloured(
    matrix: sparse.csr_array, lists: BoolArray, near: IntArray, search: ColourSearch
) -> IntArray | None:
    """A colouring from lists, if the search finds one in a few steps a node."""
    if not lists.any(axis=1).all() or search.steps_left <= 0:
        return None
    steps = min(search.steps_left, 10 * (len(lists) + FIRST_STEPS))
    local = ColourSearch(steps, search.rng)

    def colour_core(core: IntArray) -> IntArray | None:
        return local.colour(matrix[core][:, core], lists[core], near[core]).colours

    found = around_core(matrix, lists, colour_core)
    search.steps_left -= steps - local.steps_left
    return found
