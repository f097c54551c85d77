"""The graph of the pairwise Markov network, and the errors and warnings about networks.

``SideInformation`` builds a ``Graph``, and every inference engine takes one. Chapter 7 explains the
network. Every kind of side information in this package becomes one. A *node* j is a group of points
that share one assignment z_j ∈ {1..K}; it has K unary log-potentials. An *edge* e = (a, b) carries
one log-weight w_e ∈ [-∞, ∞), added to the log-weight of every joint assignment with z_a = z_b ::

    log weight(z) = Σ_j unary[j, z_j] + Σ_e w_e [z_a = z_b],        Z = Σ_z weight(z)

w = 0 has no effect, w > 0 favours equal states, w = -∞ forbids them. A graph without edges is the
plain mixture: every point is a node of its own, and Z is a product over points. Engines raise
errors with node indices; estimators translate the indices to points before users see them.

=======  ==============================================================
j, a, b  nodes, e.g. edge 4 joins a = 0 and b = 2
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


# Longer lists of nodes are cut after this number, to keep messages readable.
NAMED_NODES = 8


class NetworkError(ValueError):
    """Error for a network on which inference is impossible, with the nodes that cause it.

    Parameters
    ----------
    message : str
        Template: ``{nodes}`` is replaced by the list of all nodes, ``{0}``, ``{1}``, ... by one.
    nodes : (n,) array of int
        The nodes that cause the error.
    noun : str, default="node"
        Noun that the message puts before the numbers.

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
        message = self.message.replace("{nodes}", _name_nodes(self.nodes, self.noun))
        one = lambda place: _name_nodes(self.nodes[[int(place[1])]], self.noun)  # noqa: E731
        return re.sub(r"\{(\d+)\}", one, message)

    def renamed(self, names: IntArray, noun: str | None = None) -> Self:
        """Return the same error with node j replaced by ``names[j]``, and optionally a new noun."""
        return type(self)(self.message, names[self.nodes], noun or self.noun)


class TooCostlyError(NetworkError):
    """Error for a network that is too costly for an engine; a solution may still exist.

    Examples
    --------
    >>> print(TooCostlyError("{nodes} would take 8 TiB.", np.array([0, 1, 2])))
    nodes 0, 1 and 2 would take 8 TiB.
    """


class ApproximationWarning(ConvergenceWarning):
    """Warning that exact inference was too costly for some part, so its result is approximate.

    Examples
    --------
    >>> issubclass(ApproximationWarning, ConvergenceWarning)
    True
    """


def _name_nodes(nodes: IntArray, noun: str) -> str:
    """Return the list of nodes for a message, cut after ``NAMED_NODES``."""
    if len(nodes) == 1:
        return f"{noun} {nodes[0]}"
    if len(nodes) > NAMED_NODES:
        shown = ", ".join(map(str, nodes[:NAMED_NODES]))
        return f"{noun}s {shown}, ... ({len(nodes)} in all)"
    return f"{noun}s {', '.join(map(str, nodes[:-1]))} and {nodes[-1]}"


@contextmanager
def naming(names: IntArray, noun: str) -> Iterator[None]:
    """Re-raise a ``NetworkError`` with node indices translated to these names."""
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
    """Nodes and weighted edges; the unaries determine the number of states later."""

    n_nodes: int
    """Number of nodes, named 0 .. n_nodes - 1."""
    edges: IntArray
    """(E, 2) int: one unordered pair of different nodes per row."""
    weights: FloatArray
    """(E,) w_e in [-inf, inf): log-weight added if the states of the two nodes are equal."""
    names: IntArray | None = None
    """(n_nodes,) numbers by which errors name the nodes; None: 0, 1, ..."""

    def named(self, nodes: IntArray) -> IntArray:
        """Return the names of the given nodes, for error messages."""
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
            f"the engine {engine!r} takes each for independent of the others, but {{nodes}} are "
            f"tied with log-weight {graph.weights[found[0]]:g} (edge {found[0]}; {len(found)} such "
            "edges). Choose an engine that takes edges: inference='auto'.",
            graph.named(graph.edges[found[0]]),
        )


