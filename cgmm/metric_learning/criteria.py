"""Compute the criteria that RCA optimises, the variance of its estimate, and Fisher's discriminant.

Three criteria are optimal for the metric Ĉ⁻¹ or a multiple of it: information, distance within
chunklets at unit volume, and likelihood. Three functions compute variances of the estimator Ĉ and
of directions. Chapter 12 calls all six to verify the claims of barhillel2005. The principal axes
and the discriminant are steps 2 and 3 of Algorithm 2 of barhillel2005; ``RCA`` computes them if
ranks are deficient.

=======  ======================================================================================
A, B     (K, D) matrix of a linear map y = A x; a metric B = AᵗA
Ĉ, S_t   (D, D) covariance within chunklets, and total covariance
n, k, N  number of chunklets, of points in each chunklet, and of points in all chunklets
λ        ratio of total variance to variance within chunklets, along a row of A
=======  ======================================================================================
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cgmm.metric_learning.whiten import TOL, correlation_spectrum, fix_signs
from cgmm.numerics import FloatArray

# ------------------------------------------------------------ criteria


def information(rows: FloatArray, within: FloatArray, total: FloatArray | None = None) -> float:
    """Compute the information criterion of a linear map, scaled to unit scatter within chunklets.

    Parameters
    ----------
    rows : (K, D) array
        A, with rank K. The result does not depend on its scale.
    within : (D, D) array
        Ĉ.
    total : (D, D) array, default=None
        S_t, the covariance of the data. If given, the criterion is that of eq. 5, for any K. If
        None, K must be D.

    Returns
    -------
    float
        ``log |det A|``, or log det(A S_t Aᵗ) if ``total`` is given, in nats, where A is scaled to
        tr(A Ĉ Aᵗ) = 1. Up to a constant it is the entropy of A x; if ``total`` is given, it is
        twice the entropy for Gaussian x.

    Raises
    ------
    ValueError
        If ``total`` is missing and A is not square.

    Notes
    -----
    [barhillel2005, eqs. 3 to 5], with B = AᵗA in eq. 4.

    Examples
    --------
    >>> from cgmm.metric_learning import whitening
    >>> C = np.diag([1.0, 4.0])
    >>> information(whitening(C), C) > information(np.eye(2), C)
    True
    """
    A = np.asarray(rows, dtype=float)
    if total is None and A.shape[0] != A.shape[1]:
        raise ValueError(
            f"a map of shape {A.shape} loses dimensions, and its criterion depends on the data: "
            "give their covariance as total."
        )
    # [barhillel2005, eqs. 3 and 4]: the constraint is an equality at the maximum.
    A = A / np.sqrt(np.einsum("kd,de,ke->", A, within, A))
    if total is None:
        return float(np.linalg.slogdet(A).logabsdet)
    # [barhillel2005, eq. 5]
    return float(np.linalg.slogdet(A @ total @ A.T).logabsdet)


def within_distance(metric: FloatArray, within: FloatArray) -> float:
    """Compute the mean squared distance of points from the mean of their chunklet, at unit volume.

    Parameters
    ----------
    metric : (D, D) array
        B, symmetric and positive definite. The result does not depend on its scale.
    within : (D, D) array
        Ĉ.

    Returns
    -------
    float
        tr(B Ĉ), where B is scaled to det B = 1. The minimum is D det(Ĉ)^(1/D), at B = Ĉ⁻¹.

    Notes
    -----
    [barhillel2005, eqs. 6 and 7]. The exponent of det Ĉ in the solution is 1/D.

    Examples
    --------
    >>> C = np.diag([1.0, 4.0])
    >>> within_distance(np.eye(2), C), round(within_distance(np.linalg.inv(C), C), 12)
    (5.0, 4.0)
    """
    volume = np.linalg.slogdet(metric).logabsdet
    # [barhillel2005, eq. 6]
    return float(np.sum(metric * within) * np.exp(-volume / len(within)))


def likelihood_criterion(metric: FloatArray, within: FloatArray, n_points: int) -> float:
    """Compute minus twice the log-likelihood of Gaussian classes with a common covariance.

    Parameters
    ----------
    metric : (D, D) array
        B = Σ⁻¹.
    within : (D, D) array
        Ĉ, the biased estimate.
    n_points : int
        N, the number of points in chunklets.

    Returns
    -------
    float
        Minus twice the log-likelihood in nats, without the constant N D log 2π, if the mean of each
        class is the mean of its chunklet. The minimum is at B = Ĉ⁻¹.

    Notes
    -----
    This is [barhillel2005, eq. 11], where the sum over points is N tr(B Ĉ).

    Examples
    --------
    >>> round(likelihood_criterion(np.eye(2), np.eye(2), 10), 12)
    20.0
    """
    # [barhillel2005, eq. 11]
    return float(n_points * (np.sum(metric * within) - np.linalg.slogdet(metric).logabsdet))


def variance_ratio(size: int, n_chunklets: float = np.inf) -> float:
    """Return how much larger the variance of Ĉ is than if all points were in one chunklet.

    Parameters
    ----------
    size : int
        k ≥ 2, the number of points in each chunklet.
    n_chunklets : float, default=inf
        n, the number of chunklets. The default gives the limit k / (k - 1), which is an upper bound
        for every n.

    Returns
    -------
    float
        (nk - 1) / (n (k - 1)): the ratio of the variances of every element of the unbiased Ĉ.

    Raises
    ------
    ValueError
        If chunklets of this size have no scatter.

    Notes
    -----
    [barhillel2005, eq. 12] gives the upper bound. With (nk - 1) / (nk) times its right side it
    becomes an equality: both estimates are Wishart matrices divided by their degrees of freedom,
    n (k - 1) and nk - 1.

    Examples
    --------
    >>> variance_ratio(2), variance_ratio(2, 10)
    (2.0, 1.9)
    """
    if size < 2 or n_chunklets < 1:
        raise ValueError(
            f"size is {size} and n_chunklets {n_chunklets}; give at least one chunklet of at least "
            "two points."
        )
    # [barhillel2005, eq. 12]
    return float((size - 1 / n_chunklets) / (size - 1))


def variance_of_covariance(covariance: FloatArray, freedom: float) -> FloatArray:
    """Compute the variance of each element of the unbiased covariance of Gaussian points.

    Parameters
    ----------
    covariance : (D, D) array
        C, the true covariance.
    freedom : float
        Degrees of freedom: the number of points minus one, or Σ_j (n_j - 1) for chunklets with n_j
        points.

    Returns
    -------
    (D, D) array
        (C_ij² + C_ii C_jj) / freedom.

    Notes
    -----
    [barhillel2005, App. B] gives the formula for diagonal C, but with k instead of k - 1 in the
    off-diagonal elements.

    Examples
    --------
    >>> variance_of_covariance(np.diag([1.0, 3.0]), 2)
    array([[1. , 1.5],
           [1.5, 9. ]])
    """
    diagonal = np.diagonal(covariance)
    return (np.square(covariance) + np.outer(diagonal, diagonal)) / freedom


def weight_ratio(variances: FloatArray) -> FloatArray:
    """Return the factor by which whitening reduces each direction's share of squared distances.

    Parameters
    ----------
    variances : (D,) array
        λ^i, the eigenvalues of the within-class covariance.

    Returns
    -------
    (D,) array
        Each λ^i divided by the mean of all; above one if RCA reduces the share of the direction.

    Notes
    -----
    [barhillel2005, eq. 13].

    Examples
    --------
    >>> weight_ratio([3.0, 1.0])
    array([1.5, 0.5])
    """
    variances = np.asarray(variances, dtype=float)
    # [barhillel2005, eq. 13]
    return variances / variances.mean()


# ------------------------------------------------------------ discriminant


class Discriminant(NamedTuple):
    """Fisher's linear discriminant from chunklets."""

    rows: FloatArray
    """(K, D) A, for which A Ĉ Aᵗ = I and A S_t Aᵗ is diagonal."""
    ratios: FloatArray
    """(K,) decreasing ratios λ of total variance to variance within chunklets, for each row."""


