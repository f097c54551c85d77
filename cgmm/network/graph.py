"""The pairwise Markov network over assignments: its graph, checked and taken apart. Chapter 7.

Every kind of side information in this package becomes one network. A *node* j is a group of points
that share one assignment z_j ∈ {1..K}; it has K unary log-potentials. An *edge* e = (a, b) carries
one log-weight w_e ∈ [-∞, ∞), added to the log-weight of every joint assignment with z_a = z_b ::

    log weight(z) = Σ_j unary[j, z_j] + Σ_e w_e [z_a = z_b],        Z = Σ_z weight(z)

w = 0 says nothing, w > 0 prefers the two together, w = -∞ forbids it. A graph without edges is the
plain mixture: every point is a node of its own, and Z is a product over points.

=======  ==============================================================
j, a, b  nodes; K the number of states of a node, one a component
e, w_e   edge and its log-weight
Z        normaliser, the sum over all K**n_nodes assignments
=======  ==============================================================
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array, csgraph, csr_array

from cgmm.network.errors import NetworkError
from cgmm.numerics import BoolArray, FloatArray, IntArray


class Graph(NamedTuple):
    """Nodes and weighted edges; the states of the nodes are given by the unaries later."""

    n_nodes: int
    """Number of nodes, named 0 .. n_nodes - 1."""
    edges: IntArray
    """(E, 2) int: one unordered pair of different nodes a row."""
    weights: FloatArray
    """(E,) w_e in [-inf, inf): the log-weight of the pair's being equal."""
    names: IntArray | None = None
    """(n_nodes,) what errors call the nodes; None: 0, 1, ..."""

    def named(self, nodes: IntArray) -> IntArray:
        """Return the names of some of the nodes, as errors use them."""
        return nodes if self.names is None else self.names[nodes]


def edgeless(n_nodes: int) -> Graph:
    """Return the graph of the plain mixture: nodes without edges.

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
    NetworkError
        If an edge has a weight other than zero; the first one is named.

    Examples
    --------
    >>> require_edgeless(Graph(2, np.array([[0, 1]]), np.array([0.0])), "independent")
    """
    tied = np.flatnonzero(graph.weights)
    if len(tied):
        raise NetworkError(
            f"the engine {engine!r} takes each for independent of the others, but {{nodes}} are "
            f"tied with log-weight {graph.weights[tied[0]]:g} (edge {tied[0]}; {len(tied)} such "
            "edges). Choose an engine that honours edges: inference='auto'.",
            graph.named(graph.edges[tied[0]]),
        )


# ------------------------------------------------------------------ the simplest form


def simplify(graph: Graph) -> Graph:
    """Check a graph and bring it into its simplest form: at most one edge a pair, none idle.

    Parameters
    ----------
    graph : Graph
        May name a pair several times, in either order: the log-weights of its edges add, and
        ``-inf`` wins.

    Returns
    -------
    Graph
        The same network: pairs (a, b) with a < b in lexicographic order, none twice, none of
        weight zero. A graph of this form is returned at once, so that every engine can ask for it.

    Raises
    ------
    ValueError
        If an edge ties a node to itself or to one that does not exist, or if a weight is NaN or
        ``+inf``; the first such edge is named.

    Examples
    --------
    >>> simplify(Graph(3, np.array([[1, 0], [0, 1], [2, 1]]), np.array([1.0, 2.0, 0.0])))
    Graph(n_nodes=3, edges=array([[0, 1]]), weights=array([3.]), names=None)
    """
    edges, weights = _checked_edges(graph)
    if _is_simple(graph.n_nodes, edges, weights):
        return graph._replace(edges=edges, weights=weights)
    a, b = np.sort(edges, axis=1).T
    keys, inverse = np.unique(a * graph.n_nodes + b, return_inverse=True)
    weights = np.bincount(inverse, weights, minlength=len(keys))
    keys, weights = keys[weights != 0], weights[weights != 0]
    edges = np.column_stack(np.divmod(keys, max(graph.n_nodes, 1)))
    return graph._replace(edges=edges, weights=weights)


