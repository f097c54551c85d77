"""The pairwise Markov network over assignments: its graph, and what inference returns.

Every kind of side information in this package becomes one network. A *node* j is a group of points
that share one assignment z_j ∈ {1..K}; it has K unary log-potentials. An *edge* e = (a, b) carries
one log-weight w_e ∈ [-∞, ∞), added to the log-weight of every joint assignment with z_a = z_b ::

    log weight(z) = Σ_j unary[j, z_j] + Σ_e w_e [z_a = z_b],        Z = Σ_z weight(z)

w = 0 says nothing, w > 0 prefers the two together, w = -∞ forbids it. A graph without edges is the
plain mixture: every point is a node of its own, and Z is a product over points.

An edge says only whether two assignments are equal, so what its one end tells the other needs no
K × K table: :func:`edge_message` takes O(K).

=======  ==============================================================
j        node; K its number of states, one a component
e, w_e   edge and its log-weight
Z        normaliser, the sum over all K**n_nodes assignments
h        log-values of the states of a node, a row each
=======  ==============================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, cast

import numpy as np
from scipy.sparse import coo_array, csgraph, csr_array

from cgmm.numerics import BoolArray, FloatArray, IntArray

__all__ = [
    "Engine",
    "ExactInfer",
    "Graph",
    "Infer",
    "Marginals",
    "NetworkError",
    "are_disjoint_pairs",
    "check_unary",
    "components",
    "edge_message",
    "edgeless",
    "forbidden_clique",
    "require_edgeless",
    "simplify",
    "spanning_forest",
    "with_most_probable",
]

NAMED_NODES = 8


class Graph(NamedTuple):
    """Nodes and weighted edges; the states of the nodes are given by the unaries later."""

    n_nodes: int
    """Number of nodes, named 0 .. n_nodes - 1."""
    edges: IntArray
    """(E, 2) int: one unordered pair of different nodes a row."""
    weights: FloatArray
    """(E,) w_e in [-inf, inf): the log-weight of the pair's being equal."""


class Marginals(NamedTuple):
    """What an engine says about a network."""

    nodes: FloatArray
    """(n_nodes, K) p(z_j = k), rows summing to one."""
    log_z: float
    """log Z in nats; NaN where an engine has none."""
    exact: bool
    """Whether both are exact up to rounding."""


Infer = Callable[[FloatArray], Marginals]
"""From the unary log-potentials (n_nodes, K) to the marginals.

Where an engine can tell the most probable *joint* assignment, the function has an attribute
``most_probable``, from the same unaries to (n_nodes,) int; it breaks no hard relation. Of equally
probable assignments it returns one, preferring low labels as far as its order of work allows.
"""


class ExactInfer(Protocol):
    """An :data:`Infer` that can also tell the most probable joint assignment, as exact ones do."""

    most_probable: Callable[[FloatArray], IntArray]

    def __call__(self, unary: FloatArray, /) -> Marginals:
        """From the unary log-potentials (n_nodes, K) to the marginals."""
        ...


Engine = Callable[[Graph], Infer]
"""Works on the structure once and returns a function for many E-steps."""


def with_most_probable(infer: Infer, most_probable: Callable[[FloatArray], IntArray]) -> ExactInfer:
    """Give a function of exact inference its attribute ``most_probable``.

    Parameters
    ----------
    infer : callable
        From unaries to marginals.
    most_probable : callable
        From the same unaries to the most probable joint assignment.

    Returns
    -------
    callable
        ``infer`` itself.

    Examples
    --------
    >>> def infer(unary):
    ...     return Marginals(unary, 0.0, exact=True)
    >>> with_most_probable(infer, lambda unary: unary.argmax(axis=1)) is infer
    True
    >>> infer.most_probable(np.array([[1.0, 2.0]]))
    array([1])
    """
    exact = cast("ExactInfer", infer)
    exact.most_probable = most_probable
    return exact


class NetworkError(ValueError):
    """A network that an engine must refuse, and the nodes to blame.

    Parameters
    ----------
    message : str
        With ``{nodes}`` where the nodes are to be named.
    nodes : (n,) array of int
        The offenders.
    noun : str, default="node"
        What they are called.

    Examples
    --------
    >>> print(NetworkError("{nodes} contradict each other.", np.array([3, 5])))
    nodes 3 and 5 contradict each other.
    """

    def __init__(self, message: str, nodes: IntArray, noun: str = "node"):
        super().__init__(message, nodes, noun)
        self.message, self.nodes, self.noun = message, np.asarray(nodes), noun

    def __str__(self) -> str:
        """Put the names into the message."""
        return self.message.replace("{nodes}", _name_nodes(self.nodes, self.noun))

    def renamed(self, names: IntArray, noun: str | None = None) -> NetworkError:
        """Return the same error where node j is called ``names[j]``, and nodes perhaps points."""
        return NetworkError(self.message, names[self.nodes], noun or self.noun)


