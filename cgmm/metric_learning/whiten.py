"""Compute whitening maps: the inverse square root of a covariance, even if it is singular.

RCA whitens the covariance within chunklets with these functions; chapter 12 explains them. Ranks
are determined from correlations, so they do not depend on units. Variance that rounding errors
could have caused is treated as zero.

=======  ======================================================================================
C, D     a covariance matrix, and its number of rows
W        a linear map with W C Wᵗ = I
R        rank of C: the number of directions with variance
=======  ======================================================================================
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from cgmm.numerics import FloatArray

# Eigenvalues of a correlation matrix below this share of the largest one are treated as zero.
TOL = 1e-10


def whitening(
    covariance: FloatArray, *, tol: float = TOL, noise: FloatArray | float = 0.0
) -> FloatArray:
    """Return a linear map W with W C Wᵗ = I.

    Parameters
    ----------
    covariance : (D, D) array
        C, symmetric, positive semi-definite.
    tol : float, default=1e-10
        Eigenvalues of the correlation matrix below this share of the largest one are treated as
        zero.
    noise : float or (D,) array, default=0
        Standard deviation of rounding errors in each column. Directions whose variance these errors
        could explain are treated as directions without variance.

    Returns
    -------
    (R, D) array
        W. If R = D, it is the symmetric inverse square root of C. Otherwise its R rows span the
        directions with variance, and WᵗW is a pseudo-inverse of C in units of each column's
        standard deviation. If the scales of columns differ by so much (10⁸ or more) that floating
        point cannot represent the symmetric root, W is a rotation of it.

    Examples
    --------
    >>> whitening(np.diag([4.0, 0.25]))
    array([[0.5, 0. ],
           [0. , 2. ]])
    >>> whitening(np.diag([4.0, 0.0]))
    array([[0.5, 0. ]])
    """
    # [barhillel2005, Alg. 1, step 3]
    root = _compute_well_conditioned_root(covariance, tol, noise)
    if root is not None:
        return root
    spectrum = correlation_spectrum(covariance, tol, noise)
    scale, rows = spectrum.scale, spectrum.whitening_rows
    if len(rows) < len(covariance):
        return fix_signs(rows[::-1], scale)
    # Since rows = U S Vᵗ and rowsᵗ rows = C⁻¹, the root of C⁻¹ is V S Vᵗ. Computing the product
    # rowsᵗ rows first would lose digits.
    _, lengths, right = np.linalg.svd(rows)
    root = (right.T * lengths) @ right
    correlation = covariance / scale / scale[:, None]

    def compute_error(W: FloatArray) -> float:
        return abs((W * scale) @ correlation @ (W * scale).T - np.eye(len(W))).max()

    is_accurate = compute_error(root) < 1e-8 + 10 * compute_error(rows)
    return root if is_accurate else spectrum.vectors @ rows


def _compute_well_conditioned_root(
    covariance: FloatArray, tol: float, noise: FloatArray | float
) -> FloatArray | None:
    """Return the inverse root by one eigendecomposition, or None if C is badly conditioned."""
    values, vectors = np.linalg.eigh(covariance)
    variances = covariance.diagonal()
    if not (values[0] > 1e-6 * values[-1] and variances.min() > 0):
        return None
    # The condition number of the correlation matrix is at most D times that of the covariance
    # (van der Sluis, 1969).
    max_noise = np.max(noise**2 / variances)
    if values[0] < (tol + max_noise) * len(values) * values[-1]:
        return None
    return (vectors / np.sqrt(values)) @ vectors.T


class Spectrum(NamedTuple):
    """Eigenvectors and eigenvalues of a correlation matrix, without directions of no variance."""

    scale: FloatArray
    """(D,) standard deviation of each column, or one if the column is constant."""
    values: FloatArray
    """(R,) eigenvalues of the correlation matrix, in increasing order."""
    vectors: FloatArray
    """(D, R) eigenvectors of the correlation matrix."""

    @property
    def whitening_rows(self) -> FloatArray:
        """(R, D) eigenvectors as rows, in the units of the data, scaled to unit variance."""
        return (self.vectors / np.sqrt(self.values)).T / self.scale


def correlation_spectrum(covariance: FloatArray, tol: float, noise: FloatArray | float) -> Spectrum:
    """Return the eigenvectors of the correlation matrix whose variance exceeds rounding errors."""
    # Rounding errors may make a variance of zero negative.
    scale = np.sqrt(np.maximum(covariance.diagonal(), 0))
    varies = scale > noise
    scale = np.where(varies, scale, 1)
    values, vectors = eigh(covariance / scale / scale[:, None] * np.outer(varies, varies))
    # Remove the rounding errors that eigh may leave in constant columns.
    vectors[~varies] = 0
    # Eigenvalues must exceed the variance that ``noise`` in each column causes along eigenvectors.
    threshold = tol * values[-1] + np.square(noise / scale) @ np.square(vectors)
    is_kept = values > np.maximum(threshold, 0)
    return Spectrum(scale, values[is_kept], vectors[:, is_kept])


def fix_signs(rows: FloatArray, scale: FloatArray) -> FloatArray:
    """Change the arbitrary signs of eigenvectors so that their largest entries are positive."""
    largest = abs(rows * scale).argmax(axis=1)
    signs = np.sign(rows[np.arange(len(rows)), largest])
    # Adding zero turns -0.0 into 0.0.
    return rows * signs[:, None] + 0.0
