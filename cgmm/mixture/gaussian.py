"""Gaussian components: densities, weighted moments, four poolings of one scatter, sampling.

Letters, as in the book:

=====  ====================================================================
N, D   number of points x_i and of their dimensions
K      number of components
π_k    weights; μ_k means; Σ_k covariances, always as full (D, D) matrices
r_ik   responsibility of component k for point i
N_k    Σ_i r_ik, the expected count of component k
S_k    Σ_i r_ik (x_i - μ_k)(x_i - μ_k)ᵀ, the weighted scatter
=====  ====================================================================

The density and the moments exist in two forms that agree to rounding. The *expanded* form writes
both as one matrix product with the sufficient statistics φ(x) = (1, x, x xᵀ) of the exponential
family; it is the faster one in few dimensions, and loses digits where a component is tiny beside
the extent of the data. The *direct* form subtracts each mean first and never does. Which one runs
is decided from the data: the expanded form only where it costs at most five of the sixteen digits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from cgmm.numerics import FloatArray, IntArray, blocks

# The expanded form is used while (extent of the data / smallest standard deviation)² stays below
# this.
SAFE_RATIO = 1e5

# Points in a block, at least: fewer, and the calls cost more than the cache saves.
AT_LEAST = 1024

# Above this dimension the products x xᵀ outweigh what the expanded form saves.
MAX_EXPANDED_DIMENSION = 24

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

    def log_density(self, X: FloatArray) -> FloatArray:
        """(N, K) log N(x_i | μ_k, Σ_k): :func:`log_density`."""
        return log_density(X, self)

    def log_joint(self, X: FloatArray) -> FloatArray:
        """(N, K) log π_k + log N(x_i | μ_k, Σ_k): :func:`log_joint`."""
        return log_joint(X, self)


# ---------------------------------------------------------------------------- density


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
    # [lu2007, eq. 2.2]: the factor of point i if z_i = k
    return _log_densities(X, parameters, np.zeros(len(parameters.means)))


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
    possible = parameters.weights > 0
    log_weights = np.log(np.where(possible, parameters.weights, 1))
    # [lu2007, eq. 2.1]: the factor of point i if z_i = k
    log_values = _log_densities(X, parameters, log_weights)
    log_values[:, ~possible] = -np.inf
    return log_values


def _log_densities(X: FloatArray, parameters: Parameters, offsets: FloatArray) -> FloatArray:
    """Log-densities plus one offset a component, in the form that suits the data."""
    diagonal = is_diagonal(parameters.covariances)
    whiteners, log_dets = (_reciprocals if diagonal else _whiteners)(parameters.covariances)
    centre, radius2 = extent_of(X)
    means = parameters.means - centre
    # [schmidt2016, sect. 3.2]: the part that does not depend on the point
    constants = offsets - 0.5 * (log_dets + X.shape[1] * np.log(2 * np.pi))
    statistics = sufficient_statistics(X.shape[1], diagonal)
    # The trace of the precision bounds its largest eigenvalue from above.
    traces = np.square(whiteners).reshape(len(means), -1).sum(axis=1)
    reach = (radius2 + np.square(means).sum(axis=1)) * traces
    if statistics is not None and reach.max() <= SAFE_RATIO:
        return _expanded_densities(X, centre, means, whiteners, constants, statistics)
    return _direct_densities(X, centre, means, whiteners, constants)


def _reciprocals(covariances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The whiteners of diagonal covariances, (K, D) reciprocal deviations alone, and log|Σ_k|."""
    variances = np.einsum("kdd->kd", covariances)
    if not ((variances >= SMALLEST_DEVIATION**2) & (variances < np.inf)).all():
        raise ValueError(_name_singular(covariances))
    deviations = np.sqrt(variances)
    return 1 / deviations, 2 * np.log(deviations).sum(axis=1)


