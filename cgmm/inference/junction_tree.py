"""Exact inference by elimination (a junction tree), for any network of small induced width.

The engine ``auto`` applies it to all components within its budget. Chapter 7 explains it. Nodes of
degree one and two are summed out first, many at a time (:mod:`cgmm.inference.contraction`). The
nodes that remain, the *core*, are eliminated one by one, in min-fill order or a cheaper one.
Eliminating a node needs a table over its clique, which consists of the node and its neighbours at
that time; small neighbouring cliques are merged. The cliques form a tree
(:mod:`cgmm.inference.clique_tree`). Messages to its roots give log Z (*collect*), and messages back
to the leaves give the marginals (*distribute*). If sums are replaced by maxima, the second pass
gives the best states.

=========  ==========================================================================
R, S       nodes that a clique eliminates, e.g. [4]; its separator, e.g. [6, 9]
S = A ∪ F  A: nodes in children's messages, e.g. [6]; F, *fresh*: the others, e.g. [9]
P          log-values over (R, A): the sum of all log-factors except ψ, which is over (R, F)
h, T       unaries of the core and tables of its pairs; T is ``tables`` in the code
=========  ==========================================================================

The message m(A, F) = log Σ_R exp(P(R, A) + ψ(R, F)) is a matrix product, scaled row by row, so no
table over the whole clique is built. The second pass computes p(S) p(R | S), where p(R | S) comes
from the same product, so no division by zero can occur.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NoReturn

import numpy as np

from cgmm.inference.clique_tree import Clique, CliqueTree, Constants, plan_tree, spread_axes
from cgmm.inference.contraction import (
    Contraction,
    Total,
    contract,
    log_max,
    log_sum,
    matrix_product,
    normalise_logs,
    sum_joint_over_right,
)  # fmt: skip
from cgmm.inference.costs import MAX_BYTES, Budget, find_max_degree, raise_too_costly
from cgmm.network import (
    Graph,
    Inference,
    Marginals,
    NetworkError,
    check_unary,
    connected_components,
    induced_subgraph,
    simplify,
)  # fmt: skip
from cgmm.numerics import FloatArray, IntArray, blocks, log_normalise

__all__ = ["junction_tree"]


def junction_tree(graph: Graph, *, max_bytes: int = MAX_BYTES) -> Inference:
    """Prepare a graph of small width for exact inference, such as a tree, a cycle or a small grid.

    Parameters
    ----------
    graph : Graph
        Any graph. The time for trees and chains is linear in their size; that for a grid of n × n
        nodes is about proportional to K**(n + 1).
    max_bytes : int, default=2**31
        Maximum total size of tables.

    Returns
    -------
    callable
        Function from unaries (n_nodes, K) to exact marginals and log Z. It has ``most_probable``.
        The first call for each K finds the order of elimination, and later calls use it.

    Raises
    ------
    NetworkError
        When called: if no joint assignment is possible; the error names the component.
    TooCostlyError
        When called: if the tables would exceed ``max_bytes``; the error names the component.

    Notes
    -----
    [shental2003, sect. 2.2] computes the posterior of eq. 9 by Pearl's junction tree algorithm, and
    log Z of eq. 10 in the same pass.

    Examples
    --------
    In a cycle of four nodes, neighbours must differ. With two states, two assignments are possible:

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

    def plan_within_budget(n_states: int) -> CliqueTree:
        tree = plan_tree(contraction.core, n_states, find_max_degree(max_bytes / 8, n_states))
        fits = (budget := Budget(max_bytes, np.inf)).fits(tree, graph)
        if not fits.all():
            wide = _find_component(graph, int(fits.argmin()))
            raise_too_costly(induced_subgraph(graph, wide), n_states, budget)
        return tree

    return build_inference(graph, contraction, plan_within_budget)


