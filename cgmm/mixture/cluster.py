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
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from cgmm.given import ON_MISSING
from cgmm.inference import engine_name
from cgmm.inference.best_assignment import Assignment
from cgmm.mixture.blocks import Block, Blocks, added, named_as_points, placed, workers
from cgmm.mixture.loop import Run, e_step, no_prior
from cgmm.mixture.prepare import Prepared
from cgmm.network import Graph, SideInformation, connected_components
from cgmm.numerics import BoolArray, FloatArray, IntArray

Rows = slice | IntArray
Apply = Callable[[SideInformation], Prepared]
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
        from dask.base import compute
        from dask.delayed import delayed

        chunks = chunk_of(rows, self.starts)
        chosen, first = np.unique(chunks, return_index=True)
        of_chunk = np.split(rows - self.starts[chunks], first[1:])
        take = delayed(rows_of, pure=False)
        found = compute(
            *[take(self.parts[p], own) for p, own in zip(chosen, of_chunk, strict=True)]
        )
        return np.asfortranarray(np.concatenate(found), dtype=float)


def chunk_of(rows: IntArray, starts: IntArray) -> IntArray:
    """The chunk in which each row lies."""
    chunks: IntArray = np.searchsorted(starts, rows, side="right") - 1
    return chunks


def read_chunks(X: Any) -> Chunks:
    """The chunks, each looked at where it lies; or an error that names one."""
    from dask.base import compute, persist
    from dask.delayed import delayed

    _require_array(X)
    X = X.rechunk({1: -1})
    starts = np.concatenate([[0], np.cumsum(X.chunks[0])]).astype(np.intp)
    turn = delayed(by_columns, pure=False)
    parts = persist(*map(turn, X.to_delayed(optimize_graph=True).ravel()))
    extents = compute(*[delayed(extent_of, pure=False)(part) for part in parts])
    for number, about in enumerate(extents):
        _require_kept_word(X, about, number, starts)
    wrong = [number for number, about in enumerate(extents) if about.wrong is not None]
    if wrong:
        raise ValueError(_not_finite(extents, wrong, starts))
    # A chunk without rows says nothing of them.
    low, high = zip(*[(about.low, about.high) for about in extents if about.shape[0]], strict=True)
    return Chunks(parts, starts, np.array([np.min(low, axis=0), np.max(high, axis=0)], dtype=float))


