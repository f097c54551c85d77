"""Exact inference in closed form, for isolated nodes and for disjoint pairs.

Plain EM is inference in a network without edges, so the engine ``independent`` computes the E-step
of chapter 1. The engine ``pairs`` sums over the states of both nodes of a pair in O(K). The engine
``auto`` applies the two to components of one node and of two nodes. Chapter 7 explains both.

=====  =======================================================
j      node, e.g. 4
K      number of states of a node, e.g. 3
a, b   the two nodes of a pair, e.g. 0 and 7
w      log-weight of the pair's edge, e.g. -1.5
Z      normaliser, the sum over all K**N assignments, e.g. 0.02
=====  =======================================================
"""

from __future__ import annotations

import numpy as np

from cgmm.network import (
    Graph,
    Inference,
    Marginals,
    NetworkError,
    are_disjoint_pairs,
    check_unary,
    edge_message,
    require_edgeless,
    simplify,
)  # fmt: skip
from cgmm.numerics import FloatArray, IntArray, log_normalise

__all__ = ["independent", "pairs"]


# ------------------------------------------------------------ single nodes


def independent(graph: Graph) -> Inference:
    """Prepare a graph without edges for inference, which normalises each node by itself.

    Parameters
    ----------
    graph : Graph
        A graph whose edges, if any, have log-weight zero.

    Returns
    -------
    callable
        Function from unaries (n_nodes, K) to exact marginals and
        ``log Z = Σ_j log Σ_k exp(unary[j, k])``, in O(n_nodes K) time. Its ``most_probable``
        returns the best state of each node.

    Raises
    ------
    NetworkError
        If two nodes are connected, or, when called, if a node has no possible state.

    Notes
    -----
    The sum over all ``K**N`` assignments factorises into N sums over K states, which is the
    equation that schmidt2016 marks with three asterisks in §2.3.

    Examples
    --------
    >>> import numpy as np
    >>> from cgmm.network import edgeless
    >>> infer = independent(edgeless(2))
    >>> marginals = infer(np.log([[0.2, 0.6], [0.1, 0.1]]))
    >>> marginals.nodes
    array([[0.25, 0.75],
           [0.5 , 0.5 ]])
    >>> round(float(np.exp(marginals.log_z)), 12)
    0.16
    """
    require_edgeless(graph, "independent")

    def infer(unary: FloatArray) -> Marginals:
        # [schmidt2016, eq. ***]: the paper marks its equations with asterisks.
        nodes, log_totals = log_normalise(check_unary(graph, unary))
        return Marginals(nodes, float(log_totals.sum()), exact=True)

    def most_probable(unary: FloatArray) -> IntArray:
        return check_unary(graph, unary).argmax(axis=1)

    return Inference(infer, most_probable, exact=True)


# ------------------------------------------------------------ pairs


def pairs(graph: Graph) -> Inference:
    """Prepare a graph in which no node has more than one edge for exact inference.

    Parameters
    ----------
    graph : Graph
        A graph whose components are pairs, with a soft or hard edge, and isolated nodes.

    Returns
    -------
    callable
        Function from unaries (n_nodes, K) to exact marginals and log Z, in O(n_nodes K) time. It
        has ``most_probable``.

    Raises
    ------
    NetworkError
        If a node has two edges. When called: if a node has no possible state, or if the nodes of a
        cannot-link have the same single state.

    Notes
    -----
    By [lu2007, sect. 3.1], p(z_a = k) ∝ exp(unary[a, k]) Σ_l exp(unary[b, l] + w [k = l]).

    Examples
    --------
    Nodes 0 and 1 must differ; node 2 is isolated:

    >>> infer = pairs(Graph(3, np.array([[0, 1]]), np.array([-np.inf])))
    >>> marginals = infer(np.log([[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]]))
    >>> marginals.nodes.round(12)
    array([[0.9, 0.1],
           [0.1, 0.9],
           [0.2, 0.8]])
    >>> infer.most_probable(np.log([[0.9, 0.1], [0.7, 0.3], [0.2, 0.8]]))
    array([0, 1, 1])
    """
    graph = simplify(graph)
    _require_pairs(graph)
    a, b = graph.edges.T
    # One call computes the messages of all pairs in both directions.
    receivers, senders, weights = np.r_[a, b], np.r_[b, a], np.tile(graph.weights, 2)

    def infer(unary: FloatArray) -> Marginals:
        unary = check_unary(graph, unary)
        # [lu2007, sect. 3.1]
        log_beliefs = unary.copy()
        log_beliefs[receivers] += edge_message(unary[senders], weights)
        _require_possible(log_beliefs[a], graph)
        nodes, log_totals = log_normalise(log_beliefs)
        # Both nodes of a pair have the log-normaliser of the pair, which must be counted once.
        return Marginals(nodes, float(log_totals.sum() - log_totals[b].sum()), exact=True)

    def most_probable(unary: FloatArray) -> IntArray:
        unary = check_unary(graph, unary)
        best_of_a = unary[a] + edge_message(unary[b], graph.weights, largest=True)
        _require_possible(best_of_a, graph)
        z = unary.argmax(axis=1)
        z[a] = best_of_a.argmax(axis=1)
        given_a = unary[b]
        given_a[np.arange(len(a)), z[a]] += graph.weights
        z[b] = given_a.argmax(axis=1)
        return z

    return Inference(infer, most_probable, exact=True)


def _require_pairs(graph: Graph) -> None:
    """Raise ``NetworkError`` if a node has more than one edge."""
    if are_disjoint_pairs(graph):
        return
    node = int(np.bincount(graph.edges.ravel()).argmax())
    others = graph.edges[(graph.edges == node).any(axis=1)]
    raise NetworkError(
        "the engine 'pairs' needs relations that do not overlap, but {nodes} has "
        f"{len(others)} relations. Choose an engine for larger components: inference='auto'.",
        graph.named(np.array([node])),
    )


def _require_possible(log_beliefs: FloatArray, graph: Graph) -> None:
    """Raise ``NetworkError`` for a cannot-linked pair whose nodes have the same single state."""
    impossible = np.flatnonzero(log_beliefs.max(axis=1) == -np.inf)
    if len(impossible):
        raise NetworkError(
            f"no joint assignment of {{nodes}} is possible with K = {log_beliefs.shape[1]}: they "
            "must differ, but the evidence leaves both the same single state. Revise the relation "
            "or the evidence.",
            graph.named(graph.edges[impossible[0]]),
        )
