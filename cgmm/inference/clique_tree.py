"""The clique tree of a graph, built once a structure and a number of states. Chapter 7.

What contraction leaves of the graph, the *core*, is eliminated in the order that
:mod:`cgmm.inference.elimination` finds. Each node with its neighbours at that moment is a clique;
small cliques are merged into their parents. The tree says what a clique eliminates, where its
edges and its children's messages go among its axes, and what is constant. Two files work through
it: :mod:`cgmm.inference.tree_products` in plain numbers, :mod:`cgmm.inference.tree_logs` in logs.

=========  ======================================================================
R, S       nodes that a clique eliminates; its separator, the rest of its nodes
S = A ∪ F  A: nodes in children's messages; F, *fresh*: tied to R here first
P          table over (R, A): everything but the factor ψ over (R, F)
T          tables (K, K) of the pairs that contraction has tied; a *slot* is a place in T
K          number of states of a node
=========  ======================================================================
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from cgmm.inference.contraction_rounds import Edges
from cgmm.inference.elimination import Order, elimination_order
from cgmm.network import Graph, NetworkError, TooCostlyError, connected_components
from cgmm.numerics import BoolArray, FloatArray, IntArray

MAX_BYTES = 2**31

# Cliques are merged up to tables of this size: below it a table costs less than a call.
MERGED_CELLS = 2048

# Where all is impossible, -inf may not be subtracted from itself.
LOWEST = float(np.finfo(float).min)


class Edge(NamedTuple):
    """An edge inside a clique; its axes count along R, A, F."""

    axes: tuple[int, int]
    weight: float
    slot: int
    """Index into the core's part of T, or -1."""
    turned: bool
    """Whether the first axis of its table is that of the second end."""


# Places of the ends in ascending order, log-weight, slot, and whether they were turned.
_PlacedEdge = tuple[list[int], float, int, bool]


class Child(NamedTuple):
    """Where the message of a child goes, among the axes of R and A."""

    # A field hides the method of tuples, which nobody calls.
    index: int  # type: ignore[assignment]
    shape: tuple[int, ...]
    """Of its message there: one along the axes that it has not."""
    summed: tuple[int, ...]
    """Those axes."""


class Clique(NamedTuple):
    """A clique, its place in the tree, and its constant factors."""

    own: list[int]
    """R. Nodes are called by their place in the order of elimination, and sorted."""
    separator: list[int]
    """S = (A, F), each of the two sorted."""
    n_fresh: int
    edges: list[Edge]
    """Those whose first end is eliminated here."""
    children: list[Child]
    n_states: int
    to_message: tuple[int, ...]
    """Permutes the axes of (A, F) so that S is sorted, as it is in messages."""
    from_message: tuple[int, ...]
    local: FloatArray
    """Product of the weighted edges within R and A, of length one along what they miss."""
    psi: FloatArray
    """(K**|R|, K**|F|) product of the edges between R and F."""
    offset: float
    """Log of what the two were divided by."""
    low: float
    """Log of the smallest positive product of their entries."""

    @property
    def n_inner(self) -> int:
        """|R| + |A|, the number of axes of P."""
        return len(self.own) + len(self.separator) - self.n_fresh

    @property
    def n_axes(self) -> int:
        """|R| + |A| + |F|."""
        return len(self.own) + len(self.separator)


class CliqueTree(NamedTuple):
    """The cliques for a number of states, children before parents."""

    cliques: list[Clique]
    nodes: IntArray
    """The core, in the order of elimination: inside the tree a node is called by its place."""
    slots: IntArray
    """The core's part of T."""
    hard: bool
    """Whether a pair is forbidden by its weight."""


class Layout(NamedTuple):
    """Cliques without their tables: what they will cost is known before any is allocated."""

    order: Order
    cliques: list[Clique]
    core: Edges

    @property
    def n_bytes(self) -> IntArray:
        """(cliques,) what the tables take; as Python's integers, which do not overflow."""
        return np.array([8 * _n_cells(c, c.n_states) for c in self.cliques], dtype=object)

    @property
    def n_operations(self) -> IntArray:
        """(cliques,) entries of the whole table over each clique, and of P once a child."""
        work = [
            c.n_states**c.n_axes + len(c.children) * c.n_states**c.n_inner for c in self.cliques
        ]
        return np.array(work, dtype=object)

    @property
    def firsts(self) -> IntArray:
        """(cliques,) a node of each."""
        return np.array([self.order.nodes[c.own[0]] for c in self.cliques], dtype=np.intp)


def most_neighbours(n_cells: float, n_states: int) -> int:
    """How many neighbours a node may have when it goes, for a table of so many entries."""
    return int(math.log(max(n_cells, 1)) / math.log(n_states) + 1e-9)


def lay_out(core: Edges, n_states: int, max_degree: int) -> Layout:
    """Find an order and its cliques, without those components in which the order gets stuck."""
    order = elimination_order(core.ends, n_states, max_degree)
    if order.stuck:
        order, core = _without_stuck(order, core)
    return Layout(order, _place_all(_merge(order, n_states), order, core, n_states), core)


