"""Check relations between points, and contract must-linked points into the nodes of a graph.

``SideInformation.build`` calls this file; so do tools that need only the closure of must-links.
Chapter 5 explains both steps.

=======  ==================================================================
N        number of points, e.g. 150; i, j two of them, e.g. 0 and 7
P, E     number of must-links and of edges (all other relations), e.g. 20, 30
must     (P, 2) must-links, e.g. [[0, 7]]
node_of  (N,) chunklet of each point: points linked by must-links, e.g. [0, 1, 0]
=======  ==================================================================
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from cgmm.given import read_rows, require_samples
from cgmm.network.graph import Graph, simplify
from cgmm.numerics import FloatArray, IntArray, check_pairs


def read_relations(
    n_samples: int,
    must_link: ArrayLike | None,
    cannot_link: ArrayLike | None,
    preferences: ArrayLike | None,
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return must-links (P, 2), and edges (E, 2) and log-weights (E,) of all other relations."""
    must = check_pairs("must_link", must_link, n_samples)
    cannot = check_pairs("cannot_link", cannot_link, n_samples)
    itself = np.flatnonzero(cannot[:, 0] == cannot[:, 1])
    if len(itself):
        raise ValueError(
            f"cannot_link[{itself[0]}] ties point {cannot[itself[0], 0]} to itself: no point can "
            "differ from itself. Remove the row."
        )
    soft, odds = _read_preferences(preferences, n_samples)
    hard = odds == np.inf
    edges = np.concatenate([cannot, soft[~hard]])
    # [lu2007, eq. A.2]: a cannot-link has log-weight -inf. Log-odds of +inf are must-links.
    weights = np.concatenate([np.full(len(cannot), -np.inf), odds[~hard]])
    return np.concatenate([must, soft[hard]]), edges, weights


def _read_preferences(value: ArrayLike | None, n_samples: int) -> tuple[IntArray, FloatArray]:
    """Return pairs (P, 2) and their log-odds (P,), checked."""
    require_samples("preferences", value, n_samples)
    array = read_rows("preferences", value, 3).astype(float)
    pairs, odds = check_pairs("preferences", array[:, :2], n_samples), array[:, 2]
    wrong = np.flatnonzero(np.isnan(odds) | ((pairs[:, 0] == pairs[:, 1]) & (odds == -np.inf)))
    if len(wrong):
        i, j = pairs[wrong[0]]
        raise ValueError(
            f"preferences[{wrong[0]}] gives points {i} and {j} the log-odds {odds[wrong[0]]}; "
            "log-odds must be numbers, and a point cannot differ from itself. Remove the row."
        )
    return pairs, odds


# ---------------------------------------------------------------------------- closure


def closure(n_samples: int, must: IntArray) -> IntArray:
    """Return the chunklet of each point (N,), numbered in the order of their first points."""
    if len(must) == 0:
        return np.arange(n_samples)
    return connected_components(_adjacency(n_samples, must), directed=False)[1].astype(np.intp)


def first_of_nodes(node_of: IntArray) -> IntArray:
    """Return the first point of each node (n_nodes,)."""
    # Nodes are numbered by first points, so the running maximum rises at each first point.
    return np.flatnonzero(np.diff(np.maximum.accumulate(node_of), prepend=-1))


def _adjacency(n_samples: int, pairs: IntArray) -> csr_array:
    """Return the (N, N) sparse matrix with a one for each pair."""
    ones = np.ones(len(pairs))
    return csr_array((ones, (pairs[:, 0], pairs[:, 1])), shape=(n_samples, n_samples))


def must_link_chain(must_link: IntArray, start: int, end: int) -> list[int]:
    """Return a shortest chain of must-links between two points.

    Parameters
    ----------
    must_link : (P, 2) int array
        The must-links.
    start, end : int
        Two points of one chunklet.

    Returns
    -------
    list of int
        The points from ``start`` to ``end``; consecutive points are must-linked.

    Raises
    ------
    ValueError
        If no chain links the two points.

    Examples
    --------
    >>> must_link_chain(np.array([[0, 1], [2, 1], [2, 3]]), 0, 3)
    [0, 1, 2, 3]
    """
    n_samples = int(max(start, end, must_link.max(initial=0))) + 1
    before = breadth_first_order(_adjacency(n_samples, must_link), start, directed=False)[1]
    chain = [end]
    while chain[-1] != start:
        if before[chain[-1]] < 0:
            raise ValueError(f"no chain of must-links ties points {start} and {end}.")
        chain.append(int(before[chain[-1]]))
    return chain[::-1]


def show_chain(must: IntArray, start: int, end: int) -> str:
    """Return the chain of must-links between two points, for a message."""
    return " - ".join(map(str, must_link_chain(must, int(start), int(end))))


# ---------------------------------------------------------------------------- edges


def contract_edges(
    n_nodes: int, node_of: IntArray, edges: IntArray, weights: FloatArray, must: IntArray
) -> Graph:
    """Return the graph of edges between nodes; log-weights of equal pairs are added."""
    ends = node_of[edges]
    inside = ends[:, 0] == ends[:, 1]
    clash = np.flatnonzero(inside & (weights == -np.inf))
    if len(clash):
        i, j = edges[clash[0]]
        raise ValueError(
            f"points {i} and {j} are cannot-linked, but must-links tie them together: "
            f"{show_chain(must, i, j)}. Remove the cannot-link or break the chain."
        )
    # A preference inside a chunklet adds the same constant to every assignment, so it is dropped.
    return simplify(Graph(n_nodes, ends[~inside], weights[~inside]))
