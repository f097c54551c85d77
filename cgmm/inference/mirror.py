"""Contract the cannot-links of a network with two states, where each determines one end.

:mod:`cgmm.inference.reduction` calls it for K = 2; chapter 7 explains it. With two states,
z_a ≠ z_b means that b has the mirrored state of a, so a cannot-link works like a must-link. A
component of cannot-links has two colours, and only one state to choose: its nodes are contracted
into one, whose state s is that of the first colour; nodes of the second colour have the other
state. No sum over assignments is needed, and two colours are found in linear time, whereas finding
three is NP-complete. Edges of finite log-weight remain, between contracted nodes. If the ends of
one have different colours, its w is added if the contracted states *differ*:
w [s ≠ s'] = w - w [s = s'], which is a constant and an edge of the opposite log-weight.

=====  ======================================================================
j, c   node, e.g. 5; ``node_of[j]`` = c, its contracted node, e.g. 2
p_j    parity: 1 if j has the opposite state of its contracted node, else 0
s      state of a contracted node, e.g. 0: z_j = s xor p_j
w      log-weight of an edge, e.g. -1.5
=====  ======================================================================
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csgraph, csr_array

from cgmm.inference.feasible import two_colours
from cgmm.network import Graph, NetworkError, simplify
from cgmm.network.graph import edge_matrix, hard_part
from cgmm.numerics import BoolArray, FloatArray, IntArray

__all__ = ["Mirror", "contract_mirrored"]


class Mirror(NamedTuple):
    """A contracted network of two states, with the mapping from and to the original one."""

    graph: Graph
    """Contracted nodes, with edges of finite log-weight."""
    node_of: IntArray
    """(n_nodes,) contracted node of each node."""
    parity: BoolArray
    """(n_nodes,) True if a node has the opposite state of its contracted node."""
    constant: float
    """Constant that edges add to log Z in every assignment."""

    def enter(self, unary: FloatArray) -> FloatArray:
        """Return (contracted, 2) log-potentials: sums over member nodes, mirrored by parity."""
        u, n = self._mirror(unary), self.graph.n_nodes
        return np.array([np.bincount(self.node_of, column, n) for column in u.T], dtype=float).T

    def leave(self, of_contracted: FloatArray) -> FloatArray:
        """Return the marginals of the nodes, given those of contracted nodes (contracted, 2)."""
        return self._mirror(of_contracted[self.node_of])

    def trace_back(self, s: IntArray) -> IntArray:
        """Return the states of the nodes, given those of contracted nodes."""
        return s[self.node_of] ^ self.parity.astype(np.intp)

    def _mirror(self, rows: FloatArray) -> FloatArray:
        """Return the rows with swapped columns for nodes of the opposite state."""
        return np.where(self.parity[:, None], rows[:, ::-1], rows)


def contract_mirrored(graph: Graph) -> Mirror | None:
    """Contract the cannot-links of a network of two states.

    Parameters
    ----------
    graph : Graph
        A simplified graph, with any edges of finite log-weight.

    Returns
    -------
    Mirror, or None
        The smaller network; None if there is no cannot-link.

    Raises
    ------
    NetworkError
        If cannot-links form a cycle of odd length, which two states cannot satisfy; the error shows
        the cycle.

    Examples
    --------
    Two cannot-links form a path; a preference connects its ends, which have the same colour:

    >>> path = np.array([[0, 1], [1, 2], [0, 2]])
    >>> mirror = contract_mirrored(Graph(3, path, np.array([-np.inf, -np.inf, 0.7])))
    >>> mirror.graph.n_nodes, mirror.constant, mirror.parity
    (1, 0.7, array([False,  True, False]))
    """
    is_hard = graph.weights == -np.inf
    if not is_hard.any():
        return None
    node_of, parity = _two_colours(hard_part(graph))
    soft = graph.edges[~is_hard]
    ends, opposite = node_of[soft], parity[soft[:, 0]] != parity[soft[:, 1]]
    inside = ends[:, 0] == ends[:, 1]
    w = graph.weights[~is_hard]
    # Ends of opposite colours give w [s ≠ s'] = w - w [s = s'] between two contracted nodes. Within
    # one contracted node, an edge adds w if its ends have the same colour, else nothing.
    constant = float(w[inside != opposite].sum())
    signed = np.where(opposite, -w, w)[~inside]
    # Errors name a contracted node by its first member.
    names = graph.named(np.unique(node_of, return_index=True)[1])
    smaller = simplify(Graph(int(node_of.max()) + 1, ends[~inside], signed, names))
    return Mirror(smaller, node_of, parity, constant)


def _two_colours(graph: Graph) -> tuple[IntArray, BoolArray]:
    """Return the component and the colour of every node, or raise an error with an odd cycle."""
    hard = edge_matrix(graph)
    node_of, parity, is_odd = two_colours(hard)
    if is_odd.any():
        cycle = np.array(_odd_cycle(hard, int(is_odd.argmax())))
        raise NetworkError(
            "no joint assignment of {nodes} is possible with K = 2: cannot-links tie them in a "
            f"cycle of odd length, {_show(len(cycle))} - {{0}}, along which two states cannot "
            "alternate. Use more components, or remove one of these cannot-links.",
            graph.named(cycle),
        )
    return node_of, parity


def _odd_cycle(hard: csr_array, start: int) -> list[int]:
    """Return the nodes of a cycle of odd length in the component of a node."""
    order, before = csgraph.breadth_first_order(hard, start, directed=False)
    depth = np.full(hard.shape[0], -1)
    depth[start] = 0
    for v in order[1:].tolist():
        depth[v] = depth[before[v]] + 1
    rows = np.repeat(np.arange(hard.shape[0]), np.diff(hard.indptr))
    level = (depth[rows] == depth[hard.indices]) & (depth[rows] >= 0)
    edge = np.flatnonzero(level)[depth[rows[level]].argmin()]
    left, right = [int(rows[edge])], [int(hard.indices[edge])]
    while left[-1] != right[-1]:
        left.append(int(before[left[-1]]))
        right.append(int(before[right[-1]]))
    return left[::-1] + right[:-1]


def _show(n: int) -> str:
    """Return placeholders for the nodes of a chain, without the middle of a long chain."""
    places = [f"{{{i}}}" for i in range(n)]
    if n > 10:
        places[5:-4] = [f"... ({n - 9} more)"]
    return " - ".join(places)
