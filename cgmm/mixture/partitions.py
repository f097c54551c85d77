"""The blocks of a fold on the workers of a cluster, points that are tied brought together there.

A partition is a fit's data in small: the points of a chunk of a dask.array, what is known of them,
and an engine that has worked on their network. Components of the network that cross chunks move to
the chunk of their first point. What a partition leaves behind adds, as that of a block does, and is
added in the order of the chunks. Who runs what, and once more where a worker died, is Dask's
business: inside a ``distributed.Client`` it is a cluster, else the threads of this process.

=====  ====================================================================
P      number of chunks, and of partitions
tied   points that share a component of the network with another point
=====  ====================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any, NamedTuple, cast

import numpy as np

from cgmm.inference.best_assignment import Assignment
from cgmm.mixture.arranged import Answer, Arranged, named_as_points
from cgmm.mixture.chunks import Chunks, chunk_of, rows_of
from cgmm.mixture.gaussian import Parameters
from cgmm.mixture.loop import Theta, e_step
from cgmm.mixture.prepare import Prepared
from cgmm.mixture.reports import name_of
from cgmm.mixture.runs import Run
from cgmm.mixture.threads import workers
from cgmm.network import Graph, SideInformation, connected_components
from cgmm.numerics import BoolArray, FloatArray, IntArray

Rows = slice | IntArray
Apply = Callable[[SideInformation], Prepared]
"""What puts the engine of a fit to the network of some points."""


class Partition(NamedTuple):
    """Points where they are worked on; it travels as what it is made of, not with its engine."""

    data: Arranged
    prepared: Prepared
    made_of: tuple[Any, ...]
    """The arguments of :func:`partition_of`."""

    def __reduce__(self) -> tuple[Callable[..., Partition], tuple[Any, ...]]:
        return partition_of, self.made_of


class Partitions(NamedTuple):
    """A fit's points on the workers of a cluster."""

    extent: FloatArray
    """(2, D) the smallest and the largest value of each column."""
    side: SideInformation
    rows: list[Rows]
    """The points of each partition, by the numbers under which they were given."""
    parts: tuple[Any, ...]
    """Promises of a :class:`Partition` each; none of a chunk that no point is left in."""
    given: None = None
    """The points themselves are not here."""

    @classmethod
    def of(
        cls, chunks: Chunks, prepared: Prepared, apply: Apply, height: int, *, verbose: int = 0
    ) -> Partitions:
        """Bring together what is tied, and put an engine to each partition."""
        from dask import config
        from dask.base import persist
        from dask.delayed import delayed

        _require_parts(prepared)
        side = prepared.side
        leaving, rows = moves(homes(side, prepared.graph, chunks.starts), chunks.starts)
        if verbose and len(leaving):
            print(f"relations cross chunks: {sum(map(len, leaving.values()))} points move")
        side = side._replace(graph=prepared.graph)  # engines may leave out some of it, once more
        known = _anything_known(side)
        make, take = delayed(made, pure=False), delayed(rows_of, pure=False)
        sent = {pair: take(chunks.parts[pair[0]], own) for pair, own in leaving.items()}
        parts = []
        for p, (own, of_part) in enumerate(zip(chunks.parts, rows, strict=True)):
            part = side.restrict(of_part) if known[of_part].any() else None
            gone = [left for (source, _), left in leaving.items() if source == p]
            came = [piece for (_, target), piece in sent.items() if target == p]
            if known[of_part].size:
                parts.append(make(own, gone, came, of_part, part, apply, height))
        rows = [of_part for of_part in rows if known[of_part].size]
        # What is known travels with the first task, once.
        with config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            return cls(chunks.corners, side, rows, persist(*parts))

    def each(self, of_block: Callable[..., Any]) -> Iterable[Any]:
        """The sum over the blocks of each partition, in their order."""
        return self._ask(total_of, of_block)

    def answer(self, of_block: Callable[..., Any], n_components: int, keep: bool) -> Answer:
        """What a function says of the points of each block, at the places where they were given."""
        n_points = len(self.side.node_of)
        largest = np.empty(n_points, dtype=np.intp)
        kept = np.empty((n_components, n_points)).T if keep else None
        answers = self._ask(answer_of, of_block, n_components, keep)
        for rows, (found, states) in zip(self.rows, answers, strict=True):
            largest[rows] = states
            if kept is not None:
                kept[rows] = found
        return kept, largest

    def joint_labels(self, run: Run) -> Assignment:
        """The most probable joint assignment of the points: no relation crosses partitions."""
        states = np.empty(len(self.side.node_of), dtype=np.intp)
        answers = self._ask(joint_labels_of, run.parameters)
        for rows, found in zip(self.rows, answers, strict=True):
            states[rows] = found.states
        return Assignment(states, all(found.exact for found in answers))

    def _ask(self, function: Callable[..., Any], *arguments: Any) -> Iterable[Any]:
        """What a function says of each partition, where that is."""
        from dask.base import compute
        from dask.delayed import delayed

        ask, with_them = delayed(_asked, pure=False), delayed(arguments, traverse=False)
        return compute(*[ask(function, part, with_them) for part in self.parts])


