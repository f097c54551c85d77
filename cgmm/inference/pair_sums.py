"""How probable any two nodes are to have one state, for many pairs of nodes at once. Chapter 14.

Nodes that nothing ties are independent. Those of one component are found by its elimination: a node
v that goes leaves p(z_v | z_S), given the neighbours S that it has then, and the product of these
conditionals is the joint distribution. So what is known of a node a is carried up, from the clique
of v and S to that of the first of S, which goes next of them, and then down to all others::

    up     p(z_a | S) = Σ_v p(z_v | S) p(z_a | v, S)
    down   p(z_a, v, S) = p(z_v | S) p(z_a, S),     p(v, S) p(z_a | v, S) where a has passed

Many nodes a are carried together. Sums are of what is positive, there are no differences, so that
both tails keep their digits. What is left, where tables would be large, is for whoever calls: hold
one node, and ask the engine for the other.

=========  ======================================================================
v, S       node, called by its place in the order; the neighbours it has when it goes
C          v and S, a clique: the axes of its tables, in this order
a, n       nodes that are carried together, and how many
=========  ======================================================================
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from cgmm.inference.clique_tree import spread_axes
from cgmm.inference.contraction_rounds import conditional, diagonals, log_sum
from cgmm.inference.costs import MAX_BYTES, most_neighbours
from cgmm.inference.elimination import Order, elimination_order
from cgmm.inference.reduction import Reduced, reducer
from cgmm.network import Graph, connected_components, induced_subgraph, simplify
from cgmm.numerics import BoolArray, FloatArray, IntArray, blocks, log_normalise

__all__ = ["PairSums", "pair_sums"]

# Numbers in the tables of nodes that are carried together: 128 MiB.
MAX_CARRIED = 2**24


class PairSums(NamedTuple):
    """What was found, each up to rounding in all its digits."""

    same: FloatArray
    """(P,) p(z_a = z_b)."""
    apart: FloatArray
    """(P,) p(z_a ≠ z_b)."""
    found: BoolArray
    """(P,) which pairs were; the numbers of the others are zero."""


def pair_sums(
    graph: Graph,
    unary: FloatArray,
    nodes: FloatArray,
    pairs: IntArray,
    *,
    exact: bool = True,
    max_bytes: int = MAX_BYTES,
) -> PairSums:
    """p(z_a = z_b) and p(z_a ≠ z_b) of many pairs of nodes.

    Parameters
    ----------
    graph : Graph
        The network.
    unary : (n_nodes, K) array
        Log-potentials; some joint assignment is possible.
    nodes : (n_nodes, K) array
        The nodes' marginals.
    pairs : (P, 2) int array
        Any nodes.
    exact : bool, default=True
        Whether the marginals are exact. If not, only pairs that nothing ties are found, so that
        the others are what the engine of the marginals says.
    max_bytes : int, default=2**31
        What tables may take.

    Returns
    -------
    PairSums
        Of those pairs that are found without holding nodes.

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
    graph = simplify(graph)
    reduced = reducer(graph)(unary) if exact else Reduced(unary, b"", graph, 0.0, None)
    same, apart = np.zeros((2, len(pairs)))
    sums = PairSums(same, apart, np.zeros(len(pairs), dtype=bool))
    ends, turned = pairs, np.zeros(len(pairs), dtype=bool)
    if reduced.mirror is not None:
        ends = reduced.mirror.node_of[pairs]
        turned = np.logical_xor.reduce(reduced.mirror.parity[pairs], axis=1)
    label = connected_components(reduced.graph)
    of_end, sizes = label[ends], np.bincount(label)
    one = (ends[:, 0] == ends[:, 1]) | (unary.shape[1] == 1)
    free = (of_end[:, 0] != of_end[:, 1]) & ~one
    _fill(sums, one, 1.0 - turned[one], 1.0 * turned[one])
    # Evidence, too, may have cut the chain that tied two.
    _fill(sums, free, *_independent(nodes, pairs[free]))
    tied, alone = ~one & ~free & exact, sizes[of_end[:, 0]] == 2
    by_tree = partial(_by_tree, max_bytes=max_bytes)
    for asked, answer in ((tied & alone, _of_two), (tied & ~alone, by_tree)):
        if asked.any():
            found = answer(reduced, ends[asked])
            if found is not None:
                _fill(sums, asked, *np.where(turned[asked], found[::-1], found))
    return sums


