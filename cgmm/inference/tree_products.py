"""Messages of the clique tree as products of plain numbers, the fast way. Chapter 7.

Probabilities are scaled so that the largest of each table is one. Before every product the
smallest positive entry that it can have is bounded; where that might underflow,
``OutOfRangeError`` sends :mod:`cgmm.inference.junction_tree` to the slower
:mod:`cgmm.inference.tree_logs`. The tree is that of :mod:`cgmm.inference.clique_tree`.

=========  ======================================================================
h, T       unaries of the core and tables of its pairs: ``tables`` in the code
R, A, F    nodes that a clique eliminates; its separator: from children, and fresh
P          table over (R, A): everything but the factor ψ over (R, F)
m, μ       message of a clique to its parent, over S = A ∪ F; its parent's answer
low        log of the smallest positive entry of a table whose largest is one
=========  ======================================================================
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from cgmm.inference.clique_tree import (
    Child,
    Clique,
    CliqueTree,
    spread_axes,
    store_marginals,
    store_pair,
    table_of,
)
from cgmm.numerics import FloatArray, blocks

# Smallest logs that products may reach. With forbidden pairs nothing may underflow, since what they
# leave over may be all that is possible: all factors count. Without them the edges alone count:
# where they stay above e**-200, an underflow (below e**-708) costs less than e**-100 of the sum.
LOWEST_HARD, LOWEST_SOFT = -690.0, -200.0


class OutOfRangeError(Exception):
    """Products of probabilities might underflow."""


class Factors(NamedTuple):
    """What changes with the unaries, divided by its largest entries."""

    h: FloatArray
    tables: FloatArray
    low_h: list[float]
    low_tables: list[float]
    hard: bool
    """Whether pairs are forbidden."""

    def require_range(self, low: float) -> None:
        """Give up where a product may be too small."""
        if low < (LOWEST_HARD if self.hard else LOWEST_SOFT):
            raise OutOfRangeError


class _Inward(NamedTuple):
    """What the way in leaves for the way back."""

    local: FloatArray
    """Factors of the clique itself over R and A."""
    product: FloatArray
    """(K**|R|, K**|A|) P."""
    low: float
    """Of all factors that meet in the clique but its parent's answer."""
    messages: list[FloatArray]
    """Of its children, where they are several."""


def multiply_tables(
    tree: CliqueTree, h: FloatArray, tables: FloatArray
) -> tuple[FloatArray, FloatArray, float]:
    """In and out by products: marginals of nodes and of pairs with a table, and log Z."""
    factors, log_z = _scale(tree, h, tables)
    inward, log_scale = _collect(tree, factors)
    nodes, pairs = np.empty(h.shape), np.empty(tables.shape)
    answers: list[Any] = [(np.ones(()), 0.0)] * len(inward)
    for i in reversed(range(len(inward))):
        _distribute(tree.cliques[i], inward[i], answers, i, nodes, pairs, factors)
        inward[i] = answers[i] = None
    return nodes, pairs, log_z + log_scale


def _scale(tree: CliqueTree, h: FloatArray, tables: FloatArray) -> tuple[Factors, float]:
    """Factors of at most one, and the log of what they were divided by."""
    top_h, top_t = h.max(axis=1), tables.max(axis=(1, 2), initial=-np.inf)
    if not (np.isfinite(top_h).all() and np.isfinite(top_t).all()):
        raise OutOfRangeError
    h, tables = h - top_h[:, None], tables - top_t[:, None, None]
    hard = tree.hard or bool((tables == -np.inf).any())
    low_h = h.min(axis=1, where=h > -np.inf, initial=0.0) if hard else np.zeros(len(h))
    low_t = tables.min(axis=(1, 2), where=tables > -np.inf, initial=0.0)
    factors = Factors(np.exp(h), np.exp(tables), low_h.tolist(), low_t.tolist(), hard)
    return factors, float(top_h.sum() + top_t.sum())


def _collect(tree: CliqueTree, factors: Factors) -> tuple[list[Any], float]:
    """Messages to the roots; what is kept of each clique, and the log of Z."""
    inward: list[Any] = []
    messages: list[Any] = []
    log_z = 0.0
    for clique in tree.cliques:
        heard = [messages[child.index] for child in clique.children]
        for child in clique.children:
            messages[child.index] = None
        inward.append(_meet(clique, factors, heard))
        message = _sum_out(clique, inward[-1].product)
        top = float(message.max())
        if not top > 0:
            raise OutOfRangeError
        message *= 1 / top
        messages.append((message, _log_smallest(message)))
        log_z += np.log(top) + clique.offset
    return inward, float(log_z)


def _meet(clique: Clique, factors: Factors, heard: list[tuple[FloatArray, float]]) -> _Inward:
    """Multiply everything that meets over R and A."""
    local, low = _local_factor(clique, factors)
    messages = [
        m.reshape(child.shape) for (m, _), child in zip(heard, clique.children, strict=True)
    ]
    low += clique.low + sum(low_message for _, low_message in heard)
    factors.require_range(low)
    product = local
    if len(messages) == 1 and messages[0].size > local.size and not clique.children[0].summed:
        # An only child's message is not needed again: its memory is reused.
        product = np.multiply(local, messages[0], out=messages[0])
        messages = []
    for message in messages:
        product = product * message
    n_rows = clique.n_states ** len(clique.own)
    return _Inward(local, product.reshape(n_rows, -1), low, messages)


