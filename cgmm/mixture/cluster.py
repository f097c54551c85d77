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

from collections.abc import Callable
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np

from cgmm.given import ON_MISSING
from cgmm.inference import engine_name
from cgmm.inference.best_assignment import Assignment
from cgmm.mixture.assignments import AssignmentModel, apply_engine
from cgmm.mixture.blocks import Block, Blocks, added, as_slice, is_known, named, placed, workers
from cgmm.mixture.loop import assigned
from cgmm.network import SideInformation, connected_components
from cgmm.numerics import FloatArray, IntArray

Rows = slice | IntArray
Apply = Callable[[SideInformation], AssignmentModel]
"""What puts the engine of a fit to the network of some points."""


class Chunks(NamedTuple):
    """A dask.array whose chunks are kept by those who work on them, each with all columns."""

    X: Any
    """(N, D) dask.array."""

    @property
    def shape(self) -> tuple[int, int]:
        """(N, D)."""
        return self.X.shape

    def fetch(self, rows: IntArray) -> FloatArray:
        """(n, D) these rows, fetched from the workers."""
        return np.asfortranarray(self.X[rows].compute(), dtype=float)


def read_chunks(X: Any) -> tuple[Chunks, FloatArray]:
    """The chunks, each looked at where it lies; or an error that names what is wrong.

    And (2, D) the smallest and the largest value of each column.
    """
    from dask.array import flatnonzero, isfinite
    from dask.base import compute

    X = X.rechunk({1: -1}).map_blocks(by_columns, dtype=X.dtype, meta=np.empty((0, 0), X.dtype))
    X = X.persist()
    wrong = flatnonzero(~isfinite(X).all(axis=1))
    low, high, wrong = compute(X.min(axis=0), X.max(axis=0), wrong)
    if len(wrong):
        _refuse_rows(Chunks(X), wrong)
    return Chunks(X), np.array([low, high], dtype=float)


def by_columns(chunk: Any, block_info: Any) -> FloatArray:
    """Coordinates of all points together, as blocks of work read them, of what X said it would be.

    ``block_info`` is what Dask tells of a chunk.
    """
    said = block_info[None]
    shape, dtype, (start, stop) = said["chunk-shape"], said["dtype"], said["array-location"][0]
    found = (chunk.shape, chunk.dtype) if isinstance(chunk, np.ndarray) else ((), type(chunk))
    if found != (shape, dtype):
        raise ValueError(
            f"chunk {said['chunk-location'][0]} of X (rows {start} to {stop - 1}) has shape "
            f"{found[0]} and type {found[1]}, but X says {shape} and {dtype}. Mend what makes the "
            "chunk; or ask the chunks how many rows they have, X.compute_chunk_sizes(), and make "
            f"their types alike, X.map_blocks(lambda chunk: chunk.astype({str(dtype)!r}), "
            f"dtype={str(dtype)!r})."
        )
    return np.asfortranarray(chunk)


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
    def of(cls, chunks: Chunks, model: AssignmentModel) -> Cluster:
        """Bring together what is tied, and put the model's engine to each partition."""
        from dask import config
        from dask.base import persist
        from dask.delayed import delayed

        if not model.inference.finds_best:
            raise ValueError(
                f"the engine {engine_name(model.engine)!r} answers for the network as a whole, "
                "which lies on several workers here. Let each part be answered by itself, "
                "set_params(inference='auto'), or bring the points together: fit(X.compute(), ...)."
            )
        side = model.side._replace(graph=model.graph)  # engines may leave out some of it, once more
        known = side.spread(is_known(side)) | (side.power is not None)
        apply = partial(
            apply_engine, inference=model.name, engine=model.engine, n_components=model.n_components
        )
        make, parts = delayed(Partition.of, pure=False), []
        places = partitions(side, np.cumsum([0, *chunks.X.chunks[0]]))
        for rows in places:
            points = chunks.X[rows].rechunk(-1).to_delayed()[0, 0]
            part = side.restrict(rows) if known[rows].any() else None
            parts.append(make(points, rows, part, apply))
        # What is known travels with the first task, once.
        with config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            return cls(side, places, persist(*parts))

    def each(self, of_block: Callable[[Block], Any]) -> Any:
        """What a function says of the blocks of each partition, added up there."""
        return self._ask(lambda part: reduce(added, part.data.each(of_block)))

    def gather(self, of_block: Callable[[Block], Any]) -> Any:
        """What a function says of the points of each block, at the places where these are given."""
        values = self._ask(lambda part: part.data.gather(of_block))
        return placed(self.rows, values, len(self.side.node_of))

    def joint_labels(self, theta: Any) -> Assignment:
        """The most probable joint assignment of the points: no relation crosses partitions."""
        of_block = partial(assigned, theta, True)
        answers = self._ask(
            lambda part: part.model.joint_labels(part.X, theta, part.data.gather(of_block))
        )
        states = placed(self.rows, [found.states for found in answers], len(self.side.node_of))
        return Assignment(states, all(found.exact for found in answers))

    def _ask(self, question: Callable[[Partition], Any]) -> Any:
        """What a function says of each partition, where that is."""
        from dask.base import compute
        from dask.delayed import delayed

        once = delayed(question, traverse=False)  # θ, which it holds, travels once
        return compute(*[delayed(_asked, pure=False)(part, once) for part in self.parts])


