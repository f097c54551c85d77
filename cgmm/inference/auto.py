"""The default engine: exact for cheap components, an approximation with a warning for the others.

A network passes through three steps. First, evidence and, for K = 2, mirroring make it smaller
(:mod:`cgmm.inference.reduction`). Second, ``choose_engine`` assigns each component of the reduced
network to the first engine that applies. Third, the marginals of all components are combined and
mapped back to the whole network. :func:`exact` has the same steps, but raises an error for a
component beyond the budget before any work, with both costs (:mod:`cgmm.inference.costs`).
Estimators use ``auto`` by default. Chapters 7 and 10 explain this file.

=========  ====================================================================
part       components that share one engine, e.g. all disjoint pairs
connected  nodes that have edges, e.g. [0, 1, 3]; the others are *isolated*
K          number of states of a node, e.g. 3
=========  ====================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cgmm.inference.belief_propagation import belief_propagation
from cgmm.inference.best_assignment import find_best
from cgmm.inference.clique import clique, count_transitions
from cgmm.inference.clique_tree import CliqueTree, plan_tree
from cgmm.inference.closed_forms import independent, pairs
from cgmm.inference.contraction import Contraction, contract
from cgmm.inference.costs import (
    A_DAYS_OPERATIONS,
    AFFORDABLE,
    MAX_BYTES,
    MAX_OPERATIONS,
    Budget,
    Cost,
    cost_of,
    describe,
    full_cost,
    in_words,
    most_neighbours,
    refuse_cost,
    suggest_exact,
)  # fmt: skip
from cgmm.inference.junction_tree import through_tree
from cgmm.inference.reduction import MAX_PATTERNS, Reduced, reducer
from cgmm.network import (
    ApproximationWarning,
    Graph,
    Inference,
    Marginals,
    Result,
    check_unary,
    connected_components,
    induced_subgraph,
    simplify,
)  # fmt: skip
from cgmm.numerics import BoolArray, FloatArray, IntArray, log_normalise, warn_caller

__all__ = ["auto", "exact"]


def auto(
    graph: Graph, *, max_bytes: int = MAX_BYTES, max_operations: float = AFFORDABLE
) -> Inference:
    """Return an engine that is exact for cheap components and approximates the others.

    Each connected component of the reduced network goes to the first engine whose rule applies:

    1. one node: ``independent``;
    2. two nodes: ``pairs``;
    3. nodes that are all cannot-linked to each other, within the budget: ``clique``;
    4. tables within the budget, the cheapest components first: ``junction_tree``;
    5. otherwise ``belief_propagation``, with a warning.

    Parameters
    ----------
    graph : Graph
        Any graph.
    max_bytes : int, default=2**31
        Maximum size of the tables of exact inference.
    max_operations : float, default=1e8
        Maximum number of table entries that exact inference visits in one call; 1e8 take about a
        second. The budget goes to the cheapest components first.

    Returns
    -------
    callable
        Function from unaries (n_nodes, K) to marginals and log Z, exact if their field ``exact`` is
        True. Its ``most_probable`` returns the most probable joint assignment; in approximated
        components, the best that is found. It breaks no cannot-link. Its ``results`` lists the
        engine of each part as :class:`~cgmm.network.Result`, with a flag ``exact``.

    Raises
    ------
    NetworkError
        When called: if an exact engine, evidence or an odd cycle shows that a component has no
        possible assignment; the error names its nodes.

    Warns
    -----
    ApproximationWarning
        At the first call: if a component is beyond the budgets; the warning shows size and width.

    Notes
    -----
    A larger width cannot be avoided: a grid of 16 by 16 cannot-links with K = 3 needs tables of 42
    GiB, so it is approximated. So are large cliques of cannot-links that share nodes, unless they
    fit a junction tree: a table over ten nodes with ten states would have 10^10 entries.

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
    has_warned = False

    def approximate(wide: list[Wide], n_states: int, budget: Budget) -> list[Part]:
        nonlocal has_warned
        if not has_warned:
            has_warned = True
            _warn(wide, n_states, budget)
        return [_propagate(part) for part in wide]

    return Chain(graph, Budget(max_bytes, max_operations), approximate).inference()


