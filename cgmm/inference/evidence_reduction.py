"""What evidence says about the neighbours: nodes with one state left go, and so on. Chapters 4, 7.

A label leaves a node one state. Over a cannot-link its neighbours lose that state, over an edge of
weight w they gain w there; the edge has said all it can and goes. A neighbour that has but one
state left passes it on in turn. So does every edge go whose ends have no state in common: it never
acts. What is left falls apart into smaller components, each of which is answered by itself. All
this depends on *which* log-potentials are -inf, not on the others, and is done once for each such
pattern.

==========  =====================================================================
n_nodes, K  number of nodes, of states
possible    (n_nodes, K) bool: the unary is not -inf
domain      (n_nodes, K) bool: states that are left; a node with one is *fixed*
w           log-weight of an edge
==========  =====================================================================

Nodes that are fixed stay where they are, without edges: engines answer them at no cost. The states
that are left are those of :mod:`cgmm.inference.arc_consistency`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cgmm.inference.arc_consistency import exclude_states, forbidden_pairs
from cgmm.network import Graph
from cgmm.numerics import BoolArray, FloatArray

__all__ = ["Consistent", "propagate_evidence"]


class Consistent(NamedTuple):
    """The same nodes with fewer edges, and what the others have said."""

    graph: Graph
    """Edges that can still act, between nodes that are not fixed."""
    addend: FloatArray
    """(n_nodes, K) what the edges that are gone add to the unaries; -inf for states lost."""
    constant: float
    """What edges between fixed nodes add to log Z."""
    kept: BoolArray
    """(E,) which edges are left."""

    def enter(self, unary: FloatArray) -> FloatArray:
        """Log-potentials (n_nodes, K) for the smaller graph."""
        return unary + self.addend


def propagate_evidence(graph: Graph, possible: BoolArray) -> Consistent:
    """Take out what evidence has decided, and what follows from it.

    Parameters
    ----------
    graph : Graph
        Simplified.
    possible : (n_nodes, K) bool array
        States that evidence leaves to each node, at least one.

    Returns
    -------
    Consistent
        The network that is left: the same marginals, and the same log Z but for a constant.

    Raises
    ------
    NetworkError
        If a node loses all of its states; the chain from the evidence to it is shown.

    Notes
    -----
    O((n_nodes + E) K) in all.

    Examples
    --------
    A path of cannot-links with three states; node 0 is in state 0, node 2 in state 0 or 1:

    >>> path = Graph(3, np.array([[0, 1], [1, 2]]), np.full(2, -np.inf))
    >>> left = propagate_evidence(path, np.array([[1, 0, 0], [0, 1, 1], [1, 1, 0]], dtype=bool))
    >>> left.graph.edges
    array([[1, 2]])
    >>> left = propagate_evidence(path, np.array([[1, 0, 0], [1, 0, 1], [1, 1, 0]], dtype=bool))
    >>> len(left.graph.edges)
    0
    """
    domain = exclude_states(forbidden_pairs(graph), possible)
    common = domain[graph.edges[:, 0]] & domain[graph.edges[:, 1]]
    acts, fixed = common.any(axis=1), domain.sum(axis=1) == 1
    first, second = fixed[graph.edges].T
    kept = acts & ~first & ~second
    said = np.flatnonzero(acts & (first ^ second))
    listener = np.where(first[said], graph.edges[said, 1], graph.edges[said, 0])
    cells = listener * domain.shape[1] + common[said].argmax(axis=1)
    gained = np.bincount(cells, graph.weights[said], domain.size).reshape(domain.shape)
    return Consistent(
        Graph(graph.n_nodes, graph.edges[kept], graph.weights[kept]),
        np.where(domain, gained, -np.inf),
        float(graph.weights[acts & first & second].sum()),
        kept,
    )
