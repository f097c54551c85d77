"""The graph of the pairwise Markov network, and the errors and warnings about networks.

``SideInformation`` builds a ``Graph``, and every inference engine takes one. Chapter 7 explains the
network, which represents every kind of side information. A *node* j is a group of points that share
one assignment z_j ∈ {1..K}; it has K unary log-potentials. An *edge* e = (a, b) has one log-weight
w_e ∈ [-∞, ∞), which is added to the log-weight of every joint assignment with z_a = z_b ::

    log weight(z) = Σ_j unary[j, z_j] + Σ_e w_e [z_a = z_b],        Z = Σ_z weight(z)

w = 0 has no effect, w > 0 favours equal states, w < 0 penalises them, and w = -∞ forbids them. A
graph without edges is the plain mixture: every point is a node of its own, and Z is a product over
points. Engines raise errors with node indices; estimators translate the indices to points before
users see them.

=======  ==============================================================
j, a, b  nodes, e.g. edge 4 connects a = 0 and b = 2
K        number of states of a node, one for each component, e.g. 3
e, w_e   edge and its log-weight, e.g. w_4 = -1.5
Z        normaliser, the sum over all K**n_nodes assignments, e.g. 0.02
=======  ==============================================================
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple, Self

import numpy as np
from scipy.sparse import coo_array, csgraph, csr_array
from sklearn.exceptions import ConvergenceWarning

from cgmm.numerics import BoolArray, FloatArray, IntArray

# ------------------------------------------------------------ errors and warnings


# Messages list at most this number of nodes, so that they stay readable.
NAMED_NODES = 8


class NetworkError(ValueError):
    """Error for a network on which inference is impossible, with the nodes that cause it.

    Parameters
    ----------
    message : str
        Template, in which ``{nodes}`` is replaced by the list of all nodes, and ``{0}``, ``{1}``,
        ... by the node at that position of the list.
    nodes : (n,) array of int
        The nodes that cause the error.
    noun : str, default="node"
        Noun for a node, which the message puts before the numbers.

    Examples
    --------
    >>> print(NetworkError("{nodes} contradict each other.", np.array([3, 5])))
    nodes 3 and 5 contradict each other.
    >>> print(NetworkError("{0} leaves {1} no state.", np.array([3, 5]), "point"))
    point 3 leaves point 5 no state.
    """

    def __init__(self, message: str, nodes: IntArray, noun: str = "node"):
        super().__init__(message, nodes, noun)
        self.message, self.nodes, self.noun = message, np.asarray(nodes), noun

    def __str__(self) -> str:
        """Return the message with the nodes filled in."""
        message = self.message.replace("{nodes}", _list_nodes(self.nodes, self.noun))
        name_one = lambda match: _list_nodes(self.nodes[[int(match[1])]], self.noun)  # noqa: E731
        return re.sub(r"\{(\d+)\}", name_one, message)

    def renamed(self, names: IntArray, noun: str | None = None) -> Self:
        """Return the same error with ``names[j]`` in place of node j, and optionally a new noun."""
        return type(self)(self.message, names[self.nodes], noun or self.noun)


class TooCostlyError(NetworkError):
    """Error for a network whose exact inference is too costly; a joint assignment may still exist.

    Examples
    --------
    >>> print(TooCostlyError("{nodes} would take 8 TiB.", np.array([0, 1, 2])))
    nodes 0, 1 and 2 would take 8 TiB.
    """


class ApproximationWarning(ConvergenceWarning):
    """Warning that a part of a network was approximated, because exact inference was too costly.

    Examples
    --------
    >>> issubclass(ApproximationWarning, ConvergenceWarning)
    True
    """


def _list_nodes(nodes: IntArray, noun: str) -> str:
    """Return the list of nodes as text for a message, with at most ``NAMED_NODES`` numbers."""
    if len(nodes) == 1:
        return f"{noun} {nodes[0]}"
    if len(nodes) > NAMED_NODES:
        shown = ", ".join(map(str, nodes[:NAMED_NODES]))
        return f"{noun}s {shown}, ... ({len(nodes)} in all)"
    return f"{noun}s {', '.join(map(str, nodes[:-1]))} and {nodes[-1]}"


@contextmanager
def naming(names: IntArray, noun: str) -> Iterator[None]:
    """Context manager: re-raise a ``NetworkError`` with node indices translated to these names."""
    try:
        yield
    except NetworkError as error:
        raise (error if error.noun == noun else error.renamed(names, noun)) from None


class DoubtWarning(UserWarning):
    """Warning that a converged fit has suspicious relations or near-singular covariances.

    Examples
    --------
    >>> import warnings
    >>> warnings.simplefilter("ignore", DoubtWarning)  # if such fits are intended
    """


# ------------------------------------------------------------ the graph


class Graph(NamedTuple):
    """Nodes and weighted edges; the number of states is not stored, it follows from the unaries."""

    n_nodes: int
    """Number of nodes, which are numbered 0 .. n_nodes - 1."""
    edges: IntArray
    """(E, 2) int array: an unordered pair of different nodes per row."""
    weights: FloatArray
    """(E,) log-weights w_e in [-inf, inf), added if the states of the two nodes are equal."""
    names: IntArray | None = None
    """(n_nodes,) numbers that errors use to name the nodes; None means 0, 1, ..."""

    def named(self, nodes: IntArray) -> IntArray:
        """Return the numbers that error messages show for the given nodes."""
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
        The graph, without edges.

    Examples
    --------
    >>> edgeless(3).edges.shape
    (0, 2)
    """
    return Graph(n_nodes, np.empty((0, 2), dtype=np.intp), np.empty(0))


