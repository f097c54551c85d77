"""Exact wherever it is cheap, an approximation that says so elsewhere. Chapters 7 and 10.

The way of a question, from top to bottom: evidence that decides something, and for K = 2 the
mirror, make the network smaller (:mod:`cgmm.inference.reduction`). What is left falls apart into
components, and each is answered by the first that applies:

====================================  =================================================
component                             engine
====================================  =================================================
one node                              independent
two nodes                             pairs
mutually cannot-linked                clique
any other within the budget           junction_tree
beyond the budget                     belief_propagation, with a warning
====================================  =================================================

:func:`exact` is the same chain with another end: it refuses what is beyond the budget before
anything is begun, with both costs. What things cost is told by :mod:`cgmm.inference.costs`.

=====  ======================================================================
part   components that one engine takes care of
tied   nodes that have edges
K      number of states of a node
=====  ======================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cgmm.inference.belief_propagation import belief_propagation
from cgmm.inference.best_assignment import find_best
from cgmm.inference.clique import clique, count_transitions
from cgmm.inference.clique_tree import lay_out
from cgmm.inference.contraction import contract
from cgmm.inference.costs import (
    AFFORDABLE,
    MAX_BYTES,
    MAX_OPERATIONS,
    REACH,
    Budget,
    Cost,
    answer_at,
    cost_of,
    in_words,
    most_neighbours,
    refuse_cost,
    whole_cost,
    with_patience,
)  # fmt: skip
from cgmm.inference.independent import independent
from cgmm.inference.junction_tree import through_tree
from cgmm.inference.pairs import pairs
from cgmm.inference.reduction import MAX_PATTERNS, Reduced, reducer
from cgmm.network import (
    Answer,
    ApproximationWarning,
    Graph,
    Inference,
    Marginals,
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
        a list of :class:`~cgmm.network.Answer`; each has ``exact``.

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
    What is wide stays wide: a grid of 16 by 16 cannot-links with K = 3 has tables of 42 GiB, and is
    approximated. So are large cliques of cannot-links that share nodes, unless they fit a junction
    tree: a table over ten of them, with ten states, would have 10^10 entries.

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
    warned = list[bool]()

    def approximate(wide: list[Wide], n_states: int, budget: Budget) -> list[Part]:
        if not warned:
            warned.append(True)
            _warn(wide, n_states, budget)
        return [_propagating(part) for part in wide]

    return Chain(graph, Budget(max_bytes, max_operations), approximate).inference()


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
        dearest first; :func:`~cgmm.inference.auto.exact` wants ``max_operations`` of as much as
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
    chain = Chain(graph, Budget(max_bytes, REACH), _price)
    unary = np.zeros((graph.n_nodes, n_states))
    if allowed is not None:
        unary[~np.asarray(allowed, dtype=bool)] = -np.inf
    return sorted(chain.answered(unary), key=lambda answer: -answer.n_operations)


# ------------------------------------------------------------------------- who answers


class Part(NamedTuple):
    """Components that one engine takes care of."""

    nodes: IntArray
    """Their nodes, under the names of the whole graph."""
    infer: Inference
    answer: Answer


class Wide(NamedTuple):
    """A component beyond the budget."""

    nodes: IntArray
    graph: Graph
    """Its edges, the nodes named by their place in ``nodes``."""
    cost: Cost


Beyond = Callable[[list[Wide], int, Budget], list[Part]]
"""What becomes of components that are too wide, for K states."""


def choose(graph: Graph, n_states: int, budget: Budget, beyond: Beyond) -> list[Part]:
    """For each component of a reduced network the first engine that applies."""
    label = connected_components(graph)
    sizes, parts = np.bincount(label), list[Part]()
    is_clique, transitions = _affordable_cliques(graph, label, n_states, budget)
    for engine, applies, n_operations in (
        (independent, sizes == 1, n_states * sizes),
        (pairs, sizes == 2, n_states * sizes),
        (clique, is_clique, transitions),
    ):
        nodes = np.flatnonzero(applies[label])
        if len(nodes):
            part, cost = induced_subgraph(graph, nodes), int(n_operations[applies].sum())
            priced = Cost(int(sizes[applies].max()) - 1, 8 * cost, cost)
            answer = answer_at(engine.__name__, int(applies.sum()), part, priced)
            parts.append(Part(nodes, engine(part), answer))
    nodes = np.flatnonzero(((sizes > 2) & ~is_clique)[label])
    trees, wide = _by_elimination(graph, nodes, n_states, budget)
    return parts + trees + (beyond(wide, n_states, budget) if wide else [])


def _affordable_cliques(
    graph: Graph, label: IntArray, n_states: int, budget: Budget
) -> tuple[BoolArray, FloatArray]:
    """Which components of three nodes or more are cliques within the budget, and their costs.

    The cheapest are taken first; those that have no assignment say so at no cost.
    """
    sizes = np.bincount(label)
    of_edge = label[graph.edges[:, 0]]
    n_hard = np.bincount(of_edge[graph.weights == -np.inf], minlength=len(sizes))
    found = np.flatnonzero((2 * n_hard == sizes * (sizes - 1)) & (sizes > 2))
    costs, is_clique = np.zeros(len(sizes)), np.zeros(len(sizes), dtype=bool)
    costs[found] = [count_transitions(n, n_states) for n in sizes[found].tolist()]
    found = found[np.argsort(costs[found], kind="stable")]
    is_clique[found] = np.cumsum(costs[found]) <= budget.max_operations
    return is_clique, costs


def _by_elimination(
    graph: Graph, nodes: IntArray, n_states: int, budget: Budget
) -> tuple[list[Part], list[Wide]]:
    """One junction tree for all components that fit the budget together; and the others."""
    left, beyond = nodes, nodes[:0]
    while len(left):
        part = induced_subgraph(graph, left)
        max_degree = most_neighbours(budget.max_operations, n_states)
        contraction = contract(part)
        tree = lay_out(contraction.core, n_states, max_degree)
        fits = budget.fits(tree, part)
        if fits.all():
            break
        left, beyond = left[fits], np.concatenate([beyond, left[~fits]])
    parts, wide = list[Part](), list[Wide]()
    if len(left):
        n_components = len(np.unique(connected_components(part)))
        answer = answer_at("junction_tree", n_components, part, cost_of(tree, max_degree))
        parts.append(Part(left, through_tree(part, contraction, lambda _: tree), answer))
    label = connected_components(induced_subgraph(graph, beyond))
    for c in range(label.max(initial=-1) + 1):
        members = np.sort(beyond[label == c])
        component = induced_subgraph(graph, members)
        wide.append(Wide(members, component, whole_cost(component, n_states)))
    return parts, wide


# ------------------------------------------------------------------- what is beyond


def _propagating(wide: Wide) -> Part:
    """Belief propagation, and the best assignment found from its marginals."""
    graph, infer = wide.graph, belief_propagation(wide.graph)
    best = lambda unary: find_best(graph, unary, infer(unary).nodes).states  # noqa: E731
    answer = answer_at("belief_propagation", 1, graph, wide.cost)
    return Part(wide.nodes, Inference(infer, best), answer)


def _refuse(wide: list[Wide], n_states: int, budget: Budget) -> list[Part]:
    """Name the first of the components."""
    refuse_cost(wide[0].graph, n_states, budget)


def _price(wide: list[Wide], n_states: int, budget: Budget) -> list[Part]:
    """The cost of each wide component; nobody answers it."""
    return [
        Part(nodes, exact(graph), answer_at("none", 1, graph, cost)) for nodes, graph, cost in wide
    ]


def _warn(wide: list[Wide], n_states: int, budget: Budget) -> None:
    """Say what is approximated, why, how far off that can be, and how to have it exactly."""
    largest = max(wide, key=lambda part: len(part.nodes))
    dearest = max((part.cost for part in wide), key=lambda cost: (cost.at_least, cost.n_operations))
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
        "How far off they are is not known: of a grid of 14 x 14 cannot-links with K = 4 log Z is "
        f"6 nats too low. {with_patience(dearest)}",
        ApproximationWarning,
    )


# ------------------------------------------------------------------- the answers put together


class Chain:
    """Reduce, take apart, ask, and all the way back.

    Parameters
    ----------
    graph : Graph
        Any graph.
    budget : Budget
        What exact inference may take.
    beyond : callable
        From components that are too wide, and K, to their parts.
    """

    def __init__(self, graph: Graph, budget: Budget, beyond: Beyond):
        self.graph, self.budget, self.beyond = simplify(graph), budget, beyond
        self.tied = np.unique(self.graph.edges)
        self.alone = np.delete(np.arange(graph.n_nodes), self.tied)
        self.reduce = reducer(induced_subgraph(self.graph, self.tied))
        self.known: dict[tuple[int, bytes], list[Part]] = {}

    def inference(self) -> Inference:
        """What may be asked of it."""
        return Inference(self.marginals, self.most_probable, self.answered)

    def marginals(self, unary: FloatArray) -> Marginals:
        """Marginals and log Z of unaries (n_nodes, K)."""
        unary, reduced, parts = self._prepare(unary)
        # Column-major, as log densities are.
        nodes, log_z, residual = np.empty(unary.shape[::-1]).T, reduced.constant, 0.0
        found = np.empty(reduced.h.shape[::-1]).T
        for part in parts:
            said = part.infer(_rows(reduced.h, part.nodes))
            found[part.nodes] = said.nodes
            log_z, residual = log_z + said.log_z, max(residual, said.residual)
        nodes[self.tied] = reduced.leave(found)
        nodes[self.alone], totals = log_normalise(_rows(unary, self.alone))
        log_z += float(totals.sum())
        exact = all(part.answer.exact for part in parts)
        return Marginals(nodes, float(log_z), exact, residual)

    def most_probable(self, unary: FloatArray) -> IntArray:
        """The most probable joint assignment, where an engine approximates the best found."""
        unary, reduced, parts = self._prepare(unary)
        z, found = unary.argmax(axis=1), np.empty(len(reduced.h), dtype=np.intp)
        for part in parts:
            found[part.nodes] = part.infer.most_probable(_rows(reduced.h, part.nodes))
        z[self.tied] = reduced.trace_back(found)
        return z

    def answered(self, unary: FloatArray) -> list[Answer]:
        """Who answers what for such unaries, of which only the places of -inf matter."""
        n_states, answers = unary.shape[1], [part.answer for part in self._prepare(unary)[2]]
        if answers or not len(self.alone):
            return answers
        n = len(self.alone)
        return [Answer("independent", n, n, 0, 0, 8 * n * n_states, n * n_states)]

    def _prepare(self, unary: FloatArray) -> tuple[FloatArray, Reduced, list[Part]]:
        """The reduced network, and who answers it: found once for each pattern of evidence."""
        unary = check_unary(self.graph, unary)
        reduced = self.reduce(_rows(unary, self.tied))
        key = reduced.h.shape[1], reduced.key
        if key not in self.known:
            if len(self.known) >= MAX_PATTERNS:
                self.known.clear()
            self.known[key] = choose(reduced.graph, key[0], self.budget, self.beyond)
        return unary, reduced, self.known[key]


def _rows(unary: FloatArray, nodes: IntArray) -> FloatArray:
    """Some rows, column-major as log densities are."""
    return np.take(unary.T, nodes, axis=1).T
