"""The best joint assignment that can be found: the labels of a fit, and K-means. Chapters 10, 11.

It is asked for the largest ``Σ_j unary[j, z_j] + Σ_e w_e [z_a = z_b]``, and no cannot-link and no
mask may be broken. Each component takes the first way that is open to it:

1. every node has its own best state, and no edge minds: nothing is better;
2. few cycles: the junction tree tells the most probable assignment;
3. an integer linear program, where it is proved in its budget
   (:mod:`~cgmm.inference.integer_program`);
4. downhill by exchanges along Kempe chains (:mod:`~cgmm.inference.exchange`). Cannot-links that are
   broken at the start weigh little at first and then more and more; in the end nothing is broken,
   and no exchange helps.

=======  =====================================================================
z        (n_nodes,) states; K how many there are
costs    (n_nodes, K) what a node's state costs: zero is its best alone
hard     (E, 2) cannot-links;  soft  (n_nodes, n_nodes) finite log-weights
=======  =====================================================================
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from cgmm.inference.colouring import adjacency, hard_part
from cgmm.inference.exchange import exchange
from cgmm.inference.feasible import Rng, feasible_assignment
from cgmm.inference.integer_program import UNKNOWN, solve
from cgmm.inference.junction_tree import junction_tree
from cgmm.network import (
    Graph,
    check_unary,
    connected_components,
    induced_subgraph,
    log_weight,
    simplify,
)  # fmt: skip
from cgmm.numerics import BoolArray, FloatArray, IntArray

__all__ = ["Assignment", "Finder", "find_best"]

# Components whose largest clique has at most so many joint states are solved by elimination.
MAX_STATES = 2**14
# A broken cannot-link first weighs that share of what a state costs as a rule, then twice, ...
FIRST_WEIGHT, N_WEIGHTS = 0.25, 10


class Assignment(NamedTuple):
    """A joint assignment that breaks no cannot-link and no mask."""

    states: IntArray
    """(n_nodes,) the state of each node."""
    exact: bool
    """Whether it is known to be a most probable one; otherwise it is the best that was found."""


def find_best(
    graph: Graph,
    unary: FloatArray,
    marginals: FloatArray,
    *,
    known: IntArray | None = None,
    prove: bool = True,
    **search: Any,
) -> Assignment:
    """The most probable assignment, or the best that is found; it honours all that is hard.

    Parameters
    ----------
    graph : Graph
        Any graph.
    unary : (n_nodes, K) array
        Unary log-potentials; a state of ``-inf`` is not taken.
    marginals : (n_nodes, K) array
        Probabilities of the states by some engine, or anything else that is larger where a state is
        more likely: where the descent begins.
    known : (n_nodes,) int array, default=None
        An assignment that breaks nothing, as another start, and for where the search finds none.
    prove : bool, default=True
        Whether a proof of the optimum is tried.
    **search
        ``rng``, ``max_search``, ``remedy`` of :func:`cgmm.inference.feasible_assignment`.

    Returns
    -------
    Assignment
        The states, and whether they are known to be the best.

    Raises
    ------
    NetworkError
        If no assignment honours all that is hard: that is proved, and nodes to blame are named.
    SearchBudgetError
        If none was found in the budget, and that there is none was not proved.
    ValueError
        If a shape does not fit, or a node has no state.

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
    """The work on the structure, for many unaries.

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
        cheap = _few_cycles(self.graph, self.label, n_states)
        self.cheap, self.wide = np.flatnonzero(cheap), np.flatnonzero(~cheap)
        self.tree = junction_tree(induced_subgraph(self.graph, self.cheap))
        self.search = {"rng": Rng(0)} | search

    def find(
        self, unary: FloatArray, near: IntArray | None, known: IntArray | None, *,
        prove: bool = True,
    ) -> Assignment:  # fmt: skip
        """The best assignment for these unaries; without ``near`` the descent begins at ``known``.

        Parameters
        ----------
        unary : (n_nodes, K) array
            Log-potentials; every node has a state.
        near, known : (n_nodes,) int array or None
            Where to begin; what breaks nothing. One at least is given.
        prove : bool, default=True
            Whether a proof is tried.

        Returns
        -------
        Assignment
            The states, and whether they are known to be the best.
        """
        z = unary.argmax(axis=1)
        clashes = np.isin(self.label, np.unique(self.label[_discontent(self.graph, z)]))
        if clashes[self.cheap].any():
            z[self.cheap] = self.tree.most_probable(unary[self.cheap])
        nodes = self.wide[clashes[self.wide]]
        if not len(nodes):
            return Assignment(z, exact=True)
        graph, starts = induced_subgraph(self.graph, nodes), [near, known]
        descent = Descent(graph, unary[nodes], self.search)
        proof = solve(graph, unary[nodes]) if prove else UNKNOWN
        if proof.states is not None and descent.honours(proof.states):
            # What rounding in the program has left to be gained.
            z[nodes] = descent.improve(proof.states)
            return Assignment(z, exact=True)
        z[nodes] = descent.best(*(start if start is None else start[nodes] for start in starts))
        return Assignment(z, exact=False)


def _discontent(graph: Graph, z: IntArray) -> IntArray:
    """Nodes whose edges would rather have another assignment."""
    together = z[graph.edges[:, 0]] == z[graph.edges[:, 1]]
    return graph.edges[together != (graph.weights > 0)].ravel()


def _few_cycles(graph: Graph, label: IntArray, n_states: int) -> BoolArray:
    """(n_nodes,) whether a node's component is so near a tree that elimination costs little.

    A graph from which c edges can be removed to leave a tree has a width of at most c + 1.
    """
    sizes = np.bincount(label)
    n_edges = np.bincount(label[graph.edges[:, 0]], minlength=len(sizes))
    clique = np.minimum(n_edges - sizes + 3, sizes)
    return ((clique * np.log(n_states)) <= np.log(MAX_STATES))[label]


class Descent:
    """Exchanges in one graph at given unaries."""

    def __init__(self, graph: Graph, unary: FloatArray, search: dict[str, Any]):
        self.search, self.unary = search, unary
        self.graph, self.allowed, self.hard = graph, np.isfinite(unary), hard_part(graph).edges
        # What a node pays in every state decides nothing, but would cost digits.
        self.costs = unary.max(axis=1, keepdims=True) - unary
        soft_only = np.where(graph.weights == -np.inf, 0.0, graph.weights)
        self.soft = adjacency(graph._replace(weights=soft_only))
        top = np.where(self.allowed, self.costs, 0.0).max(axis=1)
        # What a state costs as a rule, and more than all costs together.
        self.unit = float(np.median(top)) or 1.0
        self.dear = 1.0 + 2 * float(top.sum() + np.abs(self.soft.data).sum())

    def best(self, near: IntArray | None, known: IntArray | None) -> IntArray:
        """The better end of the descents from what is near and what is known."""
        starts = [] if known is None or not self.honours(known) else [known]
        if near is not None or not starts:
            near = self.costs.argmin(axis=1) if near is None else near
            starts.append(self.honour(near, *starts))
        value = partial(log_weight, self.graph, self.unary)
        return max(map(self.improve, starts), key=value)

    def honours(self, z: IntArray) -> bool:
        """Whether an assignment breaks no cannot-link and no mask."""
        return bool(self.allowed[np.arange(len(z)), z].all() and not self._broken(z).any())

    def _broken(self, z: IntArray) -> BoolArray:
        """(E,) which cannot-links an assignment breaks."""
        return z[self.hard[:, 0]] == z[self.hard[:, 1]]

    def honour(self, z: IntArray, known: IntArray | None = None) -> IntArray:
        """An assignment near z that breaks no cannot-link; in need the known one."""
        z = self._mend(z)
        label = connected_components(self.graph)
        wrong = np.flatnonzero(np.isin(label, label[self.hard[self._broken(z)]]))
        if not len(wrong):
            return z
        z, near, part = z.copy(), z[wrong], induced_subgraph(self.graph, wrong)
        z[wrong] = known[wrong] if known is not None else feasible_assignment(
            part, self.costs.shape[1], allowed=self.allowed[wrong], hint=lambda: near,
            **self.search,
        )  # fmt: skip
        return z

    def _mend(self, z: IntArray) -> IntArray:
        """Descend while broken cannot-links cost more and more, until none more is mended."""
        for weight in [*self.unit * FIRST_WEIGHT * 2.0 ** np.arange(N_WEIGHTS), *3 * [self.dear]]:
            broken = self._broken(z)
            if not broken.any():
                break
            # Those that are broken, as preferences to differ of that weight.
            mended = Graph(len(z), self.hard[broken], np.full(broken.sum(), -weight))
            soft = sparse.csr_array(self.soft + adjacency(mended))
            z = exchange(self.costs, self.hard[~broken], z, soft)
        return z

    def improve(self, z: IntArray) -> IntArray:
        """Descend by single nodes and chains."""
        return exchange(self.costs, self.hard, z, self.soft)
