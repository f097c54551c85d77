"""What exact inference costs, component by component, before any of it is done. Chapter 7.

Two things are limited: the memory that tables take at one time, and the entries of tables that are
visited in one call. Both grow as K^(width + 1).

=====  ======================================================================
K      number of states of a node
width  most neighbours of a node when it is eliminated
=====  ======================================================================
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cgmm.inference.clique_tree import Layout, in_words
from cgmm.network import Graph, TooCostlyError, connected_components
from cgmm.numerics import IntArray

__all__ = ["MAX_OPERATIONS", "Answer", "Cost"]

# Entries of tables that are worth waiting for: some minutes, and less than an hour.
MAX_OPERATIONS = 200_000_000_000


class Answer(NamedTuple):
    """Who answers for which part of a network, and at what cost."""

    engine: str
    """Its name in ENGINES, or "cut_vertices" or "cutset"."""
    n_components: int
    """Components of the network that is left when evidence, and for K = 2 the mirror, are used."""
    n_nodes: int
    """Nodes in them."""
    n_edges: int
    """Edges in them."""
    width: int
    """The largest induced width among them, where it was found; at least that, where not."""
    n_bytes: int
    """What the tables of exact inference take, or would take at least."""
    n_operations: int
    """Entries of tables that exact inference visits in one call, or would visit at least."""

    @property
    def exact(self) -> bool:
        """Whether the answer is exact up to rounding."""
        return self.engine not in ("belief_propagation", "none")


class Cost(NamedTuple):
    """What the junction tree of a network takes."""

    width: int
    n_bytes: int
    n_operations: int
    at_least: bool = False
    """Whether the search for an order got stuck before it knew."""


def cost_of(layout: Layout, n_states: int, max_degree: int) -> Cost:
    """The cost of a layout as a whole; at least the given width where it got stuck."""
    if layout.order.stuck:
        width = max_degree + 1
        return Cost(width, 8 * n_states**width, n_states ** (width + 1), at_least=True)
    width = max(map(len, layout.order.neighbours), default=0)
    return Cost(width, int(layout.n_bytes.sum()), int(layout.n_operations.sum()))


def costs_of_components(
    graph: Graph, layout: Layout, n_states: int, max_degree: int
) -> tuple[IntArray, list[Cost]]:
    """The component of every node, and the cost of every component; nothing where no core is."""
    label = connected_components(graph)
    n = label.max(initial=-1) + 1
    width = np.zeros(n, dtype=np.intp)
    sizes = [len(near) for near in layout.order.neighbours]
    np.maximum.at(width, label[layout.order.nodes], np.array(sizes, dtype=np.intp))
    n_bytes, n_operations = np.zeros(n, dtype=object), np.zeros(n, dtype=object)
    np.add.at(n_bytes, label[layout.firsts], layout.n_bytes)
    np.add.at(n_operations, label[layout.firsts], layout.n_operations)
    costs = [Cost(*row) for row in zip(width.tolist(), n_bytes, n_operations, strict=True)]
    for c in np.unique(label[layout.order.stuck]).tolist():
        costs[c] = cost_of(layout, n_states, max_degree)
    return label, costs


def refuse_cost(
    graph: Graph, n_states: int, cost: Cost, max_bytes: float, max_operations: float
) -> None:
    """Name a component, both of its costs, both budgets, and what answers instead."""
    least = "at least " if cost.at_least else ""
    raise TooCostlyError(
        f"exact inference is out of reach for the component of {{nodes}}, tied by "
        f"{len(graph.edges):,} edges: in the order of elimination it has an induced width of "
        f"{least}{cost.width}, so that with K = {n_states} its tables would take "
        f"{least}{in_words(cost.n_bytes)} (max_bytes is {in_words(int(max_bytes))}) and "
        f"{least}{cost.n_operations:.2g} operations (max_operations is {max_operations:.2g}). "
        "Use inference='auto', which approximates such components by belief propagation.",
        np.arange(graph.n_nodes),
    )
