"""The default engine: exact in cheap components, approximate in expensive ones, with a warning.

A network passes through three steps. First, evidence and, for K = 2, mirroring make it smaller
(:mod:`cgmm.inference.reduction`). Second, ``choose_engine`` assigns each component of the reduced
network to the first engine that applies. Third, the marginals of all components are combined and
mapped back to the whole network. :func:`exact` has the same steps, but raises an error instead of
approximating a component; the error shows its costs (:mod:`cgmm.inference.costs`).
Estimators use ``auto`` by default. Chapters 7 and 10 explain this file.

=========  ====================================================================
part       components to which one engine is applied, e.g. all disjoint pairs
connected  nodes that have edges, e.g. [0, 1, 3]; all other nodes are *isolated*
K          number of states of a node, e.g. 3
=========  ====================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cgmm.inference import costs
from cgmm.inference.belief_propagation import belief_propagation
from cgmm.inference.best_assignment import find_best
from cgmm.inference.clique import clique, count_transitions
from cgmm.inference.clique_tree import plan_tree
from cgmm.inference.closed_forms import independent, pairs
from cgmm.inference.contraction import contract
from cgmm.inference.costs import Budget, Cost, build_result, format_bytes
from cgmm.inference.junction_tree import build_inference
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
    graph: Graph, *, max_bytes: int = costs.MAX_BYTES, max_operations: float = costs.AFFORDABLE
) -> Inference:
    """Prepare a graph for inference that is exact in cheap components, else approximate.

    Each connected component of the reduced network goes to the first engine whose rule applies:

    1. one node: ``independent``;
    2. two nodes: ``pairs``;
    3. mutually cannot-linked nodes whose cost is within the budget: ``clique``;
    4. a junction tree within the budget, the cheapest components first: ``junction_tree``;
    5. all other components: ``belief_propagation``, with a warning.

    Parameters
    ----------
    graph : Graph
        Any graph.
    max_bytes : int, default=2**31
        Maximum size of the tables of exact inference.
    max_operations : float, default=1e8
        Maximum number of table entries that exact inference visits in one call; 1e8 take about a
        second. The cheapest components are the first to use this budget.

    Returns
    -------
    callable
        Function from unaries (n_nodes, K) to marginals and log Z, which are exact if their field
        ``exact`` is True. Its ``most_probable`` returns the most probable joint assignment or, in
        approximated components, the best one that a search finds; no cannot-link is broken. Its
        ``results`` lists the engine of each part as :class:`~cgmm.network.Result`.

    Raises
    ------
    NetworkError
        When called: if a component is found to have no possible assignment, by an exact engine or
        because evidence or a cycle of odd length excludes all; the error names its nodes.

    Warns
    -----
    ApproximationWarning
        At the first call: if a component exceeds a budget; the warning shows its size and width.

    Notes
    -----
    Some networks have a large width in every order of elimination: a grid of 16 by 16 cannot-links
    with K = 3 needs tables of 42 GiB, so it is approximated. Large overlapping cliques of
    cannot-links are approximated too, unless their junction tree is within the budget: a single
    table over ten nodes with ten states would have 10^10 entries.

    Examples
    --------
    The graph consists of a pair, a single node, and a path of three nodes:

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

    def approximate(components: list[WideComponent], n_states: int, budget: Budget) -> list[Part]:
        nonlocal has_warned
        if not has_warned:
            has_warned = True
            _warn_of_approximation(components, n_states, budget)
        return [_apply_belief_propagation(part) for part in components]

    return DividedNetwork(graph, Budget(max_bytes, max_operations), approximate).inference()


