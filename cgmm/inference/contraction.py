"""Plan rake and compress: sum out nodes with one or two edges, many at a time.

The junction tree calls it first; chapter 7 explains it. A loop over the nodes of a chain of 100,000
nodes would be slow. In each round, either all leaves are summed out at once (*rake*), or a large
set of nodes of degree two, no two of them connected (*compress*). A round removes a constant
fraction of the nodes, so a chain or a tree is gone after a number of rounds logarithmic in its
size. The rest, the *core*, goes to the junction tree (:mod:`cgmm.inference.clique_tree`). The
computations of a round are in :mod:`cgmm.inference.contraction_rounds`.

=============  ======================================================================
v              node that is summed out, e.g. 7
h (n_nodes,K)  log-potentials of the nodes, plus everything summed into them, e.g. -1.2
T (t, K, K)    log-potentials of the pairs that compression has joined, first node first
slot           index of an edge's table in T, e.g. 3; -1 for the potential w [z_a = z_b]
total          function that sums out states: log_sum, or best for the best assignment
=============  ======================================================================
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, cast

import numpy as np

from cgmm.inference.contraction_rounds import Compress, Edges, Rake, Total, diagonals
from cgmm.network import Graph
from cgmm.numerics import BoolArray, FloatArray, IntArray

__all__ = ["Contraction", "contract"]

# The overhead of a round exceeds its gain below this number of nodes; the junction tree sums them.
SMALLEST_ROUND = 16


class Contraction(NamedTuple):
    """The planned rounds, and the graph that remains after them."""

    rounds: list[Rake | Compress]
    """The rounds, in order."""
    initial: FloatArray
    """(t,) log-weight of the original edge between each pair of T, or zero without an edge."""
    roots: IntArray
    """Nodes that remain without an edge: the last of their components."""
    core: Edges
    """Edges that remain."""

    def collect(self, unary: FloatArray, total: Total) -> tuple[FloatArray, FloatArray]:
        """Sum out round by round; return h and T, each entry with its value when it was used."""
        h, tables = unary.copy(), diagonals(self.initial, unary.shape[1])
        for step in self.rounds:
            step.collect(h, tables, total)
        return h, tables

    def distribute(
        self, h: FloatArray, tables: FloatArray, nodes: FloatArray, pairs: FloatArray
    ) -> None:
        """Compute the marginals of the summed-out nodes from those of the core, in reverse order.

        The missing entries of ``nodes`` (n_nodes, K) and of ``pairs``, of the shape of T, are
        filled in.
        """
        for step in reversed(self.rounds):
            step.distribute(h, tables, nodes, pairs)

    def trace_back(self, h: FloatArray, tables: FloatArray, z: IntArray) -> None:
        """Fill in the best states of the summed-out nodes, given those of the core in ``z``."""
        for step in reversed(self.rounds):
            step.trace_back(h, tables, z)


# ------------------------------------------------------------------------ the plan


def contract(graph: Graph) -> Contraction:
    """Plan the rounds for a graph, until a round would sum out fewer than ``SMALLEST_ROUND`` nodes.

    Parameters
    ----------
    graph : Graph
        A simplified graph.

    Returns
    -------
    Contraction
        The plan, which is valid for all unaries.

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
    removed = [step.summed_out for step in rounds]
    roots = np.setdiff1d(np.flatnonzero(degrees == 0), np.concatenate([[], *removed]))
    return Contraction(rounds, np.array(initial, dtype=np.float64), roots, edges)


def _next_round(
    edges: Edges, degrees: IntArray, initial: list[float]
) -> tuple[Rake | Compress | None, Edges]:
    """Plan a round of leaves if there are many, else of nodes of degree two; return new edges."""
    n_leaves, n_between = (degrees == 1).sum(), (degrees == 2).sum()
    if n_leaves >= SMALLEST_ROUND and 4 * n_leaves >= n_between:
        return _plan_rake(edges, degrees)
    if n_between >= SMALLEST_ROUND:
        chosen = _independent_subset(edges.ends, degrees == 2)
        if chosen.sum() >= SMALLEST_ROUND:
            return _plan_compress(edges, chosen, initial)
    return None, edges


