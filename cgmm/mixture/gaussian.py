"""Gaussian components: the parameters θ, densities in logs, and sampling. Chapter 1.

Letters, as in the book:

=====  ====================================================================
N, D   number of points x_i and of their dimensions
K      number of components
π_k    weights; μ_k means; Σ_k covariances, always as full (D, D) matrices
W_k    whitener, W_k Σ_k W_kᵀ = I: the inverse of a Cholesky factor of Σ_k
c_k    the part of the log-density that does not depend on the point
=====  ====================================================================

The log-density is ``c_k - ½ |W_k (x - μ_k)|²``. Where no digits are at stake, the same is one
product φ(x) · η_k with the statistics φ of :mod:`cgmm.mixture.exponential_form`, in half the time.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np

from cgmm.mixture.exponential_form import extent_of, is_diagonal, natural_parameters, statistics_of
from cgmm.numerics import FloatArray, IntArray, blocks

# Below this standard deviation the squares of its reciprocal overflow.
SMALLEST_DEVIATION = 1e-153


class Parameters(NamedTuple):
    """θ, the parameters of a Gaussian mixture."""

    weights: FloatArray
    """(K,) π_k ≥ 0, summing to one."""
    means: FloatArray
    """(K, D) μ_k."""
    covariances: FloatArray
    """(K, D, D) Σ_k, symmetric positive definite."""

    def log_density(self, X: FloatArray, log_weights: FloatArray | float = 0.0) -> FloatArray:
        """(N, K) log N(x_i | μ_k, Σ_k), plus what is given for each component."""
        whiteners, log_dets = whiten(self.covariances)
        offsets = np.broadcast_to(log_weights, log_dets.shape)
        # [schmidt2016, sect. 3.2]: the part that does not depend on the point
        constants = offsets - 0.5 * (log_dets + X.shape[1] * np.log(2 * np.pi))
        centre, radius2 = extent_of(X)
        means = self.means - centre
        natural = natural_parameters(means, whiteners, constants, radius2)
        densities = np.empty((len(means), len(X)))
        if natural is not None:
            for part, phi in statistics_of(X, centre, diagonal=whiteners.ndim == 2):
                np.matmul(natural, phi, out=densities[:, part])
        else:
            for part in blocks(len(X), 2 * means.size):
                apart = (X[part] - centre).T - means[:, :, None]
                white = whiteners @ apart if whiteners.ndim == 3 else whiteners[:, :, None] * apart
                with np.errstate(over="ignore"):  # infinitely far: density zero
                    distances = np.einsum("kdb,kdb->kb", white, white)
                # [lu2007, eq. 2.2]: the factor of point i if z_i = k
                densities[:, part] = constants[:, None] - 0.5 * distances
        densities[offsets == -np.inf] = -np.inf
        return densities.T

    def with_weights(self, weights: FloatArray) -> Parameters:
        """The same components with other weights."""
        return self._replace(weights=weights)

    def log_joint(self, X: FloatArray) -> FloatArray:
        """(N, K) log π_k + log N(x_i | μ_k, Σ_k): :func:`log_joint`."""
        with np.errstate(divide="ignore"):
            # [lu2007, eq. 2.1]: the factor of point i and of its weight, if z_i = k
            return self.log_density(X, np.log(self.weights))


def log_density(X: FloatArray, parameters: Parameters) -> FloatArray:
    """Log-density of every point under every component, without the weights.

    Parameters
    ----------
    X : (N, D) array
        The points.
    parameters : Parameters
        θ; its weights are not used.

    Returns
    -------
    (N, K) array
        ``log N(x_i | μ_k, Σ_k)`` in nats, column-major.

    Raises
    ------
    ValueError
        If a covariance is not positive definite; the component is named.

    Notes
    -----
    Computes ``-(D log 2π + log|Σ_k| + (x_i - μ_k)ᵀ Σ_k⁻¹ (x_i - μ_k)) / 2``, which schmidt2016 §3.2
    prints with the opposite sign.

    Examples
    --------
    >>> theta = Parameters(np.ones(1), np.zeros((1, 2)), np.eye(2)[None])
    >>> log_density(np.array([[0.0, 0.0], [3.0, 4.0]]), theta).round(4)
    array([[ -1.8379],
           [-14.3379]])
    """
    return parameters.log_density(X)


def log_joint(X: FloatArray, parameters: Parameters) -> FloatArray:
    """log p(x_i, z_i = k | θ) = log π_k + log N(x_i | μ_k, Σ_k).

    Parameters
    ----------
    X : (N, D) array
        The points.
    parameters : Parameters
        θ.

    Returns
    -------
    (N, K) array
        In nats, column-major; ``-inf`` where π_k = 0.

    Raises
    ------
    ValueError
        If a covariance is not positive definite; the component is named.

    Examples
    --------
    >>> theta = Parameters(np.array([0.5, 0.5]), np.zeros((2, 1)), np.ones((2, 1, 1)))
    >>> log_joint(np.zeros((1, 1)), theta).round(4)
    array([[-1.6121, -1.6121]])
    """
    return parameters.log_joint(X)


# ---------------------------------------------------------------------------- whitening


def whiten(covariances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """W_k of each component, (K, D, D) or, for diagonal ones, (K, D); and log|Σ_k|."""
    if is_diagonal(covariances):
        variances = np.einsum("kdd->kd", covariances)
        if not ((variances >= SMALLEST_DEVIATION**2) & (variances < np.inf)).all():
            raise ValueError(_name_singular(covariances))
        deviations = np.sqrt(variances)
        return 1 / deviations, 2 * np.log(deviations).sum(axis=1)
    factors = _cholesky(covariances)
    whiteners = cast("FloatArray", np.linalg.inv(factors))
    return whiteners, 2 * np.log(np.einsum("kdd->kd", factors)).sum(axis=1)


def _cholesky(covariances: FloatArray) -> FloatArray:
    """One triangular factor a component, or an error that names the one without."""
    try:
        factors = cast("FloatArray", np.linalg.cholesky(covariances))
    except np.linalg.LinAlgError:
        raise ValueError(_name_singular(covariances)) from None
    diagonals = np.einsum("kdd->kd", factors)
    # What a variable adds to those before it: below the rounding of its variance, it is noise.
    variances = np.einsum("kdd->kd", covariances)
    rounding = 8 * np.finfo(float).eps * variances.shape[1] * variances
    usable = (diagonals >= SMALLEST_DEVIATION) & (np.square(diagonals) > rounding)
    if not usable.all() or not np.isfinite(factors).all():
        raise ValueError(_name_singular(covariances))
    return factors


def _name_singular(covariances: FloatArray) -> str:
    """Say which covariance has no Cholesky factor, and what helps."""
    finite = np.isfinite(covariances).all(axis=(1, 2))
    smallest = np.full(len(covariances), np.nan)
    smallest[finite] = np.linalg.eigvalsh(covariances[finite])[:, 0]
    sizes = np.where(finite, np.abs(covariances).max(axis=(1, 2)), 1)
    k = int(np.argmin(np.nan_to_num(smallest, nan=-np.inf) / np.where(sizes > 0, sizes, 1)))
    return (
        f"the covariance of component {k} is not positive definite (smallest eigenvalue "
        f"{smallest[k]:.3g}): the points that it explains lie in a subspace, or there are too few "
        "of them. Increase reg_covar, use fewer components, or a covariance_type with fewer "
        "parameters."
    )


# ---------------------------------------------------------------------------- sampling


def sample(
    parameters: Parameters, n_samples: int, rng: np.random.Generator | np.random.RandomState
) -> tuple[FloatArray, IntArray]:
    """Draw points and their components from the mixture.

    Parameters
    ----------
    parameters : Parameters
        θ.
    n_samples : int
        How many points to draw.
    rng : numpy Generator or RandomState
        Source of randomness.

    Returns
    -------
    X : (n_samples, D) array
        The points, grouped by component.
    z : (n_samples,) int array
        The component of each.

    Examples
    --------
    >>> theta = Parameters(np.array([0.2, 0.8]), np.array([[-9.0], [9.0]]), np.ones((2, 1, 1)))
    >>> X, z = sample(theta, 1000, np.random.default_rng(0))
    >>> X.shape, bool(((X[:, 0] > 0) == (z == 1)).all())
    ((1000, 1), True)
    """
    weights, means, covariances = parameters
    counts = rng.multinomial(n_samples, weights / weights.sum())
    z = np.repeat(np.arange(len(weights)), counts)
    noise = rng.standard_normal((n_samples, means.shape[1]))
    factors = np.linalg.cholesky(covariances)
    parts = np.split(noise, np.cumsum(counts)[:-1])
    return np.concatenate(
        [mean + part @ factor.T for mean, factor, part in zip(means, factors, parts, strict=True)]
    ), z