def _is_simple(n_nodes: int, edges: IntArray, weights: FloatArray) -> bool:
    """Return whether a < b in all edges, pairs strictly ascend, and no weight is zero."""
    a, b = edges.T
    keys = a * n_nodes + b
    return bool((a < b).all() and (keys[1:] > keys[:-1]).all() and weights.all())


def _checked_edges(graph: Graph) -> tuple[IntArray, FloatArray]:
    """Return edges (E, 2) and weights (E,), or raise an error that names an edge."""
    edges = np.asarray(graph.edges)
    weights = np.asarray(graph.weights, dtype=float)
    if edges.shape != (len(weights), 2) or weights.ndim != 1:
        raise ValueError(
            f"edges have shape {edges.shape} and weights {weights.shape}; they must be (E, 2) "
            "and (E,): one pair and one log-weight a row."
        )
    if edges.size and not np.issubdtype(edges.dtype, np.integer):
        raise ValueError(f"edges are of type {edges.dtype}; nodes are named by integers.")
    edges = edges.astype(np.intp, copy=False)
    outside = ((edges < 0) | (edges >= graph.n_nodes)).any(axis=1)
    _refuse_edges(outside, graph, f"names a node outside 0 .. {graph.n_nodes - 1}")
    _refuse_edges(edges[:, 0] == edges[:, 1], graph, "ties a node to itself")
    _refuse_edges(np.isnan(weights), graph, "has a weight that is not a number")
    remedy = "must-links are contracted into one node, never an edge of weight +inf"
    _refuse_edges(weights == np.inf, graph, f"has weight +inf: {remedy}")
    return edges, weights


def _refuse_edges(wrong: np.bool_ | BoolArray, graph: Graph, cause: str) -> None:
    """Raise for the first edge that is wrong."""
    if wrong.any():
        e = int(np.flatnonzero(wrong)[0])
        a, b = graph.edges[e]
        raise ValueError(
            f"edge {e}, between nodes {a} and {b} with log-weight {graph.weights[e]}, {cause} "
            f"({int(wrong.sum())} such edges). Remove or correct it."
        )


def are_disjoint_pairs(graph: Graph) -> bool:
    """Return whether no node has more than one edge: every component is a pair or a node.

    Parameters
    ----------
    graph : Graph
        Simplified.

    Returns
    -------
    bool
        [lu2007, sect. 3.1]: the relations do not overlap.

    Examples
    --------
    >>> are_disjoint_pairs(Graph(4, np.array([[0, 3], [1, 2]]), np.ones(2)))
    True
    """
    return len(np.unique(graph.edges)) == graph.edges.size


def log_weight(graph: Graph, unary: FloatArray, z: IntArray) -> float:
    """Return the log-weight of one joint assignment: its unaries, and weights of edges that act.

    Parameters
    ----------
    graph : Graph
        Any graph.
    unary : (n_nodes, K) array
        Log-potentials.
    z : (n_nodes,) int array
        A state for each node.

    Returns
    -------
    float
        ``Σ_j unary[j, z_j] + Σ_e w_e [z_a = z_b]`` in nats; ``-inf`` if it is forbidden.

    Examples
    --------
    >>> graph = Graph(2, np.array([[0, 1]]), np.array([0.5]))
    >>> log_weight(graph, np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1, 1]))
    6.5
    """
    acts = z[graph.edges[:, 0]] == z[graph.edges[:, 1]]
    return float(unary[np.arange(len(z)), z].sum() + graph.weights[acts].sum())


# ---------------------------------------------------------------------- structure


def connected_components(graph: Graph) -> IntArray:
    """Return the number of the connected component of every node.

    Parameters
    ----------
    graph : Graph
        The graph.

    Returns
    -------
    (n_nodes,) array of int
        Numbered from 0 in the order of their first nodes.

    Examples
    --------
    >>> connected_components(Graph(4, np.array([[0, 2]]), np.ones(1)))
    array([0, 1, 0, 2], dtype=int32)
    """
    _, labels = csgraph.connected_components(_matrix(graph, np.ones(len(graph.edges))), False)
    return labels


