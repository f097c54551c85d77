"""What is known of a node, and what its cannot-links make of that: arc consistency. Chapters 7, 10.

A node with one state left takes that state from all with which it is cannot-linked. One of them may
then have one left itself, and so on. No assignment is lost, only states that none of them uses.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from cgmm.inference.colouring import adjacency
from cgmm.network import Graph, NetworkError
from cgmm.numerics import BoolArray


def forbidden_pairs(graph: Graph) -> sparse.csr_array:
    """The edges of weight -inf, as a matrix.

    Parameters
    ----------
    graph : Graph
        Any graph.

    Returns
    -------
    (n_nodes, n_nodes) sparse array
        Symmetric, with ones.

    Examples
    --------
    >>> graph = Graph(3, np.array([[0, 1], [1, 2]]), np.array([-np.inf, 2.0]))
    >>> forbidden_pairs(graph).toarray()
    array([[0., 1., 0.],
           [1., 0., 0.],
           [0., 0., 0.]])
    """
    edges = graph.edges[graph.weights == -np.inf]
    return adjacency(Graph(graph.n_nodes, edges, np.ones(len(edges))))


def exclude_states(forbidden: sparse.csr_array, allowed: BoolArray) -> BoolArray:
    """States that are left when each node that has but one has taken it from its neighbours.

    Parameters
    ----------
    forbidden : (n_nodes, n_nodes) sparse array
        Symmetric; which pairs may not be equal.
    allowed : (n_nodes, K) bool array
        The states that a node may have by itself.

    Returns
    -------
    (n_nodes, K) bool array
        The states left, in O(n_nodes K) and the edges of the nodes that end with one.

    Raises
    ------
    NetworkError
        If a node is left with none: it and those that took its states are named.

    Examples
    --------
    A path whose first node is known, of two states; then the same with a third:

    >>> path = forbidden_pairs(Graph(3, np.array([[0, 1], [1, 2]]), np.full(2, -np.inf)))
    >>> exclude_states(path, np.array([[True, False], [True, True], [True, True]])).astype(int)
    array([[1, 0],
           [0, 1],
           [1, 0]])
    >>> exclude_states(path, np.array([[True, False, False], [True] * 3, [True] * 3])).astype(int)
    array([[1, 0, 0],
           [0, 1, 1],
           [1, 1, 1]])
    """
    allowed = allowed.copy()
    held = np.flatnonzero(allowed.sum(axis=1) == 1)
    while len(held):
        rows = forbidden[held]
        state = np.repeat(allowed[held].argmax(axis=1), np.diff(rows.indptr))
        loses = allowed[rows.indices, state]
        nodes, state = rows.indices[loses], state[loses]
        allowed[nodes, state] = False
        nodes = np.unique(nodes)
        n_left = allowed[nodes].sum(axis=1)
        if not n_left.all():
            _refuse(forbidden, allowed, int(nodes[n_left.argmin()]))
        held = nodes[n_left == 1]
    return allowed


def _refuse(forbidden: sparse.csr_array, allowed: BoolArray, node: int) -> None:
    """Blame a node without a state, and its neighbours of at most one."""
    neighbours = forbidden[[node]].indices
    takers = neighbours[allowed[neighbours].sum(axis=1) <= 1]
    raise NetworkError(
        "no joint assignment is possible: {nodes} are tied by cannot-links, and what is known of "
        "the others leaves the first no state. Revise the relations or the evidence, or allow "
        "more components.",
        np.array([node, *takers]),
    )
