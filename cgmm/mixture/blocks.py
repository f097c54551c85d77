"""Points in blocks that fit the cache, of which nothing ties one to another. Chapters 3 and 6.

What EM needs of points adds up over blocks, and a block is forgotten before the next: the memory of
a fit is that of its data. Nodes that edges tie make one block, which an engine answers; all others
are cut at will. What fits into one block is one, as it was given. Who works on the blocks is
``map``, a pool of threads, or a cluster (:mod:`cgmm.mixture.cluster`).

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

from cgmm.network import Graph, Infer, Marginals, NetworkError, SideInformation, induced_subgraph
from cgmm.numerics import BoolArray, FloatArray, IntArray, block_height, cut, log_normalise
from cgmm.runs import Rng

Points = FloatArray | csr_array
"""Points as a family reads them: coordinates (N, D), or rows of a sparse table."""
Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
"""As ``map``: a function and what to apply it to; results in the order of what came."""

# Points of which a start is made, at most: enough to tell starts apart.
MOST = 10_000


class Block(NamedTuple):
    """Some points, which nothing ties to any other, and the engine that answers for them."""

    source: Points
    """The points of all blocks; what lies on a disk stays there until it is its turn."""
    rows: slice | IntArray
    """Which of them are meant."""
    side: SideInformation
    """What is known of these points."""
    infer: Infer
    """The engine, applied to their network."""

    @property
    def X(self) -> Points:
        """(B, D) the points."""
        source: Any = self.source
        if isinstance(self.rows, slice) or issparse(source) or not source.flags.f_contiguous:
            return source[self.rows]
        return np.take(source.T, self.rows, axis=1).T  # column-major, as the source is


class Blocks(NamedTuple):
    """The points of a fit, in blocks, and who works on these."""

    side: SideInformation
    """What is known of all points, in the order in which they were given."""
    blocks: list[Block]
    map: Map = map
    alone: bool = True
    """Whether one block has all points as they were given."""

    @classmethod
    def of(
        cls, X: Points, side: SideInformation, engine: Callable[[Graph], Infer],
        n_components: int, *, whole: bool = False, height: int = 0, map: Map = map,
    ) -> Blocks:  # fmt: skip
        """Cut points into blocks; ``whole``: an approximate engine wants the network undivided.

        ``engine`` goes to what edges tie. ``height`` is that of a block, 0 what fits the cache.
        """
        n_points, n_columns = X.shape
        fits = max(2000, n_columns) if issparse(X) else block_height(n_components, n_columns)
        if not whole and n_points > (height or fits):
            return cls(side, list(_cut(X, side, engine, height or fits)), map, alone=False)
        infer = partial(normalise_nodes, side)
        if whole or len(side.graph.edges):
            infer = repeated(side, engine(side.graph))
        return cls(side, [Block(X, slice(0, n_points), side, infer)], map)

    def each(self, of_block: Callable[[Block], Any]) -> Iterable[Any]:
        """What a function says of each block, in their order."""
        return self.map(of_block, self.blocks)

    def gather(self, of_block: Callable[[Block], Any]) -> Any:
        """What a function says of the points of each block, at the places where these are given."""
        rows = [block.rows for block in self.blocks]
        return placed(rows, self.each(of_block), len(self.side.node_of))


def placed(rows: Iterable[slice | IntArray], values: Iterable[Any], n_points: int) -> Any:
    """(N, ...) rows of several tables, each at its place."""
    out: Any = None
    for own, some in zip(rows, values, strict=True):
        if out is None:
            out = np.empty((n_points, *some.shape[1:]), dtype=some.dtype, order="F")
        out[own] = some
    return out


def added(one: Any, other: Any) -> Any:
    """Sums of two blocks together: arrays, or tuples of them to any depth."""
    if isinstance(one, tuple):
        return tuple(map(added, one, other))
    return None if one is None else one + other


def normalise_nodes(side: SideInformation, unary: FloatArray) -> Marginals:
    """The answer where no edge ties nodes; errors name their first points."""
    nodes, log_totals = log_normalise(unary, names=side.first_points)
    log_z = log_totals.sum() if side.copies is None else side.copies @ log_totals
    return Marginals(nodes, float(log_z), exact=True)


def repeated(side: SideInformation, infer: Infer) -> Infer:
    """The same engine, where nodes without edges stand for several, each with its own state."""
    if side.copies is None:
        return infer
    others = np.flatnonzero(side.copies != 1)
    weights, names = side.copies[others] - 1, side.first_points[others]

    def answer(unary: FloatArray) -> Marginals:
        said = infer(unary)
        more = weights @ log_normalise(unary[others], names=names)[1]
        return said._replace(log_z=said.log_z + float(more))

    return answer


def few_of(X: Any, side: SideInformation, rng: Rng, init: Any) -> tuple[Points, SideInformation]:
    """The points that starts are made of and tried on, and what is known of them.

    Those that count, and of many a sample; all of them if the start is a table, a row for each.
    """
    whole = not isinstance(init, str)
    rows, weights = np.arange(X.shape[0]), side.sample_weight
    if not (whole or weights is None or weights.all()):
        rows = np.flatnonzero(weights)
        side = side.restrict(rows)
    if not whole and len(rows) > MOST:
        chosen = sample_of(side, rng)
        rows, side = rows[chosen], side.restrict(chosen)
    if not hasattr(X, "fetch") and len(rows) == X.shape[0]:
        return X, side
    return take(X, rows), side


def take(X: Any, rows: IntArray) -> Points:
    """These points, wherever all lie: in memory, on a disk, with the workers of a cluster."""
    points = X.fetch(rows) if hasattr(X, "fetch") else X[rows]
    return np.asfortranarray(points, dtype=float) if isinstance(points, np.ndarray) else points


def sample_of(side: SideInformation, rng: Rng, n_most: int = MOST) -> IntArray:
    """Rows of a sample, rising: half of it points of which something is known, if there are any.

    What is tied comes together, so that chunklets and classes can seed a start.
    """
    known = is_known(side)
    nodes, sizes = rng.permutation(np.flatnonzero(known)), np.bincount(side.node_of)
    chosen = np.zeros_like(known)
    chosen[nodes[np.cumsum(sizes[nodes]) <= n_most // 2]] = True
    rows = np.flatnonzero(side.spread(chosen))
    others = rng.randint(len(side.node_of), size=n_most - len(rows))
    return np.union1d(rows, others)


def is_known(side: SideInformation) -> BoolArray:
    """(n_nodes,) whether anything is known of a node beside the coordinates of one point."""
    known = side.tied | (np.bincount(side.node_of) > 1)
    return known if side.allowed is None else known | ~side.allowed.all(axis=1)


# ---------------------------------------------------------------------------- where to cut


def _cut(
    X: Points, side: SideInformation, engine: Callable[[Graph], Infer], height: int
) -> Iterator[Block]:
    """What edges tie, as one block; then single points, and chunklets, ``height`` points each."""
    sizes, tied = np.bincount(side.node_of), side.tied
    if tied.any():
        nodes, rows = np.flatnonzero(tied), np.flatnonzero(tied[side.node_of])
        graph = induced_subgraph(side.graph, nodes)
        yield Block(X, rows, side.restrict(rows)._replace(graph=graph), engine(graph))
    together = np.argsort(side.node_of, kind="stable")
    for kind in (~tied & (sizes == 1), ~tied & (sizes > 1)):
        rows = together[kind[side.node_of[together]]]
        nodes = side.node_of[rows]
        # A node that does not fit is left to the next block.
        stops = [np.searchsorted(nodes, nodes[part.start]) for part in cut(len(rows), height)]
        for own in np.split(rows, stops[1:]):
            if len(own):
                yield _block_of(X, side, own)


def _block_of(X: Points, side: SideInformation, rows: IntArray) -> Block:
    """Nodes without edges, the points of each together."""
    node_of = side.node_of[rows]
    is_first = np.diff(node_of, prepend=-1) > 0
    starts = np.flatnonzero(is_first)
    part = side.without_edges(node_of[starts], rows, np.cumsum(is_first) - 1)
    part = part._replace(starts=starts)
    return Block(X, as_slice(rows), part, partial(normalise_nodes, part))


def as_slice(rows: IntArray) -> slice | IntArray:
    """Rows that follow each other as a slice, which copies nothing; others as they are."""
    return slice(int(rows[0]), int(rows[-1]) + 1) if (np.diff(rows) == 1).all() else rows


@contextmanager
def named(names: IntArray, noun: str) -> Iterator[None]:
    """Errors about nodes of a network name others: first points."""
    try:
        yield
    except NetworkError as error:
        raise (error if error.noun == noun else error.renamed(names, noun)) from None


# ---------------------------------------------------------------------------- who works on them


@contextmanager
def workers(n_jobs: int | None) -> Iterator[Map]:
    """Who applies a function to blocks: this thread or a pool; linear algebra starts no others."""
    n_threads = effective_n_jobs(n_jobs)
    with LOCK, _in_control():  # fits may overlap
        if not LIMITS:
            LIMITS.append(_controller().limit(limits=1, user_api="blas"))
        LIMITS.append(None)
    try:
        with ThreadPoolExecutor(n_threads) if n_threads > 1 else nullcontext() as pool:
            yield map if pool is None else partial(_pooled, pool)
    finally:
        with LOCK, _in_control():
            LIMITS.pop()
            if len(LIMITS) == 1:
                LIMITS.pop().restore_original_limits()


@contextmanager
def _in_control() -> Iterator[None]:
    """Let this thread set limits: from 3.8 on threadpoolctl hears the first that did alone."""
    let_go = getattr(OpenBLASController, "clear_controlling_thread", lambda force: None)
    let_go(force=True)
    yield
    let_go(force=True)


def _pooled(
    pool: ThreadPoolExecutor, function: Callable[[Any], Any], blocks: Iterable[Any]
) -> Iterable[Any]:
    """As ``map``, by threads that hold back warnings as this one does."""
    blocks = list(blocks)
    contexts = [copy_context() for _ in blocks]
    return pool.map(lambda context, block: context.run(function, block), contexts, blocks)


LOCK, LIMITS = Lock(), list[Any]()
# The limit, and an entry for each fit that is within it.


@cache
def _controller() -> ThreadpoolController:
    """Which libraries there are; to look takes longer than a small fit."""
    return ThreadpoolController()
