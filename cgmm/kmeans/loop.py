"""Lloyd's iteration: alternately assign nodes to centres and move centres to the means.

The estimators, and the initialisation of mixtures, call this file; chapter 11 explains it.
Relations between points affect only the assignment, which is computed by a function called a
*rule*. The loop accepts any rule, just as EM accepts any inference engine:

=============================================  =================================================
:func:`~cgmm.kmeans.nearest_rule`              each node to the nearest centre: plain K-means, or
                                               *seeded* K-means if relations determine the start
                                               (Basu, Banerjee and Mooney, 2002)
:func:`~cgmm.kmeans.cop_rule`                  COP-KMeans, the cheapest assignment that breaks no
                                               relation (Wagstaff et al., 2001)
:func:`~cgmm.kmeans.pck_rule`                  PCKMeans, in which a broken relation costs a penalty
                                               (Basu, Banerjee and Mooney, 2004)
:func:`~cgmm.kmeans.engine_rule`               the best assignment, found by an inference engine
=============================================  =================================================

COP-KMeans and PCKMeans are the limits of penalised probabilistic clustering when the variance of
its components goes to zero [lu2007, App. C]: costs are the network's negative unaries in units of
the shrinking variance, and the best assignment is the network's most probable one. Relations are
therefore stored in the same network, :class:`~cgmm.network.SideInformation`. Every rule guarantees
that no hard relation is broken, and that the objective never rises between iterations: it searches
for the assignment of lowest objective J [lu2007, eq. C.8].

========  ========================================================================
N, M      number of points and of nodes (chunklets of points), e.g. 150 and 140
n_j, m_j  multiplicity and mean of node j, e.g. 2.0 and [5.0, 3.4]
K, μ_k    number of clusters and their centres, e.g. μ_1 = [5.0, 3.4]
z_j       cluster of node j, e.g. 1
c_jk      cost of assigning node j to cluster k, e.g. 4.2
w_e       log-weight of an edge: -inf for a cannot-link, e.g. 1.4 for a preference
J         objective: costs plus the penalties of broken edges, e.g. 81.3
t         iteration, e.g. 0 for the start and its assignment
tol       squared distance below which moving centres count as converged, e.g. 1e-4
========  ========================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, cast

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from cgmm.inference import engine_name, named_engine
from cgmm.inference.best_assignment import ROUNDING, Finder
from cgmm.inference.feasible import feasible_assignment
from cgmm.network import Engine, Graph, SideInformation, simplify
from cgmm.numerics import BoolArray, FloatArray, IntArray

# ------------------------------------------------------------ the iteration


# Points of weight zero get this weight instead, which is too small to change any sum of weights.
TINY_WEIGHT = 1e-200

Rule = Callable[..., tuple[IntArray, bool]]
"""Function from costs (M, K) and the previous assignment (None at first) to the new assignment (M,)
and a flag that is True if the new assignment is proved optimal. A rule never returns a worse
assignment than the previous one."""


class Step(NamedTuple):
    """State of Lloyd's loop after an assignment."""

    centres: FloatArray
    """(K, D) centres μ_k."""
    labels: IntArray
    """(M,) clusters z_j of the nodes: the assignment to these centres."""
    objective: float
    """Objective J of these centres and labels."""
    optimal: bool
    """True if the assignment is proved to be the best for these centres."""


def lloyd(
    nodes: Nodes, graph: Graph, centres: FloatArray, rule: Rule, z: IntArray | None = None
) -> Iterator[Step]:
    """Run Lloyd's iteration without end and yield its steps; the caller decides when to stop.

    Parameters
    ----------
    nodes : Nodes
        The nodes to assign.
    graph : Graph
        Relations between nodes; a broken edge costs the absolute value of its finite log-weight.
    centres : (K, D) array
        The initial centres.
    rule : callable
        The assignment rule.
    z : (M,) int array, default=None
        Previous assignment, if the iteration continues; it must break no hard relation.

    Yields
    ------
    Step
        The first step is the initial centres with their assignment. The objective never rises.

    Notes
    -----
    This is [lu2007, eq. 4.1], and [lu2007, eqs. C.16 to C.18] if all edges are cannot-links. Before
    the centres move, each empty cluster gets the node whose cost falls most if it has a centre of
    its own. This breaks no cannot-link, because an empty cluster has no nodes.

    Examples
    --------
    >>> from itertools import islice
    >>> side = SideInformation.build(4)
    >>> nodes = Nodes.of(np.array([[0.0], [1.0], [5.0], [6.0]]), side)
    >>> steps = lloyd(nodes, side.graph, np.array([[0.0], [1.0]]), nearest_rule)
    >>> [step.objective for step in islice(steps, 3)]
    [41.0, 6.0, 1.0]
    """
    while True:
        costs = nodes.costs(centres)
        z, optimal = rule(costs, z)
        objective = compute_total_cost(costs, graph, z) + nodes.within
        yield Step(centres, z, objective, optimal)
        z = _fill_empty(costs, graph, z)
        centres = nodes.centres(z, centres)


