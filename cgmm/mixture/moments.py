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

from functools import reduce
from typing import NamedTuple

import numpy as np

from cgmm.mixture.exponential_form import (
    block_height,
    extent_of,
    is_safe,
    is_worth_it,
    statistics_of,
    unpacked,
)
from cgmm.numerics import BoolArray, FloatArray, cut

# Below this expected count a component is dead: its moments would be quotients of denormal numbers.
SMALLEST_COUNT = np.finfo(float).tiny / np.finfo(float).eps
# A mean that moved by so many variances, squared, takes two of sixteen digits from the scatter.
NEAR = 100
# A responsibility so much below the largest adds less to sums than their rounding, however far away
# its point is: among well separated components most are.
NEGLIGIBLE = np.finfo(float).eps ** 3

Sums = tuple[FloatArray, ...]
"""Statistics of some points: numbers that add."""


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

    def times(self, factor: float) -> Moments:
        """Those of so many times the points."""
        return Moments(factor * self.counts, self.means, factor * self.scatter)

    def plus(self, other: Moments) -> Moments:
        """Those of the points of both."""
        counts = self.counts + other.counts
        share = np.divide(other.counts, counts, out=np.zeros_like(counts), where=counts > 0)
        apart, diagonal = other.means - self.means, self.scatter.ndim == 2
        # Each scatter is about its own means: S + S' + N N' / (N + N') (m - m')(m - m')ᵀ
        between = _outer(share * self.counts, apart, diagonal)
        if len(self.scatter) < len(between):
            between = between.sum(axis=0, keepdims=True)
        means = self.means + share[:, None] * apart
        return Moments(counts, means, self.scatter + other.scatter + between)


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
    measure: Measure = AboutMeans(np.tile(centre, (responsibilities.shape[1], 1)), diagonal, shared)
    if is_worth_it(X.shape[1], diagonal):
        measure = AboutCentre(centre, radii2, diagonal, shared)
    moments, closer = measure.moments(_summed(measure, X, responsibilities))
    if closer is not None:
        moments, _ = closer.moments(_summed(closer, X, responsibilities))
    return moments


def _summed(measure: Measure, X: FloatArray, responsibilities: FloatArray) -> Sums:
    """The sums over all points, block by block."""
    height = block_height(responsibilities.shape[1], X.shape[1], measure.diagonal)
    parts = (measure.sums(X[part], responsibilities[part]) for part in cut(len(X), height))
    return reduce(added, parts)


def added(one: Sums, other: Sums) -> Sums:
    """Statistics of two blocks together."""
    return tuple(map(np.add, one, other))


# ---------------------------------------------------------------------------- sums of one block


class AboutCentre(NamedTuple):
    """Sums of φ, measured from where the data are: one matrix product."""

    centre: FloatArray
    radii2: FloatArray
    diagonal: bool
    shared: bool

    def sums(
        self, X: FloatArray, responsibilities: FloatArray, phi: FloatArray | None = None
    ) -> Sums:
        """((K, size) Σ_i r_ik φ(x_i),), from φ of the block where that is at hand."""
        phi = statistics_of(X, self.centre, self.diagonal) if phi is None else phi
        return ((phi @ responsibilities).T,)

    def moments(self, sums: Sums) -> tuple[Moments, AboutMeans | None]:
        """The moments; and from where to measure once more, should these have lost digits."""
        counts, firsts, products = unpacked(sums[0], len(self.centre), diagonal=self.diagonal)
        means, alive = _per_count(firsts, counts), counts > SMALLEST_COUNT
        # S_k = Σ_i r_ik x_i x_iᵀ - N_k m_k m_kᵀ
        scatter = products - _outer(counts, means, self.diagonal)
        per_count = scatter[alive] / counts[alive].reshape(-1, *[1] * (scatter.ndim - 1))
        means = means + self.centre
        closer = None
        if not is_safe(per_count, self.radii2):
            closer = AboutMeans(means, self.diagonal, self.shared)
        scatter = scatter.sum(axis=0, keepdims=True) if self.shared else scatter
        return Moments(counts, means, scatter), closer


class AboutMeans(NamedTuple):
    """Sums of deviations from means that are near the new ones: one product a component."""

    about: FloatArray
    """(K, D) a_k."""
    diagonal: bool
    shared: bool

    def sums(
        self, X: FloatArray, responsibilities: FloatArray, phi: FloatArray | None = None
    ) -> Sums:
        """(K,) N_k, (K, D) Σ_i r_ik (x_i - a_k), and their products as ``Moments.scatter``."""
        n_components, n_dims = self.about.shape
        firsts = np.empty(self.about.shape)
        n_matrices = 1 if self.shared else n_components
        shape = (n_components, n_dims) if self.diagonal else (n_matrices, n_dims, n_dims)
        products = np.zeros(shape)
        for k, (mean, r) in enumerate(zip(self.about, responsibilities.T, strict=True)):
            x, r = _that_matter(X, r)
            apart = x - mean[:, None]
            firsts[k] = apart @ r
            apart *= np.sqrt(r)
            if self.diagonal:
                products[k] = np.einsum("db,db->d", apart, apart)
            else:
                products[0 if self.shared else k] += apart @ apart.T
        return responsibilities.sum(axis=0), firsts, products

    def moments(self, sums: Sums) -> tuple[Moments, AboutMeans | None]:
        """The moments; and from where to measure once more, should these have lost digits."""
        counts, firsts, products = sums
        shifts = _per_count(firsts, counts)
        # S_k = Σ_i r_ik (x_i - a_k)(x_i - a_k)ᵀ - N_k (m_k - a_k)(m_k - a_k)ᵀ
        lost = _outer(counts, shifts, self.diagonal)
        scatter = products - (lost.sum(axis=0, keepdims=True) if self.shared else lost)
        means, closer = self.about + shifts, None
        if not self._is_near(counts, shifts, scatter):
            closer = self._replace(about=means)
        return Moments(counts, means, scatter), closer

    def _is_near(self, counts: FloatArray, shifts: FloatArray, scatter: FloatArray) -> bool:
        """Whether in each coordinate the means moved no farther than some deviations."""
        of_scatter = scatter if self.diagonal else np.einsum("kdd->kd", scatter)
        # What moved by the rounding of the means has not moved.
        moved = np.maximum(np.square(shifts) - np.square(2 * np.spacing(self.about)), 0)
        moved *= counts[:, None]
        moved = moved.sum(axis=0, keepdims=True) if self.shared else moved
        return bool((moved <= NEAR * of_scatter).all())


Measure = AboutCentre | AboutMeans


def _that_matter(X: FloatArray, r: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(D, n) points, and (n,) their responsibilities: all, or those that are not negligible."""
    matter = np.flatnonzero(r > NEGLIGIBLE * r.max())
    if 2 * len(matter) > len(r):
        return X.T, r
    return np.take(X.T, matter, axis=1), r[matter]


def _per_count(sums: FloatArray, counts: FloatArray) -> FloatArray:
    """Σ_i r_ik x_i / N_k, and zero (the centre) for a dead component."""
    alive = counts > SMALLEST_COUNT
    return np.where(alive[:, None], sums, 0) / np.where(alive, counts, 1)[:, None]


def _outer(counts: FloatArray, means: FloatArray, diagonal: bool) -> FloatArray:
    """N_k m_k m_kᵀ, symmetric to the last bit, or only its diagonal."""
    if diagonal:
        return counts[:, None] * np.square(means)
    return counts[:, None, None] * (means[:, :, None] * means[:, None, :])
