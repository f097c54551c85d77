"""The Gaussian as an exponential family: density and moments as products with statistics φ.

Behind chapters 1 to 3, which need only its answers. With φ(x) = (1, x, products x_a x_b) the
log-density is φ(x) · η_k, and the weighted sums of an M-step are Σ_i r_ik φ(x_i): one matrix
product each, faster than to subtract each mean first. Squares of large numbers are subtracted from
each other, though, so digits are lost where a component is tiny beside the extent of the data: the
form is used only where that costs at most five of the sixteen.

=====  ====================================================================
φ(x)   sufficient statistics: all products a ≤ b, or the squares alone
η_k    natural parameters of component k, in the order of φ
W_k    whitener, W_k Σ_k W_kᵀ = I; (K, D) reciprocal deviations if diagonal
=====  ====================================================================
"""

from __future__ import annotations

from functools import cache

import numpy as np

from cgmm.numerics import FloatArray, IntArray

# The form is used while (extent of the data / smallest standard deviation)² stays below this.
SAFE_RATIO = 1e5
# Points in a block, at least: fewer, and calls of numpy cost more than the cache saves, and threads
# wait for each other between them; and at most: more, and narrow products become slow.
AT_LEAST, AT_MOST = 2000, 12_000
# Numbers in a block: some more than a core's own cache holds, since products bring their own order.
CELLS = 550_000
# Above this dimension the products x xᵀ outweigh what the form saves.
MAX_DIMENSION = 24


def natural_parameters(
    means: FloatArray, whiteners: FloatArray, constants: FloatArray, radii2: FloatArray
) -> FloatArray | None:
    """(K, size of φ) η_k, or None where the form would cost time or digits.

    ``means`` are measured from where the data are, which lie within ``radii2`` of there.
    """
    n_dims, diagonal = means.shape[1], whiteners.ndim == 2
    if not is_worth_it(n_dims, diagonal):
        return None
    with np.errstate(over="ignore"):  # infinitely far: no form
        squares, farthest = np.square(whiteners), radii2 + np.square(means)
        if diagonal:
            reach = np.einsum("kd,kd->k", farthest, squares)
        else:
            # The trace of the precision bounds its largest eigenvalue from above.
            reach = farthest.sum(axis=1) * np.einsum("kde->k", squares)
    if not reach.max() <= SAFE_RATIO:
        return None
    natural = np.empty((len(means), size_of(n_dims, diagonal)))
    linear, quadratic = natural[:, 1 : n_dims + 1], natural[:, n_dims + 1 :]
    if diagonal:
        np.multiply(squares, means, out=linear)
        np.multiply(squares, -0.5, out=quadratic)
    else:
        precisions = whiteners.transpose(0, 2, 1) @ whiteners
        np.einsum("kde,ke->kd", precisions, means, out=linear)
        rows, columns, factors = upper_half(n_dims)
        np.multiply(precisions[:, rows, columns], factors, out=quadratic)
    natural[:, 0] = constants - 0.5 * np.einsum("kd,kd->k", linear, means)
    return natural


def statistics_of(X: FloatArray, centre: FloatArray, diagonal: bool) -> FloatArray:
    """(size, B) φ(x - centre) of a block of points."""
    n_points, n_dims = X.shape
    phi = np.empty((size_of(n_dims, diagonal), n_points))
    phi[0] = 1
    x = np.subtract(X.T, centre[:, None], out=phi[1 : n_dims + 1])
    if diagonal:
        np.square(x, out=phi[n_dims + 1 :])
        return phi
    start = n_dims + 1
    for a in range(n_dims):
        stop = start + n_dims - a
        np.multiply(x[a], x[a:], out=phi[start:stop])
        start = stop
    return phi


def size_of(n_dims: int, diagonal: bool) -> int:
    """How many numbers φ has."""
    return 1 + n_dims + (n_dims if diagonal else n_dims * (n_dims + 1) // 2)


@cache
def upper_half(n_dims: int) -> tuple[IntArray, IntArray, FloatArray]:
    """Places a ≤ b of a symmetric matrix, in the order of φ; and the factor of each in -xᵀPx/2."""
    rows, columns = np.triu_indices(n_dims)
    # Products off the diagonal stand for two entries of P.
    return rows, columns, np.where(rows == columns, -0.5, -1.0)


def block_height(n_components: int, n_dims: int, diagonal: bool) -> int:
    """How many points make a block: φ, or deviations, and densities are what fills it."""
    # Without φ, deviations as they are and whitened.
    of_point = size_of(n_dims, diagonal) if is_worth_it(n_dims, diagonal) else 2 * n_dims
    return min(AT_MOST, max(AT_LEAST, CELLS // (of_point + 2 * n_components)))


def unpacked(
    sums: FloatArray, n_dims: int, *, diagonal: bool
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Σ_i r_ik φ(x_i), (K, size), apart: (K,) counts, (K, D) sums, (K, D, D) sums of products.

    Of the products (K, D), the squares, where ``diagonal``.
    """
    counts, firsts, products = sums[:, 0], sums[:, 1 : n_dims + 1], sums[:, n_dims + 1 :]
    if diagonal:
        return counts, firsts, products
    rows, columns, _ = upper_half(n_dims)
    matrices = np.empty((len(sums), n_dims, n_dims))
    matrices[:, rows, columns] = matrices[:, columns, rows] = products
    return counts, firsts, matrices


def is_worth_it(n_dims: int, diagonal: bool) -> bool:
    """Whether the products cost less than they save."""
    return diagonal or n_dims <= MAX_DIMENSION


def is_safe(variances: FloatArray, radii2: FloatArray) -> bool:
    """Whether subtracting the means' part left every variance its digits.

    Variances are those along the axes, (K, D), or in all directions, (K, D, D).
    """
    if variances.ndim == 2:
        return bool((radii2 / SAFE_RATIO <= variances).all())
    # The smallest eigenvalue is above a bound where what is left without it has a factor.
    bound = radii2.sum() / SAFE_RATIO
    try:
        np.linalg.cholesky(variances - bound * np.eye(len(radii2)))
    except np.linalg.LinAlgError:
        return False
    return True


def extent_of(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """From where to measure the data, and the largest squared distance from there, by coordinate.

    The origin if it lies in the data's bounding box, else the box's centre, so that a common offset
    costs no digits.
    """
    low, high = (np.asarray(end, dtype=float) for end in (X.min(axis=0), X.max(axis=0)))
    inside = bool((low <= 0).all() and (high >= 0).all())
    centre = np.zeros(X.shape[1]) if inside else low / 2 + high / 2
    with np.errstate(over="ignore"):
        return centre, np.square(np.maximum(high - centre, centre - low))