def _fill_empty(costs: FloatArray, graph: Graph, z: IntArray) -> IntArray:
    """Fill each empty cluster with the node whose cost decreases most, if any cost decreases."""
    n_nodes, n_clusters = costs.shape
    for k in np.flatnonzero(np.bincount(z, minlength=n_clusters) == 0):
        own = costs[np.arange(n_nodes), z]
        gain = own - _compute_penalty_increase(graph, z)
        # A node that is alone in its cluster must not move, because its cluster would be empty.
        gain[np.bincount(z, minlength=n_clusters)[z] == 1] = 0
        j = gain.argmax()
        if gain[j] > ROUNDING * costs.max():
            z = z.copy()
            z[j] = k
    return z


def _compute_penalty_increase(graph: Graph, z: IntArray) -> FloatArray:
    """Return (M,) increases of the total penalty if only this node moved to an empty cluster."""
    together = (z[graph.edges[:, 0]] == z[graph.edges[:, 1]]) & np.isfinite(graph.weights)
    ends, weights = graph.edges[together], graph.weights[together]
    return np.bincount(ends.T.ravel(), np.tile(weights, 2), minlength=len(z)).astype(float)


# ------------------------------------------------------------ nodes


class Nodes(NamedTuple):
    """The nodes that are assigned: groups of must-linked points, represented by their means."""

    means: FloatArray
    """(M, D) means m_j of the points of each node."""
    sizes: FloatArray
    """(M,) numbers n_j of points of each node, or sums of their weights."""
    factor: float
    """Factor of squared distances in the objective: 1 in COP-KMeans, ½ in PCKMeans."""
    within: float
    """Constant term of the objective: squared distances of points from the means of their nodes."""

    @classmethod
    def of(
        cls, X: FloatArray, side: SideInformation, factor: float = 1.0,
        sample_weight: FloatArray | None = None,
    ) -> Nodes:  # fmt: skip
        """Compute means and sizes of the nodes of a network over points.

        Parameters
        ----------
        X : (N, D) array
            The points.
        side : SideInformation
            The network, which assigns points to nodes.
        factor : float, default=1
            Factor of squared distances in the objective.
        sample_weight : (N,) array, default=None
            Weight of each point, as a number of points.

        Returns
        -------
        Nodes
            Means, sizes and the constant term of the objective.

        Examples
        --------
        >>> side = SideInformation.build(3, must_link=[[0, 1]])
        >>> nodes = Nodes.of(np.array([[0.0], [2.0], [5.0]]), side)
        >>> nodes.means.ravel(), nodes.sizes, nodes.within
        (array([1., 5.]), array([2., 1.]), 2.0)
        """
        # Nodes of weight zero are assigned too, so their means must be defined.
        w = np.ones(len(X)) if sample_weight is None else np.maximum(sample_weight, TINY_WEIGHT)
        sizes = np.bincount(side.node_of, w).astype(float)
        means = np.ascontiguousarray(side.sum_over_nodes(X * w[:, None]) / sizes[:, None])
        within = factor * float(w @ np.square(X - means[side.node_of]).sum(axis=1))
        return cls(means, sizes, factor, within)

    def costs(self, centres: FloatArray) -> FloatArray:
        """Return the costs c_jk (M, K) without ``within``, in squared units of the data.

        Parameters
        ----------
        centres : (K, D) array
            μ_k.

        Returns
        -------
        (M, K) array
            ``factor n_j |m_j - μ_k|²``: the sum of squared distances of the node's points from μ_k,
            minus that from their own mean.
        """
        return (self.factor * self.sizes[:, None]) * cdist(self.means, centres, "sqeuclidean")

    def centres(self, z: IntArray, before: FloatArray) -> FloatArray:
        """Return the means of the clusters (K, D); a cluster without points keeps its centre.

        Parameters
        ----------
        z : (M,) int array
            Cluster of each node.
        before : (K, D) array
            The centres before the update.

        Returns
        -------
        (K, D) array
            The new centres.
        """
        shape = len(z), len(before)
        mass = sparse.csr_array((self.sizes, z, np.arange(len(z) + 1)), shape=shape)
        counts = np.bincount(z, self.sizes, minlength=len(before))[:, None]
        return np.where(counts > 0, (mass.T @ self.means) / np.where(counts > 0, counts, 1), before)


# ------------------------------------------------------------ costs and penalties


def compute_total_cost(costs: FloatArray, graph: Graph, z: IntArray) -> float:
    """Return the objective J without ``within``: costs of the assignment plus penalties."""
    return float(costs[np.arange(len(z)), z].sum()) + cost_of_broken(graph, z)


