"""Fits on a dask.array, whose chunks stay on the workers of a cluster.

Each chunk is checked on its worker and stays in its memory. A partition consists of the points of a
chunk, their side information, and the engine applied to their network. If a connected component of
the network contains points of several chunks, these points move to the chunk of its first point.
The statistics of the partitions are summed in the order of the chunks. Dask schedules the work and
repeats it if a worker dies. With a ``distributed.Client`` it uses a cluster, otherwise threads of
this process. The book's page on large data explains such fits.

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
from cgmm.large.blocks import Block, Blocks, Points, as_slice, scatter_rows, workers
from cgmm.network import SideInformation, connected_components
from cgmm.network.graph import naming
from cgmm.numerics import FloatArray, IntArray

Rows = slice | IntArray


class Chunks(NamedTuple):
    """A dask.array whose chunks have all columns and are stored on the workers."""

    X: Any
    """(N, D) dask.array of the points."""

    @property
    def shape(self) -> tuple[int, int]:
        """Shape (N, D) of the array."""
        return self.X.shape


def fetch(X: Points | Chunks, rows: IntArray) -> Points:
    """Load some rows of the points into memory, in column-major order."""
    points: Any = X.X[rows].compute() if isinstance(X, Chunks) else X[rows]
    return np.asfortranarray(points, dtype=float) if isinstance(points, np.ndarray) else points


def read_chunks(X: Any) -> tuple[Chunks, FloatArray]:
    """Check the chunks on their workers; return them and the (2, D) range of the columns."""
    from dask.array import flatnonzero, isfinite
    from dask.base import compute

    X = X.rechunk({1: -1}).map_blocks(check_chunk, dtype=X.dtype, meta=np.empty((0, 0), X.dtype))
    X = X.persist()
    wrong = flatnonzero(~isfinite(X).all(axis=1))
    low, high, wrong = compute(X.min(axis=0), X.max(axis=0), wrong)
    if len(wrong):
        _raise_for_rows(Chunks(X), wrong)
    return Chunks(X), np.array([low, high], dtype=float)


def check_chunk(chunk: Any, block_info: Any) -> FloatArray:
    """Convert a chunk to column-major order; raise an error if its shape or dtype is wrong.

    Dask passes ``block_info``, which contains the expected shape and dtype.
    """
    info = block_info[None]
    shape, dtype, (start, stop) = info["chunk-shape"], info["dtype"], info["array-location"][0]
    found = (chunk.shape, chunk.dtype) if isinstance(chunk, np.ndarray) else ((), type(chunk))
    if found != (shape, dtype):
        raise ValueError(
            f"chunk {info['chunk-location'][0]} of X (rows {start} to {stop - 1}) has shape "
            f"{found[0]} and type {found[1]}, but X says {shape} and {dtype}. Correct the code "
            "that creates the chunk; or compute the numbers of rows, X.compute_chunk_sizes(), and "
            f"make the types equal, X.map_blocks(lambda chunk: chunk.astype({str(dtype)!r}), "
            f"dtype={str(dtype)!r})."
        )
    return np.asfortranarray(chunk)


class Cluster(NamedTuple):
    """The points of a fit on the workers of a cluster; has the same methods as ``Blocks``."""

    side: SideInformation
    rows: list[Rows]
    """Row numbers of the points of each partition."""
    parts: tuple[Any, ...]
    """One delayed ``Partition`` per entry of ``rows``; Dask stores it on a worker."""
    is_whole: bool = False
    """Whether one block contains all points, as for ``Blocks``; always False."""

    @classmethod
    def build(cls, chunks: Chunks, side: SideInformation, apply: Any) -> Cluster:
        """Put connected points into one partition, and apply the engine to each partition."""
        from dask import config
        from dask.base import persist
        from dask.delayed import delayed

        known = side.spread(side.has_information) | (side.power is not None)
        make, parts = delayed(Partition.make, pure=False), []
        rows_of_parts = partitions(side, np.cumsum([0, *chunks.X.chunks[0]]))
        for rows in rows_of_parts:
            points = chunks.X[rows].rechunk(-1).to_delayed()[0, 0]
            part = side.restrict(rows) if known[rows].any() else None
            parts.append(make(points, rows, part, apply))
        # The side information makes the graph large, but is sent only once, so prevent the warning.
        with config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            return cls(side, rows_of_parts, persist(*parts))

    def each(self, function: Callable[[Block], Any]) -> Any:
        """Return the statistics of each partition, summed over its blocks on the worker."""
        return self._apply_to_parts(lambda part: reduce(add_statistics, part.data.each(function)))

    def gather(self, function: Callable[[Block], Any]) -> Any:
        """Apply a function that returns one row per point; return all rows in original order."""
        values = self._apply_to_parts(lambda part: part.data.gather(function))
        return scatter_rows(self.rows, values, len(self.side.node_of))

    def joint_labels(self, theta: Any, compute_r: Callable[[Block], Any]) -> Assignment:
        """Return the most probable joint assignment; ``compute_r`` computes r_ik of a block.

        Each partition is solved separately, because no relation connects two partitions.
        """
        assignments = self._apply_to_parts(
            lambda part: part.model.joint_labels(part.X, theta, part.data.gather(compute_r))
        )
        n_points = len(self.side.node_of)
        states = scatter_rows(self.rows, [found.states for found in assignments], n_points)
        return Assignment(states, all(found.exact for found in assignments))

    def _apply_to_parts(self, function: Callable[[Partition], Any]) -> Any:
        """Apply a function to each partition on its worker, and return the results."""
        from dask.base import compute
        from dask.delayed import delayed

        # θ is part of the function, so it is sent only once.
        sent_once = delayed(function, traverse=False)
        return compute(*[delayed(_on_worker, pure=False)(part, sent_once) for part in self.parts])


def partitions(side: SideInformation, starts: IntArray) -> list[Rows]:
    """Return the row numbers of each partition; connected points go to their first point's chunk.

    ``starts`` (P + 1,) contains the first row of each chunk, and N. Consecutive rows are returned
    as a slice, and empty partitions are dropped.
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
    """The points and the model of a partition on a worker; only its arguments are pickled."""

    X: FloatArray
    data: Blocks
    model: Any
    """The ``AssignmentModel`` of these points."""
    made_of: tuple[Any, ...]
    """The arguments of :meth:`make`, from which the partition is rebuilt after pickling."""

    @classmethod
    def make(cls, X: FloatArray, rows: Rows, side: SideInformation | None, apply: Any) -> Partition:
        """Build the partition, and apply the engine to the side information of its points."""
        kept_as = X.dtype if X.dtype in (np.float32, np.float64) else np.float64
        X, side = np.asfortranarray(X, dtype=kept_as), side or SideInformation.build(len(X))
        # Error messages must contain the row numbers in the whole array.
        names = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
        model = apply(side._replace(first_points=names[side.first_points]))
        return cls(X, model.divide(X), model, (X, rows, side, apply))

    def __reduce__(self) -> tuple[Callable[..., Partition], tuple[Any, ...]]:
        return Partition.make, self.made_of