def often_first(pairs: IntArray) -> IntArray:
    """Each pair, the end first that more of them name: fewer nodes are carried, or held."""
    often = np.bincount(pairs.ravel())[pairs] if pairs.size else pairs
    return np.where((often[:, 1] > often[:, 0])[:, None], pairs[:, ::-1], pairs)


def _fill(sums: PairSums, where: BoolArray | IntArray, same: FloatArray, apart: FloatArray) -> None:
    """Put what was found in its place."""
    sums.same[where], sums.apart[where], sums.found[where] = same, apart, True


def _independent(nodes: FloatArray, pairs: IntArray) -> tuple[FloatArray, FloatArray]:
    """Sums of products; those over different states are taken as such, not as what is missing."""
    p, q = nodes[pairs[:, 0]], nodes[pairs[:, 1]]
    others = np.ones((nodes.shape[1],) * 2) - np.eye(nodes.shape[1])
    return (p * q).sum(axis=1), (p * (q @ others)).sum(axis=1)


def _of_two(reduced: Reduced, pairs: IntArray) -> FloatArray:
    """(2, P) as of :func:`_by_tree`, where nothing else ties the two: a small table each.

    Most answers about pairs at random are such; one by one, trees take a hundred times as long.
    """
    graph, n_states = reduced.graph, reduced.h.shape[1]
    weight_at = np.zeros(graph.n_nodes)
    weight_at[graph.edges[:, 0]] = weight_at[graph.edges[:, 1]] = graph.weights
    sums = np.empty((2, len(pairs)))
    for part in blocks(len(pairs), n_states**2):
        a, b = pairs[part].T
        tables = diagonals(weight_at[a], n_states)
        tables = tables + reduced.h[a][:, :, None] + reduced.h[b][:, None, :]
        joint, _ = log_normalise(tables.reshape(len(a), -1))
        sums[:, part] = _same_and_apart(joint.reshape(tables.shape))
    return sums


