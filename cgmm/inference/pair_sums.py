"""Compute the probability that two nodes have the same state, for many pairs of nodes at once.

:mod:`cgmm.diagnose` calls it; chapter 14 explains it. Two nodes in different components are
independent, and two nodes that form a component have a closed form. In a larger component, the
order of elimination gives p(z_v | z_S) for each node v, with S the neighbours of v at its
elimination; the product of these conditionals is the joint distribution. Many nodes a are *carried*
through it together: their states become an additional axis of all tables::

    up     p(z_a, v | S) = p(z_v | S) Π p(z_a | S')      over the cliques S' whose parent is v and S
    down   p(z_a, v, S) = p(z_a, v | S) p(z_a, S) / p(z_a | S)

All terms are positive and nothing is subtracted, so probabilities near zero are as accurate as
those near one. Pairs whose tables would be too large are marked as not found; the caller then fixes
one node, and calls the engine for the marginals of the other.

=========  ==============================================================================
v, S       node as its position in the order, e.g. 4; its neighbours then, e.g. [6, 9]
C          v and S, a clique: the axes of its table, in this order, e.g. [4, 6, 9]
a, n       carried nodes, e.g. [0, 7], and their number, e.g. 2
=========  ==============================================================================
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from cgmm.inference.clique_tree import Order, elimination_order, spread_axes
from cgmm.inference.contraction import conditional, diagonals, log_sum
from cgmm.inference.costs import MAX_BYTES, most_neighbours
from cgmm.inference.reduction import Reduced, reducer
from cgmm.network import Graph, connected_components, edge_message, induced_subgraph, simplify
from cgmm.numerics import BoolArray, FloatArray, IntArray

__all__ = ["PairSums", "pair_sums"]

# Nodes are carried in batches whose tables hold at most this number of floats (128 MiB).
MAX_CARRIED = 2**24


class PairSums(NamedTuple):
    """Probabilities of pairs, accurate up to rounding."""

    same: FloatArray
    """(P,) p(z_a = z_b)."""
    apart: FloatArray
    """(P,) p(z_a ≠ z_b)."""
    found: BoolArray
    """(P,) True for the pairs that were found; the probabilities of the others are zero."""


def pair_sums(
    graph: Graph, unary: FloatArray, nodes: FloatArray, pairs: IntArray, *, exact: bool = True,
    max_bytes: int = MAX_BYTES,
) -> PairSums:  # fmt: skip
    """Compute p(z_a = z_b) and p(z_a ≠ z_b) of many pairs of nodes.

    Parameters
    ----------
    graph : Graph
        The network.
    unary : (n_nodes, K) array
        Log-potentials; some joint assignment is possible.
    nodes : (n_nodes, K) array
        Marginals of the nodes.
    pairs : (P, 2) int array
        Pairs of any nodes.
    exact : bool, default=True
        True if the marginals are exact. If False, only pairs in different components are found,
        because the others depend on the engine of the marginals.
    max_bytes : int, default=2**31
        Maximum size of tables.

    Returns
    -------
    PairSums
        The pairs that are found without fixing a node.

    Examples
    --------
    A chain of 20 nodes; its ends are nearly independent:

    >>> n = np.arange(20)
    >>> chain = Graph(20, np.column_stack([n[:-1], n[1:]]), np.full(19, 2.0))
    >>> pairs = np.column_stack([np.zeros(19, dtype=int), n[1:]])
    >>> found = pair_sums(chain, np.zeros((20, 2)), np.full((20, 2), 0.5), pairs)
    >>> found.same[[0, 1, 18]].round(4)
    array([0.8808, 0.79  , 0.5028])
    """
    graph, n_states = simplify(graph), unary.shape[1]
    reduced = reducer(graph)(unary) if exact else Reduced(unary, b"", graph, 0.0, None)
    ends, is_turned = pairs, np.zeros(len(pairs), dtype=bool)
    if reduced.mirror is not None:
        ends = reduced.mirror.node_of[pairs]
        is_turned = np.logical_xor(*reduced.mirror.parity[pairs.T])
    label = connected_components(reduced.graph)
    is_one = np.equal(*ends.T) | (n_states == 1)
    # Evidence can also disconnect the two nodes.
    is_free = np.not_equal(*label[ends.T]) & ~is_one
    is_alone = ~is_one & ~is_free & exact & (np.bincount(label)[label[ends[:, 0]]] == 2)
    in_tree = ~is_one & ~is_free & exact & ~is_alone
    sums, found = np.zeros((2, len(pairs))), is_one | is_free | is_alone
    sums[0, is_one] = 1.0
    weight_of = np.zeros(reduced.graph.n_nodes)
    weight_of[reduced.graph.edges.T] = reduced.graph.weights
    sums[:, is_alone] = _sum_two_states(reduced.h, ends[is_alone], weight_of[ends[is_alone, 0]])
    if in_tree.any() and (by_tree := _sum_by_tree(reduced, ends[in_tree], max_bytes)) is not None:
        sums[:, in_tree], found = by_tree, found | in_tree
    sums[:, is_turned] = sums[::-1, is_turned]
    p, q = nodes[pairs[is_free].T]
    sums[:, is_free] = (p * q).sum(axis=1), (p * (q @ (1 - np.eye(n_states)))).sum(axis=1)
    return PairSums(sums[0], sums[1], found)


def order_by_frequency(pairs: IntArray) -> IntArray:
    """Return each pair with its more frequent node first, so that fewer tables must be kept."""
    often = np.bincount(pairs.ravel())[pairs] if pairs.size else pairs
    return np.where((often[:, 1] > often[:, 0])[:, None], pairs[:, ::-1], pairs)


def _sum_two_states(h: FloatArray, pairs: IntArray, weights: FloatArray) -> FloatArray:
    """Return (2, P) p(z_a = z_b) and p(z_a ≠ z_b) of pairs that form a component."""
    h_a, h_b = h[pairs[:, 0]], h[pairs[:, 1]]
    others = edge_message(h_b, np.full(len(pairs), -np.inf))
    log_odds = log_sum(h_a + h_b, 1) + weights - log_sum(h_a + others, 1)
    return np.stack([expit(log_odds), expit(-log_odds)])


def _sum_by_tree(reduced: Reduced, pairs: IntArray, max_bytes: int) -> FloatArray | None:
    """Return (2, P) p(z_a = z_b) and p(z_a ≠ z_b); None if tables would be too large."""
    graph, n_states = reduced.graph, reduced.h.shape[1]
    label = connected_components(graph)
    members = np.flatnonzero(np.isin(label, label[pairs]))
    part = induced_subgraph(graph, members)
    order = elimination_order(part.edges, n_states, most_neighbours(max_bytes / 8, n_states))
    n_cells = n_states * sum(n_states ** (len(near) + 1) for near in order.neighbours)
    if order.stuck or 8 * n_cells > max_bytes:
        return None
    tree = _Tree(part, order, reduced.h[members])
    place = np.zeros(graph.n_nodes, dtype=np.intp)
    place[members[order.nodes]] = np.arange(len(members))
    ends = place[order_by_frequency(pairs)]
    carried, row = np.unique(ends[:, 0], return_inverse=True)
    same, apart = sums = np.empty((2, len(pairs)))
    height = max(1, MAX_CARRIED // n_cells)
    for start in range(0, len(carried), height):
        joint, here = tree.joints(carried[start : start + height]), row // height == start // height
        found = joint[ends[here, 1], row[here] - start]
        same[here] = np.trace(found, axis1=1, axis2=2)
        apart[here] = (found * (1 - np.eye(n_states))).sum(axis=(1, 2))
    return sums


class _Tree:
    """The conditionals p(z_v | z_S) of all nodes, and a method that carries nodes through them."""

    def __init__(self, graph: Graph, order: Order, unary: FloatArray):
        place, k = {v: i for i, v in enumerate(order.nodes)}, unary.shape[1]
        near = enumerate(order.neighbours)
        self.cliques = [[v, *sorted(place[u] for u in found)] for v, found in near]
        tables = [np.zeros((k,) * len(clique)) for clique in self.cliques]
        for v, h in enumerate(unary[order.nodes]):
            tables[v] += self._spread_table(h, [v], v)
        for (a, b), table in zip(graph.edges.tolist(), diagonals(graph.weights, k), strict=True):
            v, u = sorted((place[a], place[b]))
            tables[v] += self._spread_table(table, [v, u], v)
        for v, (_, *separator) in enumerate(self.cliques):
            if separator:
                tables[separator[0]] += self._spread_table(
                    log_sum(tables[v], 0), separator, separator[0]
                )
        self.given = [conditional(table, 0) for table in tables]

    def _spread_table(self, table: FloatArray, nodes: list[int], v: int) -> FloatArray:
        """Return a table whose last axes are the given nodes, expanded to the clique of v."""
        clique, n_first = self.cliques[v], table.ndim - len(nodes)
        axes = (*range(n_first), *(n_first + clique.index(u) for u in nodes))
        return spread_axes(table, axes, n_first + len(clique))

    def joints(self, carried: IntArray) -> FloatArray:
        """Return (n_nodes, n, K, K) probabilities p(z_v, z_a) of nodes v and carried nodes a."""
        n, k, cliques = len(carried), len(self.given[0]), self.cliques
        tables = [np.ones((n, k, *(1,) * len(clique))) for clique in cliques]
        for i, v in enumerate(carried.tolist()):
            tables[v] = np.repeat(tables[v], k, axis=2)
            tables[v][i] = np.eye(k).reshape(tables[v].shape[1:])
        below = list[FloatArray]()
        for v, (_, *separator) in enumerate(cliques):
            tables[v] = self.given[v] * tables[v]
            below.append(tables[v].sum(axis=2))
            if separator:
                above = separator[0]
                tables[above] = tables[above] * self._spread_table(below[v], separator, above)
        joints = np.empty((len(cliques), n, k, k))
        for v, (_, *separator) in reversed(list(enumerate(cliques))):
            if separator:
                summed = tuple(
                    2 + i for i, u in enumerate(cliques[separator[0]]) if u not in separator
                )
                joint, is_possible = tables[separator[0]].sum(axis=summed), below[v] > 0
                tables[v] *= np.divide(joint, below[v], out=joint * 0, where=is_possible)[
                    :, :, None
                ]
            joints[v] = tables[v].reshape(n, k, k, -1).sum(axis=3).transpose(0, 2, 1)
        return joints
