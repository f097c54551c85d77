"""The clique tree of a graph, built once a structure and a number of states. Chapter 7.

What contraction leaves of the graph, the *core*, is eliminated in the order that
:mod:`cgmm.inference.elimination` finds. Each node with its neighbours at that moment is a clique;
small cliques are merged into their parents. The tree says what a clique eliminates, where its
edges and its children's messages go among its axes, and what is constant.
:mod:`cgmm.inference.junction_tree` works through it.

=========  ======================================================================
R, S       nodes that a clique eliminates; its separator, the rest of its nodes
S = A ∪ F  A: nodes in children's messages; F, *fresh*: tied to R here first
T          tables (K, K) of the pairs that contraction has tied; a *slot* is a place in T
K          number of states of a node
=========  ======================================================================
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cgmm.inference.contraction_rounds import Edges, diagonals
from cgmm.inference.elimination import Order, elimination_order
from cgmm.numerics import FloatArray, IntArray

# Cliques are merged up to tables of this size: below it a table costs less than a call.
MERGED_CELLS = 2048


class Edge(NamedTuple):
    """An edge inside a clique; its axes count along R, A, F."""

    axes: tuple[int, ...]
    weight: float
    slot: int
    """Index into the core's part of T, or -1."""
    turned: bool
    """Whether the first axis of its table is that of the second end."""


Constants = tuple[FloatArray, FloatArray]
"""Logs of the factors of a clique that no unary changes: local, with axes, and ψ."""


class Clique(NamedTuple):
    """A clique and its place in the tree; nodes are called by their place in the order."""

    own: list[int]
    """R, sorted."""
    separator: list[int]
    """S = (A, F), each of the two sorted."""
    n_fresh: int
    edges: list[Edge]
    """Those whose first end is eliminated here."""
    children: list[tuple[int, tuple[int, ...]]]
    """Number of each child, and the axes of R and A that its message has."""
    to_message: tuple[int, ...]
    """Permutes the axes of (A, F) so that S is sorted, as it is in messages."""
    from_message: tuple[int, ...]

    @property
    def n_inner(self) -> int:
        """|R| + |A|, the number of axes of the table that messages are added up in."""
        return len(self.own) + len(self.separator) - self.n_fresh

    def n_bytes(self, n_states: int) -> int:
        """Return the bytes of the tables that are kept: over (R, A), (R, F) and S."""
        sizes = self.n_inner, len(self.own) + self.n_fresh, len(self.separator)
        return 8 * sum(n_states**size for size in (sizes[0], *sizes))

    def n_operations(self, n_states: int) -> int:
        """Entries of the whole table over the clique, and of that over (R, A) once a child."""
        whole = n_states ** (len(self.own) + len(self.separator))
        return whole + len(self.children) * n_states**self.n_inner

    def constants(self, n_states: int) -> Constants:
        """Return log-potentials of the weighted edges: within (R, A), and (K**|R|, K**|F|) to F."""
        local = np.zeros((1,) * self.n_inner)
        fresh = np.zeros((n_states,) * (len(self.own) + self.n_fresh))
        weighted = [edge for edge in self.edges if edge.slot < 0]
        tables = diagonals(np.array([edge.weight for edge in weighted]), n_states)
        for edge, diagonal in zip(weighted, tables, strict=True):
            if edge.axes[1] < self.n_inner:
                local = local + spread_axes(diagonal, edge.axes, self.n_inner)
            else:
                axes = edge.axes[0], edge.axes[1] - self.n_inner + len(self.own)
                fresh += spread_axes(diagonal, axes, fresh.ndim)
        return local, fresh.reshape(n_states ** len(self.own), -1)


class CliqueTree(NamedTuple):
    """The cliques for a number of states, children before parents; no tables yet."""

    order: Order
    cliques: list[Clique]
    slots: IntArray
    """The core's part of T."""
    n_states: int

    @property
    def nodes(self) -> IntArray:
        """The core, in the order of elimination."""
        return np.array(self.order.nodes, dtype=np.intp)

    @property
    def width(self) -> int:
        """The most neighbours that a node has when it goes."""
        return max(map(len, self.order.neighbours), default=0)

    @property
    def costs(self) -> list[tuple[int, int]]:
        """For each clique the bytes of its tables, and the entries visited in one call."""
        return [(c.n_bytes(self.n_states), c.n_operations(self.n_states)) for c in self.cliques]


