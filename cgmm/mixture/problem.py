"""The problem of a fit: points, what is known of them, a family and an engine. Chapters 3 to 10.

``fit`` builds a problem once, runs EM on it from every start, and asks it what the best run says of
each point. Where no relations are known that is a ``PlainProblem``. Else an ``AssignmentModel``
holds the network over assignments and the engine, which works on the structure here, before the
first iteration; whatever cannot be done is refused before any work. New points with relations among
themselves are a network as well, which the same engine answers once.

=====  ====================================================================
N, K   points and components; θ the parameters
r_ik   responsibilities, p(z_i = k | X, θ, what is known)
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
from cgmm.mixture.loop import Posterior, Run, assigned, em, no_prior, node_unaries
from cgmm.mixture.prior import PairwisePrior, Prior, SelectedPairs
from cgmm.mixture.weights import UPDATES, Update, closed_form, resolve
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
# Names for which the cheapest exact engine is taken for each part of the network.
AUTOMATIC = ("auto", SPANNING_TREE)

# Larger finite log-odds would cost the log-evidence seven of its sixteen digits or more.
LARGEST_ODDS = 1e9
# Table entries that exact inference may visit in a default fit: about a second's worth, and more
# for many points, where the rest of the fit takes as long. A run calls the posterior's engine about
# 30 times, and exact updates of the weights call that of the prior about 120 times;
# tests/mixture/test_costs_of_a_fit.py bounds the sum.
OPERATIONS_OF_A_FIT, OPERATIONS_OF_A_NODE, CALLS_OF_A_FIT, PRIOR_CALLS_OF_A_FIT = 1e8, 1e3, 30, 120
# Steps of the search for an assignment that satisfies all hard relations, before EM begins. The
# later search for labels starts from EM's posterior and takes as many steps as it needs.
FIRST_SEARCH = 20_000
# Above this R-hat chains have not mixed (Gelman and Rubin, 1992).
NOT_MIXED = 1.1

NO_LABELS = (
    "State the cannot-links as preferences, which may be broken at a price: fit(X, must_link="
    "must_link, preferences=np.column_stack([cannot_link, np.full(len(cannot_link), -5.0)])); or "
    "use more components."
)


class Found(NamedTuple):
    """Results of the best run for each point, and reports of the engine."""

    responsibilities: FloatArray | None
    """(N, K) r_ik; (N,) labels instead if neither the caller nor relations need r_ik."""
    labels: IntArray
    """(N,) component of each point; it breaks no hard relation."""
    labels_exact: bool
    """Whether ``labels`` is known to be the most probable joint assignment."""
    evidence_exact: bool
    """Whether the log-evidence is exact."""
    results: tuple[Result, ...]
    """Which engine worked on which part of the network."""
    chains: Chains | None
    """The states of a sampler in the last E-step."""


@dataclass
class PlainProblem:
    """The points of a fit without relations: they are independent, so everything is exact."""

    points: Any
    """``Points``, or ``Chunks`` of a dask.array."""
    side: SideInformation
    family: Family[Any]
    data: Blocks | Cluster
    """The points in blocks, or on the workers of a cluster."""
    engine: Engine = ENGINES["auto"]
    """The engine for new points with relations."""
    update: str = "exact"
    """Name of the weights' update; never "auto"."""
    update_weights: Update = closed_form
    log_z_prior: Callable[[FloatArray], float] = no_prior
    """log Z_prior of weights (K,) as the update assumes it, which the log-evidence lacks."""

    def steps(
        self, starts: Sequence[Callable[[], Any]], number: int
    ) -> Iterator[tuple[Any, Posterior]]:
        """Return EM from a start."""
        update, log_z_prior = self.update_weights, self.log_z_prior
        theta = starts[number]()
        return em(self.data, theta, self.side, None, self.family, update, log_z_prior=log_z_prior)

    def report(self, run: Run) -> Run:
        """Return the run with the log-evidence that is reported."""
        return run

    def score(self, run: Run) -> float:
        """Return the score for comparing runs."""
        return run.posterior.log_evidence

    def assign(self, run: Run, keep: bool) -> Found:
        """Return what a run says of the points; r_ik only if they are to be kept or are needed."""
        r: Any = run.posterior.responsibilities
        if r is None:
            r = self.data.gather(partial(assigned, run.parameters, keep))
        n = self.side.graph.n_nodes
        results = (Result("independent", n, n, 0, exact=True, width=0),)
        return Found(r, most_probable(r) if r.ndim == 2 else r, True, True, results, None)