def cost_of_broken(graph: Graph, z: IntArray) -> float:
    """Return the total cost of broken preferences.

    Parameters
    ----------
    graph : Graph
        Relations; cannot-links of log-weight ``-inf`` are ignored, because no rule breaks them.
    z : (M,) int array
        Cluster of each node.

    Returns
    -------
    float
        The sum of w over edges of w > 0 between clusters, and of ``|w|`` over edges of w < 0 within
        a cluster.

    Examples
    --------
    >>> graph = Graph(3, np.array([[0, 1], [1, 2]]), np.array([2.0, -0.5]))
    >>> cost_of_broken(graph, np.array([0, 1, 1]))
    2.5
    """
    # The two terms are the second and the third sum of [lu2007, eq. 4.1].
    return float(np.abs(graph.weights[find_broken(graph, z)]).sum())


def find_broken(graph: Graph, z: IntArray) -> BoolArray:
    """Return (E,) booleans: True for the edges of finite log-weight that an assignment breaks."""
    together = z[graph.edges[:, 0]] == z[graph.edges[:, 1]]
    is_violated = np.where(together, graph.weights < 0, graph.weights > 0)
    return is_violated & np.isfinite(graph.weights)


# ------------------------------------------------------------ the rule without relations


def nearest_rule(costs: FloatArray, z: IntArray | None = None) -> tuple[IntArray, bool]:
    """Assign each node to the nearest centre and ignore relations, as plain K-means does.

    Parameters
    ----------
    costs : (M, K) array
        c_jk.
    z : ignored
        Present because all rules have this signature.

    Returns
    -------
    z : (M,) int array
        The nearest centre of each node; the first one if several are equally near.
    optimal : bool
        Always True.

    Examples
    --------
    >>> nearest_rule(np.array([[1.0, 4.0], [3.0, 0.0]]))
    (array([0, 1]), True)
    """
    return costs.argmin(axis=1), True


# ------------------------------------------------------------ runs


class LloydRun(NamedTuple):
    """Result of a run of Lloyd's loop, complete or interrupted."""

    step: Step
    """The last step."""
    history: list[float]
    """The objective of every step."""
    n_iter: int
    """Number of iterations, counted in the same way as scikit-learn."""
    converged: bool
    """True if centres or assignments stopped changing."""
    interrupted: bool = False
    """True if the user interrupted the run from the keyboard."""

    @property
    def score(self) -> float:
        """Score for comparing restarts: minus the objective."""
        return -self.step.objective


def run_to_convergence(
    steps: Iterator[Step], tol: float, max_iter: int, verbose: int = 0, run_id: int = 0
) -> LloydRun:
    """Run Lloyd's loop until convergence, ``max_iter`` or an interrupt; return the last state."""
    history, run = list[float](), cast("LloydRun", None)
    try:
        for t, step in enumerate(islice(steps, max_iter + 1)):
            history = [*history, step.objective]
            if verbose > 1:
                print(f"  iteration {t:4d}   objective {step.objective:.6f}")
            is_near = t > 0 and bool(np.square(step.centres - run.step.centres).sum() <= tol)
            same = 0 < t < max_iter and not is_near and np.array_equal(step.labels, run.step.labels)
            # If no assignment changed, also count the step that found this, as scikit-learn does.
            run = LloydRun(step, history, t + same, is_near or same)
            if run.converged:
                break
    except KeyboardInterrupt:
        if run is None or run.n_iter == 0:
            raise
        return run._replace(interrupted=True)
    if verbose:
        state = "converged" if run.converged else "stopped"
        print(f"run {run_id}: {state} after {run.n_iter} iterations, objective {history[-1]:.6f}")
    return run


# ------------------------------------------------------------ rules of assignment


