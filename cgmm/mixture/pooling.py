"""Four poolings of one scatter (full, tied, diagonal, spherical), and a prior of covariances.

=====  ====================================================================
N_k    counts; S_k scatter about the weighted means
r_ik   responsibilities q(z_i = k), for any distribution q over assignments
F      the bound, F(q, θ) = E_q[log p(X, z | θ)] + H(q) ≤ log p(X | θ)
ε      reg_covar, added to the diagonal of each covariance
D, K   dimensions of the points, and number of components
ν      degrees of freedom of the prior, e.g. D + 2; Λ its scale matrix (D, D)
=====  ====================================================================

What never falls. With ε = 0 the log-evidence of the parameters that the loop yields never falls:
the E-step makes the bound touch it, the M-step lifts the bound. With ε > 0 that is not a theorem.
Adding ε to the diagonal maximises, for given responsibilities, the *penalised* bound ::

    F(q, θ) - penalty(θ, N, ε),        penalty = ½ ε Σ_k N_k tr Σ_k⁻¹

and it is this that an M-step never lowers. From one iteration to the next the log-evidence can
therefore fall, but by no more than the penalty, at the same counts N_k, falls.

Components with few points can have an inverse Wishart prior,
``p(Σ_k) ∝ |Σ_k|^(-(ν + D + 1) / 2) exp(-½ tr Λ Σ_k⁻¹)``. An M-step then maximises the bound plus
``Σ_k log p(Σ_k)``: it adds Λ to each scatter and ν + D + 1 to each count. A shared covariance has
the prior once, and diagonal ones have the same density at diagonal matrices. Chapters 2 and 3.
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
from cgmm.numerics import BoolArray, FloatArray, block_height, cut

# ------------------------------------------------------------ poolings of covariances


# A component with a smaller expected count is dead: its moments would be denormal numbers.
SMALLEST_COUNT = np.finfo(float).tiny / np.finfo(float).eps
# If a mean moves by more deviations, its new variances have less than six digits.
MOST_DEVIATIONS = 1e5
# Responsibilities below this share of the largest change sums by less than rounding, however far
# away their points are; with well separated components most are that small.
NEGLIGIBLE = np.finfo(float).eps ** 3

# M-steps that a start makes of given responsibilities where cells are empty.
STEPS_WITH_GAPS = 5


class Pooling(NamedTuple):
    """A family of Gaussians: one way in which the components share a scatter.

    ``combine(counts, scatter)`` gives the covariances that maximise the expected log-likelihood
    within the type, for a scatter (K, D, D), or (K, D) its diagonals for diagonal types. What
    components or directions share stands there once: (1, D, D) if tied, (K, 1) if spherical.
    ``diagonal`` and ``shared`` say what statistics hold: diagonals (K, D), the sum (1, D, D) over
    components, or (K, D, D) all; ``n_parameters(K, D)`` counts the free numbers in the covariances;
    ``shape(K, D)`` is scikit-learn's for the type, ``expand(array, K, D)`` turns an array of that
    shape into the covariances of θ, and ``reduce(covariances)`` turns them back.
    """

    combine: Callable[[FloatArray, FloatArray], FloatArray]
    diagonal: bool
    shared: bool
    n_parameters: Callable[[int, int], int]
    shape: Callable[[int, int], tuple[int, ...]]
    expand: Callable[[FloatArray, int, int], FloatArray]
    reduce: Callable[[FloatArray], FloatArray]
    reg_covar: float = 0.0
    """ε, added to the diagonals; the module's docstring says what never falls."""
    prior: CovariancePrior | None = None
    """Prior of the covariances, whose mode an M-step takes; None: none."""

    def start(self, X: FloatArray, responsibilities: FloatArray) -> Parameters:
        """Return the parameters that one M-step makes of given responsibilities.

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
        dead = counts <= SMALLEST_COUNT
        # Moments about a far mean lose digits, so the means come first.
        middle = np.average(X, axis=0, weights=of_points)
        shifts = responsibilities.T @ (X - middle) / np.where(dead, 1, counts)[:, None]
        means = middle + np.where(dead[:, None], 0, shifts)
        unit = np.ones(X.shape[1]) if self.diagonal else np.eye(X.shape[1])
        theta = Parameters(counts, means, np.stack([unit] * len(means)))
        if dead.any():
            everything = np.where(dead, of_points[:, None], responsibilities)
            theta = self.maximise(self.statistics(X, everything, theta), theta)
        theta = self.maximise(self.statistics(X, responsibilities, theta), theta)
        return theta.with_weights(closed_form(responsibilities.sum(axis=0)))

    def _start_with_gaps(self, X: Any, responsibilities: FloatArray) -> Parameters:
        """Return parameters whose conditional moments agree with the responsibilities."""
        theta = X.repeat_single(responsibilities.shape[1], self.diagonal)
        for _ in range(STEPS_WITH_GAPS):
            theta = self.maximise(self.statistics(X, responsibilities, theta), theta)
        return theta.with_weights(closed_form(responsibilities.sum(axis=0)))

    def statistics(
        self, X: FloatArray, responsibilities: FloatArray, parameters: Parameters
    ) -> Statistics:
        """Return the sufficient statistics of some points, which add over blocks of points.

        Parameters
        ----------
        X : (N, D) array
            The points.
        responsibilities : (N, K) array
            r_ik.
        parameters : Parameters
            θ so far: moments are measured about its means, so that no digits are lost.

        Returns
        -------
        (K,) array, (K, D) array, array
            Σ_i r_ik, Σ_i r_ik (x_i - μ_k) and Σ_i r_ik (x_i - μ_k)(x_i - μ_k)ᵀ; of the last only
            the diagonals, (K, D), or the sum over components, (1, D, D), where the type needs no
            more.
        """
        if isinstance(X, PointsWithGaps):
            return X.statistics(responsibilities, parameters, self.diagonal, self.shared)
        means, whiteners = parameters.means, whiten(parameters.covariances)[0]
        shifts = means - means.mean(axis=0)
        total: Any = (0.0, 0.0, 0.0)
        for part in cut(len(X), block_height(*means.shape)):
            r, phi = responsibilities[part], None
            if (whiteners.ndim == 2) == self.diagonal:
                phi = products.phi(X[part], means, whiteners)
            if phi is None:
                found = moments_about(means, X[part], r, self.diagonal, self.shared)
            else:
                counts, first, second = products.about_shifts((phi @ r).T, shifts, self.diagonal)
                found = counts, first, self._sum(second)
            total = tuple(map(np.add, total, found))
        return cast("Statistics", total)

    def maximise(self, statistics: Statistics, parameters: Parameters) -> Parameters:
        """Return θ with the means and covariances of this type that maximise the bound.

        Parameters
        ----------
        statistics : tuple of arrays
            From :meth:`statistics`, with these parameters; summed over blocks.
        parameters : Parameters
            θ so far. Its weights stay; a component without responsibility keeps everything.

        Returns
        -------
        Parameters
            The new θ, with the old weights.

        Notes
        -----
        [schmidt2016, sect. 3.2] with r_c^i for the printed r_c^k; [green, "Maximisation step"].
        A component whose mean moves so far that squares lose their digits keeps its covariance this
        once: the bound rises all the same.
        """
        counts, first, second = statistics
        dead, means = counts <= SMALLEST_COUNT, parameters.means
        shifts = np.where(dead[:, None], 0, first) / np.where(dead, 1, counts)[:, None]
        # Σ r (x - m)(x - m)ᵀ = Σ r (x - μ)(x - μ)ᵀ - N (m - μ)(m - μ)ᵀ
        if self.diagonal:
            moved = counts[:, None] * np.square(shifts)
        else:
            moved = counts[:, None, None] * (shifts[:, :, None] * shifts[:, None, :])
        scatter = second - self._sum(moved)
        regular = np.ones(means.shape[1]) if self.diagonal else np.eye(means.shape[1])
        # [schmidt2016, sect. 3.2], pooled as the covariance type says
        counted = np.maximum(counts, SMALLEST_COUNT)
        if self.prior is not None:
            counted, scatter = self.prior.added_to(counted, scatter, self.shared)
        covariances = self.combine(counted, scatter)
        covariances = covariances + self.reg_covar * regular
        kept = self._too_far(counts, shifts, covariances, means)
        kept = kept if self.shared else kept | dead
        if kept.any():
            old = parameters.variances if self.diagonal else parameters.full_covariances
            covariances[kept] = old[: len(covariances)][kept]
        if self.shared:  # a view, not copies
            covariances = np.broadcast_to(covariances, (len(means), *covariances.shape[1:]))
        return parameters._replace(means=means + shifts, covariances=covariances)

    def n_free(self, parameters: Parameters) -> int:
        """Return the number of free parameters of a mixture of this type.

        Parameters
        ----------
        parameters : Parameters
            θ, whose means (K, D) count.

        Returns
        -------
        int
            Those of the weights, the means and the covariances.
        """
        n_components, n_dims = parameters.means.shape
        return n_components * (n_dims + 1) - 1 + self.n_parameters(n_components, n_dims)

    def log_prior(self, parameters: Parameters) -> float:
        """Return the log-density of the prior at θ, up to a constant; 0 without a prior.

        Parameters
        ----------
        parameters : Parameters
            θ, of whose covariances it is.

        Returns
        -------
        float
            In nats. EM never lowers its sum with the log-evidence where ``reg_covar`` is 0.
        """
        if self.prior is None:
            return 0.0
        return self.prior.log_density(parameters.covariances, self.shared)

    def _sum(self, matrices: FloatArray) -> FloatArray:
        return matrices.sum(axis=0, keepdims=True) if self.shared else matrices

    def _too_far(
        self, counts: FloatArray, shifts: FloatArray, covariances: FloatArray, means: FloatArray
    ) -> BoolArray:
        """Return which means moved, by more than rounding, so far that variances lost digits."""
        moved = np.maximum(np.square(shifts) - np.square(2 * np.spacing(means)), 0)
        moved = np.average(moved, axis=0, weights=counts)[None] if self.shared else moved
        left = covariances if self.diagonal else np.einsum("kdd->kd", covariances)
        return np.asarray((left < moved / MOST_DEVIATIONS**2).any(axis=1))


def _full(counts: FloatArray, scatter: FloatArray) -> FloatArray:
    return scatter / counts[:, None, None]


def _tied(counts: FloatArray, scatter: FloatArray) -> FloatArray:
    return scatter.sum(axis=0, keepdims=True) / counts.sum()


def _diag(counts: FloatArray, scatter: FloatArray) -> FloatArray:
    diagonals = scatter if scatter.ndim == 2 else np.einsum("kdd->kd", scatter)
    return diagonals / counts[:, None]


def _spherical(counts: FloatArray, scatter: FloatArray) -> FloatArray:
    return _diag(counts, scatter).mean(axis=1, keepdims=True)


POOLINGS: dict[str, Pooling] = {
    "full": Pooling(
        _full, diagonal=False, shared=False, n_parameters=lambda k, d: k * d * (d + 1) // 2,
        shape=lambda k, d: (k, d, d), expand=lambda c, k, d: c, reduce=lambda c: c,
    ),
    "tied": Pooling(
        _tied, diagonal=False, shared=True, n_parameters=lambda k, d: d * (d + 1) // 2,
        shape=lambda k, d: (d, d), expand=lambda c, k, d: np.broadcast_to(c, (k, d, d)),
        reduce=lambda c: c[0],
    ),
    "diag": Pooling(
        _diag, diagonal=True, shared=False, n_parameters=lambda k, d: k * d,
        shape=lambda k, d: (k, d), expand=lambda c, k, d: c, reduce=lambda c: c,
    ),
    "spherical": Pooling(
        _spherical, diagonal=True, shared=False, n_parameters=lambda k, d: k,
        shape=lambda k, d: (k,), expand=lambda c, k, d: np.broadcast_to(c[:, None], (k, d)),
        reduce=lambda c: c[:, 0],
    ),
}  # fmt: skip
"""Every covariance type, by its name in scikit-learn."""


def moments_about(
    means: FloatArray, X: FloatArray, responsibilities: FloatArray, diagonal: bool, shared: bool
) -> Statistics:
    """Return counts, first and second moments about means; each mean is subtracted first."""
    n_components, n_dims = means.shape
    first = np.empty(means.shape)
    shape = (n_dims,) if diagonal else (n_dims, n_dims)
    second = np.zeros((1 if shared else n_components, *shape))
    for k, (mean, r) in enumerate(zip(means, responsibilities.T, strict=True)):
        x, r = _not_negligible(X, r)
        apart = x - mean[:, None]
        first[k] = apart @ r
        apart *= np.sqrt(r)
        if diagonal:
            second[k] = np.einsum("db,db->d", apart, apart)
        else:
            second[0 if shared else k] += apart @ apart.T
    return responsibilities.sum(axis=0), first, second


def _not_negligible(X: FloatArray, r: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return (D, n) points with responsibilities (n,) that are not negligible, or all points."""
    matter = np.flatnonzero(r > NEGLIGIBLE * r.max())
    if 2 * len(matter) > len(r):
        return X.T, r
    return np.take(X.T, matter, axis=1), r[matter]


