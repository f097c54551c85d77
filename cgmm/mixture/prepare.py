"""What a fit does once: the network of what is known, and everything that depends on it alone.

Behind chapters 6 to 10: the engine works on the structure here, before the first iteration, and
whatever cannot be done is refused before any work. New points with relations among themselves are
a network as well, which the same engine answers once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, cast

import numpy as np

from cgmm.inference import (
    ENGINES,
    engine_name,
    feasible_assignment,
    named_engine,
    require_colourable,
)
from cgmm.inference.best_assignment import Assignment, find_best
from cgmm.inference.feasible import SearchBudgetError
from cgmm.inference.gibbs import Chains
from cgmm.kmeans.seeding import Rng
from cgmm.mixture.blocks import Blocks, Map, Points, normalise_nodes
from cgmm.mixture.loop import Run, Theta, no_prior, node_unaries
from cgmm.mixture.prior import PairwisePrior, Prior, SelectedPairs
from cgmm.mixture.reports import LastWords, evidence
from cgmm.mixture.weights import UPDATES, Update, closed_form, resolve
from cgmm.network import (
    Engine,
    Graph,
    Infer,
    Inference,
    SideInformation,
    spanning_forest,
)
from cgmm.numerics import FloatArray, IntArray, WarnedOnce, log_normalise, most_probable

SPANNING_TREE = "spanning_tree"

# Finite log-odds above this cost the log-evidence seven of its sixteen digits, and more.
LARGEST_ODDS = 1e9
# Entries of tables that exact inference may visit in a default fit: those of a second, and more
# where there are so many points that the rest takes as long. A run asks the posterior some thirty
# times; the trial of starts, and the prior for exact updates, take three times as many (the counts
# in tests/mixture/test_costs_of_a_fit.py).
OPERATIONS_OF_A_FIT, OPERATIONS_OF_A_NODE, CALLS, QUESTIONS = 1e8, 1e3, 30, 120
# Steps of the search, before any work, for an assignment that honours what is hard. Once EM knows
# where to look, the search for labels takes as many as it needs.
FIRST_SEARCH = 20_000

NO_LABELS = (
    "State the cannot-links as preferences, which may be broken at a price: fit(X, must_link="
    "must_link, preferences=np.column_stack([cannot_link, np.full(len(cannot_link), -5.0)])); or "
    "use more components."
)


class Prepared(NamedTuple):
    """The network, the engine that has worked on its structure, and the weights' update."""

    side: SideInformation
    engine: Engine
    ready: Inference | None
    """The engine applied to the graph; None where nothing ties points and nobody needs be asked."""
    graph: Graph
    """All relations: those, too, that "spanning_tree" leaves out of ``side``."""
    at_work: list[LastWords]
    """The engine in each run so far, and that of the prior."""
    possible: IntArray | None = None
    """(n_nodes,) an assignment that honours all that is hard, where the engine looks for none."""
    update: str = "ignore"
    """Name of the weights' update; never "auto"."""
    update_weights: Update = closed_form
    log_z_prior: Callable[[FloatArray], float] = no_prior
    """log Z_prior of weights (K,) as the update assumes it, which the log-evidence lacks."""
    prior: Prior | None = None
    """The prior's network, whose normaliser is that of the log-evidence which is reported."""

    @property
    def finds_best(self) -> bool:
        """Whether the engine itself finds joint assignments, as all exact ones do."""
        return self.ready is None or self.ready.finds_best

    @property
    def naming(self) -> Infer:
        """The engine; or, where it would normalise nodes one by one, who names their points."""
        edgeless = self.finds_best and len(self.side.graph.edges) == 0
        return partial(normalise_nodes, self.side) if edgeless else cast("Infer", self.ready)

    def is_exact(self, unary: FloatArray) -> bool:
        """Whether what the engine finds is the most probable joint assignment of all relations."""
        whole = len(self.graph.edges) == len(self.side.graph.edges)
        return self.finds_best and whole and self.answers_exactly(unary)

    def answers_exactly(self, unary: FloatArray) -> bool:
        """Whether the engine reports of no part of the network that it approximates it."""
        return self.ready is None or not self.ready.approximates(unary)

    def evidence_is_exact(self, n_components: int) -> bool:
        """Whether fits can be compared by the evidence: an approximate one may be far off."""
        if self.finds_best and len(self.graph.edges) == 0:
            return True
        unary = evidence(self.side, n_components)
        if self.ready is not None and self.ready.answered(unary):
            return self.answers_exactly(unary)
        return LastWords(self.naming)(unary).exact

    def reported(self, run: Run) -> Run:
        """A run with its log-evidence, whatever normaliser the update of the weights assumed."""
        evidence, weights = run.posterior.log_evidence, run.parameters.weights
        if self.update != "cautious" or self.prior is None or np.isnan(evidence):
            return run
        # What the engine says of the prior is no word on the fit.
        with WarnedOnce() as told:
            evidence += self.log_z_prior(weights) - self.prior.log_z(weights)
            told.held.clear()
        return run._replace(posterior=run.posterior._replace(log_evidence=evidence))

    def reports_exactly(self, run: Run) -> bool:
        """Whether the log-evidence of a run is exact: with both normalisers, of all relations."""
        whole = len(self.graph.edges) == len(self.side.graph.edges)
        n_components = len(run.parameters.weights)
        if not whole or np.isnan(run.posterior.log_evidence):
            return False
        of_prior = self.prior is None or self.prior.is_exact(n_components)
        return of_prior and self.evidence_is_exact(n_components)

    def infer(self, graph: Graph | None = None) -> LastWords:
        """The engine for one run: an approximate one may remember earlier calls, so a new one.

        Or for a part of the graph.
        """
        graph = self.side.graph if graph is None else graph
        same = graph is self.side.graph and self.finds_best
        self.at_work.append(LastWords(cast("Infer", self.ready) if same else self.engine(graph)))
        return self.at_work[-1]

    def blocks(self, X: Points, n_components: int, map: Map = map) -> Blocks:
        """The points in blocks; one, where an approximate engine wants the network as a whole."""
        whole = not self.finds_best
        return Blocks.of(X, self.side, self.infer, n_components, whole=whole, map=map)

    def joint_labels(self, X: Points, run: Run, chains: Chains | None = None) -> Assignment:
        """The most probable joint assignment of the points, or the best that a search finds.

        Its states are those of points. No hard relation is broken, whatever the engine.
        """
        if self.side.nodes_are_points and len(self.graph.edges) == 0:
            return Assignment(most_probable(run.posterior.responsibilities), exact=True)
        unary = node_unaries(X, cast("Theta", run.parameters), self.side)
        states, exact = self._found_by_engine(unary) or self._search(unary, run, chains)
        return Assignment(self.side.spread(states), exact)

    def _found_by_engine(self, unary: FloatArray) -> Assignment | None:
        """The assignment of the nodes that the engine finds, if it finds any and knows all."""
        if not self.finds_best or len(self.graph.edges) > len(self.side.graph.edges):
            return None
        try:
            states = cast("Inference", self.ready).most_probable(unary)
        except SearchBudgetError:
            return None
        return Assignment(states, self.is_exact(unary))

    def _search(self, unary: FloatArray, run: Run, chains: Chains | None = None) -> Assignment:
        """The best assignment of the nodes that a search from the marginals finds."""
        marginals = run.posterior.responsibilities[self.side.first_points]
        known = self.possible if chains is None else chains.best
        return find_best(self.graph, unary, marginals, known=known, remedy=NO_LABELS)

    def rate(self, X: Points, run: Run) -> float:
        """By what a run is compared with others where the engine reports no evidence.

        The *classification likelihood* (Celeux and Govaert, 1992): what the parameters and the
        best joint assignment make of nodes with relations, together, in place of the sum over all
        assignments. The prior is normalised as if every edge stood alone, as in
        "pseudo-likelihood". Nodes without relations count as in the log-evidence.
        """
        theta = cast("Theta", run.parameters)
        unary, tied = node_unaries(X, theta, self.side), np.zeros(self.side.n_nodes, dtype=bool)
        tied[self.graph.edges] = True
        z = self._search(unary, run).states
        best = unary[np.arange(len(z)), z]
        together = z[self.graph.edges[:, 0]] == z[self.graph.edges[:, 1]]
        chosen = best[tied].sum() + self.graph.weights[together].sum()
        # Large chunklets that must differ have a factor, of the gradient too, that rounds to zero.
        with np.errstate(divide="ignore", invalid="ignore"):
            prior = PairwisePrior(self.side).log_z_and_counts(np.log(theta.weights))[0]
        copies = np.ones(len(z)) if self.side.copies is None else self.side.copies
        return float(copies[~tied] @ log_normalise(unary[~tied])[1] + chosen - prior)

    def chains(self, X: Points, run: Run) -> Chains | None:
        """What the sampler of the last E-step went through; None where none was at work."""
        if self.ready is None or self.ready.chains is None:
            return None
        unary = node_unaries(X, cast("Theta", run.parameters), self.side)
        return cast("Chains", self.ready.chains(unary))


