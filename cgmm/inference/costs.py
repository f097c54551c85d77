"""The cost model: what exact inference would take, computed before any work. Chapter 7.

Two things are limited: the memory that tables take at one time, and the entries of tables that are
visited in one call. Both grow as K^(width + 1).

=====  ======================================================================
K      number of states of a node
width  most neighbours of a node when it is eliminated
=====  ======================================================================
"""

from __future__ import annotations

import math
from typing import NamedTuple, NoReturn

import numpy as np

from cgmm.inference.clique_tree import CliqueTree, lay_out
from cgmm.inference.contraction import contract
from cgmm.network import Graph, Inference, Result, TooCostlyError, connected_components
from cgmm.numerics import BoolArray

__all__ = ["MAX_BYTES", "MAX_OPERATIONS", "Budget", "Cost", "in_words"]

# Entries of tables a second, on one core of 3 GHz (grids in benchmarks/inference.py).
SPEED = 1e8
# Entries of tables in a call: what "auto" affords (a second), what is worth waiting for (half an
# hour), and a day's work; whether more would do is not looked for.
AFFORDABLE, MAX_OPERATIONS, REACH = 1e8, 2e11, 1e13
# Bytes of tables: what engines take unless told otherwise, and what somebody may have.
MAX_BYTES, LARGEST_MEMORY = 2**31, 2**36

OUT_OF_REACH = (
    "An exact answer is out of reach; a second opinion is inference='gibbs', weights='ignore'."
)


class Cost(NamedTuple):
    """The cost of the junction tree of a network."""

    width: int
    n_bytes: int
    n_operations: int
    at_least: bool = False
    """Whether the search for an order got stuck before it knew."""


class Budget(NamedTuple):
    """The limits of exact inference."""

    max_bytes: int
    """Of tables, at one time."""
    max_operations: float
    """Entries of tables, in one call."""

    def fits(self, tree: CliqueTree, graph: Graph) -> BoolArray:
        """Return (n_nodes,) whether a node's component fits both limits, beside all cheaper ones.

        While the order gets stuck in some components, these alone do not.
        """
        costs = np.array(tree.costs, dtype=float).reshape(-1, 2)
        if not tree.order.stuck and (costs.sum(axis=0) <= self).all():
            return np.ones(graph.n_nodes, dtype=bool)
        label = connected_components(graph)
        if tree.order.stuck:
            return ~np.isin(label, label[tree.order.stuck])
        firsts = np.array([tree.order.nodes[c.own[0]] for c in tree.cliques], dtype=np.intp)
        of_component = np.zeros((label.max(initial=-1) + 1, 2))
        np.add.at(of_component, label[firsts], costs)
        order = np.argsort(of_component[:, 1], kind="stable")
        within = np.all(np.cumsum(of_component[order], axis=0) <= self, axis=1)
        return within[np.argsort(order)][label]


def most_neighbours(n_cells: float, n_states: int) -> int:
    """Return the largest elimination degree whose table fits into ``n_cells`` entries."""
    return int(math.log(max(n_cells, 1)) / math.log(n_states) + 1e-9)


def cost_of(tree: CliqueTree, max_degree: int) -> Cost:
    """Return the cost of a tree; a lower bound where its order got stuck."""
    if tree.order.stuck:
        width, n_states = max_degree + 1, tree.n_states
        return Cost(width, 8 * n_states**width, n_states ** (width + 1), at_least=True)
    return Cost(tree.width, sum(n for n, _ in tree.costs), sum(n for _, n in tree.costs))


def whole_cost(graph: Graph, n_states: int) -> Cost:
    """Return the cost of a component, whatever the budget; a lower bound if it is out of reach."""
    max_degree = most_neighbours(REACH, n_states)
    return cost_of(lay_out(contract(graph).core, n_states, max_degree), max_degree)


def describe(
    engine: str, n_components: int, part: Graph, cost: Cost, infer: Inference | None = None
) -> Result:
    """Build the ``Result`` of an engine for one part; without ``infer`` no engine works on it."""
    exact = infer is not None and infer.exact is True
    return Result(engine, n_components, part.n_nodes, len(part.edges), exact, *cost[:3])


def refuse_cost(graph: Graph, n_states: int, budget: Budget) -> NoReturn:
    """Name a component, both of its costs, both budgets, and what answers instead."""
    cost, most = whole_cost(graph, n_states), budget.max_operations
    least = "at least " if cost.at_least else ""
    limit = "" if most == np.inf else f" (max_operations is {most:.2g})"
    raise TooCostlyError(
        f"exact inference is out of reach for the component of {{nodes}}, tied by "
        f"{len(graph.edges):,} edges: in the order of elimination it has an induced width of "
        f"{least}{cost.width}, so that with K = {n_states} its tables would take "
        f"{least}{in_words(cost.n_bytes)} (max_bytes is {in_words(int(budget.max_bytes))}) and "
        f"{least}{cost.n_operations:.2g} operations{limit}. {with_patience(cost, '')}Use "
        "inference='auto', which approximates such components by belief propagation.",
        graph.named(np.arange(graph.n_nodes)),
    )


def in_words(n_bytes: int) -> str:
    """Round to binary units."""
    power = min((n_bytes.bit_length() - 1) // 10, 4)
    return f"{n_bytes / 1024**power:.3g} {['bytes', 'KiB', 'MiB', 'GiB', 'TiB'][power]}"


def with_patience(cost: Cost, otherwise: str = OUT_OF_REACH) -> str:
    """Return a sentence: the call that is exact and its time, or an alternative.

    Parameters
    ----------
    cost : Cost
        Of a component.
    otherwise : str
        What to say where it is out of reach.

    Returns
    -------
    str
        A sentence.

    Examples
    --------
    >>> with_patience(Cost(9, 4_000_000, 1_180_980))
    "inference='exact' answers exactly, in about 1 s a call. "
    >>> with_patience(Cost(21, 2**34, 511_000_000_000))[:60]
    'inference=partial(exact, max_bytes=17179869184, max_operatio'
    """
    if cost.at_least or cost.n_operations > REACH or cost.n_bytes > LARGEST_MEMORY:
        return otherwise
    settings = f", max_bytes={cost.n_bytes}" if cost.n_bytes > MAX_BYTES else ""
    if cost.n_operations > MAX_OPERATIONS:
        settings += f", max_operations={cost.n_operations}"
    call = f"inference=partial(exact{settings}), with exact from cgmm.inference,"
    named, seconds = "inference='exact'", max(cost.n_operations / SPEED, 1)
    return f"{call if settings else named} answers exactly, in about {seconds:.0f} s a call. "