@dataclass
class Problem(PlainProblem):
    """The points of a fit with relations, or with an engine that is asked for by name."""

    model: AssignmentModel = field(kw_only=True)
    map: Map = field(kw_only=True)

    def steps(
        self, starts: Sequence[Callable[[], Any]], number: int
    ) -> Iterator[tuple[Any, Posterior]]:
        """Return EM from a start. An engine that remembers its calls is made anew for each run."""
        if number > 0 and self.model.inference.is_stateful:
            self.data = self.model.blocks(self.points, self.map)
        return super().steps(starts, number)

    def report(self, run: Run) -> Run:
        """Return the run with its log-evidence, whichever normaliser the update assumed."""
        return self.model.report(run)

    def score(self, run: Run) -> float:
        """Return the log-evidence of a run, or what stands in for it where that is not exact."""
        if self.model.is_exact:
            return run.posterior.log_evidence
        return self.model.rate(self.points, run)

    def assign(self, run: Run, keep: bool) -> Found:
        """Return what a run says of the points; r_ik only if they are to be kept or are needed."""
        model, theta = self.model, run.parameters
        found = super().assign(run, keep or model.needs_joint_labels)
        found = found._replace(evidence_exact=model.reports_exactly(run), results=model.results)
        if not model.needs_joint_labels:
            return found
        if isinstance(self.data, Cluster):
            labels, is_best = self.data.joint_labels(theta, partial(assigned, theta, True))
            return found._replace(labels=labels, labels_exact=is_best)
        chains, r = model.chains(self.points, theta), found.responsibilities
        labels, is_best = model.joint_labels(self.points, theta, cast("FloatArray", r), chains)
        return found._replace(labels=labels, labels_exact=is_best, chains=chains)


def pose(
    points: Points | Chunks, side: SideInformation, family: Family[Any], map: Map, *,
    n_components: int, inference: str | Engine, weights: str, rng: Rng,
) -> PlainProblem:  # fmt: skip
    """Return the problem of a fit, a plain one if nothing relates the points to each other."""
    if weights == "auto" and inference in AUTOMATIC and (side.is_empty or side.is_trivial):
        if isinstance(points, Chunks):
            apply = partial(
                apply_engine, inference="independent", engine=ENGINES["auto"],
                n_components=n_components,
            )  # fmt: skip
            return PlainProblem(points, side, family, Cluster.of(points, side, apply))
        blocks = Blocks.of(points, side, ENGINES["auto"], n_components, map=map)
        return PlainProblem(points, side, family, blocks)
    model = choose_model(side, inference, weights, n_components, rng)
    data = model.cluster(points) if isinstance(points, Chunks) else model.blocks(points, map)
    return Problem(
        points, model.side, family, data, model.engine, model.update, model.update_weights,
        model.log_z_prior, model=model, map=map,
    )  # fmt: skip


# ---------------------------------------------------------------------------- with relations