def cop_rule(graph: Graph, n_clusters: int, **search: Any) -> Rule:
    """Return the rule of COP-KMeans: a low-cost assignment that breaks no cannot-link.

    This function checks only once if the relations can be satisfied, because this does not depend
    on costs.

    Parameters
    ----------
    graph : Graph
        Cannot-links between nodes, all of log-weight ``-inf``.
    n_clusters : int
        K.
    **search
        ``max_search``, ``rng``, ``hint`` of :func:`cgmm.inference.feasible_assignment`, which
        searches for a first assignment without broken cannot-links. As hint, pass an unconstrained
        clustering: if the data form clear clusters, it breaks only a small number of cannot-links.

    Returns
    -------
    callable
        The rule. Its argument z may be any assignment that breaks no cannot-link.

    Raises
    ------
    NetworkError
        If it is proved that every assignment breaks a cannot-link; the error names the nodes that
        cause this.
    SearchBudgetError
        If ``max_search`` steps do not suffice to decide this.

    Notes
    -----
    Wagstaff et al. (2001) assign points one after another and fail if no cluster is possible for a
    point. This rule solves each component of the graph by the first method that applies. (1) If the
    assignment to the nearest centres breaks no cannot-link, it is the best. (2) If the component
    has a small number of cycles, elimination finds the best assignment. (3) An integer linear
    program finds the best assignment, if it can prove it within its budget. (4) A search improves
    an assignment by exchanges: connected nodes of two clusters swap their clusters, which cannot
    break a cannot-link.

    Examples
    --------
    Both points are nearest to the first centre, but must not share a cluster:

    >>> import numpy as np
    >>> rule = cop_rule(Graph(2, np.array([[0, 1]]), np.array([-np.inf])), 2)
    >>> rule(np.array([[0.0, 9.0], [1.0, 3.0]]), None)
    (array([0, 1]), True)
    """
    return pck_rule(graph, n_clusters, **search)


def pck_rule(graph: Graph, n_clusters: int, **search: Any) -> Rule:
    """Return the rule of PCKMeans, in which each broken preference costs ``|w|``.

    Parameters
    ----------
    graph : Graph
        Preferences between nodes, with finite log-weights of either sign, and cannot-links of
        log-weight ``-inf``, which are never broken.
    n_clusters : int
        K.
    **search
        The arguments of :func:`cop_rule`; used only if there are cannot-links.

    Returns
    -------
    callable
        The rule.

    Raises
    ------
    NetworkError, SearchBudgetError
        See :func:`cop_rule`; raised only if there are cannot-links.

    Notes
    -----
    Basu et al. (2004) assign points greedily in a random order, and begin anew at each iteration,
    so their objective can rise. This rule finds the best assignment as :func:`cop_rule` does. Its
    search exchanges single nodes, chains of cannot-links, and groups of nodes connected by w > 0.

    Examples
    --------
    The second point is nearer to the second centre, but breaking the link would cost more:

    >>> import numpy as np
    >>> rule = pck_rule(Graph(2, np.array([[0, 1]]), np.array([5.0])), 2)
    >>> rule(np.array([[0.0, 9.0], [3.0, 1.0]]), None)
    (array([0, 0]), True)
    """
    graph = simplify(graph)
    if len(graph.edges) == 0:
        return nearest_rule
    feasible = feasible_assignment(graph, n_clusters, noun="cluster", **search)
    finder = Finder(graph, n_clusters)

    def find_assignment(costs: FloatArray, z: IntArray | None) -> tuple[IntArray, bool]:
        near, known = (costs.argmin(axis=1), feasible) if z is None else (None, z)
        return finder.find(-costs, near, known)

    return partial(_keep_previous_unless_better, graph, find_assignment)


def engine_rule(graph: Graph, inference: str | Engine) -> Rule:
    """Return a rule that lets an inference engine find the best assignment.

    Parameters
    ----------
    graph : Graph
        Relations between nodes.
    inference : str or callable
        A name in ENGINES, or an engine.

    Returns
    -------
    callable
        The rule.

    Raises
    ------
    ValueError
        If the engine has no ``most_probable``, or if it rejects the graph. The rule raises this
        error if no assignment is possible.

    Notes
    -----
    By [lu2007, eq. C.8], the most probable assignment with unaries -c_jk and log-weights w_e is the
    one of lowest J. It is reported as optimal unless the engine reports that it approximates some
    part of the network.

    Examples
    --------
    >>> import numpy as np
    >>> rule = engine_rule(Graph(2, np.array([[0, 1]]), np.array([-np.inf])), "auto")
    >>> rule(np.array([[0.0, 9.0], [1.0, 3.0]]), None)
    (array([0, 1]), True)
    """
    graph = simplify(graph)
    infer = named_engine(inference)(graph)
    if not infer.finds_best:
        raise ValueError(
            f"the engine {engine_name(inference)!r} cannot find the most probable "
            "assignment; choose one that can, such as inference='auto', or None to search."
        )

    def find_assignment(costs: FloatArray, z: IntArray | None) -> tuple[IntArray, bool]:
        return infer.most_probable(-costs), not infer.approximates(-costs)

    return partial(_keep_previous_unless_better, graph, find_assignment)


def _keep_previous_unless_better(
    graph: Graph, find_assignment: Rule, costs: FloatArray, z: IntArray | None = None
) -> tuple[IntArray, bool]:
    """Return the assignment that is found or, so that the loop ends, z if it is not better."""
    best, proved = find_assignment(costs, z)
    if z is not None:
        before = compute_total_cost(costs, graph, z)
        is_better = compute_total_cost(costs, graph, best) < before - ROUNDING * abs(before)
        best = best if is_better else z
    return best, proved
