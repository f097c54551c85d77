"""Sums over pairs of MMC's objective, and their gradient. Chapter 12."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from cgmm.metric_learning.mmc_pairs import Pairs, by_group
from cgmm.metric_learning.mmc_space import EPS, Space, differences_of
from cgmm.numerics import BoolArray, FloatArray, blocks

# Distances below this part of the mean count as this much in the gradient, which divides by them.
FLOOR = 1e-8

# Differences that take less than this, in numbers, are kept from one iteration to the next: 16 MiB.
KEPT_CELLS = 2**21


# ---------------------------------------------------------------------------- objective


class Value(NamedTuple):
    """The objective at one factor, and what its gradient says."""

    factor: FloatArray
    """(r, r) L, or (r,) for a diagonal metric; of norm one."""
    objective: float
    """f = Σ_D d."""
    gradient: FloatArray
    """(r, r) G, or (r,) its diagonal."""
    upper: float
    """No M of trace one has a larger objective."""


class Distances:
    """f and its gradient, over blocks of Q_N: only of few pairs are the differences kept."""

    def __init__(self, V: FloatArray, far: Pairs, identity_of: FloatArray):
        # Identical points stay so under every metric, and their difference has no direction.
        # Asked before whitening, which may round equal rows differently.
        i, j = far.pairs.T
        self._pairs = far.pairs[(identity_of[i] != identity_of[j]).any(axis=1)]
        order, self._ends = by_group(far.groups)
        self._identity = np.unique(identity_of[order], axis=0, return_inverse=True)[1].ravel()
        self._V, self._grouped, self._groups = V, V[order], far.groups[order]
        self.n_pairs = len(self._pairs) + int(sum(apart.sum() for *_, apart in self._rectangles()))
        few = self._pairs.size * V.shape[1] < KEPT_CELLS
        self._kept = list(differences_of(V, self._pairs)) if few else []
        # Until the lengths are known, just enough to divide by.
        self._floor = EPS * abs(V).max(initial=1.0)
        self.mean_length = self.total() / max(1, self.n_pairs)
        self._floor = max(self._floor, FLOOR * self.mean_length / np.sqrt(max(1, V.shape[1])))

    def total(self) -> float:
        """Σ ‖u‖, the sum of the distances as they are."""
        ones = np.ones(self._V.shape[1])
        return float(sum(d for d, *_ in chain(self._listed(ones), self._between(ones))))

    def at(self, factor: FloatArray) -> Value:
        """The value at a factor, which is brought to norm one."""
        L = factor / np.linalg.norm(factor)
        total, lengths, G = 0.0, 0.0, np.zeros_like(L)
        for d, eta, moment in chain(self._listed(L), self._between(L)):
            total, lengths, G = total + d, lengths + eta, G + 0.5 * moment
        # √q ≤ ½ (q / η + η) for any η > 0, so that f(M') ≤ tr(G M') + ½ Σ η ≤ λ_max(G) + ½ Σ η for
        # every M' of trace one. With η = d it is the tangent of f at M.
        largest = G.max() if G.ndim == 1 else np.linalg.eigvalsh(G)[-1]
        return Value(L, float(total), G, float(largest + 0.5 * lengths))

    def _listed(self, L: FloatArray) -> Iterator[tuple[float, float, FloatArray]]:
        """Σ d, Σ η and Σ u uᵀ / η over blocks of the pairs that are given by index."""
        for u in self._kept or differences_of(self._V, self._pairs):
            d = _lengths(u, L)
            eta = np.maximum(d, self._floor)
            yield d.sum(), eta.sum(), (1 / eta) @ u**2 if L.ndim == 1 else u.T @ (u / eta[:, None])

    def _between(self, L: FloatArray) -> Iterator[tuple[float, float, FloatArray]]:
        """The same over all pairs between groups, a few rows of the distance matrix at a time."""
        V = self._grouped
        mapped, degrees = _times(V, L), np.zeros(len(V))
        for rows, columns, apart in self._rectangles():
            d = cdist(mapped[rows], mapped[columns]) * apart
            eta = np.maximum(d, self._floor)
            w = apart / eta
            degrees[rows] += w.sum(axis=1)
            degrees[columns] += w.sum(axis=0)
            cross = _moment(V[rows], w @ V[columns], L.ndim)
            yield d.sum(), (eta * apart).sum(), -(cross + cross.T)
        # Σ w (v_i - v_j)(v_i - v_j)ᵀ: the squares, of which the cross terms above were taken.
        yield 0.0, 0.0, _moment(V * degrees[:, None], V, L.ndim)

    def _rectangles(self) -> Iterator[tuple[slice, slice, BoolArray]]:
        """Rows and columns of the distance matrix that hold each pair once, and which count."""
        groups, identity = self._groups, self._identity
        for rows in blocks(len(groups), len(groups), at_least=16):
            columns = slice(self._ends[rows.start], len(groups))
            # Of points sorted by group, those behind a row's group are its partners.
            apart = groups[columns] > groups[rows, None]
            apart &= identity[columns] != identity[rows, None]
            yield rows, columns, apart


def _times(X: FloatArray, L: FloatArray) -> FloatArray:
    """Rows x mapped to Lᵀ x, where a vector L stands for a diagonal matrix."""
    return X * L if L.ndim == 1 else X @ L


def _lengths(u: FloatArray, L: FloatArray) -> FloatArray:
    """‖Lᵀ u‖ of each row."""
    if L.ndim == 1:
        return np.sqrt(u**2 @ L**2)
    z = u @ L
    return np.sqrt(np.einsum("ij,ij->i", z, z))


def _moment(a: FloatArray, b: FloatArray, n_axes: int) -> FloatArray:
    """Σ a bᵀ over rows, or only its diagonal."""
    return np.einsum("ij,ij->j", a, b) if n_axes == 1 else a.T @ b


def require_difference(distances: Distances, space: Space) -> None:
    """Some cannot-linked points must differ by more than rounding."""
    if distances.mean_length <= space.noise * np.sqrt(space.rank):
        raise ValueError(
            "all cannot-linked pairs are pairs of identical points, or of points that differ by "
            "rounding alone: no metric can tell them apart. Give cannot-links between points that "
            "differ."
        )
