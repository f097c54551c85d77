"""What a fit does once: the network of what is known, and everything that depends on it alone.

Behind chapters 6 to 10: the engine works on the structure here, before the first iteration, and
whatever cannot be done is refused before any work.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, cast

import numpy as np

from cgmm.inference import ENGINES, require_colourable
from cgmm.mixture.loop import Points, Theta, node_unaries
from cgmm.mixture.prior import Prior
from cgmm.mixture.runs import Run
from cgmm.mixture.seeding import Rng
from cgmm.mixture.weights import UPDATES, Update
from cgmm.network import Engine, ExactInfer, Infer, SideInformation, spanning_forest
from cgmm.numerics import FloatArray, IntArray

SPANNING_TREE = "spanning_tree"

# Finite log-odds above this cost the log-evidence seven of its sixteen digits, and more.
LARGEST_ODDS = 1e9


class Prepared(NamedTuple):
    """The network, the engine that has worked on its structure, and the weights' update."""

    side: SideInformation
    engine: Engine
    ready: Infer
    """The engine applied to the graph."""
    update_weights: Update
    log_z_prior: Callable[[FloatArray], float]

    @property
    def is_exact(self) -> bool:
        """Whether the engine finds the most probable joint assignment, as all exact ones do."""
        return hasattr(self.ready, "most_probable")

    def infer(self) -> Infer:
        """The engine for one run: an approximate one may remember earlier calls, so a new one."""
        return self.ready if self.is_exact else self.engine(self.side.graph)

    def joint_labels(self, X: Points, run: Run) -> IntArray:
        """The most probable joint assignment of the points, where the engine can tell it."""
        if self.side.is_trivial or not self.is_exact:
            return run.posterior.responsibilities.argmax(axis=1)
        unary = node_unaries(X, cast("Theta", run.parameters), self.side)
        return self.side.spread(cast("ExactInfer", self.ready).most_probable(unary))


def prepare(
    side: SideInformation, inference: str | Engine, weights: str, n_components: int, rng: Rng
) -> Prepared:
    """Apply the engine to the structure, and refuse at once what cannot be done."""
    _require_resolvable(side)
    require_colourable(side, n_components)
    engine = cast("Engine", inference if callable(inference) else ENGINES.get(inference))
    if inference == SPANNING_TREE:
        side, engine = side._replace(graph=spanning_forest(side.graph)), ENGINES["auto"]
    if inference == "gibbs":
        engine = partial(cast("Callable[..., Infer]", engine), random_state=int(rng.randint(2**31)))
    prior = Prior(side, engine)
    log_z_prior = prior.log_z
    if np.isnan(log_z_prior(np.full(n_components, 1 / n_components))):
        _require_no_normaliser_needed(inference, weights)
        log_z_prior = lambda weights: np.nan  # noqa: E731
    prepared = Prepared(side, engine, engine(side.graph), UPDATES[weights](prior), log_z_prior)
    _require_possible(prepared, n_components)
    return prepared


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


def _require_no_normaliser_needed(inference: str | Engine, weights: str) -> None:
    """Refuse updates that need a log Z which the engine does not have."""
    if weights in ("exact", "grid"):
        raise ValueError(
            f"weights={weights!r} needs the prior's normaliser, which the engine {inference!r} "
            "does not report; use weights='pseudo-likelihood' or 'ignore', or another engine."
        )


def _require_possible(prepared: Prepared, n_components: int) -> None:
    """Let an exact engine look for an assignment that honours all that is hard, before any work."""
    if prepared.is_exact and len(prepared.side.graph.edges):
        mask = prepared.side.mask(n_components)
        unary = np.zeros((prepared.side.n_nodes, n_components))
        prepared.ready(unary if mask is None else np.where(mask, 0.0, -np.inf))
