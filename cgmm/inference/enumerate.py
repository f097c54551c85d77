"""Exact inference by brute force: the sum over all joint assignments.

Chapter 7 uses this engine to introduce the network, and tests compare all other engines with it.

=====  ==============================================
z      joint assignment, a state for each node, e.g. [0, 2, 1]
K      number of states of a node, e.g. 3
w_e    log-weight of edge e, e.g. -1.5
=====  ==============================================
"""

from __future__ import annotations

import numpy as np

from cgmm.network import Graph, Inference, Marginals, NetworkError, TooCostlyError, check_unary
from cgmm.numerics import FloatArray, IntArray, log_normalise

# Maximum number of assignments, for which all tables take a few hundred megabytes.
MAX_ASSIGNMENTS = 2_000_000


def enumerate_assignments(graph: Graph) -> Inference:
    """Prepare a graph for inference by enumeration of all assignments, for learning and testing.

    Parameters
    ----------
    graph : Graph
        Any small graph.

    Returns
    -------
    callable
        Function from unaries (n_nodes, K) to exact marginals and log Z, in O(K**n_nodes (n_nodes +
        E)) time. Its ``most_probable`` returns the first assignment of largest log-weight, in
        lexicographic order.

    Raises
    ------
    TooCostlyError
        When called: if there are more than two million assignments.
    NetworkError
        When called: if no assignment is possible.

    Notes
    -----
    This implements [shental2003, eq. 9] and [lu2007, eq. 2.12] without changes, in logarithms.

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
        assignments, log_weights = _compute_log_weights(graph, unary)
        # [shental2003, eqs. 2, 3 and 9] and [lu2007, eq. 2.12], where nodes are chunklets.
        (p,), (log_z,) = log_normalise(log_weights[None])
        one_hot = assignments[:, :, None] == np.arange(unary.shape[1])
        return Marginals(np.einsum("a,ajk->jk", p, one_hot), float(log_z), exact=True)

    def most_probable(unary: FloatArray) -> IntArray:
        assignments, log_weights = _compute_log_weights(graph, unary)
        return assignments[log_weights.argmax()]

    return Inference(infer, most_probable, exact=True)


def _compute_log_weights(graph: Graph, unary: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return all assignments with log-weights, or raise ``NetworkError`` if none is possible."""
    unary = check_unary(graph, unary)
    n_nodes, n_states = unary.shape
    assignments = _list_assignments(n_nodes, n_states)
    # [shental2003, eqs. 4, 8 and 9] and [lu2007, eqs. 2.8, 2.10 and 2.11], without normalisers.
    log_weights = unary[np.arange(n_nodes), assignments].sum(axis=1)
    a, b = graph.edges.T
    is_equal = assignments[:, a] == assignments[:, b]
    # [lu2007, eq. 2.7], with w = 2 W^p. Unequal ends add 0, even if w_e is -inf.
    log_weights += np.where(is_equal, graph.weights, 0.0).sum(axis=1)
    if log_weights.max(initial=-np.inf) == -np.inf:
        raise NetworkError(
            "no joint assignment of {nodes} is possible: the forbidden pairs and the unaries of "
            f"-inf exclude all {len(assignments)}; revise the relations or the evidence.",
            graph.named(np.arange(n_nodes)),
        )
    return assignments, log_weights


def _list_assignments(n_nodes: int, n_states: int) -> IntArray:
    """Return the (K**n_nodes, n_nodes) joint assignments z, in lexicographic order."""
    total = n_states**n_nodes
    if total > MAX_ASSIGNMENTS:
        raise TooCostlyError(
            f"{n_states}**{n_nodes} joint assignments are too many to enumerate (at most "
            f"{MAX_ASSIGNMENTS:,}); use inference='auto', or fewer nodes.",
            np.arange(n_nodes),
        )
    # The assignments are the digits of 0, 1, ..., K**n_nodes - 1 in base K.
    places = n_states ** np.arange(n_nodes - 1, -1, -1)
    return np.arange(total)[:, None] // places % n_states
