"""The most probable joint assignment, or the best that can be found: labels of fits, and K-means.

The objective is ``Σ_j unary[j, z_j] + Σ_e w_e [z_a = z_b]``; no cannot-link and no mask may be
broken. Mixtures call :func:`find_best` for their labels, K-means calls :class:`Finder` at each
iteration, and the Gibbs sampler repairs its starts by ``Descent``. Each component is solved by
the first of these that applies:

1. every node is in its own best state, and no edge would change that: nothing is better;
2. the component has few cycles: the junction tree gives the most probable assignment;
3. an integer linear program, if it is proved within its budget
   (``solve`` in :mod:`~cgmm.inference.feasible`);
4. descent by exchanges along Kempe chains. Cannot-links that are broken at the start weigh little
   at first and then more and more; in the end nothing is broken, and no exchange helps.

Take two states k and m, and the graph of the cannot-links among their nodes. Each of its connected
components is a *chain*: its nodes can exchange k for m and m for k, all at once, and no cannot-link
is broken. A node without cannot-links is a chain by itself. Chapters 10 and 11.

=======  =====================================================================
z        (n_nodes,) states; K is their number
costs    (n_nodes, K) cost of each state of a node: zero for its best state
hard     (E, 2) cannot-links;  soft  (n_nodes, n_nodes) finite log-weights
chain    (n_nodes, K) the chain of node j for another state k than its own
=======  =====================================================================
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np
from scipy import sparse

from cgmm.inference.feasible import UNKNOWN, Rng, feasible_assignment, solve
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
from cgmm.network.graph import hard_part
from cgmm.numerics import BoolArray, FloatArray, IntArray

__all__ = ["Assignment", "Finder", "find_best"]

# Components whose largest clique has at most this many joint states are solved by elimination.
MAX_STATES = 2**14
# The first weight of a broken cannot-link, as a share of the median cost of a state; it doubles.
FIRST_WEIGHT, N_WEIGHTS = 0.25, 10
# A change of the objective below this share of the largest cost is rounding, not progress.
ROUNDING = 1e-12


class Assignment(NamedTuple):
    """A joint assignment that breaks no cannot-link and no mask."""

    states: IntArray
    """(n_nodes,) the state of each node."""
    exact: bool
    """Whether it is known to be most probable; otherwise it is the best that was found."""


def find_best(
    graph: Graph, unary: FloatArray, marginals: FloatArray, *, known: IntArray | None = None,
    prove: bool = True, **search: Any,
) -> Assignment:  # fmt: skip
    """Find the most probable assignment, or the best that a search finds; it breaks nothing hard.

    Parameters
    ----------
    graph : Graph
        Any graph.
    unary : (n_nodes, K) array
        Unary log-potentials; a state of ``-inf`` is not taken.
    marginals : (n_nodes, K) array
        Probabilities of the states by some engine, or any scores that are larger where a state is
        more likely. The descent begins at their largest.
    known : (n_nodes,) int array, default=None
        An assignment that breaks nothing: another start, and a fallback if the search fails.
    prove : bool, default=True
        Whether to try to prove the optimum.
    **search
        ``rng``, ``max_search``, ``remedy`` of :func:`cgmm.inference.feasible_assignment`.

    Returns
    -------
    Assignment
        The states, and whether they are known to be the best.

    Raises
    ------
    NetworkError
        If it is proved that no assignment honours all hard relations; nodes to blame are named.
    SearchBudgetError
        If no assignment was found within the budget, and none was refuted.
    ValueError
        If a shape does not fit, or a node has no possible state.

    Notes
    -----
    The exchanges are the moves of Wang, Swendsen and Kotecký (1989), taken where they gain.

    Examples
    --------
    Both would rather have the first state, node 0 more so:

    >>> graph = Graph(2, np.array([[0, 1]]), np.array([-np.inf]))
    >>> p = np.array([[0.9, 0.1], [0.6, 0.4]])
    >>> find_best(graph, np.log(p), p)
    Assignment(states=array([0, 1]), exact=True)
    """
    unary = check_unary(graph, unary)
    near = np.where(np.isfinite(unary), marginals, -np.inf).argmax(axis=1)
    return Finder(graph, unary.shape[1], **search).find(unary, near, known, prove=prove)


class Finder:
    """The work on the structure, done once for many unaries.

    Parameters
    ----------
    graph : Graph
        Any graph.
    n_states : int
        K.
    **search
        As in :func:`find_best`.
    """

    def __init__(self, graph: Graph, n_states: int, **search: Any):
        self.graph, self.label = simplify(graph), connected_components(graph)
        has_few_cycles = _few_cycles(self.graph, self.label, n_states)
        self.narrow, self.wide = np.flatnonzero(has_few_cycles), np.flatnonzero(~has_few_cycles)
        self.tree = junction_tree(induced_subgraph(self.graph, self.narrow))
        self.search = {"rng": Rng(0)} | search

    def find(
        self, unary: FloatArray, near: IntArray | None, known: IntArray | None, *,
        prove: bool = True,
    ) -> Assignment:  # fmt: skip
        """Find the best assignment for these unaries, from ``near`` or else from ``known``.

        Parameters
        ----------
        unary : (n_nodes, K) array
            Log-potentials; every node has a state.
        near, known : (n_nodes,) int array or None
            An assignment to begin at, and one that breaks nothing. At least one is given.
        prove : bool, default=True
            Whether to try to prove the optimum.

        Returns
        -------
        Assignment
            The states, and whether they are known to be the best.
        """
        z = unary.argmax(axis=1)
        together = np.equal(*z[self.graph.edges.T])
        unhappy = self.graph.edges[together != (self.graph.weights > 0)]
        clashes = np.isin(self.label, self.label[unhappy])
        if clashes[self.narrow].any():
            z[self.narrow] = self.tree.most_probable(unary[self.narrow])
        nodes = self.wide[clashes[self.wide]]
        if not len(nodes):
            return Assignment(z, exact=True)
        graph = induced_subgraph(self.graph, nodes)
        descent = Descent(graph, unary[nodes], self.search)
        proof = solve(graph, unary[nodes]) if prove else UNKNOWN
        if proof.states is not None and descent.honours(proof.states):
            # The program rounds: a descent gains what rounding has left.
            z[nodes] = descent.improve(proof.states)
            return Assignment(z, exact=True)
        z[nodes] = descent.best(*(None if at is None else at[nodes] for at in (near, known)))
        return Assignment(z, exact=False)


def _few_cycles(graph: Graph, label: IntArray, n_states: int) -> BoolArray:
    """Return, for each node, whether its component is so close to a tree that elimination is cheap.

    A graph that becomes a tree when c edges are removed has a width of at most c + 1.
    """
    sizes = np.bincount(label)
    n_edges = np.bincount(label[graph.edges[:, 0]], minlength=len(sizes))
    clique = np.minimum(n_edges - sizes + 3, sizes)
    return ((clique * np.log(n_states)) <= np.log(MAX_STATES))[label]


# --------------------------------------------------------------------------------------- descent


class Descent:
    """Exchanges in one graph at given unaries."""

    def __init__(self, graph: Graph, unary: FloatArray, search: dict[str, Any]):
        self.graph, self.unary, self.search = graph, unary, search
        self.allowed, self.hard = np.isfinite(unary), hard_part(graph).edges
        # A constant added to all states of a node changes nothing but would cost digits.
        self.costs = unary.max(axis=1, keepdims=True) - unary
        soft_only = np.where(graph.weights == -np.inf, 0.0, graph.weights)
        self.soft = adjacency(graph._replace(weights=soft_only))
        top = np.where(self.allowed, self.costs, 0.0).max(axis=1)
        # The median cost of a worst state, and more than all costs together.
        self.unit = float(np.median(top)) or 1.0
        self.prohibitive = 1.0 + 2 * float(top.sum() + np.abs(self.soft.data).sum())

    def best(self, near: IntArray | None, known: IntArray | None) -> IntArray:
        """Return the better end of two descents, one from ``near`` and one from ``known``."""
        starts = [] if known is None or not self.honours(known) else [known]
        if near is not None or not starts:
            near = self.costs.argmin(axis=1) if near is None else near
            starts.append(self.honour(near, *starts))
        return max(map(self.improve, starts), key=partial(log_weight, self.graph, self.unary))

    def honours(self, z: IntArray) -> bool:
        """Return whether an assignment breaks no cannot-link and no mask."""
        return bool(self.allowed[np.arange(len(z)), z].all() and not self._broken(z).any())

    def _broken(self, z: IntArray) -> BoolArray:
        """Return which cannot-links an assignment breaks."""
        return np.equal(*z[self.hard.T])

    def honour(self, z: IntArray, known: IntArray | None = None) -> IntArray:
        """Return an assignment near z that breaks no cannot-link; ``known`` where that fails."""
        z = self._mend(z)
        label = connected_components(self.graph)
        wrong = np.flatnonzero(np.isin(label, label[self.hard[self._broken(z)]]))
        if not len(wrong):
            return z
        if known is None:
            part, allowed = induced_subgraph(self.graph, wrong), self.allowed[wrong]
            near, options = z[wrong], self.search
            found = feasible_assignment(
                part, allowed.shape[1], allowed=allowed, hint=lambda: near, **options
            )
        else:
            found = known[wrong]
        z = z.copy()
        z[wrong] = found
        return z

    def _mend(self, z: IntArray) -> IntArray:
        """Descend while the weight of broken cannot-links grows, until none is broken."""
        growing = self.unit * FIRST_WEIGHT * 2.0 ** np.arange(N_WEIGHTS)
        for weight in [*growing, *3 * [self.prohibitive]]:
            broken = self._broken(z)
            if not broken.any():
                break
            # Broken cannot-links become preferences to differ, of this weight.
            mended = Graph(len(z), self.hard[broken], np.full(broken.sum(), -weight))
            soft = sparse.csr_array(self.soft + adjacency(mended))
            z = exchange(self.costs, self.hard[~broken], z, soft)
        return z

    def improve(self, z: IntArray) -> IntArray:
        """Descend by exchanges of single nodes and of chains."""
        return exchange(self.costs, self.hard, z, self.soft)


def exchange(costs: FloatArray, edges: IntArray, z: IntArray, soft: sparse.csr_array) -> IntArray:
    """Descend by exchanges along chains until none lowers the objective.

    Each round moves all chains that gain more than any chain that shares a node with them, or that
    a preference connects to them.
    """
    largest = max(np.abs(part).max(initial=0.0) for part in (costs[np.isfinite(costs)], soft.data))
    z = z.copy()
    while True:
        chain = kempe_chains(edges, z, costs.shape[1])
        gains = _gains(costs, z, chain, soft)
        improves = gains > ROUNDING * largest * np.bincount(chain.ravel())
        if not improves.any():
            return z
        chosen = _separate_chains(chain, np.where(improves, gains, 0.0), edges, soft)
        nodes, others = np.nonzero(chosen[chain])
        z[nodes] = others


def kempe_chains(edges: IntArray, z: IntArray, n_states: int) -> IntArray:
    """Return, as (n_nodes, K), the number of the chain in which node j would move to state k.

    A cannot-link joins the chain of one end for the other's state with that of the other end for
    the state of the first: all chains are the connected components of a graph of n_nodes K copies.
    """
    copies = Graph(len(z) * n_states, edges * n_states + z[edges[:, ::-1]], np.ones(len(edges)))
    return connected_components(copies).reshape(len(z), n_states)


def _gains(costs: FloatArray, z: IntArray, chain: IntArray, soft: sparse.csr_array) -> FloatArray:
    """Return, for every chain, by how much the objective falls when all of its nodes move."""
    states, own = np.arange(costs.shape[1]), (np.arange(len(z)), z)
    local = costs - soft @ np.eye(len(states))[z]
    gains: Any = np.bincount(chain.ravel(), (local[own][:, None] - local).ravel())
    # If both ends j and i of a preference are in the chain, the sum above counted gains as if j
    # moved alone. But when j moves to k, a node equal to j moves there too, and a node in k moves
    # to the state of j.
    j, i = np.repeat(np.arange(len(z)), np.diff(soft.indptr)), soft.indices
    equal, becomes_equal = (z[i] == z[j])[:, None], z[i][:, None] == states
    with_j = chain[i[:, None], np.where(equal, states, z[j][:, None])]
    inside = (equal | becomes_equal) & (chain[j] == with_j)
    alone = soft.data[:, None] * (becomes_equal.astype(float) - equal)
    gains -= np.bincount(chain[j][inside], alone[inside], minlength=len(gains))
    return cast("FloatArray", gains)


def _separate_chains(
    chain: IntArray, gains: FloatArray, edges: IntArray, soft: sparse.csr_array
) -> BoolArray:
    """Return which chains gain more than any other that shares a node or an edge with them."""
    rank = np.empty(len(gains), dtype=np.intp)
    rank[np.argsort(gains, kind="stable")] = np.arange(len(gains))
    rank[gains <= 0] = -1
    best = rank[chain].max(axis=1)
    near, (a, b) = best.copy(), np.column_stack([edges.T, soft.tocoo().coords])
    np.maximum.at(near, a, best[b])
    np.maximum.at(near, b, best[a])
    met = np.full(len(gains), -1)
    np.maximum.at(met, chain, near[:, None])
    return cast("BoolArray", (rank >= 0) & (met == rank))
