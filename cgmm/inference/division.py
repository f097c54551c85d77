"""Which engine answers which component: the cheapest that is exact, within two budgets. Chapter 7.

====================================  =================================================
component                             engine
====================================  =================================================
one node                              independent
two nodes                             pairs
mutually cannot-linked                clique
any other, of small width             junction_tree
with large cliques that share nodes   cut_vertices, where that is cheaper
====================================  =================================================

What is left is for the caller: :mod:`cgmm.inference.exact` conditions on a cutset or refuses,
:mod:`cgmm.inference.auto` approximates.

=====  ======================================================================
part   components that one engine takes care of
K      number of states of a node
=====  ======================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from cgmm.inference.block_tree import Piece, pieces
from cgmm.inference.clique import clique, count_sets, is_within_reach
from cgmm.inference.clique_tree import lay_out, most_neighbours, tabulate
from cgmm.inference.contraction import contract
from cgmm.inference.costs import Answer, Cost, cost_of, costs_of_components
from cgmm.inference.cut_vertices import cut_vertices
from cgmm.inference.independent import independent
from cgmm.inference.junction_tree import junction_tree, through_tree
from cgmm.inference.pairs import pairs
from cgmm.network import ExactInfer, Graph, connected_components, edgeless
from cgmm.numerics import BoolArray, IntArray

__all__ = ["Budget", "Part"]

INDEPENDENT, PAIRS, CLIQUE, OTHER = range(4)
# A junction tree of fewer entries is not worth a look for something cheaper.
CHEAP = 1_000_000


class Budget(NamedTuple):
    """What exact inference may take."""

    max_bytes: int
    """Of tables, at one time."""
    max_operations: float
    """Entries of tables, in one call."""

    def max_degree(self, n_states: int) -> int:
        """Most neighbours of a node that is eliminated, whatever the rest costs."""
        return most_neighbours(self.max_operations, n_states)


class Part(NamedTuple):
    """All components that one engine takes care of."""

    nodes: IntArray
    """Their nodes, under the names of the whole graph."""
    infer: ExactInfer
    answer: Answer


class Wide(NamedTuple):
    """A component for which no table-bound engine is within the budget."""

    nodes: IntArray
    graph: Graph
    """Its edges, the nodes named by their place in ``nodes``."""
    cost: Cost


Rest = Callable[[list[Wide]], Iterator[Part]]
"""What becomes of components that are too wide."""


def divide(graph: Graph, n_states: int, budget: Budget, rest: Rest) -> list[Part]:
    """The parts of a network that evidence has reduced, K = 1 excepted."""
    label = connected_components(graph)
    kinds = _kinds(graph, label, n_states, budget)
    parts: list[Part] = []
    for kind in np.unique(kinds).tolist():
        nodes = np.flatnonzero(kinds == kind)
        part = subgraph(graph, nodes)
        if kind == OTHER:
            parts += _by_width(nodes, part, n_states, budget, rest)
        else:
            engine = [independent, pairs, clique][kind]
            answer = _simple_answer(engine.__name__, part, label[nodes], n_states)
            parts.append(Part(nodes, engine(part), answer))
    return parts


def subgraph(graph: Graph, nodes: IntArray) -> Graph:
    """Whole components, their nodes renamed 0, 1, ... in the order given."""
    if not len(graph.edges):
        return edgeless(len(nodes))
    new_name = np.full(graph.n_nodes, -1)
    new_name[nodes] = np.arange(len(nodes))
    inside = new_name[graph.edges[:, 0]] >= 0
    return Graph(len(nodes), new_name[graph.edges[inside]], graph.weights[inside])


def disjoint_union(graphs: list[Graph]) -> Graph:
    """One graph of several, their nodes named one after the other."""
    starts = np.cumsum([0, *(graph.n_nodes for graph in graphs)])
    edges = [graph.edges + start for graph, start in zip(graphs, starts, strict=False)]
    no_edges = edgeless(0)
    return Graph(
        int(starts[-1]),
        np.concatenate([no_edges.edges, *edges]),
        np.concatenate([no_edges.weights, *(graph.weights for graph in graphs)]),
    )


def _kinds(graph: Graph, label: IntArray, n_states: int, budget: Budget) -> IntArray:
    """(n_nodes,) which engine takes care of each node's component."""
    sizes = np.bincount(label)
    of_edge = label[graph.edges[:, 0]]
    n_hard = np.bincount(of_edge[graph.weights == -np.inf], minlength=len(sizes))
    is_clique = (2 * n_hard == sizes * (sizes - 1)) & (sizes > 2)
    is_clique[is_clique] = _affordable(sizes[is_clique], n_states, budget)
    kinds = np.where(is_clique, CLIQUE, OTHER)
    kinds[sizes == 2] = PAIRS
    kinds[sizes == 1] = INDEPENDENT
    return kinds[label]


