"""Whitening: the inverse square root of a covariance, and what to do where it has none.

Chapter 12, where RCA whitens the covariance within chunklets. Ranks are judged on correlations, so
that they do not depend on units, and variance that rounding could have made counts as none.

=======  ======================================================================================
C, D     a covariance, and its dimensions
W        the linear map with W C Wᵗ = I
R        rank of C: in how many directions there is variance
=======  ======================================================================================
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from cgmm.numerics import FloatArray

# Smallest eigenvalue of a correlation matrix, relative to the largest, that counts as variance.
TOL = 1e-10


def whitening(
    covariance: FloatArray, *, tol: float = TOL, noise: FloatArray | float = 0.0
) -> FloatArray:
    """A linear map W with W C Wᵗ = I.

    Parameters
    ----------
    covariance : (D, D) array
        C, symmetric, positive semi-definite.
    tol : float, default=1e-10
        Eigenvalues of the correlation matrix below this share of the largest count as zero.
    noise : float or (D,) array, default=0
        Standard deviation of rounding in each column: what no direction's variance may owe to it.

    Returns
    -------
    (R, D) array
        Of rank R: if that is D, the symmetric inverse square root; otherwise R rows that span the
        directions with variance, whose metric WᵗW is a pseudo-inverse of C in units of each
        column's deviation. Where columns differ so much in scale (10⁸ and more) that the symmetric
        root cannot be held in floating point, the rows are a rotation of it.

    Examples
    --------
    >>> whitening(np.diag([4.0, 0.25]))
    array([[0.5, 0. ],
           [0. , 2. ]])
    >>> whitening(np.diag([4.0, 0.0]))
    array([[0.5, 0. ]])
    """
    # [barhillel2005, Alg. 1, step 3]
    root = _easy_root(covariance, tol, noise)
    if root is not None:
        return root
    spectrum = correlation_spectrum(covariance, tol, noise)
    scale, rows = spectrum.scale, spectrum.whitening_rows
    if len(rows) < len(covariance):
        return fix_signs(rows[::-1], scale)
    # rows = U S Vᵗ and rowsᵗ rows = C⁻¹, so V S Vᵗ is its root; no digit of C is lost to squaring.
    _, lengths, right = np.linalg.svd(rows)
    root = (right.T * lengths) @ right
    correlation = covariance / scale / scale[:, None]

    def error(W: FloatArray) -> float:
        return abs((W * scale) @ correlation @ (W * scale).T - np.eye(len(W))).max()

    return root if error(root) < 1e-8 + 10 * error(rows) else spectrum.vectors @ rows


def _easy_root(covariance: FloatArray, tol: float, noise: FloatArray | float) -> FloatArray | None:
    """The inverse root from one decomposition, where the condition number permits; or None."""
    values, vectors = np.linalg.eigh(covariance)
    variances = covariance.diagonal()
    if not (values[0] > 1e-6 * values[-1] and variances.min() > 0):
        return None
    # The correlation matrix has a condition number at most D times as large (van der Sluis, 1969).
    most_noise = np.max(noise**2 / variances)
    if values[0] < (tol + most_noise) * len(values) * values[-1]:
        return None
    return (vectors / np.sqrt(values)) @ vectors.T


class Spectrum(NamedTuple):
    """Directions in which there is variance, in units of each column's deviation."""

    scale: FloatArray
    """(D,) deviation of each column, one where it does not vary."""
    values: FloatArray
    """(R,) eigenvalues of the correlation matrix, ascending."""
    vectors: FloatArray
    """(D, R) its eigenvectors."""

    @property
    def whitening_rows(self) -> FloatArray:
        """(R, D) one row an eigenvector, in units of the data, scaled to unit variance."""
        return (self.vectors / np.sqrt(self.values)).T / self.scale


def correlation_spectrum(covariance: FloatArray, tol: float, noise: FloatArray | float) -> Spectrum:
    """Eigenvectors of the correlation matrix that stand out of rounding."""
    # A variance of zero may be rounded to less.
    scale = np.sqrt(np.maximum(covariance.diagonal(), 0))
    varies = scale > noise
    scale = np.where(varies, scale, 1)
    values, vectors = eigh(covariance / scale / scale[:, None] * np.outer(varies, varies))
    # eigh may leave rounding where a column does not vary.
    vectors[~varies] = 0
    # The variance that an error of ``noise`` in each column makes along each eigenvector
    floor = tol * values[-1] + np.square(noise / scale) @ np.square(vectors)
    kept = values > np.maximum(floor, 0)
    return Spectrum(scale, values[kept], vectors[:, kept])


def fix_signs(rows: FloatArray, scale: FloatArray) -> FloatArray:
    """Eigenvectors have no sign: take the one that makes a row's heaviest entry positive."""
    heaviest = abs(rows * scale).argmax(axis=1)
    signs = np.sign(rows[np.arange(len(rows)), heaviest])
    # Adding zero turns -0.0 into 0.0.
    return rows * signs[:, None] + 0.0
