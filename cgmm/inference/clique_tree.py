"""Find an elimination order of a graph, and plan the clique tree that belongs to it.

:mod:`cgmm.inference.junction_tree` computes with this tree, and :mod:`cgmm.inference.costs` reads
its cost. Both depend only on the graph and the number of states. Chapter 7 explains them.

Contraction removes chains and trees from a graph; the rest is the *core*. It is eliminated node by
node. Eliminating a node connects its neighbours to each other, because the result of the sum
depends on all of them. The largest number of neighbours of a node at its elimination is the
*induced width* of the order; exact inference needs tables of K^(width + 1) entries. Finding the
best order is NP-hard (Arnborg, Corneil and Proskurowski, 1987), but simple rules find good ones.
Each node with its neighbours at its elimination is a clique; small cliques are merged into their
parents. The tree stores which nodes a clique eliminates, the axes of its edges and of its
children's messages, and its constant factors.

=========  ==========================================================================
v, u       nodes, e.g. 4 and 7
d          number of neighbours of v at its elimination, e.g. 2
R, S       nodes that a clique eliminates, e.g. [4]; its separator, e.g. [6, 9]
S = A ∪ F  A: nodes in children's messages, e.g. [6]; F, *fresh*: the others, e.g. [9]
T          tables (K, K) of the pairs that contraction has joined
slot       index of a table in T, e.g. 3
K          number of states of a node, e.g. 3
=========  ==========================================================================
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array, csgraph

from cgmm.inference.contraction import Edges, diagonals
from cgmm.network import Graph
from cgmm.numerics import FloatArray, IntArray

__all__ = ["Elimination", "Order"]


# ------------------------------------------------------------ the order


# Time needed to find a second order, in table entries per node.
COST_OF_SWEEP = 5000


class Order(NamedTuple):
    """Order of elimination, which may be incomplete."""

    nodes: list[int]
    """Nodes in the order of elimination."""
    neighbours: list[list[int]]
    """Neighbours of each node at its elimination."""
    stuck: list[int]
    """Nodes that are not in the order, because each of them has too many neighbours."""


Elimination = list[tuple[int, set[int]]]
"""List of nodes, each with its neighbours at its elimination."""


def elimination_order(edges: IntArray, n_states: int, max_degree: int) -> Order:
    """Return an order found by min-fill or, if its tables are large, by a sweep if that is cheaper.

    The sweep of reverse Cuthill-McKee finds the best order of a grid.

    Parameters
    ----------
    edges : (E, 2) int array
        The edges; nodes without any are not eliminated.
    n_states : int
        K. A node with d neighbours at its elimination costs a table of K^(d + 1) entries.
    max_degree : int
        Largest number of neighbours that a node may have at its elimination.

    Returns
    -------
    Order
        The order, and the nodes that it lacks, if any.

    Examples
    --------
    In a cycle of four, eliminating the first node connects its neighbours and leaves a triangle.

    >>> order = elimination_order(np.array([[0, 1], [1, 2], [2, 3], [0, 3]]), 2, 10)
    >>> order.nodes, order.neighbours
    ([0, 1, 2, 3], [[1, 3], [2, 3], [3], []])
    """
    nodes, ends = np.unique(edges, return_inverse=True)
    core = Graph(len(nodes), ends.reshape(-1, 2), np.ones(len(edges)))
    order = min_fill(core.edges, np.arange(len(nodes)), max_degree)
    cost = _cost_of(order, len(nodes), n_states)
    if cost > COST_OF_SWEEP * len(nodes):
        sweep = _eliminate_by_degree(core, max_degree)
        if _cost_of(sweep, len(nodes), n_states) < cost:
            order = sweep
    names = nodes.tolist()
    near = [[names[u] for u in near] for _, near in order]
    stuck = np.delete(nodes, [v for v, _ in order]).tolist()
    return Order([names[v] for v, _ in order], near, stuck)


def _cost_of(order: Elimination, n_nodes: int, n_states: int) -> float:
    """Return Σ K**(size of clique), or infinity for an incomplete order."""
    if len(order) < n_nodes:
        return np.inf
    return float(sum(float(n_states) ** (len(near) + 1) for _, near in order))


def _eliminate_by_degree(core: Graph, max_degree: int) -> Elimination:
    """Return an elimination along a front that sweeps the graph, until the front is too wide."""
    ends = np.concatenate([core.edges, core.edges[:, ::-1]])
    matrix = coo_array((np.ones(len(ends)), tuple(ends.T)), shape=(core.n_nodes,) * 2)
    adjacent, order = _adjacency(core.edges), []
    for v in csgraph.reverse_cuthill_mckee(matrix.tocsr(), symmetric_mode=True).tolist():
        if len(adjacent[v]) > max_degree:
            break
        order.append((v, adjacent[v]))
        _remove(adjacent, v)
    return order


def min_fill(edges: IntArray, lots: IntArray, max_degree: int) -> Elimination:
    """Return an order in which the next node is the one that adds the fewest edges (min-fill).

    Parameters
    ----------
    edges : (E, 2) int array
        The edges.
    lots : (n_nodes,) int array
        Numbers that break ties between nodes of equal fill and degree; the smallest comes first.
    max_degree : int
        Largest number of neighbours that a node may have at its elimination. The order ends when
        all remaining nodes have more.

    Returns
    -------
    list of (int, set of int)
        Nodes in order, each with its neighbours at its elimination.

    Examples
    --------
    In a star, leaves add no edges, but the centre would connect all leaves to each other.

    >>> star = np.array([[0, 1], [0, 2], [0, 3]])
    >>> [node for node, _ in min_fill(star, np.arange(4), 3)]
    [1, 2, 0, 3]
    """
    adjacent, lots = _adjacency(edges), lots.tolist()
    order: Elimination = []
    cost = {v: (*_cost(adjacent, v, max_degree), lots[v], v) for v in adjacent}
    queue = list(cost.values())
    heapq.heapify(queue)
    while queue and queue[0][1] <= max_degree:
        key = heapq.heappop(queue)
        v = key[-1]
        if cost.get(v) != key:
            continue
        if key[0] == 0 and key[1] == len(adjacent) - 1:
            # All remaining nodes are connected to each other, so only ties must be broken. Counting
            # on would take eighteen times as long in a clique of forty nodes.
            left = sorted(adjacent, key=lambda u: (lots[u], u))
            return order + [(u, set(left[i + 1 :])) for i, u in enumerate(left)]
        del cost[v]
        order.append((v, adjacent[v]))
        for u in _remove(adjacent, v):
            cost[u] = (*_cost(adjacent, u, max_degree), lots[u], u)
            heapq.heappush(queue, cost[u])
    return order


def _adjacency(edges: IntArray) -> dict[int, set[int]]:
    """Return the neighbours of every node that has an edge."""
    adjacent: dict[int, set[int]] = {v: set() for v in np.unique(edges).tolist()}
    for a, b in edges.tolist():
        adjacent[a].add(b)
        adjacent[b].add(a)
    return adjacent


def _cost(adjacent: dict[int, set[int]], v: int, most: int) -> tuple[int, int]:
    """Return twice the number of edges that eliminating v would add, and the degree of v.

    If the degree exceeds ``most``, the first number is replaced by an upper bound of it for nodes
    of degree at most ``most``.
    """
    near = adjacent[v]
    if len(near) > most:
        return most**2, len(near)
    missing = map(near.difference, map(adjacent.__getitem__, near))
    return sum(map(len, missing)) - len(near), len(near)


def _remove(adjacent: dict[int, set[int]], v: int) -> set[int]:
    """Remove v, connect its neighbours, and return the nodes whose cost may have changed."""
    near = adjacent.pop(v)
    changed = set(near)
    for u in near:
        adjacent[u].discard(v)
    for u in near:
        for w in near - adjacent[u]:
            if u < w:
                changed |= adjacent[u] & adjacent[w]
                adjacent[u].add(w)
                adjacent[w].add(u)
    return changed


# ------------------------------------------------------------ the tree


# Cliques are merged up to this number of table entries, because calls cost more than small tables.
MERGED_CELLS = 2048


class Edge(NamedTuple):
    """An edge inside a clique."""

    axes: tuple[int, ...]
    """Axes of its two ends, numbered along R, A, F."""
    weight: float
    """Log-weight of an edge without a slot."""
    slot: int
    """Index into the core's part of T, or -1."""
    turned: bool
    """True if the first axis of its table is that of the second end."""


