"""Find an elimination order of a graph, and plan the clique tree that belongs to it.

:mod:`cgmm.inference.junction_tree` computes messages in this tree, and :mod:`cgmm.inference.costs`
computes its cost. Order and tree depend only on the graph and the number of states. Chapter 7
explains them.

Contraction removes chains and trees from a graph, and leaves the *core*, which is eliminated node
by node. Eliminating a node connects its neighbours to each other, because the result of the sum
depends on all of them. The largest number of neighbours of a node at its elimination is the
*induced width* of the order; exact inference needs tables of K^(width + 1) entries. Finding the
best order is NP-hard (Arnborg, Corneil and Proskurowski, 1987), but simple rules find good ones.
Each node with its neighbours at its elimination is a clique; small cliques are merged into their
parents. For each clique the tree stores the nodes that it eliminates, the axes of its edges, and
the axes of the messages from its children.

=========  ==========================================================================
v, u       nodes, e.g. 4 and 7
d          number of neighbours of v at its elimination, e.g. 2
R, S       nodes that a clique eliminates, e.g. [4]; its separator, e.g. [6, 9]
S = A ∪ F  A: nodes in children's messages, e.g. [6]; F, *fresh*: the others, e.g. [9]
T          tables (K, K) of the pairs of nodes that contraction has connected
slot       index of a table in T, e.g. 3
K          number of states of a node, e.g. 3
=========  ==========================================================================
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array, csgraph

from cgmm.inference.contraction import Edges, build_edge_tables
from cgmm.network import Graph
from cgmm.numerics import FloatArray, IntArray

__all__ = ["Elimination", "Order"]


# ------------------------------------------------------------ the elimination order


# Finding a second elimination order takes as long as visiting this number of table entries per
# node, so a second order is tried only if the first one costs more.
COST_OF_SECOND_ORDER = 5000


class Order(NamedTuple):
    """Order in which nodes are eliminated; it may be incomplete."""

    nodes: list[int]
    """Nodes in the order of elimination."""
    neighbours: list[list[int]]
    """Neighbours of each of these nodes at its elimination."""
    stuck: list[int]
    """Nodes without a place in the order, because each of them has too many neighbours."""


Elimination = list[tuple[int, set[int]]]
"""List of nodes in the order of elimination, each with its neighbours at its elimination."""


def elimination_order(edges: IntArray, n_states: int, max_degree: int) -> Order:
    """Return the min-fill order or, if it is expensive, the cheaper of two orders.

    The second order is that of reverse Cuthill-McKee, which is the best one for a grid.

    Parameters
    ----------
    edges : (E, 2) int array
        The edges; nodes without any are not eliminated.
    n_states : int
        K. A node with d neighbours at its elimination needs a table of K^(d + 1) entries.
    max_degree : int
        Largest number of neighbours that a node may have at its elimination.

    Returns
    -------
    Order
        The order, and a list of the nodes that it lacks.

    Examples
    --------
    In a cycle of four, eliminating the first node connects its neighbours and leaves a triangle:

    >>> order = elimination_order(np.array([[0, 1], [1, 2], [2, 3], [0, 3]]), 2, 10)
    >>> order.nodes, order.neighbours
    ([0, 1, 2, 3], [[1, 3], [2, 3], [3], []])
    """
    nodes, ends = np.unique(edges, return_inverse=True)
    core = Graph(len(nodes), ends.reshape(-1, 2), np.ones(len(edges)))
    order = min_fill(core.edges, np.arange(len(nodes)), max_degree)
    cost = _cost_of_order(order, len(nodes), n_states)
    if cost > COST_OF_SECOND_ORDER * len(nodes):
        sweep = _eliminate_in_cuthill_mckee_order(core, max_degree)
        if _cost_of_order(sweep, len(nodes), n_states) < cost:
            order = sweep
    names = nodes.tolist()
    near = [[names[u] for u in near] for _, near in order]
    stuck = np.delete(nodes, [v for v, _ in order]).tolist()
    return Order([names[v] for v, _ in order], near, stuck)


def _cost_of_order(order: Elimination, n_nodes: int, n_states: int) -> float:
    """Return the cost of an order, Σ K**(size of clique), or infinity if it is incomplete."""
    if len(order) < n_nodes:
        return np.inf
    return float(sum(float(n_states) ** (len(near) + 1) for _, near in order))


def _eliminate_in_cuthill_mckee_order(core: Graph, max_degree: int) -> Elimination:
    """Eliminate nodes in reverse Cuthill-McKee order, until a degree exceeds the limit."""
    ends = np.concatenate([core.edges, core.edges[:, ::-1]])
    matrix = coo_array((np.ones(len(ends)), tuple(ends.T)), shape=(core.n_nodes,) * 2)
    adjacent, order = _list_neighbours(core.edges), []
    for v in csgraph.reverse_cuthill_mckee(matrix.tocsr(), symmetric_mode=True).tolist():
        if len(adjacent[v]) > max_degree:
            break
        order.append((v, adjacent[v]))
        _eliminate_node(adjacent, v)
    return order


def min_fill(edges: IntArray, priorities: IntArray, max_degree: int) -> Elimination:
    """Return the min-fill order, in which the next node is the one that adds the fewest edges.

    Parameters
    ----------
    edges : (E, 2) int array
        The edges.
    priorities : (n_nodes,) int array
        Numbers that break ties between nodes of equal fill and degree; the smallest comes first.
    max_degree : int
        Largest number of neighbours that a node may have at its elimination. The order ends if all
        remaining nodes have more.

    Returns
    -------
    list of (int, set of int)
        Nodes in order, each with its neighbours at its elimination.

    Examples
    --------
    Eliminating a leaf of a star adds no edge, whereas eliminating the centre connects all leaves:

    >>> star = np.array([[0, 1], [0, 2], [0, 3]])
    >>> [node for node, _ in min_fill(star, np.arange(4), 3)]
    [1, 2, 0, 3]
    """
    adjacent, priorities = _list_neighbours(edges), priorities.tolist()
    order: Elimination = []
    cost = {v: (*_cost_of_node(adjacent, v, max_degree), priorities[v], v) for v in adjacent}
    queue = list(cost.values())
    heapq.heapify(queue)
    while queue and queue[0][1] <= max_degree:
        key = heapq.heappop(queue)
        v = key[-1]
        if cost.get(v) != key:
            continue
        if key[0] == 0 and key[1] == len(adjacent) - 1:
            # All remaining nodes are connected to each other, so only ties remain to be broken.
            # Updating their costs to the end would take 18 times as long in a clique of 40 nodes.
            rest = sorted(adjacent, key=lambda u: (priorities[u], u))
            return order + [(u, set(rest[i + 1 :])) for i, u in enumerate(rest)]
        del cost[v]
        order.append((v, adjacent[v]))
        for u in _eliminate_node(adjacent, v):
            cost[u] = (*_cost_of_node(adjacent, u, max_degree), priorities[u], u)
            heapq.heappush(queue, cost[u])
    return order


def _list_neighbours(edges: IntArray) -> dict[int, set[int]]:
    """Return a dict with the set of neighbours of every node that has an edge."""
    adjacent: dict[int, set[int]] = {v: set() for v in np.unique(edges).tolist()}
    for a, b in edges.tolist():
        adjacent[a].add(b)
        adjacent[b].add(a)
    return adjacent


def _cost_of_node(adjacent: dict[int, set[int]], v: int, max_degree: int) -> tuple[int, int]:
    """Return the cost of eliminating v: twice the number of edges that this adds, and the degree.

    If the degree exceeds ``max_degree``, ``max_degree``**2 is returned as the first number, which
    is larger than that of any node whose degree does not exceed it.
    """
    near = adjacent[v]
    if len(near) > max_degree:
        return max_degree**2, len(near)
    missing = map(near.difference, map(adjacent.__getitem__, near))
    return sum(map(len, missing)) - len(near), len(near)


def _eliminate_node(adjacent: dict[int, set[int]], v: int) -> set[int]:
    """Eliminate v, connect its neighbours, and return the nodes whose cost may have changed."""
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


# ------------------------------------------------------------ the clique tree


# Cliques are merged into tables of up to this number of entries: with smaller tables, the overhead
# of function calls would dominate.
MERGED_CELLS = 2048


class Edge(NamedTuple):
    """An edge between two nodes of a clique."""

    axes: tuple[int, ...]
    """Axes of its two ends in the table of the clique, whose axes are R, A, F."""
    weight: float
    """Log-weight w of the edge; it is used only if the edge has no slot."""
    slot: int
    """Index of the edge's table among the tables of the core, or -1 if it has none."""
    turned: bool
    """True if the first axis of the edge's table is that of its second end."""


