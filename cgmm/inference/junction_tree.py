"""Exact inference in any network whose induced width is small: elimination, in and out. Chapter 7.

Nodes of degree one and two go first, many at a time (:mod:`cgmm.inference.contraction`); the rest,
the *core*, is eliminated one node after the other, in min-fill order or a cheaper one. What
eliminating v needs is a table over v and the neighbours it then has, its clique; small neighbouring
cliques are merged. The cliques form a tree. Messages run to its roots (*collect*: log Z), then back
(*distribute*: the marginals), or the best states are read off on the way back.

Three ways to work through the same tree:

- *products* (:mod:`cgmm.inference.tree_products`): probabilities scaled to at most one, by
  multiplications and matrix products. Before every product the smallest positive entry it can have
  is bounded;
- *sums of logs* (:mod:`cgmm.inference.tree_logs`): the same at any scale, slower, where products
  might underflow;
- *largest of logs* (there, too): the most probable joint assignment.

This file is the engine; :mod:`cgmm.inference.elimination` finds the order and
:mod:`cgmm.inference.clique_tree` makes the tree of it.

=========  ======================================================================
R, S       nodes that a clique eliminates; its separator, the rest of its nodes
S = A ∪ F  A: nodes in children's messages; F, *fresh*: tied to R here first
P          table over (R, A): everything but the factor ψ over (R, F)
m, μ       message of a clique to its parent, over S; its parent's answer
low        log of the smallest positive entry of a table whose largest is one
=========  ======================================================================

What is summed out, m(A, F) = Σ_R P(R, A) ψ(R, F), is a matrix product: the table over the whole
clique is never formed. A clique's answer to one of several children is what it believes about their
separator, divided by what the child said; where that is zero, so is whatever the child will
multiply the answer by.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from cgmm.inference.clique_tree import MAX_BYTES, CliqueTree, build_tree, refuse_impossible
from cgmm.inference.contraction import Contraction, contract
from cgmm.inference.contraction_rounds import best, log_sum
from cgmm.inference.tree_logs import add_logs, most_probable_states
from cgmm.inference.tree_products import OutOfRangeError, multiply_tables
from cgmm.network import Graph, Inference, Marginals, check_unary, simplify
from cgmm.numerics import FloatArray, IntArray, log_normalise

__all__ = ["junction_tree"]


def junction_tree(graph: Graph, *, max_bytes: int = MAX_BYTES) -> Inference:
    """Engine for any graph of small induced width: trees, chains, cycles, small grids.

    Parameters
    ----------
    graph : Graph
        Any graph. Trees and chains cost time linear in their size; a grid of n × n nodes costs
        about K**(n + 1).
    max_bytes : int, default=2**31
        Refuse to allocate tables that together exceed this.

    Returns
    -------
    callable
        From unaries (n_nodes, K) to exact marginals and log Z, with ``most_probable``. The order
        of elimination is found, and kept, when it is first called with a number of states.

    Raises
    ------
    NetworkError
        When called: if no joint assignment is possible; the component is named.
    TooCostlyError
        When called: if the tables would need more than ``max_bytes``; the component is named.

    Notes
    -----
    [shental2003, sect. 2.2]: the posterior of eq. 9 by Pearl's junction tree algorithm, and log Z
    of eq. 10 by the same pass.

    Examples
    --------
    A cycle of four nodes, neighbours different, in two colours: two assignments are left.

    >>> cycle = Graph(4, np.array([[0, 1], [1, 2], [2, 3], [0, 3]]), np.full(4, -np.inf))
    >>> infer = junction_tree(cycle)
    >>> unary = np.log([[0.9, 0.1], [0.5, 0.5], [0.5, 0.5], [0.5, 0.5]])
    >>> infer(unary).nodes.round(12)
    array([[0.9, 0.1],
           [0.1, 0.9],
           [0.9, 0.1],
           [0.1, 0.9]])
    >>> infer.most_probable(unary)
    array([0, 1, 0, 1])
    """
    graph = simplify(graph)
    contraction = contract(graph)
    build = lambda n_states: build_tree(graph, contraction.core, n_states, max_bytes)  # noqa: E731
    return through_tree(graph, contraction, build)


def through_tree(
    graph: Graph, contraction: Contraction, build: Callable[[int], CliqueTree]
) -> Inference:
    """Inference in a graph that is contracted, by the tree that is built for a number of states."""
    tree = cache(build)

    def infer(unary: FloatArray) -> Marginals:
        unary = check_unary(graph, unary)
        if unary.shape[1] == 1:
            return _only_assignment(graph, unary)
        core = tree(unary.shape[1])
        # [shental2003, eqs. 9 and 10]
        h, tables = contraction.collect(unary, log_sum)
        nodes, pairs = np.zeros(unary.shape), np.zeros(tables.shape)
        log_z = _roots(graph, contraction, h, nodes)
        inside = h[core.nodes], tables[core.slots]
        try:
            nodes[core.nodes], pairs[core.slots], log_z_core = multiply_tables(core, *inside)
        except OutOfRangeError:
            nodes[core.nodes], pairs[core.slots], log_z_core = add_logs(graph, core, *inside)
        contraction.distribute(h, tables, nodes, pairs)
        return Marginals(nodes, float(log_z + log_z_core), exact=True)

    def most_probable(unary: FloatArray) -> IntArray:
        unary = check_unary(graph, unary)
        if unary.shape[1] == 1:
            return _only_assignment(graph, unary).nodes.argmax(axis=1)
        core = tree(unary.shape[1])
        h, tables = contraction.collect(unary, best)
        z = np.zeros(len(unary), dtype=np.intp)
        _roots(graph, contraction, h, np.empty(h.shape))
        z[contraction.roots] = h[contraction.roots].argmax(axis=1)
        z[core.nodes] = most_probable_states(graph, core, h[core.nodes], tables[core.slots])
        contraction.trace_back(h, tables, z)
        return z

    return Inference(infer, most_probable)


def _roots(graph: Graph, contraction: Contraction, h: FloatArray, nodes: FloatArray) -> float:
    """Sum of the log Z of the components that contraction has brought down to one node."""
    roots = contraction.roots
    impossible = h[roots].max(axis=1, initial=-np.inf) == -np.inf
    if impossible.any():
        refuse_impossible(graph, roots[impossible][0], h.shape[1])
    nodes[roots], log_totals = log_normalise(h[roots])
    return log_totals.sum()


def _only_assignment(graph: Graph, unary: FloatArray) -> Marginals:
    """K = 1: nothing to sum, however wide the graph."""
    forbidden = np.flatnonzero(graph.weights == -np.inf)
    if len(forbidden):
        refuse_impossible(graph, graph.edges[forbidden[0], 0], 1)
    log_z = float(unary.sum() + graph.weights.sum())
    return Marginals(np.ones(unary.shape), log_z, exact=True)
