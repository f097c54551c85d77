"""Assignment rules of COP-KMeans and PCKMeans, which look for the assignment of lowest cost.

The estimators choose a rule and pass it to the loop. Every rule searches for the most probable
assignment of a network with unaries -c_jk and log-weights w_e, which is the assignment of lowest
objective J [lu2007, eq. C.8]. In COP-KMeans all edges are cannot-links; in PCKMeans a broken
preference costs a penalty. Chapter 11 explains the rules.

=======  ==================================================================
M, K     number of nodes and of clusters, e.g. 140 and 3
costs    (M, K) c_jk, cost of assigning node j to cluster k, e.g. 4.2
z        (M,) cluster of each node, e.g. [0, 2, 1]
J        objective: costs plus the penalties of broken edges, e.g. 81.3
=======  ==================================================================
"""

from __future__ import annotations

from functools import partial
from typing import Any

from cgmm.inference import engine_name, named_engine
from cgmm.inference.best_assignment import ROUNDING, Finder
from cgmm.inference.feasible import feasible_assignment
from cgmm.kmeans.loop import Rule, nearest_rule, total_cost
from cgmm.network import Engine, Graph, simplify
from cgmm.numerics import FloatArray, IntArray


def cop_rule(graph: Graph, n_clusters: int, **search: Any) -> Rule:
    """Return the rule of COP-KMeans: a low-cost assignment that breaks no cannot-link.

    Whether the relations can be satisfied at all does not depend on the costs, so this function
    decides it once.

    Parameters
    ----------
    graph : Graph
        Cannot-links between nodes: all weights ``-inf``.
    n_clusters : int
        K.
    **search
        ``max_search``, ``rng``, ``hint`` of :func:`cgmm.inference.feasible_assignment`, which
        searches for a first assignment without broken cannot-links. The hint is an unconstrained
        clustering: in data that cluster well it is almost a solution.

    Returns
    -------
    callable
        The rule. It accepts as z any assignment that breaks no cannot-link.

    Raises
    ------
    NetworkError
        If every assignment provably breaks a cannot-link; the error names the nodes that cause it.
    SearchBudgetError
        If ``max_search`` steps do not suffice to decide this.

    Notes
    -----
    Wagstaff et al. (2001) assign points one after another and give up if no cluster is left for a
    point. Here each component of the graph is treated by the first method that applies. (1) If its
    nearest centres break no cannot-link, they are the assignment. (2) If it has a small number of
    cycles, elimination finds the best assignment. (3) Otherwise an integer linear program does, if
    it proves an optimum within its budget. (4) Otherwise a descent by exchanges: connected nodes
    of two clusters swap their clusters, which cannot break a cannot-link.

    Examples
    --------
    Both points are nearest to the first centre, but cannot share it:

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
        Preferences between nodes, finite weights of either sign; cannot-links of weight ``-inf``
        are never broken.
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
    Basu et al. (2004) assign points greedily in a random order and start from scratch at each
    iteration, so their objective can rise. Here the best assignment is found as in
    :func:`cop_rule`. The descent by exchanges moves single nodes, chains of cannot-links, and
    groups of nodes joined by w > 0.

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

    def find(costs: FloatArray, z: IntArray | None) -> tuple[IntArray, bool]:
        near, known = (costs.argmin(axis=1), feasible) if z is None else (None, z)
        return finder.find(-costs, near, known)

    return partial(_keep_unless_better, graph, find)


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
        If the engine has no ``most_probable``, or if it rejects the graph. The rule itself raises
        it if no assignment is possible.

    Notes
    -----
    [lu2007, eq. C.8]: with unaries -c_jk and log-weights w_e, the most probable assignment is the
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
            f"the engine {engine_name(inference)!r} cannot tell the most probable "
            "assignment; choose one that can, such as inference='auto', or None to search."
        )

    def find(costs: FloatArray, z: IntArray | None) -> tuple[IntArray, bool]:
        return infer.most_probable(-costs), not infer.approximates(-costs)

    return partial(_keep_unless_better, graph, find)


def _keep_unless_better(
    graph: Graph, find: Rule, costs: FloatArray, z: IntArray | None = None
) -> tuple[IntArray, bool]:
    """Return the assignment found, or z if the new one is not better, so that the loop ends."""
    best, proved = find(costs, z)
    if z is not None:
        before = total_cost(costs, graph, z)
        is_better = total_cost(costs, graph, best) < before - ROUNDING * abs(before)
        best = best if is_better else z
    return best, proved
