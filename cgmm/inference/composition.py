"""One answer from many engines: the network reduced, divided, asked and put together. Chapter 7.

The way of a question: nodes that nothing ties are normalised; the others go through
:mod:`cgmm.inference.reduction`; each part of what is left goes to its engine; and all the way back.
:mod:`cgmm.inference.exact` and :mod:`cgmm.inference.auto` differ in how they divide.

=====  ======================================================================
part   components that one engine takes care of, see :mod:`cgmm.inference.division`
tied   nodes that have edges
=====  ======================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeVar, cast

import numpy as np

from cgmm.inference.costs import Answer
from cgmm.inference.division import Part, subgraph
from cgmm.inference.independent import independent
from cgmm.inference.reduction import MAX_PATTERNS, Reduced, reducer
from cgmm.network import (
    ExactInfer,
    Graph,
    Marginals,
    NetworkError,
    check_unary,
    simplify,
    with_most_probable,
)
from cgmm.numerics import FloatArray, IntArray, log_normalise

__all__ = ["ComposedInfer", "compose"]

Divide = Callable[[Graph, int], list[Part]]
Result = TypeVar("Result")


class ComposedInfer(ExactInfer, Protocol):
    """An ``ExactInfer`` that also tells who answered what."""

    answered: Callable[[FloatArray], list[Answer]]
    """From unaries (n_nodes, K), of which only the places of -inf matter, to the answers."""


def compose(graph: Graph, divide: Divide) -> ComposedInfer:
    """Apply a division to what reductions leave of a graph.

    Parameters
    ----------
    graph : Graph
        Any graph.
    divide : callable
        From a reduced graph and K to its parts; asked once for each graph that is left.

    Returns
    -------
    callable
        From unaries (n_nodes, K) to marginals, with ``most_probable`` and ``answered``.

    Examples
    --------
    >>> from cgmm.inference.division import Budget, divide
    >>> chain = Graph(3, np.array([[0, 1], [1, 2]]), np.array([1.0, -1.0]))
    >>> infer = compose(chain, lambda graph, K: divide(graph, K, Budget(10**6, 1e6), None))
    >>> infer.answered(np.zeros((3, 2)))[0].engine
    'junction_tree'
    >>> infer.answered(np.array([[0, 0], [-np.inf, 0], [0, 0]]))[0].engine
    'independent'
    """
    graph = simplify(graph)
    if not len(graph.edges):
        return _without_edges(graph)
    tied = np.unique(graph.edges)
    alone = np.delete(np.arange(graph.n_nodes), tied)
    reduce = reducer(subgraph(graph, tied))
    known: dict[tuple[int, bytes], list[Part]] = {}

    def prepare(unary: FloatArray) -> tuple[FloatArray, Reduced, list[Part]]:
        unary = check_unary(graph, unary)
        try:
            reduced = reduce(np.take(unary.T, tied, axis=1).T)
        except NetworkError as error:
            raise error.renamed(tied) from None
        key = reduced.h.shape[1], reduced.key
        parts = known.get(key)
        if parts is None:
            parts = _named(tied, reduced, partial(divide, reduced.graph, key[0]))
            if len(known) >= MAX_PATTERNS:
                known.clear()
            known[key] = parts
        return unary, reduced, parts

    def infer(unary: FloatArray) -> Marginals:
        unary, reduced, parts = prepare(unary)
        # Column-major, as log densities are.
        nodes, log_z, residual = np.empty(unary.shape[::-1]).T, reduced.constant, 0.0
        found = np.empty(reduced.h.shape[::-1]).T
        for part in parts:
            said = _named(tied, reduced, partial(_ask, part, part.infer, reduced.h))
            found[part.nodes] = said.nodes
            log_z, residual = log_z + said.log_z, max(residual, said.residual)
        nodes[tied] = reduced.leave(found)
        if len(alone):
            nodes[alone], totals = log_normalise(np.take(unary.T, alone, axis=1).T)
            log_z += float(totals.sum())
        exact = all(part.answer.exact for part in parts)
        return Marginals(nodes, float(log_z), exact, residual)

    def most_probable(unary: FloatArray) -> IntArray:
        unary, reduced, parts = prepare(unary)
        z, found = unary.argmax(axis=1), np.empty(len(reduced.h), dtype=np.intp)
        for part in parts:
            question = partial(_ask, part, part.infer.most_probable, reduced.h)
            found[part.nodes] = _named(tied, reduced, question)
        z[tied] = reduced.trace_back(found)
        return z

    def answered(unary: FloatArray) -> list[Answer]:
        return [part.answer for part in prepare(unary)[2]]

    return _with_answers(with_most_probable(infer, most_probable), answered)


def _with_answers(
    infer: ExactInfer, answered: Callable[[FloatArray], list[Answer]]
) -> ComposedInfer:
    """Give a function of inference its attribute ``answered``."""
    composed = cast("ComposedInfer", infer)
    composed.answered = answered
    return composed


def _without_edges(graph: Graph) -> ComposedInfer:
    """The plain mixture: nothing to reduce and nothing to divide."""

    def answered(unary: FloatArray) -> list[Answer]:
        n, n_states = check_unary(graph, unary).shape
        return [Answer("independent", n, n, 0, 0, 8 * n * n_states, n * n_states)]

    return _with_answers(independent(graph), answered)


def _ask(part: Part, question: Callable[[FloatArray], Result], h: FloatArray) -> Result:
    """Put a question to the engine of a part; its errors name nodes of the reduced network."""
    try:
        return question(np.take(h.T, part.nodes, axis=1).T)
    except NetworkError as error:
        raise error.renamed(part.nodes) from None


def _named(tied: IntArray, reduced: Reduced, do: Callable[[], Result]) -> Result:
    """Do something about the reduced network; errors name nodes of the whole one."""
    try:
        return do()
    except NetworkError as error:
        raise reduced.renamed(error).renamed(tied) from None
