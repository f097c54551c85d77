"""Weighted moments of the data: counts, means and scatter, the sums of an M-step. Chapter 2.

=====  ====================================================================
r_ik   responsibility of component k for point i
N_k    Σ_i r_ik, the expected count of component k
m_k    Σ_i r_ik x_i / N_k, the weighted mean
S_k    Σ_i r_ik (x_i - m_k)(x_i - m_k)ᵀ, the weighted scatter
S      Σ_k S_k, the scatter within components, of all of them together
=====  ====================================================================
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cgmm.mixture.exponential_form import extent_of, is_safe, is_worth_it, weighted_sums
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
    """(K, D, D) S_k = Σ_i r_ik (x_i - m_k)(x_i - m_k)ᵀ; or, if asked for, (K, D) their diagonals,
    or (1, D, D) their sum S."""

    @property
    def alive(self) -> BoolArray:
        """(K,) whether the component explains anything: N_k is above the smallest usable count."""
        return self.counts > SMALLEST_COUNT


def weighted_moments(
    X: FloatArray,
    responsibilities: FloatArray,
    *,
    diagonal: bool = False,
    shared: bool = False,
) -> Moments:
    """Counts, means and scatter matrices of the data under given responsibilities.

    Parameters
    ----------
    X : (N, D) array
        The points.
    responsibilities : (N, K) array
        r_ik ≥ 0.
    diagonal : bool, default=False
        Only the diagonals of the scatter matrices, (K, D), without the memory for matrices.
    shared : bool, default=False
        Only the sum of the scatter matrices, (1, D, D), without the memory for each; not together
        with ``diagonal``.

    Returns
    -------
    Moments
        Counts (K,), means (K, D) and scatter as asked for, (K, D, D) by default. A component
        without responsibility (see ``Moments.alive``) has a zero scatter and the centre of the data
        for a mean.

    Notes
    -----
    The weighted sums of [schmidt2016, sect. 3.2] and of green's maximisation step.

    Examples
    --------
    >>> X, r = np.array([[0.0], [2.0], [10.0]]), np.array([[1.0], [1.0], [0.0]])
    >>> moments = weighted_moments(X, r)
    >>> moments.counts, moments.means, moments.scatter
    (array([2.]), array([[1.]]), array([[[2.]]]))
    >>> weighted_moments(X, r, diagonal=True).scatter
    array([[2.]])
    """
    centre, radii2 = extent_of(X)
    if is_worth_it(X.shape[1], diagonal):
        counts, sums, products = weighted_sums(X, centre, responsibilities, diagonal=diagonal)
        means, alive = _per_count(sums, counts), counts > SMALLEST_COUNT
        # S_k = Σ_i r_ik x_i x_iᵀ - N_k m_k m_kᵀ
        scatter = products - _outer(counts, means, diagonal)
        per_count = scatter[alive] / counts[alive].reshape(-1, *[1] * (scatter.ndim - 1))
        if is_safe(per_count, radii2):
            scatter = scatter.sum(axis=0, keepdims=True) if shared else scatter
            return Moments(counts, means + centre, scatter)
    return _two_passes(X, centre, responsibilities, diagonal=diagonal, shared=shared)


def _two_passes(
    X: FloatArray, centre: FloatArray, responsibilities: FloatArray, *, diagonal: bool, shared: bool
) -> Moments:
    """The means first, then the scatter about them: no digits are lost."""
    n_components, n_dims = responsibilities.shape[1], X.shape[1]
    counts = responsibilities.sum(axis=0)
    sums = np.zeros((n_components, n_dims))
    for part in blocks(len(X), n_dims):
        sums += responsibilities[part].T @ (X[part] - centre)
    means = _per_count(sums, counts)
    n_matrices = 1 if shared else n_components
    scatter = np.zeros((n_components, n_dims) if diagonal else (n_matrices, n_dims, n_dims))
    for part in blocks(len(X), n_components * n_dims):
        apart = (X[part] - centre).T - means[:, :, None]
        apart *= np.sqrt(responsibilities[part]).T[:, None]
        if diagonal:
            scatter += np.einsum("kdb,kdb->kd", apart, apart)
        elif shared:
            together = apart.transpose(1, 0, 2).reshape(n_dims, -1)
            scatter[0] += together @ together.T
        else:
            scatter += apart @ apart.transpose(0, 2, 1)
    return Moments(counts, means + centre, scatter)


def _per_count(sums: FloatArray, counts: FloatArray) -> FloatArray:
    """Σ_i r_ik x_i / N_k, and zero (the centre) for a dead component."""
    alive = counts > SMALLEST_COUNT
    return np.where(alive[:, None], sums, 0) / np.where(alive, counts, 1)[:, None]


def _outer(counts: FloatArray, means: FloatArray, diagonal: bool) -> FloatArray:
    """N_k m_k m_kᵀ, symmetric to the last bit, or only its diagonal."""
    if diagonal:
        return counts[:, None] * np.square(means)
    outer = np.einsum("k,kd,ke->kde", counts, means, means)
    return np.triu(outer) + np.triu(outer, 1).transpose(0, 2, 1)