def engine_of(inference: str | Engine, rng: Rng, verbose: int = 0) -> Engine:
    """The engine that a name stands for.

    One that samples gets its seed, and one that may take minutes says how far it is.
    """
    if inference == "gibbs":
        return _with(inference, random_state=int(rng.randint(2**31)))
    if inference == "exact":
        return _with(inference, verbose=verbose)
    return named_engine("auto" if inference == SPANNING_TREE else inference)


def _frugal(side: SideInformation, n_components: int, n_calls: int) -> Engine:
    """The engine "auto" for so many calls, which together keep to the budget of a fit."""
    whole = max(OPERATIONS_OF_A_FIT, OPERATIONS_OF_A_NODE * side.n_nodes * n_components)
    return _with("auto", max_operations=whole / n_calls)


def _with(name: str, **settings: float) -> Engine:
    """An engine with other settings than its own."""
    return partial(cast("Callable[..., Inference]", ENGINES[name]), **settings)


def apply_engine(
    side: SideInformation, inference: str | Engine, engine: Engine, n_components: int
) -> Prepared:
    """Apply the engine to the structure, and refuse at once what cannot be done."""
    _require_resolvable(side)
    require_colourable(side, n_components)
    graph = side.graph
    if inference == SPANNING_TREE:
        side = side._replace(graph=spanning_forest(side.graph))
    prepared = Prepared(side, engine, engine(side.graph), graph, [])
    return prepared._replace(possible=_require_possible(prepared, n_components))


