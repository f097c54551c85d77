"""Exact, or a refusal: every component by the cheapest exact engine, wide ones too. Chapter 7.

The network is reduced (:mod:`cgmm.inference.reduction`), divided among engines
(:mod:`cgmm.inference.division`), and what is too wide for memory is conditioned on a cutset
(:mod:`cgmm.inference.cutset`), which takes patience instead. What would take more of either than
allowed is refused before it is begun, with the cost of both.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from cgmm.inference.clique_tree import MAX_BYTES
from cgmm.inference.composition import ComposedInfer, compose
from cgmm.inference.costs import MAX_OPERATIONS, REACH, Answer, Cost
from cgmm.inference.cutset import cutset, plan_cutset
from cgmm.inference.division import Budget, Part, Wide, answer_for, divide
from cgmm.network import Graph, NetworkError

__all__ = ["exact"]


def exact(
    graph: Graph,
    *,
    max_bytes: int = MAX_BYTES,
    max_operations: float = MAX_OPERATIONS,
    verbose: int = 0,
) -> ComposedInfer:
    """Engine that answers exactly or not at all, at whatever cost is allowed.

    Parameters
    ----------
    graph : Graph
        Any graph.
    max_bytes : int, default=2**31
        What tables may take at one time.
    max_operations : float, default=2e11
        Entries of tables that may be visited in one call; about 1e8 take a second.
    verbose : int, default=0
        1: a line of progress every ten seconds, where a component is conditioned on a cutset.

    Returns
    -------
    callable
        From unaries (n_nodes, K) to exact marginals and log Z, with ``most_probable`` and with
        ``answered``, which tells who answers what and at what cost: a list of
        :class:`~cgmm.inference.costs.Answer`.

    Raises
    ------
    NetworkError
        When called: if no joint assignment is possible; where evidence or an odd cycle shows it,
        the chain is shown.
    TooCostlyError
        When called: if a component takes more than the budgets; it is named, with both costs.

    Examples
    --------
    >>> ring = Graph(4, np.array([[0, 1], [1, 2], [2, 3], [0, 3]]), np.full(4, -np.inf))
    >>> infer = exact(ring)
    >>> round(float(np.exp(infer(np.zeros((4, 3))).log_z)))
    18
    >>> [(answer.engine, answer.width) for answer in infer.answered(np.zeros((4, 3)))]
    [('junction_tree', 2)]
    """
    budget = Budget(max_bytes, max_operations)

    def split(part: Graph, n_states: int) -> list[Part]:
        rest = partial(_by_cutset, n_states=n_states, budget=budget, verbose=verbose)
        return divide(part, n_states, budget, rest)

    return compose(graph, split)


def _by_cutset(wide: list[Wide], n_states: int, budget: Budget, verbose: int) -> Iterator[Part]:
    """Each wide component by itself, so that their tables do not take memory together."""
    for nodes, graph, _ in wide:
        try:
            plan = plan_cutset(graph, n_states, *budget)
        except NetworkError as error:
            raise error.renamed(nodes) from None
        infer = cutset(graph, max_bytes=budget[0], max_operations=budget[1], verbose=verbose)
        width = max(map(len, plan.layout.order.neighbours), default=0) + len(plan.chosen)
        cost = Cost(width, plan.n_bytes, plan.n_operations)
        name = "cutset" if len(plan.chosen) else "junction_tree"
        yield Part(nodes, infer, answer_for(name, graph, [cost]))


def inference_cost(
    graph: Graph, n_states: int, *, allowed: ArrayLike | None = None, max_bytes: int = MAX_BYTES
) -> list[Answer]:
    """What exact inference would cost, without doing it.

    Parameters
    ----------
    graph : Graph
        Any graph.
    n_states : int
        K.
    allowed : (n_nodes, K) bool array, default=None
        The states that evidence leaves to each node; None: all.
    max_bytes : int, default=2**31
        What tables may take at one time; a component that needs more goes to "cutset".

    Returns
    -------
    list of Answer
        Who would answer, for which part of the network that reductions leave, and the cost; the
        dearest first; :func:`~cgmm.inference.exact.exact` wants ``max_operations`` of as much as
        the dearest takes. A component that a day would not do for has the engine "none", and at
        least the width and the costs given.

    Raises
    ------
    NetworkError
        If no joint assignment is possible, as far as evidence and odd cycles show it.

    Examples
    --------
    A grid of 30 by 30 cannot-links, with two states and with three:

    >>> names = np.arange(900).reshape(30, 30)
    >>> edges = [*zip(names[1:].flat, names[:-1].flat), *zip(names.T[1:].flat, names.T[:-1].flat)]
    >>> grid = Graph(900, np.array(edges), np.full(len(edges), -np.inf))
    >>> [answer.engine for answer in inference_cost(grid, 2)]
    ['independent']
    >>> [(answer.engine, answer.n_nodes) for answer in inference_cost(grid, 3)]
    [('none', 900)]
    """
    budget = Budget(max_bytes, REACH)
    rest = partial(_priced, n_states=n_states, budget=budget)
    infer = compose(graph, lambda part, n_states: divide(part, n_states, budget, rest))
    unary = np.zeros((graph.n_nodes, n_states))
    if allowed is not None:
        unary[~np.asarray(allowed, dtype=bool)] = -np.inf
    return sorted(infer.answered(unary), key=lambda answer: -answer.n_operations)


def _priced(wide: list[Wide], n_states: int, budget: Budget) -> Iterator[Part]:
    """The cost of wide components, if it can be told."""
    for component in wide:
        try:
            yield from _by_cutset([component], n_states, budget, 0)
        except NetworkError:
            nodes, graph, cost = component
            yield Part(nodes, cutset(graph), answer_for("none", graph, [cost]))
