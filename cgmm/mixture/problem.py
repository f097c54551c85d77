"""The problem of a fit: points, what is known of them, a family and an engine. Chapters 3 to 10.

``fit`` builds a ``Problem`` once, runs EM on it from every start, and asks it what the best
run says of each point.

=====  ====================================================================
N, K   points and components; θ the parameters
r_ik   responsibilities, p(z_i = k | X, θ, what is known)
=====  ====================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from cgmm.inference.gibbs import Chains
from cgmm.large.blocks import Blocks, Points
from cgmm.large.chunks import Chunks, Cluster
from cgmm.large.threads import Map
from cgmm.mixture.assignments import AssignmentModel
from cgmm.mixture.family import Family
from cgmm.mixture.loop import Posterior, Run, assigned, em
from cgmm.network import Result
from cgmm.numerics import FloatArray, IntArray, most_probable


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
class Problem:
    """The points of a fit, divided into blocks, with the model of their assignments."""

    points: Any
    """``Points``, or ``Chunks`` of a dask.array."""
    model: AssignmentModel
    family: Family[Any]
    map: Map
    data: Blocks | Cluster

    @classmethod
    def of(
        cls, points: Points | Chunks, model: AssignmentModel, family: Family[Any], map: Map
    ) -> Problem:
        """Divide the points, and apply the engine to each part of the network."""
        if isinstance(points, Chunks):
            return cls(points, model, family, map, model.cluster(points))
        return cls(points, model, family, map, model.blocks(points, map))

    def steps(
        self, starts: Sequence[Callable[[], Any]], number: int
    ) -> Iterator[tuple[Any, Posterior]]:
        """Return EM from a start. An engine that remembers its calls is made anew for each run."""
        model, data = self.model, self.data
        if number > 0 and model.is_stateful:
            data = model.blocks(self.points, self.map)
        prior = model.log_z_prior
        start = starts[number]()
        return em(
            data, start, model.side, None, self.family, model.update_weights, log_z_prior=prior
        )

    def score(self, run: Run) -> float:
        """Return the log-evidence of a run, or what stands in for it where that is not exact."""
        if self.model.is_exact:
            return run.posterior.log_evidence
        return self.model.rate(self.points, run)

    def assign(self, run: Run, keep: bool) -> Found:
        """Return what a run says of the points; r_ik only if they are to be kept or are needed."""
        model, theta = self.model, run.parameters
        r: Any = run.posterior.responsibilities
        exact, results = model.reports_exactly(run), model.results
        is_joint = model.needs_joint_labels
        if r is None:
            r = self.data.gather(partial(assigned, theta, is_joint or keep))
        if not is_joint:
            labels = most_probable(r) if r.ndim == 2 else r
            return Found(r, labels, True, exact, results, None)
        if isinstance(self.data, Cluster):
            labels, is_best = self.data.joint_labels(theta, partial(assigned, theta, True))
            return Found(r, labels, is_best, exact, results, None)
        chains = model.chains(self.points, theta)
        labels, is_best = model.joint_labels(self.points, theta, r, chains)
        return Found(r, labels, is_best, exact, results, chains)
