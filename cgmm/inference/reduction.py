"""Make a network smaller before an engine is applied: by mirror images (for K = 2) and by evidence.

The engine ``auto`` begins with these two steps. Chapters 4 and 7 explain them. Both steps are
exact, cheap and independent of the engine. The first depends only on the graph, the second on the
graph and on the *pattern*: the positions of -inf in the unaries. The pattern is the same in every
E-step, so the result of the second step is cached by pattern.

**Mirror images.** With two states, z_a ≠ z_b means that b has the mirrored state of a, so a
cannot-link can be contracted like a must-link. The nodes of a component of cannot-links are
coloured with two colours and contracted into one node, whose state s is that of the first colour;
nodes of the second colour have the other state. No sum over assignments is needed, and two colours
are found in linear time, whereas finding three is NP-complete. Edges of finite log-weight remain
and connect contracted nodes. If the ends of such an edge have different colours, its w is added if
the contracted states *differ*: w [s ≠ s'] = w - w [s = s'], which is a constant and an edge of the
opposite log-weight.

**Evidence.** A label restricts a node to one state. A cannot-link then excludes this state for the
neighbour; an edge of finite log-weight w adds w to the neighbour's log-potential of this state. The
edge has no further effect and is removed. A neighbour with a single remaining state has the same
effect on its own neighbours, which is called arc consistency (Mackworth's algorithm AC-3, 1977, in
rounds). Edges whose ends have no state in common have no effect, so they are removed too. The
resulting network has smaller components. Nodes with one state remain as isolated nodes, whose
inference takes little time. A node that loses all of its states is a contradiction, and the error
shows the steps that lead to it.

=======  ==============================================================================
h        unaries (smaller network, K) including the terms of removed edges, e.g. -1.2
allowed  (n_nodes, K) True if a unary is not -inf: the pattern
domain   (n_nodes, K) True for states that remain; a node with one state is *fixed*
w        log-weight of an edge, e.g. -1.5
j, c     node, e.g. 5; ``node_of[j]`` = c, its contracted node, e.g. 2
p_j      parity: 1 if j has the opposite state of its contracted node, else 0
s        state of a contracted node, e.g. 0: z_j = s xor p_j
=======  ==============================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import NamedTuple, NoReturn

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph, csr_array

from cgmm.inference.feasible import find_two_colours
from cgmm.network import Graph, NetworkError, simplify
from cgmm.network.graph import edge_matrix, keep_cannot_links
from cgmm.numerics import BoolArray, FloatArray, IntArray

__all__ = ["Consistent", "Mirror", "Reduced", "contract_mirrored", "propagate_evidence", "reducer"]


# ------------------------------------------------------------ evidence


# Maximum number of cached patterns of evidence; a fit uses one for the data and one for the prior.
MAX_PATTERNS = 8
# Errors show at most this number of steps at the start of a contradiction, and the same number at
# its end.
SHOWN_STEPS = 4


class Reduced(NamedTuple):
    """A smaller network with the same marginals, and the mapping of its nodes to the whole one."""

    h: FloatArray
    """(n, K) unaries of the smaller network."""
    key: bytes
    """Key of the remaining edges: networks with equal keys and K differ only in their unaries."""
    graph: Graph
    """The smaller network."""
    constant: float
    """Difference between log Z of the whole network and of the smaller one."""
    mirror: Mirror | None
    """Mapping between the nodes of both networks; None if they have the same nodes."""

    def expand_marginals(self, nodes: FloatArray) -> FloatArray:
        """Return the marginals of the whole network, given those of the smaller one."""
        return nodes if self.mirror is None else self.mirror.expand_marginals(nodes)

    def expand_assignment(self, z: IntArray) -> IntArray:
        """Return the assignment of the whole network, given that of the smaller one."""
        return z if self.mirror is None else self.mirror.expand_assignment(z)


def reducer(graph: Graph) -> Callable[[FloatArray], Reduced]:
    """Return a function that reduces a network for given unaries.

    Parameters
    ----------
    graph : Graph
        A simplified graph.

    Returns
    -------
    callable
        Function from unaries (n_nodes, K) to :class:`Reduced`.

    Raises
    ------
    NetworkError
        When called: if one of the steps finds that no joint assignment is possible; the error shows
        the cycle of odd length, or the steps of the contradiction.

    Examples
    --------
    With two states, four nodes in a cycle of cannot-links are contracted into one node:

    >>> ring = Graph(4, np.array([[0, 1], [1, 2], [2, 3], [0, 3]]), np.full(4, -np.inf))
    >>> reduced = reducer(ring)(np.zeros((4, 2)))
    >>> reduced.graph.n_nodes, reduced.h
    (1, array([[0., 0.]]))
    """
    mirrored = cache(lambda: contract_mirrored(graph))

    @lru_cache(maxsize=MAX_PATTERNS)
    def propagate(is_mirrored: bool, n_states: int, pattern: bytes) -> Consistent:
        mirror = mirrored() if is_mirrored else None
        part = graph if mirror is None else mirror.graph
        bits = np.unpackbits(np.frombuffer(pattern, np.uint8), count=part.n_nodes * n_states)
        return propagate_evidence(part, bits.reshape(-1, n_states).astype(bool))

    def reduce(unary: FloatArray) -> Reduced:
        n_states = unary.shape[1]
        mirror = mirrored() if n_states == 2 else None
        h, part, constant = unary, graph, 0.0
        if mirror is not None:
            h, part, constant = mirror.contract_unary(unary), mirror.graph, mirror.constant
            if (h.max(axis=1) == -np.inf).any():
                # The evidence contradicts itself in a contracted node. Run the second step on the
                # whole graph, so that the error can show the steps of the contradiction.
                exclude_states(graph, unary > -np.inf)
        possible = h > -np.inf
        if n_states > 1 and possible.all():
            return Reduced(h, b"", part, constant, mirror)
        left = propagate(mirror is not None, n_states, np.packbits(possible).tobytes())
        key = b"" if left.kept.all() else left.kept.tobytes()
        return Reduced(h + left.addend, key, left.graph, constant + left.constant, mirror)

    return reduce


# ------------------------------------------------------------------------- evidence


class Consistent(NamedTuple):
    """A network with the same nodes and fewer edges, and the contributions of removed edges."""

    graph: Graph
    """Graph of the remaining edges: those between nodes that are not fixed and can be equal."""
    addend: FloatArray
    """(n_nodes, K) contributions of removed edges to the unaries; -inf for excluded states."""
    constant: float
    """Contribution of edges between fixed nodes to log Z."""
    kept: BoolArray
    """(E,) booleans: True for the edges that remain."""


def propagate_evidence(graph: Graph, possible: BoolArray) -> Consistent:
    """Remove the states that evidence excludes, and the edges that then have no effect.

    Parameters
    ----------
    graph : Graph
        A simplified graph.
    possible : (n_nodes, K) bool array
        True for the states that evidence allows for each node, at least one.

    Returns
    -------
    Consistent
        The remaining network, which has the same marginals and, up to a constant, the same log Z.

    Raises
    ------
    NetworkError
        If a node loses all of its states; the error shows the steps of the contradiction.

    Notes
    -----
    The time is O((n_nodes + E) K).

    Examples
    --------
    A path of cannot-links with three states; node 0 has state 0, node 2 has state 0 or 1:

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
    can_be_equal, fixed = common.any(axis=1), domain.sum(axis=1) == 1
    first, second = fixed[graph.edges].T
    kept = can_be_equal & ~first & ~second
    half = np.flatnonzero(can_be_equal & (first ^ second))
    free_end = np.where(first[half], graph.edges[half, 1], graph.edges[half, 0])
    cells = free_end * domain.shape[1] + common[half].argmax(axis=1)
    gained = np.bincount(cells, graph.weights[half], domain.size).reshape(domain.shape)
    return Consistent(
        graph._replace(edges=graph.edges[kept], weights=graph.weights[kept]),
        np.where(domain, gained, -np.inf),
        float(graph.weights[can_be_equal & first & second].sum()),
        kept,
    )


