"""Rake and compress: sums out, many at a time, the nodes that have one or two edges.

A chain of 100,000 nodes is no place for a loop over nodes. In each round either all leaves are
summed out at once (*rake*), or a large set of nodes of degree two, no two of them tied
(*compress*); a round takes a fraction of what there is, so that a chain or a tree is gone after a
number of rounds logarithmic in its size. What is left, the *core*, is for the junction tree.

=============  ====================================================================
v              a node that is summed out
h (n_nodes,K)  log-potentials of the nodes, with all that was summed into them
T (t, K, K)    log-potentials of the pairs that compressing has tied, first node first
slot           where an edge keeps its potential: t >= 0 in T, or -1: w [z_a = z_b]
total          how states are summed out: log_sum, or the largest for the best assignment
=============  ====================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, cast

import numpy as np

from cgmm.network import Graph, edge_message
from cgmm.numerics import BoolArray, FloatArray, IntArray, blocks

__all__ = ["Contraction", "Ties", "Total", "best", "conditional", "contract", "log_sum"]

# Below this many nodes a round is not worth its calls: the junction tree takes them one by one.
SMALLEST_ROUND = 16

# Sums of products of numbers up to one are trusted above this: what underflows is below 1e-307.
SMALLEST_SUM = 1e-250

Total = Callable[..., FloatArray]


class Ties(NamedTuple):
    """Edges with what they carry."""

    ends: IntArray
    """(E, 2) nodes; for a slot in T, its first axis is that of the smaller node."""
    weights: FloatArray
    """(E,) log-weights, of the edges without a slot."""
    slots: IntArray
    """(E,) index into T, or -1."""

    def take(self, rows: IntArray | slice) -> Ties:
        """Return these edges only."""
        return Ties(self.ends[rows], self.weights[rows], self.slots[rows])


class Rake(NamedTuple):
    """A round that sums out leaves: row i of ``ties`` is (leaf, the node that it hangs on)."""

    plain: Ties
    """Leaves whose edge carries a weight."""
    tabled: Ties
    """Leaves whose edge carries a table."""


class Compress(NamedTuple):
    """A round that sums out nodes v between a < b: ``left`` are (a, v), ``right`` are (v, b)."""

    left: Ties
    right: Ties
    target: IntArray
    """Slot of the pair (a, b), which receives the result."""


class Contraction(NamedTuple):
    """The rounds, and what they leave."""

    rounds: list[Rake | Compress]
    initial: FloatArray
    """(t,) weight w of the edge that stood between a pair of T before, or zero."""
    roots: IntArray
    """Nodes left without an edge: the last of their components."""
    core: Ties
    """Edges that are left."""

    def collect(
        self, unary: FloatArray, total: Total, *, largest: bool = False
    ) -> tuple[FloatArray, FloatArray]:
        """Sum out round by round; return h and T, each entry as it was when it was used."""
        h, n_states = unary.copy(), unary.shape[1]
        tables = _diagonals(self.initial, n_states)
        for step in self.rounds:
            if isinstance(step, Rake):
                _rake(step, h, tables, total, largest)
            else:
                _compress(step, h, tables, total)
        return h, tables

    def distribute(
        self, h: FloatArray, tables: FloatArray, nodes: FloatArray, pairs: FloatArray
    ) -> None:
        """Marginals of the nodes summed out, from those of the core, the last round first.

        ``nodes`` (n_nodes, K) and ``pairs``, of the shape of T, are filled in where they are not.
        """
        for step in reversed(self.rounds):
            if isinstance(step, Rake):
                _grow_leaves(step, h, tables, nodes, pairs)
            else:
                _expand(step, h, tables, nodes, pairs)

    def trace_back(self, h: FloatArray, tables: FloatArray, z: IntArray) -> None:
        """Best states of the nodes summed out, given those of the core in ``z``."""
        for step in reversed(self.rounds):
            options = [step.plain, step.tabled] if isinstance(step, Rake) else [step.left]
            for ties in options:
                v, other = ties.ends.T if isinstance(step, Rake) else ties.ends[:, ::-1].T
                score = h[v] + _given(ties, tables, z, other, v)
                if isinstance(step, Compress):
                    score += _given(step.right, tables, z, step.right.ends[:, 1], v)
                z[v] = score.argmax(axis=1)


# --------------------------------------------------------------------- summing in logs


def log_sum(log_values: FloatArray, axis: int) -> FloatArray:
    """log Σ exp along an axis; -inf where every term is impossible."""
    top = log_values.max(axis=axis, keepdims=True)
    top[top == -np.inf] = 0.0
    total = np.exp(log_values - top).sum(axis=axis)
    with np.errstate(divide="ignore"):
        return np.log(total) + top.squeeze(axis)


def best(log_values: FloatArray, axis: int) -> FloatArray:
    """The largest along an axis."""
    return log_values.max(axis=axis)


def _diagonals(weights: FloatArray, n_states: int) -> FloatArray:
    """(E, K, K) log-potentials w [z_a = z_b]."""
    tables = np.zeros((len(weights), n_states, n_states))
    tables[:, np.arange(n_states), np.arange(n_states)] = weights[:, None]
    return tables


def _oriented(ties: Ties, tables: FloatArray) -> FloatArray:
    """(E, K, K) log-potentials, the first axis that of the first end."""
    found = _diagonals(np.where(ties.slots < 0, ties.weights, 0.0), tables.shape[1])
    slotted = np.flatnonzero(ties.slots >= 0)
    found[slotted] = tables[ties.slots[slotted]]
    turned = slotted[ties.ends[slotted, 0] > ties.ends[slotted, 1]]
    found[turned] = found[turned].transpose(0, 2, 1)
    return found


def _given(ties: Ties, tables: FloatArray, z: IntArray, other: IntArray, v: IntArray) -> FloatArray:
    """(E, K) log-potential of each state of v where the other end has the state z."""
    potentials = _oriented(ties, tables)
    first = (ties.ends[:, 0] == other)[:, None]
    rows = np.arange(len(v))
    return np.where(first, potentials[rows, z[other]], potentials[rows, :, z[other]])


# ------------------------------------------------------------------------- rounds: in


def _rake(step: Rake, h: FloatArray, tables: FloatArray, total: Total, largest: bool) -> None:
    """Add to each node what its leaves say; several leaves may hang on one node."""
    v, parent = step.plain.ends.T
    np.add.at(h, parent, edge_message(h[v], step.plain.weights, largest=largest))
    v, parent = step.tabled.ends.T
    np.add.at(h, parent, total(h[v][:, :, None] + _oriented(step.tabled, tables), 1))


def _compress(step: Compress, h: FloatArray, tables: FloatArray, total: Total) -> None:
    """Add to the table of (a, b) the sum over the node between them."""
    for part in blocks(len(step.target), 4 * h.shape[1] ** 2):
        left, right = _sides(step, part, h, tables)
        summed = _log_product(left, right) if total is log_sum else total(_triples(left, right), 3)
        np.add.at(tables, step.target[part], summed)


def _sides(
    step: Compress, part: slice, h: FloatArray, tables: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Log-potentials (E, K, K) of a and v, with those of v itself, and of v and b."""
    left, right = step.left.take(part), step.right.take(part)
    return _oriented(left, tables) + h[left.ends[:, 1]][:, None, :], _oriented(right, tables)


