"""Wide networks, exactly and slowly: conditioning on a cutset. Chapter 7.

The tables of a junction tree grow as K^(width + 1), and memory ends before patience does. With the
states of a few nodes given, the *cutset*, the rest is narrower: each assignment of the cutset is
evidence for the rest, and the answers are put together ::

    Z = Σ_s Z(s),        p(z_j) = Σ_s (Z(s) / Z) p(z_j | s)

The rest is laid out once; every assignment s changes its unaries only. Memory is that of the
narrower tables; the work is at least that of the wide ones.

=====  ======================================================================
S, s   nodes of the cutset, ascending; an assignment of them
Z(s)   sum over all joint assignments that agree with s
K      number of states of a node
=====  ======================================================================
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple, cast

import numpy as np

from cgmm.inference.clique_tree import (
    MAX_BYTES,
    Layout,
    lay_out,
    most_neighbours,
    refuse_impossible,
    tabulate,
)
from cgmm.inference.contraction import contract
from cgmm.inference.contraction_rounds import Edges
from cgmm.inference.costs import MAX_OPERATIONS, REACH, Cost, cost_of, refuse_cost
from cgmm.inference.junction_tree import through_tree
from cgmm.network import (
    ExactInfer,
    Graph,
    Marginals,
    NetworkError,
    TooCostlyError,
    check_unary,
    log_weight,
    simplify,
    with_most_probable,
)
from cgmm.numerics import BoolArray, FloatArray, IntArray

__all__ = ["cutset"]

# What a clique takes beside the entries of its table, in entries.
COST_OF_CALL = 5_000
# Seconds between two lines of progress.
BETWEEN_LINES = 10.0


class Conditioned(NamedTuple):
    """A cutset, and what is left."""

    chosen: IntArray
    """S."""
    rest: IntArray
    """All other nodes."""
    layout: Layout
    """Of the rest, in the names of the rest."""
    n_bytes: int
    n_operations: int
    """Of all assignments of S together."""


def cutset(
    graph: Graph,
    *,
    max_bytes: int = MAX_BYTES,
    max_operations: float = MAX_OPERATIONS,
    verbose: int = 0,
) -> ExactInfer:
    """Engine for networks whose tables would not fit memory, but whose sums can be waited for.

    Parameters
    ----------
    graph : Graph
        Any graph; best a single component.
    max_bytes : int, default=2**31
        Nodes are put into the cutset until the tables of the rest take no more.
    max_operations : float, default=2e11
        Refuse if the tables of all assignments of the cutset have more entries together; about
        1e8 are worked through in a second.
    verbose : int, default=0
        1: a line of progress every ten seconds.

    Returns
    -------
    callable
        From unaries (n_nodes, K) to exact marginals and log Z, with ``most_probable``.

    Raises
    ------
    NetworkError
        When called: if no joint assignment is possible; the component is named.
    TooCostlyError
        When called: if more operations are needed, before any is done.

    Notes
    -----
    Cutset conditioning is Pearl's (1988, sect. 4.3.2), here only as far as memory demands.

    Examples
    --------
    >>> from cgmm.inference.junction_tree import junction_tree
    >>> edges = np.array([[a, b] for a in range(8) for b in range(a)])
    >>> dense, unary = Graph(8, edges, np.linspace(-1, 1, 28)), np.eye(8, 3)
    >>> found = cutset(dense, max_bytes=10_000)(unary)
    >>> bool(np.isclose(found.log_z, junction_tree(dense)(unary).log_z, rtol=1e-12))
    True
    """
    graph = simplify(graph)

    @cache
    def planned(n_states: int) -> tuple[Conditioned, ExactInfer]:
        plan = plan_cutset(graph, n_states, max_bytes, max_operations)
        part = _without(graph, plan.rest)
        tree = tabulate(plan.layout, n_states)
        return plan, through_tree(part, contract(part), lambda _: tree)

    def infer(unary: FloatArray) -> Marginals:
        unary = check_unary(graph, unary)
        plan, rest = planned(unary.shape[1])
        nodes, log_z = np.zeros(unary.shape), -np.inf
        for s, given, weight in _assignments(graph, plan, unary, verbose):
            try:
                marginals = rest(given)
            except TooCostlyError:
                raise
            except NetworkError:
                continue
            term = weight + marginals.log_z
            log_sum = float(np.logaddexp(log_z, term))
            nodes *= np.exp(log_z - log_sum)
            p = np.exp(term - log_sum)
            nodes[plan.rest] += p * marginals.nodes
            nodes[plan.chosen, s] += p
            log_z = log_sum
        _require_possible(graph, log_z, unary.shape[1])
        return Marginals(nodes, log_z, exact=True)

    def most_probable(unary: FloatArray) -> IntArray:
        unary = check_unary(graph, unary)
        plan, rest = planned(unary.shape[1])
        best, top = np.zeros(len(unary), dtype=np.intp), -np.inf
        z = best.copy()
        for s, given, _ in _assignments(graph, plan, unary, verbose):
            try:
                z[plan.rest] = rest.most_probable(given)
            except TooCostlyError:
                raise
            except NetworkError:
                continue
            z[plan.chosen] = s
            value = log_weight(graph, unary, z)
            if value > top:
                best, top = z.copy(), value
        _require_possible(graph, top, unary.shape[1])
        return best

    return with_most_probable(infer, most_probable)


def _require_possible(graph: Graph, top: float, n_states: int) -> None:
    """Some assignment of the cutset must leave the rest one."""
    if top == -np.inf:
        refuse_impossible(graph, 0, n_states)


# ------------------------------------------------------------------------ the assignments


def _assignments(
    graph: Graph, plan: Conditioned, unary: FloatArray, verbose: int
) -> Iterator[tuple[IntArray, FloatArray, float]]:
    """Each possible s, the unaries of the rest given s, and the log-weight of s itself."""
    n_states = unary.shape[1]
    among, between = _edges_of(graph, plan)
    total = n_states ** len(plan.chosen)
    began = said = time.monotonic()
    for number in range(total):
        s = np.array(np.unravel_index(number, (n_states,) * len(plan.chosen)), dtype=np.intp)
        weight = log_weight(among, unary[plan.chosen], s)
        if weight > -np.inf:
            given = unary[plan.rest]
            ends, states = between.ends[:, 1], s[between.ends[:, 0]]
            np.add.at(given, (ends, states), between.weights)
            if (given.max(axis=1, initial=-np.inf) > -np.inf).all():
                yield s, given, weight
        now = time.monotonic()
        if verbose and now - said > BETWEEN_LINES:
            left = (now - began) * (total - number - 1) / (number + 1)
            print(f"exact: {number + 1} of {total} assignments of a cutset, {left:.0f} s to go")
            said = now


def _edges_of(graph: Graph, plan: Conditioned) -> tuple[Graph, Edges]:
    """Edges within S, and those from S to the rest, nodes called by their place in either."""
    place = np.empty(graph.n_nodes, dtype=np.intp)
    place[plan.chosen], place[plan.rest] = np.arange(len(plan.chosen)), np.arange(len(plan.rest))
    is_chosen = _mask(graph.n_nodes, plan.chosen)
    first, second = is_chosen[graph.edges].T
    inside, across = first & second, first ^ second
    among = Graph(len(plan.chosen), place[graph.edges[inside]], graph.weights[inside])
    ends = np.where(first[:, None], graph.edges, graph.edges[:, ::-1])[across]
    return among, Edges(place[ends], graph.weights[across], np.full(len(ends), -1))


def _mask(n_nodes: int, nodes: IntArray) -> BoolArray:
    mask = np.zeros(n_nodes, dtype=bool)
    mask[nodes] = True
    return mask


# ----------------------------------------------------------------------------- the plan


def plan_cutset(
    graph: Graph, n_states: int, max_bytes: float, max_operations: float
) -> Conditioned:
    """Choose nodes, one after the other: that which is in most of the cells of wide cliques."""
    plan, cost = _planned(graph, n_states, max_bytes, max(max_operations, REACH))
    if plan is None or plan.n_operations > max_operations:
        refuse_cost(graph, n_states, cost, max_bytes, max_operations)
    return cast("Conditioned", plan)


def cost_by_cutset(graph: Graph, n_states: int, max_bytes: float = MAX_BYTES) -> Cost:
    """What a component takes within the memory; its cost at least, where it is out of any reach."""
    return _planned(graph, n_states, max_bytes, REACH)[1]


def _planned(
    graph: Graph, n_states: int, max_bytes: float, reach: float
) -> tuple[Conditioned | None, Cost]:
    """The plan, None if it would take more operations than ``reach``; and the cost.

    Width and memory are those of the component as a whole.
    """
    every, chosen = np.arange(graph.n_nodes), np.empty(0, dtype=np.intp)
    max_degree = most_neighbours(reach, n_states) if n_states > 1 else graph.n_nodes
    whole: Cost | None = None
    while True:
        rest = np.delete(every, chosen)
        layout = lay_out(contract(_without(graph, rest)).core, n_states, max_degree)
        cost = cost_of(layout, n_states, max_degree)
        calls = COST_OF_CALL * len(layout.cliques) * (len(chosen) > 0)
        n_operations = (cost.n_operations + calls) * n_states ** len(chosen)
        whole = (whole or cost)._replace(n_operations=n_operations)
        if cost.at_least or n_operations > reach:
            return None, whole._replace(at_least=True)
        if cost.n_bytes <= max_bytes:
            plan = Conditioned(chosen, rest, layout, cost.n_bytes, n_operations)
            return plan, whole
        chosen = np.sort(np.append(chosen, rest[_most_wanted(layout, len(rest), max_bytes)]))


def _most_wanted(layout: Layout, n_nodes: int, max_bytes: float) -> int:
    """The node in whose tables most entries lie, of the cliques that are near the widest."""
    n_bytes = layout.n_bytes.astype(float)
    wide = np.flatnonzero(n_bytes * len(n_bytes) >= min(n_bytes.max(), max_bytes))
    wanted = np.zeros(n_nodes)
    for i in wide.tolist():
        clique = layout.cliques[i]
        wanted[np.array(layout.order.nodes)[clique.own + clique.separator]] += n_bytes[i]
    return int(wanted.argmax())


def _without(graph: Graph, rest: IntArray) -> Graph:
    """The graph of the nodes that are left, called by their place."""
    place = np.full(graph.n_nodes, -1)
    place[rest] = np.arange(len(rest))
    ends = place[graph.edges]
    kept = (ends >= 0).all(axis=1)
    return Graph(len(rest), ends[kept], graph.weights[kept])
