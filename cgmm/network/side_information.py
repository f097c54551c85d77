"""Side information, contracted into one Markov network over groups of points.

Points that must share a component become one *node* (a chunklet): must-links are contracted by
their transitive closure and never appear as edges. Cannot-links and preferences become weighted
*edges* between nodes. Labels and sets of allowed classes become a *mask* on nodes; they are
evidence about the data, not a condition on the prior. With nothing known every point is a node of
its own, of multiplicity one, and the graph has no edges: the plain mixture. Chapters 4 to 9 fill
the fields one after the other.

=========  =================================================================
N          number of points x_i; K components
j, n_j     node (chunklet) and its multiplicity: the power of π_k in its prior
w_e        log-weight of an edge: -inf a cannot-link, finite a preference
=========  =================================================================
"""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike

from cgmm.network.evidence import read_evidence
from cgmm.network.graph import Graph, edgeless, simplify
from cgmm.network.misreadings import warn_of_certainties
from cgmm.network.relations import closure, contract_edges, first_of_nodes, read_relations
from cgmm.network.rows import selected_rows
from cgmm.numerics import AnyArray, BoolArray, FloatArray, IntArray

SAMPLING = ("points", "chunklets")


class SideInformation(NamedTuple):
    """The network that side information makes of N points."""

    node_of: IntArray
    """(N,) the node to which each point belongs; nodes are numbered by their first point."""
    multiplicity: FloatArray
    """(n_nodes,) n_j, the power of π in the prior of a node."""
    graph: Graph
    """Edges between nodes, in the form of :func:`~cgmm.network.simplify`."""
    labels: IntArray | None = None
    """(n_nodes,) the class of a node, -1 where unknown; None where no point has a label."""
    allowed: BoolArray | None = None
    """(n_nodes, K) bool: the classes still allowed; None where all are."""
    must_link: IntArray = np.empty((0, 2), dtype=np.intp)
    """(P, 2) the must-links as given, kept so that an error can show the chain that clashes."""
    first_points: IntArray = np.empty(0, dtype=np.intp)
    """(n_nodes,) the first point of each node, by which messages name it."""
    starts: IntArray | None = None
    """(n_nodes,) the first row of each node, where the points of each lie together; else None."""
    power: FloatArray | None = None
    """(N,) how many points each point stands for in its node; None: for one."""
    copies: FloatArray | None = None
    """(n_nodes,) how many nodes each node stands for, each with a state of its own; None: one."""

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
            Classes that have names: :func:`~cgmm.network.number_classes`.
        must_link : (P, 2) int array, default=None
            Pairs of points that share a component, by row number. Transitive: chains are closed.
            From names of points: :func:`~cgmm.network.positions`.
        cannot_link : (P, 2) int array, default=None
            Pairs of points that do not share a component.
        preferences : (P, 3) array, default=None
            Rows ``i, j, log-odds``: how much more probable than not it is that the two belong
            together (2 W^p of lu2007, whose eq. 2.15 reads log-odds = logit γ). ``inf`` is a
            must-link, ``-inf`` a cannot-link. Several on one pair add, as independent reports do.
            From certainties γ: :func:`cgmm.scenarios.preferences`.
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
            return nothing_known(n_samples, sampling)
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
        """Whether no two points share a node."""
        return self.graph.n_nodes == len(self.node_of)

    @property
    def points_are_sampled(self) -> bool:
        """Whether the multiplicity of every node is its number of points."""
        # Of weighted points the sums say the same, whatever is sampled, if these are told apart.
        return self.power is None and bool(self.multiplicity.sum() == len(self.node_of))

    @property
    def is_trivial(self) -> bool:
        """Whether nodes are points and nothing ties them: Z_prior is one."""
        is_single = self.power is None or bool((self.multiplicity == 1).all())
        return self.nodes_are_points and len(self.graph.edges) == 0 and is_single

    @property
    def tied(self) -> BoolArray:
        """(n_nodes,) whether an edge ties a node to others."""
        tied = np.zeros(self.n_nodes, dtype=bool)
        tied[self.graph.edges] = True
        return tied

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
        if self.power is not None:
            # What has no weight counts for nothing, even where it is impossible.
            power = self.power[:, None]
            values = np.multiply(values, power, where=power > 0, out=np.zeros_like(values))
        if self.nodes_are_points:
            return values
        if self.starts is not None:
            return np.add.reduceat(values.T, self.starts, axis=1).T
        return np.array([np.bincount(self.node_of, c, self.n_nodes) for c in values.T]).T

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
        return cast("AnyArray", np.take(of_node.T, self.node_of, axis=-1).T)

    def weighted(
        self, sample_weight: FloatArray | None, sampling: str = "points",
        mentioned: IntArray | None = None,
    ) -> SideInformation:  # fmt: skip
        """Let each point stand for so many points.

        Parameters
        ----------
        sample_weight : (N,) array or None
            Not negative. None: one each.
        sampling : {"points", "chunklets"}, default="points"
            As in :meth:`build`.

        mentioned : (P, 2) int array, default=None
            Pairs that are related although their edge says nothing.

        Returns
        -------
        SideInformation
            A point without relations stands for ``copies``, each with a state of its own. Of a
            point with relations all copies are in its node: its density counts to that ``power``,
            and so does the prior of the node where points are sampled.

        Examples
        --------
        >>> side = SideInformation.build(3, must_link=[[0, 1]])
        >>> weighted = side.weighted(np.array([1.0, 2.0, 5.0]))
        >>> weighted.multiplicity, weighted.power, weighted.copies
        (array([3., 1.]), array([1., 2., 1.]), array([1., 5.]))
        """
        if sample_weight is None:
            return self
        alone = ~self.tied & (np.bincount(self.node_of) == 1)
        if mentioned is not None:
            alone[self.node_of[mentioned]] = False
        power = np.where(alone[self.node_of], 1, sample_weight)
        copies = np.where(alone, sample_weight[self.first_points], 1)
        multiplicity = self.multiplicity
        if sampling == "points":
            multiplicity = np.bincount(self.node_of, power).astype(float)
        return self._replace(multiplicity=multiplicity, power=power, copies=copies)

    @property
    def n_points(self) -> float:
        """How many points there are, each as often as it counts."""
        weights = self.sample_weight
        return len(self.node_of) if weights is None else float(weights.sum())

    @property
    def sample_weight(self) -> FloatArray | None:
        """(N,) how many points each stands for; None: for one."""
        if self.power is None or self.copies is None:
            return None
        return self.power * self.spread(self.copies)

    def counted(self, of_points: FloatArray) -> FloatArray:
        """Take the row of each point as many times as the point counts.

        Parameters
        ----------
        of_points : (N, K) array
            One row a point.

        Returns
        -------
        (N, K) array
            Each times its ``sample_weight``.

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
        """Return the side information of some of the points only.

        Parameters
        ----------
        rows : (n,) int array, (N,) bool array or slice
            The points that are left, in their new order.

        Returns
        -------
        SideInformation
            Of n points. What must-links through points that are left out imply remains: their
            chunklets, and labels and edges of these. A chunklet that is left out altogether takes
            its edges along.

        Raises
        ------
        ValueError
            If no point is left, or one is named twice.

        Examples
        --------
        >>> side = SideInformation.build(5, must_link=[[0, 3], [3, 1]], cannot_link=[[3, 4]])
        >>> side.restrict([4, 1, 0]).node_of, side.restrict([4, 1, 0]).graph.edges
        (array([0, 1, 1]), array([[0, 1]]))
        """
        rows = selected_rows(rows, len(self.node_of))
        nodes, first, node_of = np.unique(
            self.node_of[rows], return_index=True, return_inverse=True
        )
        order = np.argsort(first)
        nodes, node_of = nodes[order], np.argsort(order)[node_of]
        place = np.full(self.n_nodes, -1)
        place[nodes] = np.arange(len(nodes))
        ends = place[self.graph.edges]
        kept = (ends >= 0).all(axis=1)
        part = self.without_edges(nodes, rows, node_of)
        if self.points_are_sampled:
            part = part._replace(multiplicity=np.bincount(node_of).astype(float))
        if part.labels is not None and part.labels.max() < 0:
            part = part._replace(labels=None)
        graph = simplify(Graph(len(nodes), ends[kept], self.graph.weights[kept]))
        return part._replace(graph=graph, must_link=_chained(node_of), first_points=np.sort(first))

    def without_edges(self, nodes: IntArray, rows: IntArray, node_of: IntArray) -> SideInformation:
        """Return the side information of some nodes without edges; nodes keep their names.

        Parameters
        ----------
        nodes : (m,) int array
            Which nodes are left.
        rows : (n,) int array
            Which of their points are left.
        node_of : (n,) int array
            The place among ``nodes`` of the node of each of these.

        Returns
        -------
        SideInformation
            Of n points and m nodes.
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

    def known_classes(self, n_components: int) -> IntArray:
        """Return the class of each node to which the evidence leaves exactly one.

        Parameters
        ----------
        n_components : int
            K.

        Returns
        -------
        (n_nodes,) int array
            -1 where it leaves several.

        Examples
        --------
        >>> SideInformation.build(2, labels=[[True, True], [False, True]]).known_classes(2)
        array([-1,  1])
        """
        mask = self.mask(n_components)
        if mask is None:
            return np.full(self.n_nodes, -1)
        return np.where(mask.sum(axis=1) == 1, mask.argmax(axis=1), -1)