def lay_out(core: Edges, n_states: int, max_degree: int) -> CliqueTree:
    """Find an order and its cliques; none where the order gets stuck.

    Parameters
    ----------
    core : Edges
        What contraction leaves.
    n_states : int
        K.
    max_degree : int
        Most neighbours that a node may have when it goes.

    Returns
    -------
    CliqueTree
        Its cost is known before any table is allocated.
    """
    order = elimination_order(core.ends, n_states, max_degree)
    cliques = [] if order.stuck else _place_all(order, core, n_states)
    return CliqueTree(order, cliques, core.slots[core.slots >= 0], n_states)


def _merge(order: Order, place: dict[int, int], n_states: int) -> list[tuple[list[int], list[int]]]:
    """Return (R, S) of the cliques: a node and its neighbours; small ones merge with parents."""
    separators = [sorted(place[u] for u in near) for near in order.neighbours]
    own = [[i] for i in range(len(separators))]
    kept = []
    for i, separator in enumerate(separators):
        parent = separator[0] if separator else i
        n_axes = len(own[i]) + len(own[parent]) + len(separators[parent])
        if separator and n_states**n_axes <= MERGED_CELLS:
            own[parent] += own[i]
        else:
            kept.append((sorted(own[i]), separator))
    return kept


def _place_all(order: Order, core: Edges, n_states: int) -> list[Clique]:
    """Give every edge and every message to the clique that eliminates its first node."""
    place = {v: i for i, v in enumerate(order.nodes)}
    scopes = _merge(order, place, n_states)
    home = {v: i for i, (own, _) in enumerate(scopes) for v in own}
    edges: list[list[Edge]] = [[] for _ in scopes]
    children: list[list[tuple[int, list[int]]]] = [[] for _ in scopes]
    slots = np.where(core.slots < 0, -1, np.cumsum(core.slots >= 0) - 1)
    rows = zip(core.ends.tolist(), core.weights.tolist(), slots.tolist(), strict=True)
    for (a, b), weight, slot in rows:
        ends = place[a], place[b]
        edges[home[min(ends)]].append(Edge(tuple(sorted(ends)), weight, slot, ends[0] > ends[1]))
    for i, (_, separator) in enumerate(scopes):
        if separator:
            children[home[separator[0]]].append((i, separator))
    return [_place(*scope, edges[i], children[i], n_states) for i, scope in enumerate(scopes)]


def _place(
    own: list[int],
    separator: list[int],
    edges: list[Edge],
    children: list[tuple[int, list[int]]],
    n_states: int,
) -> Clique:
    """Find F, unless the whole table is small anyway, and turn nodes into axes."""
    fresh: list[int] = []
    if n_states ** (len(own) + len(separator)) > MERGED_CELLS:
        reached = {v for _, scope in children for v in scope}
        reached |= {v for edge in edges if edge.slot >= 0 for v in edge.axes}
        fresh = [v for v in separator if v not in reached]
    scope = own + [v for v in separator if v not in fresh] + fresh
    axis = {v: i for i, v in enumerate(scope)}
    to_message = tuple(axis[v] - len(own) for v in separator)
    from_message = tuple(sorted(range(len(separator)), key=to_message.__getitem__))
    edges = [edge._replace(axes=tuple(axis[v] for v in edge.axes)) for edge in edges]
    heard = [(i, tuple(axis[v] for v in nodes)) for i, nodes in children]
    return Clique(own, scope[len(own) :], len(fresh), edges, heard, to_message, from_message)


def spread_axes(table: FloatArray, axes: tuple[int, ...], n_axes: int) -> FloatArray:
    """Return the table with its axes at the given positions, and axes of length one elsewhere."""
    shape = [1] * n_axes
    for axis, length in zip(axes, table.shape, strict=True):
        shape[axis] = length
    return table.reshape(shape)
