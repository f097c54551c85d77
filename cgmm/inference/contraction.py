"""Rake and compress: sums out, many at a time, the nodes that have one or two edges. Chapter 7.

A chain of 100,000 nodes is no place for a loop over nodes. In each round either all leaves are
summed out at once (*rake*), or a large set of nodes of degree two, no two of them tied
(*compress*); a round takes a fraction of what there is, so that a chain or a tree is gone after a
number of rounds logarithmic in its size. What is left, the *core*, is for the junction tree
(:mod:`cgmm.inference.clique_tree`). What a round computes stands in
:mod:`cgmm.inference.contraction_rounds`.

=============  ====================================================================
v              a node that is summed out
h (n_nodes,K)  log-potentials of the nodes, with all that was summed into them
T (t, K, K)    log-potentials of the pairs that compressing has tied, first node first
slot           where an edge keeps its potential: t >= 0 in T, or -1: w [z_a = z_b]
total          how states are summed out: log_sum, or the largest for the best assignment
=============  ====================================================================
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, cast

import numpy as np

from cgmm.inference.contraction_rounds import Compress, Edges, Rake, Total, diagonals
from cgmm.network import Graph
from cgmm.numerics import BoolArray, FloatArray, IntArray

__all__ = ["Contraction", "contract"]

# Below this many nodes a round is not worth its calls: the junction tree takes them one by one.
SMALLEST_ROUND = 16


class Contraction(NamedTuple):
    """The rounds, and what they leave."""

    rounds: list[Rake | Compress]
    initial: FloatArray
    """(t,) weight w of the edge that stood between a pair of T before, or zero."""
    roots: IntArray
    """Nodes left without an edge: the last of their components."""
    core: Edges
    """Edges that are left."""

    def collect(self, unary: FloatArray, total: Total) -> tuple[FloatArray, FloatArray]:
        """Sum out round by round; return h and T, each entry as it was when it was used."""
        h, tables = unary.copy(), diagonals(self.initial, unary.shape[1])
        for step in self.rounds:
            step.collect(h, tables, total)
        return h, tables

    def distribute(
        self, h: FloatArray, tables: FloatArray, nodes: FloatArray, pairs: FloatArray
    ) -> None:
        """Marginals of the nodes summed out, from those of the core, the last round first.

        ``nodes`` (n_nodes, K) and ``pairs``, of the shape of T, are filled in where they are not.
        """
        for step in reversed(self.rounds):
            step.distribute(h, tables, nodes, pairs)

    def trace_back(self, h: FloatArray, tables: FloatArray, z: IntArray) -> None:
        """Find the best states of the nodes summed out, given those of the core in ``z``."""
        for step in reversed(self.rounds):
            step.trace_back(h, tables, z)


# ------------------------------------------------------------------------ the plan


def contract(graph: Graph) -> Contraction:
    """Plan the rounds for a graph, until one would sum out too few nodes to be worth it.

    Parameters
    ----------
    graph : Graph
        Simplified.

    Returns
    -------
    Contraction
        To be used with any unaries.

    Examples
    --------
    >>> n = np.arange(1000)
    >>> chain = Graph(1000, np.column_stack([n[:-1], n[1:]]), np.ones(999))
    >>> from cgmm.inference.contraction_rounds import log_sum
    >>> contraction = contract(chain)
    >>> h, _ = contraction.collect(np.zeros((1000, 2)), log_sum)
    >>> 1000 - len(contraction.roots) - len(np.unique(contraction.core.ends)) > 900
    True
    """
    edges = Edges(graph.edges, graph.weights, np.full(len(graph.edges), -1, dtype=np.intp))
    rounds: list[Rake | Compress] = []
    initial: list[float] = []
    while True:
        degrees = np.bincount(edges.ends.ravel(), minlength=graph.n_nodes)
        step, edges = _next_round(edges, degrees, initial)
        if step is None:
            break
        rounds.append(step)
    gone = [step.summed_out for step in rounds]
    roots = np.setdiff1d(np.flatnonzero(degrees == 0), np.concatenate([[], *gone]))
    return Contraction(rounds, np.array(initial, dtype=np.float64), roots, edges)


def _next_round(
    edges: Edges, degrees: IntArray, initial: list[float]
) -> tuple[Rake | Compress | None, Edges]:
    """Plan a round of leaves if they are many, else of nodes of degree two; return other edges."""
    n_leaves, n_between = (degrees == 1).sum(), (degrees == 2).sum()
    if n_leaves >= SMALLEST_ROUND and 4 * n_leaves >= n_between:
        return _plan_rake(edges, degrees)
    if n_between >= SMALLEST_ROUND:
        chosen = _untied_subset(edges.ends, degrees == 2)
        if chosen.sum() >= SMALLEST_ROUND:
            return _plan_compress(edges, chosen, initial)
    return None, edges


def _plan_rake(edges: Edges, degrees: IntArray) -> tuple[Rake, Edges]:
    """Plan to sum out all leaves; of two leaves joined by an edge, the second."""
    is_leaf = degrees[edges.ends] == 1
    hanging = is_leaf.any(axis=1)
    leaves = edges.take(np.flatnonzero(hanging))
    ends = np.where(is_leaf[hanging, 1:], leaves.ends[:, ::-1], leaves.ends)
    leaves = leaves._replace(ends=ends)
    plain, tabled = np.flatnonzero(leaves.slots < 0), np.flatnonzero(leaves.slots >= 0)
    return Rake(leaves.take(plain), leaves.take(tabled)), edges.take(np.flatnonzero(~hanging))


def _untied_subset(ends: IntArray, candidates: BoolArray) -> BoolArray:
    """Mask of many candidates no two of which are tied: local winners of a fixed lottery."""
    lots = np.random.default_rng(0).permutation(len(candidates))
    chosen, open_ = np.zeros_like(candidates), candidates.copy()
    for _ in range(3):
        contested = ends[open_[ends].all(axis=1)]
        won = open_.copy()
        won[np.where(lots[contested[:, 0]] < lots[contested[:, 1]], *contested.T)] = False
        chosen |= won
        open_ &= ~won
        open_[ends[chosen[ends].any(axis=1)].ravel()] = False
    return chosen


def _plan_compress(edges: Edges, chosen: BoolArray, initial: list[float]) -> tuple[Compress, Edges]:
    """Replace the two edges of each chosen node by one between its neighbours."""
    touched = chosen[edges.ends].any(axis=1)
    left, right = _two_edges_each(edges.take(np.flatnonzero(touched)), chosen)
    new_pairs = np.column_stack([left.ends[:, 0], right.ends[:, 1]])
    kept = edges.take(np.flatnonzero(~touched))
    target, edges = _give_slots(new_pairs, kept, len(chosen), initial)
    return Compress(left, right, target), edges


def _two_edges_each(touched: Edges, chosen: BoolArray) -> tuple[Edges, Edges]:
    """Return edges (a, v) and (v, b) of every chosen node v, with a < b, in the order of v."""
    v_first = chosen[touched.ends[:, :1]]
    others_first = touched._replace(ends=np.where(v_first, touched.ends[:, ::-1], touched.ends))
    in_twos = others_first.take(np.lexsort(others_first.ends.T))
    left, right = in_twos.take(slice(0, None, 2)), in_twos.take(slice(1, None, 2))
    return left, right._replace(ends=right.ends[:, ::-1])


def _give_slots(
    new_pairs: IntArray, kept: Edges, n_nodes: int, initial: list[float]
) -> tuple[IntArray, Edges]:
    """Give every new pair a slot, its old one if it has an edge already; return all edges too."""
    base = np.array([n_nodes, 1])
    keys, of_pair = np.unique(new_pairs @ base, return_inverse=True)
    _, old, in_kept = np.intersect1d(keys, kept.ends @ base, True, return_indices=True)
    slots, weights = np.full(len(keys), -1, dtype=np.intp), np.zeros(len(keys))
    slots[old], weights[old] = kept.slots[in_kept], kept.weights[in_kept]
    fresh = np.flatnonzero(slots < 0)
    slots[fresh] = len(initial) + np.arange(len(fresh))
    initial.extend(weights[fresh])
    tied = Edges(np.column_stack(np.divmod(keys, n_nodes)), np.zeros(len(keys)), slots)
    rest = kept.take(np.delete(np.arange(len(kept.slots)), in_kept))
    together = map(np.concatenate, zip(rest, tied, strict=True))
    return slots[of_pair], Edges._make(cast("Iterable[Any]", together))
