"""How probable any two nodes are to have one state: which pairs are found how. Chapter 14.

Nodes that nothing ties are independent. Of those that are tied, the many of a large component are
found together by its tree (:mod:`cgmm.inference.pair_tree`). What is left, where few ask or tables
would be large or made too often, is for whoever calls: hold one node, and ask the engine for the
other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cgmm.inference.clique_tree import MAX_BYTES, most_neighbours
from cgmm.inference.pair_tree import grow, plan, sums_of_pairs
from cgmm.inference.reduction import Reduced, reducer
from cgmm.network import Graph, connected_components, induced_subgraph, simplify
from cgmm.numerics import BoolArray, FloatArray, IntArray

__all__ = ["PairSums", "pair_sums"]

# Components in which fewer nodes are asked about are held node by node, all components at once.
FEW = 8


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
    of_end = connected_components(reduced.graph)[ends]
    one, free = ends[:, 0] == ends[:, 1], of_end[:, 0] != of_end[:, 1]
    if unary.shape[1] == 1:
        one, free = np.ones_like(one), np.zeros_like(free)
    _fill(sums, one, 1.0 - turned[one], 1.0 * turned[one])
    # Evidence, too, may have cut the chain that tied two.
    _fill(sums, free, *_independent(nodes, pairs[free]))
    if exact:
        asked = np.flatnonzero(~one & ~free)
        _by_tree(sums, reduced, asked, ends[asked], turned[asked], max_bytes)
    return sums


def _fill(sums: PairSums, where: BoolArray | IntArray, same: FloatArray, apart: FloatArray) -> None:
    """Put what was found in its place."""
    sums.same[where], sums.apart[where], sums.found[where] = same, apart, True


def _independent(nodes: FloatArray, pairs: IntArray) -> tuple[FloatArray, FloatArray]:
    """Sums of products; those over different states are taken as such, not as what is missing."""
    p, q = nodes[pairs[:, 0]], nodes[pairs[:, 1]]
    others = np.ones((nodes.shape[1],) * 2) - np.eye(nodes.shape[1])
    return (p * q).sum(axis=1), (p * (q @ others)).sum(axis=1)


def _by_tree(
    sums: PairSums,
    reduced: Reduced,
    asked: IntArray,
    pairs: IntArray,
    turned: BoolArray,
    max_bytes: int,
) -> None:
    """Fill in the pairs of components in which many nodes are asked about."""
    graph, n_states = reduced.graph, reduced.h.shape[1]
    label = connected_components(graph)
    busy = np.bincount(label[np.unique(pairs)], minlength=graph.n_nodes) > FEW
    members = np.flatnonzero(busy[label])
    if not len(members):
        return
    tree = grow(
        induced_subgraph(graph, members), n_states, most_neighbours(max_bytes / 8, n_states)
    )
    # Conditionals, beliefs, and what is being made of them
    if 3 * 8 * tree.n_cells > max_bytes:
        return
    place = np.full(graph.n_nodes, -1)
    place[members[tree.nodes]] = np.arange(len(tree.nodes))
    there = np.flatnonzero(place[pairs[:, 0]] >= 0)
    if not len(there):
        return
    ways = plan(tree, place[pairs[there]])
    # To hold a node and ask the engine is a way through all tables, once for each node.
    n_held = np.bincount(label[np.unique(pairs[there])]).max()
    if ways.n_cells > n_held * tree.n_cells:
        return
    same, apart = sums_of_pairs(tree, reduced.h[members], ways)
    swap = turned[there]
    _fill(sums, asked[there], np.where(swap, apart, same), np.where(swap, same, apart))