Constants = tuple[FloatArray, FloatArray]
"""Log-factors of a clique that do not depend on unaries: a table over (R, A), and ψ."""


class Clique(NamedTuple):
    """A clique of the tree; its nodes are numbered by their positions in the elimination order."""

    own: list[int]
    """Nodes R that the clique eliminates, sorted."""
    separator: list[int]
    """Nodes of the separator S: those of A, sorted, and then those of F, sorted."""
    n_fresh: int
    """Number of nodes of F."""
    edges: list[Edge]
    """Edges whose first end is eliminated in this clique."""
    children: list[tuple[int, tuple[int, ...]]]
    """Index of each child, and the axes of the nodes of its message in the table over (R, A)."""
    to_message: tuple[int, ...]
    """Permutation of the axes (A, F) that sorts the nodes of S; messages have sorted axes."""
    from_message: tuple[int, ...]
    """Inverse of this permutation."""

    @property
    def n_inner(self) -> int:
        """Number of nodes of R and A, the axes of the table to which messages are added."""
        return len(self.own) + len(self.separator) - self.n_fresh

    def n_bytes(self, n_states: int) -> int:
        """Return the number of bytes of the stored tables over (R, A), (R, F) and S."""
        sizes = self.n_inner, len(self.own) + self.n_fresh, len(self.separator)
        return 8 * sum(n_states**size for size in (sizes[0], *sizes))

    def n_operations(self, n_states: int) -> int:
        """Return the number of visited entries: K**(clique size), and K**|R ∪ A| for each child."""
        whole = n_states ** (len(self.own) + len(self.separator))
        return whole + len(self.children) * n_states**self.n_inner

    def constants(self, n_states: int) -> Constants:
        """Return the log-potentials of edges without a slot: over (R, A), and ψ over (R, F)."""
        local = np.zeros((1,) * self.n_inner)
        fresh = np.zeros((n_states,) * (len(self.own) + self.n_fresh))
        weighted = [edge for edge in self.edges if edge.slot < 0]
        tables = build_edge_tables(np.array([edge.weight for edge in weighted]), n_states)
        for edge, diagonal in zip(weighted, tables, strict=True):
            if edge.axes[1] < self.n_inner:
                local = local + spread_axes(diagonal, edge.axes, self.n_inner)
            else:
                axes = edge.axes[0], edge.axes[1] - self.n_inner + len(self.own)
                fresh += spread_axes(diagonal, axes, fresh.ndim)
        return local, fresh.reshape(n_states ** len(self.own), -1)


