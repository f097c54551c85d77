"""Exact wherever it is cheap, an approximation that says so elsewhere. Chapters 7 and 10.

The network is reduced (:mod:`cgmm.inference.reduction`) and divided among exact engines
(:mod:`cgmm.inference.division`), as :mod:`cgmm.inference.exact` does, with a budget of about a
second a call. Components beyond it are answered by belief propagation, all at once, with a warning;
their joint assignment is the best that a search from the marginals finds.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import cast

import numpy as np

from cgmm.inference.belief_propagation import belief_propagation
from cgmm.inference.clique_tree import MAX_BYTES, in_words
from cgmm.inference.composition import ComposedInfer, compose
from cgmm.inference.costs import with_patience
from cgmm.inference.cutset import cost_by_cutset
from cgmm.inference.division import Budget, Part, Wide, answer_for, disjoint_union, divide
from cgmm.network import ApproximationWarning, ExactInfer, Graph, with_most_probable
from cgmm.numerics import FloatArray, IntArray, warn_caller

__all__ = ["auto"]

# Entries of tables that are visited in about a second.
MAX_OPERATIONS = 100_000_000

OUT_OF_REACH = (
    "An exact answer would take more than a day in 2 GiB; a second opinion is inference='gibbs', "
    "weights='ignore'."
)


def auto(
    graph: Graph, *, max_bytes: int = MAX_BYTES, max_operations: float = MAX_OPERATIONS
) -> ComposedInfer:
    """Engine that is exact wherever that is cheap, and approximates elsewhere.

    Parameters
    ----------
    graph : Graph
        Any graph.
    max_bytes : int, default=2**31
        What tables of exact inference may take.
    max_operations : float, default=1e8
        Entries of tables that exact inference may visit in one call: about a second. The cheapest
        components are answered exactly first.

    Returns
    -------
    callable
        From unaries (n_nodes, K) to marginals and log Z, exact if the field ``exact`` says so.
        ``most_probable`` gives the most probable joint assignment, in components that are
        approximated the best found; it breaks no cannot-link. ``answered`` tells who answers what,
        a list of :class:`~cgmm.inference.costs.Answer`; each has ``exact``.

    Raises
    ------
    NetworkError
        When called: if a component has no possible assignment, as far as exact engines, evidence
        and odd cycles show it; it is named.

    Warns
    -----
    ApproximationWarning
        Once, when first called: if a component is beyond the budgets; its size and width are named.

    Notes
    -----
    What is wide stays wide: a grid of 16 by 16 cannot-links with K = 3 has tables of 42 GiB, no
    cutset that leaves them 2 GiB is small enough for a day, and it is approximated; of 14 by 14 it
    takes "exact" some minutes. Large cliques that share one node are summed clique by clique, as
    "cut_vertices"; cliques that share two nodes or more have to fit a junction tree, else they are
    approximated.

    Examples
    --------
    A pair, a node by itself, and a path of three:

    >>> edges = np.array([[0, 1], [3, 4], [4, 5]])
    >>> infer = auto(Graph(6, edges, np.array([-np.inf, 1.0, -np.inf])))
    >>> unary = np.log(np.full((6, 2), 0.5))
    >>> unary[0] = np.log([0.9, 0.1])
    >>> infer(unary).nodes[:3]
    array([[0.9, 0.1],
           [0.1, 0.9],
           [0.5, 0.5]])
    >>> infer.most_probable(unary)
    array([0, 1, 0, 0, 0, 1])
    """
    budget, warned = Budget(max_bytes, max_operations), list[bool]()

    def split(part: Graph, n_states: int) -> list[Part]:
        def approximate(wide: list[Wide]) -> Iterator[Part]:
            if not warned:
                warned.append(True)
                _warn(wide, n_states, budget)
            yield _by_belief_propagation(wide)

        return divide(part, n_states, budget, approximate)

    return compose(graph, split)


def _by_belief_propagation(wide: list[Wide]) -> Part:
    """All of them at once."""
    graph = disjoint_union([part.graph for part in wide])
    nodes = np.concatenate([part.nodes for part in wide])
    answer = answer_for("belief_propagation", graph, [part.cost for part in wide])
    return Part(nodes, _propagating(graph), answer)


def _propagating(graph: Graph) -> ExactInfer:
    """Belief propagation, and the best assignment found from its marginals."""
    infer = belief_propagation(graph)

    def most_probable(unary: FloatArray) -> IntArray:
        search = import_module("cgmm.inference.best_assignment").best_assignment
        return cast("IntArray", search(graph, unary, infer(unary).nodes))

    return with_most_probable(lambda unary: infer(unary), most_probable)


def _warn(wide: list[Wide], n_states: int, budget: Budget) -> None:
    """Say what is approximated, why, and how to have it exactly."""
    largest = max(wide, key=lambda part: len(part.nodes))
    cost, more = largest.cost, ""
    least = "at least " if cost.at_least else ""
    if len(wide) > 1:
        more = f" So have {len(wide) - 1} other components."
    warn_caller(
        f"marginals, log-evidence and labels are approximations by belief propagation in a "
        f"component of {len(largest.nodes):,} nodes tied by {len(largest.graph.edges):,} edges: it "
        f"has an induced width of {least}{cost.width}, so that with K = {n_states} exact inference "
        f"would take {least}{in_words(cost.n_bytes)} and {least}{cost.n_operations:.2g} operations "
        f"a call (allowed are {in_words(budget.max_bytes)} and {budget.max_operations:.2g}).{more} "
        f"{_remedy(wide, n_states)}",
        ApproximationWarning,
    )


def _remedy(wide: list[Wide], n_states: int) -> str:
    """What answers exactly, if the dearest of the components is within reach; else, who checks."""
    costs = [cost_by_cutset(part.graph, n_states) for part in wide]
    if any(cost.at_least for cost in costs):
        return OUT_OF_REACH
    dearest = max(costs, key=lambda cost: cost.n_operations)
    return with_patience(dearest).strip()
