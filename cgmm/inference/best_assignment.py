"""The best joint assignment that can be found where the best of all is out of reach. Chapter 10.

Where exact inference is cheap, in components of few cycles, it tells the most probable assignment.
Elsewhere a search goes downhill from the most probable states of single nodes
(:mod:`~cgmm.inference.assignment_search`). Either way no cannot-link and no mask is broken.

=======  =====================================================================
z        (n_nodes,) states
K        number of states
=======  =====================================================================
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cgmm.inference.assignment_search import AssignmentSearch, induced
from cgmm.inference.colour_search import Rng
from cgmm.inference.feasible import MAX_SEARCH
from cgmm.inference.junction_tree import junction_tree
from cgmm.network import Graph, NetworkError, check_unary, connected_components, simplify
from cgmm.numerics import BoolArray, FloatArray, IntArray

__all__ = ["Assignment", "best_assignment", "find_best"]

# Components whose largest clique has at most so many joint states are solved exactly.
MAX_STATES = 2**14


class Assignment(NamedTuple):
    """A joint assignment that breaks no cannot-link and no mask."""

    states: IntArray
    """(n_nodes,) the state of each node."""
    exact: bool
    """Whether it is known to be a most probable one; otherwise it is the best that was found."""


def best_assignment(
    graph: Graph,
    unary: FloatArray,
    marginals: FloatArray,
    *,
    rng: Rng | None = None,
    max_search: int = MAX_SEARCH,
) -> IntArray:
    """The states that :func:`find_best` finds, without the word on whether they are the best.

    Parameters
    ----------
    graph, unary, marginals, rng, max_search
        As in :func:`find_best`.

    Returns
    -------
    (n_nodes,) int array
        The state of each node.

    Examples
    --------
    >>> graph = Graph(2, np.array([[0, 1]]), np.array([-np.inf]))
    >>> p = np.array([[0.9, 0.1], [0.6, 0.4]])
    >>> best_assignment(graph, np.log(p), p)
    array([0, 1])
    """
    return find_best(graph, unary, marginals, rng=rng, max_search=max_search).states


def find_best(
    graph: Graph,
    unary: FloatArray,
    marginals: FloatArray,
    *,
    rng: Rng | None = None,
    max_search: int = MAX_SEARCH,
    known: IntArray | None = None,
    remedy: str | None = None,
) -> Assignment:
    """The best assignment that a search from the marginals finds; it honours all that is hard.

    Parameters
    ----------
    graph : Graph
        Any graph.
    unary : (n_nodes, K) array
        Unary log-potentials; a state of ``-inf`` is not taken.
    marginals : (n_nodes, K) array
        Probabilities of the states by some engine, or anything else that is larger where a state is
        more likely: where the search begins.
    rng : RandomState, default=None
        Orders and walks of the search for what breaks nothing; None is a fixed seed.
    max_search : int, default=1000000
        Steps of that search.
    known : (n_nodes,) int array, default=None
        An assignment that breaks nothing, as another start, and for where the search finds none.
    remedy : str, default=None
        What to do if the search runs out of steps, a sentence for the error.

    Returns
    -------
    Assignment
        The states, and whether they are known to be the best.

    Raises
    ------
    NetworkError
        If no assignment honours all that is hard: that is proved, and nodes to blame are named.
    SearchBudgetError
        If ``max_search`` steps did not settle whether there is one.
    ValueError
        If a shape does not fit, or a node has no state.

    Notes
    -----
    The log-weight that is maximised is Σ_j unary[j, z_j] + Σ_e w_e [z_a = z_b]. The exchanges are
    the moves of Wang, Swendsen and Kotecký (1989), taken where they gain. The answer is exact where
    components have few cycles, or where every node has its own best state and no edge is broken.

    Examples
    --------
    Both would rather have the first state, node 0 more so:

    >>> graph = Graph(2, np.array([[0, 1]]), np.array([-np.inf]))
    >>> p = np.array([[0.9, 0.1], [0.6, 0.4]])
    >>> find_best(graph, np.log(p), p)
    Assignment(states=array([0, 1]), exact=True)
    """
    graph, unary = simplify(graph), check_unary(graph, unary)
    start = np.where(np.isfinite(unary), marginals, -np.inf).argmax(axis=1)
    z, exact, cheap = start.copy(), True, _few_cycles(graph, unary.shape[1])
    for nodes in (np.flatnonzero(cheap), np.flatnonzero(~cheap)):
        if len(nodes) == 0:
            continue
        part, here = induced(graph, nodes), unary[nodes]
        try:
            if cheap[nodes[0]]:
                z[nodes] = junction_tree(part).most_probable(here)
                continue
            rest = None if known is None else known[nodes]
            search = AssignmentSearch(part, here, max_search, rng, remedy)
            z[nodes] = search.best(start[nodes], rest)
        except NetworkError as error:
            raise error.renamed(nodes) from None
        exact = _is_best(part, here, z[nodes])
    return Assignment(z, exact)


def _few_cycles(graph: Graph, n_states: int) -> BoolArray:
    """(n_nodes,) whether a node's component is so near a tree that exact inference costs little.

    A graph from which c edges can be removed to leave a tree has a width of at most c + 1.
    """
    label = connected_components(graph)
    sizes = np.bincount(label)
    n_edges = np.bincount(label[graph.edges[:, 0]], minlength=len(sizes))
    clique = np.minimum(n_edges - sizes + 3, sizes)
    return ((clique * np.log(n_states)) <= np.log(MAX_STATES))[label]


def _is_best(graph: Graph, unary: FloatArray, z: IntArray) -> bool:
    """Whether nothing could be better: each node has its best state, and no edge is broken."""
    together = z[graph.edges[:, 0]] == z[graph.edges[:, 1]]
    content = np.array_equal(together, graph.weights > 0)
    return content and bool((unary[np.arange(len(z)), z] == unary.max(axis=1)).all())