def exact(
    graph: Graph,
    *,
    max_bytes: int = costs.MAX_BYTES,
    max_operations: float = costs.MAX_OPERATIONS,
    verbose: int = 0,
) -> Inference:
    """Prepare a graph for exact inference, which raises an error if it is beyond the budget.

    The rules are those of :func:`auto`, with an error in place of an approximation.

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
        Function from unaries (n_nodes, K) to exact marginals and log Z. It has ``most_probable``,
        and ``results``, which lists the engine and the cost of each part as
        :class:`~cgmm.network.Result`.

    Raises
    ------
    NetworkError
        When called: if no joint assignment is possible. If evidence or a cycle of odd length is the
        cause, the error shows the nodes involved in order.
    TooCostlyError
        When called: if a component exceeds a budget; the error names it and shows both costs.

    Examples
    --------
    >>> ring = Graph(4, np.array([[0, 1], [1, 2], [2, 3], [0, 3]]), np.full(4, -np.inf))
    >>> infer = exact(ring)
    >>> round(float(np.exp(infer(np.zeros((4, 3))).log_z)))
    18
    >>> [(result.engine, result.width) for result in infer.results(np.zeros((4, 3)))]
    [('junction_tree', 2)]
    """
    return DividedNetwork(graph, Budget(max_bytes, max_operations), _raise_too_costly).inference()


def inference_cost(
    graph: Graph, n_states: int, *, allowed: ArrayLike | None = None,
    max_bytes: int = costs.MAX_BYTES,
) -> list[Result]:  # fmt: skip
    """Compute the cost of exact inference in a graph, without performing the inference.

    Parameters
    ----------
    graph : Graph
        Any graph.
    n_states : int
        K.
    allowed : (n_nodes, K) bool array, default=None
        True for the states that evidence allows for each node; None: all are allowed.
    max_bytes : int, default=2**31
        Maximum size of all tables that exist at one time.

    Returns
    -------
    list of Result
        The engine and the cost of each part of the reduced network, the most expensive part first.
        :func:`~cgmm.inference.auto.exact` needs a ``max_operations`` of at least the first cost.
        If a component exceeds ``max_bytes`` or a day's computation, its engine is "none", and its
        costs may be lower bounds.

    Raises
    ------
    NetworkError
        If evidence or a cycle of odd length excludes all joint assignments.

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
    chain = DividedNetwork(graph, Budget(max_bytes, costs.A_DAYS_OPERATIONS), _report_costs)
    unary = np.zeros((graph.n_nodes, n_states))
    if allowed is not None:
        unary[~np.asarray(allowed, dtype=bool)] = -np.inf
    return sorted(chain.results(unary), key=lambda result: -result.n_operations)


# ------------------------------------------------------------------------- the rules


class Part(NamedTuple):
    """Components to which one engine is applied."""

    nodes: IntArray
    """(n,) nodes of these components, as indices of the reduced graph."""
    infer: Inference
    """The subgraph of these nodes, prepared by the engine."""
    result: Result
    """The name of the engine, the cost of its computation, and if its marginals are exact."""


class WideComponent(NamedTuple):
    """A component whose exact inference is beyond the budget."""

    nodes: IntArray
    """(n,) nodes of the component, as indices of the reduced graph."""
    graph: Graph
    """The subgraph of the component, whose node i is ``nodes[i]``."""
    cost: Cost
    """Cost of exact inference in the component, or a lower bound of it."""


HandleOverBudget = Callable[[list[WideComponent], int, Budget], list[Part]]
"""Function that is called with the components beyond the budget, K and the budget; it returns parts
or raises an error."""

CLOSED_FORMS = {"independent": independent, "pairs": pairs, "clique": clique}
OVER_BUDGET = "beyond the budget"


def choose_engine(n_nodes: int, is_affordable_clique: bool, fits_tree: bool) -> str:
    """Return the name of the engine for a component, by the rules of :func:`auto`.

    Parameters
    ----------
    n_nodes : int
        Number of its nodes.
    is_affordable_clique : bool
        True if its nodes are mutually cannot-linked, and the cost of ``clique`` is within budget.
    fits_tree : bool
        True if the junction trees of it and of all cheaper components together are within budget.

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
    """Divide a reduced network into parts: each component goes to the first engine that applies."""
    label = connected_components(graph)
    sizes = np.bincount(label)
    is_clique, n_operations = _find_cliques(graph, label, n_states, budget)
    rest = np.flatnonzero(((sizes > 2) & ~is_clique)[label])
    trees = _build_tree(graph, rest, n_states, budget)
    fits = np.zeros(len(sizes), dtype=bool)
    for part in trees:
        fits[label[part.nodes]] = True
    rules = zip(sizes.tolist(), is_clique.tolist(), fits.tolist(), strict=True)
    chosen = np.array([choose_engine(*rule) for rule in rules])
    parts = list[Part]()
    for name in CLOSED_FORMS:
        if (applies := chosen == name).any():
            total, width = int(n_operations[applies].sum()), int(sizes[applies].max()) - 1
            nodes, cost = np.flatnonzero(applies[label]), Cost(width, 8 * total, total)
            parts.append(_build_closed_form(name, graph, nodes, int(applies.sum()), cost))
    components = [
        _make_component(graph, label == c, n_states) for c in np.flatnonzero(chosen == OVER_BUDGET)
    ]
    return parts + trees + (handle_over_budget(components, n_states, budget) if components else [])


