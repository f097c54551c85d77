"""Compute the probability that two nodes have the same state, for many pairs of nodes at once.

:mod:`cgmm.diagnose` calls this file; chapter 14 explains it. Two nodes in different components are
independent, and two nodes that form a component have a closed form. In a larger component, the
order of elimination gives p(z_v | z_S) for each node v, where S are the neighbours of v at its
elimination; the product of these conditionals is the joint distribution. The joint distributions of
a node a with all other nodes are computed in two passes. Many nodes a are treated at once, because
their states are an additional axis of all tables::

    up     p(z_a, v | S) = p(z_v | S) Π p(z_a | S')      over the cliques S' whose parent is v and S
    down   p(z_a, v, S) = p(z_a, v | S) p(z_a, S) / p(z_a | S)

All terms are positive and none is subtracted, so probabilities near zero are as accurate as those
near one. Pairs whose tables would be too large are marked as not found; the caller then fixes the
state of one node and asks the engine for the marginals of the other.

=========  ==============================================================================
v, S       node, numbered by its position in the order, e.g. 4; its neighbours, e.g. [6, 9]
C          clique: v and then S, which are the axes of its table, e.g. [4, 6, 9]
a, n       nodes whose states are an additional axis, e.g. [0, 7]; their number, e.g. 2
=========  ==============================================================================
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from cgmm.inference.clique_tree import Order, elimination_order, spread_axes
from cgmm.inference.contraction import build_edge_tables, log_sum, normalise_logs
from cgmm.inference.costs import MAX_BYTES, find_max_degree
from cgmm.inference.reduction import Reduced, reducer
from cgmm.network import Graph, connected_components, edge_message, induced_subgraph, simplify
from cgmm.numerics import BoolArray, FloatArray, IntArray

__all__ = ["PairSums", "pair_sums"]

# Joint distributions are computed for batches of nodes, such that all tables of a batch have at
# most this number of floats (128 MiB).
MAX_CARRIED = 2**24


class PairSums(NamedTuple):
    """Probabilities that the nodes of pairs have equal or different states, up to rounding."""

    same: FloatArray
    """(P,) p(z_a = z_b)."""
    apart: FloatArray
    """(P,) p(z_a ≠ z_b)."""
    found: BoolArray
    """(P,) True for the pairs whose probabilities were found; for other pairs, both are zero."""


def pair_sums(
    graph: Graph, unary: FloatArray, nodes: FloatArray, pairs: IntArray, *, exact: bool = True,
    max_bytes: int = MAX_BYTES,
) -> PairSums:  # fmt: skip
    """Compute p(z_a = z_b) and p(z_a ≠ z_b) for many pairs of nodes.

    Parameters
    ----------
    graph : Graph
        The network.
    unary : (n_nodes, K) array
        Unary log-potentials; at least one joint assignment must be possible.
    nodes : (n_nodes, K) array
        Marginals of the nodes, from an engine.
    pairs : (P, 2) int array
        Pairs of any nodes.
    exact : bool, default=True
        True if the marginals are exact. If False, only pairs of nodes in different components are
        found, because the other probabilities depend on the engine.
    max_bytes : int, default=2**31
        Maximum size of tables.

    Returns
    -------
    PairSums
        The probabilities, and a mask of the pairs whose probabilities were found.

    Examples
    --------
    The two ends of a chain of 20 nodes are nearly independent:

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
    is_same = np.equal(*ends.T) | (n_states == 1)
    # Evidence can also disconnect the two nodes.
    is_independent = np.not_equal(*label[ends.T]) & ~is_same
    is_dependent, sizes = ~is_same & ~is_independent & exact, np.bincount(label)[label[ends[:, 0]]]
    is_component, in_tree = is_dependent & (sizes == 2), is_dependent & (sizes > 2)
    sums, found = np.zeros((2, len(pairs))), is_same | is_independent | is_component
    sums[0, is_same] = 1.0
    weight_of = np.zeros(reduced.graph.n_nodes)
    weight_of[reduced.graph.edges.T] = reduced.graph.weights
    two_nodes = ends[is_component]
    sums[:, is_component] = _sum_two_nodes(reduced.h, two_nodes, weight_of[two_nodes[:, 0]])
    if in_tree.any() and (by_tree := _sum_by_tree(reduced, ends[in_tree], max_bytes)) is not None:
        sums[:, in_tree], found = by_tree, found | in_tree
    sums[:, is_turned] = sums[::-1, is_turned]
    p, q = nodes[pairs[is_independent].T]
    sums[:, is_independent] = (p * q).sum(axis=1), (p * (q @ (1 - np.eye(n_states)))).sum(axis=1)
    return PairSums(sums[0], sums[1], found)


def order_by_frequency(pairs: IntArray) -> IntArray:
    """Put the more frequent node of each pair first, so that fewer distinct nodes come first."""
    often = np.bincount(pairs.ravel())[pairs] if pairs.size else pairs
    return np.where((often[:, 1] > often[:, 0])[:, None], pairs[:, ::-1], pairs)


