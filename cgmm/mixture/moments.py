"""Weighted moments of the data: counts, means and scatter. Chapter 2.

=====  ====================================================================
r_ik   responsibility of component k for point i
N_k    Σ_i r_ik, the expected count of component k
S_k    Σ_i r_ik (x_i - μ_k)(x_i - μ_k)ᵀ, the weighted scatter
=====  ====================================================================
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cgmm.mixture.gaussian import (
    SAFE_RATIO,
    Statistics,
    extent_of,
    from_centre,
    is_diagonal,
    sufficient_statistics,
)
from cgmm.numerics import BoolArray, FloatArray, blocks

# Below this expected count a component is dead: its moments would be quotients of denormal numbers.
SMALLEST_COUNT = np.finfo(float).tiny / np.finfo(float).eps


class Moments(NamedTuple):
    """Weighted moments of the data, one row a component."""

    counts: FloatArray
    """(K,) N_k = Σ_i r_ik."""
    means: FloatArray
    """(K, D) m_k = Σ_i r_ik x_i / N_k."""
    scatter: FloatArray
    """(K, D, D) S_k = Σ_i r_ik (x_i - m_k)(x_i - m_k)ᵀ."""

    @property
    def alive(self) -> BoolArray:
        """(K,) whether the component explains anything: N_k is above the smallest usable count."""
        return self.counts > SMALLEST_COUNT


# ---------------------------------------------------------------------------- moments


def weighted_moments(
    X: FloatArray, responsibilities: FloatArray, *, diagonal: bool = False
) -> Moments:
    """Counts, means and scatter matrices of the data under given responsibilities.

    Parameters
    ----------
    X : (N, D) array
        The points.
    responsibilities : (N, K) array
        r_ik ≥ 0.
    diagonal : bool, default=False
        Compute only the diagonals of the scatter matrices; the rest stays zero.

    Returns
    -------
    Moments
        Counts (K,), means (K, D) and scatter (K, D, D). A component without responsibility (see
        ``Moments.alive``) has a zero scatter and the centre of the data for a mean.

    Notes
    -----
    The weighted sums of [schmidt2016, sect. 3.2] and of green's maximisation step.

    Examples
    --------
    >>> X, r = np.array([[0.0], [2.0], [10.0]]), np.array([[1.0], [1.0], [0.0]])
    >>> moments = weighted_moments(X, r)
    >>> moments.counts, moments.means, moments.scatter
    (array([2.]), array([[1.]]), array([[[2.]]]))
    """
    centre, radius2 = extent_of(X)
    statistics = sufficient_statistics(X.shape[1], diagonal)
    if statistics is not None:
        moments = _expanded_moments(X, centre, responsibilities, statistics)
        if _is_safe(moments, radius2):
            return moments._replace(means=moments.means + centre)
    moments = _direct_moments(X, centre, responsibilities, diagonal)
    return moments._replace(means=moments.means + centre)


def _expanded_moments(
    X: FloatArray, centre: FloatArray, responsibilities: FloatArray, statistics: Statistics
) -> Moments:
    """All sums at once, Σ_i r_ik φ(x_i - centre)."""
    counts = responsibilities.sum(axis=0)
    linear: Any = 0.0
    products: Any = 0.0
    for part in statistics.blocks(len(X)):
        x, r = from_centre(X[part].T, centre), responsibilities[part]
        linear = linear + x @ r
        products = products + statistics.products(x) @ r
    means = _per_count(linear.T, counts)
    # S_k = Σ_i r_ik x_i x_iᵀ - N_k m_k m_kᵀ
    of_means = np.einsum("k,kd,ke->kde", counts, means, means)
    of_means = of_means[:, statistics.rows, statistics.columns]
    return Moments(counts, means, statistics.unpack(products.T - of_means))


def _is_safe(moments: Moments, radius2: float) -> bool:
    """Whether subtracting the means' part left every direction of every scatter its digits."""
    alive = moments.alive
    variances = moments.scatter[alive] / moments.counts[alive, None, None]
    if is_diagonal(variances):
        smallest = np.einsum("kdd->kd", variances).min(initial=np.inf)
    else:
        smallest = np.linalg.eigvalsh(variances).min(initial=np.inf)
    return bool(radius2 / SAFE_RATIO <= smallest)


def _direct_moments(
    X: FloatArray, centre: FloatArray, responsibilities: FloatArray, diagonal: bool
) -> Moments:
    """The same in two passes: the means first, then the scatter about them."""
    n_components, n_dims = responsibilities.shape[1], X.shape[1]
    counts = responsibilities.sum(axis=0)
    linear = np.zeros((n_components, n_dims))
    for part in blocks(len(X), n_dims):
        linear += (from_centre(X[part].T, centre) @ responsibilities[part]).T
    means = _per_count(linear, counts)
    scatter = np.zeros((n_components, n_dims, n_dims))
    for part in blocks(len(X), n_components * n_dims):
        apart = from_centre(X[part].T, centre) - means[:, :, None]
        apart *= np.sqrt(responsibilities[part]).T[:, None]
        if diagonal:
            scatter[:, range(n_dims), range(n_dims)] += np.einsum("kdb,kdb->kd", apart, apart)
        else:
            scatter += apart @ apart.transpose(0, 2, 1)
    return Moments(counts, means, scatter)


def _per_count(sums: FloatArray, counts: FloatArray) -> FloatArray:
    """Σ_i r_ik x_i / N_k, and zero (the centre) for a dead component."""
    alive = counts > SMALLEST_COUNT
    return np.where(alive[:, None], sums, 0) / np.where(alive, counts, 1)[:, None]
