"""Contract a graph by rake and compress: sum out nodes with one or two edges, many at a time.

The junction tree begins with this contraction; chapter 7 explains it. A loop over the nodes of a
chain of 100,000 nodes would be slow. In each round, either all leaves are summed out at once
(*rake*), or a large set of unconnected nodes of degree two (*compress*). A round removes a constant
fraction of the nodes, so the number of rounds for a chain or a tree is logarithmic in its size. The
nodes that remain are the *core*, which the junction tree eliminates
(:mod:`cgmm.inference.clique_tree`).

``contract`` plans the rounds for a graph; ``Rake`` and ``Compress`` execute them. The method
``collect`` sums out the nodes of a round and adds the results to h and T. Afterwards the method
``distribute`` computes the marginals of these nodes from those of the remaining nodes. Each method
handles all nodes of the round at once, in logarithms.

=============  ======================================================================
v              node that is summed out: a leaf, or the middle node of a - v - b, e.g. 7
h (n_nodes,K)  log-potentials of the nodes, plus everything summed into them, e.g. -1.2
T (t, K, K)    log-potentials of the pairs that compression has connected, the smaller node
               first, e.g. -0.4; ``tables`` in the code
slot           index of an edge's table in T, e.g. 3; -1 for the potential w [z_a = z_b]
E              number of edges in a call, e.g. 40
total          ``log_sum``, which sums out states, or ``log_max``, which finds the best assignment
=============  ======================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, cast

import numpy as np

from cgmm.network import Graph, edge_message
from cgmm.numerics import BoolArray, FloatArray, IntArray, blocks

__all__ = ["Contraction", "contract"]


# ------------------------------------------------------------ the plan


# A round that sums out fewer nodes costs more than it saves; the junction tree eliminates them.
SMALLEST_ROUND = 16


class Contraction(NamedTuple):
    """Plan of the rounds, and the graph that remains after them."""

    rounds: list[Rake | Compress]
    """The rounds, in order."""
    initial: FloatArray
    """(t,) log-weights of original edges between the pairs of T; zero for a pair without edge."""
    roots: IntArray
    """The last node of each completely contracted component."""
    core: Edges
    """Edges that remain after all rounds."""

    def collect(self, unary: FloatArray, total: Total) -> tuple[FloatArray, FloatArray]:
        """Sum out the nodes of all rounds; return h and T, to which the results are added."""
        h, tables = unary.copy(), build_edge_tables(self.initial, unary.shape[1])
        for step in self.rounds:
            step.collect(h, tables, total)
        return h, tables

    def distribute(
        self, h: FloatArray, tables: FloatArray, nodes: FloatArray, pairs: FloatArray
    ) -> None:
        """Compute the marginals of the summed-out nodes from those of the core, last round first.

        The results are written to ``nodes`` (n_nodes, K) and ``pairs``, which has the shape of T.
        """
        for step in reversed(self.rounds):
            step.distribute(h, tables, nodes, pairs)

    def trace_back(self, h: FloatArray, tables: FloatArray, z: IntArray) -> None:
        """Add to ``z``, the best states of the core, the best states of the summed-out nodes."""
        for step in reversed(self.rounds):
            step.trace_back(h, tables, z)


# ------------------------------------------------------------------------ planning


def contract(graph: Graph) -> Contraction:
    """Plan rounds for a graph, as long as a round sums out at least ``SMALLEST_ROUND`` nodes.

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
    >>> from cgmm.inference.contraction import log_sum
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
        step, edges = _plan_round(edges, degrees, initial)
        if step is None:
            break
        rounds.append(step)
    removed = [step.summed_out for step in rounds]
    roots = np.setdiff1d(np.flatnonzero(degrees == 0), np.concatenate([[], *removed]))
    return Contraction(rounds, np.array(initial, dtype=np.float64), roots, edges)