Constants = tuple[FloatArray, FloatArray]
"""Logarithms of the factors of a clique that do not depend on unaries: over (R, A), and ψ."""


class Clique(NamedTuple):
    """A clique in the tree; its nodes are positions in the order of elimination."""

    own: list[int]
    """R, sorted."""
    separator: list[int]
    """S = (A, F), each of the two sorted."""
    n_fresh: int
    """|F|."""
    edges: list[Edge]
    """Edges whose first end is eliminated in this clique."""
    children: list[tuple[int, tuple[int, ...]]]
    """Index of each child, and the axes of R and A in its message."""
    to_message: tuple[int, ...]
    """Permutation of the axes of (A, F) to the sorted S of messages."""
    from_message: tuple[int, ...]
    """Inverse of this permutation."""

    @property
    def n_inner(self) -> int:
        """|R| + |A|, the number of axes of the table to which messages are added."""
        return len(self.own) + len(self.separator) - self.n_fresh

    def n_bytes(self, n_states: int) -> int:
        """Return the bytes of the stored tables: over (R, A), (R, F) and S."""
        sizes = self.n_inner, len(self.own) + self.n_fresh, len(self.separator)
        return 8 * sum(n_states**size for size in (sizes[0], *sizes))

    def n_operations(self, n_states: int) -> int:
        """Return the entries of the table over the clique, plus those over (R, A) per child."""
        whole = n_states ** (len(self.own) + len(self.separator))
        return whole + len(self.children) * n_states**self.n_inner

    def constants(self, n_states: int) -> Constants:
        """Return the log-potentials of edges without a slot: over (R, A), and (K**|R|, K**|F|)."""
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
    """Plan of the cliques for a number of states; it allocates no tables."""

    order: Order
    """The order of elimination."""
    cliques: list[Clique]
    """The cliques, children before parents."""
    slots: IntArray
    """Indices in T of the tables between core nodes."""
    n_states: int
    """K."""

    @property
    def nodes(self) -> IntArray:
        """(n,) nodes of the core, in the order of elimination."""
        return np.array(self.order.nodes, dtype=np.intp)

    @property
    def width(self) -> int:
        """Largest number of neighbours of a node at its elimination."""
        return max(map(len, self.order.neighbours), default=0)

    @property
    def costs(self) -> list[tuple[int, int]]:
        """Bytes of the tables of each clique, and entries visited in one call."""
        return [(c.n_bytes(self.n_states), c.n_operations(self.n_states)) for c in self.cliques]


