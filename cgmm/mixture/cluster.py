"""The blocks of a fit on the workers of a cluster: chunks of a dask.array. Behind large data.

A dask.array says what it will be, chunk by chunk, and who makes a chunk may break the word: each is
looked at once, on its worker, and kept there. A partition is a fit's data in small: the points of a
chunk, what is known of them, and an engine that has worked on their network. Components of the
network that cross chunks move to the chunk of their first point. What a partition finds adds up, as
that of a block does, in the order of the chunks. Who runs what, and once more where a worker died,
is Dask's business: inside a ``distributed.Client`` it is a cluster, else threads of this process.

=====  ====================================================================
N, D   points and their dimensions
P      number of chunks, and of partitions
tied   points that share a component of the network with another point
=====  ====================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from cgmm.given import ON_MISSING
from cgmm.inference import engine_name
from cgmm.inference.best_assignment import Assignment
from cgmm.mixture.assignments import AssignmentModel
from cgmm.mixture.blocks import Block, Blocks, added, is_known, named, placed, workers
from cgmm.mixture.loop import Run, e_step, no_prior
from cgmm.network import SideInformation, connected_components
from cgmm.numerics import FloatArray, IntArray

Rows = slice | IntArray
Apply = Callable[[SideInformation], AssignmentModel]
"""What puts the engine of a fit to the network of some points."""


class Chunks(NamedTuple):
    """The chunks of a dask.array, kept by those who work on them."""

    parts: tuple[Any, ...]
    """(P,) promises of arrays (rows, D)."""
    starts: IntArray
    """(P + 1,) the first row of each chunk, and N."""
    corners: FloatArray
    """(2, D) the smallest and the largest value of each column."""

    @property
    def shape(self) -> tuple[int, int]:
        """(N, D)."""
        return int(self.starts[-1]), self.corners.shape[1]

    def few(self, n_rows: int) -> FloatArray:
        """Some rows that reach as far as all, and are no more than all are."""
        return np.resize(self.corners, (min(n_rows, self.shape[0]), self.shape[1]))

    def fetch(self, rows: IntArray) -> FloatArray:
        """(n, D) these rows, which rise, fetched from the workers."""
        found = on_workers(rows_of, ((self.parts[p], own) for p, own in self.by_chunk(rows)))
        return np.asfortranarray(np.concatenate(found), dtype=float)

    def by_chunk(self, rows: IntArray) -> list[tuple[int, IntArray]]:
        """Rows, which rise, as numbers of chunks and rows of each."""
        chunks = chunk_of(rows, self.starts)
        chosen, first = np.unique(chunks, return_index=True)
        of_chunk = np.split(rows - self.starts[chunks], first[1:])
        return list(zip(chosen.tolist(), of_chunk, strict=True))


def on_workers(function: Callable[..., Any], arguments: Iterable[Any]) -> Any:
    """What a function says of each tuple of arguments, where these are."""
    from dask.base import compute
    from dask.delayed import delayed

    ask = delayed(function, pure=False)
    return compute(*[ask(*own) for own in arguments])


def chunk_of(rows: IntArray, starts: IntArray) -> IntArray:
    """The chunk in which each row lies."""
    chunks: IntArray = np.searchsorted(starts, rows, side="right") - 1
    return chunks


def read_chunks(X: Any) -> Chunks:
    """The chunks, each looked at where it lies; or an error that names one."""
    from dask.base import persist
    from dask.delayed import delayed

    _require_array(X)
    X = X.rechunk({1: -1})
    starts = np.concatenate([[0], np.cumsum(X.chunks[0])]).astype(np.intp)
    turn = delayed(by_columns, pure=False)
    parts = persist(*map(turn, X.to_delayed(optimize_graph=True).ravel()))
    extents = on_workers(extent_of, ([part] for part in parts))
    for number, about in enumerate(extents):
        _require_kept_word(X, about, number, starts)
    _require_finite(extents, starts)
    # A chunk without rows says nothing of them.
    low, high = zip(*[(about.low, about.high) for about in extents if about.shape[0]], strict=True)
    return Chunks(parts, starts, np.array([np.min(low, axis=0), np.max(high, axis=0)], dtype=float))


class Extent(NamedTuple):
    """What a chunk is, and how far it reaches."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    low: FloatArray = np.empty(0)
    high: FloatArray = np.empty(0)
    wrong: IntArray = np.empty((0, 2), dtype=np.intp)
    """Row and column of each value that is not finite."""
    value: float = 0.0
    """The first of them."""


