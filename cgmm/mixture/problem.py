"""The problem that a fit solves: points, side information, family and engine. Chapters 3 to 10.

``fit`` builds a problem, runs EM on it from each start, and computes the final assignment of the
best run. Without relations this is a ``PlainProblem``. With relations, an ``AssignmentModel``
contains the network over assignments and the engine. The engine analyses the structure of the
network before the first iteration, so requests that it cannot fulfil raise an error at once.
Predictions for new points with relations build an ``AssignmentModel``, too.

=====  ====================================================================
N, K   points and components; θ the parameters
r_ik   responsibilities, p(z_i = k | X, θ, side information)
=====  ====================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple, cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from cgmm.inference import ENGINES, engine_name, named_engine, needs_seed
from cgmm.inference.best_assignment import Assignment, find_best
from cgmm.inference.feasible import SearchBudgetError, feasible_assignment, require_colourable
from cgmm.inference.gibbs import FEWEST_DRAWS, Chains, effective_sample_size, r_hat
from cgmm.large.blocks import Blocks, Map, Points
from cgmm.large.chunks import Chunks, Cluster
from cgmm.mixture.family import Family
from cgmm.mixture.loop import Posterior, Run, assign_block, em, node_unaries, zero_log_z_prior
from cgmm.mixture.prior import PairwisePrior, Prior, SelectedPairs
from cgmm.mixture.weights import UPDATES, Update, closed_form, resolve_auto
from cgmm.network import Engine, Inference, Result, SideInformation
from cgmm.network.graph import Graph, connected_components, spanning_forest
from cgmm.network.relations import first_of_nodes
from cgmm.numerics import (
    FloatArray,
    IntArray,
    WarnedOnce,
    log_normalise,
    most_probable,
    warn_caller,
)  # fmt: skip
from cgmm.runs import Rng

SPANNING_TREE = "spanning_tree"
# With these names, each part of the network gets the cheapest exact engine.
AUTOMATIC = ("auto", SPANNING_TREE)

# Larger finite log-odds would cost the log-evidence at least seven of its sixteen digits.
LARGEST_ODDS = 1e9
# Budget of a default fit: the number of table entries that exact inference may visit, which takes
# about a second. With many points the rest of the fit takes longer, so the budget is larger, too. A
# run calls the engine of the posterior about 30 times; exact updates of the weights call the engine
# of the prior about 120 times. tests/mixture/test_costs_of_a_fit.py checks the total.
OPERATIONS_OF_A_FIT, OPERATIONS_OF_A_NODE, CALLS_OF_A_FIT, PRIOR_CALLS_OF_A_FIT = 1e8, 1e3, 30, 120
# Maximum number of steps of the search, before EM begins, for an assignment that satisfies all hard
# relations. The search for the final labels starts from EM's posterior and has no such limit.
FIRST_SEARCH = 20_000
# Chains with a larger R-hat count as not mixed (Gelman and Rubin, 1992).
NOT_MIXED = 1.1

NO_LABELS = (
    "State the cannot-links as preferences, which may be broken at a price: fit(X, must_link="
    "must_link, preferences=np.column_stack([cannot_link, np.full(len(cannot_link), -5.0)])); or "
    "use more components."
)


class FitResult(NamedTuple):
    """Final assignment of the points by the best run, and reports of the engine."""

    responsibilities: FloatArray | None
    """(N, K) r_ik; or (N,) labels if neither the caller nor relations need r_ik."""
    labels: IntArray
    """(N,) component of each point; it breaks no hard relation."""
    labels_exact: bool
    """Whether ``labels`` is known to be the most probable joint assignment."""
    evidence_exact: bool
    """Whether the log-evidence is exact."""
    results: tuple[Result, ...]
    """The engine that was used for each part of the network."""
    chains: Chains | None
    """The states of a sampler in the last E-step; None for other engines."""


@dataclass
class PlainProblem:
    """A fit without relations, in which points are independent and inference is exact."""

    points: Any
    """``Points``, or ``Chunks`` of a dask.array."""
    side: SideInformation
    family: Family[Any]
    data: Blocks | Cluster
    """The points in blocks, or on the workers of a cluster."""
    engine: Engine = ENGINES["auto"]
    """The engine for predictions with relations among new points."""
    update: str = "exact"
    """Name of the weights' update; never "auto"."""
    update_weights: Update = closed_form
    log_z_prior: Callable[[FloatArray], float] = zero_log_z_prior
    """Function from weights (K,) to the log Z_prior that the update assumes."""

    def iterate_em(
        self, starts: Sequence[Callable[[], Any]], run_number: int
    ) -> Iterator[tuple[Any, Posterior]]:
        """Return the iterations of EM from the start of the run with this number."""
        update, log_z_prior = self.update_weights, self.log_z_prior
        theta = starts[run_number]()
        return em(self.data, theta, self.side, None, self.family, update, log_z_prior=log_z_prior)

    def correct_evidence(self, run: Run) -> Run:
        """Return the run with the log-evidence that the estimator reports."""
        return run

    def score(self, run: Run) -> float:
        """Return the score for comparing runs, the log-evidence."""
        return run.posterior.log_evidence

    def assign_points(self, run: Run, keep_r: bool) -> FitResult:
        """Return the final assignment of a run; it includes r_ik if ``keep_r``."""
        r: Any = run.posterior.responsibilities
        if r is None:
            r = self.data.gather(partial(assign_block, run.parameters, keep_r))
        n = self.side.graph.n_nodes
        results = (Result("independent", n, n, 0, exact=True, width=0),)
        return FitResult(r, most_probable(r) if r.ndim == 2 else r, True, True, results, None)