def _find_cliques(
    graph: Graph, label: IntArray, n_states: int, budget: Budget
) -> tuple[BoolArray, FloatArray]:
    """Return (n_components,) booleans that mark affordable cliques, and the costs of components.

    An affordable clique has at least three nodes; the cheapest cliques are the first to use the
    budget. A clique without any possible assignment costs nothing, because its engine raises an
    error. Components of at most two nodes cost K operations per node.
    """
    sizes = np.bincount(label)
    of_edge = label[graph.edges[:, 0]]
    n_hard = np.bincount(of_edge[graph.weights == -np.inf], minlength=len(sizes))
    cliques = np.flatnonzero((2 * n_hard == sizes * (sizes - 1)) & (sizes > 2))
    n_operations, is_clique = n_states * sizes.astype(float), np.zeros(len(sizes), dtype=bool)
    n_operations[cliques] = [count_transitions(n, n_states) for n in sizes[cliques].tolist()]
    cliques = cliques[np.argsort(n_operations[cliques], kind="stable")]
    is_clique[cliques] = np.cumsum(n_operations[cliques]) <= budget.max_operations
    return is_clique, n_operations


def _build_closed_form(
    name: str, graph: Graph, nodes: IntArray, n_components: int, cost: Cost
) -> Part:
    """Prepare the subgraph of these nodes as one part, with the engine of this name."""
    part = induced_subgraph(graph, nodes)
    infer = CLOSED_FORMS[name](part)
    return Part(nodes, infer, build_result(name, n_components, part, cost, infer))


def _build_tree(graph: Graph, nodes: IntArray, n_states: int, budget: Budget) -> list[Part]:
    """Return a list with one part, the components that together fit the budget, or an empty one."""
    while len(nodes):
        part = induced_subgraph(graph, nodes)
        max_degree = costs.find_max_degree(budget.max_operations, n_states)
        contraction = contract(part)
        tree = plan_tree(contraction.core, n_states, max_degree)
        fits = budget.fits(tree, part)
        if fits.all():
            break
        nodes = nodes[fits]
    else:
        return []
    infer = build_inference(part, contraction, lambda _: tree)
    n_components = len(np.unique(connected_components(part)))
    cost = costs.compute_cost(tree, max_degree)
    return [Part(nodes, infer, build_result("junction_tree", n_components, part, cost, infer))]


def _make_component(graph: Graph, is_member: BoolArray, n_states: int) -> WideComponent:
    """Build the ``WideComponent`` of the nodes that are marked as members."""
    nodes = np.flatnonzero(is_member)
    component = induced_subgraph(graph, nodes)
    return WideComponent(nodes, component, costs.compute_full_cost(component, n_states))


# ------------------------------------------------------------------- beyond the budget


def _apply_belief_propagation(component: WideComponent) -> Part:
    """Prepare a component for belief propagation, and for a search of the best assignment."""
    graph, infer = component.graph, belief_propagation(component.graph)
    best = lambda unary: find_best(graph, unary, infer(unary).nodes).states  # noqa: E731
    result = build_result("belief_propagation", 1, graph, component.cost, infer)
    return Part(component.nodes, Inference(infer, best, exact=infer.exact), result)


def _raise_too_costly(components: list[WideComponent], n_states: int, budget: Budget) -> list[Part]:
    """Raise ``TooCostlyError`` for the first of the components beyond the budget."""
    costs.raise_too_costly(components[0].graph, n_states, budget)


def _report_costs(components: list[WideComponent], n_states: int, budget: Budget) -> list[Part]:
    """Return a part for each component, with its cost and with "none" as its engine."""
    return [Part(n, exact(g), build_result("none", 1, g, cost)) for n, g, cost in components]