def _sum_out(clique: Clique, product: FloatArray) -> FloatArray:
    """m(S) = Σ_R P(R, A) ψ(R, F), its axes sorted."""
    n_states = clique.n_states
    if not clique.n_fresh:
        return product.sum(axis=0).reshape((n_states,) * len(clique.separator))
    message = np.empty((product.shape[1], clique.psi.shape[1]))
    # By blocks: too small for BLAS to start threads, which cost more here than they bring.
    for part in blocks(len(message), clique.psi.size):
        np.matmul(product[:, part].T, clique.psi, out=message[part])
    message = message.reshape((n_states,) * len(clique.separator))
    return np.asarray(message.transpose(clique.to_message), order="C")


def _log_smallest(message: FloatArray) -> float:
    """Log of the smallest positive entry."""
    smallest = float(message.min())
    if smallest == 0:
        smallest = float(message.min(where=message > 0, initial=1.0))
    return math.log(smallest)


def _distribute(
    clique: Clique,
    inward: _Inward,
    answers: list[tuple[FloatArray, float]],
    i: int,
    nodes: FloatArray,
    pairs: FloatArray,
    factors: Factors,
) -> None:
    """Marginals of R, and the answers to the children, from the parent's answer."""
    answer, low = answers[i]
    if factors.hard:
        factors.require_range(low + inward.low)
    outside = _outside(clique, answer)
    store_marginals(clique, _belief(clique, inward.product, outside), nodes)
    _store_pairs(clique, inward.product, outside, pairs)
    if len(clique.children) == 1:
        child = clique.children[0]
        others = _with_axes(clique, outside) * inward.local
        answers[child.index] = _scaled(_reduce(others, child))
    elif clique.children:
        _divide_out(clique, _with_axes(clique, inward.product * outside), inward, answers)


def _belief(clique: Clique, product: FloatArray, outside: FloatArray) -> FloatArray:
    """(K, ..., K) Σ_A P(R, A) outside(R, A)."""
    if clique.n_fresh:
        belief = np.einsum("ra,ra->r", product, outside)
    else:
        belief = np.einsum("ra,a->r", product, outside[0])
    return belief.reshape((clique.n_states,) * len(clique.own))


def _divide_out(
    clique: Clique, joint: FloatArray, inward: _Inward, answers: list[tuple[FloatArray, float]]
) -> None:
    """Answer each child with the belief about its separator, without what it said itself."""
    for child, message in zip(clique.children, inward.messages, strict=True):
        belief = _reduce(joint, child)
        message = message.reshape(belief.shape)
        answer = np.divide(belief, message, out=np.zeros(belief.shape), where=message > 0)
        answers[child.index] = _scaled(answer)


def _reduce(table: FloatArray, child: Child) -> FloatArray:
    """Sum out what the child does not have."""
    return table.sum(axis=child.summed) if child.summed else table


def _scaled(message: FloatArray) -> tuple[FloatArray, float]:
    """Divide by the largest entry, in place; also the log of the smallest positive one."""
    message *= 1 / message.max()
    return message, _log_smallest(message)


def _outside(clique: Clique, answer: FloatArray) -> FloatArray:
    """(K**|R|, K**|A|) Σ_F ψ(R, F) μ(A, F); one row where there is no F."""
    if not clique.n_fresh:
        return answer.reshape(1, -1)
    by_parts = answer.transpose(clique.from_message).reshape(-1, clique.psi.shape[1])
    outside = np.empty((len(clique.psi), len(by_parts)))
    for part in blocks(len(by_parts), clique.psi.size):
        np.matmul(clique.psi, by_parts[part].T, out=outside[:, part])
    return outside


def _store_pairs(
    clique: Clique, product: FloatArray, outside: FloatArray, pairs: FloatArray
) -> None:
    """Joint marginals of the pairs that have a table."""
    slotted = [edge for edge in clique.edges if edge.slot >= 0]
    if not slotted:
        return
    joint = _with_axes(clique, product * outside)
    joint /= joint.sum()
    for edge in slotted:
        store_pair(edge, joint, pairs)


def _local_factor(clique: Clique, factors: Factors) -> tuple[FloatArray, float]:
    """Constant factors, unaries and tables of a clique."""
    n_inner, n_own = clique.n_inner, len(clique.own)
    own = factors.h[clique.own[0]]
    for v in clique.own[1:]:
        own = own[..., None] * factors.h[v]
    local = clique.local * own.reshape(own.shape + (1,) * (n_inner - n_own))
    low = sum([factors.low_h[v] for v in clique.own])
    for edge in clique.edges:
        if edge.slot >= 0:
            local = local * spread_axes(table_of(edge, factors.tables), edge.axes, n_inner)
            low += factors.low_tables[edge.slot]
    return local, low


def _with_axes(clique: Clique, table: FloatArray) -> FloatArray:
    """Give a table over (R, A), or over A alone in one row, an axis for each node."""
    n_own = len(clique.own)
    own = (1 if len(table) == 1 else clique.n_states,) * n_own
    return table.reshape(own + (clique.n_states,) * (clique.n_inner - n_own))