def exact(
    graph: Graph,
    *,
    max_bytes: int = MAX_BYTES,
    max_operations: float = MAX_OPERATIONS,
    verbose: int = 0,
) -> Inference:
    """Return an engine that is exact within the budget and otherwise raises an error.

    It has the rules of :func:`auto`, but raises an error where they would approximate.

    Parameters
    ----------
    graph : Graph
        Any graph.
    max_bytes : int, default=2**31
        Maximum size of all tables that exist at one time.
    max_operations : float, default=2e11
        Maximum number of table entries visited in one call; about 1e8 take a second.
    verbose : int, default=0
        Ignored, because every computation that fits into memory ends within minutes.

    Returns
    -------
    callable
        Function from unaries (n_nodes, K) to exact marginals and log Z, with ``most_probable`` and
        with ``results``, which lists the engine and the cost of each part as
        :class:`~cgmm.network.Result`.

    Raises
    ------
    NetworkError
        When called: if no joint assignment is possible. If evidence or an odd cycle is the cause,
        the error shows the chain.
    TooCostlyError
        When called: if a component exceeds the budgets; the error names it and shows both costs.

    Examples
    --------
    >>> ring = Graph(4, np.array([[0, 1], [1, 2], [2, 3], [0, 3]]), np.full(4, -np.inf))
    >>> infer = exact(ring)
    >>> round(float(np.exp(infer(np.zeros((4, 3))).log_z)))
    18
    >>> [(result.engine, result.width) for result in infer.results(np.zeros((4, 3)))]
    [('junction_tree', 2)]
    """
    return Chain(graph, Budget(max_bytes, max_operations), _raise_too_costly).inference()


def inference_cost(
    graph: Graph, n_states: int, *, allowed: ArrayLike | None = None, max_bytes: int = MAX_BYTES
) -> list[Result]:
    """Compute the cost of exact inference without performing it.

    Parameters
    ----------
    graph : Graph
        Any graph.
    n_states : int
        K.
    allowed : (n_nodes, K) bool array, default=None
        The states that evidence leaves to each node; None: all.
    max_bytes : int, default=2**31
        Maximum size of all tables that exist at one time.

    Returns
    -------
    list of Result
        The engine and the cost of each part of the reduced network, the most expensive first.
        :func:`~cgmm.inference.auto.exact` needs a ``max_operations`` of at least the first cost.
        A component that exceeds ``max_bytes`` or a day's computation has the engine "none", with
        its costs or, if these are not known, lower bounds.

    Raises
    ------
    NetworkError
        If evidence or an odd cycle shows that no joint assignment is possible.

    Examples
    --------
    A grid of 30 by 30 cannot-links, with two states and with three:

    >>> names = np.arange(900).reshape(30, 30)
    >>> edges = [*zip(names[1:].flat, names[:-1].flat), *zip(names.T[1:].flat, names.T[:-1].flat)]
    >>> grid = Graph(900, np.array(edges), np.full(len(edges), -np.inf))
    >>> [result.engine for result in inference_cost(grid, 2)]
    ['independent']
    >>> [(result.engine, result.n_nodes) for result in inference_cost(grid, 3)]
    [('none', 900)]
    """
    chain = Chain(graph, Budget(max_bytes, A_DAYS_OPERATIONS), _report_costs)
    unary = np.zeros((graph.n_nodes, n_states))
    if allowed is not None:
        unary[~np.asarray(allowed, dtype=bool)] = -np.inf
    return sorted(chain.results(unary), key=lambda result: -result.n_operations)


# ------------------------------------------------------------------------- the rules


class Part(NamedTuple):
    """Components that share one engine."""

    nodes: IntArray
    """(n,) nodes of these components, as indices of the reduced graph."""
    infer: Inference
    """The engine, applied to the subgraph of these nodes."""
    result: Result
    """The engine's name, exactness and cost."""


class Wide(NamedTuple):
    """A component beyond the budget."""

    nodes: IntArray
    """(n,) nodes of the component, as indices of the reduced graph."""
    graph: Graph
    """The component; its edges connect positions in ``nodes``."""
    cost: Cost
    """Cost of exact inference in the component, or a lower bound."""


HandleOverBudget = Callable[[list[Wide], int, Budget], list[Part]]
"""Function that takes the components beyond the budget and K; it returns parts or raises."""

IN_CLOSED_FORM = {"independent": independent, "pairs": pairs, "clique": clique}
OVER_BUDGET = "beyond the budget"


def choose_engine(n_nodes: int, is_affordable_clique: bool, fits_tree: bool) -> str:
    """Return the name of the engine of a component: the first of the rules of :func:`auto`.

    Parameters
    ----------
    n_nodes : int
        Number of its nodes.
    is_affordable_clique : bool
        True if all of its nodes are cannot-linked to each other, and the cost is within budget.
    fits_tree : bool
        True if its junction tree and those of all cheaper components are within the budget.

    Returns
    -------
    str
        A name in ENGINES, or ``OVER_BUDGET``.

    Examples
    --------
    >>> choose_engine(2, False, False), choose_engine(4, False, True)
    ('pairs', 'junction_tree')
    """
    if n_nodes == 1:
        return "independent"
    elif n_nodes == 2:
        return "pairs"
    elif is_affordable_clique:
        return "clique"
    elif fits_tree:
        return "junction_tree"
    else:
        return OVER_BUDGET