@dataclass
class Problem(PlainProblem):
    """A fit with relations, or with an engine or weights' update that the user chose."""

    model: AssignmentModel = field(kw_only=True)
    map: Map = field(kw_only=True)

    def iterate_em(
        self, starts: Sequence[Callable[[], Any]], run_number: int
    ) -> Iterator[tuple[Any, Posterior]]:
        """Return the iterations of EM from a start; an engine with a state is applied anew."""
        if run_number > 0 and self.model.inference.is_stateful:
            self.data = self.model.divide(self.points, self.map)
        return super().iterate_em(starts, run_number)

    def correct_evidence(self, run: Run) -> Run:
        """Return the run with the log-evidence that uses the best available log Z_prior."""
        return self.model.correct_evidence(run)

    def score(self, run: Run) -> float:
        """Return the log-evidence of a run, or its surrogate if the engine is not exact."""
        if self.model.is_exact:
            return run.posterior.log_evidence
        return self.model.classification_likelihood(self.points, run)

    def assign_points(self, run: Run, keep_r: bool) -> FitResult:
        """Return the final assignment of a run; it includes r_ik for ``keep_r`` or labels."""
        model, theta = self.model, run.parameters
        found = super().assign_points(run, keep_r or model.needs_joint_labels)
        found = found._replace(evidence_exact=model.has_exact_evidence(run), results=model.results)
        if not model.needs_joint_labels:
            return found
        if isinstance(self.data, Cluster):
            labels, is_best = self.data.joint_labels(theta, partial(assign_block, theta, True))
            return found._replace(labels=labels, labels_exact=is_best)
        chains, r = model.chains(self.points, theta), found.responsibilities
        labels, is_best = model.joint_labels(self.points, theta, cast("FloatArray", r), chains)
        return found._replace(labels=labels, labels_exact=is_best, chains=chains)


def build_problem(
    points: Points | Chunks, side: SideInformation, family: Family[Any], map: Map, *,
    n_components: int, inference: str | Engine, weights: str, rng: Rng,
) -> PlainProblem:  # fmt: skip
    """Build the problem of a fit: a ``PlainProblem`` if there are no relations."""
    if weights == "auto" and inference in AUTOMATIC and (side.is_empty or side.is_trivial):
        if isinstance(points, Chunks):
            apply = partial(
                apply_engine, inference="independent", engine=ENGINES["auto"],
                n_components=n_components,
            )  # fmt: skip
            return PlainProblem(points, side, family, Cluster.build(points, side, apply))
        blocks = Blocks.build(points, side, ENGINES["auto"], n_components, map=map)
        return PlainProblem(points, side, family, blocks)
    model = choose_model(side, inference, weights, n_components, rng)
    data = model.distribute(points) if isinstance(points, Chunks) else model.divide(points, map)
    return Problem(
        points, model.side, family, data, model.engine, model.update, model.update_weights,
        model.log_z_prior, model=model, map=map,
    )  # fmt: skip


# ---------------------------------------------------------------------------- with relations


