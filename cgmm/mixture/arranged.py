"""Points cut into blocks of whole components of their network, a cache's worth each. Chapter 6.

Nodes without edges are components by themselves: sorted by their number of points, they are cut at
will. Nodes that edges tie make one block together, which an engine answers. What fits into one
block is one, as it was given.

=====  ====================================================================
N, K   points and components
order  in which the points are worked on: cut by cut, then those that edges tie
=====  ====================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np
from scipy.sparse import issparse

from cgmm.mixture.loop import Points
from cgmm.mixture.threads import Over
from cgmm.network import Graph, Infer, Marginals, NetworkError, SideInformation, edgeless
from cgmm.numerics import FloatArray, IntArray, cut, log_normalise

# Chunklets are added up member by member: beyond so many, a step each costs more than it saves.
LARGEST_RUN = 64

Answer = tuple[FloatArray | None, IntArray]
"""(N, K) what is said of each point, if that is kept; and (N,) the largest of each row."""


Result = TypeVar("Result")


@contextmanager
def named_as_points(side: SideInformation) -> Iterator[None]:
    """Errors about nodes of the network name points."""
    try:
        yield
    except NetworkError as error:
        if error.noun == "point":
            raise
        raise error.renamed(side.first_points, "point") from None


class Block(NamedTuple):
    """Some points, which nothing ties to any other, and who answers for them."""

    X: Points
    side: SideInformation
    infer: Infer
    places: slice | IntArray
    """Where they were given."""
    weights: FloatArray | None
    """(B,) how many points each stands for; None: for one."""


class Cut(NamedTuple):
    """Where nodes of one size, without edges, lie in the order of work."""

    nodes: slice
    points: slice
    size: int


class Arranged(NamedTuple):
    """Points in the order of work, and where it is cut."""

    X: Points
    given: Points
    """The points in the order in which they were given."""
    side: SideInformation
    """As given."""
    order: IntArray | None
    """(N,) the given places of the points; None where they are as given."""
    known: SideInformation
    """What is known of each node and each point, in the order of work: so that blocks are views."""
    cuts: list[Cut | None]
    """None: what an engine answers for."""
    asked: SideInformation
    """What is known of the points that an engine answers for."""
    infer: Infer
    """The engine's function."""
    height: int
    """How many points fit the cache."""
    over: Over
    """Who works on the blocks: ``map``, or what does the same in threads."""

    @classmethod
    def of(
        cls, X: Points, side: SideInformation, at_work: Callable[[Graph], Infer], height: int,
        *, whole: bool = False, over: Over = map, apart: bool = False,
    ) -> Arranged:  # fmt: skip
        """Cut into blocks of ``height`` points, or leave ``whole`` what an engine wants so.

        ``at_work`` makes functions of graphs. Memory for a copy of the points is taken only where
        chunklets or edges tie some. What fits into one block stays as it is, unless nodes without
        edges are to be kept ``apart`` for their names in errors.
        """
        if (whole or (X.shape[0] <= height and not apart)) and side.power is None:
            infer = at_work(side.graph) if whole or len(side.graph.edges) else partial(alone, side)
            return cls(X, X, side, None, side, [None], side, infer, height, over)
        if side.is_trivial:
            cuts = _cuts([(1, X.shape[0])], height)
            return cls(X, X, side, None, side, list(cuts), side, at_work(side.graph), height, over)
        tied, sizes = np.zeros(side.n_nodes, dtype=bool), np.bincount(side.node_of)
        tied[side.graph.edges] = True
        nodes = np.lexsort((sizes, tied))
        place = np.argsort(nodes)
        order = np.argsort(place[side.node_of], kind="stable")
        runs = np.unique(sizes[~tied], return_counts=True)
        cuts = _cuts(zip(*(column.tolist() for column in runs), strict=True), height)
        # What lies on a disk stays there, and is gathered block by block.
        rows = X
        if not isinstance(X, np.memmap):
            rows = X[order] if issparse(X) else np.take(X.T, order, axis=1).T
        known = _in_order(side, nodes, order)
        if not tied.any():
            return cls(
                rows, X, side, order, known, list(cuts), side, at_work(side.graph), height, over
            )
        asked = side.restrict(order[-sizes[tied].sum() :])
        asked = asked._replace(multiplicity=side.multiplicity[nodes[-tied.sum() :]])
        infer = _named(at_work, asked.graph, nodes[-tied.sum() :])
        return cls(rows, X, side, order, known, [None, *cuts], asked, infer, height, over)

    @property
    def extent(self) -> Points:
        """The points: they reach as far as they do."""
        return self.X

    def called(self, names: IntArray) -> Arranged:
        """The same points, which errors call by other names."""
        side, known = (
            one._replace(first_points=names[one.first_points]) for one in (self.side, self.known)
        )
        return self._replace(side=side, known=known)

    def each(self, of_block: Callable[[Arranged, Cut | None], Result]) -> Iterable[Result]:
        """What a function says of each block, in their order."""
        return self.over(partial(of_block, self), self.cuts)

    def answer(
        self, of_block: Callable[..., tuple[slice | IntArray, FloatArray]], n_components: int,
        keep: bool,
    ) -> Answer:  # fmt: skip
        """What a function says of the points of each block, at the places where they were given."""
        n_points = self.X.shape[0]
        largest = np.empty(n_points, dtype=np.intp)
        kept = np.empty((n_components, n_points)).T if keep else None
        for places, found in self.each(of_block):
            largest[places] = found.argmax(axis=1)
            if kept is not None:
                kept[places] = found
        return kept, largest

    def block(self, place: Cut | None) -> Block:
        """The points of a cut."""
        if place is None:
            points = slice(len(self.side.node_of) - len(self.asked.node_of), None)
            return self._block(points, self.asked, self.infer)
        known, nodes, size = self.known, place.nodes, place.size
        count = nodes.stop - nodes.start
        part = SideInformation(
            node_of=np.arange(count) if size == 1 else np.repeat(np.arange(count), size),
            multiplicity=known.multiplicity[nodes],
            graph=edgeless(count),
            labels=None if known.labels is None else known.labels[nodes],
            allowed=None if known.allowed is None else known.allowed[nodes],
            first_points=known.first_points[nodes],
            runs=((size, count),) if 1 < size <= LARGEST_RUN else (),
        )
        if known.power is not None and known.copies is not None:
            part = part._replace(power=known.power[place.points], copies=known.copies[nodes])
        return self._block(place.points, part, partial(alone, part))

    def _block(self, points: slice, side: SideInformation, infer: Infer) -> Block:
        places = self._places(points)
        rows = self.X[places if self.X is self.given else points]
        rows = np.asarray(rows) if isinstance(rows, np.memmap) else rows
        return Block(rows, side, infer, places, side.sample_weight)

    def _places(self, points: slice) -> slice | IntArray:
        return points if self.order is None else self.order[points]