def _plan_round(
    edges: Edges, degrees: IntArray, initial: list[float]
) -> tuple[Rake | Compress | None, Edges]:
    """Return the next round, which sums out leaves or nodes of degree two, and the new edges."""
    n_leaves, n_between = (degrees == 1).sum(), (degrees == 2).sum()
    if n_leaves >= SMALLEST_ROUND and 4 * n_leaves >= n_between:
        return _plan_rake(edges, degrees)
    if n_between >= SMALLEST_ROUND:
        chosen = _choose_unconnected(edges.ends, degrees == 2)
        if chosen.sum() >= SMALLEST_ROUND:
            return _plan_compress(edges, chosen, initial)
    return None, edges


def _plan_rake(edges: Edges, degrees: IntArray) -> tuple[Rake, Edges]:
    """Plan to sum out all leaves, but only the second of two leaves that form a component."""
    is_leaf = degrees[edges.ends] == 1
    has_leaf = is_leaf.any(axis=1)
    leaves = edges.take(np.flatnonzero(has_leaf))
    ends = np.where(is_leaf[has_leaf, 1:], leaves.ends[:, ::-1], leaves.ends)
    leaves = leaves._replace(ends=ends)
    plain, tabled = np.flatnonzero(leaves.slots < 0), np.flatnonzero(leaves.slots >= 0)
    return Rake(leaves.take(plain), leaves.take(tabled)), edges.take(np.flatnonzero(~has_leaf))


def _choose_unconnected(ends: IntArray, candidates: BoolArray) -> BoolArray:
    """Return a mask that selects candidates such that no two of them are connected.

    In each of three passes, a candidate is chosen if its random number (from a fixed seed) is
    larger than those of all remaining candidates that are connected to it.
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
    adjacent = chosen[edges.ends].any(axis=1)
    left, right = _split_edges_of_chosen(edges.take(np.flatnonzero(adjacent)), chosen)
    new_pairs = np.column_stack([left.ends[:, 0], right.ends[:, 1]])
    kept_edges = edges.take(np.flatnonzero(~adjacent))
    target, edges = _assign_slots(new_pairs, kept_edges, len(chosen), initial)
    return Compress(left, right, target), edges


def _split_edges_of_chosen(adjacent: Edges, chosen: BoolArray) -> tuple[Edges, Edges]:
    """Return the edges (a, v) and (v, b) of every chosen node v, where a < b, sorted by v."""
    v_first = chosen[adjacent.ends[:, :1]]
    others_first = adjacent._replace(ends=np.where(v_first, adjacent.ends[:, ::-1], adjacent.ends))
    sorted_by_v = others_first.take(np.lexsort(others_first.ends.T))
    left, right = sorted_by_v.take(slice(0, None, 2)), sorted_by_v.take(slice(1, None, 2))
    return left, right._replace(ends=right.ends[:, ::-1])


def _assign_slots(
    new_pairs: IntArray, kept_edges: Edges, n_nodes: int, initial: list[float]
) -> tuple[IntArray, Edges]:
    """Return the slots of new pairs, and all edges; an existing edge of a pair keeps its slot."""
    base = np.array([n_nodes, 1])
    keys, of_pair = np.unique(new_pairs @ base, return_inverse=True)
    _, old, in_kept = np.intersect1d(keys, kept_edges.ends @ base, True, return_indices=True)
    slots, weights = np.full(len(keys), -1, dtype=np.intp), np.zeros(len(keys))
    slots[old], weights[old] = kept_edges.slots[in_kept], kept_edges.weights[in_kept]
    fresh = np.flatnonzero(slots < 0)
    slots[fresh] = len(initial) + np.arange(len(fresh))
    initial.extend(weights[fresh])
    added = Edges(np.column_stack(np.divmod(keys, n_nodes)), np.zeros(len(keys)), slots)
    rest = kept_edges.take(np.delete(np.arange(len(kept_edges.slots)), in_kept))
    merged = map(np.concatenate, zip(rest, added, strict=True))
    return slots[of_pair], Edges._make(cast("Iterable[Any]", merged))


# ------------------------------------------------------------ rounds


# A sum of products is accurate if it exceeds this bound, because terms that underflow are below
# 1e-307.
SMALLEST_SUM = 1e-250

Total = Callable[..., FloatArray]
"""Function of log-values and an axis that removes the axis: ``log_sum`` or ``log_max``."""


class Edges(NamedTuple):
    """Edges with log-weights or, for pairs with a table in T, slots."""

    ends: IntArray
    """(E, 2) nodes. The first axis of a table in T is that of the smaller node."""
    weights: FloatArray
    """(E,) log-weights of the edges without a slot."""
    slots: IntArray
    """(E,) index of the edge's table in T, or -1 if it has none."""

    def take(self, rows: IntArray | slice) -> Edges:
        """Return the edges at the given indices."""
        return Edges(self.ends[rows], self.weights[rows], self.slots[rows])