def _without_stuck(order: Order, core: Edges) -> tuple[Order, Edges]:
    """Leave out the components of nodes that are left over."""
    n_nodes = int(core.ends.max()) + 1
    label = connected_components(Graph(n_nodes, core.ends, np.ones(len(core.ends))))
    lost = np.zeros(n_nodes, dtype=bool)
    lost[label[order.stuck]] = True
    kept = [i for i, v in enumerate(order.nodes) if not lost[label[v]]]
    nodes = [order.nodes[i] for i in kept]
    place = {v: i for i, v in enumerate(nodes)}
    rest = Order(nodes, [order.neighbours[i] for i in kept], place, order.stuck)
    return rest, core.take(np.flatnonzero(~lost[label[core.ends[:, 0]]]))


def build_tree(graph: Graph, core: Edges, n_states: int, max_bytes: int) -> CliqueTree:
    """Lay out the tree; refuse before any table is allocated if they would not fit."""
    max_degree = most_neighbours(max_bytes / 8, n_states)
    layout = lay_out(core, n_states, max_degree)
    if layout.order.stuck:
        _refuse_width(graph, layout.order.stuck[0], max_degree + 1, n_states, None, max_bytes)
    n_bytes = layout.n_bytes.sum()
    if n_bytes > max_bytes:
        neighbours = layout.order.neighbours
        widest = max(range(len(neighbours)), key=lambda i: len(neighbours[i]))
        width = len(neighbours[widest])
        _refuse_width(graph, layout.order.nodes[widest], width, n_states, n_bytes, max_bytes)
    return tabulate(layout, n_states)


def tabulate(layout: Layout, n_states: int) -> CliqueTree:
    """Allocate the constant tables of a layout in which no node is left over."""
    return CliqueTree(
        [with_constants(clique, n_states) for clique in layout.cliques],
        np.array(layout.order.nodes, dtype=np.intp),
        layout.core.slots[layout.core.slots >= 0],
        bool((layout.core.weights == -np.inf).any()),
    )


def _n_cells(clique: Clique, n_states: int) -> int:
    """Numbers that the way back needs of a clique: P, its constants, and its message."""
    psi = n_states ** (len(clique.own) + clique.n_fresh)
    return 2 * n_states**clique.n_inner + psi + n_states ** len(clique.separator)


def _merge(order: Order, n_states: int) -> list[tuple[list[int], list[int]]]:
    """(R, S) of the cliques: a node with its neighbours; small ones are merged into parents."""
    separators = [sorted(order.place[u] for u in near) for near in order.neighbours]
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


def _place_all(
    scopes: list[tuple[list[int], list[int]]], order: Order, core: Edges, n_states: int
) -> list[Clique]:
    """Give every edge and every message to the clique that eliminates its first node."""
    home = {v: i for i, (own, _) in enumerate(scopes) for v in own}
    edges: list[list[_PlacedEdge]] = [[] for _ in scopes]
    children: list[list[tuple[int, list[int]]]] = [[] for _ in scopes]
    slots = np.where(core.slots < 0, -1, np.cumsum(core.slots >= 0) - 1)
    rows = zip(core.ends.tolist(), core.weights.tolist(), slots.tolist(), strict=True)
    for (a, b), weight, slot in rows:
        ends = order.place[a], order.place[b]
        edges[home[min(ends)]].append((sorted(ends), weight, slot, ends[0] > ends[1]))
    for i, (_, separator) in enumerate(scopes):
        if separator:
            children[home[separator[0]]].append((i, separator))
    return [_place(*scope, edges[i], children[i], n_states) for i, scope in enumerate(scopes)]


def _place(
    own: list[int],
    separator: list[int],
    edges: list[_PlacedEdge],
    children: list[tuple[int, list[int]]],
    n_states: int,
) -> Clique:
    """Find F, unless the whole table is small anyway, and turn nodes into axes."""
    fresh: list[int] = []
    if n_states ** (len(own) + len(separator)) > MERGED_CELLS:
        reached = {v for _, scope in children for v in scope}
        reached |= {v for ends, _, slot, _ in edges if slot >= 0 for v in ends}
        fresh = [v for v in separator if v not in reached]
    scope = own + [v for v in separator if v not in fresh] + fresh
    axis = {v: i for i, v in enumerate(scope)}
    to_message = tuple(axis[v] - len(own) for v in separator)
    return Clique(
        own=own,
        separator=scope[len(own) :],
        n_fresh=len(fresh),
        edges=[Edge((axis[a], axis[b]), w, slot, turned) for (a, b), w, slot, turned in edges],
        children=[
            _child(i, [axis[v] for v in nodes], len(scope) - len(fresh), n_states)
            for i, nodes in children
        ],
        n_states=n_states,
        to_message=to_message,
        from_message=tuple(sorted(range(len(separator)), key=to_message.__getitem__)),
        local=np.empty(0),
        psi=np.empty(0),
        offset=0.0,
        low=0.0,
    )


