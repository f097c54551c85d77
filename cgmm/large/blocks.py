"""Points in blocks that fit the cache, so that a fit needs no memory beside its data.

What EM needs of points adds up over blocks, and a block is forgotten before the next. Nodes of the
network that edges connect make one block, which an engine answers; all other points are divided at
will. A small table is a single block, as it was given. What maps a function over the blocks is
``map``, a pool of threads (``workers``) or a cluster (:mod:`cgmm.large.chunks`). Linear algebra
starts no threads of its own meanwhile, and results come in the order of the blocks, so the number
of threads changes no digit of a sum. Chapters 3 and 6.

=====  ====================================================================
N      number of points
node   group of points that share a component: a chunklet, or a point alone
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
from cgmm.numerics import BoolArray, FloatArray, IntArray, block_height, cut, log_normalise

Points = FloatArray | csr_array
"""Points as a family reads them: coordinates (N, D), or rows of a sparse table."""
Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
"""Function like ``map`` that returns results in the order of the arguments."""


class Block(NamedTuple):
    """Some points, which no edge connects to any other, and the engine for them."""

    source: Points
    """The points of all blocks; a memmap is read block by block."""
    rows: slice | IntArray
    """The rows of this block."""
    side: SideInformation
    """What is known of these points."""
    infer: Infer | None
    """The engine, applied to their network; None if nothing is known of them."""
    kept: Points | None = None
    """The points if cells are empty: they stay sorted by pattern from one E-step to the next."""

    @property
    def X(self) -> Points:
        """(B, D) the points."""
        if self.kept is not None:
            return self.kept
        source: Any = self.source
        is_array = isinstance(source, np.ndarray)
        if isinstance(self.rows, slice) or not is_array or not source.flags.f_contiguous:
            return source[self.rows]
        return np.take(source.T, self.rows, axis=1).T  # column-major, as the source is


class Blocks(NamedTuple):
    """The points of a fit, in blocks, and what maps a function over these."""

    side: SideInformation
    """What is known of all points, in the order in which they were given."""
    blocks: list[Block]
    map: Map = map
    is_whole: bool = True
    """Whether one block has all points as they were given."""

    @classmethod
    def of(
        cls, X: Points, side: SideInformation, engine: Callable[[Graph], Infer],
        n_components: int, *, whole: bool = False, height: int = 0, map: Map = map,
    ) -> Blocks:  # fmt: skip
        """Divide points into blocks; ``whole``: an approximate engine wants the whole network.

        ``engine`` goes to what edges connect. ``height`` is that of a block, 0 what fits the cache.
        """
        n_points, n_columns = X.shape
        fits = max(2000, n_columns) if issparse(X) else block_height(n_components, n_columns)
        if not whole and n_points > (height or fits):
            return cls(side, list(_cut(X, side, engine, height or fits)), map, is_whole=False)
        infer: Infer | None = None
        if whole or len(side.graph.edges):
            infer = with_copies(side, engine(side.graph))
        elif not side.is_empty:
            infer = partial(normalise_nodes, side)
        return cls(side, [Block(X, slice(0, n_points), side, infer)], map)

    def each(self, of_block: Callable[[Block], Any]) -> Iterable[Any]:
        """Return the results of a function for each block, in their order."""
        return self.map(of_block, self.blocks)

    def gather(self, of_block: Callable[[Block], Any]) -> Any:
        """Return the rows that a function gives for each block, in the order of the points."""
        rows = [block.rows for block in self.blocks]
        return scatter_rows(rows, self.each(of_block), len(self.side.node_of))


def scatter_rows(rows: Iterable[slice | IntArray], values: Iterable[Any], n_points: int) -> Any:
    """Return an (N, ...) table of the rows of several tables, each row at its place."""
    out: Any = None
    for own, some in zip(rows, values, strict=True):
        if out is None:
            out = np.empty((n_points, *some.shape[1:]), dtype=some.dtype, order="F")
        out[own] = some
    return out


def normalise_nodes(side: SideInformation, unary: FloatArray) -> Marginals:
    """Return the marginals where no edge connects nodes; errors name their first points."""
    nodes, log_totals = log_normalise(unary, names=side.first_points)
    log_z = log_totals.sum() if side.copies is None else side.copies @ log_totals
    return Marginals(nodes, float(log_z), exact=True)


def with_copies(side: SideInformation, infer: Infer) -> Infer:
    """Return the engine for nodes that stand for several, each copy with its own state."""
    if side.copies is None:
        return infer
    others = np.flatnonzero(side.copies != 1)
    weights, names = side.copies[others] - 1, side.first_points[others]

    def infer_copies(unary: FloatArray) -> Marginals:
        found = infer(unary)
        more = weights @ log_normalise(unary[others], names=names)[1]
        return found._replace(log_z=found.log_z + float(more))

    return infer_copies


def has_information(side: SideInformation) -> BoolArray:
    """(n_nodes,) whether anything is known of a node beside the coordinates of one point."""
    known = side.tied | (np.bincount(side.node_of) > 1)
    return known if side.allowed is None else known | ~side.allowed.all(axis=1)


# ---------------------------------------------------------------------------- where to cut


def _cut(
    X: Points, side: SideInformation, engine: Callable[[Graph], Infer], height: int
) -> Iterator[Block]:
    """Yield what edges connect as one block; then points and chunklets, ``height`` points each."""
    sizes, connected = np.bincount(side.node_of), side.tied
    if connected.any():
        nodes, rows = np.flatnonzero(connected), np.flatnonzero(connected[side.node_of])
        graph = induced_subgraph(side.graph, nodes)
        yield Block(X, rows, side.restrict(rows)._replace(graph=graph), engine(graph))
    together, pattern_of = np.argsort(side.node_of, kind="stable"), getattr(X, "pattern_of", None)
    for kind in (~connected & (sizes == 1), ~connected & (sizes > 1)):
        rows = together[kind[side.node_of[together]]]
        if pattern_of is not None and (sizes[side.node_of[rows]] == 1).all():
            # Rows with the same empty cells share a block, which then needs few matrices.
            rows = rows[np.argsort(pattern_of[rows], kind="stable")]
        firsts = np.flatnonzero(np.diff(side.node_of[rows], prepend=-1))
        # A node that does not fit is left to the next block.
        starts = np.array([part.start for part in cut(len(rows), height)], dtype=int)
        for own in np.split(rows, firsts[np.searchsorted(firsts, starts, side="right") - 1][1:]):
            if len(own):
                yield _block_of(X, side, own)


def _block_of(X: Points, side: SideInformation, rows: IntArray) -> Block:
    """Return the block of nodes without edges, the points of each node together."""
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

# The limit on threads of linear algebra, followed by an entry for each fit that is within it.
LOCK, LIMITS = Lock(), list[Any]()


@contextmanager
def workers(n_jobs: int | None) -> Iterator[Map]:
    """Yield what maps a function over blocks: ``map``, or a pool of ``n_jobs`` threads."""
    n_threads = effective_n_jobs(n_jobs)
    with LOCK, _in_control():  # fits may overlap
        if not LIMITS:
            LIMITS.append(_controller().limit(limits=1, user_api="blas"))
        LIMITS.append(None)
    try:
        with ThreadPoolExecutor(n_threads) if n_threads > 1 else nullcontext() as pool:
            yield map if pool is None else partial(_map_on, pool)
    finally:
        with LOCK, _in_control():
            LIMITS.pop()
            if len(LIMITS) == 1:
                LIMITS.pop().restore_original_limits()


@contextmanager
def _in_control() -> Iterator[None]:
    """Let this thread set limits: threadpoolctl 3.8 and later obey only the first that did."""
    let_go = getattr(OpenBLASController, "clear_controlling_thread", lambda force: None)
    let_go(force=True)
    yield
    let_go(force=True)


def _map_on(
    pool: ThreadPoolExecutor, function: Callable[[Any], Any], blocks: Iterable[Any]
) -> Iterable[Any]:
    """Map a function over blocks on threads that hold back warnings as this one does."""
    blocks = list(blocks)
    contexts = [copy_context() for _ in blocks]
    return pool.map(lambda context, block: context.run(function, block), contexts, blocks)


@cache
def _controller() -> ThreadpoolController:
    """Return the loaded libraries of threads; to look for them takes longer than a small fit."""
    return ThreadpoolController()