def _triples(left: FloatArray, right: FloatArray) -> FloatArray:
    """(E, K, K, K) log-potentials of a, b and v, in this order of axes."""
    return left[:, :, None, :] + right.transpose(0, 2, 1)[:, None, :, :]


def _log_product(left: FloatArray, right: FloatArray) -> FloatArray:
    """(E, K, K) sum over v: a product of matrices, in logs where that might underflow."""
    exp_left, top_left = _scale(left, 2)
    exp_right, top_right = _scale(right, 1)
    product = exp_left @ exp_right
    unsafe = _unsafe(product)
    with np.errstate(divide="ignore"):
        summed = np.log(product) + top_left + top_right
    summed[unsafe] = log_sum(_triples(left[unsafe], right[unsafe]), 3)
    return summed


def _scale(log_values: FloatArray, axis: int) -> tuple[FloatArray, FloatArray]:
    """Exponentials whose largest along an axis is one, and the log of what it was."""
    top = log_values.max(axis=axis, keepdims=True)
    top[top == -np.inf] = 0.0
    return np.exp(log_values - top), top


def _unsafe(product: FloatArray) -> BoolArray:
    """Which matrices (E,) have an entry beside which what underflows may count."""
    return product.min(axis=(1, 2)) < SMALLEST_SUM