@dataclass
class AssignmentModel:
    """The network over assignments, the engine for it, and the update of the weights."""

    side: SideInformation
    graph: Graph
    """All relations, including those that "spanning_tree" drops from ``side``."""
    name: str | Engine
    """The engine as the user specified it."""
    engine: Engine
    inference: Any
    """The ``Inference`` that the engine returned for the graph."""
    n_components: int
    possible: IntArray | None = None
    """(n_nodes,) assignment that satisfies all hard relations; None if none is needed or found."""
    update: str = "ignore"
    """Name of the weights' update; never "auto"."""
    update_weights: Update = closed_form
    log_z_prior: Callable[[FloatArray], float] = zero_log_z_prior
    """Function from weights (K,) to the log Z_prior that the update assumes."""
    prior: Prior | None = None
    """The prior network, whose normaliser is used for the reported log-evidence."""

    @property
    def uses_all_relations(self) -> bool:
        """True if the engine uses all relations, i.e. "spanning_tree" dropped none."""
        return len(self.graph.edges) == len(self.side.graph.edges)

    @cached_property
    def is_exact(self) -> bool:
        """True if the engine is exact, according to its report or, without one, a first result."""
        if self.inference.finds_best and len(self.side.graph.edges) == 0:
            return True
        reports = self.inference.results(self.allowed_unaries)
        if reports or self.inference.chains is not None:
            return bool(reports) and all(report_of_part.exact for report_of_part in reports)
        with suppress_warnings():
            return self.inference(self.allowed_unaries).exact

    @property
    def allowed_unaries(self) -> FloatArray:
        """(n_nodes, K) unaries: 0 for the allowed components of a node, -inf for all others."""
        # Without edges this table is not needed, so it takes no memory.
        mask = self.side.mask(self.n_components) if len(self.side.graph.edges) else None
        nothing = np.broadcast_to(0.0, (self.side.n_nodes, self.n_components))
        return nothing if mask is None else np.where(mask, 0.0, -np.inf)

    @property
    def results(self) -> tuple[Result, ...]:
        """Report on each part of the network and its engine; one entry if the engine has none."""
        graph = self.side.graph
        n_parts = len(np.unique(connected_components(graph)))
        name, n_edges = engine_name(self.name), len(graph.edges)
        itself = Result(name, n_parts, graph.n_nodes, n_edges, self.is_exact)
        return tuple(self.inference.results(self.allowed_unaries)) or (itself,)

    @property
    def needs_joint_labels(self) -> bool:
        """True if choosing the most probable component of each point may break a relation."""
        return len(self.graph.edges) > 0 or not self.inference.finds_best

    def divide(self, X: Points, map: Map = map) -> Blocks:
        """Divide the points into blocks; an approximate engine gets a single block.

        An approximate engine may keep a state between calls, so it is applied anew for each run.
        """

        def choose_engine(graph: Graph) -> Inference:
            same = graph is self.side.graph and self.inference.finds_best
            return self.inference if same else self.engine(graph)

        whole = not self.inference.finds_best
        return Blocks.build(X, self.side, choose_engine, self.n_components, whole=whole, map=map)

    def distribute(self, chunks: Chunks) -> Cluster:
        """Divide a dask.array into partitions, and apply the engine to each on its worker."""
        if not self.inference.finds_best:
            raise ValueError(
                f"the engine {engine_name(self.engine)!r} needs the network as a whole, but the "
                "network is spread over several workers. Use an engine that works on each part, "
                "set_params(inference='auto'), or load all points: fit(X.compute(), ...)."
            )
        apply = partial(
            apply_engine, inference=self.name, engine=self.engine, n_components=self.n_components
        )
        # Partitions get all relations, because "spanning_tree" drops some on each partition itself.
        return Cluster.build(chunks, self.side._replace(graph=self.graph), apply)

    # ------------------------------------------------------------------ results of a run

    def correct_evidence(self, run: Run) -> Run:
        """Return the run with the log-evidence that uses the best available log Z_prior."""
        evidence, weights = run.posterior.log_evidence, run.parameters.weights
        if self.update != "cautious" or self.prior is None or np.isnan(evidence):
            return run
        with suppress_warnings():
            evidence += self.log_z_prior(weights) - self.prior.log_z(weights)
        return run._replace(posterior=run.posterior._replace(log_evidence=evidence))

    def has_exact_evidence(self, run: Run) -> bool:
        """Return whether the log-evidence of a run is exact and includes all relations."""
        if np.isnan(run.posterior.log_evidence) or not (self.uses_all_relations and self.is_exact):
            return False
        with suppress_warnings(ConvergenceWarning):
            return self.prior is None or self.prior.is_exact(self.n_components)

    def chains(self, X: Points, theta: Any) -> Chains | None:
        """Return the states of the sampler in the last E-step, or None for other engines."""
        if self.inference.chains is None or len(self.graph.edges) == 0:
            return None
        return cast("Chains", self.inference.chains(node_unaries(X, theta, self.side)))

    def joint_labels(
        self, X: Points, theta: Any, r: FloatArray, chains: Chains | None = None
    ) -> Assignment:
        """Return the most probable joint assignment of the points, or the best one found.

        The assignment breaks no hard relation, even if the engine approximates.
        """
        if self.side.nodes_are_points and len(self.graph.edges) == 0:
            return Assignment(most_probable(r), exact=True)
        unary = node_unaries(X, theta, self.side)
        if self.inference.finds_best and self.uses_all_relations:
            with suppress(SearchBudgetError):
                states = self.inference.most_probable(unary)
                return Assignment(self.side.spread(states), self.is_exact)
        states, exact = self._search(unary, r, self.possible if chains is None else chains.best)
        return Assignment(self.side.spread(states), exact)

    def _search(self, unary: FloatArray, r: FloatArray, known: IntArray | None) -> Assignment:
        """Search for the best assignment of the nodes, starting from their marginals."""
        marginals = r[first_of_nodes(self.side.node_of)]
        return find_best(self.graph, unary, marginals, known=known, remedy=NO_LABELS)

    def classification_likelihood(self, X: Points, run: Run) -> float:
        """Return the classification likelihood, the score of a run whose evidence is not exact.

        The *classification likelihood* (Celeux and Govaert, 1992) replaces the sum over all
        assignments of nodes with relations by the term of their best joint assignment. The prior is
        normalised as if edges shared no nodes, as in "pseudo-likelihood". Nodes without relations
        contribute as they do to the log-evidence.
        """
        side, edges = self.side, self.graph.edges
        unary, tied = node_unaries(X, run.parameters, side), side.tied
        z = self._search(unary, run.posterior.responsibilities, self.possible).states
        together = z[edges[:, 0]] == z[edges[:, 1]]
        chosen = unary[tied, z[tied]].sum() + self.graph.weights[together].sum()
        # The factor of a cannot-link between large chunklets and its gradient may round to zero.
        with np.errstate(divide="ignore", invalid="ignore"):
            prior = PairwisePrior(side).log_z_and_counts(np.log(run.parameters.weights))[0]
        copies = np.ones(len(z)) if side.copies is None else side.copies
        return float(copies[~tied] @ log_normalise(unary[~tied])[1] + chosen - prior)


