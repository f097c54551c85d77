"""The pairwise Markov network over assignments: its graph, and what inference returns.

Every kind of side information in this package becomes one network. A *node* j is a group of points
that share one assignment z_j ∈ {1..K}; it has K unary log-potentials. An *edge* e = (a, b) carries
one log-weight w_e ∈ [-∞, ∞), added to the log-weight of every joint assignment with z_a = z_b ::

    log weight(z) = Σ_j unary[j, z_j] + Σ_e w_e [z_a = z_b],        Z = Σ_z weight(z)

w = 0 says nothing, w > 0 prefers the two together, w = -∞ forbids it. A graph without edges is the
plain mixture: every point is a node of its own, and Z is a product over points.

=======  ==============================================================
j        node; K its number of states, one a component
e, w_e   edge and its log-weight
Z        normaliser, the sum over all K**n_nodes assignments
=======  ==============================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

__all__ = ["Engine", "Graph", "Infer", "Marginals", "edgeless", "require_edgeless"]


class Graph(NamedTuple):
    """Nodes and weighted edges; the states of the nodes are given by the unaries later."""

    n_nodes: int
    """Number of nodes, named 0 .. n_nodes - 1."""
    edges: np.ndarray
    """(E, 2) int: one unordered pair of different nodes a row."""
    weights: np.ndarray
    """(E,) w_e in [-inf, inf): the log-weight of the pair's being equal."""


class Marginals(NamedTuple):
    """What an engine says about a network."""

    nodes: np.ndarray
    """(n_nodes, K) p(z_j = k), rows summing to one."""
    log_z: float
    """log Z in nats; NaN where an engine has none."""
    exact: bool
    """Whether both are exact up to rounding."""


Infer = Callable[[np.ndarray], Marginals]
"""From the unary log-potentials (n_nodes, K) to the marginals."""

Engine = Callable[[Graph], Infer]
"""Works on the structure once and returns a function for many E-steps."""


def edgeless(n_nodes: int) -> Graph:
    """The graph of the plain mixture: nodes, and nothing that ties them.

    Parameters
    ----------
    n_nodes : int
        Number of nodes.

    Returns
    -------
    Graph
        Without edges.

    Examples
    --------
    >>> edgeless(3).edges.shape
    (0, 2)
    """
    return Graph(n_nodes, np.empty((0, 2), dtype=np.intp), np.empty(0))


def require_edgeless(graph: Graph, engine: str) -> None:
    """Refuse a graph whose edges an engine could not honour.

    Parameters
    ----------
    graph : Graph
        The graph.
    engine : str
        Who refuses, for the message.

    Raises
    ------
    ValueError
        If an edge has a weight other than zero; the first one is named.

    Examples
    --------
    >>> require_edgeless(Graph(2, np.array([[0, 1]]), np.array([0.0])), "independent")
    """
    tied = np.flatnonzero(graph.weights)
    if len(tied):
        a, b = graph.edges[tied[0]]
        raise ValueError(
            f"the engine {engine!r} treats nodes as independent, but nodes {a} and {b} are tied "
            f"with log-weight {graph.weights[tied[0]]:g} (edge {tied[0]}; {len(tied)} such edges). "
            "Choose an engine that honours edges."
        )
