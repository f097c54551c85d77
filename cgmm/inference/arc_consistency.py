"""What is known of a node, and what its cannot-links make of that: arc consistency. Chapters 7, 10.

A node with one state left takes that state from all with which it is cannot-linked. One of them may
then have one left itself, and so on (Mackworth's algorithm AC-3, 1977, by rounds). No assignment is
lost, only states that none of them uses. A node that loses all of its states is a contradiction,
and the error shows the steps that lead to it.

======  ==============================================================
held    nodes that have one state left since the last round
K       number of states
======  ==============================================================
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from cgmm.inference.colouring import adjacency
from cgmm.network import Graph, NetworkError
from cgmm.numerics import BoolArray, IntArray

# Steps of a contradiction that its message shows, from the first and from the last.
SHOWN_STEPS = 4


def forbidden_pairs(graph: Graph) -> sparse.csr_array:
    """The edges of weight -inf, as a matrix.

    Parameters
    ----------
    graph : Graph
        Any graph.

    Returns
    -------
    (n_nodes, n_nodes) sparse array
        Symmetric, with ones.

    Examples
    --------
    >>> graph = Graph(3, np.array([[0, 1], [1, 2]]), np.array([-np.inf, 2.0]))
    >>> forbidden_pairs(graph).toarray()
    array([[0., 1., 0.],
           [1., 0., 0.],
           [0., 0., 0.]])
    """
    edges = graph.edges[graph.weights == -np.inf]
    return adjacency(Graph(graph.n_nodes, edges, np.ones(len(edges))))


def exclude_states(forbidden: sparse.csr_array, allowed: BoolArray) -> BoolArray:
    """States that are left when each node that has but one has taken it from its neighbours.

    Parameters
    ----------
    forbidden : (n_nodes, n_nodes) sparse array
        Symmetric; which pairs may not be equal.
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

    >>> path = forbidden_pairs(Graph(3, np.array([[0, 1], [1, 2]]), np.full(2, -np.inf)))
    >>> exclude_states(path, np.array([[True, False], [True, True], [True, True]])).astype(int)
    array([[1, 0],
           [0, 1],
           [1, 0]])
    >>> exclude_states(path, np.array([[True, False, False], [True] * 3, [True] * 3])).astype(int)
    array([[1, 0, 0],
           [0, 1, 1],
           [1, 1, 1]])
    """
    given, rounds = allowed, list[tuple[IntArray, IntArray]]()
    allowed = allowed.copy()
    held = np.flatnonzero(allowed.sum(axis=1) == 1)
    while len(held):
        rounds.append((held, allowed[held].argmax(axis=1)))
        rows = forbidden[held]
        state = np.repeat(allowed[held].argmax(axis=1), np.diff(rows.indptr))
        loses = allowed[rows.indices, state]
        nodes, state = rows.indices[loses], state[loses]
        allowed[nodes, state] = False
        nodes = np.unique(nodes)
        n_left = allowed[nodes].sum(axis=1)
        if not n_left.all():
            _refuse(forbidden, given, rounds, int(nodes[n_left.argmin()]))
        held = nodes[n_left == 1]
    return allowed


# ------------------------------------------------------------------- contradictions


class _Step(NamedTuple):
    """A node, what it is left with, and the neighbours by whom."""

    node: int
    state: int | None
    by: list[int]


def _refuse(
    forbidden: sparse.csr_array,
    given: BoolArray,
    rounds: list[tuple[IntArray, IntArray]],
    clash: int,
) -> None:
    """Show how the evidence leads to a node without a state."""
    steps = _steps(forbidden, given, rounds, clash)
    names = {step.node: place for place, step in enumerate(steps)}
    shown = [_show(step, names) for step in steps]
    if len(shown) > 2 * SHOWN_STEPS:
        shown[SHOWN_STEPS:-SHOWN_STEPS] = [f"... ({len(shown) - 2 * SHOWN_STEPS} steps more)"]
    raise NetworkError(
        f"no joint assignment of {{nodes}} is possible with K = {given.shape[1]}: "
        f"{', '.join(shown)}. Revise the relations or the evidence.",
        np.array(list(names)),
    )


def _steps(
    forbidden: sparse.csr_array,
    given: BoolArray,
    rounds: list[tuple[IntArray, IntArray]],
    clash: int,
) -> list[_Step]:
    """Everything that the clash follows from, in the order in which it was found."""
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
    """One step, the nodes as places for their names."""
    left = "no state" if step.state is None else f"only the state {step.state}"
    if not step.by:
        return f"the evidence leaves {{{names[step.node]}}} {left}"
    by = " and ".join(f"{{{names[node]}}}" for node in step.by)
    return f"so {{{names[step.node]}}}, cannot-linked with {by}, has {left}"