# ------------------------------------------------------------ the bound


def lower_bound(X: FloatArray, parameters: Parameters, q: FloatArray) -> float:
    """Return the bound F(q, θ) on the log-evidence of a plain mixture, for any independent q.

    Parameters
    ----------
    X : (N, D) array
        The points.
    parameters : Parameters
        θ.
    q : (N, K) array
        One distribution over components a row; need not be the posterior.

    Returns
    -------
    float
        ``Σ_ik q_ik (log p(x_i, k | θ) - log q_ik)`` in nats, at most the log-evidence; the
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
    """Refuse rows that are no distributions over components."""
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
        θ; only its covariances count.
    counts : (K,) array
        N_k, expected counts of the responsibilities at hand.
    reg_covar : float
        ε.

    Returns
    -------
    float
        In nats. From one iteration to the next the log-evidence falls by at most the fall of this,
        at the counts of the earlier iteration.

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
    """ν and Λ of the inverse Wishart prior."""

    degrees: float
    """ν ≥ 0."""
    scale: FloatArray
    """(D, D) Λ, symmetric and positive definite."""

    @classmethod
    def of(cls, given: Any, X: Any, n_components: int) -> CovariancePrior | None:
        """Return the prior that ``covariance_prior`` of an estimator stands for."""
        if given is None or isinstance(given, CovariancePrior):
            return given
        n_dims = X.shape[1]
        if isinstance(given, str):
            # Fraley and Raftery (2007), sect. 2.2: K components share the volume of all the data
            is_complete = not isinstance(X, PointsWithGaps)
            scatter = np.atleast_2d(np.cov(X.T)) if is_complete else X.single.covariances[0]
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

    def added_to(
        self, counts: FloatArray, scatter: FloatArray, shared: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Return counts (K,) and scatter (full or diagonal), both with the prior's share added."""
        more = self.degrees + len(self.scale) + 1
        scale = np.diag(self.scale) if scatter.ndim == 2 else self.scale
        return counts + (more / len(counts) if shared else more), scatter + scale

    def log_density(self, covariances: FloatArray, shared: bool) -> float:
        """Return Σ_k log p(Σ_k), up to a constant, of covariances in the form of θ."""
        whiteners, log_dets = whiten(covariances[:1] if shared else covariances)
        if whiteners.ndim == 2:
            traces = np.square(whiteners) @ np.diag(self.scale)
        else:
            traces = np.einsum("kde,ef,kdf->k", whiteners, self.scale, whiteners)
        return float(-0.5 * ((self.degrees + len(self.scale) + 1) * log_dets + traces).sum())
