"""The rule of PCKMeans: a broken preference costs a penalty. Chapter 11.

=======  ==================================================================
costs    (M, K) c_jk, of giving node j to cluster k
z        (M,) cluster of each node
w_e      log-weight of an edge: -inf a cannot-link, finite a preference
local    (n, K) what node j would pay in cluster k, given its neighbours
=======  ==================================================================
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from cgmm.inference import by_colour
from cgmm.inference.colour_search import Rng
from cgmm.inference.exchange import ROUNDING, exchange, indicators
from cgmm.inference.feasible import MAX_SEARCH, Hint
from cgmm.kmeans.cop_assignment import cop_rule
from cgmm.kmeans.loop import Rule, nearest_rule, total_cost
from cgmm.network import Graph, SideInformation, simplify
from cgmm.numerics import FloatArray, IntArray


def pck_rule(
    graph: Graph,
    n_clusters: int,
    *,
    max_search: int = MAX_SEARCH,
    rng: Rng | None = None,
    hint: Hint | None = None,
) -> Rule:
    """The assignment of PCKMeans: each broken preference costs ``|w|``.

    Parameters
    ----------
    graph : Graph
        Preferences between nodes, finite weights of either sign; cannot-links of weight ``-inf``
        are never broken.
    n_clusters : int
        K.
    max_search, rng, hint
        As in :func:`cgmm.inference.feasible_assignment`, where there are cannot-links.

    Returns
    -------
    callable
        The rule.

    Raises
    ------
    NetworkError, SearchBudgetError
        As :func:`cop_rule`, where there are cannot-links.

    Notes
    -----
    Basu et al. (2004) assign points greedily in a random order, from nothing at each iteration, so
    that their objective can rise. Here nodes without relations go to the nearest centre, all at
    once; the others start from where they are, and take turns colour by colour, each choosing what
    is best given its neighbours, until none moves (iterated conditional modes; Besag, 1986). When
    that changes nothing, groups of nodes that hold each other in place by w > 0 move as wholes.

    Examples
    --------
    The second point would be nearer to the second centre, but not by as much as the link weighs:

    >>> rule = pck_rule(Graph(2, np.array([[0, 1]]), np.array([5.0])), 2)
    >>> rule(np.array([[0.0, 9.0], [3.0, 1.0]]), None)
    (array([0, 0]), False)
    """
    graph = simplify(graph)
    if len(graph.edges) == 0:
        return nearest_rule
    is_hard = graph.weights == -np.inf
    hard = Graph(graph.n_nodes, graph.edges[is_hard], graph.weights[is_hard])
    start = cop_rule(hard, n_clusters, max_search=max_search, rng=rng, hint=hint)
    if is_hard.all():
        return start
    tied = _sort_by_colour(graph)

    def rule(costs: FloatArray, z: IntArray | None) -> tuple[IntArray, bool]:
        best, nodes = costs.argmin(axis=1), tied.nodes
        before = start(costs, None)[0][nodes] if z is None else z[nodes]
        best[nodes] = _settle(tied, costs[nodes], before)
        if z is not None and np.array_equal(best[nodes], before):
            best = _move_groups(graph, costs, best)
            best[nodes] = _settle(tied, costs[nodes], best[nodes])
        return best, False

    return rule


class _TiedNodes(NamedTuple):
    """The nodes that have relations, in an order in which each colour is one slice."""

    nodes: IntArray
    """(n,) the node at each place."""
    rows: tuple[tuple[slice, sparse.csr_array, sparse.csr_array], ...]
    """A slice a colour, and its rows of ``soft`` and of the cannot-links."""
    soft: sparse.csr_array
    """(n, n) finite log-weights between places."""
    cannot_links: IntArray
    """(E, 2) places."""


def _sort_by_colour(graph: Graph) -> _TiedNodes:
    """What depends on the graph alone."""
    tied, ends = np.unique(graph.edges, return_inverse=True)
    blocks = by_colour(Graph(len(tied), ends.reshape(-1, 2), graph.weights))
    soft, hard = blocks.matrix, blocks.matrix.copy()
    hard.data = (soft.data == -np.inf).astype(float)
    soft.data = np.where(hard.data > 0, 0.0, soft.data)
    hard.eliminate_zeros()
    soft.eliminate_zeros()
    rows = tuple((part, soft[part], hard[part]) for part in blocks.slices)
    cannot_links = np.column_stack(sparse.triu(hard).tocoo().coords)
    return _TiedNodes(tied[blocks.order], rows, soft, cannot_links)


def _settle(tied: _TiedNodes, costs: FloatArray, z: IntArray) -> IntArray:
    """Descend until no node is better off by moving, alone or along a chain of cannot-links."""
    z = _conditional_modes(tied, costs, z)
    if len(tied.cannot_links):
        z = exchange(costs, tied.cannot_links, z, tied.soft)
    return z


def _conditional_modes(tied: _TiedNodes, costs: FloatArray, z: IntArray) -> IntArray:
    """Iterated conditional modes: nodes take turns, a colour at a time, until none moves."""
    z, tiny = z.copy(), ROUNDING * np.abs(costs).max()
    states = indicators(z, costs.shape[1])
    moving = True
    while moving:
        moving = False
        for part, soft, hard in tied.rows:
            # [lu2007, eq. 4.1], its terms in z_j: w (z_i ≠ z_j) is w less w (z_i = z_j)
            local = costs[part] - soft @ states
            if hard.nnz:
                local[hard @ states > 0] = np.inf
            own = local[np.arange(len(local)), z[part]]
            best = local.argmin(axis=1)
            moves = local[np.arange(len(local)), best] < own - tiny
            if moves.any():
                z[part] = np.where(moves, best, z[part])
                states[part] = indicators(z[part], costs.shape[1])
                moving = True
    return z


def _move_groups(graph: Graph, costs: FloatArray, z: IntArray) -> IntArray:
    """Move as wholes the groups of nodes that are together and tied by w > 0."""
    together = (graph.weights > 0) & (z[graph.edges[:, 0]] == z[graph.edges[:, 1]])
    if not together.any():
        return z
    rest = np.column_stack([graph.edges[~together], graph.weights[~together]])
    groups = SideInformation.build(len(z), must_link=graph.edges[together], preferences=rest)
    of_group = np.empty(groups.n_nodes, dtype=np.intp)
    of_group[groups.node_of] = z
    group_costs = groups.sum_over_nodes(costs)
    moved = group_costs.argmin(axis=1)
    if len(groups.graph.edges):
        tied = _sort_by_colour(groups.graph)
        moved[tied.nodes] = _settle(tied, group_costs[tied.nodes], of_group[tied.nodes])
    gain = total_cost(costs, graph, z) - total_cost(costs, graph, moved[groups.node_of])
    return moved[groups.node_of] if gain > ROUNDING * np.abs(costs).max() else z
