"""Find the most probable joint assignment, or a good one if that is too costly.

The objective is ``Σ_j unary[j, z_j] + Σ_e w_e [z_a = z_b]``, and no cannot-link and no mask may be
broken. Mixtures call :func:`find_best` for their labels, K-means calls :class:`Finder` at each
iteration, and the Gibbs sampler repairs its starts with ``Descent``. Chapters 10 and 11 explain
this file. Each component is solved by the first of these methods that applies:

1. Give every node its own best state. If this violates no edge, nothing can be better.
2. Use the junction tree, if the component is close to a tree.
3. Use an integer linear program, if it proves an optimum within its budget
   (``solve_program`` in :mod:`~cgmm.inference.feasible`).
4. Improve an assignment by exchanges along Kempe chains until none helps. Broken cannot-links have
   a penalty, which grows until none is broken.

Consider the nodes that have one of two states k and m, and the graph of the cannot-links among
them. Each of its connected components is a *chain*: all its nodes can swap k and m at once without
breaking a cannot-link. A node without cannot-links is a chain by itself.

=======  ==========================================================================
z        (n_nodes,) states, e.g. [0, 2, 1]; K is their number, e.g. 3
costs    (n_nodes, K) cost of each state of a node, e.g. 1.2; zero for its best state
hard     (E, 2) cannot-links, e.g. [[0, 2]]
soft     (n_nodes, n_nodes) finite log-weights, e.g. 1.5
chain    (n_nodes, K) index of the chain in which node j would move to state k, e.g. 7
=======  ==========================================================================
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np
from scipy import sparse

from cgmm.inference.feasible import UNKNOWN, Rng, feasible_assignment, solve_program
from cgmm.inference.junction_tree import junction_tree
from cgmm.network import (
    Graph,
    adjacency,
    check_unary,
    connected_components,
    induced_subgraph,
    log_weight,
    simplify,
)  # fmt: skip
from cgmm.network.graph import keep_cannot_links
from cgmm.numerics import BoolArray, FloatArray, IntArray

__all__ = ["Assignment", "Finder", "find_best"]

# Components are solved by elimination if their largest clique has at most this many joint states.
MAX_STATES = 2**14
# First penalty of a broken cannot-link, as a fraction of the median cost, and number of penalties,
# each twice as large as the one before.
FIRST_PENALTY, N_PENALTIES = 0.25, 10
# A change of the objective below this fraction of the largest cost is a rounding error.
ROUNDING = 1e-12


class Assignment(NamedTuple):
    """A joint assignment that breaks no cannot-link and no mask, and a flag of optimality."""

    states: IntArray
    """(n_nodes,) state of each node."""
    exact: bool
    """True if the assignment is proved to be the most probable one, False if it may not be."""


def find_best(
    graph: Graph, unary: FloatArray, marginals: FloatArray, *, known: IntArray | None = None,
    prove: bool = True, **search: Any,
) -> Assignment:  # fmt: skip
    """Return the most probable assignment, or the best one that a search finds.

    The assignment breaks no cannot-link and no mask.

    Parameters
    ----------
    graph : Graph
        Any graph.
    unary : (n_nodes, K) array
        Unary log-potentials; a state of ``-inf`` is excluded.
    marginals : (n_nodes, K) array
        Marginals from any engine, or any scores that are larger for more likely states. The search
        starts from each node's state of largest score.
    known : (n_nodes,) int array, default=None
        A feasible assignment, from which a second search starts; it is used if the first fails.
    prove : bool, default=True
        Try to prove that the assignment is the most probable one.
    **search
        ``rng``, ``max_search``, ``remedy`` of :func:`cgmm.inference.feasible_assignment`.

    Returns
    -------
    Assignment
        The states, and a flag that is True if they are proved to be the best ones.

    Raises
    ------
    NetworkError
        If it is proved that no assignment satisfies all hard relations; the error names the nodes.
    SearchBudgetError
        If the search ends without an assignment, and without a proof that there is none.
    ValueError
        If a shape does not fit, or a node has no possible state.

    Notes
    -----
    The exchanges are the moves of Wang, Swendsen and Kotecký (1989), restricted to moves that
    improve the objective.

    Examples
    --------
    Both nodes prefer the first state, node 0 more strongly:

    >>> graph = Graph(2, np.array([[0, 1]]), np.array([-np.inf]))
    >>> p = np.array([[0.9, 0.1], [0.6, 0.4]])
    >>> find_best(graph, np.log(p), p)
    Assignment(states=array([0, 1]), exact=True)
    """
    unary = check_unary(graph, unary)
    start = np.where(np.isfinite(unary), marginals, -np.inf).argmax(axis=1)
    return Finder(graph, unary.shape[1], **search).find(unary, start, known, prove=prove)


class Finder:
    """A graph prepared for finding the best assignments for many unaries.

    Parameters
    ----------
    graph : Graph
        Any graph.
    n_states : int
        K.
    **search
        See :func:`find_best`.
    """

    def __init__(self, graph: Graph, n_states: int, **search: Any):
        self.graph, self.label = simplify(graph), connected_components(graph)
        is_narrow = _is_cheap_to_eliminate(self.graph, self.label, n_states)
        self.narrow, self.wide = np.flatnonzero(is_narrow), np.flatnonzero(~is_narrow)
        self.tree = junction_tree(induced_subgraph(self.graph, self.narrow))
        self.search = {"rng": Rng(0)} | search

    def find(
        self, unary: FloatArray, start: IntArray | None, known: IntArray | None, *,
        prove: bool = True,
    ) -> Assignment:  # fmt: skip
        """Return the best assignment found for these unaries.

        Parameters
        ----------
        unary : (n_nodes, K) array
            Log-potentials; every node has a possible state.
        start, known : (n_nodes,) int array or None
            Starts of the search: any assignment, and a feasible one. At least one must be given.
        prove : bool, default=True
            Try to prove that the assignment is the most probable one.

        Returns
        -------
        Assignment
            The states, and a flag that is True if they are proved to be the best.
        """
        z = unary.argmax(axis=1)
        together = np.equal(*z[self.graph.edges.T])
        violated = self.graph.edges[together != (self.graph.weights > 0)]
        must_change = np.isin(self.label, self.label[violated])
        if must_change[self.narrow].any():
            z[self.narrow] = self.tree.most_probable(unary[self.narrow])
        nodes = self.wide[must_change[self.wide]]
        if not len(nodes):
            return Assignment(z, exact=True)
        graph = induced_subgraph(self.graph, nodes)
        descent = Descent(graph, unary[nodes], self.search)
        proof = solve_program(graph, unary[nodes]) if prove else UNKNOWN
        if proof.states is not None and descent.is_feasible(proof.states):
            # The solver stops within a tolerance of the optimum; local search closes the gap.
            z[nodes] = descent.improve(proof.states)
            return Assignment(z, exact=True)
        z[nodes] = descent.descend(*(None if at is None else at[nodes] for at in (start, known)))
        return Assignment(z, exact=False)


def _is_cheap_to_eliminate(graph: Graph, label: IntArray, n_states: int) -> BoolArray:
    """Return (n_nodes,) booleans: True if exact elimination of a node's component is cheap.

    A graph that becomes a tree when c edges are removed has a width of at most c + 1.
    """
    sizes = np.bincount(label)
    n_edges = np.bincount(label[graph.edges[:, 0]], minlength=len(sizes))
    clique = np.minimum(n_edges - sizes + 3, sizes)
    return ((clique * np.log(n_states)) <= np.log(MAX_STATES))[label]


# ------------------------------------------------------------------------- search by exchanges


class Descent:
    """Local search in one graph with fixed unaries, by exchanges of states that lower the cost."""

    def __init__(self, graph: Graph, unary: FloatArray, search: dict[str, Any]):
        self.graph, self.unary, self.search = graph, unary, search
        self.allowed, self.hard = np.isfinite(unary), keep_cannot_links(graph).edges
        # Subtract the largest unary of each node, because a large constant would cost digits.
        self.costs = unary.max(axis=1, keepdims=True) - unary
        soft_only = np.where(graph.weights == -np.inf, 0.0, graph.weights)
        self.soft = adjacency(graph._replace(weights=soft_only))
        top = np.where(self.allowed, self.costs, 0.0).max(axis=1)
        # Penalties of broken cannot-links are multiples of `unit`, the median over nodes of the
        # cost of the worst state. The penalty `prohibitive` exceeds all costs together.
        self.unit = float(np.median(top)) or 1.0
        self.prohibitive = 1.0 + 2 * float(top.sum() + np.abs(self.soft.data).sum())

    def descend(self, start: IntArray | None, known: IntArray | None) -> IntArray:
        """Search from ``start`` and from ``known``; return the better of the two results."""
        starts = [] if known is None or not self.is_feasible(known) else [known]
        if start is not None or not starts:
            start = self.costs.argmin(axis=1) if start is None else start
            starts.append(self.make_feasible(start, *starts))
        return max(map(self.improve, starts), key=partial(log_weight, self.graph, self.unary))

    def is_feasible(self, z: IntArray) -> bool:
        """Return True if an assignment breaks no cannot-link and no mask."""
        return bool(self.allowed[np.arange(len(z)), z].all() and not self._find_broken(z).any())

    def _find_broken(self, z: IntArray) -> BoolArray:
        """Return (E,) booleans: True for the cannot-links that an assignment breaks."""
        return np.equal(*z[self.hard.T])

    def make_feasible(self, z: IntArray, known: IntArray | None = None) -> IntArray:
        """Return a feasible assignment that differs little from z.

        Components that exchanges cannot repair get their states in ``known`` or, if ``known`` is
        None, the result of a search.
        """
        z = self._repair_with_penalties(z)
        label = connected_components(self.graph)
        wrong = np.flatnonzero(np.isin(label, label[self.hard[self._find_broken(z)]]))
        if not len(wrong):
            return z
        if known is None:
            start, n_states = z[wrong], self.allowed.shape[1]
            search = self.search | {"allowed": self.allowed[wrong], "hint": lambda: start}
            found = feasible_assignment(induced_subgraph(self.graph, wrong), n_states, **search)
        else:
            found = known[wrong]
        z = z.copy()
        z[wrong] = found
        return z

    def _repair_with_penalties(self, z: IntArray) -> IntArray:
        """Exchange states, with increasing penalties, until no cannot-link is broken."""
        growing = self.unit * FIRST_PENALTY * 2.0 ** np.arange(N_PENALTIES)
        for penalty in [*growing, *3 * [self.prohibitive]]:
            broken = self._find_broken(z)
            if not broken.any():
                break
            # Replace broken cannot-links by preferences whose log-weight is this penalty.
            softened = Graph(len(z), self.hard[broken], np.full(broken.sum(), -penalty))
            soft = sparse.csr_array(self.soft + adjacency(softened))
            z = swap_states(self.costs, self.hard[~broken], z, soft)
        return z

    def improve(self, z: IntArray) -> IntArray:
        """Return the assignment after exchanges of single nodes and of chains."""
        return swap_states(self.costs, self.hard, z, self.soft)


def swap_states(costs: FloatArray, hard: IntArray, z: IntArray, soft: sparse.csr_array) -> IntArray:
    """Swap states along chains until no swap improves the objective; return the assignment.

    Each round swaps the states of every chain whose gain is larger than the gains of all chains
    that share a node or an edge with it.
    """
    largest = max(np.abs(part).max(initial=0.0) for part in (costs[np.isfinite(costs)], soft.data))
    z = z.copy()
    while True:
        chain = find_kempe_chains(hard, z, costs.shape[1])
        gains = _compute_gains(costs, z, chain, soft)
        improves = gains > ROUNDING * largest * np.bincount(chain.ravel())
        if not improves.any():
            return z
        chosen = _select_separate_chains(chain, np.where(improves, gains, 0.0), hard, soft)
        nodes, others = np.nonzero(chosen[chain])
        z[nodes] = others


def find_kempe_chains(edges: IntArray, z: IntArray, n_states: int) -> IntArray:
    """Return (n_nodes, K) chain indices: the chain in which node j would move to state k.

    If node j of a cannot-link j - i moves to the state of i, then i must move to the state of j, so
    the two moves belong to one chain. The chains are the connected components of a graph whose
    nodes are all n_nodes K moves.
    """
    copies = Graph(len(z) * n_states, edges * n_states + z[edges[:, ::-1]], np.ones(len(edges)))
    return connected_components(copies).reshape(len(z), n_states)


def _compute_gains(
    costs: FloatArray, z: IntArray, chain: IntArray, soft: sparse.csr_array
) -> FloatArray:
    """Return the gain of every chain: the decrease of the cost if all of its nodes move."""
    states, own = np.arange(costs.shape[1]), (np.arange(len(z)), z)
    local = costs - soft @ np.eye(len(states))[z]
    gains: Any = np.bincount(chain.ravel(), (local[own][:, None] - local).ravel())
    # The sum above treats every node as if it moved alone, which is wrong for a preference whose
    # ends j and i are both in the chain. If j moves to k, then i moves too: to k if it had the
    # state of j, and to the state of j if it had state k. Subtract the terms that are wrong.
    j, i = np.repeat(np.arange(len(z)), np.diff(soft.indptr)), soft.indices
    equal, becomes_equal = (z[i] == z[j])[:, None], z[i][:, None] == states
    with_j = chain[i[:, None], np.where(equal, states, z[j][:, None])]
    inside = (equal | becomes_equal) & (chain[j] == with_j)
    alone = soft.data[:, None] * (becomes_equal.astype(float) - equal)
    gains -= np.bincount(chain[j][inside], alone[inside], minlength=len(gains))
    return cast("FloatArray", gains)


def _select_separate_chains(
    chain: IntArray, gains: FloatArray, edges: IntArray, soft: sparse.csr_array
) -> BoolArray:
    """Return booleans: True for chains whose states are swapped in this round.

    Such a chain has a larger gain than all chains with which it shares a node or an edge.
    """
    rank = np.empty(len(gains), dtype=np.intp)
    rank[np.argsort(gains, kind="stable")] = np.arange(len(gains))
    rank[gains <= 0] = -1
    best = rank[chain].max(axis=1)
    largest, (a, b) = best.copy(), np.column_stack([edges.T, soft.tocoo().coords])
    np.maximum.at(largest, a, best[b])
    np.maximum.at(largest, b, best[a])
    met = np.full(len(gains), -1)
    np.maximum.at(met, chain, largest[:, None])
    return cast("BoolArray", (rank >= 0) & (met == rank))
