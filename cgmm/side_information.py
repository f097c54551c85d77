"""What is known beside the data, contracted into one Markov network over groups of points.

Points that must share a component become one *node* (a chunklet): must-links are contracted by
their transitive closure and never appear as edges. Cannot-links and preferences become weighted
*edges* between nodes. Labels and sets of allowed classes become a *mask* on nodes; they are
evidence about the data, not a condition on the prior. With nothing known every point is a node of
its own, of multiplicity one, and the graph has no edges: the plain mixture.

=========  =================================================================
N          number of points x_i
j, n_j     node (chunklet) and its multiplicity: the power of π_k in its prior
w_e        log-weight of an edge: -inf a cannot-link, finite a preference
=========  =================================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from cgmm.network import Graph, forbidden_clique, simplify
from cgmm.numerics import AnyArray, BoolArray, FloatArray, IntArray, check_pairs

__all__ = ["SAMPLING", "SideInformation", "must_link_chain", "require_colourable"]

SAMPLING = ("points", "chunklets")


class SideInformation(NamedTuple):
    """The network that side information makes of N points."""

    node_of: IntArray
    """(N,) the node to which each point belongs; nodes are numbered by their first point."""
    multiplicity: FloatArray
    """(n_nodes,) n_j, the power of π in the prior of a node."""
    graph: Graph
    """Edges between nodes, one an unordered pair."""
    labels: IntArray | None = None
    """(n_nodes,) the class of a node, -1 where unknown; None where no point has a label."""
    allowed: BoolArray | None = None
    """(n_nodes, K) bool: the classes still allowed; None where all are."""
    must_link: IntArray = np.empty((0, 2), dtype=np.intp)
    """(P, 2) the must-links as given, kept so that an error can show the chain that clashes."""
    first_points: IntArray = np.empty(0, dtype=np.intp)
    """(n_nodes,) the first point of each node, by which messages name it."""
    runs: tuple[tuple[int, int], ...] = ()
    """(size, how many) of consecutive nodes, if points lie in this order; else empty."""

    @classmethod
    def build(
        cls,
        n_samples: int,
        *,
        labels: ArrayLike | None = None,
        must_link: ArrayLike | None = None,
        cannot_link: ArrayLike | None = None,
        preferences: ArrayLike | None = None,
        sampling: str = "points",
    ) -> SideInformation:
        """Contract everything that is known about ``n_samples`` points into one network.

        Parameters
        ----------
        n_samples : int
            N, at least one.
        labels : (N,) int array or (N, K) bool array, default=None
            The class of each point, -1 where unknown; or for each point the classes still allowed.
        must_link : (P, 2) int array, default=None
            Pairs of points that share a component. Transitive: chains are closed.
        cannot_link : (P, 2) int array, default=None
            Pairs of points that do not share a component.
        preferences : (P, 3) array, default=None
            Rows ``i, j, log-odds``: how much more probable than not it is that the two belong
            together (2 W^p of lu2007, whose eq. 2.15 reads log-odds = logit γ). ``inf`` is a
            must-link, ``-inf`` a cannot-link. Several on one pair add, as independent reports do.
        sampling : {"points", "chunklets"}, default="points"
            What is drawn independently: points, so that a chunklet's prior is π_k to the power of
            its size (assumption 2 of shental2003, PPC), or chunklets, so that it is π_k
            (assumption 1).

        Returns
        -------
        SideInformation
            Nodes, multiplicities, edges and evidence.

        Raises
        ------
        ValueError
            If an array has the wrong shape or names a point that does not exist, or if relations
            contradict each other; the chain of must-links that clashes is shown.

        Examples
        --------
        >>> side = SideInformation.build(5, must_link=[[0, 3], [3, 1]], cannot_link=[[1, 4]])
        >>> side.node_of, side.multiplicity
        (array([0, 0, 1, 0, 2]), array([3., 1., 1.]))
        >>> side.graph.edges, side.graph.weights
        (array([[0, 2]]), array([-inf]))
        """
        if n_samples < 1:
            raise ValueError(f"n_samples is {n_samples}; there must be at least one point.")
        if sampling not in SAMPLING:
            raise ValueError(f"sampling is {sampling!r}; it must be one of {SAMPLING}.")
        must, edges, weights = _relations(n_samples, must_link, cannot_link, preferences)
        node_of = _closure(n_samples, must)
        n_nodes = int(node_of.max()) + 1
        graph = _contracted(n_nodes, node_of, edges, weights, must)
        sizes = np.bincount(node_of).astype(float)
        multiplicity = sizes if sampling == "points" else np.ones(n_nodes)
        node_labels, allowed = _evidence(n_samples, labels, node_of, must)
        first = _first_points(node_of)
        side = cls(node_of, multiplicity, graph, node_labels, allowed, must, first)
        _require_labels_apart(side)
        return side

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return self.graph.n_nodes

    @property
    def nodes_are_points(self) -> bool:
        """Whether no two points share a node."""
        return self.n_nodes == len(self.node_of)

    @property
    def points_are_sampled(self) -> bool:
        """Whether the multiplicity of every node is its number of points."""
        return bool(self.multiplicity.sum() == len(self.node_of))

    @property
    def is_trivial(self) -> bool:
        """Whether nodes are points and nothing ties them: Z_prior is one."""
        return self.nodes_are_points and len(self.graph.edges) == 0

    def sum_over_nodes(self, values: FloatArray) -> FloatArray:
        """Add the rows of the points of each node.

        Parameters
        ----------
        values : (N, K) array
            One row a point.

        Returns
        -------
        (n_nodes, K) array
            One row a node, column-major.

        Examples
        --------
        >>> side = SideInformation.build(3, must_link=[[0, 2]])
        >>> side.sum_over_nodes(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
        array([[6., 8.],
               [3., 4.]])
        """
        if self.nodes_are_points:
            return values
        if not self.runs:
            return np.array([np.bincount(self.node_of, c, self.n_nodes) for c in values.T]).T
        sums = np.empty((values.shape[1], self.n_nodes))
        for nodes, members in self._members():
            sums[:, nodes] = values.T[:, members[0]]
            for member in members[1:]:
                sums[:, nodes] += values.T[:, member]
        return sums.T

    def spread(self, of_node: AnyArray) -> AnyArray:
        """Give every point the row of its node.

        Parameters
        ----------
        of_node : (n_nodes, ...) array
            One row a node.

        Returns
        -------
        (N, ...) array
            One row a point.

        Examples
        --------
        >>> SideInformation.build(3, must_link=[[0, 2]]).spread(np.array([7, 8]))
        array([7, 8, 7])
        """
        if self.nodes_are_points:
            return of_node
        # Column-major, as log densities are.
        if not self.runs:
            return cast("AnyArray", np.take(of_node.T, self.node_of, axis=-1).T)
        of_point = np.empty((*of_node.T.shape[:-1], len(self.node_of)), dtype=of_node.dtype)
        for nodes, members in self._members():
            for member in members:
                of_point[..., member] = of_node.T[..., nodes]
        return cast("AnyArray", of_point.T)

    def _members(self) -> Iterator[tuple[slice, list[slice]]]:
        """Nodes of one size, with their first points, their second points, and so on."""
        node = point = 0
        for size, count in self.runs:
            end = point + size * count
            yield slice(node, node + count), [slice(point + m, end, size) for m in range(size)]
            node, point = node + count, end

    def by_size(self) -> tuple[IntArray, SideInformation]:
        """Sort nodes by size and points by node, so that the work on nodes runs along memory.

        Returns
        -------
        order : (N,) int array
            The points in their new order.
        side : SideInformation
            The same information about the points in that order; ``first_points`` keep their names.

        Raises
        ------
        ValueError
            If there are edges, whose work outweighs what this saves.

        Examples
        --------
        >>> order, side = SideInformation.build(5, must_link=[[0, 3], [3, 1]]).by_size()
        >>> order, side.node_of, side.runs
        (array([2, 4, 0, 1, 3]), array([0, 1, 2, 2, 2]), ((1, 2), (3, 1)))
        """
        if len(self.graph.edges):
            raise ValueError("nodes are tied by edges; by_size is for chunklets alone.")
        sizes = np.bincount(self.node_of)
        nodes = np.argsort(sizes, kind="stable")
        place = np.empty(self.n_nodes, dtype=np.intp)
        place[nodes] = np.arange(self.n_nodes)
        # Rows of a sparse matrix are filled by counting: a sort in linear time.
        places = (place[self.node_of], np.arange(len(self.node_of)))
        order = coo_array((np.ones(len(self.node_of), dtype=bool), places)).tocsr().indices
        runs = tuple(zip(*(c.tolist() for c in np.unique(sizes, return_counts=True)), strict=True))
        return order, self._replace(
            node_of=np.repeat(np.arange(self.n_nodes), sizes[nodes]),
            multiplicity=self.multiplicity[nodes],
            labels=None if self.labels is None else self.labels[nodes],
            allowed=None if self.allowed is None else self.allowed[nodes],
            first_points=self.first_points[nodes],
            runs=runs,
        )

    def mask(self, n_components: int) -> BoolArray | None:
        """The evidence as a mask over K components.

        Parameters
        ----------
        n_components : int
            K.

        Returns
        -------
        (n_nodes, K) bool array, or None
            Which components each node may have; None if there is no evidence.

        Raises
        ------
        ValueError
            If a label or the mask does not fit K components.

        Examples
        --------
        >>> SideInformation.build(2, labels=[1, -1]).mask(2)
        array([[False,  True],
               [ True,  True]])
        """
        if self.allowed is not None:
            if self.allowed.shape[1] != n_components:
                raise ValueError(
                    f"labels has {self.allowed.shape[1]} columns of allowed classes, but there are "
                    f"{n_components} components; give one column a component."
                )
            return self.allowed
        if self.labels is None:
            return None
        if self.labels.max() >= n_components:
            point = int(np.flatnonzero(self.labels[self.node_of] == self.labels.max())[0])
            raise ValueError(
                f"point {point} has label {self.labels.max()}, but there are {n_components} "
                f"components, numbered from 0; use n_components={self.labels.max() + 1} or more."
            )
        return (self.labels[:, None] == -1) | (self.labels[:, None] == np.arange(n_components))


def require_colourable(side: SideInformation, n_components: int) -> None:
    """Refuse more mutually cannot-linked chunklets than there are components.

    Parameters
    ----------
    side : SideInformation
        What is known.
    n_components : int
        K.

    Raises
    ------
    ValueError
        If K + 1 chunklets are found of which every two are cannot-linked; they are named. Other
        reasons why K components cannot honour the cannot-links are found by exact engines.

    Examples
    --------
    >>> side = SideInformation.build(4, cannot_link=[[0, 1], [1, 3], [3, 0]])
    >>> require_colourable(side, 2)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: points 0, 1 and 3 are mutually cannot-linked ...
    """
    clique = forbidden_clique(side.graph, n_components + 1)
    if clique is None:
        return
    points = [str(point) for point in side.first_points[clique]]
    named = f"{', '.join(points[:-1])} and {points[-1]}"
    raise ValueError(
        f"points {named} are mutually cannot-linked (they, or points that must-links tie to them), "
        f"so that they need {len(points)} components, and there are {n_components}. Use "
        f"n_components={len(points)} or more, or remove one of the cannot-links."
    )


# ---------------------------------------------------------------------------- relations


def _relations(
    n_samples: int,
    must_link: ArrayLike | None,
    cannot_link: ArrayLike | None,
    preferences: ArrayLike | None,
) -> tuple[IntArray, IntArray, FloatArray]:
    """Hard must-links (P, 2), and the edges (E, 2) with log-weights (E,) of everything else."""
    must = check_pairs("must_link", must_link, n_samples)
    cannot = check_pairs("cannot_link", cannot_link, n_samples)
    itself = np.flatnonzero(cannot[:, 0] == cannot[:, 1])
    if len(itself):
        raise ValueError(
            f"cannot_link[{itself[0]}] ties point {cannot[itself[0], 0]} to itself: no point can "
            "differ from itself. Remove the row."
        )
    soft, odds = _preferences(preferences, n_samples)
    hard = odds == np.inf
    edges = np.concatenate([cannot, soft[~hard]])
    # [lu2007, eq. A.2]; what is +inf is contracted
    weights = np.concatenate([np.full(len(cannot), -np.inf), odds[~hard]])
    return np.concatenate([must, soft[hard]]), edges, weights


def _preferences(value: ArrayLike | None, n_samples: int) -> tuple[IntArray, FloatArray]:
    """Pairs (P, 2) and their log-odds (P,), without those that say nothing."""
    if value is None or np.size(value) == 0:
        return np.empty((0, 2), dtype=np.intp), np.empty(0)
    array = np.asarray(value, dtype=float)
    if array.ndim != 2 or array.shape[1] != 3:
        raise ValueError(
            f"preferences has shape {array.shape}; it must be (P, 3), rows of i, j, log-odds."
        )
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


def _closure(n_samples: int, must: IntArray) -> IntArray:
    """(N,) the chunklet of each point, numbered by first points: connected components."""
    if len(must) == 0:
        return np.arange(n_samples)
    return connected_components(_adjacency(n_samples, must), directed=False)[1].astype(np.intp)


def _first_points(node_of: IntArray) -> IntArray:
    """(n_nodes,) the first point of each node."""
    # Nodes are numbered by first points: at these the highest number so far rises.
    return np.flatnonzero(np.diff(np.maximum.accumulate(node_of), prepend=-1))


def _adjacency(n_samples: int, pairs: IntArray) -> csr_array:
    ones = np.ones(len(pairs))
    return csr_array((ones, (pairs[:, 0], pairs[:, 1])), shape=(n_samples, n_samples))


def must_link_chain(must_link: IntArray, start: int, end: int) -> list[int]:
    """A shortest chain of must-links that ties two points.

    Parameters
    ----------
    must_link : (P, 2) int array
        The must-links.
    start, end : int
        Two points of one chunklet.

    Returns
    -------
    list of int
        The points from ``start`` to ``end``, neighbours in the list being must-linked.

    Raises
    ------
    ValueError
        If no chain ties them.

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


def _show(must: IntArray, start: int, end: int) -> str:
    return " - ".join(map(str, must_link_chain(must, int(start), int(end))))


# ---------------------------------------------------------------------------- edges


def _contracted(
    n_nodes: int, node_of: IntArray, edges: IntArray, weights: FloatArray, must: IntArray
) -> Graph:
    """Edges between nodes, one a pair: log-weights on the same pair add up."""
    ends = node_of[edges]
    inside = ends[:, 0] == ends[:, 1]
    clash = np.flatnonzero(inside & (weights == -np.inf))
    if len(clash):
        i, j = edges[clash[0]]
        raise ValueError(
            f"points {i} and {j} are cannot-linked, but must-links tie them together: "
            f"{_show(must, i, j)}. Remove the cannot-link or break the chain."
        )
    # A preference inside a chunklet multiplies every assignment alike and says nothing.
    return simplify(Graph(n_nodes, ends[~inside], weights[~inside]))


# ---------------------------------------------------------------------------- evidence


def _evidence(
    n_samples: int, labels: ArrayLike | None, node_of: IntArray, must: IntArray
) -> tuple[IntArray | None, BoolArray | None]:
    """Labels (n_nodes,) or allowed classes (n_nodes, K), with None for what is not given."""
    if labels is None:
        return None, None
    array = np.asarray(labels)
    if array.ndim not in (1, 2) or len(array) != n_samples:
        raise ValueError(
            f"labels has shape {array.shape}; it must be ({n_samples},) integers, -1 for unknown, "
            f"or ({n_samples}, K) booleans, the classes still allowed."
        )
    if array.ndim == 2:
        return None, _allowed(array, node_of, must)
    return _labels(array, node_of, must), None


def _labels(labels: NDArray[Any], node_of: IntArray, must: IntArray) -> IntArray | None:
    """The one label of each node, or the two that clash."""
    with np.errstate(invalid="ignore"):
        whole = labels.astype(np.intp)
    wrong = np.flatnonzero((whole != labels) | (whole < -1))
    if len(wrong):
        raise ValueError(
            f"labels[{wrong[0]}] is {labels[wrong[0]]}; a label must be an integer from 0, or -1 "
            "for unknown."
        )
    known = np.flatnonzero(whole >= 0)
    if len(known) == 0:
        return None
    of_node = np.full(node_of.max() + 1, -1)
    of_node[node_of[known]] = whole[known]
    clash = known[of_node[node_of[known]] != whole[known]]
    if len(clash):
        i = clash[0]
        same = known[(node_of[known] == node_of[i]) & (whole[known] != whole[i])]
        raise ValueError(
            f"points {i} and {same[0]} have the labels {whole[i]} and {whole[same[0]]}, but "
            f"must-links tie them together: {_show(must, i, same[0])}. Correct a label or break "
            "the chain."
        )
    return of_node


def _allowed(allowed: NDArray[Any], node_of: IntArray, must: IntArray) -> BoolArray:
    """The classes that all points of a node allow."""
    if not np.isin(allowed, (0, 1)).all():
        raise ValueError("labels of two dimensions must be booleans: the classes still allowed.")
    allowed = allowed.astype(bool)
    empty = np.flatnonzero(~allowed.any(axis=1))
    if len(empty):
        raise ValueError(f"labels[{empty[0]}] allows no class at all; allow at least one.")
    of_node = np.ones((node_of.max() + 1, allowed.shape[1]), dtype=bool)
    np.logical_and.at(of_node, node_of, allowed)
    empty = np.flatnonzero(~of_node.any(axis=1))
    if len(empty):
        raise ValueError(_explain_empty(allowed, np.flatnonzero(node_of == empty[0]), must))
    return of_node


def _explain_empty(allowed: BoolArray, members: IntArray, must: IntArray) -> str:
    """Two members of a chunklet whose classes exclude each other, or all that exclude jointly."""
    for position, i in enumerate(members):
        disjoint = ~(allowed[members[:position]] & allowed[i]).any(axis=1)
        if disjoint.any():
            j = members[:position][disjoint][0]
            return (
                f"points {j} and {i} have no allowed class in common, but must-links tie them "
                f"together: {_show(must, j, i)}. Allow more classes or break the chain."
            )
    return (
        f"the points {members[:10].tolist()} are tied together by must-links, and their allowed "
        "classes have none in common to all. Allow more classes or break the chain."
    )


def _require_labels_apart(side: SideInformation) -> None:
    """No cannot-link between two nodes that can only have the same class."""
    only = side.labels
    if side.allowed is not None:
        only = np.where(side.allowed.sum(axis=1) == 1, side.allowed.argmax(axis=1), -1)
    if only is None or len(side.graph.edges) == 0:
        return
    a, b = side.graph.edges.T
    clash = np.flatnonzero((side.graph.weights == -np.inf) & (only[a] == only[b]) & (only[a] >= 0))
    if len(clash):
        i, j = (int(np.flatnonzero(side.node_of == end)[0]) for end in side.graph.edges[clash[0]])
        raise ValueError(
            f"points {i} and {j} must both have class {only[side.node_of[i]]}, by their labels or "
            "those of points tied to them, but are cannot-linked. Correct a label or remove the "
            "cannot-link."
        )