def induced_subgraph(graph: Graph, nodes: IntArray) -> Graph:
    """Some of the nodes, and the edges between them.

    Parameters
    ----------
    graph : Graph
        Any graph.
    nodes : (n,) int array
        Different nodes; they become 0, 1, ... in the order given, and keep the names that errors
        call them by.

    Returns
    -------
    Graph
        Of n nodes.

    Examples
    --------
    >>> path = Graph(4, np.array([[0, 1], [1, 2], [2, 3]]), np.array([1.0, 2.0, 3.0]))
    >>> induced_subgraph(path, np.array([3, 2, 0]))
    Graph(n_nodes=3, edges=array([[1, 0]]), weights=array([3.]), names=array([3, 2, 0]))
    """
    place = np.full(graph.n_nodes, -1)
    place[nodes] = np.arange(len(nodes))
    edges = place[graph.edges]
    inside = (edges >= 0).all(axis=1)
    return Graph(len(nodes), edges[inside], graph.weights[inside], graph.named(nodes))


def spanning_forest(graph: Graph) -> Graph:
    """Keep of every component a tree whose log-weights are the largest in absolute value.

    An approximation that makes exact inference cheap: edges that would close a cycle are dropped.
    Cannot-links, whose weight is infinite, are kept before all others.

    Parameters
    ----------
    graph : Graph
        Any graph.

    Returns
    -------
    Graph
        Simplified, and without cycles; ties are broken by the order of the pairs.

    Notes
    -----
    [shental2003, sect. 2.2] replaces the graph of cannot-links by its spanning tree.

    Examples
    --------
    >>> cycle = Graph(3, np.array([[0, 1], [1, 2], [0, 2]]), np.array([-np.inf, 0.5, -2.0]))
    >>> spanning_forest(cycle).edges
    array([[0, 1],
           [0, 2]])
    """
    graph = simplify(graph)
    strongest_first = np.argsort(-np.abs(graph.weights), kind="stable")
    rank = np.empty(len(graph.edges))
    rank[strongest_first] = np.arange(1, len(graph.edges) + 1)
    kept = csgraph.minimum_spanning_tree(_matrix(graph, rank)).data
    kept = np.sort(strongest_first[kept.astype(np.intp) - 1])
    return Graph(graph.n_nodes, graph.edges[kept], graph.weights[kept])


def adjacency(graph: Graph) -> csr_array:
    """Return the symmetric matrix of log-weights; those of an edge that is given twice add up.

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
        If :func:`simplify` refuses an edge or its weight.

    Examples
    --------
    >>> graph = Graph(3, np.array([[0, 1], [1, 0], [1, 2]]), np.array([1.0, 0.5, 0.0]))
    >>> adjacency(graph).toarray()
    array([[0. , 1.5, 0. ],
           [1.5, 0. , 0. ],
           [0. , 0. , 0. ]])
    """
    graph = simplify(graph)
    ends = np.concatenate([graph.edges, graph.edges[:, ::-1]]).T
    shape = graph.n_nodes, graph.n_nodes
    return coo_array((np.tile(graph.weights, 2), tuple(ends)), shape=shape, dtype=float).tocsr()


def hard_part(graph: Graph) -> Graph:
    """Return the graph of the cannot-links only, simplified."""
    graph = simplify(graph)
    is_hard = graph.weights == -np.inf
    return graph._replace(edges=graph.edges[is_hard], weights=graph.weights[is_hard])


def edge_matrix(graph: Graph) -> csr_array:
    """Return the symmetric matrix with ones where there is an edge, whatever its weight."""
    return adjacency(graph._replace(weights=np.ones(len(graph.edges))))


def _matrix(graph: Graph, values: FloatArray) -> csr_array:
    """Return a sparse (n_nodes, n_nodes) matrix with a value for each edge and 32-bit indices.

    Up to SciPy 1.15 spanning trees take no others.
    """
    places, shape = tuple(graph.edges.T.astype(np.int32)), (graph.n_nodes, graph.n_nodes)
    return coo_array((values, places), shape=shape).tocsr()
