"""Find an order in which to eliminate the nodes of a network; the order determines the cost.

:mod:`cgmm.inference.clique_tree` turns an order into tables. Chapter 7 explains orders. Eliminating
a node connects its neighbours to each other, because the result of the sum depends on all of them.
The largest number of neighbours of a node at its elimination is the *induced width* of the order;
exact inference needs tables of K^(width + 1) entries. Finding the best order is NP-hard (Arnborg,
Corneil and Proskurowski, 1987), but simple rules find good ones.

======  ===============================================================
v, u    nodes, e.g. 4 and 7
d       number of neighbours of v at its elimination, e.g. 2
K       number of states of a node, e.g. 3
======  ===============================================================
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array, csgraph

from cgmm.network import Graph
from cgmm.numerics import IntArray

__all__ = ["Elimination", "Order"]

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
        sweep = _sweep(core, max_degree)
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


def _sweep(core: Graph, max_degree: int) -> Elimination:
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