def prepare(
    side: SideInformation, inference: str | Engine, engine: Engine, weights: str, n_components: int
) -> Prepared:
    """As :func:`apply_engine`, and choose the update of the weights."""
    is_auto = inference in ("auto", SPANNING_TREE)
    if is_auto and weights == "auto" and side.is_trivial:
        return Prepared(side, engine, None, side.graph, [], update="exact")
    if is_auto:
        engine = _frugal(side, n_components, CALLS)
    prepared = apply_engine(side, inference, engine, n_components)
    if is_auto and weights == "auto":
        # Where exact counts of the prior would cost too much, the update does without them, and no
        # starts are tried.
        engine = _frugal(side, n_components, QUESTIONS)
    prior = Prior(prepared.side, lambda graph: LastWords(engine(graph)))
    is_exact = prepared.answers_exactly(evidence(prepared.side, n_components))
    safe = _resolved("auto", prior, n_components) if is_exact else "cautious"
    update = safe if weights == "auto" else weights
    # Who asks for it where the engine is exact has the exact evidence all the same.
    if update == safe == "cautious":
        # The update needs no normaliser of the network; what is reported needs it once.
        pairs, once = SelectedPairs(prepared.side), _frugal(side, n_components, CALLS)
        return prepared._replace(
            update=update,
            update_weights=UPDATES[update](prior),
            log_z_prior=lambda weights: float(pairs.log_z(weights)),
            prior=Prior(prepared.side, once),
        )
    log_z_prior = prior.log_z
    if np.isnan(log_z_prior(np.full(n_components, 1 / n_components))):
        _require_no_normaliser_needed(inference, weights, n_components)
        log_z_prior = lambda weights: np.nan  # noqa: E731
    if prior.infer is not None:
        prepared.at_work.append(cast("LastWords", prior.infer))
    return prepared._replace(
        update=update, update_weights=UPDATES[update](prior), log_z_prior=log_z_prior, prior=prior
    )


def _resolved(weights: str, prior: Prior, n_components: int) -> str:
    """The update's name; what the engine has to say about a prior that is then not used, is not."""
    with WarnedOnce() as told:
        name = resolve(weights, prior, n_components)
        told.held.clear()
    return name


def require_same_shape(continued: NamedTuple, wanted: tuple[int, int]) -> None:
    """Refuse to go on from parameters of other components or other data."""
    found = np.shape(continued[1])
    if found != wanted:
        raise ValueError(
            f"warm_start goes on from a fit of {found[0]} components in {found[1]} columns, but "
            f"this one has {wanted[0]} in {wanted[1]}: begin anew, set_params(warm_start=False)."
        )


def _require_resolvable(side: SideInformation) -> None:
    """Refuse finite log-odds beside which the densities of points would be rounded away."""
    weights = side.graph.weights
    wrong = np.flatnonzero(np.isfinite(weights) & (abs(weights) > LARGEST_ODDS))
    if len(wrong):
        i, j = side.first_points[side.graph.edges[wrong[0]]]
        raise ValueError(
            f"preferences between the points {i} and {j}, or points tied to them, add up to "
            f"log-odds of {weights[wrong[0]]:.3g}: beyond ±{LARGEST_ODDS:.0e} they leave no digits "
            "of what the points say. Use ±inf, which makes the relation hard, or smaller log-odds."
        )


def _require_no_normaliser_needed(inference: str | Engine, weights: str, n_components: int) -> None:
    """Refuse updates that need a log Z which the engine does not have."""
    if weights in ("exact", "grid"):
        named = repr(inference) if isinstance(inference, str) else engine_name(inference)
        raise ValueError(
            f"weights={weights!r} needs the prior's normaliser, which the engine "
            f"{engine_name(inference)!r} does not report; without it there is "
            f"ConstrainedGaussianMixture({n_components}, inference={named}, weights='auto')."
        )


def _require_possible(prepared: Prepared, n_components: int) -> IntArray | None:
    """Look for an assignment that honours all that is hard, before any work.

    An exact engine does so itself. It knows only the relations that it was given, and others know
    none: for them there is a search, which may leave the question open.
    """
    if len(prepared.graph.edges) == 0:
        return None
    mask, unary = prepared.side.mask(n_components), evidence(prepared.side, n_components)
    if prepared.is_exact(unary):
        cast("Infer", prepared.ready)(unary)
        return None
    try:
        return feasible_assignment(
            prepared.graph, n_components, allowed=mask, max_search=FIRST_SEARCH, noun="component"
        )
    except SearchBudgetError:
        return None
