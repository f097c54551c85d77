"""Criteria that RCA optimises, the variance of its estimate, and Fisher's discriminant.

Three criteria have Ĉ⁻¹, or a multiple of it, as their best metric: information, distance within
chunklets at unit volume, and likelihood. Three functions compute variances of the estimator Ĉ and
of directions. Chapter 12 calls them to verify the claims of barhillel2005. The discriminant is the
last step of Algorithm 2 of barhillel2005, and the principal axes are its second; ``RCA`` calls both
if ranks are deficient.

=======  ======================================================================================
A, B     rows of a linear map y = A x to K of D dimensions; a metric B = AᵗA
Ĉ, S_t   covariance within chunklets; total covariance, D by D
n, k, N  number of chunklets, points in each, and in all of them
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
    """Compute the information criterion of a linear map with unit scatter within chunklets.

    Parameters
    ----------
    rows : (K, D) array
        A, of rank K; its scale does not matter.
    within : (D, D) array
        Ĉ.
    total : (D, D) array, default=None
        Covariance of the data; the criterion is then that of eq. 5, for any K. Without it K must
        be D.

    Returns
    -------
    float
        ``log |det A|``, or log det(A S_t Aᵗ) with ``total``, where A is scaled to
        tr(A Ĉ Aᵗ) = 1; in nats. Up to a constant it is the entropy of A x; with ``total`` it is
        twice the entropy, for Gaussian x.

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
    # [barhillel2005, eqs. 3 and 4]: the maximum meets the constraint with equality.
    A = A / np.sqrt(np.einsum("kd,de,ke->", A, within, A))
    if total is None:
        return float(np.linalg.slogdet(A).logabsdet)
    # [barhillel2005, eq. 5]
    return float(np.linalg.slogdet(A @ total @ A.T).logabsdet)


def within_distance(metric: FloatArray, within: FloatArray) -> float:
    """Compute the mean squared distance of points to the mean of their chunklet, at unit volume.

    Parameters
    ----------
    metric : (D, D) array
        B, symmetric, positive definite; its scale does not matter.
    within : (D, D) array
        Ĉ.

    Returns
    -------
    float
        tr(B Ĉ) of B scaled to det B = 1; at least D det(Ĉ)^(1/D), which B = Ĉ⁻¹ attains.

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
    """Compute minus twice the log-likelihood of Gaussian classes with one covariance.

    Parameters
    ----------
    metric : (D, D) array
        B = Σ⁻¹.
    within : (D, D) array
        Ĉ, the biased one.
    n_points : int
        N, points in chunklets.

    Returns
    -------
    float
        Minus twice the log-likelihood of the chunklets about their own means, in nats, minus the
        constant N D log 2π. The minimum is at B = Ĉ⁻¹.

    Notes
    -----
    [barhillel2005, eq. 11], whose sum over points is N tr(B Ĉ).

    Examples
    --------
    >>> round(likelihood_criterion(np.eye(2), np.eye(2), 10), 12)
    20.0
    """
    # [barhillel2005, eq. 11]
    return float(n_points * (np.sum(metric * within) - np.linalg.slogdet(metric).logabsdet))


def variance_ratio(size: int, n_chunklets: float = np.inf) -> float:
    """Return the variance of the unbiased Ĉ, relative to that of one chunklet of all its points.

    Parameters
    ----------
    size : int
        k ≥ 2, points in each chunklet.
    n_chunklets : float, default=inf
        n; without it the limit of many, k / (k - 1), which bounds the ratio for every n.

    Returns
    -------
    float
        (nk - 1) / (n (k - 1)), for every element of Ĉ.

    Raises
    ------
    ValueError
        If chunklets of this size have no scatter.

    Notes
    -----
    [barhillel2005, eq. 12] is the bound. It is an equality with (nk - 1) / (nk) times its right
    side: both estimates are Wishart matrices per degree of freedom, with n (k - 1) and nk - 1.

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
        C, the true one.
    freedom : float
        Degrees of freedom: points less one, or Σ_j (n_j - 1) for chunklets.

    Returns
    -------
    (D, D) array
        (C_ij² + C_ii C_jj) / freedom.

    Notes
    -----
    [barhillel2005, App. B] gives the case of diagonal C, but with k in place of k - 1 in the
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
    """Return the ratio of each direction's share in squared distances before and after whitening.

    Parameters
    ----------
    variances : (D,) array
        λ^i, eigenvalues of the within-class covariance.

    Returns
    -------
    (D,) array
        λ^i divided by their mean: above one if RCA reduces the share of a direction.

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
    """(K, D) A: A Ĉ Aᵗ = I and A S_t Aᵗ is diagonal."""
    ratios: FloatArray
    """(K,) the diagonal of A S_t Aᵗ, descending: total variance per variance within chunklets."""


def cfld(
    within: FloatArray,
    total: FloatArray,
    n_components: int | None = None,
    *,
    tol: float = TOL,
    noise: FloatArray | float = 0.0,
) -> Discriminant:
    """Compute Fisher's linear discriminant with chunklets as classes, whitened.

    Parameters
    ----------
    within, total : (D, D) array
        Ĉ and S_t.
    n_components : int, default=None
        K; if it is None or exceeds the rank of Ĉ, that rank is used.
    tol, noise
        As in :func:`~cgmm.metric_learning.whitening`.

    Returns
    -------
    Discriminant
        The leading K solutions of S_t a = λ Ĉ a, scaled to unit variance within chunklets, and λ.

    Notes
    -----
    [barhillel2005, Alg. 2, step 3 and eq. 14], with the determinants that eq. 14 lacks. Ĉ is
    whitened first, so a direction in which chunklets do not vary causes no division by zero.

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
    """Return the directions of largest variance.

    Parameters
    ----------
    covariance : (D, D) array
        Usually S_t; the directions depend on the units of its columns.
    n_components : int
        Number of directions.

    Returns
    -------
    (n_components, D) array
        Orthonormal rows, largest variance first.

    Examples
    --------
    >>> principal_axes(np.diag([1.0, 9.0]), 1)
    array([[0., 1.]])
    """
    rows = np.linalg.eigh(covariance)[1].T[::-1][:n_components]
    return fix_signs(rows, np.ones(len(covariance)))
