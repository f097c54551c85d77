"""Messages of the clique tree as sums in logs, where plain numbers leave their range. Chapter 7.

The same marginals and log Z as :mod:`cgmm.inference.tree_products`, at any scale and slower: the
whole table over a clique is formed. With the largest of logs for their sum the same messages lead
to the most probable states. The tree is that of :mod:`cgmm.inference.clique_tree`.

=========  ======================================================================
h, T       unaries of the core and tables of its pairs: ``tables`` in the code
R, A, F    nodes that a clique eliminates; its separator: from children, and fresh
S = A ∪ F  separator of a clique: what its message to its parent is about
=========  ======================================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from cgmm.inference.clique_tree import (
    MERGED_CELLS,
    Clique,
    CliqueTree,
    edge_constants,
    refuse_impossible,
    spread_axes,
    store_marginals,
    store_pair,
    table_of,
)
from cgmm.inference.contraction_rounds import Total, best, conditional, log_sum
from cgmm.network import Graph
from cgmm.numerics import FloatArray, IntArray


def add_logs(
    graph: Graph, tree: CliqueTree, h: FloatArray, tables: FloatArray
) -> tuple[FloatArray, FloatArray, float]:
    """Marginals of nodes and of pairs with a table, and log Z: the way back is p(S) p(R | S)."""
    messages, small = _collect_logs(graph, tree, h, tables, log_sum)
    nodes, pairs, log_z = np.empty(h.shape), np.empty(tables.shape), 0.0
    separators: list[Any] = [np.ones(())] * len(messages)
    for i in reversed(range(len(messages))):
        clique = tree.cliques[i]
        if not clique.separator:
            log_z += float(messages[i])
        table = _log_table(clique, h, tables, messages) if small[i] is None else small[i]
        joint = _joint(clique, separators[i], table)
        own = joint.sum(axis=tuple(range(len(clique.own), clique.n_axes)))
        store_marginals(clique, own, nodes)
        for edge in clique.edges:
            if edge.slot >= 0:
                store_pair(edge, joint, pairs)
        joint = joint.sum(axis=tuple(range(clique.n_inner, clique.n_axes)))
        for child in clique.children:
            separators[child.index] = joint.sum(axis=child.summed)
            messages[child.index] = None
        separators[i] = small[i] = None
    return nodes, pairs, log_z


def _joint(clique: Clique, separator: FloatArray, table: FloatArray) -> FloatArray:
    """p(R, A, F) = p(S) p(R | S), in place of the table."""
    joint = conditional(table.reshape(clique.n_states ** len(clique.own), -1), 0)
    joint *= separator.transpose(clique.from_message).reshape(1, -1)
    return joint.reshape(table.shape)


def _collect_logs(
    graph: Graph, tree: CliqueTree, h: FloatArray, tables: FloatArray, total: Total
) -> tuple[list[Any], list[Any]]:
    """Messages to the roots in logs; an error if a root has no possible assignment.

    Also the tables that are so small that keeping them costs less than adding them up again.
    """
    messages: list[Any] = []
    small: list[Any] = []
    for clique in tree.cliques:
        table = _log_table(clique, h, tables, messages)
        message = total(table.reshape(h.shape[1] ** len(clique.own), -1), 0)
        message = message.reshape((h.shape[1],) * len(clique.separator))
        if not clique.separator and message == -np.inf:
            refuse_impossible(graph, tree.nodes[clique.own[0]], h.shape[1])
        messages.append(np.asarray(message.transpose(clique.to_message), order="C"))
        small.append(table if table.size <= MERGED_CELLS else None)
    return messages, small


def _log_table(
    clique: Clique, h: FloatArray, tables: FloatArray, messages: list[FloatArray]
) -> FloatArray:
    """Sum of all factors over (R, A, F), the smaller ones first."""
    factors = sorted(_log_factors(clique, h, tables, messages), key=np.size)
    table = np.zeros((1,) * clique.n_axes)
    for factor in factors:
        table = table + factor
    return table


def _log_factors(
    clique: Clique, h: FloatArray, tables: FloatArray, messages: list[FloatArray]
) -> Iterator[FloatArray]:
    """Factors of a clique with the axes of (R, A, F), of length one along what they miss."""
    yield from edge_constants(clique, h.shape[1])
    for axis, v in enumerate(clique.own):
        yield spread_axes(h[v], (axis,), clique.n_axes)
    for edge in clique.edges:
        if edge.slot >= 0:
            yield spread_axes(table_of(edge, tables), edge.axes, clique.n_axes)
    for child in clique.children:
        yield messages[child.index].reshape(child.shape + (1,) * clique.n_fresh)


def most_probable_states(
    graph: Graph, tree: CliqueTree, h: FloatArray, tables: FloatArray
) -> IntArray:
    """States of the core: largest sums of logs on the way in, read off on the way back."""
    z = np.zeros(len(h), dtype=np.intp)
    messages, _ = _collect_logs(graph, tree, h, tables, best)
    for clique in reversed(tree.cliques):
        _choose(clique, h, tables, messages, z)
    return z


def _choose(
    clique: Clique, h: FloatArray, tables: FloatArray, messages: list[FloatArray], z: IntArray
) -> None:
    """Best states of R given those of S."""
    n_own = len(clique.own)
    score = np.zeros((h.shape[1],) * n_own)
    for factor in _log_factors(clique, h, tables, messages):
        given = [min(z[v], factor.shape[n_own + i] - 1) for i, v in enumerate(clique.separator)]
        score = score + factor[(slice(None),) * n_own + tuple(given)]
    z[clique.own] = np.unravel_index(score.argmax(), score.shape)