class Extent(NamedTuple):
    """What a chunk is, and how far it reaches."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    low: FloatArray = np.empty(0)
    high: FloatArray = np.empty(0)
    wrong: tuple[int, int] | None = None
    """Row and column of the first value that is not finite."""
    n_wrong: int = 0
    """In how many rows there are such values."""
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
    rows = ~np.isfinite(chunk).all(axis=1)
    row = int(rows.argmax())
    column = int((~np.isfinite(chunk[row])).argmax())
    value = float(chunk[row, column])
    return found._replace(wrong=(row, column), n_wrong=int(rows.sum()), value=value)


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
    def of(
        cls, chunks: Chunks, prepared: Prepared, apply: Apply, n_components: int, verbose: int = 0
    ) -> Cluster:
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
                parts.append(make(own, gone, came, of_part, part, apply, n_components))
        rows = [of_part for of_part in rows if known[of_part].size]
        # What is known travels with the first task, once.
        with config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            return cls(side, rows, persist(*parts))

    def each(self, of_block: Callable[[Block], Any]) -> Any:
        """What a function says of the blocks of each partition, added up there."""
        return self._ask(Partition.total, of_block)

    def gather(self, of_block: Callable[[Block], FloatArray]) -> FloatArray:
        """What a function says of the points of each block, at the places where these are given."""
        return placed(self.rows, self._ask(Partition.gather, of_block), len(self.side.node_of))

    def joint_labels(self, theta: Any) -> Assignment:
        """The most probable joint assignment of the points: no relation crosses partitions."""
        states = np.empty(len(self.side.node_of), dtype=np.intp)
        answers = self._ask(Partition.joint_labels, theta)
        for rows, found in zip(self.rows, answers, strict=True):
            states[rows] = found.states
        return Assignment(states, all(found.exact for found in answers))

    def _ask(self, function: Callable[..., Any], argument: Any) -> Any:
        """What a function says of each partition, where that is."""
        from dask.base import compute
        from dask.delayed import delayed

        ask, with_it = delayed(_asked, pure=False), delayed(argument, traverse=False)
        return compute(*[ask(function, part, with_it) for part in self.parts])


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
            f"the engine {engine_name(prepared.engine)!r} answers for the network as a whole, "
            "which lies on several workers here. Let each part be answered by itself, "
            "set_params(inference='auto'), or bring the points together: fit(X.compute(), ...)."
        )


# ---------------------------------------------------------------------------- on the workers


class Partition(NamedTuple):
    """Points where they are worked on; it travels as what it is made of, not with its engine."""

    X: FloatArray
    data: Blocks
    prepared: Prepared
    made_of: tuple[Any, ...]
    """The arguments of :meth:`of`."""

    @classmethod
    def of(
        cls, X: FloatArray, rows: Rows, side: SideInformation, apply: Apply, n_components: int
    ) -> Partition:
        """Points, what is known of them, and an engine put to that."""
        # Errors name points as they were given.
        names = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
        prepared = apply(side._replace(first_points=names[side.first_points]))
        data = prepared.blocks(X, n_components)
        return cls(X, data, prepared, (X, rows, side, apply, n_components))

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
        X, prepared = self.X, self.prepared
        posterior = e_step(X, theta, prepared.side, prepared.naming, log_z_prior=no_prior)
        return prepared.joint_labels(X, Run(theta, posterior, [], converged=True))


def made(
    own: FloatArray, gone: list[IntArray], came: list[FloatArray], rows: Rows,
    side: SideInformation | None, apply: Apply, n_components: int,
) -> Partition:  # fmt: skip
    """A partition: rows that stay, rows that came, and an engine put to their network."""
    stay = np.delete(own, np.concatenate(gone), axis=0) if gone else own
    X = np.concatenate([stay, *came]) if came else stay
    kept_as = X.dtype if X.dtype in (np.float32, np.float64) else np.float64
    X = np.asfortranarray(X, dtype=kept_as)
    return Partition.of(X, rows, side or SideInformation.build(len(X)), apply, n_components)


def _asked(function: Callable[..., Any], part: Partition, argument: Any) -> Any:
    with workers(None), named_as_points(part.prepared.side):
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
    if (extent.shape, extent.dtype) == (wanted, X.dtype):
        return
    where = f"chunk {number} of X (rows {starts[number]} to {starts[number + 1] - 1})"
    if extent.shape == wanted:
        raise ValueError(
            f"{where} holds numbers of type {extent.dtype}, but X says {X.dtype}. Make them alike: "
            f"X.map_blocks(lambda chunk: chunk.astype({str(X.dtype)!r}), dtype={str(X.dtype)!r})."
        )
    raise ValueError(
        f"{where} has shape {extent.shape}, but X says {wanted}. Mend what makes the chunk, or, if "
        "only the number of its rows differs, ask the chunks: X.compute_chunk_sizes()."
    )


def _not_finite(extents: tuple[Extent, ...], wrong: list[int], starts: IntArray) -> str:
    """Where the first value is that is not finite, and how many rows have some."""
    first = extents[wrong[0]]
    row, column = first.wrong or (0, 0)
    count = sum(extents[number].n_wrong for number in wrong)
    what = "NaN" if np.isnan(first.value) else "infinity"
    remedy = "Leave such rows out, or mend what makes them."
    if what == "NaN":
        remedy = ON_MISSING.replace(".any(axis=1),", ".any(axis=1).compute(),")
    return (
        f"Input X contains {what}: first in row {starts[wrong[0]] + row}, column {column}, in "
        f"chunk {wrong[0]}, and in {count} of {starts[-1]} rows. {remedy}"
    )