@dataclass
class AssignmentModel:
    """The network of what is known of the assignments, its engine, and the weights' update."""

    side: SideInformation
    graph: Graph
    """All relations: those, too, that "spanning_tree" leaves out of ``side``."""
    name: str | Engine
    """The engine as the user names it."""
    engine: Engine
    inference: Any
    """The engine applied to the graph, an ``Inference``; None where nothing is known."""
    n_components: int
    possible: IntArray | None = None
    """(n_nodes,) an assignment that satisfies all that is hard, where the engine looks for none."""
    update: str = "ignore"
    """Name of the weights' update; never "auto"."""
    update_weights: Update = closed_form
    log_z_prior: Callable[[FloatArray], float] = no_prior
    """log Z_prior of weights (K,) as the update assumes it, which the log-evidence lacks."""
    prior: Prior | None = None
    """The prior's network, whose normaliser is that of the log-evidence which is reported."""

    @property
    def is_whole(self) -> bool:
        """True if the engine works on all relations."""
        return len(self.graph.edges) == len(self.side.graph.edges)

    @cached_property
    def is_exact(self) -> bool:
        """True if the engine is exact, by its own report or else by its first result."""
        if self.inference.finds_best and len(self.side.graph.edges) == 0:
            return True
        answers = self.inference.results(self.possible_states)
        if answers or self.inference.chains is not None:
            return bool(answers) and all(answer.exact for answer in answers)
        with silence():
            return self.inference(self.possible_states).exact

    @property
    def possible_states(self) -> FloatArray:
        """(n_nodes, K) unaries: 0 for a node's allowed components, minus infinity for others."""
        # Without edges nobody needs this table, so no memory is spent on it.
        mask = self.side.mask(self.n_components) if len(self.side.graph.edges) else None
        nothing = np.broadcast_to(0.0, (self.side.n_nodes, self.n_components))
        return nothing if mask is None else np.where(mask, 0.0, -np.inf)

    @property
    def results(self) -> tuple[Result, ...]:
        """Tuple of what each engine worked on: the engine's own report, else one entry for all."""
        graph = self.side.graph
        n_parts = len(np.unique(connected_components(graph)))
        name, n_edges = engine_name(self.name), len(graph.edges)
        itself = Result(name, n_parts, graph.n_nodes, n_edges, self.is_exact)
        return tuple(self.inference.results(self.possible_states)) or (itself,)

    @property
    def needs_joint_labels(self) -> bool:
        """True if the most probable components of single points may break a relation."""
        return len(self.graph.edges) > 0 or not self.inference.finds_best

    def blocks(self, X: Points, map: Map = map) -> Blocks:
        """Return the points in blocks: one block if the engine is approximate and needs all of it.

        Such an engine may remember earlier calls: it is applied anew, for each run.
        """

        def engine(graph: Graph) -> Inference:
            same = graph is self.side.graph and self.inference.finds_best
            return self.inference if same else self.engine(graph)

        whole = not self.inference.finds_best
        return Blocks.of(X, self.side, engine, self.n_components, whole=whole, map=map)

    def cluster(self, chunks: Chunks) -> Cluster:
        """Return the partitions of a dask.array, with the engine applied to each."""
        if not self.inference.finds_best:
            raise ValueError(
                f"the engine {engine_name(self.engine)!r} answers for the network as a whole, "
                "which lies on several workers here. Let each part be answered by itself, "
                "set_params(inference='auto'), or bring the points together: fit(X.compute(), ...)."
            )
        apply = partial(
            apply_engine, inference=self.name, engine=self.engine, n_components=self.n_components
        )
        # All relations: the engine may leave out some of them, on each partition again.
        return Cluster.of(chunks, self.side._replace(graph=self.graph), apply)

    # ------------------------------------------------------------------ results of a run

    def report(self, run: Run) -> Run:
        """Return the run with its log-evidence, whichever normaliser the update assumed."""
        evidence, weights = run.posterior.log_evidence, run.parameters.weights
        if self.update != "cautious" or self.prior is None or np.isnan(evidence):
            return run
        with silence():
            evidence += self.log_z_prior(weights) - self.prior.log_z(weights)
        return run._replace(posterior=run.posterior._replace(log_evidence=evidence))

    def reports_exactly(self, run: Run) -> bool:
        """Return whether a run's log-evidence is exact, with both normalisers and all relations."""
        if np.isnan(run.posterior.log_evidence) or not (self.is_whole and self.is_exact):
            return False
        with silence(ConvergenceWarning):
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

        No hard relation is broken, whatever the engine.
        """
        if self.side.nodes_are_points and len(self.graph.edges) == 0:
            return Assignment(most_probable(r), exact=True)
        unary = node_unaries(X, theta, self.side)
        if self.inference.finds_best and self.is_whole:
            with suppress(SearchBudgetError):
                states = self.inference.most_probable(unary)
                return Assignment(self.side.spread(states), self.is_exact)
        states, exact = self._search(unary, r, self.possible if chains is None else chains.best)
        return Assignment(self.side.spread(states), exact)

    def _search(self, unary: FloatArray, r: FloatArray, known: IntArray | None) -> Assignment:
        """Return the best assignment of the nodes that a search from the marginals finds."""
        marginals = r[first_of_nodes(self.side.node_of)]
        return find_best(self.graph, unary, marginals, known=known, remedy=NO_LABELS)

    def rate(self, X: Points, run: Run) -> float:
        """Return the classification likelihood, the score of a run whose evidence is not exact.

        The *classification likelihood* (Celeux and Govaert, 1992): what the parameters and the
        best joint assignment make of nodes with relations, together, in place of the sum over all
        assignments. The prior is normalised as if every edge stood alone, as in
        "pseudo-likelihood". Nodes without relations count as in the log-evidence.
        """
        side, edges = self.side, self.graph.edges
        unary, tied = node_unaries(X, run.parameters, side), side.tied
        z = self._search(unary, run.posterior.responsibilities, self.possible).states
        together = z[edges[:, 0]] == z[edges[:, 1]]
        chosen = unary[tied, z[tied]].sum() + self.graph.weights[together].sum()
        # For large chunklets with a cannot-link the factor and its gradient round to zero.
        with np.errstate(divide="ignore", invalid="ignore"):
            prior = PairwisePrior(side).log_z_and_counts(np.log(run.parameters.weights))[0]
        copies = np.ones(len(z)) if side.copies is None else side.copies
        return float(copies[~tied] @ log_normalise(unary[~tied])[1] + chosen - prior)


@contextmanager
def silence(kind: type[Warning] | None = None) -> Iterator[None]:
    """Drop all warnings of an engine inside this block, or only those of one kind."""
    with WarnedOnce() as warned:
        yield
        warned.held[:] = [held for held in warned.held if kind and held[1] is not kind]


# ---------------------------------------------------------------------------- once a fit


def engine_of(inference: str | Engine, rng: Rng) -> Engine:
    """Return the engine that a name stands for, with a seed if it samples."""
    if isinstance(inference, str) and inference in ENGINES and needs_seed(ENGINES[inference]):
        return partial(cast("Any", ENGINES[inference]), random_state=int(rng.randint(2**31)))
    if inference in ("auto", SPANNING_TREE):
        return ENGINES["auto"]
    return named_engine(inference)


def _frugal(side: SideInformation, n_components: int, n_calls: int) -> Engine:
    """Return the engine "auto" with a budget that lets n_calls calls keep to that of a fit."""
    whole = max(OPERATIONS_OF_A_FIT, OPERATIONS_OF_A_NODE * side.n_nodes * n_components)
    return partial(cast("Any", ENGINES["auto"]), max_operations=whole / n_calls)


def apply_engine(
    side: SideInformation, inference: str | Engine, engine: Engine, n_components: int
) -> AssignmentModel:
    """Apply the engine to the structure, and refuse at once what cannot be done."""
    _require_resolvable(side)
    require_colourable(side, n_components)
    graph = side.graph
    if inference == SPANNING_TREE:
        side = side._replace(graph=spanning_forest(graph))
    model = AssignmentModel(side, graph, inference, engine, engine(side.graph), n_components)
    model.possible = _require_possible(model)
    return model


def choose_model(
    side: SideInformation, inference: str | Engine, weights: str, n_components: int, rng: Rng
) -> AssignmentModel:
    """Return the model of a fit's assignments: the engine applied, the weights' update chosen."""
    engine, is_auto = engine_of(inference, rng), inference in AUTOMATIC
    if is_auto:
        engine = _frugal(side, n_components, CALLS_OF_A_FIT)
    model = apply_engine(side, inference, engine, n_components)
    if is_auto and weights == "auto":
        # If exact counts of the prior would cost too much, the update does without them.
        engine = _frugal(side, n_components, PRIOR_CALLS_OF_A_FIT)
    prior = Prior(model.side, engine)
    with silence():
        approximates = model.inference.approximates(model.possible_states)
        safe = "cautious" if approximates else resolve(prior, n_components)
    model.update = safe if weights == "auto" else weights
    model.update_weights = UPDATES[model.update](prior)
    # An exact engine computes the exact evidence even if the user chose the cautious update.
    if model.update == safe == "cautious":
        # The update needs no normaliser of the network; the reported evidence needs it once.
        pairs, engine = SelectedPairs(model.side), _frugal(side, n_components, CALLS_OF_A_FIT)
        model.log_z_prior = lambda weights: float(pairs.log_z(weights))
        model.prior = Prior(model.side, engine)
        return model
    model.log_z_prior, model.prior = prior.log_z, prior
    with silence(ConvergenceWarning):
        has_none = np.isnan(prior.log_z(np.full(n_components, 1 / n_components)))
    if has_none and weights in ("exact", "grid"):
        named = repr(inference) if isinstance(inference, str) else engine_name(inference)
        raise ValueError(
            f"weights={weights!r} needs the prior's normaliser, which the engine "
            f"{engine_name(inference)!r} does not report; without it there is "
            f"ConstrainedGaussianMixture({n_components}, inference={named}, weights='auto')."
        )
    if has_none:
        model.log_z_prior = lambda weights: np.nan
    return model


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


def _require_possible(model: AssignmentModel) -> IntArray | None:
    """Return an assignment that satisfies all hard relations, found before any other work, or None.

    An exact engine does so itself. It knows only the relations that it was given, and others know
    none: for them there is a search, which may leave the question open.
    """
    if len(model.graph.edges) == 0:
        return None
    if model.inference.finds_best and model.is_whole and model.is_exact:
        model.inference(model.possible_states)
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
        From the last E-step of the run that is kept.

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
