"""What exact inference costs, component by component, before any of it is done. Chapter 7.

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

from cgmm.inference.clique_tree import MAX_BYTES, Layout, in_words, lay_out, most_neighbours
from cgmm.inference.contraction import contract
from cgmm.network import Answer, Graph, TooCostlyError, connected_components
from cgmm.numerics import BoolArray, IntArray

__all__ = ["MAX_BYTES", "MAX_OPERATIONS", "Budget", "Cost", "in_words"]

# Entries of tables that are visited in a second, on one core of 3 GHz (benchmarks/inference.py).
SPEED = 1e8
# What "auto" affords, what is worth waiting for (minutes, and less than an hour), and a day's work:
# whether more would do is not looked for.
AFFORDABLE, MAX_OPERATIONS, REACH = 1e8, 2e11, 1e13
# Tables that somebody may have the memory for.
LARGEST_MEMORY = 2**36

OUT_OF_REACH = (
    "An exact answer is out of reach; a second opinion is inference='gibbs', weights='ignore'."
)


class Cost(NamedTuple):
    """What the junction tree of a network takes."""

    width: int
    n_bytes: int
    n_operations: int
    at_least: bool = False
    """Whether the search for an order got stuck before it knew."""


class Budget(NamedTuple):
    """What exact inference may take."""

    max_bytes: int
    """Of tables, at one time."""
    max_operations: float
    """Entries of tables, in one call."""

    def max_degree(self, n_states: int) -> int:
        """Most neighbours of a node that is eliminated, whatever the rest costs."""
        return most_neighbours(self.max_operations, n_states)

    def fits(self, costs: list[Cost]) -> BoolArray:
        """Which components fit both limits together, the cheapest first."""
        order = np.argsort([float(cost.n_operations) for cost in costs], kind="stable")
        fits = np.zeros(len(costs), dtype=bool)
        n_bytes, n_operations = np.cumsum(
            [[float(costs[c].n_bytes), float(costs[c].n_operations)] for c in order], axis=0
        ).T
        known = np.array([not costs[c].at_least for c in order])
        within = (n_bytes <= self.max_bytes) & (n_operations <= self.max_operations)
        fits[order] = known & within
        return fits


def answer_at(engine: str, part: Graph, costs: list[Cost]) -> Answer:
    """An engine's answer for a part of a network, with the costs of its components together."""
    width = max(cost.width for cost in costs)
    sums = [int(sum(column)) for column in zip(*(cost[1:3] for cost in costs), strict=True)]
    return Answer(engine, len(costs), part.n_nodes, len(part.edges), width, *sums)


def cost_of(layout: Layout, n_states: int, max_degree: int) -> Cost:
    """The cost of a layout as a whole; at least the given width where it got stuck."""
    if layout.order.stuck:
        width = max_degree + 1
        return Cost(width, 8 * n_states**width, n_states ** (width + 1), at_least=True)
    width = max(map(len, layout.order.neighbours), default=0)
    return Cost(width, int(layout.n_bytes.sum()), int(layout.n_operations.sum()))


def whole_cost(graph: Graph, n_states: int) -> Cost:
    """The cost of a component, whatever the budget; at least that, where it is out of any reach."""
    max_degree = most_neighbours(REACH, n_states)
    return cost_of(lay_out(contract(graph).core, n_states, max_degree), n_states, max_degree)


def costs_of_components(
    graph: Graph, layout: Layout, n_states: int, max_degree: int
) -> tuple[IntArray, list[Cost]]:
    """The component of every node, and the cost of every component; nothing where no core is."""
    label = connected_components(graph)
    n = label.max(initial=-1) + 1
    width = np.zeros(n, dtype=np.intp)
    sizes = [len(near) for near in layout.order.neighbours]
    np.maximum.at(width, label[layout.order.nodes], np.array(sizes, dtype=np.intp))
    n_bytes, n_operations = np.zeros(n, dtype=object), np.zeros(n, dtype=object)
    np.add.at(n_bytes, label[layout.firsts], layout.n_bytes)
    np.add.at(n_operations, label[layout.firsts], layout.n_operations)
    costs = [Cost(*row) for row in zip(width.tolist(), n_bytes, n_operations, strict=True)]
    for c in np.unique(label[layout.order.stuck]).tolist():
        costs[c] = cost_of(layout, n_states, max_degree)
    return label, costs


def refuse_cost(graph: Graph, n_states: int, budget: Budget) -> NoReturn:
    """Name a component, both of its costs, both budgets, and what answers instead."""
    cost = whole_cost(graph, n_states)
    least = "at least " if cost.at_least else ""
    raise TooCostlyError(
        f"exact inference is out of reach for the component of {{nodes}}, tied by "
        f"{len(graph.edges):,} edges: in the order of elimination it has an induced width of "
        f"{least}{cost.width}, so that with K = {n_states} its tables would take "
        f"{least}{in_words(cost.n_bytes)} (max_bytes is {in_words(int(budget.max_bytes))}) and "
        f"{least}{cost.n_operations:.2g} operations (max_operations is "
        f"{budget.max_operations:.2g}). {with_patience(cost, '')}Use inference='auto', which "
        "approximates such components by belief propagation.",
        np.arange(graph.n_nodes),
    )


def with_patience(cost: Cost, otherwise: str = OUT_OF_REACH) -> str:
    """The call that answers exactly, and how long that takes; or what else there is.

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
        settings += f", max_operations={_rounded_up(cost.n_operations):.2g}"
    call = f"inference=partial(exact{settings}), with exact from cgmm.inference,"
    named = "inference='exact'"
    return f"{call if settings else named} answers exactly, in {_time(cost)} a call. "


def _rounded_up(number: float) -> float:
    """To two digits."""
    unit = 10 ** (math.floor(math.log10(number)) - 1)
    return float(math.ceil(number / unit) * unit)


def _time(cost: Cost) -> str:
    """About how long a call takes."""
    seconds = max(cost.n_operations / SPEED, 1)
    for length, unit in ((3600, "hours"), (60, "minutes")):
        if seconds >= 2 * length:
            return f"about {seconds / length:.0f} {unit}"
    return f"about {seconds:.0f} s"
