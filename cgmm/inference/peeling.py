"""What hangs on a network by one edge, and what hangs on that: trees, done with once. Chapter 10.

A node with one edge has one thing to say, and its message into the network never changes. Taken
off, it may leave its neighbour with one edge, and so on in rounds. What stays is the *core*, each
node of which lies on a cycle or between two, and of each tree one *root*. Iterations have to visit
the core alone: a tree says what it knows before them, and hears the answer after.

======  =========================================================
leaf    node that goes, by its only edge to its *parent*
h       unaries, to which a round adds what its leaves say
======  =========================================================
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cgmm.inference.contraction_rounds import Edges, Rake, log_sum
from cgmm.network import Graph
from cgmm.numerics import FloatArray, IntArray, log_normalise


class Peeling(NamedTuple):
    """A graph taken apart: its trees round by round, and the rest."""

    rounds: list[Rake]
    """Leaves, the outermost first."""
    roots: IntArray
    """Nodes that have no edge left: the last of each tree."""
    nodes: IntArray
    """Those that stay, with two edges or more, ascending."""
    core: Graph
    """The graph between them, its nodes renamed 0, 1, ... in that order."""

    def send_inward(self, h: FloatArray) -> FloatArray:
        """Add what the trees say to the unaries h (n_nodes, K), in place; return log Σ_k at roots.

        Of a forest, the sum of what is returned is log Z.
        """
        for step in self.rounds:
            step.collect(h, np.empty((0, h.shape[1], h.shape[1])), log_sum)
        return log_normalise(h[self.roots])[1]

    def send_outward(self, h: FloatArray, core: FloatArray) -> FloatArray:
        """All marginals (n_nodes, K), from h after the way inward and those of the core."""
        marginals = np.empty(h.shape[::-1]).T
        marginals[self.nodes] = core
        marginals[self.roots] = log_normalise(h[self.roots])[0]
        no_tables = np.empty((0, h.shape[1], h.shape[1]))
        for step in reversed(self.rounds):
            step.distribute(h, no_tables, marginals, no_tables)
        return marginals


def peel_leaves(graph: Graph) -> Peeling:
    """Take leaves off a graph, round by round, until it has none.

    Parameters
    ----------
    graph : Graph
        Simplified.

    Returns
    -------
    Peeling
        In O(n_nodes + E).

    Examples
    --------
    A triangle with a tail, and a pair:

    >>> edges = np.array([[0, 1], [0, 2], [1, 2], [2, 3], [3, 4], [5, 6]])
    >>> peeling = peel_leaves(Graph(7, edges, np.ones(6)))
    >>> [step.summed_out.tolist() for step in peeling.rounds]
    [[4, 5], [3]]
    >>> peeling.nodes, peeling.roots
    (array([0, 1, 2]), array([6]))
    """
    ends, n_nodes = graph.edges.ravel(), graph.n_nodes
    degrees = np.bincount(ends, minlength=n_nodes)
    # The sum of what a node has left: of its edges, and where one is left, that edge.
    row = np.repeat(np.arange(len(graph.edges)), 2)
    left = np.bincount(ends, row, minlength=n_nodes).astype(np.intp)
    goes, kept = np.zeros(n_nodes, dtype=bool), np.ones(len(graph.edges), dtype=bool)
    rounds, leaves = [], np.flatnonzero(degrees == 1)
    while len(leaves):
        parents = graph.edges[left[leaves]].sum(axis=1) - leaves
        # Of two that hang on each other, the second stays, as the root.
        first = (degrees[parents] > 1) | (leaves < parents)
        leaves, parents = leaves[first], parents[first]
        hanging = left[leaves]
        rounds.append(_rake(leaves, parents, graph.weights[hanging]))
        goes[leaves], kept[hanging], degrees[leaves] = True, False, 0
        np.subtract.at(degrees, parents, 1)
        np.subtract.at(left, parents, hanging)
        leaves = np.unique(parents[degrees[parents] == 1])
    roots, nodes = np.flatnonzero((degrees == 0) & ~goes), np.flatnonzero(degrees)
    core = Graph(len(nodes), np.searchsorted(nodes, graph.edges[kept]), graph.weights[kept])
    return Peeling(rounds, roots, nodes, core)


def _rake(leaves: IntArray, parents: IntArray, weights: FloatArray) -> Rake:
    """A round without tables."""
    edges = Edges(np.column_stack([leaves, parents]), weights, np.full(len(leaves), -1))
    return Rake(edges, edges.take(slice(0, 0)))