def _in_order(side: SideInformation, nodes: IntArray, order: IntArray) -> SideInformation:
    """What is known of nodes and points, in the order of work; who belongs where is left out."""
    of_nodes = {name: getattr(side, name) for name in ("multiplicity", "first_points")}
    for name in ("labels", "allowed", "copies"):
        if getattr(side, name) is not None:
            of_nodes[name] = getattr(side, name)
    moved = {name: values[nodes] for name, values in of_nodes.items()}
    return side._replace(**moved, power=None if side.power is None else side.power[order])


def _cuts(runs: Iterable[tuple[int, int]], height: int) -> Iterator[Cut]:
    """Cuts of about ``height`` points; runs are sizes of nodes, and how many there are of each."""
    node = point = 0
    for size, count in runs:
        for part in cut(count, max(1, height // size)):
            points = slice(point + size * part.start, point + size * part.stop)
            yield Cut(slice(node + part.start, node + part.stop), points, size)
        node, point = node + count, point + size * count


def alone(side: SideInformation, unary: FloatArray) -> Marginals:
    """Nodes without edges; errors name their first points."""
    nodes, log_totals = log_normalise(unary, names=side.first_points)
    log_z = log_totals.sum() if side.copies is None else side.copies @ log_totals
    return Marginals(nodes, float(log_z), exact=True)


def _named(at_work: Callable[[Graph], Infer], graph: Graph, names: IntArray) -> Infer:
    """The engine's function for a part of the network; its errors name nodes of the whole."""

    def named(do: Callable[[], Result]) -> Result:
        try:
            return do()
        except NetworkError as error:
            raise error.renamed(names) from None

    infer = named(lambda: at_work(graph))
    return lambda unary: named(lambda: infer(unary))