def cfld(
    within: FloatArray,
    total: FloatArray,
    n_components: int | None = None,
    *,
    tol: float = TOL,
    noise: FloatArray | float = 0.0,
) -> Discriminant:
    """Compute Fisher's linear discriminant with chunklets as classes, whitened within chunklets.

    Parameters
    ----------
    within, total : (D, D) array
        Ĉ and S_t.
    n_components : int, default=None
        K, the number of directions; the rank of Ĉ if it is None or larger than this rank.
    tol, noise
        As in :func:`~cgmm.metric_learning.whitening`.

    Returns
    -------
    Discriminant
        The K solutions of S_t a = λ Ĉ a with the largest λ, scaled to unit variance within
        chunklets, and λ.

    Notes
    -----
    This is [barhillel2005, Alg. 2, step 3 and eq. 14], with the determinants that eq. 14 lacks. Ĉ
    is whitened first, so a direction in which chunklets do not vary causes no division by zero.

    Examples
    --------
    >>> A, ratios = cfld(np.diag([1.0, 4.0]), np.diag([1.0, 36.0]))
    >>> A, ratios
    (array([[0. , 0.5],
           [1. , 0. ]]), array([9., 1.]))
    """
    # [barhillel2005, eq. 14]
    spectrum = correlation_spectrum(within, tol, noise)
    rows = spectrum.whitening_rows
    ratios, turn = np.linalg.eigh(rows @ total @ rows.T)
    K = len(rows) if n_components is None else min(n_components, len(rows))
    return Discriminant(fix_signs(turn.T[::-1][:K] @ rows, spectrum.scale), ratios[::-1][:K])


def principal_axes(covariance: FloatArray, n_components: int) -> FloatArray:
    """Return the directions with the largest variance.

    Parameters
    ----------
    covariance : (D, D) array
        Covariance, usually S_t. The directions depend on the units of its columns.
    n_components : int
        Number of directions.

    Returns
    -------
    (n_components, D) array
        Orthonormal rows, by decreasing variance.

    Examples
    --------
    >>> principal_axes(np.diag([1.0, 9.0]), 1)
    array([[0., 1.]])
    """
    rows = np.linalg.eigh(covariance)[1].T[::-1][:n_components]
    return fix_signs(rows, np.ones(len(covariance)))