def extent_of(chunk: Any) -> Extent:
    """Shape, type and extent of a chunk; and what is not finite in it."""
    if not isinstance(chunk, np.ndarray):
        return Extent((), np.dtype(object))
    if chunk.ndim != 2 or chunk.dtype.kind not in "fiub" or len(chunk) == 0:
        return Extent(chunk.shape, chunk.dtype)
    found = Extent(chunk.shape, chunk.dtype, chunk.min(axis=0), chunk.max(axis=0))
    if np.isfinite(found.low).all() and np.isfinite(found.high).all():
        return found
    wrong = np.argwhere(~np.isfinite(chunk))
    return found._replace(wrong=wrong, value=float(chunk[tuple(wrong[0])]))


def by_columns(chunk: Any) -> Any:
    """Coordinates of all points together, as blocks of work read them."""
    return np.asfortranarray(chunk) if isinstance(chunk, np.ndarray) and chunk.ndim == 2 else chunk


def rows_of(chunk: FloatArray, rows: IntArray) -> FloatArray:
    """Some rows of a chunk."""
    return chunk[rows]


class Cluster(NamedTuple):
    """A fit's points on the workers of a cluster, where others have ``Blocks``."""

    side: SideInformation
    rows: list[Rows]
    """The points of each partition, by the numbers under which they were given."""
    parts: tuple[Any, ...]
    """Promises of a :class:`Partition` each; none of a chunk that no point is left in."""
    alone: bool = False
    """As of blocks: nothing of N numbers is kept here."""

    @classmethod
    def of(cls, chunks: Chunks, model: AssignmentModel, apply: Apply, verbose: int = 0) -> Cluster:
        """Bring together what is tied, and put an engine to each partition."""
        from dask import config
        from dask.base import persist
        from dask.delayed import delayed

        _require_parts(model)
        side = model.side._replace(graph=model.graph)  # engines may leave out some of it, once more
        known = side.spread(is_known(side)) | (side.power is not None)
        make, take = delayed(made, pure=False), delayed(rows_of, pure=False)
        places, parts = partitions(side, chunks.starts), []
        for p, rows in places.items():
            pieces = [chunks.parts[p]]
            if not isinstance(rows, slice):
                pieces = [take(chunks.parts[chunk], own) for chunk, own in chunks.by_chunk(rows)]
            part = side.restrict(rows) if known[rows].any() else None
            parts.append(make(pieces, rows, part, apply))
        # What is known travels with the first task, once.
        with config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            return cls(side, list(places.values()), persist(*parts))

    def each(self, of_block: Callable[[Block], Any]) -> Any:
        """What a function says of the blocks of each partition, added up there."""
        return self._ask(Partition.total, of_block)

    def gather(self, of_block: Callable[[Block], FloatArray]) -> FloatArray:
        """What a function says of the points of each block, at the places where these are given."""
        return placed(self.rows, self._ask(Partition.gather, of_block), len(self.side.node_of))

    def joint_labels(self, theta: Any) -> Assignment:
        """The most probable joint assignment of the points: no relation crosses partitions."""
        answers = self._ask(Partition.joint_labels, theta)
        states = placed(self.rows, [found.states for found in answers], len(self.side.node_of))
        return Assignment(states, all(found.exact for found in answers))

    def _ask(self, function: Callable[..., Any], argument: Any) -> Any:
        """What a function says of each partition, where that is."""
        from dask.delayed import delayed

        with_it = delayed(argument, traverse=False)
        return on_workers(_asked, ((function, part, with_it) for part in self.parts))


# ---------------------------------------------------------------------------- who lies where


def partitions(side: SideInformation, starts: IntArray) -> dict[int, Rows]:
    """The points of each partition, by the chunk's number: components lie with their first point.

    A partition that has all points of a chunk and no others has them as a slice; none is empty.
    """
    chunks = [slice(*pair) for pair in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)]
    places: dict[int, Rows] = dict(enumerate(chunks))
    if not (side.nodes_are_points and len(side.graph.edges) == 0):
        component = connected_components(side.graph)
        first = np.full(component.max() + 1, starts[-1])
        np.minimum.at(first, component, side.first_points)
        home = chunk_of(first[component[side.node_of]], starts)
        order = np.argsort(home, kind="stable")
        rows = np.split(order, np.searchsorted(home[order], np.arange(1, len(chunks))))
        for p, (own, chunk) in enumerate(zip(rows, chunks, strict=True)):
            if not np.array_equal(own, np.arange(chunk.start, chunk.stop)):
                places[p] = own
    return {p: rows for p, rows in places.items() if len(side.node_of[rows])}


def _require_parts(model: AssignmentModel) -> None:
    """Refuse engines that want the network as a whole."""
    if not model.finds_best:
        raise ValueError(
            f"the engine {engine_name(model.engine)!r} answers for the network as a whole, "
            "which lies on several workers here. Let each part be answered by itself, "
            "set_params(inference='auto'), or bring the points together: fit(X.compute(), ...)."
        )


# ---------------------------------------------------------------------------- on the workers


