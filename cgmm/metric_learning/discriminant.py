"""Fisher's discriminant from chunklets, and principal axes. Chapter 12."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cgmm.metric_learning.whiten import TOL, spectrum_of, with_signs
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
    """Fisher's linear discriminant with chunklets for classes, whitened.

    Parameters
    ----------
    within, total : (D, D) array
        Ĉ and S_t.
    n_components : int, default=None
        K; None and more than the rank of Ĉ give that rank.
    tol, noise
        As in :func:`whitening`.

    Returns
    -------
    Discriminant
        The leading K solutions of S_t a = λ Ĉ a, scaled to unit variance within chunklets, and λ.

    Notes
    -----
    [barhillel2005, Alg. 2, step 3 and eq. 14], with the determinants that eq. 14 lacks. Solved by
    whitening Ĉ first, so that a direction in which chunklets do not vary is no division by zero.

    Examples
    --------
    >>> A, ratios = cfld(np.diag([1.0, 4.0]), np.diag([1.0, 36.0]))
    >>> A, ratios
    (array([[0. , 0.5],
           [1. , 0. ]]), array([9., 1.]))
    """
    # [barhillel2005, eq. 14]
    scale, values, vectors = spectrum_of(within, tol, noise)
    rows = (vectors / np.sqrt(values)).T / scale
    ratios, turn = np.linalg.eigh(rows @ total @ rows.T)
    K = len(rows) if n_components is None else min(n_components, len(rows))
    return Discriminant(with_signs(turn.T[::-1][:K] @ rows, scale), ratios[::-1][:K])


def principal_axes(covariance: FloatArray, n_components: int) -> FloatArray:
    """Directions of largest variance.

    Parameters
    ----------
    covariance : (D, D) array
        As a rule S_t; the directions depend on the units of its columns.
    n_components : int
        How many.

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
    return with_signs(rows, np.ones(len(covariance)))
