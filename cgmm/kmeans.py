"""K-means with side information: one Lloyd loop, and the rule by which points are assigned.

Lloyd's iteration takes turns: assign each point to a centre, move each centre to the mean of its
points. Relations between points change the first half only, and there are three rules for it:

==========  ===================================================================================
nearest     each point to the nearest centre: plain K-means, and *seeded* K-means where the
            relations choose the start (Basu, Banerjee and Mooney, 2002)
COP-KMeans  the cheapest assignment that breaks no relation (Wagstaff et al., 2001)
PCKMeans    a broken relation costs a penalty (Basu, Banerjee and Mooney, 2004)
==========  ===================================================================================

Both constrained rules are the limits of penalised probabilistic clustering when the variance of
its components goes to zero [lu2007, App. C]: the costs below are the network's negative unaries in
units of the shrinking variance, and the best assignment is the network's most probable one. They
are therefore read off the same network, :class:`~cgmm.side_information.SideInformation`, and an
exact engine can be handed in to make every assignment the best one.

Without an engine the rules search. What they promise: a relation that is hard is never broken,
and the objective never rises from one iteration to the next.

========  ========================================================================
N, M      points; nodes (chunklets), which are what is assigned
n_j, m_j  multiplicity and mean of node j
K, μ_k    number of clusters, their centres
z_j       cluster of node j
c_jk      cost of giving node j to cluster k
w_e       log-weight of an edge: -inf a cannot-link, finite a preference
J         the objective: costs plus the penalties of the edges that are broken
========  ========================================================================
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterator
from numbers import Integral, Real
from typing import Any, NamedTuple, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from cgmm.inference.colouring import (
    Search,
    adjacency,
    by_colour,
    colour_nodes,
    list_colouring,
)
from cgmm.initialise import kmeans_plus_plus, random_points
from cgmm.network import Engine, Graph, NetworkError, components, edgeless, simplify
from cgmm.numerics import FloatArray, IntArray
from cgmm.runs import best_of, last_of
from cgmm.side_information import SideInformation

__all__ = [
    "COPKMeans",
    "Nodes",
    "PCKMeans",
    "SearchBudgetError",
    "Step",
    "chunklet_seeds",
    "cop_rule",
    "engine_rule",
    "lloyd",
    "nearest_rule",
    "pck_rule",
    "penalty",
]

# A change of the objective below this share of the largest cost is rounding, not progress.
ROUNDING = 1e-12
# Branch and bound is tried on components of at most so many nodes, for so many steps beyond them.
BOUNDED_NODES, BOUNDED_STEPS = 200, 200
# Steps of the first search for a colouring; each restart has twice as many.
FIRST_STEPS = 500
# Nodes from which a clique is grown.
CLIQUE_STARTS = 50
# Steps of a search for an assignment in which no relation is broken, unless the user says more.
MAX_SEARCH = 1_000_000
# Points that differ by less have squared distances below the smallest number with all its digits.
SMALLEST_RANGE = 1e-152
# Iterations of plain K-means, which hints at where such an assignment lies.
HINT_ITERATIONS = 20

Rng = np.random.RandomState
Rule = Callable[[FloatArray, IntArray | None], tuple[IntArray, bool]]
"""From costs (M, K), and the assignment before or None, to the new one (M,) and whether it is
known to be the best of all. What it returns is never worse than the assignment before."""
Hint = Callable[[], IntArray]


class SearchBudgetError(RuntimeError):
    """The search for an assignment that breaks no cannot-link ran out of steps.

    Whether there is one is not known: this is no verdict on the relations. See ``max_search``.
    """


# ---------------------------------------------------------------------------- the loop


class Nodes(NamedTuple):
    """What is assigned: groups of points that must stay together, by their means."""

    means: FloatArray
    """(M, D) m_j, the mean of each node's points."""
    sizes: FloatArray
    """(M,) n_j, how many points it has."""
    factor: float
    """What a squared distance counts: 1 in COP-KMeans, ½ in PCKMeans."""
    within: float
    """The part of the objective that no assignment changes: distances within nodes."""

    @classmethod
    def of(cls, X: FloatArray, side: SideInformation, factor: float = 1.0) -> Nodes:
        """The nodes of a network over points.

        Parameters
        ----------
        X : (N, D) array
            The points.
        side : SideInformation
            Tells which points share a node.
        factor : float, default=1
            What a squared distance counts.

        Returns
        -------
        Nodes
            Means, sizes and the constant.

        Examples
        --------
        >>> side = SideInformation.build(3, must_link=[[0, 1]])
        >>> nodes = Nodes.of(np.array([[0.0], [2.0], [5.0]]), side)
        >>> nodes.means.ravel(), nodes.sizes, nodes.within
        (array([1., 5.]), array([2., 1.]), 2.0)
        """
        if side.nodes_are_points:
            return cls(np.ascontiguousarray(X), np.ones(len(X)), factor, 0.0)
        sizes = np.bincount(side.node_of).astype(float)
        means = np.ascontiguousarray(side.sum_over_nodes(X) / sizes[:, None])
        within = factor * float(np.square(X - means[side.node_of]).sum())
        return cls(means, sizes, factor, within)

    def costs(self, centres: FloatArray) -> FloatArray:
        """(M, K) c_jk, up to the constant ``within``, in squared units of the data.

        Parameters
        ----------
        centres : (K, D) array
            μ_k.

        Returns
        -------
        (M, K) array
            ``factor n_j |m_j - μ_k|²``: the sum over the node's points, less its scatter.
        """
        return (self.factor * self.sizes[:, None]) * cdist(self.means, centres, "sqeuclidean")

    def centres(self, z: IntArray, before: FloatArray) -> FloatArray:
        """(K, D) the mean of the points of each cluster; one without points keeps its centre.

        Parameters
        ----------
        z : (M,) int array
            Cluster of each node.
        before : (K, D) array
            The centres so far.

        Returns
        -------
        (K, D) array
            The new centres.
        """
        shape = len(z), len(before)
        mine = sparse.csr_array((self.sizes, z, np.arange(len(z) + 1)), shape=shape)
        counts = np.bincount(z, self.sizes, minlength=len(before))[:, None]
        return np.where(counts > 0, (mine.T @ self.means) / np.maximum(counts, 1), before)


class Step(NamedTuple):
    """One state of the loop; its parts belong together."""

    centres: FloatArray
    """(K, D) μ_k."""
    labels: IntArray
    """(M,) z_j, the assignment to exactly these centres."""
    objective: float
    """J of both."""
    optimal: bool
    """Whether the assignment is known to be the best for these centres."""


