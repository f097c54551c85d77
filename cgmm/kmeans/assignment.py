"""The rules of COP-KMeans and PCKMeans: the cheapest assignment that is found. Chapter 11.

All ask the network one question, of unaries -c_jk and log-weights w_e: the assignment of least J is
its most probable one [lu2007, eq. C.8]. In COP-KMeans all edges are cannot-links, in PCKMeans a
broken preference costs a penalty.

=======  ==================================================================
M, K     nodes, clusters
costs    (M, K) c_jk, of giving node j to cluster k
z        (M,) cluster of each node
J        costs plus the penalties of broken edges
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
    """The assignment of COP-KMeans: no cannot-link broken, and as cheap as it can be found.

    Whether the relations can be honoured at all does not depend on the costs, so it is settled
    here, once.

    Parameters
    ----------
    graph : Graph
        Cannot-links between nodes: all weights ``-inf``.
    n_clusters : int
        K.
    **search
        ``max_search``, ``rng``, ``hint`` of :func:`cgmm.inference.feasible_assignment`, which
        searches for a first assignment that breaks none. Data that cluster well know most of the
        answer: so the hint.

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
    take them; of others with few cycles elimination tells the best assignment, of others still an
    integer linear program, where it is proved within its budget. Where it is not, a descent by
    exchanges takes its place: all nodes of two clusters that hang together in the graph trade
    places, which can break no cannot-link.

    Examples
    --------
    Both points want the first centre, and may not share it:

    >>> import numpy as np
    >>> rule = cop_rule(Graph(2, np.array([[0, 1]]), np.array([-np.inf])), 2)
    >>> rule(np.array([[0.0, 9.0], [1.0, 3.0]]), None)
    (array([0, 1]), True)
    """
    return pck_rule(graph, n_clusters, **search)


def pck_rule(graph: Graph, n_clusters: int, **search: Any) -> Rule:
    """The assignment of PCKMeans: each broken preference costs ``|w|``.

    Parameters
    ----------
    graph : Graph
        Preferences between nodes, finite weights of either sign; cannot-links of weight ``-inf``
        are never broken.
    n_clusters : int
        K.
    **search
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
    that their objective can rise. Here the best assignment is found as by :func:`cop_rule`; the
    descent by exchanges moves single nodes, chains of cannot-links, and groups that hold each
    other in place by w > 0.

    Examples
    --------
    The second point would be nearer to the second centre, but not by as much as the link weighs:

    >>> import numpy as np
    >>> rule = pck_rule(Graph(2, np.array([[0, 1]]), np.array([5.0])), 2)
    >>> rule(np.array([[0.0, 9.0], [3.0, 1.0]]), None)
    (array([0, 0]), True)
    """
    graph = simplify(graph)
    if len(graph.edges) == 0:
        return nearest_rule
    honours = feasible_assignment(graph, n_clusters, noun="cluster", **search)
    finder = Finder(graph, n_clusters)

    def find(costs: FloatArray, z: IntArray | None) -> tuple[IntArray, bool]:
        near, known = (costs.argmin(axis=1), honours) if z is None else (None, z)
        return finder.find(-costs, near, known)

    return partial(_settled, graph, find)


def engine_rule(graph: Graph, inference: str | Engine) -> Rule:
    """The best assignment, by an inference engine that knows the most probable one.

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
        If the engine has no ``most_probable``, if it refuses the graph, or, when called, if no
        assignment is possible.

    Notes
    -----
    [lu2007, eq. C.8]: unaries -c_jk and log-weights w_e have the assignment of least J as their
    most probable one. An assignment is called optimal unless the engine says of a part of the
    network that it approximates it.

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

    return partial(_settled, graph, find)


def _settled(
    graph: Graph, find: Rule, costs: FloatArray, z: IntArray | None = None
) -> tuple[IntArray, bool]:
    """Of equally good assignments the one at hand, or the loop might never settle."""
    best, proved = find(costs, z)
    if z is not None:
        before = total_cost(costs, graph, z)
        gains = total_cost(costs, graph, best) < before - ROUNDING * abs(before)
        best = best if gains else z
    return best, proved
