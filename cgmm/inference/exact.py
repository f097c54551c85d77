"""Exact, or a refusal: the chain of :mod:`cgmm.inference.auto` with another end. Chapter 7.

What would take more memory or time than allowed is refused before it is begun, with both costs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cgmm.inference.auto import Chain, Part, Wide
from cgmm.inference.costs import MAX_BYTES, MAX_OPERATIONS, REACH, Budget, answer_at, refuse_cost
from cgmm.network import Answer, Graph, Inference, NetworkError

__all__ = ["exact"]


def exact(
    graph: Graph,
    *,
    max_bytes: int = MAX_BYTES,
    max_operations: float = MAX_OPERATIONS,
    verbose: int = 0,
) -> Inference:
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
        Ignored: what fits memory ends in minutes.

    Returns
    -------
    callable
        From unaries (n_nodes, K) to exact marginals and log Z, with ``most_probable`` and with
        ``answered``, which tells who answers what and at what cost: a list of
        :class:`~cgmm.network.Answer`.

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
    return Chain(graph, Budget(max_bytes, max_operations), _refuse).inference()


def _refuse(wide: list[Wide], n_states: int, budget: Budget) -> list[Part]:
    """Name the first of the components."""
    nodes, graph, _ = wide[0]
    try:
        refuse_cost(graph, n_states, budget)
    except NetworkError as error:
        raise error.renamed(nodes) from None


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
        What tables may take at one time.

    Returns
    -------
    list of Answer
        Who would answer, for which part of the network that reductions leave, and the cost; the
        dearest first; :func:`~cgmm.inference.exact.exact` wants ``max_operations`` of as much as
        the dearest takes. A component beyond the memory, or that a day would not do for, has the
        engine "none", with its costs, where they were not found at least the given ones.

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
    chain = Chain(graph, Budget(max_bytes, REACH), _priced)
    unary = np.zeros((graph.n_nodes, n_states))
    if allowed is not None:
        unary[~np.asarray(allowed, dtype=bool)] = -np.inf
    return sorted(chain.answered(unary), key=lambda answer: -answer.n_operations)


def _priced(wide: list[Wide], n_states: int, budget: Budget) -> list[Part]:
    """The cost of each wide component; nobody answers it."""
    return [
        Part(nodes, exact(graph), answer_at("none", graph, [cost])) for nodes, graph, cost in wide
    ]