# ------------------------------------------------------------------------ rounds: out


def _grow_leaves(
    step: Rake, h: FloatArray, tables: FloatArray, nodes: FloatArray, pairs: FloatArray
) -> None:
    """p(v) = Σ_parent p(parent) p(v | parent)."""
    v, parent = step.plain.ends.T
    message = edge_message(h[v], step.plain.weights)
    # The same sum seen from the leaf: what the parent believes without it, through the edge.
    outside = _log(nodes[parent]) - np.where(message == -np.inf, 0.0, message)
    nodes[v] = np.exp(h[v] + edge_message(outside, step.plain.weights))
    v, parent = step.tabled.ends.T
    joint = conditional(h[v][:, :, None] + _oriented(step.tabled, tables), 1)
    joint *= nodes[parent][:, None, :]
    nodes[v] = joint.sum(axis=2)
    _store(step.tabled, joint, pairs)


def _expand(
    step: Compress, h: FloatArray, tables: FloatArray, nodes: FloatArray, pairs: FloatArray
) -> None:
    """p(v), p(a, v) and p(v, b), from p(a, b)."""
    for part in blocks(len(step.target), 4 * h.shape[1] ** 2):
        left, right = _sides(step, part, h, tables)
        with_a, with_b = _joints(left, right, pairs[step.target[part]])
        nodes[step.left.ends[part, 1]] = with_a.sum(axis=1)
        _store(step.left.take(part), with_a, pairs)
        _store(step.right.take(part), with_b, pairs)


