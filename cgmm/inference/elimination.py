"""Orders in which to eliminate the nodes of a network: the order decides the cost. Chapter 7.

A node that goes ties its neighbours to each other: what was summed out depends on all of them.
The most neighbours that any node has when it goes is the *induced width* of the order; exact
inference takes tables of K^(width + 1) entries. To find the best order is NP-hard (Arnborg,
Corneil and Proskurowski, 1987), good ones are found by simple rules.
:mod:`cgmm.inference.clique_tree` turns an order into tables.

======  =====================================================
v, u    nodes; d the neighbours of v when it goes
K       number of states of a node
======  =====================================================
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array, csgraph

from cgmm.network import Graph
from cgmm.numerics import IntArray

__all__ = ["Elimination", "Order"]

# What another order costs to find, in entries of tables a node.
COST_OF_SWEEP = 5000


class Order(NamedTuple):
    """Nodes in the order of elimination, as far as that is feasible."""

    nodes: list[int]
    neighbours: list[list[int]]
    """Of each node when it is eliminated."""
    stuck: list[int]
    """Nodes left where each has more neighbours than a table can have axes."""


Elimination = list[tuple[int, set[int]]]
"""Each node with the neighbours that it has when it goes."""


def elimination_order(edges: IntArray, n_states: int, max_degree: int) -> Order:
    """Find an order by min-fill; where its tables are large, take the cheaper of that and a sweep.

    The sweep of reverse Cuthill-McKee finds the best order of a grid.

    Parameters
    ----------
    edges : (E, 2) int array
        The edges; nodes without any are not eliminated.
    n_states : int
        K: a node that goes with d neighbours left costs a table of K^(d + 1) entries.
    max_degree : int
        Most neighbours that a node may have when it goes.

    Returns
    -------
    Order
        With the nodes that are left over, if any.

    Examples
    --------
    A cycle of four: the first node ties its neighbours to each other, then all is a triangle.

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
    """Return Σ K**(size of clique), infinite where nodes are left over."""
    if len(order) < n_nodes:
        return np.inf
    return float(sum(float(n_states) ** (len(near) + 1) for _, near in order))


def _sweep(core: Graph, max_degree: int) -> Elimination:
    """Eliminate along a front that moves through the graph, until it gets too wide."""
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
    """Next the node whose neighbours lack the fewest edges; ties by degree, then by lot.

    Parameters
    ----------
    edges : (E, 2) int array
        The edges.
    lots : (n_nodes,) int array
        Breaks ties.
    max_degree : int
        Most neighbours that a node may have when it goes; the order ends where all have more.

    Returns
    -------
    list of (int, set of int)
        Each node with the neighbours that it has when it goes.

    Examples
    --------
    A star: the leaves cost nothing, the centre would tie them all to each other.

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
            # All that are left are tied to each other: nothing but the lot decides, and to go on
            # counting takes eighteen times as long in a clique of forty nodes.
            left = sorted(adjacent, key=lambda u: (lots[u], u))
            return order + [(u, set(left[i + 1 :])) for i, u in enumerate(left)]
        del cost[v]
        order.append((v, adjacent[v]))
        for u in _remove(adjacent, v):
            cost[u] = (*_cost(adjacent, u, max_degree), lots[u], u)
            heapq.heappush(queue, cost[u])
    return order


def _adjacency(edges: IntArray) -> dict[int, set[int]]:
    """Neighbours of every node."""
    adjacent: dict[int, set[int]] = {v: set() for v in np.unique(edges).tolist()}
    for a, b in edges.tolist():
        adjacent[a].add(b)
        adjacent[b].add(a)
    return adjacent


def _cost(adjacent: dict[int, set[int]], v: int, most: int) -> tuple[int, int]:
    """Return (twice the number of edges that eliminating v would add, its degree).

    Above the degree ``most`` the first is not counted: it is more than any node below can have.
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