def lloyd(nodes: Nodes, graph: Graph, centres: FloatArray, rule: Rule) -> Iterator[Step]:
    """Run Lloyd's iteration for as long as the caller wants.

    Parameters
    ----------
    nodes : Nodes
        What is assigned.
    graph : Graph
        Relations between nodes; a finite edge that is broken costs the absolute value of its
        weight.
    centres : (K, D) array
        The start.
    rule : callable
        The assignment rule.

    Yields
    ------
    Step
        The start first, with its assignment. From one to the next the objective never rises.

    Notes
    -----
    [lu2007, eq. 4.1], and [lu2007, eqs. C.16 to C.18] where all edges are cannot-links. A cluster
    that loses all its points is given, before centres move, the node that gains most by a centre
    of its own: an empty cluster has no cannot-links, so no relation is broken.

    Examples
    --------
    >>> from itertools import islice
    >>> side = SideInformation.build(4)
    >>> nodes = Nodes.of(np.array([[0.0], [1.0], [5.0], [6.0]]), side)
    >>> steps = lloyd(nodes, side.graph, np.array([[0.0], [1.0]]), nearest_rule)
    >>> [step.objective for step in islice(steps, 3)]
    [41.0, 6.0, 1.0]
    """
    z: IntArray | None = None
    while True:
        costs = nodes.costs(centres)
        z, optimal = rule(costs, z)
        objective = _total(costs, graph, z) + nodes.within
        yield Step(centres, z, objective, optimal)
        z = _fill_empty(costs, graph, z)
        centres = nodes.centres(z, centres)


def penalty(graph: Graph, z: IntArray) -> float:
    """What broken preferences cost.

    Parameters
    ----------
    graph : Graph
        Edges; cannot-links of weight ``-inf`` are left out, as no assignment here breaks one.
    z : (M,) int array
        Cluster of each node.

    Returns
    -------
    float
        w for each edge of w > 0 between clusters, ``|w|`` for each of w < 0 within one.

    Examples
    --------
    >>> penalty(Graph(3, np.array([[0, 1], [1, 2]]), np.array([2.0, -0.5])), np.array([0, 1, 1]))
    2.5
    """
    together = z[graph.edges[:, 0]] == z[graph.edges[:, 1]]
    broken = np.where(together, graph.weights < 0, graph.weights > 0)
    # [lu2007, eq. 4.1], second and third sum
    return float(np.abs(graph.weights[broken & np.isfinite(graph.weights)]).sum())


def _total(costs: FloatArray, graph: Graph, z: IntArray) -> float:
    """J, less the constant."""
    return _paid(costs, z) + penalty(graph, z)


def _fill_empty(costs: FloatArray, graph: Graph, z: IntArray) -> IntArray:
    """Give each empty cluster the node that gains most by a centre of its own, if one gains."""
    n_nodes, n_clusters = costs.shape
    for k in np.flatnonzero(np.bincount(z, minlength=n_clusters) == 0):
        own = costs[np.arange(n_nodes), z]
        gain = own - _held_by_ties(graph, z)
        # Whoever is alone keeps its cluster: another would be empty instead.
        gain[np.bincount(z, minlength=n_clusters)[z] == 1] = 0
        j = gain.argmax()
        if gain[j] > ROUNDING * costs.max():
            z = z.copy()
            z[j] = k
    return z


def _held_by_ties(graph: Graph, z: IntArray) -> FloatArray:
    """(M,) what the penalties rise by when a node leaves its cluster for an empty one."""
    together = (z[graph.edges[:, 0]] == z[graph.edges[:, 1]]) & np.isfinite(graph.weights)
    ends, weights = graph.edges[together], graph.weights[together]
    rise: Any = np.bincount(ends.T.ravel(), np.tile(weights, 2), minlength=len(z))
    return cast("FloatArray", rise)


# ---------------------------------------------------------------------------- simple rules


def nearest_rule(costs: FloatArray, z: IntArray | None = None) -> tuple[IntArray, bool]:
    """Each node to the nearest centre, whatever is known: plain K-means.

    Parameters
    ----------
    costs : (M, K) array
        c_jk.
    z : ignored
        Present for the common signature.

    Returns
    -------
    z : (M,) int array
        The first of several equally near.
    optimal : bool
        True.

    Examples
    --------
    >>> nearest_rule(np.array([[1.0, 4.0], [3.0, 0.0]]))
    (array([0, 1]), True)
    """
    return costs.argmin(axis=1), True


def engine_rule(graph: Graph, engine: Engine) -> Rule:
    """The best assignment, by an inference engine that knows the most probable one.

    Parameters
    ----------
    graph : Graph
        Relations between nodes.
    engine : callable
        An engine, such as :func:`cgmm.inference.auto`.

    Returns
    -------
    callable
        The rule.

    Raises
    ------
    ValueError
        If the engine has no ``most_probable``, if it refuses the graph, or, when called, if no
        assignment is possible.

    Notes
    -----
    [lu2007, eq. C.8]: unaries -c_jk and log-weights w_e have the assignment of least J as their
    most probable one.

    Examples
    --------
    >>> from cgmm.inference import auto
    >>> rule = engine_rule(Graph(2, np.array([[0, 1]]), np.array([-np.inf])), auto)
    >>> rule(np.array([[0.0, 9.0], [1.0, 3.0]]), None)
    (array([0, 1]), True)
    """
    graph = simplify(graph)
    most_probable = getattr(engine(graph), "most_probable", None)
    if most_probable is None:
        raise ValueError(
            f"the engine {getattr(engine, '__name__', engine)!r} cannot tell the most probable "
            "assignment; hand in one that can, such as cgmm.inference.auto, or None to search."
        )

    def rule(costs: FloatArray, z: IntArray | None) -> tuple[IntArray, bool]:
        best = most_probable(-costs)
        # Of equally good assignments keep the one at hand, or the loop might never settle.
        if z is not None:
            before = _total(costs, graph, z)
            if _total(costs, graph, best) >= before - ROUNDING * abs(before):
                best = z
        return best, True

    return rule


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
    search = _Search(n_clusters, max_search, rng or Rng(0), hint)
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
    matrix = _edges_only(graph)
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


