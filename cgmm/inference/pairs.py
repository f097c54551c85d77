"""Disjoint pairs, in closed form: relations that do not overlap. Chapter 7.

======  =================================================
a, b    the two nodes of each pair
w       log-weight of a pair, added where z_a = z_b
k, l    their states
======  =================================================
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
    simplify,
)  # fmt: skip
from cgmm.numerics import FloatArray, IntArray, log_normalise

__all__ = ["pairs"]


def pairs(graph: Graph) -> Inference:
    """Return an engine for graphs in which no node has more than one edge.

    Parameters
    ----------
    graph : Graph
        Pairs, soft or hard, and isolated nodes.

    Returns
    -------
    callable
        From unaries (n_nodes, K) to exact marginals and log Z, in O(n_nodes K), with
        ``most_probable``.

    Raises
    ------
    NetworkError
        If a node has two edges, or, when called, if a node has no possible state or a forbidden
        pair leaves none.

    Notes
    -----
    [lu2007, sect. 3.1]: a pair's p(z_a = k) ∝ exp(unary[a, k]) Σ_l exp(unary[b, l] + w [k = l]).

    Examples
    --------
    Two nodes that must differ, and one by itself:

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
    # Each pair from both of its ends, in one call.
    to, of, weights = np.r_[a, b], np.r_[b, a], np.tile(graph.weights, 2)

    def infer(unary: FloatArray) -> Marginals:
        unary = check_unary(graph, unary)
        # [lu2007, sect. 3.1]
        log_beliefs = unary.copy()
        log_beliefs[to] += edge_message(unary[of], weights)
        _require_possible(log_beliefs[a], graph)
        nodes, log_totals = log_normalise(log_beliefs)
        # The sum over a pair stands at both of its ends, but counts once.
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
    """Name a node with two edges."""
    if are_disjoint_pairs(graph):
        return
    node = int(np.bincount(graph.edges.ravel()).argmax())
    others = graph.edges[(graph.edges == node).any(axis=1)]
    raise NetworkError(
        "the engine 'pairs' needs relations that do not overlap, but {nodes} has "
        f"{len(others)} of them. Choose an engine for larger components: inference='auto'.",
        graph.named(np.array([node])),
    )


def _require_possible(log_beliefs: FloatArray, graph: Graph) -> None:
    """Name a pair whose ends have but one state, and the same."""
    impossible = np.flatnonzero(log_beliefs.max(axis=1) == -np.inf)
    if len(impossible):
        raise NetworkError(
            f"no joint assignment of {{nodes}} is possible with K = {log_beliefs.shape[1]}: they "
            "must differ, but the evidence leaves both the same single state. Revise the relation "
            "or the evidence.",
            graph.named(graph.edges[impossible[0]]),
        )
