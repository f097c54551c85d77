"""Brute force: the sum over every joint assignment, written down. Chapter 7, and every test.

=====  ==============================================
z      joint assignment, a state for each node
K      number of states of a node
w_e    log-weight of edge e
=====  ==============================================
"""

from __future__ import annotations

import numpy as np

from cgmm.network import Graph, Inference, Marginals, NetworkError, TooCostlyError, check_unary
from cgmm.numerics import FloatArray, IntArray, log_normalise

MAX_ASSIGNMENTS = 2_000_000


def enumerate_assignments(graph: Graph) -> Inference:
    """Return an engine that visits all K**n_nodes joint assignments: for learning and for testing.

    Parameters
    ----------
    graph : Graph
        Any graph, small.

    Returns
    -------
    callable
        From unaries (n_nodes, K) to exact marginals and log Z, in O(K**n_nodes (n_nodes + E)).
        Its ``most_probable`` is the first assignment of the largest log-weight.

    Raises
    ------
    TooCostlyError
        When called: if there are more than two million assignments.
    NetworkError
        When called: if none is possible.

    Notes
    -----
    [shental2003, eq. 9] and [lu2007, eq. 2.12] as they stand, in logs.

    Examples
    --------
    Two nodes that must differ:

    >>> infer = enumerate_assignments(Graph(2, np.array([[0, 1]]), np.array([-np.inf])))
    >>> marginals = infer(np.log([[0.9, 0.1], [0.5, 0.5]]))
    >>> marginals.nodes
    array([[0.9, 0.1],
           [0.1, 0.9]])
    >>> round(float(np.exp(marginals.log_z)), 12)
    0.5
    """

    def infer(unary: FloatArray) -> Marginals:
        assignments, log_weights = _weigh(graph, unary)
        # [shental2003, eqs. 2, 3 and 9], [lu2007, eq. 2.12]: nodes are chunklets
        (p,), (log_z,) = log_normalise(log_weights[None])
        taken = assignments[:, :, None] == np.arange(unary.shape[1])
        return Marginals(np.einsum("a,ajk->jk", p, taken), float(log_z), exact=True)

    def most_probable(unary: FloatArray) -> IntArray:
        assignments, log_weights = _weigh(graph, unary)
        return assignments[log_weights.argmax()]

    return Inference(infer, most_probable, exact=True)


def _weigh(graph: Graph, unary: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return every assignment and its log-weight; raise an error if none is possible."""
    unary = check_unary(graph, unary)
    n_nodes, n_states = unary.shape
    assignments = _all_assignments(n_nodes, n_states)
    # [shental2003, eq. 9]
    # [shental2003, eqs. 4 and 8], [lu2007, eqs. 2.8, 2.10 and 2.11], all but their normalisers
    log_weights = unary[np.arange(n_nodes), assignments].sum(axis=1)
    log_weights += _edge_terms(graph, assignments)
    if log_weights.max(initial=-np.inf) == -np.inf:
        raise NetworkError(
            "no joint assignment of {nodes} is possible: the forbidden pairs and the unaries of "
            f"-inf exclude all {len(assignments)}; revise the relations or the evidence.",
            graph.named(np.arange(n_nodes)),
        )
    return assignments, log_weights


def _all_assignments(n_nodes: int, n_states: int) -> IntArray:
    """Return (K**n_nodes, n_nodes): every z, in lexicographic order."""
    total = n_states**n_nodes
    if total > MAX_ASSIGNMENTS:
        raise TooCostlyError(
            f"{n_states}**{n_nodes} joint assignments are too many to enumerate (at most "
            f"{MAX_ASSIGNMENTS:,}); use inference='auto', or fewer nodes.",
            np.arange(n_nodes),
        )
    # The digits of 0, 1, ..., K**n_nodes - 1 in base K
    places = n_states ** np.arange(n_nodes - 1, -1, -1)
    return np.arange(total)[:, None] // places % n_states


def _edge_terms(graph: Graph, assignments: IntArray) -> FloatArray:
    """Σ_e w_e [z_a = z_b] of every assignment; an edge that does not act adds 0, also if -inf."""
    a, b = graph.edges.T
    equal = assignments[:, a] == assignments[:, b]
    # [lu2007, eq. 2.7], with w = 2 W^p
    return np.where(equal, graph.weights, 0.0).sum(axis=1)