def _name_nodes(nodes: IntArray, noun: str) -> str:
    """Name a few of them, and say how many there are."""
    if len(nodes) == 1:
        return f"{noun} {nodes[0]}"
    if len(nodes) > NAMED_NODES:
        shown = ", ".join(map(str, nodes[:NAMED_NODES]))
        return f"{noun}s {shown}, ... ({len(nodes)} in all)"
    return f"{noun}s {', '.join(map(str, nodes[:-1]))} and {nodes[-1]}"


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
            "edges). Choose an engine that honours edges.",
            graph.edges[tied[0]],
        )


# ------------------------------------------------------------------------- checks


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
        weight zero.

    Raises
    ------
    ValueError
        If an edge ties a node to itself or to one that does not exist, or if a weight is NaN or
        ``+inf``; the first such edge is named.

    Examples
    --------
    >>> simplify(Graph(3, np.array([[1, 0], [0, 1], [2, 1]]), np.array([1.0, 2.0, 0.0])))
    Graph(n_nodes=3, edges=array([[0, 1]]), weights=array([3.]))
    """
    edges, weights = _checked_edges(graph)
    a, b = np.sort(edges, axis=1).T
    keys, inverse = np.unique(a * graph.n_nodes + b, return_inverse=True)
    # Of nothing, bincount makes integers.
    weights = np.bincount(inverse, weights, minlength=len(keys)).astype(float, copy=False)
    keys, weights = keys[weights != 0], weights[weights != 0]
    return Graph(graph.n_nodes, np.column_stack(np.divmod(keys, max(graph.n_nodes, 1))), weights)


def _checked_edges(graph: Graph) -> tuple[IntArray, FloatArray]:
    """Edges as (E, 2) integers and weights as (E,) floats, or an error that names an edge."""
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


def check_unary(graph: Graph, unary: FloatArray) -> FloatArray:
    """Unary log-potentials as floats, if they fit the graph and leave every node a state.

    Parameters
    ----------
    graph : Graph
        The graph.
    unary : (n_nodes, K) array
        Natural logarithms; ``-inf`` means impossible.

    Returns
    -------
    (n_nodes, K) array
        The same numbers.

    Raises
    ------
    NetworkError
        If a node has NaN, ``+inf`` or only ``-inf``; it is named.
    ValueError
        If the shape does not fit.

    Examples
    --------
    >>> check_unary(edgeless(1), np.array([[0, -1]]))
    array([[ 0., -1.]])
    """
    unary = np.asarray(unary, dtype=float)
    if unary.ndim != 2 or len(unary) != graph.n_nodes or unary.shape[1] == 0:
        raise ValueError(
            f"unary has shape {unary.shape}; it must be (n_nodes, K) = ({graph.n_nodes}, K) with "
            "at least one state."
        )
    top = unary.max(axis=1)
    if not np.isfinite(top).all():
        node = np.flatnonzero(~np.isfinite(top))[:1]
        cause = "only log-potentials of -inf, so no state is possible"
        if top[node[0]] != -np.inf:
            cause = f"a log-potential of {top[node[0]]}; log-potentials must be below +inf"
        remedy = "rescale the data or revise the evidence"
        raise NetworkError(f"{{nodes}} has {cause}: {remedy}.", node)
    return unary


def are_disjoint_pairs(graph: Graph) -> bool:
    """Whether no node has more than one edge, so that every component is a pair or a node.

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


# ---------------------------------------------------------------------- structure


def components(graph: Graph) -> IntArray:
    """The connected component of every node.

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
    >>> components(Graph(4, np.array([[0, 2]]), np.ones(1)))
    array([0, 1, 0, 2], dtype=int32)
    """
    _, labels = csgraph.connected_components(_matrix(graph, np.ones(len(graph.edges))), False)
    return labels


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


