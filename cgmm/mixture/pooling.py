"""Families of Gaussians (full, tied, diagonal, spherical), and a prior of their covariances.

All four covariance types use the same statistics and differ in how the M-step pools the scatter
matrices. Chapters 2 and 3.

=====  ====================================================================
N_k    counts; S_k scatter about the weighted means
r_ik   responsibilities q(z_i = k), for any distribution q over assignments
F      the bound, F(q, θ) = E_q[log p(X, z | θ)] + H(q) ≤ log p(X | θ)
ε      reg_covar, added to the diagonal of each covariance
D, K   dimensions of the points, and number of components
ν      degrees of freedom of the prior, e.g. D + 2; Λ its scale matrix (D, D)
=====  ====================================================================

Monotonicity: with ε = 0 the log-evidence never falls from one iteration of EM to the next, because
the E-step makes the bound equal to it and the M-step raises the bound. With ε > 0 this does not
hold. Adding ε to the diagonal maximises, for given responsibilities, the *penalised* bound ::

    F(q, θ) - penalty(θ, N, ε),        penalty = ½ ε Σ_k N_k tr Σ_k⁻¹

so an M-step never lowers the penalised bound. From one iteration to the next the log-evidence can
therefore fall, but by no more than the penalty falls at the same counts N_k.

For components with few points the covariances can have an inverse Wishart prior,
``p(Σ_k) ∝ |Σ_k|^(-(ν + D + 1) / 2) exp(-½ tr Λ Σ_k⁻¹)``. An M-step then maximises the bound plus
``Σ_k log p(Σ_k)``: it adds Λ to each scatter and ν + D + 1 to each count. A shared covariance has
this prior only once. Diagonal covariances have the same density, evaluated at diagonal matrices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np

from cgmm.mixture import products
from cgmm.mixture.family import Statistics, log_joint
from cgmm.mixture.gaussian import Parameters, whiten
from cgmm.mixture.missing import PointsWithGaps
from cgmm.mixture.weights import closed_form
from cgmm.numerics import BoolArray, FloatArray, block_height, cut_evenly

# ------------------------------------------------------------ poolings of covariances


# A component with a smaller expected count is treated as empty: its moments would be denormal.
SMALLEST_COUNT = np.finfo(float).tiny / np.finfo(float).eps
# If a mean moves by more standard deviations than this, cancellation leaves its new variances fewer
# than six correct digits.
MOST_DEVIATIONS = 1e5
# Responsibilities below this share of the largest one are skipped. They change sums by less than
# rounding, even for distant points, and are the majority if components are well separated.
NEGLIGIBLE = np.finfo(float).eps ** 3

# Number of M-steps that compute initial parameters from responsibilities if values are missing.
STEPS_WITH_GAPS = 5


class Pooling(NamedTuple):
    """A family of Gaussians with one covariance type.

    ``combine(counts, scatter)`` returns the covariances of this type that maximise the expected
    log-likelihood, for a scatter (K, D, D), or its diagonals (K, D) for diagonal types. Values that
    components or directions share occur only once: (1, D, D) if tied, (K, 1) if spherical.
    ``diagonal`` and ``shared`` determine the second moments in the statistics: diagonals (K, D),
    their sum (1, D, D) over components, or all (K, D, D). ``n_parameters(K, D)`` is the number of
    free parameters of the covariances. ``shape(K, D)`` is scikit-learn's shape for the type,
    ``expand(array, K, D)`` converts an array of this shape to the covariances of θ, and
    ``reduce(covariances)`` is the inverse.
    """

    combine: Callable[[FloatArray, FloatArray], FloatArray]
    diagonal: bool
    shared: bool
    n_parameters: Callable[[int, int], int]
    shape: Callable[[int, int], tuple[int, ...]]
    expand: Callable[[FloatArray, int, int], FloatArray]
    reduce: Callable[[FloatArray], FloatArray]
    reg_covar: float = 0.0
    """ε, added to the diagonals; see the module's docstring for its effect on monotonicity."""
    prior: CovariancePrior | None = None
    """Prior of the covariances, or None; an M-step takes the mode of their posterior."""

    def start(self, X: FloatArray, responsibilities: FloatArray) -> Parameters:
        """Compute initial parameters from responsibilities by one M-step.

        Parameters
        ----------
        X : (N, D) array
            The points.
        responsibilities : (N, K) array
            r_ik ≥ 0.

        Returns
        -------
        Parameters
            A component without any responsibility gets the mean and covariance of all the data.
        """
        if isinstance(X, PointsWithGaps):
            return self._start_with_gaps(X, responsibilities)
        counts, of_points = responsibilities.sum(axis=0), responsibilities.sum(axis=1)
        empty = counts <= SMALLEST_COUNT
        # Second moments about a distant point lose digits, so the means are computed first.
        middle = np.average(X, axis=0, weights=of_points)
        shifts = responsibilities.T @ (X - middle) / np.where(empty, 1, counts)[:, None]
        means = middle + np.where(empty[:, None], 0, shifts)
        unit = np.ones(X.shape[1]) if self.diagonal else np.eye(X.shape[1])
        theta = Parameters(counts, means, np.stack([unit] * len(means)))
        if empty.any():
            with_all_points = np.where(empty, of_points[:, None], responsibilities)
            theta = self.maximise(self.statistics(X, with_all_points, theta), theta)
        theta = self.maximise(self.statistics(X, responsibilities, theta), theta)
        return theta.with_weights(closed_form(responsibilities.sum(axis=0)))

    def _start_with_gaps(self, X: Any, responsibilities: FloatArray) -> Parameters:
        """Compute initial parameters by several M-steps, since missing values depend on them."""
        theta = X.repeat_gaussian(responsibilities.shape[1], self.diagonal)
        for _ in range(STEPS_WITH_GAPS):
            theta = self.maximise(self.statistics(X, responsibilities, theta), theta)
        return theta.with_weights(closed_form(responsibilities.sum(axis=0)))

    def statistics(
        self, X: FloatArray, responsibilities: FloatArray, parameters: Parameters
    ) -> Statistics:
        """Return the sufficient statistics of some points, which can be summed over blocks.

        Parameters
        ----------
        X : (N, D) array
            The points.
        responsibilities : (N, K) array
            r_ik.
        parameters : Parameters
            The current θ; moments are computed about its means to avoid cancellation.

        Returns
        -------
        (K,) array, (K, D) array, array
            Σ_i r_ik, Σ_i r_ik (x_i - μ_k) and Σ_i r_ik (x_i - μ_k)(x_i - μ_k)ᵀ. The last array
            contains only the diagonals, (K, D), or the sum over components, (1, D, D), if that is
            enough for the covariance type.
        """
        if isinstance(X, PointsWithGaps):
            return X.statistics(responsibilities, parameters, self.diagonal, self.shared)
        means, whiteners = parameters.means, whiten(parameters.covariances)[0]
        shifts = means - means.mean(axis=0)
        total: Any = (0.0, 0.0, 0.0)
        for part in cut_evenly(len(X), block_height(*means.shape)):
            r, phi = responsibilities[part], None
            if (whiteners.ndim == 2) == self.diagonal:
                phi = products.safe_features(X[part], means, whiteners)
            if phi is None:
                found = moments_about(means, X[part], r, self.diagonal, self.shared)
            else:
                counts, first, second = products.shifted_moments((phi @ r).T, shifts, self.diagonal)
                found = counts, first, self._sum_if_shared(second)
            total = tuple(map(np.add, total, found))
        return cast("Statistics", total)

    def maximise(self, statistics: Statistics, parameters: Parameters) -> Parameters:
        """Return θ with the means and covariances of this type that maximise the bound.

        Parameters
        ----------
        statistics : tuple of arrays
            From :meth:`statistics` with the same ``parameters``, summed over blocks.
        parameters : Parameters
            The current θ. Its weights are returned unchanged, and so are mean and covariance of a
            component without responsibility.

        Returns
        -------
        Parameters
            The new θ, with the old weights.

        Notes
        -----
        [schmidt2016, sect. 3.2] with r_c^i for the printed r_c^k; [green, "Maximisation step"].
        If a mean moves so far that the new variances would lose their digits, the component keeps
        its old covariance in this iteration. The bound rises nevertheless.
        """
        counts, first, second = statistics
        empty, means = counts <= SMALLEST_COUNT, parameters.means
        shifts = np.where(empty[:, None], 0, first) / np.where(empty, 1, counts)[:, None]
        # Convert second moments about the old means μ to the scatter about the new means m:
        # Σ r (x - m)(x - m)ᵀ = Σ r (x - μ)(x - μ)ᵀ - N (m - μ)(m - μ)ᵀ
        if self.diagonal:
            moved = counts[:, None] * np.square(shifts)
        else:
            moved = counts[:, None, None] * (shifts[:, :, None] * shifts[:, None, :])
        scatter = second - self._sum_if_shared(moved)
        regular = np.ones(means.shape[1]) if self.diagonal else np.eye(means.shape[1])
        # [schmidt2016, sect. 3.2], pooled according to the covariance type
        counted = np.maximum(counts, SMALLEST_COUNT)
        if self.prior is not None:
            counted, scatter = self.prior.add_to_statistics(counted, scatter, self.shared)
        covariances = self.combine(counted, scatter)
        covariances = covariances + self.reg_covar * regular
        keeps_old = self._moved_too_far(counts, shifts, covariances, means)
        keeps_old = keeps_old if self.shared else keeps_old | empty
        if keeps_old.any():
            old = parameters.variances if self.diagonal else parameters.full_covariances
            covariances[keeps_old] = old[: len(covariances)][keeps_old]
        # A shared covariance is stored only once; broadcasting gives each component a view of it.
        if self.shared:
            covariances = np.broadcast_to(covariances, (len(means), *covariances.shape[1:]))
        return parameters._replace(means=means + shifts, covariances=covariances)

    def n_free(self, parameters: Parameters) -> int:
        """Return the number of free parameters of a mixture of this type.

        Parameters
        ----------
        parameters : Parameters
            θ; only the shape (K, D) of its means is used.

        Returns
        -------
        int
            Number of free parameters of weights, means and covariances.
        """
        n_components, n_dims = parameters.means.shape
        return n_components * (n_dims + 1) - 1 + self.n_parameters(n_components, n_dims)

    def log_prior(self, parameters: Parameters) -> float:
        """Return the log-density of the prior at θ, up to a constant; 0 without a prior.

        Parameters
        ----------
        parameters : Parameters
            θ; only its covariances are used.

        Returns
        -------
        float
            The log-density in nats. If ``reg_covar`` is 0, EM never lowers the sum of this and the
            log-evidence.
        """
        if self.prior is None:
            return 0.0
        return self.prior.log_density(parameters.covariances, self.shared)

    def _sum_if_shared(self, matrices: FloatArray) -> FloatArray:
        return matrices.sum(axis=0, keepdims=True) if self.shared else matrices

    def _moved_too_far(
        self, counts: FloatArray, shifts: FloatArray, covariances: FloatArray, means: FloatArray
    ) -> BoolArray:
        """Return a mask of the means that moved so far that the new variances lost digits."""
        moved = np.maximum(np.square(shifts) - np.square(2 * np.spacing(means)), 0)
        moved = np.average(moved, axis=0, weights=counts)[None] if self.shared else moved
        left = covariances if self.diagonal else np.einsum("kdd->kd", covariances)
        return np.asarray((left < moved / MOST_DEVIATIONS**2).any(axis=1))