def _child(index: int, axes: list[int], n_inner: int, n_states: int) -> Child:
    shape = [1] * n_inner
    for axis in axes:
        shape[axis] = n_states
    return Child(index, tuple(shape), tuple([i for i, n in enumerate(shape) if n == 1]))


# ---------------------------------------------------------------- constants of the edges


def with_constants(clique: Clique, n_states: int) -> Clique:
    """Exponentiate the constant factors, scaled so that their largest entries are one."""
    n_own, n_inner = len(clique.own), clique.n_inner
    inner, fresh = edge_constants(clique, n_states)
    local, top, low = _scaled(inner)
    clique = clique._replace(local=local.reshape(local.shape[:n_inner]), offset=top, low=low)
    if not clique.n_fresh:
        return clique
    psi, top, low = _scaled(fresh)
    psi = psi.reshape(psi.shape[:n_own] + psi.shape[n_inner:])
    psi = (psi * np.ones((n_states,) * psi.ndim)).reshape(n_states**n_own, -1)
    return clique._replace(psi=psi, offset=clique.offset + top, low=clique.low + low)


def edge_constants(clique: Clique, n_states: int) -> tuple[FloatArray, FloatArray]:
    """Log-potentials of the weighted edges: those within R and A, and those that reach F."""
    n_axes, n_inner = clique.n_axes, clique.n_inner
    tables = [np.zeros((1,) * n_axes)] * 2
    for edge in clique.edges:
        if edge.slot < 0:
            diagonal = np.zeros((n_states, n_states))
            diagonal.flat[:: n_states + 1] = edge.weight
            reaches_fresh = edge.axes[1] >= n_inner
            spread = spread_axes(diagonal, edge.axes, n_axes)
            tables[reaches_fresh] = tables[reaches_fresh] + spread
    return tables[0], tables[1]


def _scaled(log_values: FloatArray) -> tuple[FloatArray, float, float]:
    """Values divided by the largest, its log, and the log of the smallest positive quotient."""
    top = max(float(log_values.max()), LOWEST)
    log_values = log_values - top
    low = float(log_values.min())
    if low == -np.inf:
        low = float(log_values.min(where=log_values > -np.inf, initial=0.0))
    return np.exp(log_values), top, low


def spread_axes(table: FloatArray, axes: tuple[int, ...], n_axes: int) -> FloatArray:
    """The table with its axes where they belong, and length one elsewhere."""
    shape = [1] * n_axes
    for axis, length in zip(axes, table.shape, strict=True):
        shape[axis] = length
    return table.reshape(shape)


def table_of(edge: Edge, tables: FloatArray) -> FloatArray:
    """(K, K) entry of T, its first axis that of the end eliminated first."""
    return tables[edge.slot].T if edge.turned else tables[edge.slot]


# ---------------------------------------------------------------------- marginals and refusals


def store_marginals(clique: Clique, belief: FloatArray, nodes: FloatArray) -> None:
    """Marginals of each node of R."""
    belief = belief / belief.sum()
    for axis, v in enumerate(clique.own):
        nodes[v] = belief.sum(axis=tuple(i for i in range(belief.ndim) if i != axis))


def store_pair(edge: Edge, joint: FloatArray, pairs: FloatArray) -> None:
    """Sum out all but the two ends."""
    pair = joint.sum(axis=tuple(i for i in range(joint.ndim) if i not in edge.axes))
    pairs[edge.slot] = pair.T if edge.turned else pair


def refuse_impossible(graph: Graph, node: int, n_states: int) -> None:
    """Name the component of a node."""
    raise NetworkError(
        f"no joint assignment of {{nodes}} is possible with K = {n_states}: the forbidden pairs "
        "among them admit no proper colouring that the evidence allows. Use more components, or "
        "revise the relations or the evidence.",
        np.flatnonzero(_component(graph, node)),
    )


def _refuse_width(
    graph: Graph, node: int, width: int, n_states: int, n_bytes: int | None, max_bytes: int
) -> None:
    """Name the component of a node, the width, the cost, and what to do instead."""
    component = _component(graph, node)
    n_edges = int(component[graph.edges[:, 0]].sum())
    at_least = "" if n_bytes else "at least "
    n_bytes = n_bytes or 8 * n_states**width
    raise TooCostlyError(
        f"exact inference is out of reach for the component of {{nodes}}, tied by {n_edges} edges: "
        f"in the order of elimination it has an induced width of {at_least}{width}, so that with "
        f"K = {n_states} its tables would take {at_least}{in_words(n_bytes)}, more than "
        f"{in_words(max_bytes)}. Use inference='auto', which approximates where exact inference "
        "costs too much.",
        np.flatnonzero(component),
    )


def in_words(n_bytes: int) -> str:
    """Round to binary units."""
    power = min((n_bytes.bit_length() - 1) // 10, 4)
    return f"{n_bytes / 1024**power:.3g} {['bytes', 'KiB', 'MiB', 'GiB', 'TiB'][power]}"


def _component(graph: Graph, node: int) -> BoolArray:
    """Mask of the nodes that are connected with a node."""
    labels = connected_components(graph)
    return labels == labels[node]