def choose_parts(
    graph: Graph, n_states: int, budget: Budget, handle_over_budget: HandleOverBudget
) -> list[Part]:
    """Assign each component of a reduced network to the first engine that applies."""
    label = connected_components(graph)
    sizes = np.bincount(label)
    is_clique, costs = _affordable_cliques(graph, label, n_states, budget)
    rest = np.flatnonzero(((sizes > 2) & ~is_clique)[label])
    trees = _affordable_tree(graph, rest, n_states, budget)
    fits = np.zeros(len(sizes), dtype=bool)
    for part in trees:
        fits[label[part.nodes]] = True
    rules = zip(sizes.tolist(), is_clique.tolist(), fits.tolist(), strict=True)
    chosen = np.array([choose_engine(*rule) for rule in rules])
    parts = list[Part]()
    for name in IN_CLOSED_FORM:
        if (applies := chosen == name).any():
            cost, width = int(costs[applies].sum()), int(sizes[applies].max()) - 1
            nodes = np.flatnonzero(applies[label])
            priced = Cost(width, 8 * cost, cost)
            parts.append(_part_in_closed_form(name, graph, nodes, int(applies.sum()), priced))
    wide = [
        _describe_wide(graph, label == c, n_states) for c in np.flatnonzero(chosen == OVER_BUDGET)
    ]
    return parts + trees + (handle_over_budget(wide, n_states, budget) if wide else [])


def _affordable_cliques(
    graph: Graph, label: IntArray, n_states: int, budget: Budget
) -> tuple[BoolArray, FloatArray]:
    """Return which components are affordable cliques of at least three nodes, and all costs.

    The budget goes to the cheapest cliques first. A clique without any possible assignment costs
    nothing, because its engine raises an error. Components of at most two nodes cost K operations
    per node.
    """
    sizes = np.bincount(label)
    of_edge = label[graph.edges[:, 0]]
    n_hard = np.bincount(of_edge[graph.weights == -np.inf], minlength=len(sizes))
    found = np.flatnonzero((2 * n_hard == sizes * (sizes - 1)) & (sizes > 2))
    costs, is_clique = n_states * sizes.astype(float), np.zeros(len(sizes), dtype=bool)
    costs[found] = [count_transitions(n, n_states) for n in sizes[found].tolist()]
    found = found[np.argsort(costs[found], kind="stable")]
    is_clique[found] = np.cumsum(costs[found]) <= budget.max_operations
    return is_clique, costs


def _part_in_closed_form(name: str, graph: Graph, nodes: IntArray, n: int, cost: Cost) -> Part:
    """Apply an engine to the subgraph of its n components."""
    part = induced_subgraph(graph, nodes)
    infer = IN_CLOSED_FORM[name](part)
    return Part(nodes, infer, describe(name, n, part, cost, infer))


def _affordable_tree(graph: Graph, nodes: IntArray, n_states: int, budget: Budget) -> list[Part]:
    """Return at most one part: a junction tree for all components that together fit the budget."""
    while len(nodes):
        part = induced_subgraph(graph, nodes)
        max_degree = most_neighbours(budget.max_operations, n_states)
        contraction = contract(part)
        tree = plan_tree(contraction.core, n_states, max_degree)
        fits = budget.fits(tree, part)
        if fits.all():
            return [_part_in_tree(part, nodes, contraction, tree, max_degree)]
        nodes = nodes[fits]
    return []


def _part_in_tree(
    part: Graph, nodes: IntArray, contraction: Contraction, tree: CliqueTree, max_degree: int
) -> Part:
    """Apply the engine of a planned junction tree to its part."""
    n_components = len(np.unique(connected_components(part)))
    infer = through_tree(part, contraction, lambda _: tree)
    cost = cost_of(tree, max_degree)
    return Part(nodes, infer, describe("junction_tree", n_components, part, cost, infer))


def _describe_wide(graph: Graph, is_member: BoolArray, n_states: int) -> Wide:
    """Return a component beyond the budget with its cost."""
    nodes = np.flatnonzero(is_member)
    component = induced_subgraph(graph, nodes)
    return Wide(nodes, component, full_cost(component, n_states))


# ------------------------------------------------------------------- beyond the budget


def _propagate(wide: Wide) -> Part:
    """Apply belief propagation; the best assignment is searched from its marginals."""
    graph, infer = wide.graph, belief_propagation(wide.graph)
    best = lambda unary: find_best(graph, unary, infer(unary).nodes).states  # noqa: E731
    result = describe("belief_propagation", 1, graph, wide.cost, infer)
    return Part(wide.nodes, Inference(infer, best, exact=infer.exact), result)


