"""Compute the cost of exact inference in advance, and raise an error if it is too high.

The engines ``auto``, ``exact`` and ``junction_tree`` call this file; chapter 7 explains it. The
cost is the number of bytes of all tables at one time, and the number of table entries visited in
one call. Both grow as K^(width + 1).

=====  ======================================================================
K      number of states of a node, e.g. 3
width  largest number of neighbours of a node at its elimination, e.g. 12
=====  ======================================================================
"""

from __future__ import annotations

import math
from typing import NamedTuple, NoReturn

import numpy as np

from cgmm.inference.clique_tree import CliqueTree, plan_tree
from cgmm.inference.contraction import contract
from cgmm.network import Graph, Inference, Result, TooCostlyError, connected_components
from cgmm.numerics import BoolArray

__all__ = ["MAX_BYTES", "MAX_OPERATIONS", "Budget", "Cost", "format_bytes"]

# Number of table entries visited per second by one core of 3 GHz, from benchmarks/inference.py.
ENTRIES_PER_SECOND = 1e8
# Numbers of table entries per call: the limit of "auto" (a second), the limit of "exact" (half an
# hour), and a day's computation, above which costs are reported as lower bounds.
AFFORDABLE, MAX_OPERATIONS, A_DAYS_OPERATIONS = 1e8, 2e11, 1e13
# Bytes of all tables: the default limit of engines, and the largest limit that errors suggest.
MAX_BYTES, LARGEST_MEMORY = 2**31, 2**36

OUT_OF_REACH = (
    "An exact answer is out of reach; a second opinion is inference='gibbs', weights='ignore'."
)


class Cost(NamedTuple):
    """The cost of one call of the junction tree of a network."""

    width: int
    """Induced width: the largest number of neighbours of a node at its elimination."""
    n_bytes: int
    """Number of bytes of all tables."""
    n_operations: int
    """Number of table entries visited in one call."""
    at_least: bool = False
    """True if the numbers are lower bounds, because the search for an order was stopped early."""


class Budget(NamedTuple):
    """Limits of time and memory for exact inference."""

    max_bytes: int
    """Maximum number of bytes of all tables at one time."""
    max_operations: float
    """Maximum number of table entries visited in one call."""

    def fits(self, tree: CliqueTree, graph: Graph) -> BoolArray:
        """Return (n_nodes,) booleans: True if a node's component and all cheaper ones fit together.

        If the order is incomplete, only the components whose nodes are all in the order fit.
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


def find_max_degree(n_entries: float, n_states: int) -> int:
    """Return the largest elimination degree whose table has at most ``n_entries`` entries."""
    return int(math.log(max(n_entries, 1)) / math.log(n_states) + 1e-9)


def compute_cost(tree: CliqueTree, max_degree: int) -> Cost:
    """Return the cost of a clique tree, or a lower bound if its order is incomplete."""
    if tree.order.stuck:
        width, n_states = max_degree + 1, tree.n_states
        return Cost(width, 8 * n_states**width, n_states ** (width + 1), at_least=True)
    return Cost(tree.width, sum(n for n, _ in tree.costs), sum(n for _, n in tree.costs))


def compute_full_cost(graph: Graph, n_states: int) -> Cost:
    """Return the cost of a component, or a lower bound if it exceeds a day's computation."""
    max_degree = find_max_degree(A_DAYS_OPERATIONS, n_states)
    return compute_cost(plan_tree(contract(graph).core, n_states, max_degree), max_degree)


def build_result(
    engine: str, n_components: int, part: Graph, cost: Cost, infer: Inference | None = None
) -> Result:
    """Build the ``Result`` of an engine for one part; ``infer`` is None if no engine is applied."""
    exact = infer is not None and infer.exact is True
    return Result(engine, n_components, part.n_nodes, len(part.edges), exact, *cost[:3])


def raise_too_costly(graph: Graph, n_states: int, budget: Budget) -> NoReturn:
    """Raise ``TooCostlyError`` for a component, with its costs, the limits and an alternative."""
    cost, max_operations = compute_full_cost(graph, n_states), budget.max_operations
    bound = "at least " if cost.at_least else ""
    limit = "" if max_operations == np.inf else f" (max_operations is {max_operations:.2g})"
    raise TooCostlyError(
        f"exact inference is out of reach for the component of {{nodes}}, connected by "
        f"{len(graph.edges):,} edges: in the order of elimination it has an induced width of "
        f"{bound}{cost.width}, so that with K = {n_states} its tables would take "
        f"{bound}{format_bytes(cost.n_bytes)} (max_bytes is {format_bytes(budget.max_bytes)}) and "
        f"{bound}{cost.n_operations:.2g} operations{limit}. {suggest_exact(cost, '')}Use "
        "inference='auto', which approximates such components by belief propagation.",
        graph.named(np.arange(graph.n_nodes)),
    )


def format_bytes(n_bytes: int) -> str:
    """Return a number of bytes as text in binary units, with three digits."""
    power = min((n_bytes.bit_length() - 1) // 10, 4)
    return f"{n_bytes / 1024**power:.3g} {['bytes', 'KiB', 'MiB', 'GiB', 'TiB'][power]}"


def suggest_exact(cost: Cost, otherwise: str = OUT_OF_REACH) -> str:
    """Return a sentence that suggests exact inference with its setting and time, or ``otherwise``.

    Parameters
    ----------
    cost : Cost
        Cost of the most expensive component.
    otherwise : str
        Sentence to return if the cost is too high for any setting.

    Returns
    -------
    str
        The sentence.

    Examples
    --------
    >>> suggest_exact(Cost(9, 4_000_000, 1_180_980))
    "inference='exact' answers exactly, in about 1 s a call. "
    >>> suggest_exact(Cost(21, 2**34, 511_000_000_000))[:60]
    'inference=partial(exact, max_bytes=17179869184, max_operatio'
    """
    if cost.at_least or cost.n_operations > A_DAYS_OPERATIONS or cost.n_bytes > LARGEST_MEMORY:
        return otherwise
    settings = f", max_bytes={cost.n_bytes}" if cost.n_bytes > MAX_BYTES else ""
    if cost.n_operations > MAX_OPERATIONS:
        settings += f", max_operations={cost.n_operations}"
    call = f"inference=partial(exact{settings}), with exact from cgmm.inference,"
    seconds = max(cost.n_operations / ENTRIES_PER_SECOND, 1)
    call = call if settings else "inference='exact'"
    return f"{call} answers exactly, in about {seconds:.0f} s a call. "