def _plan_rake(edges: Edges, degrees: IntArray) -> tuple[Rake, Edges]:
    """Plan to sum out all leaves; of two leaves joined by an edge, only the second."""
    is_leaf = degrees[edges.ends] == 1
    has_leaf = is_leaf.any(axis=1)
    leaves = edges.take(np.flatnonzero(has_leaf))
    ends = np.where(is_leaf[has_leaf, 1:], leaves.ends[:, ::-1], leaves.ends)
    leaves = leaves._replace(ends=ends)
    plain, tabled = np.flatnonzero(leaves.slots < 0), np.flatnonzero(leaves.slots >= 0)
    return Rake(leaves.take(plain), leaves.take(tabled)), edges.take(np.flatnonzero(~has_leaf))


def _independent_subset(ends: IntArray, candidates: BoolArray) -> BoolArray:
    """Return a mask of many candidates, no two of them connected.

    In each of three passes, a candidate is chosen if its random number (of a fixed seed) is larger
    than those of the candidates connected to it.
    """
    priority = np.random.default_rng(0).permutation(len(candidates))
    chosen, remaining = np.zeros_like(candidates), candidates.copy()
    for _ in range(3):
        contested = ends[remaining[ends].all(axis=1)]
        won = remaining.copy()
        won[np.where(priority[contested[:, 0]] < priority[contested[:, 1]], *contested.T)] = False
        chosen |= won
        remaining &= ~won
        remaining[ends[chosen[ends].any(axis=1)].ravel()] = False
    return chosen


def _plan_compress(edges: Edges, chosen: BoolArray, initial: list[float]) -> tuple[Compress, Edges]:
    """Plan to replace the two edges of each chosen node by one edge between its neighbours."""
    touched = chosen[edges.ends].any(axis=1)
    left, right = _two_edges_each(edges.take(np.flatnonzero(touched)), chosen)
    new_pairs = np.column_stack([left.ends[:, 0], right.ends[:, 1]])
    kept = edges.take(np.flatnonzero(~touched))
    target, edges = _assign_slots(new_pairs, kept, len(chosen), initial)
    return Compress(left, right, target), edges


def _two_edges_each(touched: Edges, chosen: BoolArray) -> tuple[Edges, Edges]:
    """Return edges (a, v) and (v, b) of every chosen node v, with a < b, sorted by v."""
    v_first = chosen[touched.ends[:, :1]]
    others_first = touched._replace(ends=np.where(v_first, touched.ends[:, ::-1], touched.ends))
    in_twos = others_first.take(np.lexsort(others_first.ends.T))
    left, right = in_twos.take(slice(0, None, 2)), in_twos.take(slice(1, None, 2))
    return left, right._replace(ends=right.ends[:, ::-1])


def _assign_slots(
    new_pairs: IntArray, kept: Edges, n_nodes: int, initial: list[float]
) -> tuple[IntArray, Edges]:
    """Return the slot of every new pair, reusing the slot of an existing edge, and all edges."""
    base = np.array([n_nodes, 1])
    keys, of_pair = np.unique(new_pairs @ base, return_inverse=True)
    _, old, in_kept = np.intersect1d(keys, kept.ends @ base, True, return_indices=True)
    slots, weights = np.full(len(keys), -1, dtype=np.intp), np.zeros(len(keys))
    slots[old], weights[old] = kept.slots[in_kept], kept.weights[in_kept]
    fresh = np.flatnonzero(slots < 0)
    slots[fresh] = len(initial) + np.arange(len(fresh))
    initial.extend(weights[fresh])
    added = Edges(np.column_stack(np.divmod(keys, n_nodes)), np.zeros(len(keys)), slots)
    rest = kept.take(np.delete(np.arange(len(kept.slots)), in_kept))
    merged = map(np.concatenate, zip(rest, added, strict=True))
    return slots[of_pair], Edges._make(cast("Iterable[Any]", merged))
