"""Contract the side information of a data set into one Markov network over groups of points.

Every estimator builds a ``SideInformation`` in ``fit``, and E-steps and engines read it.
Points that must share a component become one *node* (a chunklet): must-links are contracted by
their transitive closure and never appear as edges. Cannot-links and preferences become weighted
*edges* between nodes. Labels and sets of allowed classes become a *mask* on nodes; they are
evidence about the data, not a condition on the prior. Without side information every point is a
node of its own with multiplicity one, and the graph has no edges, which is the plain mixture.
Chapters 4 to 9 explain the fields of the class.

=========  =========================================================================
N          number of points x_i, e.g. 150
K          number of components, e.g. 3
j, n_j     node (chunklet) and its multiplicity, the power of π_k in its prior, e.g. 2
w_e        log-weight of an edge: -inf for a cannot-link, e.g. 1.4 for a preference
=========  =========================================================================
"""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike

from cgmm.network.graph import Graph, edgeless, simplify
from cgmm.network.labels import read_evidence
from cgmm.network.misreadings import warn_of_certainties
from cgmm.network.relations import (
    closure,
    contract_edges,
    first_of_nodes,
    read_relations,
    read_selection,
)
from cgmm.numerics import AnyArray, BoolArray, FloatArray, IntArray

SAMPLING = ("points", "chunklets")
NO_PAIRS = np.empty((0, 2), dtype=np.intp)


