"""Lloyd's iteration: assign each node to a centre, move each centre to its mean, again and again.

Relations between points change the first half only. The loop is handed a *rule* for it, as EM is
handed an engine, and does not know which:

=============================================  =================================================
:func:`~cgmm.kmeans.nearest_rule`              each node to the nearest centre: plain K-means, and
                                               *seeded* K-means where the relations choose the
                                               start (Basu, Banerjee and Mooney, 2002)
:func:`~cgmm.kmeans.cop_rule`                  COP-KMeans, the cheapest assignment that breaks no
                                               relation (Wagstaff et al., 2001)
:func:`~cgmm.kmeans.pck_rule`                  PCKMeans, where a broken relation costs a penalty
                                               (Basu, Banerjee and Mooney, 2004)
:func:`~cgmm.kmeans.engine_rule`               the best assignment of all, by an engine of inference
=============================================  =================================================

COP-KMeans and PCKMeans are the limits of penalised probabilistic clustering when the variance of
its components goes to zero [lu2007, App. C]: costs are the network's negative unaries in units of
the shrinking variance, and the best assignment is the network's most probable one. So relations are
read off the same network, :class:`~cgmm.network.SideInformation`. What every rule promises: a
relation that is hard is never broken, and the objective never rises from one iteration to the next.
Chapter 11.

========  ========================================================================
N, M      points; nodes (chunklets), which are what is assigned
n_j, m_j  multiplicity and mean of node j
K, μ_k    number of clusters, their centres
z_j       cluster of node j
c_jk      cost of giving node j to cluster k
w_e       log-weight of an edge: -inf a cannot-link, finite a preference
J         the objective: costs plus the penalties of the edges that are broken
t         iteration: 0 is the start, with its assignment
tol       squared distance by which centres may move and yet stay
========  ========================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple, cast

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist

from cgmm.inference.best_assignment import ROUNDING
from cgmm.network import Graph, SideInformation
from cgmm.numerics import BoolArray, FloatArray, IntArray

# A weight that no sum beside it notices.
ALMOST_NONE = 1e-200

Rule = Callable[..., tuple[IntArray, bool]]
"""From costs (M, K) and the assignment before, or None, to the new assignment (M,) and whether it
is known to be the best of all. What it returns is never worse than the assignment before."""


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


def lloyd(
    nodes: Nodes, graph: Graph, centres: FloatArray, rule: Rule, z: IntArray | None = None
) -> Iterator[Step]:
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
    z : (M,) int array, default=None
        An assignment to go on from, which breaks no hard relation.

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
    while True:
        costs = nodes.costs(centres)
        z, optimal = rule(costs, z)
        objective = total_cost(costs, graph, z) + nodes.within
        yield Step(centres, z, objective, optimal)
        z = _fill_empty(costs, graph, z)
        centres = nodes.centres(z, centres)


def _fill_empty(costs: FloatArray, graph: Graph, z: IntArray) -> IntArray:
    """Give each empty cluster the node that gains most by a centre of its own, if one gains."""
    n_nodes, n_clusters = costs.shape
    for k in np.flatnonzero(np.bincount(z, minlength=n_clusters) == 0):
        own = costs[np.arange(n_nodes), z]
        gain = own - _price_of_leaving(graph, z)
        # A node that is alone in its cluster stays there, or that one would be empty instead.
        gain[np.bincount(z, minlength=n_clusters)[z] == 1] = 0
        j = gain.argmax()
        if gain[j] > ROUNDING * costs.max():
            z = z.copy()
            z[j] = k
    return z


def _price_of_leaving(graph: Graph, z: IntArray) -> FloatArray:
    """(M,) what the penalties rise by when a node leaves its cluster for an empty one."""
    together = (z[graph.edges[:, 0]] == z[graph.edges[:, 1]]) & np.isfinite(graph.weights)
    ends, weights = graph.edges[together], graph.weights[together]
    return np.bincount(ends.T.ravel(), np.tile(weights, 2), minlength=len(z)).astype(float)


# ---------------------------------------------------------------------------- what is assigned


class Nodes(NamedTuple):
    """What is assigned: groups of points that must stay together, by their means."""

    means: FloatArray
    """(M, D) m_j, the mean of each node's points."""
    sizes: FloatArray
    """(M,) n_j, how many points it has, each as often as it counts."""
    factor: float
    """What a squared distance counts: 1 in COP-KMeans, ½ in PCKMeans."""
    within: float
    """The part of the objective that no assignment changes: distances within nodes."""

    @classmethod
    def of(
        cls, X: FloatArray, side: SideInformation, factor: float = 1.0,
        sample_weight: FloatArray | None = None,
    ) -> Nodes:  # fmt: skip
        """The nodes of a network over points.

        Parameters
        ----------
        X : (N, D) array
            The points.
        side : SideInformation
            Tells which points share a node.
        factor : float, default=1
            What a squared distance counts.
        sample_weight : (N,) array, default=None
            How many points each point stands for.

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
        # A point that does not count still goes where it would.
        w = np.ones(len(X)) if sample_weight is None else np.maximum(sample_weight, ALMOST_NONE)
        sizes = np.bincount(side.node_of, w).astype(float)
        means = np.ascontiguousarray(side.sum_over_nodes(X * w[:, None]) / sizes[:, None])
        within = factor * float(w @ np.square(X - means[side.node_of]).sum(axis=1))
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
        return np.where(counts > 0, (mine.T @ self.means) / np.where(counts > 0, counts, 1), before)


# ---------------------------------------------------------------------------- what it costs


def total_cost(costs: FloatArray, graph: Graph, z: IntArray) -> float:
    """J, less the constant ``within``: Σ_j c_jk for k = z_j, and penalties."""
    return float(costs[np.arange(len(z)), z].sum()) + penalty(graph, z)


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
    # [lu2007, eq. 4.1], second and third sum
    return float(np.abs(graph.weights[broken(graph, z)]).sum())


def broken(graph: Graph, z: IntArray) -> BoolArray:
    """(E,) which preferences an assignment breaks."""
    together = z[graph.edges[:, 0]] == z[graph.edges[:, 1]]
    against = np.where(together, graph.weights < 0, graph.weights > 0)
    return against & np.isfinite(graph.weights)


# ---------------------------------------------------------------------------- the simplest rule


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


# ---------------------------------------------------------------------------- a run of it


class Run(NamedTuple):
    """One run, as far as it went."""

    step: Step
    """The last step."""
    history: list[float]
    """The objective of every step."""
    n_iter: int
    """Iterations, counted as scikit-learn does."""
    converged: bool
    """Whether centres or assignments stayed where they were."""
    interrupted: bool = False
    """Whether the keyboard ended it."""

    @property
    def score(self) -> float:
        """Runs are compared by their objective: the lower, the better."""
        return -self.step.objective


def follow(
    steps: Iterator[Step], tol: float, max_iter: int, verbose: int = 0, number: int = 0
) -> Run:
    """Take steps until centres or assignments stay; at an interrupt from the keyboard, so far."""
    history, run = list[float](), cast("Run", None)
    try:
        for t, step in enumerate(islice(steps, max_iter + 1)):
            history = [*history, step.objective]
            if verbose > 1:
                print(f"  iteration {t:4d}   objective {step.objective:.6f}")
            arrived = t > 0 and bool(np.square(step.centres - run.step.centres).sum() <= tol)
            same = 0 < t < max_iter and not arrived and np.array_equal(step.labels, run.step.labels)
            # scikit-learn counts one more where it took a step to see that no assignment changed.
            run = Run(step, history, t + same, arrived or same)
            if run.converged:
                break
    except KeyboardInterrupt:
        if run is None or run.n_iter == 0:
            raise
        return run._replace(interrupted=True)
    if verbose:
        state = "converged" if run.converged else "stopped"
        print(f"run {number}: {state} after {run.n_iter} iterations, objective {history[-1]:.6f}")
    return run