def _edges_only(graph: Graph) -> sparse.csr_array:
    """The symmetric matrix of ones where there is an edge."""
    return adjacency(Graph(graph.n_nodes, graph.edges, np.ones(len(graph.edges))))


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
        graph = Graph(len(z), _ends(neighbours).T, np.ones(sum(map(len, neighbours)) // 2))
        first_choices = costs.argmin(axis=1)
        steps = len(z) + FIRST_STEPS
        found, _ = _tabu_walk(adjacency(graph), first_choices, costs.shape[1], steps, Rng(0))
        if found.complete and _paid(costs, cast("IntArray", found.colours)) < _paid(costs, z):
            z = cast("IntArray", found.colours)
    return z


def _paid(costs: FloatArray, z: IntArray) -> float:
    return float(costs[np.arange(len(z)), z].sum())


def _cheapest(costs: FloatArray, neighbours: list[IntArray], z: IntArray) -> tuple[IntArray, bool]:
    """Improve an assignment of one component that breaks nothing; whether it is the best."""
    losses = costs - costs.min(axis=1, keepdims=True)
    if len(z) > BOUNDED_NODES:
        return _exchange_all(losses, _ends(neighbours), z), False
    z = _exchange(losses, neighbours, z)
    return _branch_and_bound(losses, neighbours, z, len(z) + BOUNDED_STEPS)


def _exchange(
    costs: FloatArray,
    neighbours: list[IntArray],
    z: IntArray,
    soft: sparse.csr_array | None = None,
) -> IntArray:
    """Descend by exchanges of two clusters along Kempe chains until none lowers the objective.

    A chain lowers it only if one of its nodes is better off: only those need start one.
    """
    z, tiny, everyone = z.copy(), ROUNDING * np.abs(costs).max(), np.arange(len(z))
    improved = True
    while improved:
        improved = False
        local = costs if soft is None else costs - soft @ _one_hot(z, costs.shape[1])
        gains = local[everyone, z][:, None] - local
        for j in np.argsort(-gains.max(axis=1), kind="stable"):
            if gains[j].max() <= tiny:
                break
            # Ends by break at the latest where k is its own cluster, which gains nothing.
            for k in np.argsort(-gains[j], kind="stable"):  # pragma: no branch
                if gains[j, k] <= tiny:
                    break
                chain = _kempe_chain(neighbours, z, int(j), int(k))
                moved = z[j] + k - z[chain]
                if _gain(costs, soft, z, chain, moved) > tiny:
                    z[chain] = moved
                    improved = True
                    break
    return z


def _exchange_all(costs: FloatArray, ends: IntArray, z: IntArray) -> IntArray:
    """The same descent in large components: all chains at once.

    Node j is in one chain for each other cluster k. An edge joins the chain of its one end for the
    other's cluster with that of the other for its own, so that all chains are the connected
    components of a graph of M K copies. What two chains of the same two clusters gain adds up, and
    exchanges within disjoint pairs of clusters cannot clash.
    """
    z, (n_nodes, n_clusters) = z.copy(), costs.shape
    tiny, everyone, (a, b) = ROUNDING * np.abs(costs).max(), np.arange(n_nodes), ends
    while True:
        gains = costs[everyone, z][:, None] - costs
        copies = a * n_clusters + z[b], b * n_clusters + z[a]
        joined = sparse.coo_array((np.ones(len(a)), copies), shape=(gains.size, gains.size))
        _, chain = connected_components(joined, directed=False)
        improves = np.bincount(chain, gains.ravel())[chain].reshape(gains.shape) > tiny
        if not improves.any():
            return z
        of_pair = np.zeros((n_clusters, n_clusters))
        np.add.at(of_pair, z, np.where(improves, gains, 0.0))
        of_pair += of_pair.T
        while of_pair.max() > 0:
            k, m = np.unravel_index(of_pair.argmax(), of_pair.shape)
            leaving, coming = improves[:, m] & (z == k), improves[:, k] & (z == m)
            z[leaving], z[coming] = m, k
            of_pair[[k, m]] = of_pair[:, [k, m]] = 0


def _kempe_chain(neighbours: list[IntArray], z: IntArray, j: int, k: int) -> IntArray:
    """The nodes of the clusters z_j and k that hang together with j."""
    pair, chain, seen = (z[j], k), [j], {j}
    for node in chain:
        for other in neighbours[node].tolist():
            if other not in seen and z[other] in pair:
                seen.add(other)
                chain.append(other)
    return np.array(chain)


def _gain(
    costs: FloatArray, soft: sparse.csr_array | None, z: IntArray, chain: IntArray, moved: IntArray
) -> float:
    """How much the objective falls when the nodes of a chain move."""
    gain = costs[chain, z[chain]].sum() - costs[chain, moved].sum()
    if soft is not None:
        # Two nodes of a chain that were equal stay so: only edges that leave it count.
        rows = soft[chain].tocoo()
        leaves = ~np.isin(rows.col, chain)
        owner, other = rows.row[leaves], z[rows.col[leaves]]
        change = (moved[owner] == other).astype(float) - (z[chain][owner] == other)
        gain += rows.data[leaves] @ change
    return float(gain)


def _branch_and_bound(
    losses: FloatArray, neighbours: list[IntArray], z: IntArray, max_steps: int
) -> tuple[IntArray, bool]:
    """The cheapest assignment of a component, and whether the search was complete.

    ``losses`` are costs less the smallest of each node. A step gives one node, in a clash, a
    cluster; where the first choices that are left clash no more, they are the best that is left.
    """
    bound, tiny = _paid(losses, z), ROUNDING * losses.max()
    ends = _ends(neighbours)
    blockers = np.zeros(losses.shape, dtype=np.intp)
    trail: list[tuple[int, Iterator[int]]] = []
    placed: list[tuple[int, int]] = []
    n_steps = 0
    while True:
        free = np.where(blockers > 0, np.inf, losses)
        choice, lower, node = _outlook(free, ends, bound - tiny)
        if lower < bound - tiny and node < 0:
            z, bound = choice, lower
        elif lower < bound - tiny:
            order = np.argsort(free[node], kind="stable")
            trail.append((node, iter(order[: np.isfinite(free[node]).sum()].tolist())))
        # The next choice of the last node that has one.
        while trail:
            if len(placed) == len(trail):
                _place(blockers, neighbours, *placed.pop(), -1)
            node, choices = trail[-1]
            k = next(choices, -1)
            if k >= 0:
                break
            trail.pop()
        if not trail:
            return z, True
        if n_steps == max_steps:
            return z, False
        n_steps += 1
        placed.append((node, k))
        _place(blockers, neighbours, node, k, 1)


def _place(blockers: IntArray, neighbours: list[IntArray], j: int, k: int, sign: int) -> None:
    """Give node j cluster k, or take it back: its neighbours lose k, itself all others."""
    blockers[neighbours[j], k] += sign
    blockers[j] += sign
    blockers[j, k] -= sign


def _ends(neighbours: list[IntArray]) -> IntArray:
    """(2, E) the edges of a component, each once."""
    first = np.repeat(np.arange(len(neighbours)), [len(others) for others in neighbours])
    second = np.concatenate(neighbours)
    return np.array([first, second])[:, first < second]


def _outlook(free: FloatArray, ends: IntArray, bound: float) -> tuple[IntArray, float, int]:
    """First choices, a lower bound on the loss, and a node to branch on (-1: no clash).

    Of two neighbours with one first choice, one must take another: over edges that share no node,
    the smaller of the two regrets (what the second choice costs more) adds to the bound.
    """
    choice = free.argmin(axis=1)
    best, second = np.partition(free, 1, axis=1)[:, :2].T
    lower = float(best.sum())
    a, b = ends[:, choice[ends[0]] == choice[ends[1]]]
    if lower >= bound or len(a) == 0:
        return choice, lower, -1
    regrets = second - best
    surplus = np.minimum(regrets[a], regrets[b])
    used: set[int] = set()
    for e in np.argsort(-surplus, kind="stable").tolist():
        if a[e] not in used and b[e] not in used:
            used.update((a[e], b[e]))
            lower += surplus[e]
    clashing = np.concatenate([a, b])
    return choice, float(lower), int(clashing[regrets[clashing].argmax()])


# ---------------------------------------------------------------------------- feasibility


def _peel(matrix: sparse.csr_array, n_clusters: int) -> tuple[IntArray, list[int]]:
    """The core in which every node has K neighbours or more, and the others as they went."""
    degrees = np.diff(matrix.indptr)
    peeled = np.flatnonzero(degrees < n_clusters).tolist()
    gone = degrees < n_clusters
    for j in peeled:
        for other in matrix.indices[matrix.indptr[j] : matrix.indptr[j + 1]].tolist():
            degrees[other] -= 1
            if not gone[other] and degrees[other] < n_clusters:
                gone[other] = True
                peeled.append(other)
    return np.flatnonzero(~gone), peeled


class _Search:
    """A search for an assignment that breaks no cannot-link, and the steps that it has left."""

    def __init__(self, n_clusters: int, max_search: int, rng: Rng, hint: Hint | None):
        self.n_clusters, self.max_search, self.rng, self.hint = n_clusters, max_search, rng, hint
        self.steps_left = max_search

    def assign(self, graph: Graph) -> IntArray:
        """(M,) clusters: greedily, and by search in the components where that needs too many."""
        hard = Graph(graph.n_nodes, graph.edges, np.ones(len(graph.edges)))
        z, of_node = colour_nodes(hard), components(hard)
        short = np.unique(of_node[z >= self.n_clusters])
        if len(short):
            matrix = _edges_only(hard)
            hint = None if self.hint is None else self.hint()
            for c in short:
                nodes = np.flatnonzero(of_node == c)
                near = None if hint is None else hint[nodes]
                z[nodes] = self._colour_component(matrix[nodes][:, nodes], nodes, near)
        return z

    def _colour_component(
        self, matrix: sparse.csr_array, nodes: IntArray, near: IntArray | None
    ) -> IntArray:
        """A colouring of one component.

        A node with fewer than K neighbours always finds a colour once they have theirs. Taking
        such nodes away, again and again, leaves the core that the search is about.
        """
        core, peeled = _peel(matrix, self.n_clusters)
        colours = np.full(len(nodes), -1)
        if len(core):
            near = near if near is None else near[core]
            colours[core] = self._colour_core(matrix[core][:, core], nodes[core], near)
        for j in reversed(peeled):
            taken = colours[_neighbours_of(matrix, j)]
            colours[j] = np.setdiff1d(np.arange(self.n_clusters), taken)[0]
        return colours

    def _colour_core(
        self, matrix: sparse.csr_array, names: IntArray, near: IntArray | None
    ) -> IntArray:
        """The colours, or an error that says whether there are none or none was found."""
        clique = _clique(matrix)
        if len(clique) > self.n_clusters:
            raise NetworkError(
                "{nodes} are mutually cannot-linked, so they need a cluster each, but there are "
                f"only {self.n_clusters} clusters: no assignment is possible. Remove a cannot-link "
                f"between them, or ask for {len(clique)} clusters or more.",
                np.sort(names[clique]),
            )
        found = self._take_turns(matrix, clique, near)
        if found.colours is not None:
            return found.colours
        if not found.complete:
            raise SearchBudgetError(
                f"the search for an assignment to {self.n_clusters} clusters that breaks no "
                f"cannot-link stopped after {self.max_search} steps: whether there is one is not "
                f"known. It is about {len(names)} nodes, among them {names[:8].tolist()}. Raise "
                "max_search, use more clusters, or soft relations (PCKMeans)."
            )
        raise NetworkError(
            "{nodes} are tied by cannot-links that no assignment to "
            f"{self.n_clusters} clusters can all honour: that is proved. Remove a cannot-link "
            "between them, or use more clusters.",
            np.sort(names[self._to_blame(matrix)]),
        )

    def _take_turns(
        self, matrix: sparse.csr_array, clique: IntArray, near: IntArray | None
    ) -> Search:
        """By turns backtracking, which can prove that there is none, and a walk, which cannot.

        Large degrees come first, then random orders, and every other walk starts near the hint;
        each turn has twice as many steps as the one before.
        """
        order = np.argsort(-np.diff(matrix.indptr), kind="stable")
        n_steps, start = len(order) + FIRST_STEPS, near
        while self.steps_left > 0:
            n_steps = min(n_steps, self.steps_left)
            found = self._attempt(matrix, clique, order, n_steps)
            self.steps_left -= len(order) if found.complete else n_steps
            if not found.complete:
                if start is None:
                    start = self.rng.randint(self.n_clusters, size=len(order))
                n_walk = min(n_steps, max(self.steps_left, 0))
                found, used = _tabu_walk(matrix, start, self.n_clusters, n_walk, self.rng)
                self.steps_left -= used
                start = near if start is not near else None
            if found.complete:
                return found
            order, n_steps = self.rng.permutation(len(order)), 2 * n_steps
        return Search(None, complete=False)

    def _attempt(
        self, matrix: sparse.csr_array, clique: IntArray, order: IntArray, max_steps: int
    ) -> Search:
        """One search; the clique's colours are given, as any other naming would do as well."""
        allowed = np.ones((len(order), self.n_clusters), dtype=bool)
        allowed[clique] = np.eye(self.n_clusters, dtype=bool)[: len(clique)]
        found = list_colouring(matrix[order][:, order], allowed[order], max_steps=max_steps)
        if found.colours is None:
            return found
        colours = np.empty(len(order), dtype=np.intp)
        colours[order] = found.colours
        return Search(colours, complete=True)

    def _to_blame(self, matrix: sparse.csr_array) -> IntArray:
        """Few nodes that cannot be coloured: leave out what is not needed for that."""
        blamed = np.arange(matrix.shape[0])
        for j in range(matrix.shape[0] if matrix.shape[0] <= BOUNDED_NODES else 0):
            rest = blamed[blamed != j]
            rest = rest[_peel(matrix[rest][:, rest], self.n_clusters)[0]]
            if j not in blamed or len(rest) == 0:
                continue
            part = matrix[rest][:, rest]
            order, n_steps = np.arange(len(rest)), len(rest) + FIRST_STEPS
            found = self._attempt(part, _clique(part)[: self.n_clusters], order, n_steps)
            if found.complete and found.colours is None:
                blamed = rest
        return blamed


def _tabu_walk(
    matrix: sparse.csr_array, start: IntArray, n_colours: int, n_steps: int, rng: Rng
) -> tuple[Search, int]:
    """Repair a colouring move by move; the colouring, if one is found, and the steps taken.

    Hertz and de Werra (1987): the move, of a node in conflict, that leaves the fewest conflicts,
    where what a node has just left is forbidden to it for a while.
    """
    everyone, z = np.arange(matrix.shape[0]), start.copy()
    # [j, k]: neighbours of j that have colour k
    counts = (matrix @ _one_hot(z, n_colours)).astype(np.intp)
    forbidden_until = np.zeros(counts.shape, dtype=np.intp)
    fewest = np.inf
    for step in range(n_steps):
        own = counts[everyone, z]
        wrong = np.flatnonzero(own)
        if len(wrong) == 0:
            return Search(z, complete=True), step
        n_conflicts = own.sum() // 2
        fewest = min(fewest, n_conflicts)
        # What moves change, with a lot among equals; forbidden ones must lead to a new best.
        change = counts[wrong] - own[wrong, None] + 0.5 * rng.uniform(size=(len(wrong), n_colours))
        forbidden = forbidden_until[wrong] > step
        change[forbidden & (np.floor(change) + n_conflicts >= fewest)] += len(everyone) ** 2
        change[np.arange(len(wrong)), z[wrong]] = np.inf
        row, k = np.unravel_index(change.argmin(), change.shape)
        j = wrong[row]
        neighbours = _neighbours_of(matrix, j)
        counts[neighbours, z[j]] -= 1
        counts[neighbours, k] += 1
        forbidden_until[j, z[j]] = step + 0.6 * n_conflicts + rng.randint(10)
        z[j] = k
    return Search(None, complete=False), n_steps


def _clique(matrix: sparse.csr_array) -> IntArray:
    """A large set of mutual neighbours, grown greedily from the nodes of largest degree."""
    degrees = np.diff(matrix.indptr)
    largest: list[int] = []
    for start in np.argsort(-degrees, kind="stable")[:CLIQUE_STARTS].tolist():
        clique, candidates = [start], _neighbours_of(matrix, start)
        while len(candidates):
            inside = [np.isin(_neighbours_of(matrix, j), candidates).sum() for j in candidates]
            clique.append(int(candidates[np.argmax(inside)]))
            candidates = np.intersect1d(candidates, _neighbours_of(matrix, clique[-1]))
        largest = max(largest, clique, key=len)
    return np.array(largest, dtype=np.intp)


def _neighbours_of(matrix: sparse.csr_array, j: int) -> IntArray:
    return matrix.indices[matrix.indptr[j] : matrix.indptr[j + 1]]


# ---------------------------------------------------------------------------- PCKMeans


class _Ties(NamedTuple):
    """Tied nodes in an order in which each colour is one slice."""

    nodes: IntArray
    """(n,) the node at each place."""
    rows: tuple[tuple[slice, sparse.csr_array, sparse.csr_array], ...]
    """A slice a colour, and its rows of ``soft`` and ``hard``."""
    soft: sparse.csr_array
    """(n, n) finite log-weights between places."""
    hard: sparse.csr_array
    """(n, n) one where there is a cannot-link."""


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
        As in :func:`cop_rule`, where there are cannot-links.

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
    ties = _tie(graph)

    def rule(costs: FloatArray, z: IntArray | None) -> tuple[IntArray, bool]:
        best = costs.argmin(axis=1)
        tied = ties.nodes
        best[tied] = start(costs, None)[0][tied] if z is None else z[tied]
        best[tied] = _settle(ties, costs[tied], best[tied])
        if z is not None and np.array_equal(best[tied], z[tied]):
            best = _move_groups(graph, costs, best)
        return best, False

    return rule


def _tie(graph: Graph) -> _Ties:
    """Sort the tied nodes by colour."""
    tied, ends = np.unique(graph.edges, return_inverse=True)
    blocks = by_colour(Graph(len(tied), ends.reshape(-1, 2), graph.weights))
    soft, hard = blocks.matrix, blocks.matrix.copy()
    hard.data = (soft.data == -np.inf).astype(float)
    soft.data = np.where(hard.data > 0, 0.0, soft.data)
    hard.eliminate_zeros()
    soft.eliminate_zeros()
    rows = tuple((part, soft[part], hard[part]) for part in blocks.slices)
    return _Ties(tied[blocks.order], rows, soft, hard)


def _settle(ties: _Ties, costs: FloatArray, z: IntArray) -> IntArray:
    """Let nodes take turns until none is better off by moving, alone or along a chain."""
    z = _take_turns(ties, costs, z)
    if ties.hard.nnz:
        starts = ties.hard.indptr
        neighbours: list[IntArray] = list(np.split(ties.hard.indices, starts[1:-1]))
        z = _exchange(costs, neighbours, z, ties.soft)
    return z


def _take_turns(ties: _Ties, costs: FloatArray, z: IntArray) -> IntArray:
    """Iterated conditional modes: what a node pays is its cost less the ties to its like."""
    z, tiny = z.copy(), ROUNDING * np.abs(costs).max()
    states = _one_hot(z, costs.shape[1])
    moving = True
    while moving:
        moving = False
        for part, soft, hard in ties.rows:
            # [lu2007, eq. 4.1], its terms in z_j: w (z_i ≠ z_j) is w less w (z_i = z_j)
            local = costs[part] - soft @ states
            if hard.nnz:
                local[hard @ states > 0] = np.inf
            own = local[np.arange(len(local)), z[part]]
            best = local.argmin(axis=1)
            moves = local[np.arange(len(local)), best] < own - tiny
            if moves.any():
                z[part] = np.where(moves, best, z[part])
                states[part] = _one_hot(z[part], costs.shape[1])
                moving = True
    return z


def _one_hot(z: IntArray, n_clusters: int) -> FloatArray:
    return (z[:, None] == np.arange(n_clusters)).astype(float)


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
    tied = np.unique(groups.graph.edges)
    free = np.ones(groups.n_nodes, dtype=bool)
    free[tied] = False
    moved = np.where(free, group_costs.argmin(axis=1), of_group)
    if len(tied):
        ties = _tie(groups.graph)
        moved[ties.nodes] = _settle(ties, group_costs[ties.nodes], of_group[ties.nodes])
    gain = _total(costs, graph, z) - _total(costs, graph, moved[groups.node_of])
    return moved[groups.node_of] if gain > ROUNDING * np.abs(costs).max() else z


# ---------------------------------------------------------------------------- seeds


def chunklet_seeds(X: FloatArray, node_of: IntArray, n_clusters: int, rng: Rng) -> FloatArray:
    """Centres to start from: chunklets that are large and far apart.

    Parameters
    ----------
    X : (N, D) array
        The points.
    node_of : (N,) int array
        The chunklet of each point; points that share it are must-linked.
    n_clusters : int
        K.
    rng : RandomState
        Source of randomness.

    Returns
    -------
    (K, D) array
        The start.

    Notes
    -----
    After Basu, Banerjee and Mooney (2004), who traverse chunklets farthest first, their distances
    weighted by their sizes. That one rule always starts from the same, outermost chunklets; here
    k-means++ draws them, with a probability proportional to size times squared distance, and each
    centre is the mean of the chunklets nearest to the one drawn. With fewer than K chunklets each
    of them is a seed, and the others are those centres of k-means++ over all points that lie
    farthest from the seeds so far.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [5.0], [6.0], [20.0]])
    >>> chunklet_seeds(X, np.array([0, 0, 1, 1, 2]), 2, np.random.RandomState(0)).ravel()
    array([0.5, 5.5])
    """
    sizes = np.bincount(node_of)
    is_chunklet = sizes >= 2
    sums = np.array([np.bincount(node_of, column) for column in X.T]).T
    means = sums / np.maximum(sizes, 1)[:, None]
    if is_chunklet.sum() >= n_clusters:
        inside = is_chunklet[node_of]
        moved = means[node_of[inside]]
        return _means_of_parts(moved, kmeans_plus_plus(moved, n_clusters, rng))
    seeds = list(means[is_chunklet])
    candidates = _means_of_parts(X, kmeans_plus_plus(X, n_clusters, rng))
    if not seeds:
        return candidates
    while len(seeds) < n_clusters:
        seeds.append(candidates[cdist(candidates, np.array(seeds)).min(axis=1).argmax()])
    return np.array(seeds)


def _means_of_parts(X: FloatArray, responsibilities: FloatArray) -> FloatArray:
    """The mean of each part; of all points where a part is empty, which the loop then fills."""
    counts = responsibilities.sum(axis=0)[:, None]
    means = (responsibilities.T @ X) / np.maximum(counts, 1)
    return np.where(counts > 0, means, X.mean(axis=0))


def _plus_plus(X: FloatArray, node_of: IntArray, n_clusters: int, rng: Rng) -> FloatArray:
    return _means_of_parts(X, kmeans_plus_plus(X, n_clusters, rng))


def _random(X: FloatArray, node_of: IntArray, n_clusters: int, rng: Rng) -> FloatArray:
    return _means_of_parts(X, random_points(X, n_clusters, rng))


SEEDINGS = {"chunklets": chunklet_seeds, "k-means++": _plus_plus, "random": _random}


# ---------------------------------------------------------------------------- estimators


class _ConstrainedKMeans(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator
):
    """What both estimators share: starts, runs, and what new points get."""

    _parameter_constraints = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions(set(SEEDINGS)), "array-like"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "inference": [callable, None],
        "max_search": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    n_clusters: int
    init: str | ArrayLike
    n_init: int
    max_iter: int
    tol: float
    inference: Engine | None
    max_search: int
    random_state: int | np.random.RandomState | None
    verbose: int

    cluster_centers_: FloatArray
    labels_: IntArray
    objective_: float
    assignment_optimal_: bool
    history_: FloatArray
    n_iter_: int
    converged_: bool
    inertia_: float

    def _points(self, X: ArrayLike) -> FloatArray:
        """The training points, checked."""
        self._validate_params()
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=self.n_clusters)
        with np.errstate(over="ignore", invalid="ignore"):
            ranges = X.max(axis=0) - X.min(axis=0)
            reach = np.square(ranges).sum() * len(X)
        if not np.isfinite(reach):
            raise ValueError(
                f"column {ranges.argmax()} spans {ranges.max():.3g}: its squares overflow. Divide "
                "the data by a constant."
            )
        if 0 < ranges.max() < SMALLEST_RANGE:
            raise ValueError(
                f"column {ranges.argmax()} spans {ranges.max():.3g}, and no other more: their "
                "squares vanish. Multiply the data by a constant."
            )
        return X

    def _fit(
        self,
        X: FloatArray,
        side: SideInformation,
        chunklets: IntArray,
        make_rule: Callable[..., Rule],
        factor: float,
    ) -> Self:
        """Best of n_init runs of Lloyd's loop over the nodes of ``side``."""
        rng = check_random_state(self.random_state)
        # What an offset of the data would cost the means in digits, centring saves.
        offset = X.mean(axis=0)
        nodes = Nodes.of(X - offset, side, factor)
        tol = self.tol * X.var(axis=0).mean()

        def hint() -> IntArray:
            centres = self._start(X, chunklets, rng) - offset
            plain = lloyd(nodes, edgeless(side.n_nodes), centres, nearest_rule)
            # No run that could be kept: an interrupt here is one of the search.
            return deque(_growing(plain, tol, HINT_ITERATIONS), maxlen=1).pop().step.labels

        rule = self._rule(side, make_rule, rng, hint)

        def one_run(number: int) -> _Run:
            centres = self._start(X, chunklets, rng) - offset
            steps = lloyd(nodes, side.graph, centres, rule)
            return last_of(_growing(steps, tol, self.max_iter, self.verbose, number))

        # What is wrong with the relations is wrong in every run.
        best = best_of(one_run, self._n_runs(), fatal=(ValueError,))
        self._store(best, side, offset)
        self.inertia_ = float(np.square(X - self.cluster_centers_[self.labels_]).sum())
        # After everything is stored: the warning may be an error.
        _warn_about(best, self.n_clusters, self.max_iter)
        return self

    def _rule(
        self, side: SideInformation, make_rule: Callable[..., Rule], rng: Rng, hint: Hint
    ) -> Rule:
        """The assignment rule; its errors name points."""
        try:
            if self.inference is not None:
                return _named(engine_rule(side.graph, self.inference), side)
            return make_rule(
                side.graph, self.n_clusters, max_search=self.max_search, rng=rng, hint=hint
            )
        except NetworkError as error:
            raise _in_points(error, side) from None

    def _n_runs(self) -> int:
        """A start that is given is the same in every run."""
        return self.n_init if isinstance(self.init, str) else 1

    def _start(self, X: FloatArray, chunklets: IntArray, rng: Rng) -> FloatArray:
        """(K, D) the centres of the start."""
        if isinstance(self.init, str):
            return SEEDINGS[self.init](X, chunklets, self.n_clusters, rng)
        centres = np.array(self.init, dtype=np.float64)
        shape = (self.n_clusters, X.shape[1])
        if centres.shape != shape or not np.isfinite(centres).all():
            raise ValueError(
                f"init has shape {centres.shape}; as centres it must have (K, D) = {shape}, and "
                "hold finite numbers."
            )
        return centres

    def _store(self, run: _Run, side: SideInformation, offset: FloatArray) -> None:
        self.cluster_centers_ = run.step.centres + offset
        self.labels_ = run.step.labels[side.node_of].astype(np.int32)
        self.objective_ = run.step.objective
        self.assignment_optimal_ = run.step.optimal
        self.history_ = np.array(run.history)
        self.n_iter_ = run.n_iter
        self.converged_ = run.converged

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def _distances(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self, "cluster_centers_")
        return cdist(validate_data(self, X, dtype=np.float64, reset=False), self.cluster_centers_)

    def predict(self, X: ArrayLike) -> IntArray:
        """The nearest centre of each point, taken by itself: relations bind training points only.

        Parameters
        ----------
        X : (N, D) array-like
            Points, not necessarily those of the fit.

        Returns
        -------
        (N,) int array
            The cluster.
        """
        return self._distances(X).argmin(axis=1).astype(np.int32)

    def transform(self, X: ArrayLike) -> FloatArray:
        """Distances to the centres.

        Parameters
        ----------
        X : (N, D) array-like
            Points.

        Returns
        -------
        (N, K) array
            ``|x_i - μ_k|``, in units of the data.
        """
        return self._distances(X)

    def score(self, X: ArrayLike, y: object = None) -> float:
        """Minus the sum of squared distances to the nearest centres; higher is better.

        Parameters
        ----------
        X : (N, D) array-like
            Points.
        y : ignored
            Present for scikit-learn's conventions.

        Returns
        -------
        float
            In squared units of the data.
        """
        return -float(np.square(self._distances(X).min(axis=1)).sum())


class COPKMeans(_ConstrainedKMeans):
    """K-means whose clusters break no relation.

    Must-links are contracted: what they tie together moves as one. Cannot-links make the
    assignment a colouring problem, which the sequential algorithm of Wagstaff et al. (2001) can
    fail to solve though it is solvable. This one fails only where there is nothing to be found,
    and then says why, or where a search ran out of steps, and then says that.

    Parameters
    ----------
    n_clusters : int, default=8
        K.
    init : {"chunklets", "k-means++", "random"} or (K, D) array, default="chunklets"
        Where centres start: at large chunklets far apart (:func:`chunklet_seeds`; without
        must-links that is k-means++), as k-means++ chooses among points, around points drawn
        uniformly, or here.
    n_init : int, default=1
        Runs from different starts; the one with the lowest objective is kept. A given ``init`` is
        run once.
    max_iter : int, default=300
        Most iterations of one run.
    tol : float, default=1e-4
        A run stops when the centres move by less than this share of the mean variance of the
        columns (squared distances, as in scikit-learn), or when no assignment changes.
    inference : callable, default=None
        An engine with ``most_probable``, such as :func:`cgmm.inference.auto`: each assignment is
        then the best one. It refuses networks in which that costs too much. None: a search, which
        also is exact in many cases; see ``assignment_optimal_``.
    max_search : int, default=1000000
        Steps of the search for a first assignment that breaks no cannot-link.
    random_state : int, RandomState or None, default=None
        Seed of the starts, and of the search's restarts.
    verbose : int, default=0
        1: a line a run; 2: a line an iteration too.

    Attributes
    ----------
    cluster_centers_ : (K, D) array
        μ_k.
    labels_ : (N,) int array
        Cluster of each training point; no relation is broken.
    inertia_ : float
        ``Σ_i |x_i - μ_{z_i}|²``, with ``labels_`` and ``cluster_centers_`` as they are.
    objective_ : float
        The same: what is minimised.
    history_ : (n,) array
        The objective of each assignment, with the centres that it was made for; never rises.
    n_iter_ : int
        Iterations of the run that was kept.
    converged_ : bool
        Whether it ended by itself.
    assignment_optimal_ : bool
        Whether ``labels_`` is known to be the best of all assignments to ``cluster_centers_``.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    [lu2007, eqs. C.16 to C.18]. Without relations the iterations are those of
    ``sklearn.cluster.KMeans`` from the same start.

    Examples
    --------
    >>> X = [[0.0], [1.0], [2.0], [8.0], [9.0]]
    >>> model = COPKMeans(2, random_state=0).fit(X, must_link=[[2, 3]], cannot_link=[[0, 1]])
    >>> model.labels_[2] == model.labels_[3], model.labels_[0] != model.labels_[1]
    (np.True_, np.True_)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: str | ArrayLike = "chunklets",
        n_init: int = 1,
        max_iter: int = 300,
        tol: float = 1e-4,
        inference: Engine | None = None,
        max_search: int = MAX_SEARCH,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ):
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.inference = inference
        self.max_search = max_search
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: ArrayLike,
        y: object = None,
        *,
        must_link: ArrayLike | None = None,
        cannot_link: ArrayLike | None = None,
    ) -> Self:
        """Cluster the points.

        Parameters
        ----------
        X : (N, D) array-like
            The points, N ≥ K.
        y : ignored
            Present for scikit-learn's conventions.
        must_link : (P, 2) int array-like, default=None
            Pairs of points that share a cluster. Transitive: chains are closed.
        cannot_link : (P, 2) int array-like, default=None
            Pairs of points that do not share a cluster.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the data are not finite or too few, if relations contradict each other or cannot be
            honoured with K clusters (points to blame are named), or if ``init`` does not fit.
        SearchBudgetError
            If ``max_search`` steps did not settle whether they can.
        KeyboardInterrupt
            If interrupted before there is an iteration to keep.

        Warns
        -----
        ConvergenceWarning
            If the run that is kept reached ``max_iter``, was interrupted from the keyboard (what
            was reached is kept), or has empty clusters.
        """
        X = self._points(X)
        side = SideInformation.build(len(X), must_link=must_link, cannot_link=cannot_link)
        return self._fit(X, side, side.node_of, cop_rule, factor=1.0)


class PCKMeans(_ConstrainedKMeans):
    """K-means in which a broken relation costs a penalty.

    The objective is [lu2007, eq. 4.1] ::

        J = ½ Σ_i |x_i - μ_{z_i}|² + Σ_(preferred together, but apart) w_ij
                                   + Σ_(preferred apart, but together) |w_ij|

    so w is in squared units of the data: a point goes against a relation of weight w when that
    saves it more than w in half its squared distance. With ``w=0`` the relations choose the start
    and nothing else, which is the seeded K-means of Basu, Banerjee and Mooney (2002).

    Parameters
    ----------
    n_clusters : int, default=8
        K.
    w : float, default=1.0
        Weight of each relation in ``must_link`` and ``cannot_link``; ``inf`` makes them hard.
    init : {"chunklets", "k-means++", "random"} or (K, D) array, default="chunklets"
        Where centres start: at large chunklets far apart (:func:`chunklet_seeds`; without
        must-links that is k-means++), as k-means++ chooses among points, around points drawn
        uniformly, or here.
    n_init : int, default=1
        Runs from different starts; the one with the lowest objective is kept. A given ``init`` is
        run once.
    max_iter : int, default=300
        Most iterations of one run.
    tol : float, default=1e-4
        A run stops when the centres move by less than this share of the mean variance of the
        columns (squared distances, as in scikit-learn), or when no assignment changes.
    inference : callable, default=None
        An engine with ``most_probable``, such as :func:`cgmm.inference.auto`: each assignment is
        then the best one. It refuses networks in which that costs too much. None: a local search.
    max_search : int, default=1000000
        As in :class:`COPKMeans`, where relations are hard.
    random_state : int, RandomState or None, default=None
        Seed of the starts, and of the search's restarts.
    verbose : int, default=0
        1: a line a run; 2: a line an iteration too.

    Attributes
    ----------
    cluster_centers_ : (K, D) array
        μ_k.
    labels_ : (N,) int array
        Cluster of each training point.
    inertia_ : float
        ``Σ_i |x_i - μ_{z_i}|²`` of ``labels_`` and ``cluster_centers_`` as they are; no penalties.
    objective_ : float
        J, what is minimised; weights of relations on the same two points are added first.
    history_ : (n,) array
        J of each assignment, with the centres that it was made for; never rises.
    n_iter_ : int
        Iterations of the run that was kept.
    converged_ : bool
        Whether it ended by itself.
    assignment_optimal_ : bool
        Whether ``labels_`` is known to be the best of all assignments to ``cluster_centers_``.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> X = [[0.0], [1.0], [2.0], [8.0], [9.0]]
    >>> loose = PCKMeans(2, w=1.0, random_state=0).fit(X, must_link=[[2, 3]])
    >>> strict = PCKMeans(2, w=100.0, random_state=0).fit(X, must_link=[[2, 3]])
    >>> loose.labels_[2] == loose.labels_[3], strict.labels_[2] == strict.labels_[3]
    (np.False_, np.True_)
    """

    _parameter_constraints = {
        **_ConstrainedKMeans._parameter_constraints,
        "w": [Interval(Real, 0, np.inf, closed="both")],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        w: float = 1.0,
        init: str | ArrayLike = "chunklets",
        n_init: int = 1,
        max_iter: int = 300,
        tol: float = 1e-4,
        inference: Engine | None = None,
        max_search: int = MAX_SEARCH,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ):
        self.n_clusters = n_clusters
        self.w = w
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.inference = inference
        self.max_search = max_search
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: ArrayLike,
        y: object = None,
        *,
        must_link: ArrayLike | None = None,
        cannot_link: ArrayLike | None = None,
        preferences: ArrayLike | None = None,
    ) -> Self:
        """Cluster the points.

        Parameters
        ----------
        X : (N, D) array-like
            The points, N ≥ K.
        y : ignored
            Present for scikit-learn's conventions.
        must_link : (P, 2) int array-like, default=None
            Pairs of points that should share a cluster, each with weight ``w``.
        cannot_link : (P, 2) int array-like, default=None
            Pairs of points that should not, each with weight ``w``.
        preferences : (P, 3) array-like, default=None
            Rows ``i, j, log-odds``, as in ``SideInformation.build``: weights of their own, in
            squared units of the data, positive for pairs that should share a cluster. ±inf makes
            the relation hard. Several on one pair add.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the data are not finite or too few, if a relation names no two points, if hard
            relations contradict each other or cannot be honoured, or if ``init`` does not fit.
        SearchBudgetError
            As :meth:`COPKMeans.fit`, where relations are hard.
        KeyboardInterrupt
            As :meth:`COPKMeans.fit`.

        Warns
        -----
        ConvergenceWarning
            As :meth:`COPKMeans.fit`.
        """
        X = self._points(X)
        # Each by itself: what is soft may contradict itself, but must name points.
        chunklets = SideInformation.build(len(X), must_link=must_link).node_of
        SideInformation.build(len(X), cannot_link=cannot_link)
        weighted = _with_weights(must_link, self.w), _with_weights(cannot_link, -self.w)
        if preferences is not None and np.size(preferences):
            SideInformation.build(len(X), preferences=preferences)
            weighted += (np.asarray(preferences, dtype=float),)
        side = SideInformation.build(len(X), preferences=np.concatenate(weighted))
        return self._fit(X, side, chunklets, pck_rule, factor=0.5)


def _with_weights(pairs: ArrayLike | None, weight: float) -> FloatArray:
    """(P, 3) rows of i, j, weight."""
    pairs = np.empty((0, 2)) if pairs is None or np.size(pairs) == 0 else np.asarray(pairs, float)
    return np.column_stack([pairs, np.full(len(pairs), weight)])


# ---------------------------------------------------------------------------- runs


class _Run(NamedTuple):
    """One run of Lloyd's loop, as far as it went."""

    step: Step
    history: list[float]
    n_iter: int
    converged: bool
    interrupted: bool = False

    @property
    def score(self) -> float:
        """Runs are compared by their objective: the lower, the better."""
        return -self.step.objective


def _growing(
    steps: Iterator[Step], tol: float, max_iter: int, verbose: int = 0, number: int = 0
) -> Iterator[_Run]:
    """The run as it stands at each step, until centres or assignments stay."""
    history: list[float] = []
    before = None
    for t, step in enumerate(steps):  # pragma: no branch - Lloyd's loop never ends
        history.append(step.objective)
        if verbose > 1:
            print(f"  iteration {t:4d}   objective {step.objective:.6f}")
        arrived, same = _compared(before, step, tol)
        same = same and not arrived and t < max_iter
        # As scikit-learn counts: one more where it took a step to see that none changed.
        run = _Run(step, history.copy(), t + same, arrived or same)
        yield run
        if run.converged or t == max_iter:
            break
        before = step
    if verbose:
        state = "converged" if run.converged else "stopped"
        print(f"run {number}: {state} after {run.n_iter} iterations, objective {history[-1]:.6f}")


def _compared(before: Step | None, step: Step, tol: float) -> tuple[bool, bool]:
    """Whether the centres, and whether the assignments, are where they were a step before."""
    if before is None:
        return False, False
    moved = np.square(step.centres - before.centres).sum()
    return bool(moved <= tol), np.array_equal(step.labels, before.labels)


def _warn_about(run: _Run, n_clusters: int, max_iter: int) -> None:
    """Say what the user should know about the run that is kept."""
    if run.interrupted:
        _warn(f"interrupted; the best run so far, of {run.n_iter} iterations, is kept.")
    elif not run.converged:
        _warn(f"did not converge in {max_iter} iterations; increase max_iter or tol.")
    n_used = len(np.unique(run.step.labels))
    if n_used < n_clusters:
        _warn(
            f"only {n_used} of {n_clusters} clusters have points: more would not lower the "
            "objective. There may be duplicates, or must-links may leave too few groups; use "
            f"n_clusters={n_used}."
        )


def _warn(message: str) -> None:
    """A ConvergenceWarning that points at the caller of ``fit``."""
    warnings.warn(message, ConvergenceWarning, stacklevel=5)


# ---------------------------------------------------------------------------- errors


def _named(rule: Rule, side: SideInformation) -> Rule:
    """The same rule; its errors name points."""

    def named(costs: FloatArray, z: IntArray | None) -> tuple[IntArray, bool]:
        try:
            return rule(costs, z)
        except NetworkError as error:
            raise _in_points(error, side) from None

    return named


def _in_points(error: NetworkError, side: SideInformation) -> ValueError:
    """The same error about the first points of the nodes, as users know points only."""
    first = np.unique(side.node_of, return_index=True)[1]
    text = str(error.renamed(first)).replace("node", "point", 1)
    if (side.multiplicity[error.nodes] > 1).any():
        text += " Each stands for all points that must-links tie to it."
    return ValueError(text)