def nothing_known(n_samples: int, sampling: str = "points") -> SideInformation:
    """Return the side information of a plain mixture: nothing is known."""
    _check(n_samples, sampling)
    points = np.arange(n_samples)
    return SideInformation(points, np.ones(n_samples), edgeless(n_samples), first_points=points)


def contracted(
    n_samples: int,
    *,
    labels: ArrayLike | None = None,
    must_link: ArrayLike | None = None,
    cannot_link: ArrayLike | None = None,
    preferences: ArrayLike | None = None,
    sampling: str = "points",
) -> SideInformation:
    """As :meth:`SideInformation.build`, in whatever unit preferences are."""
    _check(n_samples, sampling)
    must, edges, weights = read_relations(n_samples, must_link, cannot_link, preferences)
    node_of = closure(n_samples, must)
    n_nodes = int(node_of.max()) + 1
    graph = contract_edges(n_nodes, node_of, edges, weights, must)
    sizes = np.bincount(node_of).astype(float)
    multiplicity = sizes if sampling == "points" else np.ones(n_nodes)
    node_labels, allowed = read_evidence(n_samples, labels, node_of, must)
    first = first_of_nodes(node_of)
    side = SideInformation(node_of, multiplicity, graph, node_labels, allowed, must, first)
    _require_labels_apart(side)
    return side


def _check(n_samples: int, sampling: str) -> None:
    if n_samples < 1:
        raise ValueError(f"n_samples is {n_samples}; there must be at least one point.")
    if sampling not in SAMPLING:
        raise ValueError(f"sampling is {sampling!r}; it must be one of {SAMPLING}.")


def _chained(node_of: IntArray) -> IntArray:
    """Return must-links between consecutive points of each node."""
    order = np.argsort(node_of, kind="stable")
    same = np.flatnonzero(np.diff(node_of[order]) == 0)
    return np.column_stack([order[same], order[same + 1]])


def _require_labels_apart(side: SideInformation) -> None:
    """Raise an error for a cannot-link between two nodes that can only have the same class."""
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
            "those of points tied to them, but are cannot-linked. Correct a label or remove the "
            "cannot-link."
        )