def _joints(
    left: FloatArray, right: FloatArray, outer: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """p(a, v) and p(v, b), both (E, K, K), of p(a, v, b) = p(a, b) p(v | a, b)."""
    exp_left, _ = _scale(left, 2)
    exp_right, _ = _scale(right, 1)
    product = exp_left @ exp_right
    unsafe = _unsafe(product)
    product[unsafe] = 1.0
    ratio = outer / product
    with_a = exp_left * (ratio @ exp_right.transpose(0, 2, 1))
    with_b = exp_right * (exp_left.transpose(0, 2, 1) @ ratio)
    joint = conditional(_triples(left[unsafe], right[unsafe]), 3) * outer[unsafe, :, :, None]
    with_a[unsafe], with_b[unsafe] = joint.sum(axis=2), joint.sum(axis=1).transpose(0, 2, 1)
    return with_a, with_b


def conditional(log_values: FloatArray, axis: int) -> FloatArray:
    """Normalise along an axis, in place; zeros where every value is impossible."""
    top = log_values.max(axis=axis, keepdims=True)
    top[top == -np.inf] = 0.0
    p = np.exp(np.subtract(log_values, top, out=log_values), out=log_values)
    total = p.sum(axis=axis, keepdims=True)
    total[total == 0] = 1.0
    p /= total
    return p


def _store(ties: Ties, joint: FloatArray, pairs: FloatArray) -> None:
    """Put the joints of edges with a slot where they belong."""
    forward = (ties.slots >= 0) & (ties.ends[:, 0] < ties.ends[:, 1])
    turned = (ties.slots >= 0) & ~forward
    pairs[ties.slots[forward]] = joint[forward]
    pairs[ties.slots[turned]] = joint[turned].transpose(0, 2, 1)


def _log(p: FloatArray) -> FloatArray:
    """Natural logarithms, -inf of zero."""
    with np.errstate(divide="ignore"):
        return np.log(p)


# -------------------------------------------------------------------------- the plan


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
    >>> contraction = contract(chain)
    >>> h, _ = contraction.collect(np.zeros((1000, 2)), log_sum)
    >>> 1000 - len(contraction.roots) - len(np.unique(contraction.core.ends)) > 900
    True
    """
    ties = Ties(graph.edges, graph.weights, np.full(len(graph.edges), -1, dtype=np.intp))
    rounds: list[Rake | Compress] = []
    initial: list[float] = []
    while True:
        degrees = np.bincount(ties.ends.ravel(), minlength=graph.n_nodes)
        step, ties = _next_round(ties, degrees, initial)
        if step is None:
            break
        rounds.append(step)
    gone = np.zeros(graph.n_nodes, dtype=bool)
    for step in rounds:
        gone[_summed_out(step)] = True
    roots = np.flatnonzero((degrees == 0) & ~gone)
    return Contraction(rounds, np.array(initial, dtype=np.float64), roots, ties)


def _summed_out(step: Rake | Compress) -> IntArray:
    if isinstance(step, Rake):
        return np.concatenate([step.plain.ends[:, 0], step.tabled.ends[:, 0]])
    return step.left.ends[:, 1]


def _next_round(
    ties: Ties, degrees: IntArray, initial: list[float]
) -> tuple[Rake | Compress | None, Ties]:
    """Leaves if they are many, else nodes of degree two, else None; and the edges then left."""
    n_leaves, n_between = (degrees == 1).sum(), (degrees == 2).sum()
    if n_leaves >= SMALLEST_ROUND and 4 * n_leaves >= n_between:
        return _plan_rake(ties, degrees)
    if n_between >= SMALLEST_ROUND:
        chosen = _untied_subset(ties.ends, degrees == 2)
        if chosen.sum() >= SMALLEST_ROUND:
            return _plan_compress(ties, chosen, initial)
    return None, ties


def _plan_rake(ties: Ties, degrees: IntArray) -> tuple[Rake, Ties]:
    """All leaves; of two that hang on each other, the second."""
    is_leaf = degrees[ties.ends] == 1
    hanging = is_leaf.any(axis=1)
    leaves = ties.take(np.flatnonzero(hanging))
    first = ~is_leaf[hanging, 1]
    ends = np.where(first[:, None], leaves.ends, leaves.ends[:, ::-1])
    leaves = leaves._replace(ends=ends)
    plain, tabled = np.flatnonzero(leaves.slots < 0), np.flatnonzero(leaves.slots >= 0)
    return Rake(leaves.take(plain), leaves.take(tabled)), ties.take(np.flatnonzero(~hanging))


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


def _plan_compress(ties: Ties, chosen: BoolArray, initial: list[float]) -> tuple[Compress, Ties]:
    """Replace the two edges of each chosen node by one between its neighbours."""
    touched = chosen[ties.ends].any(axis=1)
    left, right = _two_edges_each(ties.take(np.flatnonzero(touched)), chosen)
    new_pairs = np.column_stack([left.ends[:, 0], right.ends[:, 1]])
    kept = ties.take(np.flatnonzero(~touched))
    target, ties = _tie(new_pairs, kept, len(chosen), initial)
    return Compress(left, right, target), ties


def _two_edges_each(touched: Ties, chosen: BoolArray) -> tuple[Ties, Ties]:
    """Edges (a, v) and (v, b) of every chosen node v, with a < b, in the order of v."""
    v_first = chosen[touched.ends[:, :1]]
    others_first = touched._replace(ends=np.where(v_first, touched.ends[:, ::-1], touched.ends))
    in_twos = others_first.take(np.lexsort(others_first.ends.T))
    left, right = in_twos.take(slice(0, None, 2)), in_twos.take(slice(1, None, 2))
    return left, right._replace(ends=right.ends[:, ::-1])


def _tie(
    new_pairs: IntArray, kept: Ties, n_nodes: int, initial: list[float]
) -> tuple[IntArray, Ties]:
    """A slot for every new pair, the one that it has if it is tied already; and all edges."""
    base = np.array([n_nodes, 1])
    keys, of_pair = np.unique(new_pairs @ base, return_inverse=True)
    _, old, in_kept = np.intersect1d(keys, kept.ends @ base, True, return_indices=True)
    slots, weights = np.full(len(keys), -1, dtype=np.intp), np.zeros(len(keys))
    slots[old], weights[old] = kept.slots[in_kept], kept.weights[in_kept]
    fresh = np.flatnonzero(slots < 0)
    slots[fresh] = len(initial) + np.arange(len(fresh))
    initial.extend(weights[fresh])
    tied = Ties(np.column_stack(np.divmod(keys, n_nodes)), np.zeros(len(keys)), slots)
    rest = kept.take(np.delete(np.arange(len(kept.slots)), in_kept))
    together = map(np.concatenate, zip(rest, tied, strict=True))
    return slots[of_pair], Ties._make(cast("Iterable[Any]", together))
