"""A network made smaller before any engine sees it: by two states, and by evidence. Chapter 7.

Both steps are exact, cheap and independent of the engine. What they take and give back is
:class:`Reduced`. The first depends on the graph alone (:mod:`cgmm.inference.mirror`), the second on
the graph and on which log-potentials are -inf (:mod:`cgmm.inference.evidence_reduction`); what is
found for a pattern is kept, since the same comes back at every E-step.

=======  ======================================================================
h        unaries (smaller network, K) with all that the edges now gone have said
pattern  which of them are not -inf, one bit each
=======  ======================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np

from cgmm.inference.evidence_reduction import Consistent, propagate_evidence
from cgmm.inference.mirror import Mirror, contract_mirrored
from cgmm.network import Graph, NetworkError
from cgmm.numerics import FloatArray, IntArray

__all__ = ["Reduced", "reducer"]

# Patterns of evidence that are remembered: those of the data and of the prior, and a few more.
MAX_PATTERNS = 8


class Reduced(NamedTuple):
    """A smaller network with the same answers, and the way back."""

    h: FloatArray
    """Its unaries."""
    key: bytes
    """Tells which edges are left: networks of one key and K differ in their unaries only."""
    graph: Graph
    constant: float
    """To be added to its log Z."""
    mirror: Mirror | None

    def leave(self, nodes: FloatArray) -> FloatArray:
        """From its marginals to those of the whole network."""
        return nodes if self.mirror is None else self.mirror.leave(nodes)

    def trace_back(self, z: IntArray) -> IntArray:
        """From an assignment of it to one of the whole network."""
        return z if self.mirror is None else self.mirror.trace_back(z)

    def renamed(self, error: NetworkError) -> NetworkError:
        """An error about its nodes as one about nodes of the whole network."""
        if self.mirror is None:
            return error
        return type(error)(error.message, self.mirror.members(error.nodes), error.noun)


def reducer(graph: Graph) -> Callable[[FloatArray], Reduced]:
    """Prepare a graph: the function returned takes unaries to a smaller network.

    Parameters
    ----------
    graph : Graph
        Simplified.

    Returns
    -------
    callable
        From unaries (n_nodes, K) to :class:`Reduced`.

    Raises
    ------
    NetworkError
        When called: if no joint assignment is possible, as far as the two steps tell; the cycle or
        the chain that clashes is shown.

    Examples
    --------
    Four nodes in a ring of cannot-links are one node, when there are two states:

    >>> ring = Graph(4, np.array([[0, 1], [1, 2], [2, 3], [0, 3]]), np.full(4, -np.inf))
    >>> reduced = reducer(ring)(np.zeros((4, 2)))
    >>> reduced.graph.n_nodes, reduced.h
    (1, array([[0., 0.]]))
    """
    mirrored = cache(lambda: contract_mirrored(graph))

    @lru_cache(maxsize=MAX_PATTERNS)
    def consistent(inner: int, n_states: int, pattern: bytes) -> Consistent:
        of_two = mirrored() if inner else None
        part = graph if of_two is None else of_two.graph
        bits = np.unpackbits(np.frombuffer(pattern, np.uint8), count=part.n_nodes * n_states)
        return propagate_evidence(part, bits.reshape(-1, n_states).astype(bool))

    def reduce(unary: FloatArray) -> Reduced:
        n_states = unary.shape[1]
        mirror = mirrored() if n_states == 2 else None
        h, part, constant = unary, graph, 0.0
        if mirror is not None:
            h, part, constant = mirror.enter(unary), mirror.graph, mirror.constant
        possible = h > -np.inf
        if n_states > 1 and possible.all():
            return Reduced(h, b"", part, constant, mirror)
        left = consistent(mirror is not None, n_states, np.packbits(possible).tobytes())
        key = b"" if left.kept.all() else left.kept.tobytes()
        return Reduced(left.enter(h), key, left.graph, constant + left.constant, mirror)

    return reduce
