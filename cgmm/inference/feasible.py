"""Can the hard relations be honoured with K states, and by which assignment? Chapters 7 and 11.

Everybody who must know asks here. The answer does not depend on data, only on the graph of the
cannot-links, on K, and on the states that evidence leaves to each node. There are three:

- an assignment (:func:`~cgmm.inference.feasible_assignment`);
- *impossible*: proved, and the nodes to blame are named (:class:`~cgmm.network.NetworkError`);
- *not known*: the search ran out of steps (:class:`SearchBudgetError`).

A greedy colouring honours nearly all that is met in practice. In a component where it fails, nodes
that always find a state once their neighbours have one are peeled off. What is left is the *core*:
a clique of K + 1 nodes in it refutes at once, else :mod:`~cgmm.inference.colour_search` decides.

=========  ==========================================================================
K          number of states: colours, components, clusters
hard       the graph of the cannot-links alone, each edge with weight one
matrix     (n, n) its symmetric matrix, of the component or of the core in hand
allowed    (n, K) whether node j may have state k
names      (n,) what the nodes in hand are called in the whole graph
=========  ==========================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
from scipy import sparse

from cgmm.inference.colour_search import (
    FIRST_STEPS,
    ColourSearch,
    Rng,
    colour_in_order,
    forbidden_clique,
    graph_of,
    neighbours_of,
    peel,
    with_named_clique,
)
from cgmm.inference.colouring import adjacency, colour_nodes
from cgmm.network import Graph, NetworkError, SideInformation, connected_components
from cgmm.numerics import BoolArray, IntArray

# Steps of a search for an assignment in which no relation is broken, unless the user says more.
MAX_SEARCH = 1_000_000
# Cores of more nodes are blamed whole; of smaller ones, only nodes that are needed for the proof.
MAX_BLAMED = 200

Hint = Callable[[], IntArray]


class SearchBudgetError(RuntimeError):
    """The search for an assignment that breaks no cannot-link ran out of steps.

    Whether there is one is not known: this is no verdict on the relations. See ``max_search``.
    """


def feasible_assignment(
    graph: Graph,
    n_states: int,
    *,
    allowed: BoolArray | None = None,
    max_search: int = MAX_SEARCH,
    rng: Rng | None = None,
    hint: Hint | None = None,
    noun: str = "state",
    remedy: str | None = None,
) -> IntArray:
    """An assignment that breaks no cannot-link, or an error that says why there is none.

    Parameters
    ----------
    graph : Graph
        Any graph; only its edges of weight ``-inf`` count.
    n_states : int
        K.
    allowed : (n_nodes, K) bool array, default=None
        The states that evidence leaves to each node; None: all.
    max_search : int, default=1000000
        Steps of the search, where greedy colouring fails; a step gives a node a state.
    rng : RandomState, default=None
        Orders and walks of the search; None is a fixed seed.
    hint : callable, default=None
        Gives (n_nodes,) states near which an assignment may lie, though they break some
        cannot-links; called only if there must be a search.
    noun : str, default="state"
        What a state is called in errors.
    remedy : str, default=None
        What to do if the search runs out of steps, a sentence.

    Returns
    -------
    (n_nodes,) int array
        The state of each node.

    Raises
    ------
    NetworkError
        If no assignment breaks none: that is proved, and nodes to blame are named.
    SearchBudgetError
        If ``max_search`` steps did not settle it.

    Examples
    --------
    A triangle needs three states:

    >>> triangle = Graph(3, np.array([[0, 1], [1, 2], [0, 2]]), np.full(3, -np.inf))
    >>> sorted(feasible_assignment(triangle, 3).tolist())
    [0, 1, 2]
    >>> feasible_assignment(triangle, 2)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    cgmm.network.errors.NetworkError: nodes 0, 1 and 2 are mutually cannot-linked, ...
    """
    hard, every = _hard_part(graph), np.arange(graph.n_nodes)
    if allowed is None:
        allowed = np.ones((graph.n_nodes, n_states), dtype=bool)
    z, of_node = colour_nodes(hard), connected_components(hard)
    fails = (z >= n_states) | ~allowed[every, np.minimum(z, n_states - 1)]
    if not fails.any():
        return z
    matrix, near = adjacency(hard), None if hint is None else hint()
    remedy = remedy or f"Raise max_search, use more {noun}s, or soft relations (PCKMeans)."
    colourer = _Colourer(ColourSearch(max_search, rng or Rng(0)), max_search, noun, remedy)
    for c in np.unique(of_node[fails]):
        nodes = np.flatnonzero(of_node == c)
        part = matrix[nodes][:, nodes]
        near_here = None if near is None else near[nodes]
        z[nodes] = colourer.assign(part, allowed[nodes], nodes, near_here)
    return z


class _Colourer:
    """Decides about one component after the other; they share the steps of one search."""

    def __init__(self, search: ColourSearch, max_search: int, noun: str, remedy: str):
        self.search, self.max_search = search, max_search
        self.noun, self.remedy = noun, remedy

    def assign(
        self, matrix: sparse.csr_array, allowed: BoolArray, names: IntArray, near: IntArray | None
    ) -> IntArray:
        """The states of a component: its core by search, then what was peeled off, last first."""

        def assign_core(core: IntArray) -> IntArray:
            hint = None if near is None else near[core]
            return self._assign_core(matrix[core][:, core], allowed[core], names[core], hint)

        return cast("IntArray", around_core(matrix, allowed, assign_core))

    def _assign_core(
        self, matrix: sparse.csr_array, allowed: BoolArray, names: IntArray, near: IntArray | None
    ) -> IntArray:
        """The states of a core, or an error that says whether there are none or none was found."""
        n_states = allowed.shape[1]
        clique = forbidden_clique(graph_of(matrix), n_states + 1)
        if clique is not None:
            raise NetworkError(
                f"{{nodes}} are mutually cannot-linked, so they need a {self.noun} each, but there "
                f"are only {n_states} {self.noun}s: no assignment is possible. Remove a "
                f"cannot-link between them, or ask for {len(clique)} {self.noun}s or more.",
                names[clique],
            )
        found = self.search.colour(matrix, allowed, near)
        if found.colours is not None:
            return found.colours
        if not found.complete:
            raise SearchBudgetError(
                f"the search for an assignment to {n_states} {self.noun}s that breaks no "
                f"cannot-link stopped after {self.max_search} steps: whether there is one is not "
                f"known. It is about {len(names)} nodes, among them {names[:8].tolist()}. "
                f"{self.remedy}"
            )
        raise NetworkError(
            f"{{nodes}} are tied by cannot-links that no assignment to {n_states} {self.noun}s can "
            "all honour: that is proved. Remove a cannot-link between them, or use more "
            f"{self.noun}s.",
            names[to_blame(matrix, allowed)],
        )


def around_core(
    matrix: sparse.csr_array,
    allowed: BoolArray,
    assign_core: Callable[[IntArray], IntArray | None],
) -> IntArray | None:
    """The states of all nodes, where somebody else knows those of the core; None if he does not.

    The rest is peeled off, and put back last first.
    """
    went = peel(graph_of(matrix).edges, allowed.sum(axis=1))
    core, z = np.flatnonzero(went < 0), np.full(len(allowed), -1)
    if len(core):
        states = assign_core(core)
        if states is None:
            return None
        z[core] = states
    for j in np.argsort(-went, kind="stable")[: len(z) - len(core)].tolist():
        taken = np.isin(np.arange(allowed.shape[1]), z[neighbours_of(matrix, j)])
        z[j] = (allowed[j] & ~taken).argmax()
    return z


def _hard_part(graph: Graph) -> Graph:
    """The cannot-links alone, with weights of one."""
    edges = graph.edges[graph.weights == -np.inf]
    return Graph(graph.n_nodes, edges, np.ones(len(edges)))


def to_blame(matrix: sparse.csr_array, allowed: BoolArray) -> IntArray:
    """Few nodes that cannot be honoured: all but those that are not needed for that."""
    blamed = np.arange(len(allowed))
    for j in range(len(allowed) if len(allowed) <= MAX_BLAMED else 0):
        rest = blamed[blamed != j]
        part = matrix[rest][:, rest]
        core = peel(graph_of(part).edges, allowed[rest].sum(axis=1)) < 0
        if j not in blamed or not core.any():
            continue
        part, lists = part[core][:, core], allowed[rest[core]]
        order, n_steps = np.arange(len(lists)), len(lists) + FIRST_STEPS
        found = colour_in_order(part, with_named_clique(part, lists), order, n_steps)
        if found.complete and found.colours is None:
            blamed = rest[core]
    return blamed


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