def _combine_full(counts: FloatArray, scatter: FloatArray) -> FloatArray:
    return scatter / counts[:, None, None]


def _combine_tied(counts: FloatArray, scatter: FloatArray) -> FloatArray:
    return scatter.sum(axis=0, keepdims=True) / counts.sum()


def _combine_diag(counts: FloatArray, scatter: FloatArray) -> FloatArray:
    diagonals = scatter if scatter.ndim == 2 else np.einsum("kdd->kd", scatter)
    return diagonals / counts[:, None]


def _combine_spherical(counts: FloatArray, scatter: FloatArray) -> FloatArray:
    return _combine_diag(counts, scatter).mean(axis=1, keepdims=True)


POOLINGS: dict[str, Pooling] = {
    "full": Pooling(
        _combine_full, diagonal=False, shared=False, n_parameters=lambda k, d: k * d * (d + 1) // 2,
        shape=lambda k, d: (k, d, d), expand=lambda c, k, d: c, reduce=lambda c: c,
    ),
    "tied": Pooling(
        _combine_tied, diagonal=False, shared=True, n_parameters=lambda k, d: d * (d + 1) // 2,
        shape=lambda k, d: (d, d), expand=lambda c, k, d: np.broadcast_to(c, (k, d, d)),
        reduce=lambda c: c[0],
    ),
    "diag": Pooling(
        _combine_diag, diagonal=True, shared=False, n_parameters=lambda k, d: k * d,
        shape=lambda k, d: (k, d), expand=lambda c, k, d: c, reduce=lambda c: c,
    ),
    "spherical": Pooling(
        _combine_spherical, diagonal=True, shared=False, n_parameters=lambda k, d: k,
        shape=lambda k, d: (k,), expand=lambda c, k, d: np.broadcast_to(c[:, None], (k, d)),
        reduce=lambda c: c[:, 0],
    ),
}  # fmt: skip
"""The family of each covariance type, by its name in scikit-learn."""