@contextmanager
def suppress_warnings(kind: type[Warning] | None = None) -> Iterator[None]:
    """Suppress all warnings inside this context, or only those of category ``kind``."""
    with WarnedOnce() as warned:
        yield
        warned.held[:] = [held for held in warned.held if kind and held[1] is not kind]


# ---------------------------------------------------------------------------- preparation of a fit


def resolve_engine(inference: str | Engine, rng: Rng) -> Engine:
    """Return the engine with this name; give it a seed if it samples."""
    if isinstance(inference, str) and inference in ENGINES and needs_seed(ENGINES[inference]):
        return partial(cast("Any", ENGINES[inference]), random_state=int(rng.randint(2**31)))
    if inference in ("auto", SPANNING_TREE):
        return ENGINES["auto"]
    return named_engine(inference)


def _auto_engine(side: SideInformation, n_components: int, n_calls: int) -> Engine:
    """Return the engine "auto", limited to 1 / n_calls of the budget of a fit per call."""
    whole = max(OPERATIONS_OF_A_FIT, OPERATIONS_OF_A_NODE * side.n_nodes * n_components)
    return partial(cast("Any", ENGINES["auto"]), max_operations=whole / n_calls)


def apply_engine(
    side: SideInformation, inference: str | Engine, engine: Engine, n_components: int
) -> AssignmentModel:
    """Apply the engine to the network; raise an error if relations cannot be satisfied."""
    _require_moderate_log_odds(side)
    require_colourable(side, n_components)
    graph = side.graph
    if inference == SPANNING_TREE:
        side = side._replace(graph=spanning_forest(graph))
    model = AssignmentModel(side, graph, inference, engine, engine(side.graph), n_components)
    model.possible = _find_feasible_assignment(model)
    return model


