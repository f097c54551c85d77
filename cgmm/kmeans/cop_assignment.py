"""The rule of COP-KMeans: the cheapest assignment that breaks no relation. Chapter 11."""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np
from scipy.optimize import linear_sum_assignment

from cgmm.inference import adjacency
from cgmm.kmeans.branch_and_bound import BOUNDED_NODES, BOUNDED_STEPS, branch_and_bound, ends_of
from cgmm.kmeans.exchange import exchange, exchange_all
from cgmm.kmeans.loop import Hint, Rng, Rule, cost_of, nearest_rule
from cgmm.kmeans.search import FIRST_STEPS, MAX_SEARCH, Colourer, edges_only, tabu_walk
from cgmm.network import Graph, components, simplify
from cgmm.numerics import FloatArray, IntArray

# ---------------------------------------------------------------------------- COP-KMeans


class _Component(NamedTuple):
    """Nodes tied by cannot-links, under local names 0, 1, ..."""

    nodes: IntArray
    neighbours: list[IntArray]


def cop_rule(
    graph: Graph,
    n_clusters: int,
    *,
    max_search: int = MAX_SEARCH,
    rng: Rng | None = None,
    hint: Hint | None = None,
) -> Rule:
    """The assignment of COP-KMeans: no cannot-link broken, and as cheap as the search finds it.

    Whether the relations can be honoured at all does not depend on the costs, so it is settled
    here, once. Each assignment then starts from one that honours them and can only improve.

    Parameters
    ----------
    graph : Graph
        Cannot-links between nodes: all weights ``-inf``.
    n_clusters : int
        K.
    max_search : int, default=1000000
        Steps of the search for a first assignment that breaks none; a step places a node.
    rng : RandomState, default=None
        Orders of the search's restarts; None is a fixed seed.
    hint : callable, default=None
        Gives (M,) clusters near which such an assignment may lie, though they break some; called
        only if the search is not trivial. Data that cluster well know most of the answer.

    Returns
    -------
    callable
        The rule. It may be handed as z any assignment that breaks no cannot-link.

    Raises
    ------
    NetworkError
        If no assignment breaks none: that is proved, and nodes to blame are named.
    SearchBudgetError
        If ``max_search`` steps did not settle it.

    Notes
    -----
    Wagstaff et al. (2001) assign points one after another and give up where none of the clusters
    is left. Here components of the graph in which the nearest centres clash with no cannot-link
    take them; a pair that clashes is solved in closed form; in any other a descent by exchanges
    (all nodes of two clusters that hang together in the graph trade places, which can break no
    cannot-link) is followed by branch and bound, which takes first that node in a clash which would
    lose most by its second choice. In components of up to 200 nodes it often proves the assignment
    the best.

    Examples
    --------
    Both points want the first centre, and may not share it:

    >>> rule = cop_rule(Graph(2, np.array([[0, 1]]), np.array([-np.inf])), 2)
    >>> rule(np.array([[0.0, 9.0], [1.0, 3.0]]), None)
    (array([0, 1]), True)
    """
    graph = simplify(graph)
    if len(graph.edges) == 0:
        return nearest_rule
    search = Colourer(n_clusters, max_search, rng or Rng(0), hint)
    start = search.assign(graph)
    a, b = graph.edges.T
    of_node = components(graph)
    parts = _split(graph, of_node)

    def rule(costs: FloatArray, z: IntArray | None) -> tuple[IntArray, bool]:
        best, optimal = costs.argmin(axis=1), True
        clashing = np.unique(of_node[a[best[a] == best[b]]])
        _part_pairs(costs, [parts[c].nodes for c in clashing if len(parts[c].nodes) == 2], best)
        for c in clashing:
            nodes, neighbours = parts[c]
            if len(nodes) > 2:
                c_jk = costs[nodes]
                z_c = _begin(c_jk, neighbours, start[nodes]) if z is None else z[nodes]
                best[nodes], proved = _cheapest(c_jk, neighbours, z_c)
                optimal &= proved
        return best, optimal

    return rule


def _split(graph: Graph, of_node: IntArray) -> dict[int, _Component]:
    """The components that have edges, by their numbers."""
    matrix = edges_only(graph)
    order = np.argsort(of_node, kind="stable")
    groups = np.split(order, np.cumsum(np.bincount(of_node))[:-1])
    local = np.empty(graph.n_nodes, dtype=np.intp)
    parts = {}
    for c in np.unique(of_node[graph.edges[:, 0]]):
        nodes = groups[c]
        local[nodes] = np.arange(len(nodes))
        neighbours: list[IntArray]
        neighbours = [local[matrix.indices[matrix.indptr[j] : matrix.indptr[j + 1]]] for j in nodes]
        parts[int(c)] = _Component(nodes, neighbours)
    return parts


def _part_pairs(costs: FloatArray, pairs: list[IntArray], z: IntArray) -> None:
    """Of two nodes that want one cluster, the one that loses less takes its second choice."""
    if not pairs:
        return
    ends = np.array(pairs)
    of_ends = costs[ends]
    first = z[ends]
    np.put_along_axis(of_ends, first[:, :, None], np.inf, axis=2)
    second = of_ends.argmin(axis=2)
    loses = of_ends.min(axis=2) - np.take_along_axis(costs[ends], first[:, :, None], 2)[:, :, 0]
    yields = loses.argmin(axis=1)
    rows = np.arange(len(ends))
    z[ends[rows, yields]] = second[rows, yields]


def _relabelled(costs: FloatArray, z: IntArray) -> IntArray:
    """The same colouring with its colours given to clusters as cheaply as possible."""
    n_clusters = costs.shape[1]
    of_colour = np.zeros((n_clusters, n_clusters))
    np.add.at(of_colour, z, costs)
    return linear_sum_assignment(of_colour)[1][z]


def _begin(costs: FloatArray, neighbours: list[IntArray], z: IntArray) -> IntArray:
    """Where to descend from: the colouring that is known, or a better one near the first choices.

    Exchanges lead far where there are few nodes; where there are many, the start matters.
    """
    z = _relabelled(costs, z)
    if len(z) > BOUNDED_NODES:
        graph = Graph(len(z), ends_of(neighbours).T, np.ones(sum(map(len, neighbours)) // 2))
        first_choices = costs.argmin(axis=1)
        steps = len(z) + FIRST_STEPS
        found, _ = tabu_walk(adjacency(graph), first_choices, costs.shape[1], steps, Rng(0))
        if found.complete and cost_of(costs, cast("IntArray", found.colours)) < cost_of(costs, z):
            z = cast("IntArray", found.colours)
    return z


def _cheapest(costs: FloatArray, neighbours: list[IntArray], z: IntArray) -> tuple[IntArray, bool]:
    """Improve an assignment of one component that breaks nothing; whether it is the best."""
    losses = costs - costs.min(axis=1, keepdims=True)
    if len(z) > BOUNDED_NODES:
        return exchange_all(losses, ends_of(neighbours), z), False
    z = exchange(losses, neighbours, z)
    return branch_and_bound(losses, neighbours, z, len(z) + BOUNDED_STEPS)
