"""A fit on a dask.array: its chunks stay with the workers of a cluster, who do the work on them.

Each chunk is checked on its worker and kept there. A partition is a fit in small: the points of a
chunk, what is known of them, and an engine applied to their network. A component of the network
that crosses chunks moves to the chunk of its first point. Statistics of partitions add up in the
order of the chunks. Scheduling, and repeating the work of a worker that died, is left to Dask:
inside a ``distributed.Client`` it uses a cluster, else threads of this process. Behind large data.

=====  ====================================================================
N, D   points and their dimensions
P      number of chunks, and of partitions
=====  ====================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from cgmm.given import ON_MISSING
from cgmm.inference.best_assignment import Assignment
from cgmm.large.batches import add_statistics
from cgmm.large.blocks import (
    Block,
    Blocks,
    Points,
    as_slice,
    has_information,
    scatter_rows,
    workers,
)
from cgmm.network import SideInformation, connected_components
from cgmm.network.graph import naming
from cgmm.numerics import FloatArray, IntArray

Rows = slice | IntArray


class Chunks(NamedTuple):
    """A dask.array whose chunks are kept by those who work on them, each with all columns."""

    X: Any
    """(N, D) dask.array."""

    @property
    def shape(self) -> tuple[int, int]:
        """(N, D)."""
        return self.X.shape


def fetch(X: Points | Chunks, rows: IntArray) -> Points:
    """Return these rows in memory, column-major."""
    points: Any = X.X[rows].compute() if isinstance(X, Chunks) else X[rows]
    return np.asfortranarray(points, dtype=float) if isinstance(points, np.ndarray) else points


def read_chunks(X: Any) -> tuple[Chunks, FloatArray]:
    """Return the chunks, checked on their workers, and (2, D) the range of each column."""
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
    """Return a chunk column-major, or raise if it is not of the shape and type that X announced.

    Dask fills in ``block_info``, the description of the chunk.
    """
    own = block_info[None]
    shape, dtype, (start, stop) = own["chunk-shape"], own["dtype"], own["array-location"][0]
    found = (chunk.shape, chunk.dtype) if isinstance(chunk, np.ndarray) else ((), type(chunk))
    if found != (shape, dtype):
        raise ValueError(
            f"chunk {own['chunk-location'][0]} of X (rows {start} to {stop - 1}) has shape "
            f"{found[0]} and type {found[1]}, but X says {shape} and {dtype}. Mend what makes the "
            "chunk; or ask the chunks how many rows they have, X.compute_chunk_sizes(), and make "
            f"their types alike, X.map_blocks(lambda chunk: chunk.astype({str(dtype)!r}), "
            f"dtype={str(dtype)!r})."
        )
    return np.asfortranarray(chunk)


class Cluster(NamedTuple):
    """A fit's points on the workers of a cluster, in place of ``Blocks``."""

    side: SideInformation
    rows: list[Rows]
    """The points of each partition, by the numbers under which they were given."""
    parts: tuple[Any, ...]
    """Promises of a ``Partition`` each; none of a chunk that no point is left in."""
    is_whole: bool = False
    """As of blocks: no table of N rows is kept here."""

    @classmethod
    def of(cls, chunks: Chunks, side: SideInformation, apply: Any) -> Cluster:
        """Bring together the points that edges connect, and apply the engine to each partition."""
        from dask import config
        from dask.base import persist
        from dask.delayed import delayed

        known = side.spread(has_information(side)) | (side.power is not None)
        make, parts = delayed(Partition.of, pure=False), []
        places = partitions(side, np.cumsum([0, *chunks.X.chunks[0]]))
        for rows in places:
            points = chunks.X[rows].rechunk(-1).to_delayed()[0, 0]
            part = side.restrict(rows) if known[rows].any() else None
            parts.append(make(points, rows, part, apply))
        # The side information is sent to the workers once, with the first task.
        with config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            return cls(side, places, persist(*parts))

    def each(self, of_block: Callable[[Block], Any]) -> Any:
        """Return the statistics of each partition, added up over its blocks there."""
        return self._ask(lambda part: reduce(add_statistics, part.data.each(of_block)))

    def gather(self, of_block: Callable[[Block], Any]) -> Any:
        """Return the rows that a function gives for each block, in the order of the points."""
        values = self._ask(lambda part: part.data.gather(of_block))
        return scatter_rows(self.rows, values, len(self.side.node_of))

    def joint_labels(self, theta: Any, of_block: Callable[[Block], Any]) -> Assignment:
        """Return the most probable joint assignment of the points; ``of_block`` gives r_ik.

        No relation crosses partitions.
        """
        answers = self._ask(
            lambda part: part.model.joint_labels(part.X, theta, part.data.gather(of_block))
        )
        n_points = len(self.side.node_of)
        states = scatter_rows(self.rows, [found.states for found in answers], n_points)
        return Assignment(states, all(found.exact for found in answers))

    def _ask(self, question: Callable[[Partition], Any]) -> Any:
        """Return the results of a function for each partition, computed where that is."""
        from dask.base import compute
        from dask.delayed import delayed

        once = delayed(question, traverse=False)  # θ, which it holds, travels once
        return compute(*[delayed(_on_worker, pure=False)(part, once) for part in self.parts])


def partitions(side: SideInformation, starts: IntArray) -> list[Rows]:
    """Return the points of each partition: components lie in the chunk of their first point.

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


# ------------------------------------------------------------ on the workers


class Partition(NamedTuple):
    """The points of a partition on their worker; it is pickled as the arguments of ``of``."""

    X: FloatArray
    data: Blocks
    model: Any
    """The ``AssignmentModel`` of these points."""
    made_of: tuple[Any, ...]
    """The arguments of :meth:`of`."""

    @classmethod
    def of(
        cls,
        X: FloatArray,
        rows: Rows,
        side: SideInformation | None,
        apply: Any,
    ) -> Partition:
        """Apply the engine to what is known of the points, if anything is."""
        kept_as = X.dtype if X.dtype in (np.float32, np.float64) else np.float64
        X, side = np.asfortranarray(X, dtype=kept_as), side or SideInformation.build(len(X))
        # Errors name points as they were given.
        names = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
        model = apply(side._replace(first_points=names[side.first_points]))
        return cls(X, model.blocks(X), model, (X, rows, side, apply))

    def __reduce__(self) -> tuple[Callable[..., Partition], tuple[Any, ...]]:
        return Partition.of, self.made_of


def _on_worker(part: Partition, question: Callable[[Partition], Any]) -> Any:
    with workers(None), naming(part.model.side.first_points, "point"):
        return question(part)


# ------------------------------------------------------------ refusals


def like_array(X: Any) -> FloatArray:
    """Return an array of this shape and type without memory, or refuse what is no dask.array."""
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
    """Raise the error that names the first value that is not finite."""
    values: Any = fetch(chunks, rows[:1])[0]
    column = int(np.isfinite(values).argmin())
    kind, remedy = "infinity", "Leave such rows out, or mend what makes them."
    if np.isnan(values[column]):
        kind, remedy = "NaN", ON_MISSING.format("~np.isnan(X).any(axis=1).compute()")
    raise ValueError(
        f"Input X contains {kind}: first in row {rows[0]}, column {column}, and in {len(rows)} "
        f"of {chunks.shape[0]} rows. {remedy}"
    )