def build_inference(
    graph: Graph, contraction: Contraction, plan: Callable[[int], CliqueTree]
) -> Inference:
    """Return the ``Inference`` for a contracted graph; ``plan`` builds the tree for a given K."""

    @cache
    def build_tree(n_states: int) -> tuple[CliqueTree, list[Constants]]:
        tree = plan(n_states)
        return tree, [clique.constants(n_states) for clique in tree.cliques]

    def collect(unary: FloatArray, total: Total) -> tuple[FloatArray, FloatArray, list[Any], float]:
        h, tables = contraction.collect(unary, total)
        impossible = contraction.roots[h[contraction.roots].max(axis=1) == -np.inf]
        if len(impossible):
            raise_impossible(graph, impossible[0], unary.shape[1])
        tree, constants = build_tree(unary.shape[1])
        core_potentials = h[tree.nodes], tables[tree.slots]
        return h, tables, *_collect_messages(graph, tree, constants, *core_potentials, total)

    def infer(unary: FloatArray) -> Marginals:
        unary = check_unary(graph, unary)
        if unary.shape[1] == 1:
            return _infer_single_state(graph, unary)
        # [shental2003, eqs. 9 and 10]
        h, tables, factors, log_z = collect(unary, log_sum)
        nodes, pairs = np.zeros(unary.shape), np.zeros(tables.shape)
        nodes[contraction.roots], log_totals = log_normalise(h[contraction.roots])
        _distribute_marginals(*build_tree(unary.shape[1]), factors, nodes, pairs)
        contraction.distribute(h, tables, nodes, pairs)
        return Marginals(nodes, float(log_totals.sum() + log_z), exact=True)

    def most_probable(unary: FloatArray) -> IntArray:
        unary = check_unary(graph, unary)
        if unary.shape[1] == 1:
            return _infer_single_state(graph, unary).nodes.argmax(axis=1)
        h, tables, factors, _ = collect(unary, log_max)
        tree, constants = build_tree(unary.shape[1])
        z = np.zeros(len(unary), dtype=np.intp)
        z[contraction.roots] = h[contraction.roots].argmax(axis=1)
        z[tree.nodes] = _trace_back(tree, constants, factors)
        contraction.trace_back(h, tables, z)
        return z

    return Inference(infer, most_probable, exact=True)


def _infer_single_state(graph: Graph, unary: FloatArray) -> Marginals:
    """Return the marginals for K = 1, for which there is only one assignment."""
    forbidden = np.flatnonzero(graph.weights == -np.inf)
    if len(forbidden):
        raise_impossible(graph, graph.edges[forbidden[0], 0], 1)
    log_z = float(unary.sum() + graph.weights.sum())
    return Marginals(np.ones(unary.shape), log_z, exact=True)


# ------------------------------------------------------------ collect and distribute


def _collect_messages(
    graph: Graph,
    tree: CliqueTree,
    constants: list[Constants],
    h: FloatArray,
    tables: FloatArray,
    total: Total,
) -> tuple[list[Any], float]:
    """Return the tables P of all cliques and log Z; raise if no joint assignment is possible."""
    messages: list[Any] = []
    factors: list[Any] = []
    log_z = 0.0
    for clique, (local, psi) in zip(tree.cliques, constants, strict=True):
        table = _sum_factors(clique, local, h, tables, messages).reshape(len(psi), -1)
        message = _sum_out(table, psi, total).reshape((tree.n_states,) * len(clique.separator))
        if not clique.separator:
            if message == -np.inf:
                raise_impossible(graph, tree.order.nodes[clique.own[0]], tree.n_states)
            log_z += float(message)
        messages.append(message.transpose(clique.to_message))
        factors.append(table)
    return factors, log_z


def _sum_factors(
    clique: Clique, local: FloatArray, h: FloatArray, tables: FloatArray, messages: list[Any]
) -> FloatArray:
    """Return the table P of a clique: constants, unaries, pair tables and messages of children."""
    table, n_axes = local, clique.n_inner
    for axis, v in enumerate(clique.own):
        table = table + spread_axes(h[v], (axis,), n_axes)
    for edge in clique.edges:
        if edge.slot >= 0:
            pair = tables[edge.slot].T if edge.turned else tables[edge.slot]
            table = table + spread_axes(pair, edge.axes, n_axes)
    for child, axes in clique.children:
        table = table + spread_axes(messages[child], axes, n_axes)
        messages[child] = None
    return table


