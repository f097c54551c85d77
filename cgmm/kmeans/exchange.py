"""Exchanges of two clusters along Kempe chains: cheaper assignments that break nothing. Chapter 11.

Take two clusters k and m, and the graph of the cannot-links among their nodes. Each of its
connected components is a *chain*: its nodes can trade k for m and m for k, all together, and no
cannot-link is broken.

=======  ====================================================================
M, K     nodes, clusters
z        (M,) cluster of each node
edges    (E, 2) cannot-links
chain    (M, K) the chain of node j for another cluster k than its own
soft     (M, M) sparse log-weights of preferences
=======  ====================================================================
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from cgmm.kmeans.loop import ROUNDING, indicators
from cgmm.numerics import BoolArray, FloatArray, IntArray


def exchange(
    costs: FloatArray, edges: IntArray, z: IntArray, soft: sparse.csr_array | None = None
) -> IntArray:
    """Descend by exchanges along chains until none lowers the objective.

    Without preferences all exchanges of disjoint pairs of clusters go together, as what they gain
    adds up. Preferences tie chains to each other: then the best one goes at a time.
    """
    z, tiny = z.copy(), ROUNDING * np.abs(costs).max()
    while True:
        chain = kempe_chains(edges, z, costs.shape[1])
        gains = _gains(costs, z, chain, soft)
        if gains.max() <= tiny:
            return z
        if soft is None:
            _exchange_pairs(costs, z, gains[chain] > tiny)
        else:
            nodes, others = np.nonzero(chain == gains.argmax())
            z[nodes] = others


def kempe_chains(edges: IntArray, z: IntArray, n_clusters: int) -> IntArray:
    """(M, K) the number of the chain in which node j would go to cluster k.

    A cannot-link joins the chain of its one end for the other's cluster with that of the other for
    its own, so that all chains are the connected components of a graph of M K copies.
    """
    a, b = edges.T
    copies = a * n_clusters + z[b], b * n_clusters + z[a]
    size = len(z) * n_clusters
    joined = sparse.coo_array((np.ones(len(a)), copies), shape=(size, size))
    return connected_components(joined, directed=False)[1].reshape(len(z), n_clusters)


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
    clusters, equal = np.arange(chain.shape[1]), (z[i] == z[j])[:, None]
    becomes_equal = z[i][:, None] == clusters
    # If j goes to k, a node that is equal to j goes there as well, and one in k to where j was.
    with_j = chain[i[:, None], np.where(equal, clusters, z[j][:, None])]
    inside = (equal | becomes_equal) & (chain[j] == with_j)
    seeming = soft.data[:, None] * (becomes_equal.astype(float) - equal)
    return chain[j][inside], seeming[inside]


def _exchange_pairs(costs: FloatArray, z: IntArray, improves: BoolArray) -> None:
    """Move, in place, all chains that improve, for disjoint pairs of clusters, the best first."""
    n_clusters = costs.shape[1]
    own = costs[np.arange(len(z)), z][:, None]
    of_pair = np.zeros((n_clusters, n_clusters))
    np.add.at(of_pair, z, np.where(improves, own - costs, 0.0))
    of_pair += of_pair.T
    while of_pair.max() > 0:
        k, m = np.unravel_index(of_pair.argmax(), of_pair.shape)
        leaving, coming = improves[:, m] & (z == k), improves[:, k] & (z == m)
        z[leaving], z[coming] = m, k
        of_pair[[k, m]] = of_pair[:, [k, m]] = 0