def exclude_states(graph: Graph, allowed: BoolArray) -> BoolArray:
    """Exclude the state of each fixed node for its cannot-linked neighbours, repeatedly.

    Parameters
    ----------
    graph : Graph
        A simplified graph.
    allowed : (n_nodes, K) bool array
        True for the states that the evidence on each node allows.

    Returns
    -------
    (n_nodes, K) bool array
        True for the remaining states. The time is O(n_nodes K + number of edges of fixed nodes).

    Raises
    ------
    NetworkError
        If a node loses all of its states; the error shows the steps of the contradiction.

    Examples
    --------
    A path of cannot-links whose first node is known, with two states and with three:

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
    forbidden = edge_matrix(keep_cannot_links(graph))
    given, rounds = allowed, list[tuple[IntArray, IntArray]]()
    allowed = allowed.copy()
    newly_fixed = np.flatnonzero(allowed.sum(axis=1) == 1)
    while len(newly_fixed):
        rounds.append((newly_fixed, allowed[newly_fixed].argmax(axis=1)))
        rows = forbidden[newly_fixed]
        state = np.repeat(allowed[newly_fixed].argmax(axis=1), np.diff(rows.indptr))
        nodes = np.unique(rows.indices[allowed[rows.indices, state]])
        allowed[rows.indices, state] = False
        n_left = allowed[nodes].sum(axis=1)
        if not n_left.all():
            steps = _trace_contradiction(forbidden, given, rounds, int(nodes[n_left.argmin()]))
            _raise_contradiction(graph, steps, given.shape[1])
        newly_fixed = nodes[n_left == 1]
    return allowed


# ------------------------------------------------------------------- contradictions


class _Step(NamedTuple):
    """Step of a contradiction: a node that was fixed, or that lost its last state."""

    node: int
    """Index of the node."""
    state: int | None
    """Remaining state of the node; None if none remains."""
    by: list[int]
    """Neighbours that excluded the other states of the node."""


def _raise_contradiction(graph: Graph, steps: list[_Step], n_states: int) -> NoReturn:
    """Raise ``NetworkError`` with the steps of a contradiction."""
    names = {step.node: place for place, step in enumerate(steps)}
    shown = [_format_step(step, names) for step in steps]
    if len(shown) > 2 * SHOWN_STEPS:
        shown[SHOWN_STEPS:-SHOWN_STEPS] = [f"... ({len(shown) - 2 * SHOWN_STEPS} steps more)"]
    raise NetworkError(
        f"no joint assignment of {{nodes}} is possible with K = {n_states}: {', '.join(shown)}. "
        "Revise the relations or the evidence.",
        graph.named(np.array(list(names))),
    )


def _trace_contradiction(
    cannot_links: sparse.csr_array,
    allowed: BoolArray,
    rounds: list[tuple[IntArray, IntArray]],
    empty_node: int,
) -> list[_Step]:
    """Return the steps of a contradiction, from the evidence to the node without a state."""
    n_rounds = len(rounds)
    state, when = np.full(len(allowed), -1), np.full(len(allowed), n_rounds)
    for number, (fixed, states) in enumerate(rounds):
        state[fixed], when[fixed] = states, number
    found: dict[int, _Step] = {}
    waiting = [empty_node]
    while waiting:
        node = waiting.pop()
        if node in found:
            continue
        own = -1 if node == empty_node else state[node]
        lost = np.flatnonzero(allowed[node] & (np.arange(allowed.shape[1]) != own))
        near = cannot_links.indices[cannot_links.indptr[node] : cannot_links.indptr[node + 1]]
        near = near[np.argsort(when[near], kind="stable")]
        by = [int(near[state[near] == s][0]) for s in lost]
        found[node] = _Step(node, None if node == empty_node else int(own), by)
        waiting += by
    round_of = lambda step: n_rounds if step.node == empty_node else when[step.node]  # noqa: E731
    return sorted(found.values(), key=round_of)


def _format_step(step: _Step, names: dict[int, int]) -> str:
    """Return one step as text, with placeholders for the names of nodes."""
    left = "no state" if step.state is None else f"only the state {step.state}"
    if not step.by:
        return f"the evidence leaves {{{names[step.node]}}} {left}"
    by = " and ".join(f"{{{names[node]}}}" for node in step.by)
    return f"so {{{names[step.node]}}}, cannot-linked with {by}, has {left}"


# ------------------------------------------------------------ mirror images, for two states


class Mirror(NamedTuple):
    """A contracted network of two states, and functions that map unaries to it and results back."""

    graph: Graph
    """Graph of the contracted nodes, whose edges have finite log-weight."""
    node_of: IntArray
    """(n_nodes,) contracted node of each node."""
    parity: BoolArray
    """(n_nodes,) parity: True if a node has the opposite state of its contracted node."""
    constant: float
    """Sum of the log-weights that every assignment contains, to be added to log Z."""

    def contract_unary(self, unary: FloatArray) -> FloatArray:
        """Return the (n_contracted, 2) unaries of contracted nodes: sums of mirrored unaries."""
        u, n = self._mirror_rows(unary), self.graph.n_nodes
        return np.array([np.bincount(self.node_of, column, n) for column in u.T], dtype=float).T

    def expand_marginals(self, contracted_nodes: FloatArray) -> FloatArray:
        """Return the marginals of all nodes from those (n_contracted, 2) of contracted nodes."""
        return self._mirror_rows(contracted_nodes[self.node_of])

    def expand_assignment(self, contracted_z: IntArray) -> IntArray:
        """Return the states of all nodes from those of the contracted nodes."""
        return contracted_z[self.node_of] ^ self.parity.astype(np.intp)

    def _mirror_rows(self, rows: FloatArray) -> FloatArray:
        """Swap the two columns in the rows of nodes of parity 1."""
        return np.where(self.parity[:, None], rows[:, ::-1], rows)


def contract_mirrored(graph: Graph) -> Mirror | None:
    """Contract nodes that are connected by cannot-links, in a network of two states.

    Parameters
    ----------
    graph : Graph
        A simplified graph, with any edges of finite log-weight.

    Returns
    -------
    Mirror, or None
        The contracted network; None if there is no cannot-link.

    Raises
    ------
    NetworkError
        If cannot-links form a cycle of odd length, which two states cannot satisfy; the error shows
        the cycle.

    Examples
    --------
    Two cannot-links form a path, and a preference connects its ends, which have the same colour:

    >>> path = np.array([[0, 1], [1, 2], [0, 2]])
    >>> mirror = contract_mirrored(Graph(3, path, np.array([-np.inf, -np.inf, 0.7])))
    >>> mirror.graph.n_nodes, mirror.constant, mirror.parity
    (1, 0.7, array([False,  True, False]))
    """
    is_hard = graph.weights == -np.inf
    if not is_hard.any():
        return None
    node_of, parity = _find_two_colouring(keep_cannot_links(graph))
    soft = graph.edges[~is_hard]
    ends, opposite = node_of[soft], parity[soft[:, 0]] != parity[soft[:, 1]]
    inside = ends[:, 0] == ends[:, 1]
    w = graph.weights[~is_hard]
    # Between two contracted nodes, an edge whose ends have opposite colours contributes
    # w [s ≠ s'] = w - w [s = s']. Within one contracted node, an edge contributes w if its ends
    # have the same colour.
    constant = float(w[inside != opposite].sum())
    signed = np.where(opposite, -w, w)[~inside]
    # Errors name a contracted node by the first of its nodes.
    names = graph.named(np.unique(node_of, return_index=True)[1])
    smaller = simplify(Graph(int(node_of.max()) + 1, ends[~inside], signed, names))
    return Mirror(smaller, node_of, parity, constant)


def _find_two_colouring(graph: Graph) -> tuple[IntArray, BoolArray]:
    """Return component and colour of every node, or raise an error that shows an odd cycle."""
    hard = edge_matrix(graph)
    node_of, parity, is_odd = find_two_colours(hard)
    if is_odd.any():
        cycle = np.array(_find_odd_cycle(hard, int(is_odd.argmax())))
        raise NetworkError(
            "no joint assignment of {nodes} is possible with K = 2: cannot-links connect them in a "
            f"cycle of odd length, {_format_chain(len(cycle))} - {{0}}, along which two states "
            "cannot alternate. Use more components, or remove one of these cannot-links.",
            graph.named(cycle),
        )
    return node_of, parity


def _find_odd_cycle(hard: csr_array, start: int) -> list[int]:
    """Find a cycle of odd length in the component of node ``start``; return its nodes in order."""
    order, before = csgraph.breadth_first_order(hard, start, directed=False)
    depth = np.full(hard.shape[0], -1)
    depth[start] = 0
    for v in order[1:].tolist():
        depth[v] = depth[before[v]] + 1
    rows = np.repeat(np.arange(hard.shape[0]), np.diff(hard.indptr))
    level = (depth[rows] == depth[hard.indices]) & (depth[rows] >= 0)
    edge = np.flatnonzero(level)[depth[rows[level]].argmin()]
    left, right = [int(rows[edge])], [int(hard.indices[edge])]
    while left[-1] != right[-1]:
        left.append(int(before[left[-1]]))
        right.append(int(before[right[-1]]))
    return left[::-1] + right[:-1]


def _format_chain(n: int) -> str:
    """Return "{0} - {1} - ..." with n placeholders, without the middle of a long chain."""
    places = [f"{{{i}}}" for i in range(n)]
    if n > 10:
        places[5:-4] = [f"... ({n - 9} more)"]
    return " - ".join(places)
