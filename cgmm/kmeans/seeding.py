"""Seeds and first responsibilities, from points and their chunklets: no family. Chapters 3, 6, 11.

=======  ==================================================================
N, D     points and dimensions; K components, or clusters
r_ik     responsibilities of the start; one where x_i is in a seed's part
node_of  (N,) chunklet of each point
=======  ==================================================================
"""

from __future__ import annotations

from itertools import cycle, islice

import numpy as np
from scipy.spatial.distance import cdist

from cgmm.kmeans.loop import Nodes, Step, lloyd, nearest_rule
from cgmm.network import Graph, edgeless
from cgmm.numerics import FloatArray, IntArray, best_first
from cgmm.runs import Rng

# The more components, the more rarely each gets a seed; from five on so many starts are tried.
MOST_TRIED = 12
# Each start of K-means is tried for so many iterations, which know chunklets alone.
FREE_STEPS = 6


def nearest(X: FloatArray, centres: FloatArray) -> FloatArray:
    """Responsibilities that give each point to its nearest centre, as K-means does.

    Parameters
    ----------
    X : (N, D) array
        The points.
    centres : (K, D) array
        The centres.

    Returns
    -------
    (N, K) array
        One in each row, zeros elsewhere; the first of several equally near centres.

    Examples
    --------
    >>> nearest(np.array([[0.0], [9.0]]), np.array([[1.0], [8.0]]))
    array([[1., 0.],
           [0., 1.]])
    """
    winner = cdist(X, centres, "sqeuclidean").argmin(axis=1)
    return (winner == np.arange(len(centres))[:, None]).astype(float).T


def far_points(X: FloatArray, n_components: int, rng: Rng) -> FloatArray:
    """Responsibilities from k-means++ seeds: centres far apart, each point to the nearest.

    Parameters
    ----------
    X : (N, D) array
        The points.
    n_components : int
        K.
    rng : RandomState
        Source of randomness.

    Returns
    -------
    (N, K) array
        Hard responsibilities.

    Notes
    -----
    Arthur and Vassilvitskii (2007): each centre is a point drawn with probability proportional to
    its squared distance from the nearest centre so far; of ``2 + log K`` such draws the one that
    leaves the smallest sum is kept. Where all remaining distances are zero (fewer distinct points
    than components) the draw is uniform.

    Examples
    --------
    >>> X = np.array([[0.0], [0.1], [9.0], [9.1]])
    >>> r = far_points(X, 2, np.random.RandomState(0))
    >>> bool((r[0] == r[1]).all() and (r[0] != r[2]).all())
    True
    """
    return nearest(X, seeds(X, n_components, rng, first=X[[rng.randint(len(X))]]))


def seeds(
    X: FloatArray, n_components: int, rng: Rng, *, first: FloatArray, mass: IntArray | float = 1.0
) -> FloatArray:
    """Centres far apart: the first as given, each further one a row of X.

    Parameters
    ----------
    X : (N, D) array
        The points to draw from.
    n_components : int
        K.
    rng : RandomState
        Source of randomness.
    first : (M, D) array
        Centres to begin with, at least one.
    mass : (N,) array or float, default=1
        How much each point weighs in the draws.

    Returns
    -------
    (K, D) array
        The centres, the first ones in front.

    Examples
    --------
    >>> X = np.array([[0.0], [0.1], [9.0]])
    >>> seeds(X, 2, np.random.RandomState(0), first=X[:1]).ravel()
    array([0., 9.])
    """
    n_trials = 2 + int(np.log(n_components))
    centres, closest = list(first), cdist(first, X, "sqeuclidean").min(axis=0)
    while len(centres) < n_components:
        candidates = draw_indices(mass * closest, n_trials, rng)
        options = np.minimum(closest, cdist(X[candidates], X, "sqeuclidean"))
        best = best_first([-np.sum(mass * option) for option in options])[0]
        centres.append(X[candidates[best]])
        closest = options[best]
    return np.array(centres)


def chunklet_seeds(X: FloatArray, node_of: IntArray, n_components: int, rng: Rng) -> FloatArray:
    """Centres to start from: centroids of large chunklets that are far apart.

    Parameters
    ----------
    X : (N, D) array
        The points.
    node_of : (N,) int array
        The chunklet of each point; points that share it are must-linked.
    n_components : int
        K.
    rng : RandomState
        Source of randomness.

    Returns
    -------
    (K, D) array
        The centres.

    Notes
    -----
    k-means++ over centroids of chunklets, drawn by size times squared distance from the centres so
    far; over all nodes where fewer than K chunklets have two points. Basu, Banerjee and Mooney
    (2004), whose seeds by the neighbourhoods of must-links these are, traverse them farthest first,
    which always starts from the same, outermost ones.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [5.0], [6.0], [20.0]])
    >>> node_of = np.array([0, 0, 1, 1, 2])
    >>> sorted(chunklet_seeds(X, node_of, 2, np.random.RandomState(0)).ravel().tolist())
    [0.5, 5.5]
    """
    sizes = np.bincount(node_of)
    sums = np.array([np.bincount(node_of, column) for column in X.T]).T
    centroids = sums / np.maximum(sizes, 1)[:, None]
    chunklets = sizes >= 2
    if chunklets.sum() >= n_components:
        centroids, sizes = centroids[chunklets], sizes[chunklets]
    first = centroids[draw_indices(sizes.astype(float), 1, rng)]
    return seeds(centroids, n_components, rng, first=first, mass=sizes)


def taking_turns(kinds: list[str], n_components: int) -> list[str]:
    """Names of the starts that one run tries: 2 (K + 1), at most 12, the kinds in turn."""
    return list(islice(cycle(kinds), min(2 * (n_components + 1), MOST_TRIED)))


def draw_indices(mass: FloatArray, n_draws: int, rng: Rng) -> IntArray:
    """Indices drawn with probability proportional to ``mass``; uniformly where it is all zero."""
    # Scaled first: squares of tiny distances must not underflow in the sum.
    top = mass.max()
    cumulative = np.cumsum(mass / top) if top > 0 else np.arange(1.0, len(mass) + 1)
    return np.searchsorted(cumulative, rng.uniform(size=n_draws) * cumulative[-1], side="right")


def random_points(X: FloatArray, n_components: int, rng: Rng) -> FloatArray:
    """Responsibilities that give each point to the nearest of K points drawn without replacement.

    Parameters
    ----------
    X : (N, D) array
        The points, N ≥ K.
    n_components : int
        K.
    rng : RandomState
        Source of randomness.

    Returns
    -------
    (N, K) array
        Hard responsibilities.

    Examples
    --------
    >>> random_points(np.array([[0.0], [5.0]]), 2, np.random.RandomState(0)).sum(axis=0)
    array([1., 1.])
    """
    return nearest(X, X[rng.choice(len(X), n_components, replace=False)])


# ---------------------------------------------------------------------------- K-means


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