class SideInformation(NamedTuple):
    """The network of nodes, edges and evidence that represents the side information of N points."""

    node_of: IntArray
    """(N,) node of each point; nodes are numbered in the order of their first points."""
    multiplicity: FloatArray
    """(n_nodes,) multiplicities n_j: the prior of a node is π_k to the power n_j."""
    graph: Graph
    """Edges between nodes, in the form of :func:`~cgmm.network.simplify`."""
    labels: IntArray | None = None
    """(n_nodes,) class of each node, -1 if unknown; None if no point has a label."""
    allowed: BoolArray | None = None
    """(n_nodes, K) booleans: the classes that are allowed for a node; None if all are."""
    must_link: IntArray = NO_PAIRS
    """(P, 2) must-links as the user gave them, from which errors build contradictory chains."""
    first_points: IntArray = np.empty(0, dtype=np.intp)
    """(n_nodes,) first point of each node; messages name a node by it."""
    starts: IntArray | None = None
    """(n_nodes,) first row of each node; None unless the points of every node are consecutive."""
    power: FloatArray | None = None
    """(N,) weight of each point within its node, as a number of points; None means one each."""
    copies: FloatArray | None = None
    """(n_nodes,) number of independent copies of each node; None means one each."""

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
        """Contract the labels and relations of ``n_samples`` points into one network.

        Parameters
        ----------
        n_samples : int
            N, at least one.
        labels : (N,) int array or (N, K) bool array, default=None
            The class of each point, -1 if unknown; or the allowed classes of each point.
            :func:`~cgmm.network.number_classes` converts classes that have names.
        must_link : (P, 2) int array, default=None
            Pairs of points that share a component, by row number. Chains are closed transitively.
            :func:`~cgmm.network.positions` converts names of points.
        cannot_link : (P, 2) int array, default=None
            Pairs of points that do not share a component.
        preferences : (P, 3) array, default=None
            Rows ``i, j, log-odds``: the log-odds that the two points belong together (2 W^p of
            lu2007, whose eq. 2.15 reads log-odds = logit γ). ``inf`` is a must-link, ``-inf`` a
            cannot-link. Log-odds of the same pair are added, as for independent reports.
            :func:`cgmm.scenarios.preferences` converts certainties γ.
        sampling : {"points", "chunklets"}, default="points"
            The units that are drawn independently. With points, a chunklet's prior is π_k to the
            power of its size (assumption 2 of shental2003, PPC); with chunklets it is π_k
            (assumption 1).

        Returns
        -------
        SideInformation
            Nodes, multiplicities, edges and evidence.

        Raises
        ------
        ValueError
            If an array has the wrong shape or refers to a point that does not exist, or if
            relations contradict each other; the error shows the chain of must-links.

        Warns
        -----
        UserWarning
            If all preferences lie between 0 and 1, as probabilities do.

        Examples
        --------
        >>> side = SideInformation.build(5, must_link=[[0, 3], [3, 1]], cannot_link=[[1, 4]])
        >>> side.node_of, side.multiplicity
        (array([0, 0, 1, 0, 2]), array([3., 1., 1.]))
        >>> side.graph.edges, side.graph.weights
        (array([[0, 2]]), array([-inf]))
        """
        if labels is must_link is cannot_link is preferences is None:
            return build_empty(n_samples, sampling)
        side = contracted(
            n_samples, labels=labels, must_link=must_link, cannot_link=cannot_link,
            preferences=preferences, sampling=sampling,
        )  # fmt: skip
        warn_of_certainties(preferences)
        return side

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return self.graph.n_nodes

    @property
    def nodes_are_points(self) -> bool:
        """True if no two points share a node."""
        return self.graph.n_nodes == len(self.node_of)

    @property
    def points_are_sampled(self) -> bool:
        """True if every node's multiplicity is its number of points, and points have no weights."""
        # Multiplicities are all 1 (chunklets are sampled) or all equal to the sizes of chunklets
        # (points are sampled), so comparing the sums suffices.
        return self.power is None and bool(self.multiplicity.sum() == len(self.node_of))

    @property
    def is_trivial(self) -> bool:
        """True if nodes are single points of multiplicity one without edges, so Z_prior is one."""
        is_single = self.power is None or bool((self.multiplicity == 1).all())
        return self.nodes_are_points and len(self.graph.edges) == 0 and is_single

    @property
    def is_empty(self) -> bool:
        """True if there are no relations, labels, allowed classes and weights."""
        if not (self.labels is None and self.allowed is None and self.power is self.copies is None):
            return False
        return self.graph.n_nodes == len(self.node_of) and len(self.graph.edges) == 0

    @property
    def tied(self) -> BoolArray:
        """(n_nodes,) booleans: True for nodes that have an edge."""
        has_edge = np.zeros(self.n_nodes, dtype=bool)
        has_edge[self.graph.edges] = True
        return has_edge

    @property
    def has_information(self) -> BoolArray:
        """(n_nodes,) booleans: True for nodes with edges, several points, or excluded classes."""
        known = self.tied | (np.bincount(self.node_of) > 1)
        return known if self.allowed is None else known | ~self.allowed.all(axis=1)

    def sum_over_nodes(self, values: FloatArray) -> FloatArray:
        """Sum the rows of the points of each node.

        Parameters
        ----------
        values : (N, K) array
            One row per point.

        Returns
        -------
        (n_nodes, K) array
            One row per node, column-major.

        Examples
        --------
        >>> side = SideInformation.build(3, must_link=[[0, 2]])
        >>> side.sum_over_nodes(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
        array([[6., 8.],
               [3., 4.]])
        """
        if self.power is not None:
            # Skip points of weight zero, because 0 times -inf would be NaN.
            power = self.power[:, None]
            values = np.multiply(values, power, where=power > 0, out=np.zeros_like(values))
        if self.nodes_are_points:
            return values
        if self.starts is not None:
            return np.add.reduceat(values.T, self.starts, axis=1).T
        return np.array([np.bincount(self.node_of, c, self.n_nodes) for c in values.T]).T

    def spread(self, of_node: AnyArray) -> AnyArray:
        """Return for every point the row of the node to which it belongs.

        Parameters
        ----------
        of_node : (n_nodes, ...) array
            One row per node.

        Returns
        -------
        (N, ...) array
            One row per point.

        Examples
        --------
        >>> SideInformation.build(3, must_link=[[0, 2]]).spread(np.array([7, 8]))
        array([7, 8, 7])
        """
        if self.nodes_are_points:
            return of_node
        # Log densities are column-major, so the result is column-major too.
        return cast("AnyArray", np.take(of_node.T, self.node_of, axis=-1).T)

    def weighted(
        self, sample_weight: FloatArray | None, sampling: str = "points",
        mentioned: IntArray | None = None,
    ) -> SideInformation:  # fmt: skip
        """Return the side information of weighted points, where a weight is a number of copies.

        Parameters
        ----------
        sample_weight : (N,) array or None
            Weights, none negative. None: one each.
        sampling : {"points", "chunklets"}, default="points"
            The units that are drawn independently, see :meth:`build`.
        mentioned : (P, 2) int array, default=None
            Pairs whose points count as related although their log-odds are zero.

        Returns
        -------
        SideInformation
            The weight of a point without relations is stored in ``copies``: each copy has a state
            of its own. The weight of a point with relations is stored in ``power``: all copies
            belong to the same node, so the density of the point is raised to that power, and so is
            the prior of the node if points are sampled.

        Examples
        --------
        >>> side = SideInformation.build(3, must_link=[[0, 1]])
        >>> weighted = side.weighted(np.array([1.0, 2.0, 5.0]))
        >>> weighted.multiplicity, weighted.power, weighted.copies
        (array([3., 1.]), array([1., 2., 1.]), array([1., 5.]))
        """
        if sample_weight is None:
            return self
        is_alone = ~self.tied & (np.bincount(self.node_of) == 1)
        if mentioned is not None:
            is_alone[self.node_of[mentioned]] = False
        power = np.where(is_alone[self.node_of], 1, sample_weight)
        copies = np.where(is_alone, sample_weight[self.first_points], 1)
        multiplicity = self.multiplicity
        if sampling == "points":
            multiplicity = np.bincount(self.node_of, power).astype(float)
        return self._replace(multiplicity=multiplicity, power=power, copies=copies)

    @property
    def n_points(self) -> float:
        """Number of points, or the sum of their weights if points are weighted."""
        weights = self.sample_weight
        return len(self.node_of) if weights is None else float(weights.sum())

    @property
    def sample_weight(self) -> FloatArray | None:
        """(N,) weight of each point, as a number of points; None means one each."""
        if self.power is None or self.copies is None:
            return None
        return self.power * self.spread(self.copies)

    def counted(self, of_points: FloatArray) -> FloatArray:
        """Multiply the row of each point by the weight of the point.

        Parameters
        ----------
        of_points : (N, K) array
            One row per point.

        Returns
        -------
        (N, K) array
            The rows, each times its ``sample_weight``.

        Examples
        --------
        >>> side = SideInformation.build(2).weighted(np.array([1.0, 3.0]))
        >>> side.counted(np.array([[0.5, 0.5], [1.0, 0.0]]))
        array([[0.5, 0.5],
               [3. , 0. ]])
        """
        weights = self.sample_weight
        return of_points if weights is None else of_points * weights[:, None]

    def restrict(self, rows: ArrayLike | slice) -> SideInformation:
        """Return the side information of a selection of the points.

        Parameters
        ----------
        rows : (n,) int array, (N,) bool array or slice
            The selected points, in their new order.

        Returns
        -------
        SideInformation
            The side information of n points. The chunklets, labels and edges that follow from
            must-links through dropped points are kept. If all points of a chunklet are dropped, its
            edges are dropped too.

        Raises
        ------
        ValueError
            If no point is selected, or if a point is selected twice.

        Examples
        --------
        >>> side = SideInformation.build(5, must_link=[[0, 3], [3, 1]], cannot_link=[[3, 4]])
        >>> side.restrict([4, 1, 0]).node_of, side.restrict([4, 1, 0]).graph.edges
        (array([0, 1, 1]), array([[0, 1]]))
        """
        rows = read_selection(rows, len(self.node_of))
        nodes, first, node_of = np.unique(
            self.node_of[rows], return_index=True, return_inverse=True
        )
        order = np.argsort(first)
        nodes, node_of = nodes[order], np.argsort(order)[node_of]
        new_index = np.full(self.n_nodes, -1)
        new_index[nodes] = np.arange(len(nodes))
        ends = new_index[self.graph.edges]
        kept = (ends >= 0).all(axis=1)
        part = self.without_edges(nodes, rows, node_of)
        if self.points_are_sampled:
            part = part._replace(multiplicity=np.bincount(node_of).astype(float))
        if part.labels is not None and part.labels.max() < 0:
            part = part._replace(labels=None)
        graph = simplify(Graph(len(nodes), ends[kept], self.graph.weights[kept]))
        return part._replace(
            graph=graph, must_link=_link_members(node_of), first_points=np.sort(first)
        )

    def without_edges(self, nodes: IntArray, rows: IntArray, node_of: IntArray) -> SideInformation:
        """Return the side information of selected nodes without edges, with the same node names.

        Parameters
        ----------
        nodes : (m,) int array
            The selected nodes.
        rows : (n,) int array
            The selected points of these nodes.
        node_of : (n,) int array
            For each selected point, the index of its node within ``nodes``.

        Returns
        -------
        SideInformation
            The side information of n points and m nodes.
        """
        return SideInformation(
            node_of, self.multiplicity[nodes], edgeless(len(nodes)),
            labels=None if self.labels is None else self.labels[nodes],
            allowed=None if self.allowed is None else self.allowed[nodes],
            first_points=self.first_points[nodes],
            power=None if self.power is None else self.power[rows],
            copies=None if self.copies is None else self.copies[nodes],
        )  # fmt: skip

    def mask(self, n_components: int) -> BoolArray | None:
        """Return the evidence as a mask over K components.

        Parameters
        ----------
        n_components : int
            K.

        Returns
        -------
        (n_nodes, K) bool array, or None
            True for the components that are allowed for a node; None if there is no evidence.

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

    def known_classes(self, n_components: int) -> IntArray:
        """Return the class of each node for which the evidence allows exactly one.

        Parameters
        ----------
        n_components : int
            K.

        Returns
        -------
        (n_nodes,) int array
            The class of each node, or -1 if several are allowed.

        Examples
        --------
        >>> SideInformation.build(2, labels=[[True, True], [False, True]]).known_classes(2)
        array([-1,  1])
        """
        mask = self.mask(n_components)
        if mask is None:
            return np.full(self.n_nodes, -1)
        return np.where(mask.sum(axis=1) == 1, mask.argmax(axis=1), -1)


def build_empty(n_samples: int, sampling: str = "points") -> SideInformation:
    """Return the side information of a plain mixture, without labels and relations."""
    _check_arguments(n_samples, sampling)
    points, graph = np.arange(n_samples), Graph(n_samples, NO_PAIRS, np.empty(0))
    return SideInformation(points, np.ones(n_samples), graph, first_points=points)


def contracted(
    n_samples: int,
    *,
    labels: ArrayLike | None = None,
    must_link: ArrayLike | None = None,
    cannot_link: ArrayLike | None = None,
    preferences: ArrayLike | None = None,
    sampling: str = "points",
) -> SideInformation:
    """Build the network like :meth:`SideInformation.build`, but do not warn about log-odds."""
    _check_arguments(n_samples, sampling)
    must, edges, weights = read_relations(n_samples, must_link, cannot_link, preferences)
    node_of = closure(n_samples, must)
    n_nodes = int(node_of.max()) + 1
    graph = contract_edges(n_nodes, node_of, edges, weights, must)
    sizes = np.bincount(node_of).astype(float)
    multiplicity = sizes if sampling == "points" else np.ones(n_nodes)
    node_labels, allowed = read_evidence(n_samples, labels, node_of, must)
    first = first_of_nodes(node_of)
    side = SideInformation(node_of, multiplicity, graph, node_labels, allowed, must, first)
    _require_different_labels(side)
    return side


def _check_arguments(n_samples: int, sampling: str) -> None:
    """Raise ``ValueError`` if there are no points or ``sampling`` is unknown."""
    if n_samples < 1:
        raise ValueError(f"n_samples is {n_samples}; there must be at least one point.")
    if sampling not in SAMPLING:
        raise ValueError(f"sampling is {sampling!r}; it must be one of {SAMPLING}.")


def _link_members(node_of: IntArray) -> IntArray:
    """Return must-links that connect the points of each node in a chain."""
    order = np.argsort(node_of, kind="stable")
    same = np.flatnonzero(np.diff(node_of[order]) == 0)
    return np.column_stack([order[same], order[same + 1]])


def _require_different_labels(side: SideInformation) -> None:
    """Raise ``ValueError`` for a cannot-link between nodes with the same single allowed class."""
    only = side.labels
    if side.allowed is not None:
        only = side.known_classes(side.allowed.shape[1])
    if only is None or len(side.graph.edges) == 0:
        return
    a, b = side.graph.edges.T
    clash = np.flatnonzero((side.graph.weights == -np.inf) & (only[a] == only[b]) & (only[a] >= 0))
    if len(clash):
        i, j = (int(np.flatnonzero(side.node_of == end)[0]) for end in side.graph.edges[clash[0]])
        raise ValueError(
            f"points {i} and {j} must both have class {only[side.node_of[i]]}, by their labels or "
            "those of points linked to them, but are cannot-linked. Correct a label or remove the "
            "cannot-link."
        )