def _affordable(sizes: IntArray, n_states: int, budget: Budget) -> BoolArray:
    """Which cliques are within the budget, the cheapest first."""
    each = [_transitions(n, n_states) for n in range(int(sizes.max(initial=0)) + 1)]
    costs = np.array(each, dtype=float)[sizes]
    order = np.argsort(costs, kind="stable")
    within = np.empty(len(sizes), dtype=bool)
    within[order] = np.cumsum(costs[order]) <= budget.max_operations
    return within


def _transitions(n: int, n_states: int) -> float:
    """What a clique of n nodes costs; those that have no assignment say so at no cost."""
    if not is_within_reach(n, n_states):
        return np.inf
    return 0 if n > n_states else count_sets(n, n_states)[1]


def _simple_answer(name: str, part: Graph, label: IntArray, n_states: int) -> Answer:
    sizes = np.unique(label, return_counts=True)[1]
    cost = n_states * part.n_nodes
    if name == "clique":
        cost = int(sum(_transitions(int(n), n_states) for n in sizes))
    width = int(sizes.max()) - 1
    return Answer(name, len(sizes), part.n_nodes, len(part.edges), width, 8 * cost, cost)


# ------------------------------------------------------------------- components with cycles


def _by_width(
    nodes: IntArray, part: Graph, n_states: int, budget: Budget, rest: Rest
) -> Iterator[Part]:
    """Junction trees for what is cheap, cut vertices where they are cheaper, or the rest."""
    max_degree = budget.max_degree(n_states)
    contraction = contract(part)
    layout = lay_out(contraction.core, n_states, max_degree)
    label, costs = costs_of_components(part, layout, n_states, max_degree)
    fits, wide = _within(costs, budget), []
    for c in [c for c, cost in enumerate(costs) if cost.n_operations > CHEAP or not fits[c]]:
        members = np.flatnonzero(label == c)
        found = Wide(nodes[members], subgraph(part, members), costs[c])
        cheaper = by_pieces(found, n_states, budget)
        if cheaper is not None:
            fits[c] = False
            yield cheaper
        elif not fits[c]:
            wide.append(found)
    if fits.all():
        tree = lambda _: tabulate(layout, n_states)  # noqa: E731
        yield Part(nodes, through_tree(part, contraction, tree), _tree_answer(part, costs))
    elif fits.any():
        members = np.flatnonzero(fits[label])
        chosen = subgraph(part, members)
        infer = junction_tree(chosen, max_bytes=2 * budget.max_bytes)
        kept = [cost for cost, fit in zip(costs, fits, strict=True) if fit]
        yield Part(nodes[members], infer, _tree_answer(chosen, kept))
    if wide:
        yield from rest(wide)


def _within(costs: list[Cost], budget: Budget) -> BoolArray:
    """Which components fit both budgets together, the cheapest first."""
    order = np.argsort([float(cost.n_operations) for cost in costs], kind="stable")
    fits = np.zeros(len(costs), dtype=bool)
    n_bytes, n_operations = np.cumsum(
        [[float(costs[c].n_bytes), float(costs[c].n_operations)] for c in order], axis=0
    ).T
    known = np.array([not costs[c].at_least for c in order])
    fits[order] = known & (n_bytes <= budget.max_bytes) & (n_operations <= budget.max_operations)
    return fits


def _tree_answer(part: Graph, costs: list[Cost]) -> Answer:
    return answer_for("junction_tree", part, costs)


def answer_for(engine: str, part: Graph, costs: list[Cost]) -> Answer:
    """The costs of several components together."""
    width = max(cost.width for cost in costs)
    sums = [int(sum(column)) for column in zip(*(cost[1:3] for cost in costs), strict=True)]
    return Answer(engine, len(costs), part.n_nodes, len(part.edges), width, *sums)


# ------------------------------------------------------------------------------ pieces


def by_pieces(wide: Wide, n_states: int, budget: Budget) -> Part | None:
    """Large cliques summed by subsets, where that is possible and cheaper."""
    found = pieces(wide.graph, n_states)
    if not any(piece.is_clique for piece in found):
        return None
    cost = _cost_of_pieces(found, n_states, budget)
    within = cost.n_bytes <= budget.max_bytes and cost.n_operations <= budget.max_operations
    if cost.at_least or not within or cost.n_operations >= wide.cost.n_operations:
        return None
    return Part(
        wide.nodes, cut_vertices(wide.graph), answer_for("cut_vertices", wide.graph, [cost])
    )


def _cost_of_pieces(found: list[Piece], n_states: int, budget: Budget) -> Cost:
    """Cliques, and the junction trees of all other pieces, K times each."""
    others = [piece for piece in found if not piece.is_clique]
    cliques = [len(piece.nodes) for piece in found if piece.is_clique]
    union = disjoint_union([piece.graph for piece in others])
    max_degree = budget.max_degree(n_states)
    cost = cost_of(lay_out(contract(union).core, n_states, max_degree), n_states, max_degree)
    n_operations = cost.n_operations + sum(count_sets(n - 1, n_states)[1] for n in cliques)
    n_bytes = cost.n_bytes + 8 * n_states**2 * sum(len(piece.nodes) for piece in found)
    return cost._replace(n_bytes=n_bytes, n_operations=n_states * n_operations)