def require_edgeless(graph: Graph, engine: str) -> None:
    """Raise ``NetworkError`` for a graph with edges, for engines that treat nodes as independent.

    Parameters
    ----------
    graph : Graph
        The graph.
    engine : str
        Name of the engine, for the message.

    Raises
    ------
    NetworkError
        If an edge has a log-weight other than zero; the error names the first such edge.

    Examples
    --------
    >>> require_edgeless(Graph(2, np.array([[0, 1]]), np.array([0.0])), "independent")
    """
    found = np.flatnonzero(graph.weights)
    if len(found):
        raise NetworkError(
            f"the engine {engine!r} needs a network without edges, but {{nodes}} are connected "
            f"with log-weight {graph.weights[found[0]]:g} (edge {found[0]}; {len(found)} such "
            "edges). Choose an engine that accepts edges: inference='auto'.",
            graph.named(graph.edges[found[0]]),
        )


# ------------------------------------------------------------------ simplification


def simplify(graph: Graph) -> Graph:
    """Check a graph and simplify it: merge duplicate edges, and remove those of log-weight zero.

    Parameters
    ----------
    graph : Graph
        A graph that may contain a pair several times, in either order. The log-weights of equal
        pairs are added, so a single ``-inf`` makes the sum ``-inf``.

    Returns
    -------
    Graph
        The same network, with pairs (a, b) where a < b, in lexicographic order, without duplicates
        and without log-weights of zero. For a simplified graph the call takes little time, so every
        engine can make it.

    Raises
    ------
    ValueError
        If an edge connects a node to itself or to one that does not exist, or if a log-weight is
        NaN or ``+inf``; the error names the first such edge.

    Examples
    --------
    >>> simplify(Graph(3, np.array([[1, 0], [0, 1], [2, 1]]), np.array([1.0, 2.0, 0.0])))
    Graph(n_nodes=3, edges=array([[0, 1]]), weights=array([3.]), names=None)
    """
    edges, weights = _check_edges(graph)
    if _is_simple(graph.n_nodes, edges, weights):
        return graph._replace(edges=edges, weights=weights)
    a, b = np.sort(edges, axis=1).T
    keys, inverse = np.unique(a * graph.n_nodes + b, return_inverse=True)
    weights = np.bincount(inverse, weights, minlength=len(keys))
    keys, weights = keys[weights != 0], weights[weights != 0]
    edges = np.column_stack(np.divmod(keys, max(graph.n_nodes, 1)))
    return graph._replace(edges=edges, weights=weights)


def _is_simple(n_nodes: int, edges: IntArray, weights: FloatArray) -> bool:
    """Return True if a < b in every edge, the pairs are sorted and distinct, and no w is zero."""
    a, b = edges.T
    keys = a * n_nodes + b
    return bool((a < b).all() and (keys[1:] > keys[:-1]).all() and weights.all())


def _check_edges(graph: Graph) -> tuple[IntArray, FloatArray]:
    """Return edges (E, 2) and log-weights (E,) as arrays, or raise an error for an invalid edge."""
    edges = np.asarray(graph.edges)
    weights = np.asarray(graph.weights, dtype=float)
    if edges.shape != (len(weights), 2) or weights.ndim != 1:
        raise ValueError(
            f"edges have shape {edges.shape} and weights {weights.shape}; they must be (E, 2) "
            "and (E,): one pair and one log-weight per row."
        )
    if edges.size and not np.issubdtype(edges.dtype, np.integer):
        raise ValueError(f"edges are of type {edges.dtype}; nodes are named by integers.")
    edges = edges.astype(np.intp, copy=False)
    outside = ((edges < 0) | (edges >= graph.n_nodes)).any(axis=1)
    _raise_for_wrong_edges(outside, graph, f"names a node outside 0 .. {graph.n_nodes - 1}")
    _raise_for_wrong_edges(edges[:, 0] == edges[:, 1], graph, "connects a node to itself")
    _raise_for_wrong_edges(np.isnan(weights), graph, "has a weight that is not a number")
    remedy = "must-links are contracted into one node, never an edge of weight +inf"
    _raise_for_wrong_edges(weights == np.inf, graph, f"has weight +inf: {remedy}")
    return edges, weights


def _raise_for_wrong_edges(wrong: np.bool_ | BoolArray, graph: Graph, cause: str) -> None:
    """Raise ``ValueError`` with the cause, for the first edge that is marked as wrong."""
    if wrong.any():
        e = int(np.flatnonzero(wrong)[0])
        a, b = graph.edges[e]
        raise ValueError(
            f"edge {e}, between nodes {a} and {b} with log-weight {graph.weights[e]}, {cause} "
            f"({int(wrong.sum())} such edges). Remove or correct it."
        )