def _whiteners(covariances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """One triangular factor a component: W_k with W_k Σ_k W_kᵀ = I, and log|Σ_k|."""
    try:
        factors = np.linalg.cholesky(covariances)
    except np.linalg.LinAlgError:
        factors = None
    if factors is None or not np.isfinite(factors).all():
        raise ValueError(_name_singular(covariances))
    diagonals = np.einsum("kdd->kd", factors)
    # What a variable adds to those before it: below the rounding of its variance, it is noise.
    variances = np.einsum("kdd->kd", covariances)
    rounding = 8 * np.finfo(float).eps * variances.shape[1] * variances
    if diagonals.min() < SMALLEST_DEVIATION or (np.square(diagonals) <= rounding).any():
        raise ValueError(_name_singular(covariances))
    return np.linalg.inv(factors), 2 * np.log(diagonals).sum(axis=1)


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


def is_diagonal(covariances: FloatArray) -> bool:
    """Whether every matrix is zero off its diagonal."""
    off_diagonal = ~np.eye(covariances.shape[1], dtype=bool)
    return not covariances[:, off_diagonal].any()


def extent_of(X: FloatArray) -> tuple[FloatArray, float]:
    """From where to measure the data, and the largest squared distance from there.

    The origin if it lies in the data's bounding box (nothing is to be subtracted then), else the
    box's centre, so that a common offset costs no digits.
    """
    low, high = X.min(axis=0), X.max(axis=0)
    inside = bool((low <= 0).all() and (high >= 0).all())
    centre = np.zeros(X.shape[1]) if inside else low / 2 + high / 2
    with np.errstate(over="ignore"):
        return centre, float(np.square(np.maximum(high - centre, centre - low)).sum())


class Statistics:
    """φ(x) = (1, x, products x_a x_b): all pairs a ≤ b, or the squares alone."""

    def __init__(self, n_dims: int, rows: IntArray, columns: IntArray):
        self.n_dims, self.rows, self.columns = n_dims, rows, columns
        self.size = 1 + n_dims + len(rows)
        self.squares_only = len(rows) == n_dims
        self._buffer = np.empty(0)

    def blocks(self, n_points: int) -> Iterator[slice]:
        """Slices whose φ fills a quarter of the cache; the rest is for its factors."""
        return blocks(n_points, 4 * self.size, at_least=AT_LEAST)

    def of(self, x: FloatArray) -> FloatArray:
        """φ of the columns of ``x`` (D, B): (size, B), overwritten by the next call."""
        phi = self._rows(x.shape[1])
        phi[0] = 1
        phi[1 : self.n_dims + 1] = x
        self.products(phi[1 : self.n_dims + 1])
        return phi

    def products(self, x: FloatArray) -> FloatArray:
        """The products alone, (size - 1 - D, B), overwritten by the next call."""
        products = self._rows(x.shape[1])[1 + self.n_dims :]
        if self.squares_only:
            return np.square(x, out=products)
        start = 0
        for a in range(self.n_dims):
            stop = start + self.n_dims - a
            np.multiply(x[a], x[a:], out=products[start:stop])
            start = stop
        return products

    def _rows(self, width: int) -> FloatArray:
        """The buffer, (size, width)."""
        if self._buffer.size < self.size * width:
            self._buffer = np.empty(self.size * width)
        return self._buffer[: self.size * width].reshape(self.size, width)

    def unpack(self, products: FloatArray) -> FloatArray:
        """Symmetric (K, D, D) matrices from the (K, size - 1 - D) sums of products."""
        matrices = np.zeros((len(products), self.n_dims, self.n_dims))
        matrices[:, self.rows, self.columns] = products
        matrices[:, self.columns, self.rows] = products
        return matrices

    def pack(self, matrices: FloatArray) -> FloatArray:
        """The entries of symmetric matrices that meet the products, off-diagonal ones doubled."""
        twice = np.where(self.rows == self.columns, 1, 2)
        return twice * matrices[:, self.rows, self.columns]


def from_centre(x: FloatArray, centre: FloatArray) -> FloatArray:
    """The columns of ``x`` measured from ``centre``; ``x`` itself where that is the origin."""
    return x - centre[:, None] if centre.any() else x


def sufficient_statistics(n_dims: int, diagonal: bool) -> Statistics | None:
    """φ for D dimensions, or None where its products would cost more than they save."""
    if diagonal:
        return Statistics(n_dims, np.arange(n_dims), np.arange(n_dims))
    if n_dims <= MAX_EXPANDED_DIMENSION:
        return Statistics(n_dims, *np.triu_indices(n_dims))
    return None


def _expanded_densities(
    X: FloatArray,
    centre: FloatArray,
    means: FloatArray,
    whiteners: FloatArray,
    constants: FloatArray,
    statistics: Statistics,
) -> FloatArray:
    """-½ (x_i - μ_k)ᵀ Σ_k⁻¹ (x_i - μ_k) + c_k, one product φ(x_i) · η_k (natural parameters)."""
    if statistics.squares_only:
        squares = np.square(whiteners)
        linear = squares * means
    else:
        precisions = whiteners.transpose(0, 2, 1) @ whiteners
        squares = statistics.pack(precisions)
        linear = np.einsum("kde,ke->kd", precisions, means)
    constants = constants - 0.5 * np.einsum("kd,kd->k", linear, means)
    natural = np.column_stack([constants, linear, -0.5 * squares])
    densities = np.empty((len(means), len(X)))
    for part in statistics.blocks(len(X)):
        phi = statistics.of(from_centre(X[part].T, centre))
        np.matmul(natural, phi, out=densities[:, part])
    return densities.T


def _direct_densities(
    X: FloatArray,
    centre: FloatArray,
    means: FloatArray,
    whiteners: FloatArray,
    constants: FloatArray,
) -> FloatArray:
    """The same from the squared length of the whitened difference W_k (x_i - μ_k)."""
    densities = np.empty((len(means), len(X)))
    diagonal = whiteners.ndim == 2
    for part in blocks(len(X), 2 * means.size):
        apart = from_centre(X[part].T, centre) - means[:, :, None]
        whitened = whiteners[:, :, None] * apart if diagonal else whiteners @ apart
        with np.errstate(over="ignore"):  # infinitely far: density zero
            block = np.einsum("kdb,kdb->kb", whitened, whitened, out=densities[:, part])
        block *= -0.5
        block += constants[:, None]
    return densities.T


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
