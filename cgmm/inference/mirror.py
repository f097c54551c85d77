"""Two states only: a cannot-link is a must-link to the mirror image. Chapter 7.

With K = 2, z_a ≠ z_b says that b is in the state in which a is not. A component of cannot-links
then has two colours, and one state left to choose: its nodes are contracted into one, whose state
s is that of the first colour, the other colour having the other. No sum over assignments is needed;
two colours are found in time linear in the graph, where to ask for three is NP-complete. Edges of
finite weight remain, between contracted nodes. One whose ends have different colours says w where
the contracted states *differ*: w [s ≠ s'] = w - w [s = s'], a constant and the opposite weight.

=====  ======================================================================
j, c   node; ``node_of[j]`` = c, the contracted node that it is a member of
p_j    parity: 1 if j has the opposite state of its contracted node
s      state of a contracted node: z_j = s xor p_j
w      log-weight of an edge
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
    """A network of two states without its cannot-links, and the way there and back."""

    graph: Graph
    """Contracted nodes, tied by finite weights."""
    node_of: IntArray
    """(n_nodes,) the contracted node of each node."""
    parity: BoolArray
    """(n_nodes,) whether its state is the opposite one."""
    constant: float
    """What edges add to log Z whatever the assignment."""

    def enter(self, unary: FloatArray) -> FloatArray:
        """Return log-potentials (contracted, 2): sums over the members, some of them mirrored."""
        u, n = self._turned(unary), self.graph.n_nodes
        return np.array([np.bincount(self.node_of, column, n) for column in u.T], dtype=float).T

    def leave(self, of_contracted: FloatArray) -> FloatArray:
        """Turn marginals (contracted, 2) into those of the nodes."""
        return self._turned(of_contracted[self.node_of])

    def trace_back(self, s: IntArray) -> IntArray:
        """Turn states of contracted nodes into those of the nodes."""
        return s[self.node_of] ^ self.parity.astype(np.intp)

    def _turned(self, rows: FloatArray) -> FloatArray:
        """Exchange the two columns of nodes that have the opposite state."""
        return np.where(self.parity[:, None], rows[:, ::-1], rows)


def contract_mirrored(graph: Graph) -> Mirror | None:
    """Contract the cannot-links of a network of two states.

    Parameters
    ----------
    graph : Graph
        Simplified. Edges of finite weight may tie whatever they like.

    Returns
    -------
    Mirror, or None
        The smaller network; None if there is no cannot-link.

    Raises
    ------
    NetworkError
        If cannot-links form a cycle of odd length, which is shown: no two states will do.

    Examples
    --------
    A path of cannot-links, and a preference between its ends, which have the same colour:

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
    # Between two nodes: w [s ≠ s'] = w - w [s = s']. Within one: w, or nothing.
    constant = float(w[inside != opposite].sum())
    signed = np.where(opposite, -w, w)[~inside]
    # Errors call a contracted node by the first of its members.
    names = graph.named(np.unique(node_of, return_index=True)[1])
    smaller = simplify(Graph(int(node_of.max()) + 1, ends[~inside], signed, names))
    return Mirror(smaller, node_of, parity, constant)


def _two_colours(graph: Graph) -> tuple[IntArray, BoolArray]:
    """Component of every node and its colour, or an odd cycle."""
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
    """Find a cycle of odd length in the component of a node."""
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
    """Return placeholders for the names along a chain; of a long chain only its ends."""
    places = [f"{{{i}}}" for i in range(n)]
    if n > 10:
        places[5:-4] = [f"... ({n - 9} more)"]
    return " - ".join(places)
