"""Densities and statistics of Gaussians as products of matrices: the optimisation behind gaussian.

With φ(x) = (1, x, all x_a x_b), measured from the middle of the means, the log-densities of a block
of points are one product φ(x) · η_k, and the weighted sums of an M-step another, Σ_i r_ik φ(x_i):
two to four times as fast as to subtract each mean from each point. Squares of large numbers are
subtracted from each other, though. So the form serves only blocks where that costs at most five of
sixteen digits; elsewhere :mod:`cgmm.mixture.gaussian` subtracts the means.

=====  ====================================================================
φ(x)   sufficient statistics: all products a ≤ b, or the squares alone
η_k    natural parameters of component k, in the order of φ
W_k    whitener, W_k Σ_k W_kᵀ = I; (K, D) reciprocal deviations if diagonal
=====  ====================================================================
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache, wraps
from typing import TypeVar

import numpy as np

from cgmm.numerics import FloatArray, IntArray

# The form is used if (extent of the points / smallest deviation)² is at most this.
SAFE_RATIO = 1e5
# Above this dimension the products x xᵀ outweigh what the form saves.
MAX_DIMENSION = 24

Result = TypeVar("Result")


def remembered(function: Callable[..., Result]) -> Callable[..., Result]:
    """Return a function that repeats its last result if called with equal arrays, thread by thread.

    What depends on θ alone is so computed once an iteration, and φ of a block once for its
    densities and its statistics: without, an iteration takes up to half as long again.
    """
    last = threading.local()

    @wraps(function)
    def ask(*arrays: FloatArray) -> Result:
        known: tuple[list[FloatArray], Result] | None = getattr(last, "known", None)
        if known is None or not all(map(np.array_equal, known[0], arrays)):
            known = last.known = None  # frees memory that is still in the cache for the next result
            found = function(*arrays)
            if found is None:
                return found
            known = last.known = list(map(np.copy, arrays)), found
        return known[1]

    return ask


@remembered
def phi(X: FloatArray, means: FloatArray, whiteners: FloatArray) -> FloatArray | None:
    """Return (size, B) φ of a block of points, measured from the middle of the means, or None.

    None where it saves no time, or leaves these points' densities less than eleven digits.
    """
    n_dims, centre = X.shape[1], means.mean(axis=0)
    if whiteners.ndim == 3 and n_dims > MAX_DIMENSION:
        return None
    with np.errstate(over="ignore", invalid="ignore"):  # infinite distances are not safe
        reach = np.maximum(X.max(axis=0) - centre, centre - X.min(axis=0))
        farthest = np.square(reach) + np.square(means - centre)
        if whiteners.ndim == 2:
            ratios = np.einsum("kd,kd->k", farthest, np.square(whiteners))
        else:
            # The trace of the precision bounds its largest eigenvalue from above.
            ratios = farthest.sum(axis=1) * np.einsum("kde,kde->k", whiteners, whiteners)
    if not ratios.max() <= SAFE_RATIO:
        return None
    return features(X.T - centre[:, None], whiteners.ndim == 2)


def features(x: FloatArray, diagonal: bool) -> FloatArray:
    """Return (size, B) φ of points (D, B): ones, coordinates, and products or squares of these."""
    n_dims, n_points = x.shape
    n_squares = n_dims if diagonal else n_dims * (n_dims + 1) // 2
    found = np.empty((1 + n_dims + n_squares, n_points))
    found[0], found[1 : n_dims + 1] = 1, x
    start = n_dims + 1
    if diagonal:
        np.square(x, out=found[start:])
        return found
    for a in range(n_dims):
        stop = start + n_dims - a
        np.multiply(x[a], x[a:], out=found[start:stop])
        start = stop
    return found


@cache
def upper_half(n_dims: int) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the places a ≤ b of a matrix in the order of φ, and their factors in -xᵀPx/2."""
    rows, columns = np.triu_indices(n_dims)
    # Products off the diagonal stand for two entries of P.
    return rows, columns, np.where(rows == columns, -0.5, -1.0)


def natural_parameters(
    means: FloatArray, whiteners: FloatArray, constants: FloatArray
) -> FloatArray:
    """Return (K, size of φ) η_k of Gaussians, whose log-density is φ(x) · η_k."""
    if whiteners.ndim == 2:
        precisions = np.square(whiteners)
        linear, quadratic = precisions * means, -0.5 * precisions
    else:
        precisions = whiteners.transpose(0, 2, 1) @ whiteners
        rows, columns, factors = upper_half(means.shape[1])
        linear = np.einsum("kde,ke->kd", precisions, means)
        quadratic = precisions[:, rows, columns] * factors
    constants = constants - 0.5 * np.einsum("kd,kd->k", linear, means)
    return np.column_stack([constants, linear, quadratic])


def about_shifts(
    sums: FloatArray, shifts: FloatArray, diagonal: bool
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return counts, first and second moments about the means from Σ_i r_ik φ(x_i).

    The means are ``shifts`` (K, D) from the origin of φ.
    """
    n_dims = shifts.shape[1]
    counts, firsts, seconds = sums[:, 0], sums[:, 1 : n_dims + 1], sums[:, n_dims + 1 :]
    moved = firsts - counts[:, None] * shifts
    # Σ r (x - μ)(x - μ)ᵀ = Σ r x xᵀ - (Σ r x) μᵀ - μ (Σ r (x - μ))ᵀ
    if diagonal:
        return counts, moved, seconds - (firsts + moved) * shifts
    rows, columns, _ = upper_half(n_dims)
    matrices = np.empty((len(sums), n_dims, n_dims))
    matrices[:, rows, columns] = (
        seconds - firsts[:, rows] * shifts[:, columns] - shifts[:, rows] * moved[:, columns]
    )
    matrices[:, columns, rows] = matrices[:, rows, columns]
    return counts, moved, matrices
