"""Blocks that hang together in single nodes, and the tree that they form. Chapter 7.

A *cut vertex* is a node whose removal makes its component fall apart; a *block* is a largest part
without one. Two blocks share one node at most, and blocks and cut vertices form a tree: piles of
several teachers that share a few points, or a ring with trees on it. The blocks are found by one
walk in depth first, in O(n_nodes + E) (Hopcroft and Tarjan, 1973).

Of the blocks, cliques of cannot-links are worth an engine of their own, where a table over them is
dear. All other blocks that hang together are one *piece*, whose tables cost no more than those of
its dearest block. :mod:`cgmm.inference.cut_vertices` sends messages between the pieces.

======  ======================================================================
v, u    nodes; e an edge between them
low_v   least depth that the walk reaches from below v by one more edge
n, K    nodes of a block; number of states
======  ======================================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from cgmm.inference.clique import count_sets, is_within_reach
from cgmm.network import Graph, connected_components
from cgmm.numerics import BoolArray, IntArray

__all__ = ["Piece", "blocks_of_edges"]

# Cliques whose tables would be smaller than this stay with their neighbours.
SMALLEST_CLIQUE = 10_000


def blocks_of_edges(graph: Graph) -> IntArray:
    """The block in which every edge lies.

    Parameters
    ----------
    graph : Graph
        Simplified.

    Returns
    -------
    (E,) int array
        Numbers of the blocks, from 0 on.

    Examples
    --------
    A triangle and an edge that hangs on it:

    >>> edges = np.array([[0, 1], [0, 2], [1, 2], [2, 3]])
    >>> blocks_of_edges(Graph(4, edges, np.ones(4)))
    array([1, 1, 1, 0])
    """
    walk = _Walk(graph)
    for root in np.unique(graph.edges[:, 0]).tolist():
        if walk.depth[root] < 0:
            walk.descend_from(root)
    return np.array(walk.block, dtype=np.intp)


class _Walk:
    """Depth first through a graph, without recursion."""

    def __init__(self, graph: Graph):
        self.near: list[list[tuple[int, int]]] = [[] for _ in range(graph.n_nodes)]
        for e, (a, b) in enumerate(graph.edges.tolist()):
            self.near[a].append((b, e))
            self.near[b].append((a, e))
        self.depth, self.low = [-1] * graph.n_nodes, [0] * graph.n_nodes
        self.block, self.n_blocks = [-1] * len(graph.edges), 0
        # Edges in the order in which they are met, until their block is known.
        self.met: list[int] = []

    def descend_from(self, root: int) -> None:
        """Visit a component."""
        self.depth[root] = 0
        path = [(root, -1, iter(self.near[root]))]
        while path:
            v, arrived, rest = path[-1]
            below = self._next_below(v, arrived, rest)
            if below is not None:
                path.append((*below, iter(self.near[below[0]])))
                continue
            path.pop()
            if path:
                self._leave(path[-1][0], v, arrived)

    def _next_below(
        self, v: int, arrived: int, rest: Iterator[tuple[int, int]]
    ) -> tuple[int, int] | None:
        """The next node that is new, and the edge to it; edges back up are noted on the way."""
        for u, e in rest:
            if self.depth[u] < 0:
                self.depth[u] = self.low[u] = self.depth[v] + 1
                self.met.append(e)
                return u, e
            if e != arrived and self.depth[u] < self.depth[v]:
                self.met.append(e)
                self.low[v] = min(self.low[v], self.depth[u])
        return None

    def _leave(self, parent: int, v: int, arrived: int) -> None:
        """Go up: if nothing below reaches above the parent, the edges met since are a block."""
        if self.low[v] < self.depth[parent]:
            self.low[parent] = min(self.low[parent], self.low[v])
            return
        while self.block[arrived] < 0:
            self.block[self.met.pop()] = self.n_blocks
        self.n_blocks += 1


# --------------------------------------------------------------------------- pieces


class Piece(NamedTuple):
    """Nodes that one engine takes care of, given the state of the node above."""

    nodes: IntArray
    """(n,) the node above first, unless ``level`` is zero."""
    graph: Graph
    """Its edges, nodes named by their place in ``nodes``."""
    is_clique: bool
    """Whether every two nodes are cannot-linked, and a table over them would be dear."""
    level: int
    """Cut vertices on the way from the root; 0 for a root, which has no node above."""


def is_dear(n: int, n_states: int) -> bool:
    """Whether a clique of n nodes is better asked by subsets of labels than by a table."""
    if not 2 < n <= n_states or not is_within_reach(n, n_states):
        return False
    return n_states**n > max(SMALLEST_CLIQUE, n_states * count_sets(n, n_states)[1])


def pieces(graph: Graph, n_states: int) -> list[Piece]:
    """Dear cliques and what else hangs together, from the roots down; nodes without edges in none.

    The root of a component is its largest piece that is no clique, else a node.
    """
    if not len(graph.edges):
        return []
    piece, is_clique = _pieces_of_edges(graph, n_states)
    tree = _PieceTree(graph, piece)
    for p in np.lexsort((-tree.sizes, is_clique)).tolist():
        if tree.level[p] < 0:
            tree.hang(p, from_node=bool(is_clique[p]))
    order = np.argsort(piece, kind="stable")
    edges_of = np.split(order, np.flatnonzero(np.diff(piece[order])) + 1)
    return [
        _piece(graph, tree.nodes_of[p], edges_of[p], tree.above[p], bool(is_clique[p]), level)
        for level, p in sorted(zip(tree.level, range(len(is_clique)), strict=True))
    ]


def _pieces_of_edges(graph: Graph, n_states: int) -> tuple[IntArray, BoolArray]:
    """The piece of every edge, and of every piece whether it is a dear clique."""
    block = blocks_of_edges(graph)
    ends = np.unique(np.column_stack([np.tile(block, 2), graph.edges.T.ravel()]), axis=0)
    n = np.bincount(ends[:, 0])
    n_hard = np.bincount(block[graph.weights == -np.inf], minlength=len(n))
    dear = np.array([is_dear(int(size), n_states) for size in n], dtype=bool)
    dear &= 2 * n_hard == n * (n - 1)
    own = dear[block]
    rest = Graph(graph.n_nodes, graph.edges[~own], graph.weights[~own])
    component = connected_components(rest)[graph.edges[:, 0]]
    # Dear blocks are pieces by themselves, all other edges are grouped by what they hang on.
    _, piece = np.unique(np.where(own, graph.n_nodes + block, component), return_inverse=True)
    is_clique = np.zeros(piece.max(initial=-1) + 1, dtype=bool)
    is_clique[piece[own]] = True
    return piece, is_clique


class _PieceTree:
    """Which pieces hang on which nodes."""

    def __init__(self, graph: Graph, piece: IntArray):
        of_ends = np.column_stack([np.tile(piece, 2), graph.edges.T.ravel()])
        members = np.unique(of_ends, axis=0)
        self.sizes = np.bincount(members[:, 0])
        self.nodes_of = np.split(members[:, 1], np.cumsum(self.sizes)[:-1])
        by_node = members[np.argsort(members[:, 1], kind="stable")]
        counts = np.bincount(by_node[:, 1], minlength=graph.n_nodes)
        self.pieces_of = np.split(by_node[:, 0], np.cumsum(counts)[:-1])
        self.level = [-1] * len(self.sizes)
        self.above = [-1] * len(self.sizes)

    def hang(self, root: int, *, from_node: bool) -> None:
        """Give every piece of a component its level, and the node on which it hangs."""
        if from_node:
            shared = [len(self.pieces_of[v]) for v in self.nodes_of[root]]
            front = self._below(int(self.nodes_of[root][np.argmax(shared)]), 1)
        else:
            self.level[root], front = 0, [root]
        while front:
            front = [
                q
                for p in front
                for v in self.nodes_of[p].tolist()
                if v != self.above[p]
                for q in self._below(v, self.level[p] + 1)
            ]

    def _below(self, v: int, level: int) -> list[int]:
        """The pieces of a node that have no level yet."""
        found = [q for q in self.pieces_of[v].tolist() if self.level[q] < 0]
        for q in found:
            self.level[q], self.above[q] = level, v
        return found


def _piece(
    graph: Graph, nodes: IntArray, edges: IntArray, above: int, is_clique: bool, level: int
) -> Piece:
    """The node above first, the others ascending."""
    nodes = np.concatenate([nodes[nodes == above], nodes[nodes != above]])
    order = np.argsort(nodes)
    ends = order[np.searchsorted(nodes, graph.edges[edges], sorter=order)]
    return Piece(nodes, Graph(len(nodes), ends, graph.weights[edges]), is_clique, level)