class Partition(NamedTuple):
    """Points where they are worked on; it travels as what it is made of, not with its engine."""

    X: FloatArray
    data: Blocks
    model: AssignmentModel
    made_of: tuple[Any, ...]
    """The arguments of :meth:`of`."""

    @classmethod
    def of(cls, X: FloatArray, rows: Rows, side: SideInformation, apply: Apply) -> Partition:
        """Points, what is known of them, and an engine put to that."""
        # Errors name points as they were given.
        names = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
        model = apply(side._replace(first_points=names[side.first_points]))
        return cls(X, model.blocks(X), model, (X, rows, side, apply))

    def __reduce__(self) -> tuple[Callable[..., Partition], tuple[Any, ...]]:
        return Partition.of, self.made_of

    def total(self, of_block: Callable[[Block], Any]) -> Any:
        """The sum over the blocks."""
        return reduce(added, self.data.each(of_block))

    def gather(self, of_block: Callable[[Block], FloatArray]) -> FloatArray:
        """What a function says of the points, in their order."""
        return self.data.gather(of_block)

    def joint_labels(self, theta: Any) -> Assignment:
        """The most probable joint assignment of the points."""
        X, model = self.X, self.model
        posterior = e_step(X, theta, model.side, model.infer, log_z_prior=no_prior)
        # A search from the marginals begins at those of nodes; points have other names here.
        return model.joint_labels(X, Run(theta, posterior, [], converged=True))


def made(
    pieces: list[FloatArray], rows: Rows, side: SideInformation | None, apply: Apply
) -> Partition:
    """A partition of points that come in pieces, and an engine put to their network."""
    X = np.concatenate(pieces) if len(pieces) > 1 else pieces[0]
    kept_as = X.dtype if X.dtype in (np.float32, np.float64) else np.float64
    X = np.asfortranarray(X, dtype=kept_as)
    return Partition.of(X, rows, side or SideInformation.build(len(X)), apply)


def _asked(function: Callable[..., Any], part: Partition, argument: Any) -> Any:
    with workers(None), named(part.model.side.first_points, "point"):
        return function(part, argument)


# ---------------------------------------------------------------------------- refusals


def _require_array(X: Any) -> None:
    """Refuse what is no table of known size."""
    from dask.array import Array

    if not isinstance(X, Array):
        raise ValueError(
            f"X is a {type(X).__name__} of Dask; a fit takes a dask.array. Of a table: "
            "X.to_dask_array(lengths=True)."
        )
    if X.ndim != 2:
        raise ValueError(
            f"X has shape {X.shape}; it must be (N, D), a point a row. Reshape your data: "
            "X.reshape(-1, 1) if there is one column."
        )
    if np.isnan(X.shape).any():
        raise ValueError(
            "nobody knows yet how many rows the chunks of X have. Ask them before the fit: "
            "X = X.persist().compute_chunk_sizes()."
        )
    if X.dtype.kind not in "fiub":
        raise ValueError(f"X is of type {X.dtype}; it must hold real numbers: X.astype(float).")
    if 0 in X.shape:
        raise ValueError(f"X has shape {X.shape}; there must be a point and a column.")


def _require_kept_word(X: Any, extent: Extent, number: int, starts: IntArray) -> None:
    """Refuse a chunk that is not what the array says."""
    wanted = (int(starts[number + 1] - starts[number]), X.shape[1])
    where = f"chunk {number} of X (rows {starts[number]} to {starts[number + 1] - 1})"
    if (extent.shape, extent.dtype) != (wanted, X.dtype):
        raise ValueError(
            f"{where} has shape {extent.shape} and type {extent.dtype}, but X says {wanted} and "
            f"{X.dtype}. Mend what makes the chunk; or ask the chunks how many rows they have, "
            "X.compute_chunk_sizes(), and make their types alike, X.map_blocks(lambda chunk: "
            f"chunk.astype({str(X.dtype)!r}), dtype={str(X.dtype)!r})."
        )


def _require_finite(extents: tuple[Extent, ...], starts: IntArray) -> None:
    """Say where the first value is that is not finite, and how many rows have some."""
    wrong = [number for number, extent in enumerate(extents) if len(extent.wrong)]
    if not wrong:
        return
    first = extents[wrong[0]]
    row, column = first.wrong[0]
    count = sum(len(np.unique(extents[number].wrong[:, 0])) for number in wrong)
    is_missing = np.isnan(first.value)
    remedy = "Leave such rows out, or mend what makes them."
    if is_missing:
        remedy = ON_MISSING.replace(".any(axis=1),", ".any(axis=1).compute(),")
    raise ValueError(
        f"Input X contains {'NaN' if is_missing else 'infinity'}: first in row "
        f"{starts[wrong[0]] + row}, column {column}, in chunk {wrong[0]}, and in {count} of "
        f"{starts[-1]} rows. {remedy}"
    )