def moments_about(
    means: FloatArray, X: FloatArray, responsibilities: FloatArray, diagonal: bool, shared: bool
) -> Statistics:
    """Return counts, first and second moments about means, subtracting each mean first."""
    n_components, n_dims = means.shape
    first = np.empty(means.shape)
    shape = (n_dims,) if diagonal else (n_dims, n_dims)
    second = np.zeros((1 if shared else n_components, *shape))
    for k, (mean, r) in enumerate(zip(means, responsibilities.T, strict=True)):
        x, r = _drop_negligible(X, r)
        apart = x - mean[:, None]
        first[k] = apart @ r
        apart *= np.sqrt(r)
        if diagonal:
            second[k] = np.einsum("db,db->d", apart, apart)
        else:
            second[0 if shared else k] += apart @ apart.T
    return responsibilities.sum(axis=0), first, second


def _drop_negligible(X: FloatArray, r: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Drop points with negligible r, if they are the majority; return (D, n) points and r (n,)."""
    matter = np.flatnonzero(r > NEGLIGIBLE * r.max())
    if 2 * len(matter) > len(r):
        return X.T, r
    return np.take(X.T, matter, axis=1), r[matter]


# ------------------------------------------------------------ the bound


def lower_bound(X: FloatArray, parameters: Parameters, q: FloatArray) -> float:
    """Return the lower bound F(q, θ) on the log-evidence without relations, for independent q.

    Parameters
    ----------
    X : (N, D) array
        The points.
    parameters : Parameters
        θ.
    q : (N, K) array
        One distribution over components per row; it need not be the posterior.

    Returns
    -------
    float
        ``Σ_ik q_ik (log p(x_i, k | θ) - log q_ik)`` in nats. It is at most the log-evidence; the
        difference is the sum of the divergences KL(q_i ‖ p(z_i | x_i, θ)).

    Raises
    ------
    ValueError
        If a row of ``q`` is not a distribution.

    Notes
    -----
    L(q, θ) of [green, "The EM algorithm"].

    Examples
    --------
    >>> theta = Parameters(np.array([0.5, 0.5]), np.array([[-1.0], [1.0]]), np.ones((2, 1, 1)))
    >>> round(lower_bound(np.array([[1.0]]), theta, np.array([[0.5, 0.5]])), 4)
    -1.9189
    """
    q = np.asarray(q, dtype=float)
    require_distributions("q", q)
    used = q > 0
    # [green, "The EM algorithm"]: L(q, θ), with 0 log 0 = 0
    return float(np.sum(q[used] * (log_joint(X, parameters)[used] - np.log(q[used]))))


def require_distributions(name: str, q: FloatArray) -> None:
    """Raise an error if a row is not a distribution over components."""
    wrong = np.flatnonzero(~((q >= 0).all(axis=1) & (abs(q.sum(axis=1) - 1) < 1e-8)))
    if len(wrong):
        raise ValueError(
            f"row {wrong[0]} of {name} is {q[wrong[0]]}, not a distribution: its entries must be "
            "non-negative and sum to one. Divide each row by its sum."
        )


def penalty(parameters: Parameters, counts: FloatArray, reg_covar: float) -> float:
    """Return ½ ε Σ_k N_k tr Σ_k⁻¹, which reg_covar subtracts from the bound of the M-step.

    Parameters
    ----------
    parameters : Parameters
        θ; only its covariances are used.
    counts : (K,) array
        Expected counts N_k.
    reg_covar : float
        ε.

    Returns
    -------
    float
        The penalty in nats. From one iteration to the next the log-evidence falls by at most as
        much as the penalty does, at the counts of the earlier iteration.

    Examples
    --------
    >>> theta = Parameters(np.ones(1), np.zeros((1, 2)), np.diag([0.5, 2.0])[None])
    >>> round(penalty(theta, np.array([10.0]), 1e-2), 6)
    0.125
    """
    whiteners, _ = whiten(parameters.covariances)
    # tr Σ_k⁻¹ = tr W_kᵀ W_k
    traces = np.square(whiteners).reshape(len(counts), -1).sum(axis=1)
    return float(0.5 * reg_covar * np.dot(counts, traces))


# ------------------------------------------------------------ a prior of covariances


class CovariancePrior(NamedTuple):
    """Parameters ν and Λ of the inverse Wishart prior of the covariances."""

    degrees: float
    """Degrees of freedom ν ≥ 0."""
    scale: FloatArray
    """(D, D) scale matrix Λ, symmetric and positive definite."""

    @classmethod
    def of(cls, given: Any, X: Any, n_components: int) -> CovariancePrior | None:
        """Build the prior from the parameter ``covariance_prior`` of an estimator."""
        if given is None or isinstance(given, CovariancePrior):
            return given
        n_dims = X.shape[1]
        if isinstance(given, str):
            # Fraley and Raftery (2007), sect. 2.2: K components share the volume of all the data
            is_complete = not isinstance(X, PointsWithGaps)
            scatter = np.atleast_2d(np.cov(X.T)) if is_complete else X.gaussian.covariances[0]
            return cls(n_dims + 2, scatter / n_components ** (2 / n_dims))
        degrees, scale = float(given[0]), np.asarray(given[1], dtype=float)
        is_square = scale.shape == (n_dims, n_dims) and np.allclose(scale, scale.T)
        if not (degrees >= 0 and is_square and np.linalg.eigvalsh(scale).min() > 0):
            raise ValueError(
                f"covariance_prior is ({degrees:g}, an array of shape {scale.shape}); it must be "
                f"(ν, Λ) with ν ≥ 0 and Λ symmetric, positive definite and of shape "
                f"({n_dims}, {n_dims}), or 'fraley-raftery'."
            )
        return cls(degrees, scale)

    def add_to_statistics(
        self, counts: FloatArray, scatter: FloatArray, shared: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Add the prior to the counts (K,) and the scatter (full or diagonal) of an M-step."""
        prior_count = self.degrees + len(self.scale) + 1
        scale = np.diag(self.scale) if scatter.ndim == 2 else self.scale
        return counts + (prior_count / len(counts) if shared else prior_count), scatter + scale

    def log_density(self, covariances: FloatArray, shared: bool) -> float:
        """Return Σ_k log p(Σ_k), up to a constant, for the covariances of θ."""
        whiteners, log_dets = whiten(covariances[:1] if shared else covariances)
        if whiteners.ndim == 2:
            traces = np.square(whiteners) @ np.diag(self.scale)
        else:
            traces = np.einsum("kde,ef,kdf->k", whiteners, self.scale, whiteners)
        return float(-0.5 * ((self.degrees + len(self.scale) + 1) * log_dets + traces).sum())
