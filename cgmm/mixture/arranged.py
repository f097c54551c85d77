"""The order in which EM works on the points, and the names that errors give to them. Chapter 6."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse

from cgmm.mixture.loop import Points
from cgmm.network import NetworkError, SideInformation
from cgmm.numerics import AnyArray, IntArray

# Chunklets are laid out member by member: with more of these, a step each costs more than it saves.
LARGEST_RUN = 64


@contextmanager
def named_as_points(side: SideInformation) -> Iterator[None]:
    """Errors about nodes of the network name points."""
    try:
        yield
    except NetworkError as error:
        raise error.renamed(side.first_points, "point") from None


class Arranged(NamedTuple):
    """Points in the order in which EM works on them: chunklets together, where only these tie."""

    X: Points
    side: SideInformation
    order: IntArray | None
    """(N,) the given places of the points; None where they are as given."""

    @classmethod
    def of(cls, X: Points, side: SideInformation) -> Arranged:
        """Arrange if it saves more than it costs."""
        stays = side.nodes_are_points or len(side.graph.edges) > 0
        if stays or np.bincount(side.node_of).max() > LARGEST_RUN:
            return cls(X, side, None)
        order, arranged = side.by_size()
        # Dense points are column-major, and stay so.
        rows = X[order] if issparse(X) else np.take(X.T, order, axis=1).T
        return cls(rows, arranged, order)

    def restored(self, values: AnyArray) -> AnyArray:
        """One row a point, in the order in which the points were given."""
        if self.order is None:
            return values
        given = np.empty_like(values)
        given.T[..., self.order] = values.T
        return given
