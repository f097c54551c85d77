"""Where K-means starts: seeds from chunklets, or from points alone, or the best of several.

Chapter 11.

=======  ==================================================================
N, K     points x_i, clusters
node_of  (N,) chunklet of each point
r_ik     one where x_i is in the part that a seed stands for, else zero
=======  ==================================================================
"""

from __future__ import annotations

from itertools import islice

import numpy as np

from cgmm.kmeans.loop import Nodes, Step, lloyd, nearest_rule
from cgmm.kmeans.seeding import chunklet_seeds, far_points, random_points, taking_turns
from cgmm.network import Graph, edgeless
from cgmm.numerics import FloatArray, IntArray, best_first

# Each start is tried for so many iterations, which know chunklets alone.
FREE_STEPS = 6


def _means_of_parts(X: FloatArray, r: FloatArray) -> FloatArray:
    """The mean of each part; of all points where a part is empty, which the loop then fills."""
    counts = r.sum(axis=0)[:, None]
    return np.where(counts > 0, (r.T @ X) / np.maximum(counts, 1), X.mean(axis=0))


SEEDINGS = {
    "chunklets": chunklet_seeds,
    "k-means++": lambda X, node_of, K, rng: _means_of_parts(X, far_points(X, K, rng)),
    "random": lambda X, node_of, K, rng: _means_of_parts(X, random_points(X, K, rng)),
}


def starts_to_try(init: str, n_clusters: int, chunklets: IntArray, graph: Graph) -> list[str]:
    """The names that ``init`` stands for: "auto" is one start without relations, else several."""
    if init != "auto":
        return [init]
    if (chunklets.max() == len(chunklets) - 1 and len(graph.edges) == 0) or n_clusters == 1:
        return ["k-means++"]
    return taking_turns(["chunklets", "k-means++"], n_clusters)


def most_promising(starts: list[FloatArray], nodes: Nodes) -> FloatArray:
    """Where a few iterations lead from the best of the starts; a single one as it is."""
    if len(starts) == 1:
        return starts[0]
    tried = [freely(nodes, start) for start in starts]
    return tried[best_first([-step.objective for step in tried])[0]].centres


def freely(nodes: Nodes, start: FloatArray) -> Step:
    """Where a few iterations lead that know of no relations between nodes."""
    steps = lloyd(nodes, edgeless(len(nodes.means)), start, nearest_rule)
    return next(islice(steps, FREE_STEPS, None))
