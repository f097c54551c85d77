"""Divide points into blocks that fit into the cache, so that a fit needs little extra memory.

The statistics that EM needs are summed over blocks, and the memory of a block is released before
the next one. All nodes with edges are in one block, to which an engine is applied; all other points
can be divided arbitrarily. A small table is a single block. A function is mapped over the blocks by
``map``, by a pool of threads (``workers``), or by a cluster (:mod:`cgmm.large.chunks`). Meanwhile
linear algebra starts no threads of its own, and results are returned in the order of the blocks, so
sums do not depend on the number of threads. Chapters 3 and 6.

=====  ====================================================================
N      number of points
node   group of points that share a component: a chunklet, or a single point
=====  ====================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from contextvars import copy_context
from functools import cache, partial
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from scipy.sparse import csr_array, issparse
from threadpoolctl import OpenBLASController, ThreadpoolController

from cgmm.network import Graph, Infer, Marginals, SideInformation, induced_subgraph
from cgmm.numerics import FloatArray, IntArray, block_height, cut_evenly, log_normalise

Points = FloatArray | csr_array
"""Points in the format of a family: coordinates (N, D), or a sparse table."""
Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
"""Function like ``map``, which returns results in the order of the arguments."""


class Block(NamedTuple):
    """Points without edges to other blocks, with their side information and engine."""

    source: Points
    """The points of all blocks; a memmap is read block by block."""
    rows: slice | IntArray
    """Row numbers of the points of this block."""
    side: SideInformation
    """Side information of the points of this block."""
    infer: Infer | None
    """The engine, applied to the network of this block; None without side information."""
    kept: Points | None = None
    """Points with missing values, which stay sorted by pattern from one E-step to the next."""

    @property
    def X(self) -> Points:
        """(B, D) points of this block."""
        if self.kept is not None:
            return self.kept
        source: Any = self.source
        is_array = isinstance(source, np.ndarray)
        if isinstance(self.rows, slice) or not is_array or not source.flags.f_contiguous:
            return source[self.rows]
        return np.take(source.T, self.rows, axis=1).T  # keeps the order of the source


class Blocks(NamedTuple):
    """The points of a fit, divided into blocks, with the function that maps over them."""

    side: SideInformation
    """Side information of all points, in their original order."""
    blocks: list[Block]
    map: Map = map
    is_whole: bool = True
    """Whether one block contains all points, in their original order."""

    @classmethod
    def build(
        cls, X: Points, side: SideInformation, engine: Callable[[Graph], Infer],
        n_components: int, *, whole: bool = False, height: int = 0, map: Map = map,
    ) -> Blocks:  # fmt: skip
        """Divide points into blocks of at most ``height`` points, or 0 for the size of the cache.

        ``engine`` is applied to the nodes with edges, or to the whole network if ``whole``, which
        makes a single block.
        """
        n_points, n_columns = X.shape
        fits = max(2000, n_columns) if issparse(X) else block_height(n_components, n_columns)
        if not whole and n_points > (height or fits):
            return cls(side, list(_divide(X, side, engine, height or fits)), map, is_whole=False)
        infer: Infer | None = None
        if whole or len(side.graph.edges):
            infer = extend_to_copies(side, engine(side.graph))
        elif not side.is_empty:
            infer = partial(normalise_nodes, side)
        return cls(side, [Block(X, slice(0, n_points), side, infer)], map)

    def each(self, function: Callable[[Block], Any]) -> Iterable[Any]:
        """Apply a function to each block, and return the results in the order of the blocks."""
        return self.map(function, self.blocks)

    def gather(self, function: Callable[[Block], Any]) -> Any:
        """Apply a function that returns one row per point; return all rows in original order."""
        rows = [block.rows for block in self.blocks]
        return scatter_rows(rows, self.each(function), len(self.side.node_of))


def scatter_rows(rows: Iterable[slice | IntArray], values: Iterable[Any], n_points: int) -> Any:
    """Write the rows of several tables to the given row numbers of one (N, ...) table."""
    out: Any = None
    for block_rows, block in zip(rows, values, strict=True):
        if out is None:
            out = np.empty((n_points, *block.shape[1:]), dtype=block.dtype, order="F")
        out[block_rows] = block
    return out


def normalise_nodes(side: SideInformation, unary: FloatArray) -> Marginals:
    """Return the marginals of nodes without edges; error messages name their first points."""
    nodes, log_totals = log_normalise(unary, names=side.first_points)
    log_z = log_totals.sum() if side.copies is None else side.copies @ log_totals
    return Marginals(nodes, float(log_z), exact=True)


def extend_to_copies(side: SideInformation, infer: Infer) -> Infer:
    """Extend an engine to nodes with independent copies, whose log-normalisers are added."""
    if side.copies is None:
        return infer
    others = np.flatnonzero(side.copies != 1)
    weights, names = side.copies[others] - 1, side.first_points[others]

    def infer_copies(unary: FloatArray) -> Marginals:
        found = infer(unary)
        more = weights @ log_normalise(unary[others], names=names)[1]
        return found._replace(log_z=found.log_z + float(more))

    return infer_copies


# ---------------------------------------------------------------------------- division into blocks


def _divide(
    X: Points, side: SideInformation, engine: Callable[[Graph], Infer], height: int
) -> Iterator[Block]:
    """Yield a block of all nodes with edges, then blocks of ``height`` other points."""
    sizes, connected = np.bincount(side.node_of), side.tied
    if connected.any():
        nodes, rows = np.flatnonzero(connected), np.flatnonzero(connected[side.node_of])
        graph = induced_subgraph(side.graph, nodes)
        yield Block(X, rows, side.restrict(rows)._replace(graph=graph), engine(graph))
    together, pattern_of = np.argsort(side.node_of, kind="stable"), getattr(X, "pattern_of", None)
    for kind in (~connected & (sizes == 1), ~connected & (sizes > 1)):
        rows = together[kind[side.node_of[together]]]
        if pattern_of is not None and (sizes[side.node_of[rows]] == 1).all():
            # Rows with the same missing values share a block, which then needs few matrices.
            rows = rows[np.argsort(pattern_of[rows], kind="stable")]
        firsts = np.flatnonzero(np.diff(side.node_of[rows], prepend=-1))
        # A chunklet that does not fit into the rest of a block begins the next one.
        starts = np.array([part.start for part in cut_evenly(len(rows), height)], dtype=int)
        for part in np.split(rows, firsts[np.searchsorted(firsts, starts, side="right") - 1][1:]):
            if len(part):
                yield _make_block(X, side, part)


def _make_block(X: Points, side: SideInformation, rows: IntArray) -> Block:
    """Build a block of nodes without edges; ``rows`` are sorted by node."""
    node_of = side.node_of[rows]
    is_first = np.diff(node_of, prepend=-1) != 0
    starts = np.flatnonzero(is_first)
    part = side.without_edges(node_of[starts], rows, np.cumsum(is_first) - 1)
    part = part._replace(starts=starts)
    infer = None if part.is_empty else partial(normalise_nodes, part)
    kept = X[rows] if getattr(X, "has_gaps", False) else None
    return Block(X, as_slice(rows), part, infer, kept)


def as_slice(rows: IntArray) -> slice | IntArray:
    """Return consecutive rows as a slice (a view), and other rows unchanged."""
    return slice(int(rows[0]), int(rows[-1]) + 1) if (np.diff(rows) == 1).all() else rows


# ---------------------------------------------------------------------------- threads

# The first entry is the limit on the threads of linear algebra; each running fit adds an entry.
LOCK, LIMITS = Lock(), list[Any]()


@contextmanager
def workers(n_jobs: int | None) -> Iterator[Map]:
    """Yield a function like ``map`` that uses ``n_jobs`` threads, within single-threaded BLAS."""
    n_threads = effective_n_jobs(n_jobs)
    with LOCK, _control_limits():  # Several fits may run at the same time.
        if not LIMITS:
            LIMITS.append(_find_libraries().limit(limits=1, user_api="blas"))
        LIMITS.append(None)
    try:
        with ThreadPoolExecutor(n_threads) if n_threads > 1 else nullcontext() as pool:
            yield map if pool is None else partial(_map_on_pool, pool)
    finally:
        with LOCK, _control_limits():
            LIMITS.pop()
            if len(LIMITS) == 1:
                LIMITS.pop().restore_original_limits()


@contextmanager
def _control_limits() -> Iterator[None]:
    """Allow this thread to set limits; threadpoolctl >= 3.8 obeys only the first such thread."""
    release_control = getattr(OpenBLASController, "clear_controlling_thread", lambda force: None)
    release_control(force=True)
    yield
    release_control(force=True)


def _map_on_pool(
    pool: ThreadPoolExecutor, function: Callable[[Any], Any], blocks: Iterable[Any]
) -> Iterable[Any]:
    """Map a function over blocks on threads that inherit this thread's collection of warnings."""
    blocks = list(blocks)
    contexts = [copy_context() for _ in blocks]
    return pool.map(lambda context, block: context.run(function, block), contexts, blocks)


@cache
def _find_libraries() -> ThreadpoolController:
    """Find the loaded thread libraries once, since the search takes longer than a small fit."""
    return ThreadpoolController()
