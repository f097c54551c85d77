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
with large cliques that share nodes   cut_vertices, where that is cheaper
beyond the budget                     belief_propagation, with a warning
====================================  =================================================

:mod:`cgmm.inference.exact` is the same chain with another end: it refuses what is beyond.

=====  ======================================================================
part   components that one engine takes care of
tied   nodes that have edges
K      number of states of a node
=====  ======================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple, TypeVar

import numpy as np

from cgmm.inference.belief_propagation import belief_propagation
from cgmm.inference.best_assignment import best_assignment
from cgmm.inference.block_tree import Piece, pieces
from cgmm.inference.clique import clique, count_sets, is_within_reach
from cgmm.inference.clique_tree import lay_out, tabulate
from cgmm.inference.contraction import contract
from cgmm.inference.costs import (
    AFFORDABLE,
    MAX_BYTES,
    Budget,
    Cost,
    answer_at,
    cost_of,
    costs_of_components,
    in_words,
    whole_cost,
    with_patience,
)
from cgmm.inference.cut_vertices import cut_vertices
from cgmm.inference.independent import independent
from cgmm.inference.junction_tree import junction_tree, through_tree
from cgmm.inference.pairs import pairs
from cgmm.inference.reduction import MAX_PATTERNS, Reduced, reducer
from cgmm.network import (
    Answer,
    ApproximationWarning,
    Graph,
    Inference,
    Marginals,
    NetworkError,
    check_unary,
    connected_components,
    disjoint_union,
    induced_subgraph,
    simplify,
)
from cgmm.numerics import BoolArray, FloatArray, IntArray, log_normalise, warn_caller

__all__ = ["Chain", "auto"]

# A junction tree of fewer entries is not worth a look for something cheaper.
CHEAP = 1_000_000

Result = TypeVar("Result")


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
    approximated. Large cliques that share one node are summed clique by clique, as "cut_vertices";
    cliques that share two nodes or more have to fit a junction tree, else they are approximated.

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
        union = disjoint_union([part.graph for part in wide])
        nodes = np.concatenate([part.nodes for part in wide])
        answer = answer_at("belief_propagation", union, [part.cost for part in wide])
        return [Part(nodes, _propagating(union), answer)]

    return Chain(graph, Budget(max_bytes, max_operations), approximate).inference()


def _propagating(graph: Graph) -> Inference:
    """Belief propagation, and the best assignment found from its marginals."""
    infer = belief_propagation(graph)
    return Inference(infer, lambda unary: best_assignment(graph, unary, infer(unary).nodes))


def _warn(wide: list[Wide], n_states: int, budget: Budget) -> None:
    """Say what is approximated, why, how far off that can be, and how to have it exactly."""
    largest = max(wide, key=lambda part: len(part.nodes))
    cost, more = largest.cost, ""
    least = "at least " if cost.at_least else ""
    if len(wide) > 1:
        more = f" So have {len(wide) - 1} other components."
    whole = [whole_cost(part.graph, n_states) for part in wide]
    dearest = max(whole, key=lambda cost: (cost.at_least, cost.n_operations))
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


# ------------------------------------------------------------------------- who answers


class Part(NamedTuple):
    """All components that one engine takes care of."""

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
    is_clique = _affordable_cliques(graph, label, n_states, budget)
    for engine, applies in (
        (independent, sizes == 1),
        (pairs, sizes == 2),
        (clique, is_clique),
    ):
        nodes = np.flatnonzero(applies[label])
        if len(nodes):
            part = induced_subgraph(graph, nodes)
            answer = _simple_answer(engine.__name__, part, sizes[applies], n_states)
            parts.append(Part(nodes, engine(part), answer))
    nodes = np.flatnonzero(((sizes > 2) & ~is_clique)[label])
    if len(nodes):
        parts += _by_width(nodes, induced_subgraph(graph, nodes), n_states, budget, beyond)
    return parts


def _affordable_cliques(graph: Graph, label: IntArray, n_states: int, budget: Budget) -> BoolArray:
    """Which components of three nodes or more are cliques within the budget, the cheapest first."""
    sizes = np.bincount(label)
    of_edge = label[graph.edges[:, 0]]
    n_hard = np.bincount(of_edge[graph.weights == -np.inf], minlength=len(sizes))
    is_clique = (2 * n_hard == sizes * (sizes - 1)) & (sizes > 2)
    costs = np.array([_transitions(n, n_states) for n in sizes[is_clique].tolist()], dtype=float)
    order = np.argsort(costs, kind="stable")
    is_clique[np.flatnonzero(is_clique)[order]] = np.cumsum(costs[order]) <= budget.max_operations
    return is_clique


@lru_cache(maxsize=256)
def _transitions(n: int, n_states: int) -> float:
    """What a clique of n nodes costs; those that have no assignment say so at no cost."""
    if not is_within_reach(n, n_states):
        return np.inf
    return 0 if n > n_states else count_sets(n, n_states)[1]


def _simple_answer(name: str, part: Graph, sizes: IntArray, n_states: int) -> Answer:
    """Of components of a closed form."""
    cost = n_states * part.n_nodes
    if name == "clique":
        cost = int(sum(_transitions(int(n), n_states) for n in sizes))
    width = int(sizes.max()) - 1
    return Answer(name, len(sizes), part.n_nodes, len(part.edges), width, 8 * cost, cost)