class Rake(NamedTuple):
    """A round that sums out leaves; the ends of its edges are a leaf v and its neighbour."""

    plain: Edges
    """Edges of leaves whose potential is a log-weight."""
    tabled: Edges
    """Edges of leaves whose potential is a table in T."""

    @property
    def summed_out(self) -> IntArray:
        """(n,) leaves that are summed out."""
        return np.concatenate([self.plain.ends[:, 0], self.tabled.ends[:, 0]])

    def collect(self, h: FloatArray, tables: FloatArray, total: Total) -> None:
        """Add to h of each neighbour the messages of all its leaves."""
        v, parent = self.plain.ends.T
        message = edge_message(h[v], self.plain.weights, largest=total is log_max)
        np.add.at(h, parent, message)
        v, parent = self.tabled.ends.T
        np.add.at(h, parent, total(h[v][:, :, None] + _orient_tables(self.tabled, tables), 1))

    def distribute(
        self, h: FloatArray, tables: FloatArray, nodes: FloatArray, pairs: FloatArray
    ) -> None:
        """Compute the marginals of leaves, p(v) = Σ_parent p(parent) p(v | parent)."""
        v, parent = self.plain.ends.T
        message = edge_message(h[v], self.plain.weights)
        # Compute the message to a leaf from its parent's belief without the leaf's own message.
        outside = _log_or_minus_inf(nodes[parent]) - np.where(message == -np.inf, 0.0, message)
        nodes[v] = np.exp(h[v] + edge_message(outside, self.plain.weights))
        v, parent = self.tabled.ends.T
        joint = normalise_logs(h[v][:, :, None] + _orient_tables(self.tabled, tables), 1)
        joint *= nodes[parent][:, None, :]
        nodes[v] = joint.sum(axis=2)
        _store_pairs(self.tabled, joint, pairs)

    def trace_back(self, h: FloatArray, tables: FloatArray, z: IntArray) -> None:
        """Write to ``z`` the best state of each leaf, given the state of its neighbour."""
        for edges in self:
            v, parent = edges.ends.T
            z[v] = (h[v] + _condition_tables(edges, tables, z, parent)).argmax(axis=1)