def _raise_too_costly(wide: list[Wide], n_states: int, budget: Budget) -> list[Part]:
    """Raise ``TooCostlyError`` for the first of the components."""
    refuse_cost(wide[0].graph, n_states, budget)


def _report_costs(wide: list[Wide], n_states: int, budget: Budget) -> list[Part]:
    """Return a part with the cost of each component, marked as having no engine."""
    return [
        Part(nodes, exact(graph), describe("none", 1, graph, cost)) for nodes, graph, cost in wide
    ]


def _warn(wide: list[Wide], n_states: int, budget: Budget) -> None:
    """Warn that a component is approximated, with the reason and the call that is exact."""
    largest = max(wide, key=lambda part: len(part.nodes))
    highest = max((part.cost for part in wide), key=lambda cost: (cost.at_least, cost.n_operations))
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
        f"The error of the approximation is not known. {suggest_exact(highest)}",
        ApproximationWarning,
    )


# ------------------------------------------------------------------- combining the marginals


class Chain:
    """The three steps of :func:`auto`: reduce a network, divide it, and combine the marginals.

    Parameters
    ----------
    graph : Graph
        Any graph.
    budget : Budget
        The limits of exact inference.
    handle_over_budget : callable
        Function that takes the components beyond the budget, and returns parts or raises.
    """

    def __init__(self, graph: Graph, budget: Budget, handle_over_budget: HandleOverBudget):
        self.graph, self.budget = simplify(graph), budget
        self.handle_over_budget = handle_over_budget
        self.connected = np.unique(self.graph.edges)
        self.isolated = np.delete(np.arange(graph.n_nodes), self.connected)
        self.reduce = reducer(induced_subgraph(self.graph, self.connected))
        self.parts: dict[tuple[int, bytes], list[Part]] = {}

    def inference(self) -> Inference:
        """Return the prepared network as an ``Inference``."""
        return Inference(self.marginals, self.most_probable, self.results)

    def marginals(self, unary: FloatArray) -> Marginals:
        """Return marginals and log Z of unaries (n_nodes, K)."""
        unary, reduced, parts = self._prepare(unary)
        # The arrays are column-major like log densities.
        nodes, log_z, residual = np.empty(unary.shape[::-1]).T, reduced.constant, 0.0
        of_reduced, is_exact = np.empty(reduced.h.shape[::-1]).T, True
        for part in parts:
            of_part = part.infer(_take_rows(reduced.h, part.nodes))
            of_reduced[part.nodes] = of_part.nodes
            log_z, residual = log_z + of_part.log_z, max(residual, of_part.residual)
            is_exact &= of_part.exact
        nodes[self.connected] = reduced.leave(of_reduced)
        nodes[self.isolated], totals = log_normalise(_take_rows(unary, self.isolated))
        log_z += float(totals.sum())
        return Marginals(nodes, float(log_z), is_exact, residual)

    def most_probable(self, unary: FloatArray) -> IntArray:
        """Return the most probable joint assignment; in approximated parts, the best found."""
        unary, reduced, parts = self._prepare(unary)
        z, of_reduced = unary.argmax(axis=1), np.empty(len(reduced.h), dtype=np.intp)
        for part in parts:
            h = _take_rows(reduced.h, part.nodes)
            of_reduced[part.nodes] = part.infer.most_probable(h)
        z[self.connected] = reduced.trace_back(of_reduced)
        return z

    def results(self, unary: FloatArray) -> list[Result]:
        """Return the engine of each part; of the unaries only the positions of -inf matter."""
        n_states, results = unary.shape[1], [part.result for part in self._prepare(unary)[2]]
        if results or not len(self.isolated):
            return results
        n = len(self.isolated)
        return [Result("independent", n, n, 0, True, 0, 8 * n * n_states, n * n_states)]

    def _prepare(self, unary: FloatArray) -> tuple[FloatArray, Reduced, list[Part]]:
        """Return the unaries, the reduced network and its parts, cached by pattern of evidence."""
        unary = check_unary(self.graph, unary)
        reduced = self.reduce(_take_rows(unary, self.connected))
        key = reduced.h.shape[1], reduced.key
        if key not in self.parts:
            if len(self.parts) >= MAX_PATTERNS:
                self.parts.clear()
            self.parts[key] = choose_parts(
                reduced.graph, key[0], self.budget, self.handle_over_budget
            )
        return unary, reduced, self.parts[key]


def _take_rows(unary: FloatArray, nodes: IntArray) -> FloatArray:
    """Return the rows of the given nodes, column-major like log densities."""
    return np.take(unary.T, nodes, axis=1).T