def _sum_out(table: FloatArray, psi: FloatArray, total: Total) -> FloatArray:
    """Return the message m(A, F) of a clique, (K**|A|, K**|F|), summed or maximised over R."""
    if psi.shape[1] == 1:
        return total(table, 0)
    message = np.empty((table.shape[1], psi.shape[1]))
    for part in blocks(len(message), psi.size):
        message[part] = matrix_product(table[:, part], psi, total)
    return message


def _distribute_marginals(
    tree: CliqueTree,
    constants: list[Constants],
    factors: list[Any],
    nodes: FloatArray,
    pairs: FloatArray,
) -> None:
    """Compute the marginals of core nodes, and of pairs with a table, beginning at the roots."""
    separators: list[Any] = [np.ones(())] * len(factors)
    for i in reversed(range(len(factors))):
        clique, (_, psi) = tree.cliques[i], constants[i]
        outer = separators[i].transpose(clique.from_message).reshape(-1, psi.shape[1])
        joint = _compute_joint(factors[i], psi, outer).reshape((tree.n_states,) * clique.n_inner)
        separators[i] = factors[i] = None
        own = tuple(range(len(clique.own)))
        belief = _sum_other_axes(joint, own)
        for axis, v in enumerate(clique.own):
            nodes[tree.order.nodes[v]] = _sum_other_axes(belief, (axis,)) / belief.sum()
        for edge in clique.edges:
            if edge.slot >= 0:
                pair = _sum_other_axes(joint, edge.axes)
                pairs[tree.slots[edge.slot]] = pair.T if edge.turned else pair
        for child, axes in clique.children:
            separators[child] = _sum_other_axes(joint, axes)


def _compute_joint(table: FloatArray, psi: FloatArray, outer: FloatArray) -> FloatArray:
    """Return p(R, A) = Σ_F p(A, F) p(R | A, F), (K**|R|, K**|A|), and overwrite the table."""
    if psi.shape[1] == 1:
        joint = normalise_logs(table, 0)
        joint *= outer.T
        return joint
    for part in blocks(len(outer), psi.size):
        table[:, part] = sum_joint_over_right(table[:, part], psi, outer[part])
    return table


def _sum_other_axes(table: FloatArray, axes: tuple[int, ...]) -> FloatArray:
    """Return the sum of a table over all axes except the given ones."""
    return np.asarray(table.sum(axis=tuple(i for i in range(table.ndim) if i not in axes)))


def _trace_back(tree: CliqueTree, constants: list[Constants], factors: list[Any]) -> IntArray:
    """Return the best states of core nodes, in elimination order: for each clique, R given S."""
    z = np.zeros(len(tree.order.nodes), dtype=np.intp)
    steps = list(zip(tree.cliques, constants, factors, strict=True))
    for clique, (_, psi), table in reversed(steps):
        fresh = clique.n_inner - len(clique.own)
        given = [0, 0]
        for i, v in enumerate(clique.separator):
            given[i >= fresh] = given[i >= fresh] * tree.n_states + int(z[v])
        score = table[:, given[0]] + psi[:, given[1]]
        z[clique.own] = np.unravel_index(score.argmax(), (tree.n_states,) * len(clique.own))
    return z


# ------------------------------------------------------------ errors


def raise_impossible(graph: Graph, node: int, n_states: int) -> NoReturn:
    """Raise ``NetworkError`` for the component of a node, which has no possible assignment."""
    raise NetworkError(
        f"no joint assignment of {{nodes}} is possible with K = {n_states}: the forbidden pairs "
        "among them admit no proper colouring that the evidence allows. Use more components, or "
        "revise the relations or the evidence.",
        graph.named(_find_component(graph, node)),
    )


def _find_component(graph: Graph, node: int) -> IntArray:
    """Return all nodes of the component to which a node belongs."""
    labels = connected_components(graph)
    return np.flatnonzero(labels == labels[node])