def _by_width(
    nodes: IntArray, part: Graph, n_states: int, budget: Budget, beyond: Beyond
) -> list[Part]:
    """Junction trees for what is cheap, cut vertices where they are cheaper, or what is beyond."""
    max_degree, contraction = budget.max_degree(n_states), contract(part)
    layout = lay_out(contraction.core, n_states, max_degree)
    label, costs = costs_of_components(part, layout, n_states, max_degree)
    fits, wide, parts = budget.fits(costs), list[Wide](), list[Part]()
    for c in [c for c, cost in enumerate(costs) if cost.n_operations > CHEAP or not fits[c]]:
        members = np.flatnonzero(label == c)
        found = Wide(nodes[members], induced_subgraph(part, members), costs[c])
        cheaper = by_pieces(found, n_states, budget)
        if cheaper is not None:
            fits[c] = False
            parts.append(cheaper)
        elif not fits[c]:
            wide.append(found)
    if fits.all():
        infer = through_tree(part, contraction, lambda _: tabulate(layout, n_states))
        parts.append(Part(nodes, infer, answer_at("junction_tree", part, costs)))
    elif fits.any():
        members = np.flatnonzero(fits[label])
        chosen = induced_subgraph(part, members)
        infer = junction_tree(chosen, max_bytes=2 * budget.max_bytes)
        kept = [cost for cost, fit in zip(costs, fits, strict=True) if fit]
        parts.append(Part(nodes[members], infer, answer_at("junction_tree", chosen, kept)))
    return parts + (beyond(wide, n_states, budget) if wide else [])


def by_pieces(wide: Wide, n_states: int, budget: Budget) -> Part | None:
    """Large cliques summed by subsets, where that is possible and cheaper."""
    found = pieces(wide.graph, n_states)
    if not any(piece.is_clique for piece in found):
        return None
    cost = _cost_of_pieces(found, n_states, budget)
    if not budget.fits([cost]).all() or cost.n_operations >= wide.cost.n_operations:
        return None
    answer = answer_at("cut_vertices", wide.graph, [cost])
    return Part(wide.nodes, cut_vertices(wide.graph), answer)


def _cost_of_pieces(found: list[Piece], n_states: int, budget: Budget) -> Cost:
    """Cliques, and the junction trees of all other pieces, K times each."""
    others = [piece for piece in found if not piece.is_clique]
    cliques = [len(piece.nodes) for piece in found if piece.is_clique]
    union = disjoint_union([piece.graph for piece in others])
    max_degree = budget.max_degree(n_states)
    cost = cost_of(lay_out(contract(union).core, n_states, max_degree), n_states, max_degree)
    n_operations = cost.n_operations + sum(count_sets(n - 1, n_states)[1] for n in cliques)
    n_bytes = cost.n_bytes + 8 * n_states**2 * sum(len(piece.nodes) for piece in found)
    return cost._replace(n_bytes=n_bytes, n_operations=n_states * n_operations)


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
            said = self._ask(reduced, part, part.infer)
            found[part.nodes] = said.nodes
            log_z, residual = log_z + said.log_z, max(residual, said.residual)
        nodes[self.tied] = reduced.leave(found)
        nodes[self.alone], totals = log_normalise(np.take(unary.T, self.alone, axis=1).T)
        log_z += float(totals.sum())
        exact = all(part.answer.exact for part in parts)
        return Marginals(nodes, float(log_z), exact, residual)

    def most_probable(self, unary: FloatArray) -> IntArray:
        """The most probable joint assignment, where an engine approximates the best found."""
        unary, reduced, parts = self._prepare(unary)
        z, found = unary.argmax(axis=1), np.empty(len(reduced.h), dtype=np.intp)
        for part in parts:
            found[part.nodes] = self._ask(reduced, part, part.infer.most_probable)
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
        try:
            reduced = self.reduce(np.take(unary.T, self.tied, axis=1).T)
        except NetworkError as error:
            raise error.renamed(self.tied) from None
        key = reduced.h.shape[1], reduced.key
        if key not in self.known:
            find = partial(choose, reduced.graph, key[0], self.budget, self.beyond)
            parts = self._named(reduced, find) if len(self.tied) else []
            if len(self.known) >= MAX_PATTERNS:
                self.known.clear()
            self.known[key] = parts
        return unary, reduced, self.known[key]

    def _ask(
        self, reduced: Reduced, part: Part, question: Callable[[FloatArray], Result]
    ) -> Result:
        """Put a question to the engine of a part."""

        def ask() -> Result:
            try:
                return question(np.take(reduced.h.T, part.nodes, axis=1).T)
            except NetworkError as error:
                raise error.renamed(part.nodes) from None

        return self._named(reduced, ask)

    def _named(self, reduced: Reduced, do: Callable[[], Result]) -> Result:
        """Do something about the reduced network; errors name nodes of the whole one."""
        try:
            return do()
        except NetworkError as error:
            raise reduced.renamed(error).renamed(self.tied) from None
