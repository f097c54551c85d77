"""EM as a fold: the statistics of blocks add up, and one M-step follows on their sum. Chapter 3.

The components of a network are independent, so points fall into blocks of whole components
(:mod:`cgmm.mixture.arranged`). The E-step of a block leaves its log Z, its expected counts and the
sums that the M-step needs. All of these add, and the responsibilities of a block are forgotten
before the next: the memory of a fit is that of its data. What is added is added in the order of
the blocks, so that it does not matter who computed it: one thread after the other, several at once,
or the workers of a cluster (:mod:`cgmm.mixture.partitions`). Per iteration and up to rounding this
is :func:`~cgmm.mixture.em`.

=====  ====================================================================
θ      parameters; r_ik responsibilities
block  some rows of X, what is known of them, and who answers
=====  ====================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial, reduce
from typing import Any, NamedTuple, Protocol, cast

import numpy as np

from cgmm.mixture.arranged import Answer, Arranged, Cut
from cgmm.mixture.loop import FamilyPooling, Points, Ready, Seen, node_unaries
from cgmm.mixture.moments import Sums, added
from cgmm.network import SideInformation
from cgmm.numerics import FloatArray, IntArray, cut


class Statistics(NamedTuple):
    """What the E-step of some points leaves behind: numbers that add."""

    log_z: float
    """log Z of the posterior's network."""
    expected_counts: FloatArray
    """(K,) Σ_j n_j p(z_j = k | ...)."""
    sums: Sums
    """What the family's M-step needs."""
    kept: FloatArray | None = None
    """(N, K) responsibilities, where there is one block alone."""

    def plus(self, other: Statistics) -> Statistics:
        """Those of the points of both."""
        counts = self.expected_counts + other.expected_counts
        return Statistics(self.log_z + other.log_z, counts, added(self.sums, other.sums))


class Source(Protocol):
    """Where the blocks of a fold are, and who works on them."""

    @property
    def extent(self) -> Points:
        """Points that reach as far as all of them do, in every column."""

    @property
    def side(self) -> SideInformation:
        """What is known of the points."""

    def each(self, of_block: Callable[..., Any]) -> Iterable[Any]:
        """What a function of an ``Arranged`` and the place of a block says of each, to be added."""

    def answer(self, of_block: Callable[..., Any], n_components: int, keep: bool) -> Answer:
        """What a function says of each point of a block: (B, K), kept or not, and the largest."""


class Folded(NamedTuple):
    """What the E-steps of all blocks found out at given parameters."""

    expected_counts: FloatArray
    """(K,) as in :class:`~cgmm.mixture.Posterior`."""
    log_evidence: float
    """As in :class:`~cgmm.mixture.Posterior`."""
    n_points: float
    """N, each point as often as it counts."""
    kept: FloatArray | None
    """(N, K) r_ik, where one block was all."""
    ask: Callable[[bool], Answer]
    """The answer, by asking the blocks once more."""

    @property
    def responsibilities(self) -> FloatArray:
        """(N, K) r_ik of the points as they were given."""
        return cast("FloatArray", self.answer(keep=True)[0])

    def answer(self, *, keep: bool) -> Answer:
        """Responsibilities, if they are to be kept; and (N,) the largest of each point."""
        if self.kept is None:
            return self.ask(keep)
        return self.kept if keep else None, self.kept.argmax(axis=1)


def fold(
    data: Source,
    parameters: Any,
    pool: FamilyPooling,
    update_weights: Callable[[FloatArray], FloatArray],
    options: dict[str, float],
    *,
    log_z_prior: Callable[[FloatArray], float],
) -> Iterator[tuple[Any, Folded]]:
    """Run EM for as long as the caller wants, block by block.

    Parameters
    ----------
    data : Source
        The points and what is known of them, in blocks: an
        :class:`~cgmm.mixture.arranged.Arranged`, or several on the workers of a cluster.
    parameters : Parameters
        The start.
    pool, update_weights, options, log_z_prior
        As in :func:`~cgmm.mixture.em`.

    Yields
    ------
    (Parameters, Folded)
        The start first; the log-evidence in the second is that of the first.
    """
    survey = pool.survey(data.extent)
    while True:
        ready = pool.ready(parameters, survey)
        found = reduce(Statistics.plus, data.each(partial(statistics_of, ready)))
        log_evidence = found.log_z - log_z_prior(parameters.weights)
        ask = partial(data.answer, partial(responsibilities_of, ready), len(parameters.weights))
        counts, n_points = found.expected_counts, data.side.n_points
        yield parameters, Folded(counts, log_evidence, n_points, found.kept, ask)
        moved = ready.from_summary(summary_of(data, ready, found), **options)
        parameters = moved.with_weights(update_weights(counts))


def statistics_of(ready: Ready, data: Arranged, place: Cut | None) -> Statistics:
    """The E-step of one block, and the sums that its responsibilities make."""
    X, side, infer, _, weights = data.block(place)
    seen = look_at(X, ready, data.height)
    nodes, log_z, *_ = infer(node_unaries(X, seen, side))
    r = side.spread(nodes)
    kept = r if len(data.cuts) == 1 and data.order is None else None
    counts = side.multiplicity if side.copies is None else side.multiplicity * side.copies
    sums = seen.sums(r if weights is None else r * weights[:, None])
    return Statistics(log_z, counts @ nodes, sums, kept)


def summary_of(data: Source, ready: Ready, found: Statistics) -> Any:
    """What the sums say; if they have lost digits, those of a second pass."""
    summary, closer = ready.summary(found.sums)
    if closer is not None:
        found = reduce(Statistics.plus, data.each(partial(statistics_of, closer)))
        summary, _ = closer.summary(found.sums)
    return summary


def responsibilities_of(
    ready: Ready, data: Arranged, place: Cut | None
) -> tuple[slice | IntArray, FloatArray]:
    """Where the points of one block were given, and (B, K) r_ik of them."""
    X, side, infer, places, _ = data.block(place)
    unary = node_unaries(X, look_at(X, ready, data.height), side)
    return places, side.spread(infer(unary).nodes)


# ---------------------------------------------------------------------------- larger than the cache


def look_at(X: Points, ready: Ready, height: int) -> Seen:
    """A block as θ sees it: at once, or part by part what is larger than the cache."""
    return ready.look(X) if X.shape[0] <= height else InParts(ready, X, height)


class InParts(NamedTuple):
    """A block that one component of the network makes large."""

    ready: Ready
    X: Points
    height: int

    @property
    def weights(self) -> FloatArray:
        """(K,) π_k."""
        return self.ready.weights

    @property
    def parts(self) -> list[slice]:
        """Rows that fit the cache."""
        return list(cut(self.X.shape[0], self.height))

    def log_density(self, X: Points, log_weights: FloatArray | float = 0.0) -> FloatArray:
        """(B, K) log-densities, plus what is given for each component."""
        densities = np.empty((len(self.weights), self.X.shape[0])).T
        for part in self.parts:
            rows = self.X[part]
            densities[part] = self.ready.look(rows).log_density(rows, log_weights)
        return densities

    def sums(self, responsibilities: FloatArray) -> Sums:
        """What the M-step needs, from a second look."""
        looks = (self.ready.look(self.X[part]).sums(responsibilities[part]) for part in self.parts)
        return reduce(added, looks)
