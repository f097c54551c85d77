"""The rule of COP-KMeans: the cheapest assignment that breaks no relation. Chapter 11.

=======  ===========================================================================
M, K     nodes, clusters
costs    (M, K) c_jk, of giving node j to cluster k
losses   the same less the smallest of each node: what its first choice spares it
z        (M,) cluster of each node
=======  ===========================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple, cast

import numpy as np
from scipy.optimize import linear_sum_assignment

from cgmm.inference import adjacency, feasible_assignment
from cgmm.inference.colour_search import FIRST_STEPS, Rng, neighbours_of, tabu_walk
from cgmm.inference.exchange import exchange
from cgmm.inference.feasible import MAX_SEARCH, Hint
from cgmm.inference.pairs import pairs
from cgmm.kmeans.branch_and_bound import branch_and_bound
from cgmm.kmeans.loop import Rule, cost_of, nearest_rule
from cgmm.network import Graph, connected_components, simplify
from cgmm.numerics import BoolArray, FloatArray, IntArray

# Branch and bound is tried on components of at most so many nodes, for so many steps beyond them.
BOUNDED_NODES, BOUNDED_STEPS = 200, 200


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
    max_search, rng, hint
        As in :func:`cgmm.inference.feasible_assignment`, which searches for a first assignment
        that breaks none. Data that cluster well know most of the answer: so the hint.

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
    take them; a pair that clashes is solved in closed form; in any other component of up to 200
    nodes branch and bound often finds the best assignment, and proves it. Where it does not, a
    descent by exchanges follows: all nodes of two clusters that hang together in the graph trade
    places, which can break no cannot-link.

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
    start = feasible_assignment(
        graph, n_clusters, max_search=max_search, rng=rng, hint=hint, noun="cluster"
    )
    of_node, alone = connected_components(graph), _share_no_node(graph.edges)
    in_pairs, overlapping = graph.edges[alone], graph.edges[~alone]
    (a, b), parts = overlapping.T, _split(graph, overlapping, of_node)

    def rule(costs: FloatArray, z: IntArray | None) -> tuple[IntArray, bool]:
        best, optimal = costs.argmin(axis=1), True
        clashing = in_pairs[best[in_pairs[:, 0]] == best[in_pairs[:, 1]]].ravel()
        best[clashing] = _best_of_pairs(_losses(costs[clashing]))
        for c in np.unique(of_node[a[best[a] == best[b]]]):
            part = parts[c]
            losses = _losses(costs[part.nodes])
            z_c = _begin(losses, part.edges, start[part.nodes]) if z is None else z[part.nodes]
            best[part.nodes], proved = _cheapest(losses, part, z_c)
            optimal &= proved
        return best, optimal

    return rule


def _losses(costs: FloatArray) -> FloatArray:
    """What a node pays everywhere decides nothing, but would cost digits."""
    return costs - costs.min(axis=1, keepdims=True)


def _share_no_node(edges: IntArray) -> BoolArray:
    """(E,) whether an edge is the only one of both its ends."""
    return (np.bincount(edges.ravel())[edges] == 1).all(axis=1)


def _best_of_pairs(losses: FloatArray) -> IntArray:
    """The best where a cannot-link ties node 0 to 1, another one node 2 to 3, and so on."""
    n_nodes = len(losses)
    links = np.arange(n_nodes).reshape(-1, 2)
    return pairs(Graph(n_nodes, links, np.full(len(links), -np.inf))).most_probable(-losses)


class _Component(NamedTuple):
    """Nodes tied by cannot-links, and the links under local names 0, 1, ..."""

    nodes: IntArray
    edges: IntArray
    neighbours: Sequence[IntArray]


def _split(graph: Graph, edges: IntArray, of_node: IntArray) -> dict[int, _Component]:
    """The components that some edges make up, by their numbers."""
    matrix, of_edge = adjacency(graph), of_node[edges[:, 0]]
    order, sizes = np.argsort(of_node, kind="stable"), np.bincount(of_node)
    starts = np.cumsum(sizes) - sizes
    place = np.empty(graph.n_nodes, dtype=np.intp)
    place[order] = np.arange(graph.n_nodes) - np.repeat(starts, sizes)
    edges = place[edges[np.argsort(of_edge, kind="stable")]]
    numbers, n_edges = np.unique(of_edge, return_counts=True)
    parts = {}
    for c, inside in zip(numbers.tolist(), np.split(edges, np.cumsum(n_edges)[:-1]), strict=False):
        nodes = order[starts[c] : starts[c] + sizes[c]]
        neighbours = [place[neighbours_of(matrix, j)] for j in nodes]
        parts[c] = _Component(nodes, inside, neighbours)
    return parts


def _relabelled(costs: FloatArray, z: IntArray) -> IntArray:
    """The same colouring with its colours given to clusters as cheaply as possible."""
    n_clusters = costs.shape[1]
    of_colour = np.zeros((n_clusters, n_clusters))
    np.add.at(of_colour, z, costs)
    return linear_sum_assignment(of_colour)[1][z]


def _begin(losses: FloatArray, edges: IntArray, z: IntArray) -> IntArray:
    """Where to begin: the colouring that is known, or a better one near the first choices.

    Small components are searched so thoroughly that it makes no difference.
    """
    z, n_nodes = _relabelled(losses, z), len(z)
    if n_nodes <= BOUNDED_NODES:
        return z
    matrix = adjacency(Graph(n_nodes, edges, np.ones(len(edges))))
    first_choices, allowed = losses.argmin(axis=1), np.ones(losses.shape, dtype=bool)
    found, _ = tabu_walk(matrix, first_choices, allowed, n_nodes + FIRST_STEPS, Rng(0))
    if not found.complete:
        return z
    return min(z, cast("IntArray", found.colours), key=partial(cost_of, losses))


def _cheapest(losses: FloatArray, part: _Component, z: IntArray) -> tuple[IntArray, bool]:
    """Improve an assignment of one component that breaks nothing; whether it is the best."""
    if len(z) <= BOUNDED_NODES:
        max_steps = len(z) + BOUNDED_STEPS
        z, proved = branch_and_bound(losses, part.edges, part.neighbours, z, max_steps)
        if proved:
            return z, True
    return exchange(losses, part.edges, z), False
