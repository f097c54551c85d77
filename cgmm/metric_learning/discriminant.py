"""Fewer dimensions: Fisher's discriminant from chunklets, and principal axes.

The discriminant is the last step of Algorithm 2 of barhillel2005, and the principal axes are its
second. ``RCA`` calls both if ranks are deficient. Chapter 12 explains them.

=======  ======================================================================================
Ĉ, S_t   covariance within chunklets, and total covariance, D by D
A, K     rows of a linear map y = A x to K dimensions
λ        ratio of total variance to variance within chunklets, along a row of A
=======  ======================================================================================
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cgmm.metric_learning.whiten import TOL, correlation_spectrum, fix_signs
from cgmm.numerics import FloatArray


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