class Compress(NamedTuple):
    """A round that sums out middle nodes v of a - v - b, with a < b."""

    left: Edges
    """Edges (a, v)."""
    right: Edges
    """Edges (v, b)."""
    target: IntArray
    """Slots of the pairs (a, b), to whose tables the results are added."""

    @property
    def summed_out(self) -> IntArray:
        """(n,) middle nodes v that are summed out."""
        return self.left.ends[:, 1]

    def collect(self, h: FloatArray, tables: FloatArray, total: Total) -> None:
        """Add to the table of each pair (a, b) the sum over the states of its middle node."""
        for part in self._split_into_blocks(h):
            summed = matrix_product(*self._get_tables(part, h, tables), total)
            np.add.at(tables, self.target[part], summed)

    def distribute(
        self, h: FloatArray, tables: FloatArray, nodes: FloatArray, pairs: FloatArray
    ) -> None:
        """Compute the marginals p(v), p(a, v) and p(v, b) of the middle nodes from p(a, b)."""
        for part in self._split_into_blocks(h):
            left, right = self._get_tables(part, h, tables)
            outer = pairs[self.target[part]]
            with_a = sum_joint_over_right(left, right, outer)
            nodes[self.summed_out[part]] = with_a.sum(axis=2)
            with_b = sum_joint_over_right(right, left, outer.transpose(0, 2, 1))
            _store_pairs(self.left.take(part), with_a.transpose(0, 2, 1), pairs)
            _store_pairs(self.right.take(part), with_b, pairs)

    def trace_back(self, h: FloatArray, tables: FloatArray, z: IntArray) -> None:
        """Write to ``z`` the best state of each v, given the states of a and b."""
        (a, v), b = self.left.ends.T, self.right.ends[:, 1]
        score = h[v] + _condition_tables(self.left, tables, z, a)
        score += _condition_tables(self.right, tables, z, b)
        z[v] = score.argmax(axis=1)

    def _split_into_blocks(self, h: FloatArray) -> Iterator[slice]:
        """Yield slices of the middle nodes such that the tables of a slice fit into the cache."""
        return blocks(len(self.target), 4 * h.shape[1] ** 2)

    def _get_tables(
        self, part: slice, h: FloatArray, tables: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return (E, K, K) log-potentials of the edges (v, a), with h of v added, and (v, b)."""
        left, right = self.left.take(part), self.right.take(part)
        with_a = _orient_tables(left, tables) + h[left.ends[:, 1]][:, None, :]
        return with_a.transpose(0, 2, 1), _orient_tables(right, tables)


# ------------------------------------------------------------------- potentials of edges


def build_edge_tables(weights: FloatArray, n_states: int) -> FloatArray:
    """Return (E, K, K) log-potentials w [z_a = z_b] of edges with these log-weights."""
    tables = np.zeros((len(weights), n_states, n_states))
    tables[:, np.arange(n_states), np.arange(n_states)] = weights[:, None]
    return tables


def _orient_tables(edges: Edges, tables: FloatArray) -> FloatArray:
    """Return (E, K, K) log-potentials of edges; axis 1 has the states of each edge's first end."""
    potentials = build_edge_tables(np.where(edges.slots < 0, edges.weights, 0.0), tables.shape[1])
    slotted = np.flatnonzero(edges.slots >= 0)
    potentials[slotted] = tables[edges.slots[slotted]]
    turned = slotted[edges.ends[slotted, 0] > edges.ends[slotted, 1]]
    potentials[turned] = potentials[turned].transpose(0, 2, 1)
    return potentials


def _condition_tables(edges: Edges, tables: FloatArray, z: IntArray, other: IntArray) -> FloatArray:
    """Return (E, K) log-potentials of one end of each edge, given the state z of ``other``."""
    potentials, rows = _orient_tables(edges, tables), np.arange(len(other))
    first = (edges.ends[:, 0] == other)[:, None]
    return np.where(first, potentials[rows, z[other]], potentials[rows, :, z[other]])


def _store_pairs(edges: Edges, joint: FloatArray, pairs: FloatArray) -> None:
    """Write into ``pairs`` the joint distribution of each edge that has a slot there."""
    forward = (edges.slots >= 0) & (edges.ends[:, 0] < edges.ends[:, 1])
    turned = (edges.slots >= 0) & ~forward
    pairs[edges.slots[forward]] = joint[forward]
    pairs[edges.slots[turned]] = joint[turned].transpose(0, 2, 1)


# -------------------------------------------------------------- sums over the middle node


def matrix_product(left: FloatArray, right: FloatArray, total: Total) -> FloatArray:
    """Sum v out of left[v, a] + right[v, b]; return (..., A, B) without a table over v, a and b."""
    if total is log_sum:
        return log_product(left, right)
    largest = np.full((*left.shape[:-2], left.shape[-1], right.shape[-1]), -np.inf)
    for v in range(left.shape[-2]):
        np.maximum(largest, left[..., v, :, None] + right[..., v, None, :], out=largest)
    return largest


def log_product(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return (..., A, B) log Σ_v exp(left[v, a] + right[v, b]), from a scaled matrix product."""
    _, _, tops, product, rows = _multiply_scaled(left, right)
    summed = _log_or_minus_inf(product)
    summed += tops[0].swapaxes(-1, -2)
    summed += tops[1]
    if len(rows[0]):
        summed[rows] = log_sum(_add_rows(left, right, rows), 1)
    return summed


def sum_joint_over_right(left: FloatArray, right: FloatArray, outer: FloatArray) -> FloatArray:
    """Compute the joint distribution p(v, a) = Σ_b p(a, b) p(v | a, b), (..., V, A).

    p(v | a, b) is proportional to exp(left[v, a] + right[v, b]), and ``outer`` is p(a, b).
    """
    exp_left, exp_right, _, product, rows = _multiply_scaled(left, right)
    # A zero is due to an impossible state, or to an underflow that is computed again below. Replace
    # it by one, because the next line divides by it.
    product[product == 0] = 1.0
    exp_left *= exp_right @ (outer / product).swapaxes(-1, -2)
    if len(rows[0]):
        given = normalise_logs(_add_rows(left, right, rows), 1)
        exp_left.swapaxes(-1, -2)[rows] = np.einsum("nvb,nb->nv", given, outer[rows])
    return exp_left


def _multiply_scaled(left: FloatArray, right: FloatArray) -> tuple[Any, ...]:
    """Return both scaled factors, their log-scales, the product (..., A, B) and its unsafe rows.

    A row is unsafe if an entry is so small that terms lost by underflow may matter.
    """
    exp_left, top_left = _scale_exponentials(left, -2)
    exp_right, top_right = _scale_exponentials(right, -2)
    product = exp_left.swapaxes(-1, -2) @ exp_right
    rows: tuple[IntArray, ...] = (np.empty(0, dtype=np.intp),)
    if product.min() < SMALLEST_SUM:
        rows = np.nonzero((product.min(axis=-1) < SMALLEST_SUM) & exp_left.any(axis=-2))
    return exp_left, exp_right, (top_left, top_right), product, rows


def _add_rows(left: FloatArray, right: FloatArray, rows: tuple[IntArray, ...]) -> FloatArray:
    """Return (n, V, B) sums left[v, a] + right[v, b] for the rows a of the matrix product."""
    of_rows = np.broadcast_to(right, (*left.shape[:-2], *right.shape[-2:]))[rows[:-1]]
    return left.swapaxes(-1, -2)[rows][:, :, None] + of_rows


# ------------------------------------------------------------------------ sums in logs


def log_sum(log_values: FloatArray, axis: int) -> FloatArray:
    """Return log Σ exp along an axis; -inf if all values are -inf."""
    terms, top = _scale_exponentials(log_values, axis)
    return _log_or_minus_inf(terms.sum(axis=axis)) + top.squeeze(axis)


def log_max(log_values: FloatArray, axis: int) -> FloatArray:
    """Return the largest value along an axis."""
    return log_values.max(axis=axis)


def normalise_logs(log_values: FloatArray, axis: int) -> FloatArray:
    """Return probabilities normalised along an axis, in place; zeros if all values are -inf."""
    top = log_values.max(axis=axis, keepdims=True)
    top[top == -np.inf] = 0.0
    p = np.exp(np.subtract(log_values, top, out=log_values), out=log_values)
    total = p.sum(axis=axis, keepdims=True)
    total[total == 0] = 1.0
    p /= total
    return p


def _scale_exponentials(log_values: FloatArray, axis: int) -> tuple[FloatArray, FloatArray]:
    """Return exponentials scaled to a maximum of one along an axis, and the log of the scale."""
    top = log_values.max(axis=axis, keepdims=True)
    top[top == -np.inf] = 0.0
    return np.exp(log_values - top), top


def _log_or_minus_inf(p: FloatArray) -> FloatArray:
    """Return natural logarithms, -inf for zero."""
    with np.errstate(divide="ignore"):
        return np.log(p)
