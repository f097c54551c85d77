"""Where EM starts: responsibilities first, then the parameters that one M-step makes of them.

=====  ==================================================================
N, D   points and dimensions; K components
r_ik   responsibilities of the start
=====  ==================================================================
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cgmm.em import Posterior, m_step
from cgmm.gaussian import Parameters, Pooling
from cgmm.numerics import blocks
from cgmm.weights import closed_form

__all__ = [
    "STARTS",
    "from_responsibilities",
    "kmeans_plus_plus",
    "nearest",
    "random_points",
    "random_responsibilities",
]

Rng = np.random.RandomState


def from_responsibilities(
    X: np.ndarray, responsibilities: np.ndarray, pool: Pooling, *, reg_covar: float = 0.0
) -> Parameters:
    """The parameters that one M-step makes of given responsibilities.

    Parameters
    ----------
    X : (N, D) array
        The points.
    responsibilities : (N, K) array
        r_ik ≥ 0, rows summing to one.
    pool : Pooling
        An entry of ``gaussian.POOLINGS``.
    reg_covar : float, default=0
        Added to each covariance's diagonal.

    Returns
    -------
    Parameters
        A component without any responsibility gets the mean and covariance of all the data.

    Examples
    --------
    >>> from cgmm.gaussian import POOLINGS
    >>> X = np.array([[0.0], [2.0], [6.0]])
    >>> theta = from_responsibilities(X, np.eye(2)[[0, 0, 1]], POOLINGS["full"], reg_covar=1e-6)
    >>> theta.means.ravel(), theta.weights.round(3)
    (array([1., 6.]), array([0.667, 0.333]))
    """
    n_components = responsibilities.shape[1]
    everywhere = np.ones((len(X), 1))
    alone = Parameters(np.ones(1), np.zeros((1, X.shape[1])), np.zeros((1, X.shape[1], X.shape[1])))
    counts = everywhere.sum(axis=0)
    whole = m_step(
        X, alone, Posterior(everywhere, counts, 0.0), pool, closed_form, reg_covar=reg_covar
    )
    fallback = Parameters(*(np.repeat(part, n_components, axis=0) for part in whole))
    posterior = Posterior(responsibilities, responsibilities.sum(axis=0), 0.0)
    return m_step(X, fallback, posterior, pool, closed_form, reg_covar=reg_covar)


def nearest(X: np.ndarray, centres: np.ndarray) -> np.ndarray:
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
    closest, winner = np.full(len(X), np.inf), np.zeros(len(X), dtype=np.intp)
    for k, centre in enumerate(centres):
        distances = _squared_distances(X, centre)
        nearer = distances < closest
        closest[nearer], winner[nearer] = distances[nearer], k
    responsibilities = np.zeros((len(centres), len(X))).T
    responsibilities[np.arange(len(X)), winner] = 1
    return responsibilities


def kmeans_plus_plus(X: np.ndarray, n_components: int, rng: Rng) -> np.ndarray:
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
    >>> r = kmeans_plus_plus(X, 2, np.random.RandomState(0))
    >>> bool((r[0] == r[1]).all() and (r[0] != r[2]).all())
    True
    """
    n_trials = 2 + int(np.log(n_components))
    chosen = [rng.randint(len(X))]
    closest = _squared_distances(X, X[chosen[0]])
    while len(chosen) < n_components:
        candidates = _draw(closest, n_trials, rng)
        options = [np.minimum(closest, _squared_distances(X, X[c])) for c in candidates]
        best = int(np.argmin([option.sum() for option in options]))
        chosen.append(candidates[best])
        closest = options[best]
    return nearest(X, X[chosen])


def _squared_distances(X: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """(N,) |x_i - centre|², by subtraction: an offset of the data costs no digits."""
    distances = np.empty(len(X))
    for part in blocks(len(X), X.shape[1]):
        apart = X[part].T - centre[:, None]
        np.einsum("db,db->b", apart, apart, out=distances[part])
    return distances


def _draw(mass: np.ndarray, n_draws: int, rng: Rng) -> np.ndarray:
    """Indices drawn with probability proportional to ``mass``; uniformly where it is all zero."""
    # Scaled first: squares of tiny distances must not underflow in the sum.
    top = mass.max()
    cumulative = np.cumsum(mass / top) if top > 0 else np.arange(1.0, len(mass) + 1)
    return np.searchsorted(cumulative, rng.uniform(size=n_draws) * cumulative[-1], side="right")


def random_responsibilities(X: np.ndarray, n_components: int, rng: Rng) -> np.ndarray:
    """Responsibilities drawn uniformly and normalised: every component starts near the middle.

    Parameters
    ----------
    X : (N, D) array
        The points; only their number counts.
    n_components : int
        K.
    rng : RandomState
        Source of randomness.

    Returns
    -------
    (N, K) array
        Soft responsibilities.

    Examples
    --------
    >>> random_responsibilities(np.zeros((3, 1)), 2, np.random.RandomState(0)).sum(axis=1)
    array([1., 1., 1.])
    """
    responsibilities = rng.uniform(size=(len(X), n_components))
    return responsibilities / responsibilities.sum(axis=1, keepdims=True)


def random_points(X: np.ndarray, n_components: int, rng: Rng) -> np.ndarray:
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


STARTS: dict[str, Callable[[np.ndarray, int, Rng], np.ndarray]] = {
    "k-means++": kmeans_plus_plus,
    "random": random_responsibilities,
    "random_from_data": random_points,
}
"""Every start by the name under which ``init_params`` accepts it."""