class CliqueTree(NamedTuple):
    """Plan of the cliques for a given number of states; it allocates no tables."""

    order: Order
    """The order of elimination."""
    cliques: list[Clique]
    """The cliques, children before parents."""
    slots: IntArray
    """Indices in T of the tables whose two nodes are in the core."""
    n_states: int
    """Number of states K."""

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
        """For each clique: bytes of its tables, and table entries visited in one call."""
        return [(c.n_bytes(self.n_states), c.n_operations(self.n_states)) for c in self.cliques]


def plan_tree(core: Edges, n_states: int, max_degree: int) -> CliqueTree:
    """Plan an elimination order and its cliques; an incomplete order has no cliques.

    Parameters
    ----------
    core : Edges
        Edges of the core, which remain after contraction.
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


def _merge_small_cliques(
    order: Order, position: dict[int, int], n_states: int
) -> list[tuple[list[int], list[int]]]:
    """Merge small cliques into their parents; return (R, S) of all resulting cliques."""
    separators = [sorted(position[u] for u in near) for near in order.neighbours]
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
    """Build all cliques.

    An edge or message is assigned to the clique that eliminates its first node.
    """
    position = {v: i for i, v in enumerate(order.nodes)}
    scopes = _merge_small_cliques(order, position, n_states)
    home = {v: i for i, (own, _) in enumerate(scopes) for v in own}
    edges: list[list[Edge]] = [[] for _ in scopes]
    children: list[list[tuple[int, list[int]]]] = [[] for _ in scopes]
    slots = np.where(core.slots < 0, -1, np.cumsum(core.slots >= 0) - 1)
    rows = zip(core.ends.tolist(), core.weights.tolist(), slots.tolist(), strict=True)
    for (a, b), weight, slot in rows:
        ends = position[a], position[b]
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
    """Build a clique: determine its fresh nodes F, and translate nodes to axes of its table."""
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
    """Reshape a table so that its axes are at the given positions; other axes have length one."""
    shape = [1] * n_axes
    for axis, length in zip(axes, table.shape, strict=True):
        shape[axis] = length
    return table.reshape(shape)
