"""Exchanges of two states along Kempe chains: better assignments that break nothing. Chapter 11.

Take two states k and m, and the graph of the cannot-links among their nodes. Each of its connected
components is a *chain*: its nodes can trade k for m and m for k, all together, and no cannot-link
is broken. A node that no cannot-link holds back is a chain by itself.

=======  ====================================================================
M, K     nodes, states
costs    (M, K) what node j pays in state k; infinite where it may not be
z        (M,) state of each node
edges    (E, 2) cannot-links, which z honours
chain    (M, K) the chain of node j for another state k than its own
soft     (M, M) sparse log-weights of preferences
=======  ====================================================================
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from cgmm.numerics import BoolArray, FloatArray, IntArray

# A change of the objective below this share of the largest cost is rounding, not progress.
ROUNDING = 1e-12


def indicators(z: IntArray, n_states: int) -> FloatArray:
    """(M, K) one where node j is in state k, else zero."""
    return (z[:, None] == np.arange(n_states)).astype(float)


def exchange(
    costs: FloatArray,
    edges: IntArray,
    z: IntArray,
    soft: sparse.csr_array | None = None,
    *,
    tied: float = np.inf,
) -> IntArray:
    """Descend by exchanges along chains until none lowers the objective.

    Without preferences all exchanges of disjoint pairs of states go together, as what they gain
    adds up. Preferences tie chains to each other: then all those go together that gain more than
    any chain that they touch. Preferences of ``|w|`` from ``tied`` up that z honours are honoured
    by every exchange, so that what they hold in place moves as a whole.
    """
    z, tiny = z.copy(), ROUNDING * _scale(costs, soft)
    strong = _strong(soft, tied)
    while True:
        chain = kempe_chains(edges, z, costs.shape[1], strong)
        gains = _gains(costs, z, chain, soft)
        improves = gains > tiny * np.bincount(chain.ravel())
        if not improves.any():
            return z
        if soft is None:
            _exchange_pairs(costs, z, improves[chain])
        else:
            chosen = _apart(chain, np.where(improves, gains, 0.0), edges, soft)
            nodes, others = np.nonzero(chosen[chain])
            z[nodes] = others


def _scale(costs: FloatArray, soft: sparse.csr_array | None) -> float:
    """The largest number that a gain is made of."""
    largest = np.abs(costs[np.isfinite(costs)]).max(initial=0.0)
    return float(largest if soft is None else max(largest, np.abs(soft.data).max(initial=0.0)))


def _strong(soft: sparse.csr_array | None, tied: float) -> sparse.coo_array | None:
    """The preferences that an exchange must not break, each once; None if there are none."""
    if soft is None or not (np.abs(soft.data) >= tied).any():
        return None
    strong = sparse.triu(soft).tocoo()
    strong.data = np.where(np.abs(strong.data) >= tied, strong.data, 0.0)
    strong.eliminate_zeros()
    return strong


def kempe_chains(
    edges: IntArray, z: IntArray, n_states: int, strong: sparse.coo_array | None = None
) -> IntArray:
    """(M, K) the number of the chain in which node j would go to state k.

    A cannot-link joins the chain of its one end for the other's state with that of the other for
    its own, so that all chains are the connected components of a graph of M K copies. So does a
    strong preference to differ; a strong one to be equal joins the chains of both ends for any k.
    """
    a, b = edges.T
    copies = np.stack([a * n_states + z[b], b * n_states + z[a]])
    if strong is not None:
        copies = np.hstack([copies, _strong_ties(z, n_states, strong)])
    size = len(z) * n_states
    joined = sparse.coo_array((np.ones(copies.shape[1]), tuple(copies)), shape=(size, size))
    return connected_components(joined, directed=False)[1].reshape(len(z), n_states)


def _strong_ties(z: IntArray, n_states: int, strong: sparse.coo_array) -> IntArray:
    """(2, T) copies that strong preferences join, where z honours them."""
    a, b = strong.coords
    apart, together = (strong.data < 0) & (z[a] != z[b]), (strong.data > 0) & (z[a] == z[b])
    differ = np.stack([a * n_states + z[b], b * n_states + z[a]])[:, apart]
    ends = np.stack([a, b])[:, together, None] * n_states + np.arange(n_states)
    return np.hstack([differ, ends.reshape(2, -1)])


def _gains(
    costs: FloatArray, z: IntArray, chain: IntArray, soft: sparse.csr_array | None
) -> FloatArray:
    """By how much the objective falls when all nodes of a chain move, for every chain."""
    local = costs if soft is None else costs - soft @ indicators(z, costs.shape[1])
    own = local[np.arange(len(z)), z]
    gains: Any = np.bincount(chain.ravel(), (own[:, None] - local).ravel())
    if soft is not None:
        # Two nodes of one chain that were equal stay so: what the edge between them seemed to gain
        # is taken back.
        inner, seeming = _inner_preferences(z, chain, soft)
        gains -= np.bincount(inner, seeming, minlength=len(gains))
    return cast("FloatArray", gains)


def _inner_preferences(
    z: IntArray, chain: IntArray, soft: sparse.csr_array
) -> tuple[IntArray, FloatArray]:
    """Chains with both ends j and i of a preference, and what it would gain if j alone moved."""
    j, i = np.repeat(np.arange(len(z)), np.diff(soft.indptr)), soft.indices
    states, equal = np.arange(chain.shape[1]), (z[i] == z[j])[:, None]
    becomes_equal = z[i][:, None] == states
    # If j goes to k, a node that is equal to j goes there as well, and one in k to where j was.
    with_j = chain[i[:, None], np.where(equal, states, z[j][:, None])]
    inside = (equal | becomes_equal) & (chain[j] == with_j)
    seeming = soft.data[:, None] * (becomes_equal.astype(float) - equal)
    return chain[j][inside], seeming[inside]


def _apart(
    chain: IntArray, gains: FloatArray, edges: IntArray, soft: sparse.csr_array
) -> BoolArray:
    """Which chains gain more than any other that shares a node with them or is tied to them."""
    rank = np.empty(len(gains), dtype=np.intp)
    rank[np.argsort(gains, kind="stable")] = np.arange(len(gains))
    rank[gains <= 0] = -1
    best = rank[chain].max(axis=1)
    near, (a, b) = best.copy(), np.column_stack([edges.T, soft.tocoo().coords])
    np.maximum.at(near, a, best[b])
    np.maximum.at(near, b, best[a])
    met = np.full(len(gains), -1)
    np.maximum.at(met, chain, near[:, None])
    return cast("BoolArray", (rank >= 0) & (met == rank))


def _exchange_pairs(costs: FloatArray, z: IntArray, improves: BoolArray) -> None:
    """Move, in place, all chains that improve, for disjoint pairs of states, the best first."""
    n_states = costs.shape[1]
    own = costs[np.arange(len(z)), z][:, None]
    of_pair = np.zeros((n_states, n_states))
    np.add.at(of_pair, z, np.where(improves, own - costs, 0.0))
    of_pair += of_pair.T
    while of_pair.max() > 0:
        k, m = np.unravel_index(of_pair.argmax(), of_pair.shape)
        leaving, coming = improves[:, m] & (z == k), improves[:, k] & (z == m)
        z[leaving], z[coming] = m, k
        of_pair[[k, m]] = of_pair[:, [k, m]] = 0