def forbidden_clique(graph: Graph, size: int, *, max_steps: int = 100_000) -> IntArray | None:
    """Nodes of which every two are forbidden to be equal: with fewer states than nodes, no way out.

    Parameters
    ----------
    graph : Graph
        Any graph; only its edges of weight -inf count.
    size : int
        How many nodes, at least two.
    max_steps : int, default=100000
        Extensions of partial cliques that are tried, since the problem is NP-complete.

    Returns
    -------
    (size,) int array or None
        Such nodes, ascending; None if there are none, or none was found in as many steps.

    Notes
    -----
    A member has at least ``size - 1`` forbidden neighbours, who have as many in turn: all others
    are stripped first, which as a rule leaves nothing to search.

    Examples
    --------
    >>> triangle = Graph(5, np.array([[0, 1], [1, 4], [0, 4], [2, 4]]), np.full(4, -np.inf))
    >>> forbidden_clique(triangle, 3)
    array([0, 1, 4])
    >>> forbidden_clique(triangle, 4) is None
    True
    """
    edges = _core(simplify(graph), size - 1)
    later: dict[int, set[int]] = {int(node): set() for node in np.unique(edges)}
    for a, b in edges.tolist():
        later[a].add(b)
    steps = iter(range(max_steps))
    stack: list[tuple[tuple[int, ...], set[int]]]
    stack = [((node,), neighbours) for node, neighbours in sorted(later.items(), reverse=True)]
    while stack and next(steps, None) is not None:
        clique, common = stack.pop()
        if len(clique) == size:
            return np.array(clique)
        if len(clique) + len(common) >= size:
            stack += [((*clique, n), common & later[n]) for n in sorted(common, reverse=True)]
    return None


def _core(graph: Graph, degree: int) -> IntArray:
    """(E, 2) forbidden edges whose ends keep at least that many, when all others are removed."""
    edges = graph.edges[graph.weights == -np.inf]
    while len(edges):
        few = np.bincount(edges.ravel(), minlength=graph.n_nodes) < degree
        stays = ~few[edges].any(axis=1)
        if stays.all():
            break
        edges = edges[stays]
    return edges


def _matrix(graph: Graph, values: FloatArray) -> csr_array:
    """Sparse (n_nodes, n_nodes) matrix with a value for each edge."""
    return coo_array((values, tuple(graph.edges.T)), shape=(graph.n_nodes, graph.n_nodes)).tocsr()


# ----------------------------------------------------------------------- messages


def edge_message(h: FloatArray, weights: FloatArray, *, largest: bool = False) -> FloatArray:
    """What one end of each edge tells the other, in O(K).

    Parameters
    ----------
    h : (E, K) array
        Log-values of the states of the one end.
    weights : (E,) array
        Log-weights in [-inf, inf).
    largest : bool, default=False
        The largest term instead of the sum: for the most probable assignment.

    Returns
    -------
    (E, K) array
        ``log Σ_l exp(h[e, l] + w_e [k = l])`` for every state k of the other end.

    Notes
    -----
    Subtracting the own term from the sum of all would cancel where it dominates; the sum of the
    others is formed without doing so.

    Examples
    --------
    >>> np.exp(edge_message(np.log([[0.7, 0.2, 0.1]]), np.array([-np.inf]))).round(12)
    array([[0.3, 0.8, 0.9]])
    """
    if largest:
        return np.maximum(h + weights[:, None], _largest_of_others(h))
    return np.logaddexp(h + weights[:, None], _log_sum_of_others(h))


def _largest_of_others(h: FloatArray) -> FloatArray:
    """(E, K) max_{l ≠ k} h[e, l]: the top of all but the best state, the second best there."""
    rows, best = np.arange(len(h)), h.argmax(axis=1)
    without_best = h.copy()
    without_best[rows, best] = -np.inf
    others = np.repeat(h[rows, best, None], h.shape[1], axis=1)
    others[rows, best] = without_best.max(axis=1)
    return others


def _log_sum_of_others(h: FloatArray) -> FloatArray:
    """(E, K) log Σ_{l ≠ k} exp(h[e, l])."""
    rows, best = np.arange(len(h)), h.argmax(axis=1)
    top = _finite(h[rows, best])
    terms = np.exp(h - top[:, None])
    # All but the best: their sum includes the best, a term of one, so nothing cancels.
    own = terms[rows, best]
    terms[rows, best] = 0
    total = terms.sum(axis=1)
    with np.errstate(divide="ignore"):
        others = top[:, None] + np.log(own[:, None] + (total[:, None] - terms))
        # The best: a sum of its own, scaled by its own largest term.
        without_best = h.copy()
        without_best[rows, best] = -np.inf
        second = _finite(without_best.max(axis=1))
        total = np.exp(without_best - second[:, None]).sum(axis=1)
        others[rows, best] = second + np.log(total)
    return others


def _finite(top: FloatArray) -> FloatArray:
    """A shift that is safe to subtract: zero where everything is impossible."""
    return np.where(top == -np.inf, 0.0, top)