def plan_tree(core: Edges, n_states: int, max_degree: int) -> CliqueTree:
    """Return an order of elimination and its cliques, or no cliques if the order is incomplete.

    Parameters
    ----------
    core : Edges
        Edges that remain after contraction.
    n_states : int
        K.
    max_degree : int
        Largest number of neighbours that a node may have at its elimination.

    Returns
    -------
    CliqueTree
        The plan; its cost is known before any table is allocated.
    """
    order = elimination_order(core.ends, n_states, max_degree)
    cliques = [] if order.stuck else _build_cliques(order, core, n_states)
    return CliqueTree(order, cliques, core.slots[core.slots >= 0], n_states)


def _merge(order: Order, place: dict[int, int], n_states: int) -> list[tuple[list[int], list[int]]]:
    """Return (R, S) of all cliques, after merging small cliques into their parents."""
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


def _build_cliques(order: Order, core: Edges, n_states: int) -> list[Clique]:
    """Build all cliques; the clique that eliminates an edge's or message's first node gets it."""
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
    return [_make_clique(*scope, edges[i], children[i], n_states) for i, scope in enumerate(scopes)]


def _make_clique(
    own: list[int],
    separator: list[int],
    edges: list[Edge],
    children: list[tuple[int, list[int]]],
    n_states: int,
) -> Clique:
    """Build a clique: translate nodes to axes, and find F unless the whole table is small."""
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
    inputs = [(i, tuple(axis[v] for v in nodes)) for i, nodes in children]
    return Clique(own, scope[len(own) :], len(fresh), edges, inputs, to_message, from_message)


def spread_axes(table: FloatArray, axes: tuple[int, ...], n_axes: int) -> FloatArray:
    """Return the table with its axes at the given positions and other axes of length one."""
    shape = [1] * n_axes
    for axis, length in zip(axes, table.shape, strict=True):
        shape[axis] = length
    return table.reshape(shape)
