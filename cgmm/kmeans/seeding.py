"""Choose initial centres and initial responsibilities from points and their chunklets.

K-means and the mixtures call this file; it does not depend on the family of a component. Chapters
3, 6 and 11 explain these initialisations.

=======  ==================================================================
N, D     number of points and of dimensions, e.g. 150 and 4
K        number of components or clusters, e.g. 3
r_ik     initial responsibility: 1 if the seed nearest to x_i is seed k, else 0
node_of  (N,) chunklet of each point, e.g. [0, 1, 0]
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

# The more components, the more initialisations are needed until each component gets a seed. Never
# make more than this number.
MAX_STARTS = 12
# Candidates for the initial centres are compared after this number of iterations, which ignore
# relations.
N_UNCONSTRAINED_STEPS = 6


def nearest(X: FloatArray, centres: FloatArray) -> FloatArray:
    """Return responsibilities that assign each point to its nearest centre, as K-means does.

    Parameters
    ----------
    X : (N, D) array
        The points.
    centres : (K, D) array
        The centres.

    Returns
    -------
    (N, K) array
        Each row has a one at the nearest centre (the first of several), and zeros elsewhere.

    Examples
    --------
    >>> nearest(np.array([[0.0], [9.0]]), np.array([[1.0], [8.0]]))
    array([[1., 0.],
           [0., 1.]])
    """
    winner = cdist(X, centres, "sqeuclidean").argmin(axis=1)
    return (winner == np.arange(len(centres))[:, None]).astype(float).T


def far_points(X: FloatArray, n_components: int, rng: Rng) -> FloatArray:
    """Return responsibilities that assign each point to the nearest of K seeds of k-means++.

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
        Hard responsibilities, zeros and ones.

    Notes
    -----
    By Arthur and Vassilvitskii (2007), each centre is a point drawn with probability proportional
    to its squared distance from the nearest centre so far. ``2 + log K`` points are drawn, and the
    point that makes the sum of squared distances smallest becomes the centre. If all distances are
    zero, because there are fewer distinct points than components, the draw is uniform.

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
    """Choose K centres: those in ``first``, and further rows of X that are far from each other.

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
        Weight of each point in the draws.

    Returns
    -------
    (K, D) array
        The centres, beginning with the given ones.

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
    """Return initial centres of K-means: centroids of large chunklets that are far apart.

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
        The initial centres.

    Notes
    -----
    This is k-means++ over centroids of chunklets, drawn with probability proportional to size times
    squared distance from the nearest centre so far. If fewer than K chunklets have at least two
    points, single points are drawn too. Seeds from chunklets are due to Basu, Banerjee and Mooney
    (2004), who always choose the farthest chunklet, so their seeds are always the outermost ones.

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


def alternate_kinds(kinds: list[str], n_components: int) -> list[str]:
    """Return the kind of each of min(2 (K + 1), 12) initialisations: ``kinds``, alternating."""
    return list(islice(cycle(kinds), min(2 * (n_components + 1), MAX_STARTS)))


def draw_indices(mass: FloatArray, n_draws: int, rng: Rng) -> IntArray:
    """Draw indices with probability proportional to ``mass``, or uniformly if all are zero."""
    # Divide by the maximum, because the sum of tiny squared distances might underflow.
    top = mass.max()
    cumulative = np.cumsum(mass / top) if top > 0 else np.arange(1.0, len(mass) + 1)
    return np.searchsorted(cumulative, rng.uniform(size=n_draws) * cumulative[-1], side="right")


def random_points(X: FloatArray, n_components: int, rng: Rng) -> FloatArray:
    """Return responsibilities that assign each point to the nearest of K randomly drawn points.

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
        Hard responsibilities, zeros and ones.

    Examples
    --------
    >>> random_points(np.array([[0.0], [5.0]]), 2, np.random.RandomState(0)).sum(axis=0)
    array([1., 1.])
    """
    return nearest(X, X[rng.choice(len(X), n_components, replace=False)])


# ---------------------------------------------------------------------------- K-means


def _compute_means(X: FloatArray, r: FloatArray) -> FloatArray:
    """Return the mean of each cluster, or the mean of all points for an empty cluster."""
    counts = r.sum(axis=0)[:, None]
    return np.where(counts > 0, (r.T @ X) / np.maximum(counts, 1), X.mean(axis=0))


SEEDINGS = {
    "chunklets": chunklet_seeds,
    "k-means++": lambda X, node_of, K, rng: _compute_means(X, far_points(X, K, rng)),
    "random": lambda X, node_of, K, rng: _compute_means(X, random_points(X, K, rng)),
}


def choose_seedings(init: str, n_clusters: int, chunklets: IntArray, graph: Graph) -> list[str]:
    """Return the kind of each initialisation; "auto" makes several only if there are relations."""
    if init != "auto":
        return [init]
    if (chunklets.max() == len(chunklets) - 1 and len(graph.edges) == 0) or n_clusters == 1:
        return ["k-means++"]
    return alternate_kinds(["chunklets", "k-means++"], n_clusters)


def choose_best_start(starts: list[FloatArray], nodes: Nodes) -> FloatArray:
    """Run some iterations from each start (K, D); return the centres of lowest objective.

    The iterations ignore edges. A single start is returned unchanged.
    """
    if len(starts) == 1:
        return starts[0]
    reached = [run_without_edges(nodes, start) for start in starts]
    return reached[best_first([-step.objective for step in reached])[0]].centres


def run_without_edges(nodes: Nodes, start: FloatArray) -> Step:
    """Run ``N_UNCONSTRAINED_STEPS`` iterations that ignore edges; return the last step."""
    steps = lloyd(nodes, edgeless(len(nodes.means)), start, nearest_rule)
    return next(islice(steps, N_UNCONSTRAINED_STEPS, None))
