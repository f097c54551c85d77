"""Gaussian components: parameters θ, log-densities and sampling. Chapter 1.

All estimators with Gaussian components use this file. Letters, as in the book:

=====  ====================================================================
N, D   number of points x_i and of their dimensions
K      number of components
π_k    weights; μ_k means; Σ_k covariances: matrices, or their diagonals alone
W_k    whitener, W_k Σ_k W_kᵀ = I: the inverse of a Cholesky factor of Σ_k
c_k    the part of the log-density that does not depend on the point
=====  ====================================================================

The log-density is ``c_k - ½ |W_k (x - μ_k)|²``. If rounding permits, one matrix product computes
the log-densities of a whole block of points (:mod:`cgmm.mixture.products`).

Covariances are (K, D, D) matrices. If all of them are diagonal, they are stored as (K, D)
variances, which need 1/D of the memory and time.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np
from scipy.linalg.blas import dtrmm

from cgmm.given import as_points
from cgmm.mixture import products
from cgmm.numerics import FloatArray, IntArray, block_height, cut_evenly

# The squared reciprocal of a smaller standard deviation would overflow.
SMALLEST_DEVIATION = 1e-153


class Parameters(NamedTuple):
    """θ, the parameters of a Gaussian mixture."""

    weights: FloatArray
    """(K,) π_k ≥ 0, summing to one."""
    means: FloatArray
    """(K, D) μ_k."""
    covariances: FloatArray
    """(K, D, D) Σ_k, symmetric positive definite; or (K, D) variances, where Σ_k are diagonal."""

    @property
    def full_covariances(self) -> FloatArray:
        """(K, D, D) covariances Σ_k, as matrices even if only variances are stored."""
        if self.covariances.ndim == 3:
            return self.covariances
        return self.covariances[:, :, None] * np.eye(self.covariances.shape[1])

    @property
    def variances(self) -> FloatArray:
        """(K, D) diagonals of the covariances Σ_k, even if matrices are stored."""
        if self.covariances.ndim == 2:
            return self.covariances
        return np.einsum("kdd->kd", self.covariances)

    def log_density(self, X: FloatArray) -> FloatArray:
        """Return (N, K) log N(x_i | μ_k, Σ_k), column-major."""
        X = as_points(X)
        # Test an attribute instead of the type, because the file of `PointsWithGaps` imports this.
        if getattr(X, "has_gaps", False):
            return cast("FloatArray", cast("Any", X).log_density(self))
        whiteners, log_dets = whiten(self.covariances)
        n_components, n_dims = self.means.shape
        # [schmidt2016, sect. 3.2]: the part that does not depend on the point
        constants = -0.5 * (log_dets + n_dims * np.log(2 * np.pi))
        centred = self.means - self.means.mean(axis=0)
        natural = products.natural_parameters(centred, whiteners, constants)
        densities = np.empty((n_components, len(X)))
        for part in cut_evenly(len(X), block_height(n_components, n_dims)):
            phi = products.safe_features(X[part], self.means, whiteners)
            if phi is not None:
                np.matmul(natural, phi, out=densities[:, part])
            else:
                # [lu2007, eq. 2.2]: the factor of point i if z_i = k
                densities[:, part] = constants[:, None] - 0.5 * self.distances(X[part])
        return densities.T

    def distances(self, X: FloatArray) -> FloatArray:
        """Return (K, N) ``|W_k (x - μ_k)|²`` without cancellation: means are subtracted first."""
        whiteners, _ = whiten(self.covariances)
        distances = np.empty((len(self.means), len(X)))
        with np.errstate(over="ignore"):  # an infinite distance correctly gives density zero
            for k, (mean, whitener) in enumerate(zip(self.means, whiteners, strict=True)):
                apart = X.T - mean[:, None]
                if whitener.ndim == 1:
                    apart *= whitener[:, None]
                else:  # a triangular product works in place, in half the time
                    apart = dtrmm(1.0, whitener.T, apart.T, side=1, overwrite_b=1).T
                np.einsum("db,db->b", apart, apart, out=distances[k])
        return distances

    def with_weights(self, weights: FloatArray) -> Parameters:
        """Return the same components with new mixing weights."""
        return self._replace(weights=weights)


def log_density(X: FloatArray, parameters: Parameters) -> FloatArray:
    """Return the log-density of each point under each component, without the weights.

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
        If a covariance is not positive definite; the message names the component.

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


# ---------------------------------------------------------------------------- whitening


@products.cache_last_result
def whiten(covariances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return whiteners W_k, in the shape of the covariances, and (K,) log-determinants log|Σ_k|."""
    if covariances.ndim == 2:
        if not ((covariances >= SMALLEST_DEVIATION**2) & (covariances < np.inf)).all():
            raise ValueError(_describe_singular(covariances))
        deviations = np.sqrt(covariances)
        return 1 / deviations, 2 * np.log(deviations).sum(axis=1)
    factors = _cholesky(covariances)
    whiteners = cast("FloatArray", np.linalg.inv(factors))
    return whiteners, 2 * np.log(np.einsum("kdd->kd", factors)).sum(axis=1)


def _cholesky(covariances: FloatArray) -> FloatArray:
    """Return a Cholesky factor per component, or raise an error that names a singular one."""
    try:
        factors = cast("FloatArray", np.linalg.cholesky(covariances))
    except np.linalg.LinAlgError:
        raise ValueError(_describe_singular(covariances)) from None
    diagonals = np.einsum("kdd->kd", factors)
    # A squared diagonal entry is the variance of a variable given those before it. If it is below
    # the rounding error of the variance itself, it consists of noise.
    variances = np.einsum("kdd->kd", covariances)
    rounding = 8 * np.finfo(float).eps * variances.shape[1] * variances
    usable = (diagonals >= SMALLEST_DEVIATION) & (np.square(diagonals) > rounding)
    if not usable.all() or not np.isfinite(factors).all():
        raise ValueError(_describe_singular(covariances))
    return factors


def _describe_singular(covariances: FloatArray) -> str:
    """Return an error message that names the component with a singular covariance."""
    entries = covariances.reshape(len(covariances), -1)
    finite = np.isfinite(entries).all(axis=1)
    smallest = np.full(len(covariances), np.nan)
    smallest[finite] = (
        covariances[finite] if covariances.ndim == 2 else np.linalg.eigvalsh(covariances[finite])
    ).min(axis=1)
    sizes = np.where(finite, np.abs(entries).max(axis=1), 1)
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
        Number of points to draw.
    rng : numpy Generator or RandomState
        Source of randomness.

    Returns
    -------
    X : (n_samples, D) array
        The points, grouped by component.
    z : (n_samples,) int array
        The component of each point.

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
    if covariances.ndim == 2:
        return means[z] + noise * np.sqrt(covariances)[z], z
    factors = np.linalg.cholesky(covariances)
    parts = np.split(noise, np.cumsum(counts)[:-1])
    return np.concatenate(
        [mean + part @ factor.T for mean, factor, part in zip(means, factors, parts, strict=True)]
    ), z
