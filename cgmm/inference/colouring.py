"""Nodes that may be updated together: a colouring, and the network sorted by colour. Chapter 10.

The update of a node, whether it samples its state or sets its mean-field distribution, reads its
neighbours only. Nodes of one *colour* share no edge; updating all of them at once is therefore the
same as updating them one after another. A sweep over the network is one vectorised step a colour.

An assignment that breaks no cannot-link is a proper colouring too, with K states as colours:
:mod:`~cgmm.inference.feasible` begins with the colouring of this file, which asks for no number.

=====  =======================================================================
c      colour, 0 .. C - 1; C is at most one more than the largest degree
=====  =======================================================================
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from cgmm.network import Graph, simplify
from cgmm.numerics import BoolArray, IntArray

__all__ = ["ColourBlocks"]

# Breaks ties between nodes of equal degree: neighbours in a regular graph must not wait in line.
TIE_SEED = 0


class ColourBlocks(NamedTuple):
    """A network whose nodes are sorted by colour."""

    order: IntArray
    """(n_nodes,) ``order[r]`` is the node that stands at place r: colours ascend along it."""
    slices: tuple[slice, ...]
    """C slices of places, one a colour."""
    matrix: sparse.csr_array
    """(n_nodes, n_nodes) symmetric log-weights w between places; zeros are not stored."""


def by_colour(graph: Graph) -> ColourBlocks:
    """Colour a network, and sort its nodes so that each colour is one slice.

    Parameters
    ----------
    graph : Graph
        The network.

    Returns
    -------
    ColourBlocks
        The order, the slices and the adjacency matrix in that order.

    Examples
    --------
    >>> blocks = by_colour(Graph(3, np.array([[0, 1], [1, 2]]), np.array([1.0, 2.0])))
    >>> blocks.order, blocks.slices
    (array([0, 2, 1]), (slice(0, 2, None), slice(2, 3, None)))
    >>> blocks.matrix.toarray()
    array([[0., 0., 1.],
           [0., 0., 2.],
           [1., 2., 0.]])
    """
    matrix, colours = adjacency(graph), colour_nodes(graph)
    order = np.argsort(colours, kind="stable")
    bounds = np.cumsum([0, *np.bincount(colours)]).tolist()
    slices = tuple(map(slice, bounds[:-1], bounds[1:]))
    return ColourBlocks(order, slices, matrix[order][:, order])


def adjacency(graph: Graph) -> sparse.csr_array:
    """The symmetric matrix of log-weights; those of an edge that is given twice add up.

    Parameters
    ----------
    graph : Graph
        The network.

    Returns
    -------
    (n_nodes, n_nodes) sparse array
        w_ab at [a, b] and [b, a]; edges of weight zero are dropped.

    Raises
    ------
    ValueError
        If an edge or its weight is none, as :func:`cgmm.network.simplify` says.

    Examples
    --------
    >>> graph = Graph(3, np.array([[0, 1], [1, 0], [1, 2]]), np.array([1.0, 0.5, 0.0]))
    >>> adjacency(graph).toarray()
    array([[0. , 1.5, 0. ],
           [1.5, 0. , 0. ],
           [0. , 0. , 0. ]])
    """
    graph = simplify(graph)
    a, b = graph.edges.T
    ends = np.concatenate([a, b]), np.concatenate([b, a])
    shape = graph.n_nodes, graph.n_nodes
    values = np.tile(graph.weights, 2)
    return sparse.coo_array((values, ends), shape=shape, dtype=float).tocsr()


def hard_part(graph: Graph) -> Graph:
    """The cannot-links alone."""
    graph = simplify(graph)
    is_hard = graph.weights == -np.inf
    return graph._replace(edges=graph.edges[is_hard], weights=graph.weights[is_hard])


def edge_matrix(graph: Graph) -> sparse.csr_array:
    """The symmetric matrix of ones where there is an edge, whatever its weight."""
    return adjacency(graph._replace(weights=np.ones(len(graph.edges))))


def colour_nodes(graph: Graph) -> IntArray:
    """Give each node a colour that no neighbour has.

    A component that two colours can do gets two: it falls apart in its bipartite double cover. All
    others are coloured greedily, nodes of large degree first.

    Parameters
    ----------
    graph : Graph
        The network; edges of weight zero do not count.

    Returns
    -------
    (n_nodes,) int array
        Colours 0, 1, ..., the same at every call.

    Notes
    -----
    O(n_nodes + E) in all.

    Examples
    --------
    A triangle with a tail needs three colours; a path, two:

    >>> colour_nodes(Graph(4, np.array([[0, 1], [1, 2], [2, 0], [2, 3]]), np.ones(4)))
    array([2, 1, 0, 1])
    >>> colour_nodes(Graph(4, np.array([[0, 1], [1, 2], [2, 3]]), np.ones(3)))
    array([0, 1, 0, 1])
    """
    matrix = adjacency(graph)
    _, second, is_odd = two_colours(matrix)
    colours, odd = second.astype(np.intp), np.flatnonzero(is_odd)
    if len(odd):
        colours[odd] = _greedy(matrix[odd][:, odd])
    return colours


def two_colours(matrix: sparse.csr_array) -> tuple[IntArray, BoolArray, BoolArray]:
    """Component and colour, 0 or 1, of every node; and where no two colours will do.

    The double cover has two copies of every node, and joins each copy of a with the *other* copy of
    b. A component that two colours can do falls apart there, one part for each way to colour it.
    """
    cover = sparse.block_array([[None, matrix], [matrix, None]], format="csr")
    cover.data = np.ones(len(cover.data))
    _, component = connected_components(cover, directed=False)
    first, second = component.reshape(2, -1)
    _, label = np.unique(np.minimum(first, second), return_inverse=True)
    return label, first > second, first == second


def _greedy(matrix: sparse.csr_array) -> IntArray:
    """Nodes of large degree first, each the smallest colour that no neighbour has yet."""
    degrees = np.diff(matrix.indptr)
    ties = np.random.default_rng(TIE_SEED).permutation(len(degrees))
    near = [part.tolist() for part in np.split(matrix.indices, matrix.indptr[1:-1])]
    colours = [-1] * len(degrees)
    for v in np.lexsort((ties, -degrees)).tolist():
        taken = {colours[u] for u in near[v]}
        colours[v] = next(c for c in range(len(taken) + 1) if c not in taken)
    return np.array(colours)