def _warn_of_approximation(components: list[WideComponent], n_states: int, budget: Budget) -> None:
    """Warn that components are approximated; give the reason, and settings for exact inference."""
    largest = max(components, key=lambda part: len(part.nodes))
    highest = max((part.cost for part in components), key=lambda c: (c.at_least, c.n_operations))
    cost, others = largest.cost, len(components) - 1
    bound = "at least " if cost.at_least else ""
    also = f" The same is true of {others} other components." if others else ""
    warn_caller(
        f"marginals, log-evidence and labels are approximations by belief propagation in a "
        f"component of {len(largest.nodes):,} nodes connected by {len(largest.graph.edges):,} "
        f"edges: it has an induced width of {bound}{cost.width}, so that with K = {n_states} exact "
        f"inference would take {bound}{format_bytes(cost.n_bytes)} and "
        f"{bound}{cost.n_operations:.2g} operations a call (allowed are "
        f"{format_bytes(budget.max_bytes)} and {budget.max_operations:.2g}).{also} "
        f"The error of the approximation is not known. {costs.suggest_exact(highest)}",
        ApproximationWarning,
    )


# ------------------------------------------------------------------- combining the marginals


class DividedNetwork:
    """The three steps of :func:`auto`: reduce a network, divide it, and combine the results.

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
        """Return an ``Inference`` whose functions take the three steps for the whole network."""
        return Inference(self.marginals, self.most_probable, self.results)

    def marginals(self, unary: FloatArray) -> Marginals:
        """Return the marginals and log Z for unaries (n_nodes, K)."""
        unary, reduced, parts = self._prepare(unary)
        # Allocate column-major arrays, because log densities are column-major.
        nodes, log_z, residual = np.empty(unary.shape[::-1]).T, reduced.constant, 0.0
        of_reduced, is_exact = np.empty(reduced.h.shape[::-1]).T, True
        for part in parts:
            of_part = part.infer(_take_nodes(reduced.h, part.nodes))
            of_reduced[part.nodes] = of_part.nodes
            log_z, residual = log_z + of_part.log_z, max(residual, of_part.residual)
            is_exact &= of_part.exact
        nodes[self.connected] = reduced.expand_marginals(of_reduced)
        nodes[self.isolated], totals = log_normalise(_take_nodes(unary, self.isolated))
        log_z += float(totals.sum())
        return Marginals(nodes, float(log_z), is_exact, residual)

    def most_probable(self, unary: FloatArray) -> IntArray:
        """Return the most probable joint assignment or, in approximated parts, the best found."""
        unary, reduced, parts = self._prepare(unary)
        z, of_reduced = unary.argmax(axis=1), np.empty(len(reduced.h), dtype=np.intp)
        for part in parts:
            h = _take_nodes(reduced.h, part.nodes)
            of_reduced[part.nodes] = part.infer.most_probable(h)
        z[self.connected] = reduced.expand_assignment(of_reduced)
        return z

    def results(self, unary: FloatArray) -> list[Result]:
        """Return the engine and cost of each part, which depend on the positions of -inf only."""
        n_states, results = unary.shape[1], [part.result for part in self._prepare(unary)[2]]
        if results or not len(self.isolated):
            return results
        n = len(self.isolated)
        return [Result("independent", n, n, 0, True, 0, 8 * n * n_states, n * n_states)]

    def _prepare(self, unary: FloatArray) -> tuple[FloatArray, Reduced, list[Part]]:
        """Return checked unaries, the reduced network and its parts, which are cached."""
        unary = check_unary(self.graph, unary)
        reduced = self.reduce(_take_nodes(unary, self.connected))
        key = reduced.h.shape[1], reduced.key
        if key not in self.parts:
            if len(self.parts) >= MAX_PATTERNS:
                self.parts.clear()
            self.parts[key] = choose_parts(
                reduced.graph, key[0], self.budget, self.handle_over_budget
            )
        return unary, reduced, self.parts[key]


def _take_nodes(unary: FloatArray, nodes: IntArray) -> FloatArray:
    """Return the unaries of the given nodes as a column-major array."""
    return np.take(unary.T, nodes, axis=1).T