def _on_worker(part: Partition, function: Callable[[Partition], Any]) -> Any:
    """Apply a function to a partition; errors name points by their rows in the whole array."""
    with workers(None), naming(part.model.side.first_points, "point"):
        return function(part)


# ------------------------------------------------------------ errors


def make_stand_in(X: Any) -> FloatArray:
    """Return an array of X's shape and dtype that needs no memory; check that X is from Dask."""
    from dask.array import Array

    if not isinstance(X, Array):
        raise ValueError(
            f"X is a {type(X).__name__} of Dask; a fit takes a dask.array. Convert a table by "
            "X.to_dask_array(lengths=True)."
        )
    if np.isnan(X.shape).any():
        raise ValueError(
            "the numbers of rows in the chunks of X are unknown. Compute them before the fit: "
            "X = X.persist().compute_chunk_sizes()."
        )
    if X.dtype.kind not in "fiub":
        raise ValueError(f"X is of type {X.dtype}; it must hold real numbers: X.astype(float).")
    return np.broadcast_to(np.zeros((), X.dtype), X.shape)


def _raise_for_rows(chunks: Chunks, rows: IntArray) -> None:
    """Raise an error that names the first value that is not finite."""
    values: Any = fetch(chunks, rows[:1])[0]
    column = int(np.isfinite(values).argmin())
    kind, remedy = "infinity", "Leave such rows out, or correct the code that creates them."
    if np.isnan(values[column]):
        kind, remedy = "NaN", ON_MISSING.format("~np.isnan(X).any(axis=1).compute()")
    raise ValueError(
        f"Input X contains {kind}: first in row {rows[0]}, column {column}, and in {len(rows)} "
        f"of {chunks.shape[0]} rows. {remedy}"
    )