# ------------------------------------------------------------------ the simplest form


def simplify(graph: Graph) -> Graph:
    """Check a graph and return its simplest form: one edge per pair, none of log-weight zero.

    Parameters
    ----------
    graph : Graph
        May contain a pair several times, in either order. Log-weights of equal pairs are added, so
        ``-inf`` prevails.

    Returns
    -------
    Graph
        The same network: pairs (a, b) with a < b in lexicographic order, without duplicates and
        without log-weights of zero. A graph that has this form already is returned quickly, so
        every engine can call this function.

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
    """Return True if a < b in all edges, pairs strictly ascend, and no log-weight is zero."""
    a, b = edges.T
    keys = a * n_nodes + b
    return bool((a < b).all() and (keys[1:] > keys[:-1]).all() and weights.all())


def _checked_edges(graph: Graph) -> tuple[IntArray, FloatArray]:
    """Return edges (E, 2) and log-weights (E,), or raise an error that names an edge."""
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
    """Raise ``ValueError`` for the first edge that is marked as wrong."""
    if wrong.any():
        e = int(np.flatnonzero(wrong)[0])
        a, b = graph.edges[e]
        raise ValueError(
            f"edge {e}, between nodes {a} and {b} with log-weight {graph.weights[e]}, {cause} "
            f"({int(wrong.sum())} such edges). Remove or correct it."
        )


def are_disjoint_pairs(graph: Graph) -> bool:
    """Return True if no node has more than one edge, so every component has one or two nodes.

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
    """Return the log-weight of a joint assignment: unaries plus edges with equal states.

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
        Numbered from 0 in the order of their first nodes.

    Examples
    --------
    >>> connected_components(Graph(4, np.array([[0, 2]]), np.ones(1)))
    array([0, 1, 0, 2], dtype=int32)
    """
    _, labels = csgraph.connected_components(_matrix(graph, np.ones(len(graph.edges))), False)
    return labels


def induced_subgraph(graph: Graph, nodes: IntArray) -> Graph:
    """Return the subgraph of the given nodes and of the edges between them.

    Parameters
    ----------
    graph : Graph
        Any graph.
    nodes : (n,) int array
        Distinct nodes. They become 0, 1, ... in the order given, and keep their names in errors.

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
    place = np.full(graph.n_nodes, -1)
    place[nodes] = np.arange(len(nodes))
    edges = place[graph.edges]
    inside = (edges >= 0).all(axis=1)
    return Graph(len(nodes), edges[inside], graph.weights[inside], graph.named(nodes))


def spanning_forest(graph: Graph) -> Graph:
    """Return the spanning forest with the largest absolute log-weights.

    This approximation makes exact inference cheap: edges that would close a cycle are dropped.
    Cannot-links have infinite log-weight and are therefore kept first.

    Parameters
    ----------
    graph : Graph
        Any graph.

    Returns
    -------
    Graph
        Simplified and without cycles. Of equal log-weights the earlier pair is kept.

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
    """Return the symmetric matrix of log-weights; duplicate edges are added up.

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


def hard_part(graph: Graph) -> Graph:
    """Return the graph of the cannot-links only, simplified."""
    graph = simplify(graph)
    is_hard = graph.weights == -np.inf
    return graph._replace(edges=graph.edges[is_hard], weights=graph.weights[is_hard])


def edge_matrix(graph: Graph) -> csr_array:
    """Return the symmetric matrix with a one for each edge, whatever its log-weight."""
    return adjacency(graph._replace(weights=np.ones(len(graph.edges))))


def _matrix(graph: Graph, values: FloatArray) -> csr_array:
    """Return a sparse (n_nodes, n_nodes) matrix with a value for each edge and 32-bit indices.

    The spanning trees of SciPy up to 1.15 accept only 32-bit indices.
    """
    places, shape = tuple(graph.edges.T.astype(np.int32)), (graph.n_nodes, graph.n_nodes)
    return coo_array((values, places), shape=shape).tocsr()