def choose_model(
    side: SideInformation, inference: str | Engine, weights: str, n_components: int, rng: Rng
) -> AssignmentModel:
    """Build the model of a fit: apply the engine, and choose the update of the weights."""
    engine, is_auto = resolve_engine(inference, rng), inference in AUTOMATIC
    if is_auto:
        engine = _auto_engine(side, n_components, CALLS_OF_A_FIT)
    model = apply_engine(side, inference, engine, n_components)
    if is_auto and weights == "auto":
        # If the exact counts of the prior would cost too much, the cautious update is used.
        engine = _auto_engine(side, n_components, PRIOR_CALLS_OF_A_FIT)
    prior = Prior(model.side, engine)
    with suppress_warnings():
        approximates = model.inference.approximates(model.allowed_unaries)
        safe = "cautious" if approximates else resolve_auto(prior, n_components)
    model.update = safe if weights == "auto" else weights
    model.update_weights = UPDATES[model.update](prior)
    # An exact engine computes the exact evidence even if the user chose the cautious update.
    if model.update == safe == "cautious":
        # The cautious update needs no normaliser of the network. It is computed only once, for the
        # reported evidence.
        pairs, engine = SelectedPairs(model.side), _auto_engine(side, n_components, CALLS_OF_A_FIT)
        model.log_z_prior = lambda weights: float(pairs.log_z(weights))
        model.prior = Prior(model.side, engine)
        return model
    model.log_z_prior, model.prior = prior.log_z, prior
    with suppress_warnings(ConvergenceWarning):
        has_none = np.isnan(prior.log_z(np.full(n_components, 1 / n_components)))
    if has_none and weights in ("exact", "grid"):
        named = repr(inference) if isinstance(inference, str) else engine_name(inference)
        raise ValueError(
            f"weights={weights!r} needs the prior's normaliser, which the engine "
            f"{engine_name(inference)!r} does not report. Use an update that does not need it: "
            f"ConstrainedGaussianMixture({n_components}, inference={named}, weights='auto')."
        )
    if has_none:
        model.log_z_prior = lambda weights: np.nan
    return model


def _require_moderate_log_odds(side: SideInformation) -> None:
    """Raise an error for finite log-odds so large that densities would be rounded away."""
    weights = side.graph.weights
    wrong = np.flatnonzero(np.isfinite(weights) & (abs(weights) > LARGEST_ODDS))
    if len(wrong):
        i, j = side.first_points[side.graph.edges[wrong[0]]]
        raise ValueError(
            f"preferences between the points {i} and {j}, or points linked to them, add up to "
            f"log-odds of {weights[wrong[0]]:.3g}: beyond ±{LARGEST_ODDS:.0e} rounding removes the "
            "densities of the points. Use ±inf, which makes the relation hard, or smaller log-odds."
        )


def _find_feasible_assignment(model: AssignmentModel) -> IntArray | None:
    """Search for an assignment that satisfies all hard relations; raise an error if none exists.

    An exact engine that was given all relations raises this error itself, so the result is None.
    Otherwise a search is made; if it reaches its limit of steps without a result, it returns None.
    """
    if len(model.graph.edges) == 0:
        return None
    if model.inference.finds_best and model.uses_all_relations and model.is_exact:
        model.inference(model.allowed_unaries)
        return None
    mask = model.side.mask(model.n_components)
    with suppress(SearchBudgetError):
        return feasible_assignment(
            model.graph, model.n_components, allowed=mask, max_search=FIRST_SEARCH,
            noun="component",
        )  # fmt: skip
    return None


# ---------------------------------------------------------------------------- chains


def warn_about_chains(chains: Chains) -> None:
    """Warn if the chains of a sampler had not mixed in the last E-step.

    Parameters
    ----------
    chains : Chains
        States of the last E-step of the best run.

    Warns
    -----
    ConvergenceWarning
        If R-hat of their log-weights, or of the number of nodes in a state, is above 1.1.
    """
    if chains.log_weights.shape[1] < FEWEST_DRAWS:
        return
    worst = max([chains.log_weights, *chains.counts], key=r_hat)
    if r_hat(worst) > NOT_MIXED:
        n_chains, n_sweeps = worst.shape
        warn_caller(
            f"the chains of the last E-step had not mixed: R-hat is {r_hat(worst):.2f} (1 if they "
            f"had), and their {n_chains * n_sweeps} states are worth "
            f"{effective_sample_size(worst):.0f} independent ones. Use more sweeps, inference="
            f"functools.partial(cgmm.inference.gibbs.gibbs, n_sweeps={5 * n_sweeps}, "
            f"burn_in={n_sweeps}), or another engine.",
            ConvergenceWarning,
        )