def are_disjoint_pairs(graph: Graph) -> bool:
    """Return True if no node has more than one edge, so every component is a node or a pair.

    Parameters
    ----------
    graph : Graph
        A simplified graph.

    Returns
    -------
    bool
        True if the relations do not overlap [lu2007, sect. 3.1].

    Examples
    --------
    >>> are_disjoint_pairs(Graph(4, np.array([[0, 3], [1, 2]]), np.ones(2)))
    True
    """
    return len(np.unique(graph.edges)) == graph.edges.size


def log_weight(graph: Graph, unary: FloatArray, z: IntArray) -> float:
    """Return the log-weight of a joint assignment: its unaries plus w of edges with equal ends.

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
        ``Σ_j unary[j, z_j] + Σ_e w_e [z_a = z_b]`` in nats; ``-inf`` for a forbidden assignment.

    Examples
    --------
    >>> graph = Graph(2, np.array([[0, 1]]), np.array([0.5]))
    >>> log_weight(graph, np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1, 1]))
    6.5
    """
    is_equal = z[graph.edges[:, 0]] == z[graph.edges[:, 1]]
    return float(unary[np.arange(len(z)), z].sum() + graph.weights[is_equal].sum())


# ---------------------------------------------------------------------- structure


def connected_components(graph: Graph) -> IntArray:
    """Return the index of the connected component of every node.

    Parameters
    ----------
    graph : Graph
        The graph.

    Returns
    -------
    (n_nodes,) array of int
        Index of each node's component; components are numbered in the order of their first nodes.

    Examples
    --------
    >>> connected_components(Graph(4, np.array([[0, 2]]), np.ones(1)))
    array([0, 1, 0, 2], dtype=int32)
    """
    _, labels = csgraph.connected_components(_to_matrix(graph, np.ones(len(graph.edges))), False)
    return labels


def induced_subgraph(graph: Graph, nodes: IntArray) -> Graph:
    """Return the subgraph of the given nodes and of the edges between them.

    Parameters
    ----------
    graph : Graph
        Any graph.
    nodes : (n,) int array
        Distinct nodes. They are renumbered 0, 1, ... in this order; errors use their old names.

    Returns
    -------
    Graph
        The subgraph, with n nodes.

    Examples
    --------
    >>> path = Graph(4, np.array([[0, 1], [1, 2], [2, 3]]), np.array([1.0, 2.0, 3.0]))
    >>> induced_subgraph(path, np.array([3, 2, 0]))
    Graph(n_nodes=3, edges=array([[1, 0]]), weights=array([3.]), names=array([3, 2, 0]))
    """
    new_index = np.full(graph.n_nodes, -1)
    new_index[nodes] = np.arange(len(nodes))
    edges = new_index[graph.edges]
    inside = (edges >= 0).all(axis=1)
    return Graph(len(nodes), edges[inside], graph.weights[inside], graph.named(nodes))


def spanning_forest(graph: Graph) -> Graph:
    """Return the spanning forest whose edges have the largest absolute log-weights.

    All edges that would close a cycle are dropped. This approximation makes exact inference cheap.
    Cannot-links have infinite log-weight, so they are kept in preference to other edges.

    Parameters
    ----------
    graph : Graph
        Any graph.

    Returns
    -------
    Graph
        The forest, simplified. Between edges of equal log-weight, the earlier one is kept.

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
    kept = csgraph.minimum_spanning_tree(_to_matrix(graph, rank)).data
    kept = np.sort(strongest_first[kept.astype(np.intp) - 1])
    return Graph(graph.n_nodes, graph.edges[kept], graph.weights[kept])


def adjacency(graph: Graph) -> csr_array:
    """Return the symmetric matrix of log-weights; those of duplicate edges are added.

    Parameters
    ----------
    graph : Graph
        The network.

    Returns
    -------
    (n_nodes, n_nodes) sparse array
        w_ab at [a, b] and [b, a]; edges of log-weight zero are dropped.

    Raises
    ------
    ValueError
        If :func:`simplify` rejects an edge or its log-weight.

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


def keep_cannot_links(graph: Graph) -> Graph:
    """Return the simplified graph without its edges of finite log-weight."""
    graph = simplify(graph)
    is_hard = graph.weights == -np.inf
    return graph._replace(edges=graph.edges[is_hard], weights=graph.weights[is_hard])


def edge_matrix(graph: Graph) -> csr_array:
    """Return the symmetric adjacency matrix, with a one for each edge whatever its log-weight."""
    return adjacency(graph._replace(weights=np.ones(len(graph.edges))))


def _to_matrix(graph: Graph, values: FloatArray) -> csr_array:
    """Return a sparse (n_nodes, n_nodes) matrix with a value for each edge and 32-bit indices.

    SciPy up to version 1.15 computes spanning trees only for matrices with 32-bit indices.
    """
    places, shape = tuple(graph.edges.T.astype(np.int32)), (graph.n_nodes, graph.n_nodes)
    return coo_array((values, places), shape=shape).tocsr()