def partitions(side: SideInformation, starts: IntArray) -> list[Rows]:
    """The points of each partition: components lie in the chunk of their first point.

    ``starts`` are the first rows (P + 1,) of the chunks, and N. Points that follow each other, as
    all of a chunk do, are a slice; no partition is empty.
    """
    component = connected_components(side.graph)
    first = np.full(component.max() + 1, starts[-1])
    np.minimum.at(first, component, side.first_points)
    home = np.searchsorted(starts, first[component[side.node_of]], side="right") - 1
    order, numbers = np.argsort(home, kind="stable"), np.arange(1, len(starts) - 1)
    parts = np.split(order, np.searchsorted(home[order], numbers))
    return [as_slice(rows) for rows in parts if len(rows)]


# ---------------------------------------------------------------------------- on the workers


class Partition(NamedTuple):
    """Points where they are worked on; it travels as what it is made of, not with its engine."""

    X: FloatArray
    data: Blocks
    model: AssignmentModel
    made_of: tuple[Any, ...]
    """The arguments of :meth:`of`."""

    @classmethod
    def of(cls, X: FloatArray, rows: Rows, side: SideInformation | None, apply: Apply) -> Partition:
        """Points, what is known of them, if anything is, and an engine put to that."""
        kept_as = X.dtype if X.dtype in (np.float32, np.float64) else np.float64
        X, side = np.asfortranarray(X, dtype=kept_as), side or SideInformation.build(len(X))
        # Errors name points as they were given.
        names = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
        model = apply(side._replace(first_points=names[side.first_points]))
        return cls(X, model.blocks(X), model, (X, rows, side, apply))

    def __reduce__(self) -> tuple[Callable[..., Partition], tuple[Any, ...]]:
        return Partition.of, self.made_of


def _asked(part: Partition, question: Callable[[Partition], Any]) -> Any:
    with workers(None), named(part.model.side.first_points, "point"):
        return question(part)


# ---------------------------------------------------------------------------- refusals


def like_array(X: Any) -> FloatArray:
    """An array of this shape and type without memory; or an error if it is no array of numbers."""
    from dask.array import Array

    if not isinstance(X, Array):
        raise ValueError(
            f"X is a {type(X).__name__} of Dask; a fit takes a dask.array. Of a table: "
            "X.to_dask_array(lengths=True)."
        )
    if np.isnan(X.shape).any():
        raise ValueError(
            "nobody knows yet how many rows the chunks of X have. Ask them before the fit: "
            "X = X.persist().compute_chunk_sizes()."
        )
    if X.dtype.kind not in "fiub":
        raise ValueError(f"X is of type {X.dtype}; it must hold real numbers: X.astype(float).")
    return np.broadcast_to(np.zeros((), X.dtype), X.shape)


def _refuse_rows(chunks: Chunks, rows: IntArray) -> None:
    """Say where the first value is that is not finite, and how many rows have some."""
    values = chunks.fetch(rows[:1])[0]
    column = int(np.isfinite(values).argmin())
    kind, remedy = "infinity", "Leave such rows out, or mend what makes them."
    if np.isnan(values[column]):
        kind, remedy = "NaN", ON_MISSING.replace(".any(axis=1),", ".any(axis=1).compute(),")
    raise ValueError(
        f"Input X contains {kind}: first in row {rows[0]}, column {column}, and in {len(rows)} "
        f"of {chunks.shape[0]} rows. {remedy}"
    )