def _same_and_apart(joint: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Of joint distributions (n, K, K); sums over different states are not what is missing."""
    return (
        np.trace(joint, axis1=1, axis2=2), (joint * (1 - np.eye(joint.shape[1]))).sum(axis=(1, 2))
    )  # fmt: skip


def _by_tree(reduced: Reduced, pairs: IntArray, max_bytes: int) -> FloatArray | None:
    """(2, P) p(z_a = z_b) and p(z_a ≠ z_b) of pairs; None where tables would be too large."""
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
    # Carried is the first end.
    ends = often_first(pairs)
    carried, row = np.unique(place[ends[:, 0]], return_inverse=True)
    sums = np.empty((2, len(pairs)))
    height = max(1, MAX_CARRIED // n_cells)
    for start in range(0, len(carried), height):
        joint = tree.joints(carried[start : start + height])
        here = np.flatnonzero(row // height == start // height)
        found = joint[place[ends[here, 1]], row[here] - start]
        sums[:, here] = _same_and_apart(found)
    return sums


class _Tree:
    """The conditionals of all nodes, and the beliefs of their cliques."""

    def __init__(self, graph: Graph, order: Order, unary: FloatArray):
        place, self.n_states = {v: i for i, v in enumerate(order.nodes)}, unary.shape[1]
        near = enumerate(order.neighbours)
        self.cliques = [[v, *sorted(place[u] for u in found)] for v, found in near]
        tables = [np.zeros((self.n_states,) * len(clique)) for clique in self.cliques]
        for v, h in enumerate(unary[order.nodes]):
            tables[v] += self._spread(h, [v], v)
        for (a, b), w in zip(graph.edges.tolist(), graph.weights, strict=True):
            v, u = sorted((place[a], place[b]))
            tables[v] += self._spread(diagonals(np.array([w]), self.n_states)[0], [v, u], v)
        for v, (_, *separator) in enumerate(self.cliques):
            if separator:
                parent = separator[0]
                tables[parent] += self._spread(log_sum(tables[v], 0), separator, parent)
        self.given = [conditional(table, 0) for table in tables]
        self.belief = self.given.copy()
        for v, (_, *separator) in reversed(list(enumerate(self.cliques))):
            if separator:
                self.belief[v] = self.given[v] * self._sum_to(self.belief, separator)

    def _spread(self, table: FloatArray, nodes: list[int], v: int) -> FloatArray:
        """A table over some nodes, its last axes, with those of the clique of v."""
        clique, n_first = self.cliques[v], table.ndim - len(nodes)
        axes = (*range(n_first), *(n_first + clique.index(u) for u in nodes))
        return spread_axes(table, axes, n_first + len(clique))

    def _sum_to(self, tables: list[FloatArray], separator: list[int]) -> FloatArray:
        """The table of the clique above a separator, summed to it along the last axes."""
        clique, table = self.cliques[separator[0]], tables[separator[0]]
        n_first = table.ndim - len(clique)
        return np.asarray(table.sum(
            axis=tuple(n_first + i for i, u in enumerate(clique) if u not in separator)
        ))  # fmt: skip

    def joints(self, carried: IntArray) -> FloatArray:
        """(n_nodes, n, K, K) p(z_v, z_a) of all nodes v and of those carried."""
        n, n_nodes, k = len(carried), len(self.cliques), self.n_states
        passed, given_clique = self._upwards(carried)
        tables: list[FloatArray] = [np.empty(0)] * n_nodes
        joints = np.empty((n_nodes, n, k, k))
        asked_again = {separator[0] for _, *separator in self.cliques if separator}
        for v, (_, *separator) in reversed(list(enumerate(self.cliques))):
            above = self._sum_to(tables, separator) if separator else np.zeros((n, k))
            # p(z_v, z_a) = Σ_S p(z_v | S) p(S, z_a), as one product
            joints[v] = above.reshape(n, k, -1) @ self.given[v].reshape(k, -1).T
            here = self.belief[v] * given_clique[v]
            joints[v, passed[v]] = here.reshape(-1, k, k, k ** len(separator)).sum(axis=3)
            if v in asked_again:
                tables[v] = self.given[v] * above[:, :, None]
                tables[v][passed[v]] = here
        return joints

    def _upwards(self, carried: IntArray) -> tuple[list[list[int]], list[FloatArray]]:
        """Of every clique which of those carried have passed it, and p(z_a | C) (m, K, K, ...)."""
        k = self.n_states
        passed: list[list[int]] = [[] for _ in self.cliques]
        coming: list[list[FloatArray]] = [[] for _ in self.cliques]
        for i, v in enumerate(carried.tolist()):
            passed[v] = [i]
            coming[v] = [spread_axes(np.eye(k)[None], (0, 1, 2), 2 + len(self.cliques[v]))]
        found = []
        for v, (_, *separator) in enumerate(self.cliques):
            shape = (k,) * (2 + len(separator))
            full = [np.broadcast_to(table, (len(table), *shape)) for table in coming[v]]
            found.append(np.concatenate([np.empty((0, *shape)), *full]))
            if separator and passed[v]:
                above = separator[0]
                passed[above] = passed[above] + passed[v]
                onwards = (self.given[v] * found[v]).sum(axis=2)
                coming[above].append(self._spread(onwards, separator, above))
        return passed, found
