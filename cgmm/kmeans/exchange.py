"""Exchanges of two clusters along Kempe chains: cheaper assignments that break nothing. Chapter 11."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from cgmm.kmeans.loop import ROUNDING, indicators
from cgmm.numerics import FloatArray, IntArray


def exchange(
    costs: FloatArray,
    neighbours: list[IntArray],
    z: IntArray,
    soft: sparse.csr_array | None = None,
) -> IntArray:
    """Descend by exchanges of two clusters along Kempe chains until none lowers the objective.

    A chain lowers it only if one of its nodes is better off: only those need start one.
    """
    z, tiny, everyone = z.copy(), ROUNDING * np.abs(costs).max(), np.arange(len(z))
    improved = True
    while improved:
        improved = False
        local = costs if soft is None else costs - soft @ indicators(z, costs.shape[1])
        gains = local[everyone, z][:, None] - local
        for j in np.argsort(-gains.max(axis=1), kind="stable"):
            if gains[j].max() <= tiny:
                break
            # Ends by break at the latest where k is its own cluster, which gains nothing.
            for k in np.argsort(-gains[j], kind="stable"):  # pragma: no branch
                if gains[j, k] <= tiny:
                    break
                chain = _kempe_chain(neighbours, z, int(j), int(k))
                moved = z[j] + k - z[chain]
                if _gain(costs, soft, z, chain, moved) > tiny:
                    z[chain] = moved
                    improved = True
                    break
    return z


def exchange_all(costs: FloatArray, ends: IntArray, z: IntArray) -> IntArray:
    """The same descent in large components: all chains at once.

    Node j is in one chain for each other cluster k. An edge joins the chain of its one end for the
    other's cluster with that of the other for its own, so that all chains are the connected
    components of a graph of M K copies. What two chains of the same two clusters gain adds up, and
    exchanges within disjoint pairs of clusters cannot clash.
    """
    z, (n_nodes, n_clusters) = z.copy(), costs.shape
    tiny, everyone, (a, b) = ROUNDING * np.abs(costs).max(), np.arange(n_nodes), ends
    while True:
        gains = costs[everyone, z][:, None] - costs
        copies = a * n_clusters + z[b], b * n_clusters + z[a]
        joined = sparse.coo_array((np.ones(len(a)), copies), shape=(gains.size, gains.size))
        _, chain = connected_components(joined, directed=False)
        improves = np.bincount(chain, gains.ravel())[chain].reshape(gains.shape) > tiny
        if not improves.any():
            return z
        of_pair = np.zeros((n_clusters, n_clusters))
        np.add.at(of_pair, z, np.where(improves, gains, 0.0))
        of_pair += of_pair.T
        while of_pair.max() > 0:
            k, m = np.unravel_index(of_pair.argmax(), of_pair.shape)
            leaving, coming = improves[:, m] & (z == k), improves[:, k] & (z == m)
            z[leaving], z[coming] = m, k
            of_pair[[k, m]] = of_pair[:, [k, m]] = 0


def _kempe_chain(neighbours: list[IntArray], z: IntArray, j: int, k: int) -> IntArray:
    """The nodes of the clusters z_j and k that hang together with j."""
    pair, chain, seen = (z[j], k), [j], {j}
    for node in chain:
        for other in neighbours[node].tolist():
            if other not in seen and z[other] in pair:
                seen.add(other)
                chain.append(other)
    return np.array(chain)


def _gain(
    costs: FloatArray, soft: sparse.csr_array | None, z: IntArray, chain: IntArray, moved: IntArray
) -> float:
    """How much the objective falls when the nodes of a chain move."""
    gain = costs[chain, z[chain]].sum() - costs[chain, moved].sum()
    if soft is not None:
        # Two nodes of a chain that were equal stay so: only edges that leave it count.
        rows = soft[chain].tocoo()
        leaves = ~np.isin(rows.col, chain)
        owner, other = rows.row[leaves], z[rows.col[leaves]]
        change = (moved[owner] == other).astype(float) - (z[chain][owner] == other)
        gain += rows.data[leaves] @ change
    return float(gain)
