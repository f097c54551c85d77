"""A network made smaller before any engine sees it: by two states, and by evidence. Chapters 4, 7.

Both steps are exact, cheap and independent of the engine. The first depends on the graph alone
(:mod:`cgmm.inference.mirror`), the second on the graph and on which log-potentials are -inf; what
is found for such a pattern is kept, since the same comes back at every E-step.

A label leaves a node one state. Over a cannot-link its neighbours lose that state, over an edge of
weight w they gain w there; the edge has said all it can and goes. A neighbour that has but one
state left passes it on in turn: arc consistency (Mackworth's algorithm AC-3, 1977, by rounds). So
does every edge go whose ends have no state in common: it never acts. What is left falls apart into
smaller components. Nodes with one state stay where they are, without edges: engines answer them at
no cost. A node that loses all of its states is a contradiction, and the error shows the steps that
lead to it.

=======  ======================================================================
h        unaries (smaller network, K) with all that the edges now gone have said
allowed  (n_nodes, K) which of them are not -inf: the pattern
domain   (n_nodes, K) states that are left; a node with one is *fixed*
held     nodes that have one state left since the last round
w        log-weight of an edge
=======  ======================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import NamedTuple, NoReturn

import numpy as np
from scipy import sparse

from cgmm.inference.mirror import Mirror, contract_mirrored
from cgmm.network import Graph, NetworkError
from cgmm.network.graph import edge_matrix, hard_part
from cgmm.numerics import BoolArray, FloatArray, IntArray

__all__ = ["Consistent", "Reduced", "propagate_evidence", "reducer"]

# Patterns of evidence that are remembered: those of the data and of the prior, and a few more.
MAX_PATTERNS = 8
# Steps of a contradiction that its message shows, from the first and from the last.
SHOWN_STEPS = 4


class Reduced(NamedTuple):
    """A smaller network with the same answers, and the way back."""

    h: FloatArray
    """Its unaries."""
    key: bytes
    """Tells which edges are left: networks of one key and K differ in their unaries only."""
    graph: Graph
    constant: float
    """To be added to its log Z."""
    mirror: Mirror | None

    def leave(self, nodes: FloatArray) -> FloatArray:
        """Turn its marginals into those of the whole network."""
        return nodes if self.mirror is None else self.mirror.leave(nodes)

    def trace_back(self, z: IntArray) -> IntArray:
        """Turn an assignment of it into one of the whole network."""
        return z if self.mirror is None else self.mirror.trace_back(z)


def reducer(graph: Graph) -> Callable[[FloatArray], Reduced]:
    """Prepare a graph: the function returned takes unaries to a smaller network.

    Parameters
    ----------
    graph : Graph
        Simplified.

    Returns
    -------
    callable
        From unaries (n_nodes, K) to :class:`Reduced`.

    Raises
    ------
    NetworkError
        When called: if no joint assignment is possible, as far as the two steps tell; the cycle or
        the chain that clashes is shown.

    Examples
    --------
    Four nodes in a ring of cannot-links are one node, when there are two states:

    >>> ring = Graph(4, np.array([[0, 1], [1, 2], [2, 3], [0, 3]]), np.full(4, -np.inf))
    >>> reduced = reducer(ring)(np.zeros((4, 2)))
    >>> reduced.graph.n_nodes, reduced.h
    (1, array([[0., 0.]]))
    """
    mirrored = cache(lambda: contract_mirrored(graph))

    @lru_cache(maxsize=MAX_PATTERNS)
    def consistent(inner: int, n_states: int, pattern: bytes) -> Consistent:
        of_two = mirrored() if inner else None
        part = graph if of_two is None else of_two.graph
        bits = np.unpackbits(np.frombuffer(pattern, np.uint8), count=part.n_nodes * n_states)
        return propagate_evidence(part, bits.reshape(-1, n_states).astype(bool))

    def reduce(unary: FloatArray) -> Reduced:
        n_states = unary.shape[1]
        mirror = mirrored() if n_states == 2 else None
        h, part, constant = unary, graph, 0.0
        if mirror is not None:
            h, part, constant = mirror.enter(unary), mirror.graph, mirror.constant
            if (h.max(axis=1) == -np.inf).any():
                # Two members that evidence pins to different colours: the whole shows the way.
                exclude_states(graph, unary > -np.inf)
        possible = h > -np.inf
        if n_states > 1 and possible.all():
            return Reduced(h, b"", part, constant, mirror)
        left = consistent(mirror is not None, n_states, np.packbits(possible).tobytes())
        key = b"" if left.kept.all() else left.kept.tobytes()
        return Reduced(h + left.addend, key, left.graph, constant + left.constant, mirror)

    return reduce


# ------------------------------------------------------------------------- evidence


class Consistent(NamedTuple):
    """The same nodes with fewer edges, and what the others have said."""

    graph: Graph
    """Edges that can still act, between nodes that are not fixed."""
    addend: FloatArray
    """(n_nodes, K) what the edges that are gone add to the unaries; -inf for states lost."""
    constant: float
    """What edges between fixed nodes add to log Z."""
    kept: BoolArray
    """(E,) which edges are left."""


def propagate_evidence(graph: Graph, possible: BoolArray) -> Consistent:
    """Remove what evidence has decided, with all its consequences.

    Parameters
    ----------
    graph : Graph
        Simplified.
    possible : (n_nodes, K) bool array
        States that evidence leaves to each node, at least one.

    Returns
    -------
    Consistent
        The network that is left: the same marginals, and the same log Z but for a constant.

    Raises
    ------
    NetworkError
        If a node loses all of its states; the chain from the evidence to it is shown.

    Notes
    -----
    O((n_nodes + E) K) in all.

    Examples
    --------
    A path of cannot-links with three states; node 0 is in state 0, node 2 in state 0 or 1:

    >>> path = Graph(3, np.array([[0, 1], [1, 2]]), np.full(2, -np.inf))
    >>> left = propagate_evidence(path, np.array([[1, 0, 0], [0, 1, 1], [1, 1, 0]], dtype=bool))
    >>> left.graph.edges
    array([[1, 2]])
    >>> left = propagate_evidence(path, np.array([[1, 0, 0], [1, 0, 1], [1, 1, 0]], dtype=bool))
    >>> len(left.graph.edges)
    0
    """
    domain = exclude_states(graph, possible)
    common = domain[graph.edges[:, 0]] & domain[graph.edges[:, 1]]
    acts, fixed = common.any(axis=1), domain.sum(axis=1) == 1
    first, second = fixed[graph.edges].T
    kept = acts & ~first & ~second
    said = np.flatnonzero(acts & (first ^ second))
    listener = np.where(first[said], graph.edges[said, 1], graph.edges[said, 0])
    cells = listener * domain.shape[1] + common[said].argmax(axis=1)
    gained = np.bincount(cells, graph.weights[said], domain.size).reshape(domain.shape)
    return Consistent(
        graph._replace(edges=graph.edges[kept], weights=graph.weights[kept]),
        np.where(domain, gained, -np.inf),
        float(graph.weights[acts & first & second].sum()),
        kept,
    )


def exclude_states(graph: Graph, allowed: BoolArray) -> BoolArray:
    """Return the states left when each node with one state has excluded it from its neighbours.

    Parameters
    ----------
    graph : Graph
        Simplified.
    allowed : (n_nodes, K) bool array
        The states that a node may have by itself.

    Returns
    -------
    (n_nodes, K) bool array
        The states left, in O(n_nodes K) and the edges of the nodes that end with one.

    Raises
    ------
    NetworkError
        If a node is left with none: the steps from the evidence to it are shown.

    Examples
    --------
    A path whose first node is known, of two states; then the same with a third:

    >>> path = Graph(3, np.array([[0, 1], [1, 2]]), np.full(2, -np.inf))
    >>> exclude_states(path, np.array([[True, False], [True, True], [True, True]])).astype(int)
    array([[1, 0],
           [0, 1],
           [1, 0]])
    >>> exclude_states(path, np.array([[True, False, False], [True] * 3, [True] * 3])).astype(int)
    array([[1, 0, 0],
           [0, 1, 1],
           [1, 1, 1]])
    """
    forbidden = edge_matrix(hard_part(graph))
    given, rounds = allowed, list[tuple[IntArray, IntArray]]()
    allowed = allowed.copy()
    held = np.flatnonzero(allowed.sum(axis=1) == 1)
    while len(held):
        rounds.append((held, allowed[held].argmax(axis=1)))
        rows = forbidden[held]
        state = np.repeat(allowed[held].argmax(axis=1), np.diff(rows.indptr))
        nodes = np.unique(rows.indices[allowed[rows.indices, state]])
        allowed[rows.indices, state] = False
        n_left = allowed[nodes].sum(axis=1)
        if not n_left.all():
            steps = _steps(forbidden, given, rounds, int(nodes[n_left.argmin()]))
            _refuse(graph, steps, given.shape[1])
        held = nodes[n_left == 1]
    return allowed


# ------------------------------------------------------------------- contradictions


class _Step(NamedTuple):
    """A node, what it is left with, and the neighbours by whom."""

    node: int
    state: int | None
    by: list[int]


def _refuse(graph: Graph, steps: list[_Step], n_states: int) -> NoReturn:
    """Raise an error that shows how the evidence leads to a node without a state."""
    names = {step.node: place for place, step in enumerate(steps)}
    shown = [_show(step, names) for step in steps]
    if len(shown) > 2 * SHOWN_STEPS:
        shown[SHOWN_STEPS:-SHOWN_STEPS] = [f"... ({len(shown) - 2 * SHOWN_STEPS} steps more)"]
    raise NetworkError(
        f"no joint assignment of {{nodes}} is possible with K = {n_states}: {', '.join(shown)}. "
        "Revise the relations or the evidence.",
        graph.named(np.array(list(names))),
    )


def _steps(
    forbidden: sparse.csr_array,
    given: BoolArray,
    rounds: list[tuple[IntArray, IntArray]],
    clash: int,
) -> list[_Step]:
    """Return all steps that lead to the contradiction, in the order in which they were found."""
    n_rounds = len(rounds)
    state, when = np.full(len(given), -1), np.full(len(given), n_rounds)
    for number, (fixed, states) in enumerate(rounds):
        state[fixed], when[fixed] = states, number
    found: dict[int, _Step] = {}
    waiting = [clash]
    while waiting:
        node = waiting.pop()
        if node in found:
            continue
        own = -1 if node == clash else state[node]
        lost = np.flatnonzero(given[node] & (np.arange(given.shape[1]) != own))
        near = forbidden.indices[forbidden.indptr[node] : forbidden.indptr[node + 1]]
        near = near[np.argsort(when[near], kind="stable")]
        by = [int(near[state[near] == s][0]) for s in lost]
        found[node] = _Step(node, None if node == clash else int(own), by)
        waiting += by
    last = lambda step: n_rounds if step.node == clash else when[step.node]  # noqa: E731
    return sorted(found.values(), key=last)


def _show(step: _Step, names: dict[int, int]) -> str:
    """Return the text of one step, with placeholders for node names."""
    left = "no state" if step.state is None else f"only the state {step.state}"
    if not step.by:
        return f"the evidence leaves {{{names[step.node]}}} {left}"
    by = " and ".join(f"{{{names[node]}}}" for node in step.by)
    return f"so {{{names[step.node]}}}, cannot-linked with {by}, has {left}"
