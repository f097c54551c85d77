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

from cgmm.network import Graph, connected_components
from cgmm.numerics import BoolArray, FloatArray, IntArray

# A change of the objective below this share of the largest cost is rounding, not progress.
ROUNDING = 1e-12


def exchange(costs: FloatArray, edges: IntArray, z: IntArray, soft: sparse.csr_array) -> IntArray:
    """Descend by exchanges along chains until none lowers the objective.

    In each round all those go together that gain more than any chain that they touch, or to which
    a preference ties them.
    """
    largest = max(np.abs(part).max(initial=0.0) for part in (costs[np.isfinite(costs)], soft.data))
    z = z.copy()
    while True:
        chain = kempe_chains(edges, z, costs.shape[1])
        gains = _gains(costs, z, chain, soft)
        improves = gains > ROUNDING * largest * np.bincount(chain.ravel())
        if not improves.any():
            return z
        chosen = _apart(chain, np.where(improves, gains, 0.0), edges, soft)
        nodes, others = np.nonzero(chosen[chain])
        z[nodes] = others


def kempe_chains(edges: IntArray, z: IntArray, n_states: int) -> IntArray:
    """(M, K) the number of the chain in which node j would go to state k.

    A cannot-link joins the chain of its one end for the other's state with that of the other for
    its own, so that all chains are the connected components of a graph of M K copies.
    """
    copies = Graph(len(z) * n_states, edges * n_states + z[edges[:, ::-1]], np.ones(len(edges)))
    return connected_components(copies).reshape(len(z), n_states)


def _gains(costs: FloatArray, z: IntArray, chain: IntArray, soft: sparse.csr_array) -> FloatArray:
    """By how much the objective falls when all nodes of a chain move, for every chain."""
    local = costs - soft @ np.eye(costs.shape[1])[z]
    own = local[np.arange(len(z)), z]
    gains: Any = np.bincount(chain.ravel(), (own[:, None] - local).ravel())
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