def _sum_two_nodes(h: FloatArray, pairs: IntArray, weights: FloatArray) -> FloatArray:
    """Return p(z_a = z_b) and p(z_a ≠ z_b) as (2, P), for pairs that are whole components."""
    h_a, h_b = h[pairs.T]
    others = edge_message(h_b, np.full(len(pairs), -np.inf))
    log_odds = log_sum(h_a + h_b, 1) + weights - log_sum(h_a + others, 1)
    return np.stack([expit(log_odds), expit(-log_odds)])


def _sum_by_tree(reduced: Reduced, pairs: IntArray, max_bytes: int) -> FloatArray | None:
    """Return p(z_a = z_b) and p(z_a ≠ z_b) as (2, P), or None if tables would be too large."""
    graph, n_states = reduced.graph, reduced.h.shape[1]
    label = connected_components(graph)
    members = np.flatnonzero(np.isin(label, label[pairs]))
    part = induced_subgraph(graph, members)
    order = elimination_order(part.edges, n_states, find_max_degree(max_bytes / 8, n_states))
    n_cells = n_states * sum(n_states ** (len(near) + 1) for near in order.neighbours)
    if order.stuck or 8 * n_cells > max_bytes:
        return None
    tree = _ConditionalTree(part, order, reduced.h[members])
    place = np.zeros(graph.n_nodes, dtype=np.intp)
    place[members[order.nodes]] = np.arange(len(members))
    ends = place[order_by_frequency(pairs)]
    first_nodes, row = np.unique(ends[:, 0], return_inverse=True)
    same, apart = sums = np.empty((2, len(pairs)))
    height = max(1, MAX_CARRIED // n_cells)
    for start in range(0, len(first_nodes), height):
        here = row // height == start // height
        joints = tree.compute_joints(first_nodes[start : start + height])
        joint = joints[ends[here, 1], row[here] - start]
        same[here] = np.trace(joint, axis1=1, axis2=2)
        apart[here] = (joint * (1 - np.eye(n_states))).sum(axis=(1, 2))
    return sums


class _ConditionalTree:
    """The conditionals p(z_v | z_S) of all nodes, from which joint distributions are computed."""

    def __init__(self, graph: Graph, order: Order, unary: FloatArray):
        place, k = {v: i for i, v in enumerate(order.nodes)}, unary.shape[1]
        separators = [sorted(place[u] for u in near) for near in order.neighbours]
        self.cliques = [[v, *separator] for v, separator in enumerate(separators)]
        tables = [np.zeros((k,) * len(clique)) for clique in self.cliques]
        for v, h in enumerate(unary[order.nodes]):
            tables[v] += self._spread_table(h, [v], v)
        edge_tables = build_edge_tables(graph.weights, k)
        for (a, b), table in zip(graph.edges.tolist(), edge_tables, strict=True):
            v, u = sorted((place[a], place[b]))
            tables[v] += self._spread_table(table, [v, u], v)
        for table, separator in zip(tables, separators, strict=True):
            if separator:
                parent = separator[0]
                tables[parent] += self._spread_table(log_sum(table, 0), separator, parent)
        self.given = [normalise_logs(table, 0) for table in tables]

    def _spread_table(self, table: FloatArray, nodes: list[int], v: int) -> FloatArray:
        """Reshape a table over these nodes so that its last axes are those of the clique of v."""
        clique, n_first = self.cliques[v], table.ndim - len(nodes)
        axes = (*range(n_first), *(n_first + clique.index(u) for u in nodes))
        return spread_axes(table, axes, n_first + len(clique))

    def compute_joints(self, first_nodes: IntArray) -> FloatArray:
        """Return (n_nodes, n, K, K) joint probabilities of all nodes and the n given nodes."""
        n, k, cliques = len(first_nodes), len(self.given[0]), self.cliques
        tables = [np.ones((n, k, *(1,) * len(clique))) for clique in cliques]
        for i, v in enumerate(first_nodes.tolist()):
            tables[v] = np.repeat(tables[v], k, axis=2)
            tables[v][i] = np.eye(k).reshape(tables[v].shape[1:])
        below = list[FloatArray]()
        for v, (_, *separator) in enumerate(cliques):
            tables[v] = self.given[v] * tables[v]
            below.append(tables[v].sum(axis=2))
            if separator:
                parent = separator[0]
                tables[parent] = tables[parent] * self._spread_table(below[v], separator, parent)
        joints = np.empty((len(cliques), n, k, k))
        for v, (_, *separator) in reversed(list(enumerate(cliques))):
            if separator:
                parent = separator[0]
                summed = tuple(2 + i for i, u in enumerate(cliques[parent]) if u not in separator)
                joint = tables[parent].sum(axis=summed)
                # If p(z_a | S) is zero, p(z_a, S) is zero too, so the quotient is zero.
                tables[v] *= (joint / np.where(below[v] > 0, below[v], 1.0))[:, :, None]
            joints[v] = tables[v].reshape(n, k, k, -1).sum(axis=3).transpose(0, 2, 1)
        return joints