# ---------------------------------------------------------------------------- who lies where


def homes(side: SideInformation, graph: Graph, starts: IntArray) -> IntArray | None:
    """(N,) the chunk in which each point is to lie: that of its component's first point.

    None where all components lie in one chunk each.
    """
    if side.nodes_are_points and len(graph.edges) == 0:
        return None
    component = connected_components(graph)
    first = np.full(component.max() + 1, starts[-1])
    np.minimum.at(first, component, side.first_points)
    home = chunk_of(first[component[side.node_of]], starts)
    return None if np.array_equal(home, chunk_of(np.arange(starts[-1]), starts)) else home


def moves(
    home: IntArray | None, starts: IntArray
) -> tuple[dict[tuple[int, int], IntArray], list[Rows]]:
    """Which rows of a chunk leave it for another, and which points each partition has then.

    Those that stay come first, in their order; then what arrives, chunk by chunk.
    """
    ends = list(zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True))
    if home is None:
        return {}, [slice(*pair) for pair in ends]
    leaving: dict[tuple[int, int], IntArray] = {}
    for p, (start, end) in enumerate(ends):
        to: IntArray = home[start:end]
        for target in np.unique(to[to != p]).tolist():
            leaving[p, target] = np.flatnonzero(to == target)
    rows: list[Rows] = []
    for p, (start, end) in enumerate(ends):
        stay = start + np.flatnonzero(home[start:end] == p)
        came = [starts[source] + own for (source, target), own in leaving.items() if target == p]
        rows.append(np.concatenate([stay, *came]))
    return leaving, rows


def _anything_known(side: SideInformation) -> BoolArray:
    """(N,) whether anything is known of a point beside its coordinates."""
    known = np.bincount(side.node_of) > 1
    known[side.graph.edges] = True
    if side.allowed is not None:
        known |= ~side.allowed.all(axis=1)
    of_point: BoolArray = side.spread(known)
    return of_point if side.power is None else np.ones_like(of_point)


def _require_parts(prepared: Prepared) -> None:
    """Refuse engines that want the network as a whole."""
    if not prepared.finds_best:
        raise ValueError(
            f"the engine {name_of(prepared.engine)!r} answers for the network as a whole, which "
            "lies on several workers here. Let each part be answered by itself, "
            "set_params(inference='auto'), or bring the points together: fit(X.compute(), ...)."
        )


# ---------------------------------------------------------------------------- on the workers


def made(
    own: FloatArray, gone: list[IntArray], came: list[FloatArray], rows: Rows,
    side: SideInformation | None, apply: Apply, height: int,
) -> Partition:  # fmt: skip
    """A partition: rows that stay, rows that came, and an engine put to their network."""
    stay = np.delete(own, np.concatenate(gone), axis=0) if gone else own
    X = np.concatenate([stay, *came]) if came else stay
    kept_as = X.dtype if X.dtype in (np.float32, np.float64) else np.float64
    X = np.asfortranarray(X, dtype=kept_as)
    return partition_of(X, rows, side or SideInformation.build(len(X)), apply, height)


def partition_of(
    X: FloatArray, rows: Rows, side: SideInformation, apply: Apply, height: int
) -> Partition:
    """Points, what is known of them, and an engine put to that."""
    prepared = apply(side)
    # Errors name points as they were given.
    names = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
    data = prepared.arrange(X, height, apart=True).called(names)
    return Partition(data, prepared, (X, rows, side, apply, height))


def total_of(part: Partition, of_block: Callable[..., Any]) -> Any:
    """The sum over the blocks of a partition."""
    return reduce(lambda one, other: one.plus(other), part.data.each(of_block))._replace(kept=None)


def answer_of(
    part: Partition, of_block: Callable[..., Any], n_components: int, keep: bool
) -> Answer:
    """What a function says of the points of a partition."""
    return part.data.answer(of_block, n_components, keep)


def joint_labels_of(part: Partition, theta: Theta) -> Assignment:
    """The most probable joint assignment of the points of a partition."""
    X, (side, _, ready, *_) = part.data.given, part.prepared
    posterior = e_step(X, theta, side, ready, log_z_prior=lambda weights: 0.0)
    run = Run(cast("Parameters", theta), posterior, [], converged=True)
    return part.prepared.joint_labels(X, run)


def _asked(function: Callable[..., Any], part: Partition, arguments: tuple[Any, ...]) -> Any:
    with workers(None), named_as_points(part.data.side):
        return function(part, *arguments)
