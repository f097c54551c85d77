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
from operator import attrgetter

import numpy as np
from scipy.spatial.distance import cdist

from cgmm.inference.colour_search import Rng
from cgmm.kmeans.loop import Nodes, Rule, Step, lloyd, nearest_rule
from cgmm.mixture import far_points, random_points
from cgmm.mixture.seeding import taking_turns
from cgmm.network import Graph, edgeless
from cgmm.numerics import FloatArray, IntArray

# Each start is tried for three iterations that know chunklets alone, the best four of them for two
# with all relations, which cost more.
FREE_STEPS, N_KEPT, BOUND_STEPS = 3, 4, 2


def chunklet_seeds(X: FloatArray, node_of: IntArray, n_clusters: int, rng: Rng) -> FloatArray:
    """Centres to start from: chunklets that are large and far apart.

    Parameters
    ----------
    X : (N, D) array
        The points.
    node_of : (N,) int array
        The chunklet of each point; points that share it are must-linked.
    n_clusters : int
        K.
    rng : RandomState
        Source of randomness.

    Returns
    -------
    (K, D) array
        The start.

    Notes
    -----
    After Basu, Banerjee and Mooney (2004), who traverse chunklets farthest first, their distances
    weighted by their sizes. That one rule always starts from the same, outermost chunklets; here
    k-means++ draws them, with a probability proportional to size times squared distance, and each
    centre is the mean of the chunklets nearest to the one drawn. With fewer than K chunklets each
    of them is a seed, and the others are those centres of k-means++ over all points that lie
    farthest from the seeds so far.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [5.0], [6.0], [20.0]])
    >>> chunklet_seeds(X, np.array([0, 0, 1, 1, 2]), 2, np.random.RandomState(0)).ravel()
    array([0.5, 5.5])
    """
    sizes = np.bincount(node_of)
    is_chunklet = sizes >= 2
    sums = np.array([np.bincount(node_of, column) for column in X.T]).T
    means = sums / np.maximum(sizes, 1)[:, None]
    if is_chunklet.sum() >= n_clusters:
        inside = is_chunklet[node_of]
        moved = means[node_of[inside]]
        return _means_of_parts(moved, far_points(moved, n_clusters, rng))
    seeds = list(means[is_chunklet])
    candidates = _means_of_parts(X, far_points(X, n_clusters, rng))
    if not seeds:
        return candidates
    while len(seeds) < n_clusters:
        seeds.append(candidates[cdist(candidates, np.array(seeds)).min(axis=1).argmax()])
    return np.array(seeds)


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
        return ["chunklets"]
    return taking_turns(["chunklets", "k-means++"], n_clusters)


def most_promising(starts: list[FloatArray], nodes: Nodes, graph: Graph, rule: Rule) -> FloatArray:
    """The start that a few iterations bring to the lowest objective, after these iterations."""
    if len(starts) == 1:
        return starts[0]
    objective, free = attrgetter("objective"), edgeless(len(nodes.means))
    steps = [_after(FREE_STEPS, nodes, free, start, nearest_rule) for start in starts]
    if len(graph.edges):
        best = sorted(steps, key=objective)[:N_KEPT]
        steps = [_after(BOUND_STEPS, nodes, graph, step.centres, rule) for step in best]
    return min(steps, key=objective).centres


def _after(n_steps: int, nodes: Nodes, graph: Graph, centres: FloatArray, rule: Rule) -> Step:
    return next(islice(lloyd(nodes, graph, centres, rule), n_steps, None))
