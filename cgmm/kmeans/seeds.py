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

from cgmm.inference.feasible import Rng
from cgmm.kmeans.loop import Nodes, Rule, Step, lloyd, nearest_rule
from cgmm.kmeans.seeding import chunklet_seeds, far_points, random_points, taking_turns
from cgmm.network import Graph, edgeless
from cgmm.numerics import FloatArray, IntArray, best_first

# Each start is tried for three iterations that know chunklets alone, the best four of them for two
# with all relations, which cost more.
FREE_STEPS, N_KEPT, BOUND_STEPS = 3, 4, 2


def _means_of_parts(X: FloatArray, responsibilities: FloatArray) -> FloatArray:
    """The mean of each part; of all points where a part is empty, which the loop then fills."""
    counts = responsibilities.sum(axis=0)[:, None]
    means = (responsibilities.T @ X) / np.maximum(counts, 1)
    return np.where(counts > 0, means, X.mean(axis=0))


def _plus_plus(X: FloatArray, node_of: IntArray, n_clusters: int, rng: Rng) -> FloatArray:
    return _means_of_parts(X, far_points(X, n_clusters, rng))


def _random(X: FloatArray, node_of: IntArray, n_clusters: int, rng: Rng) -> FloatArray:
    return _means_of_parts(X, random_points(X, n_clusters, rng))


SEEDINGS = {"chunklets": chunklet_seeds, "k-means++": _plus_plus, "random": _random}


# ---------------------------------------------------------------------------- several


def starts_to_try(init: str, n_clusters: int, chunklets: IntArray, graph: Graph) -> list[str]:
    """The names that ``init`` stands for: "auto" is one start without relations, else several."""
    if init != "auto":
        return [init]
    if (chunklets.max() == len(chunklets) - 1 and len(graph.edges) == 0) or n_clusters == 1:
        return ["k-means++"]
    return taking_turns(["chunklets", "k-means++"], n_clusters)


def most_promising(
    starts: list[FloatArray], nodes: Nodes, graph: Graph, rule: Rule
) -> tuple[FloatArray, IntArray | None]:
    """The start that a few iterations bring to the lowest objective, as it is after them.

    Its centres, and its assignment where relations between nodes have had a say in it.
    """
    if len(starts) == 1:
        return starts[0], None
    free = edgeless(len(nodes.means))
    steps = [_after(FREE_STEPS, nodes, free, start, nearest_rule) for start in starts]
    if len(graph.edges) == 0:
        return _by_objective(steps)[0].centres, None
    best = _by_objective(steps)[:N_KEPT]
    chosen, *_ = _by_objective(
        [_after(BOUND_STEPS, nodes, graph, step.centres, rule) for step in best]
    )
    return chosen.centres, chosen.labels


def _by_objective(steps: list[Step]) -> list[Step]:
    return [steps[i] for i in best_first([-step.objective for step in steps])]


def _after(n_steps: int, nodes: Nodes, graph: Graph, centres: FloatArray, rule: Rule) -> Step:
    return next(islice(lloyd(nodes, graph, centres, rule), n_steps, None))
