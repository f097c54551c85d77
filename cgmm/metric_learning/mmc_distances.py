"""The objective of Xing's metric, a sum of distances, its gradient, and a bound on its maximum.

Chapter 12. Sums run over Q_N, the cannot-linked pairs, in coordinates that are whitened by the
must-links: for each, the metric M has trace one, and what is varied is a factor of it.

=========  =================================================================================
V, L       whitened points; a factor of the metric M = L Lᵀ with ‖L‖ = 1, for a diagonal metric
           a vector, M = diag(L²)
u, d, η    difference of a cannot-linked pair; its length ‖Lᵀ u‖; the same, but not below a floor,
           as the gradient divides by it
f, G       f = Σ d; gradient of f at M, ½ Σ u uᵀ / η; for a diagonal metric its diagonal
=========  =================================================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist
from sklearn.utils import check_array

from cgmm.metric_learning.mmc_pairs import Pairs, check_classes, check_relations, differences
from cgmm.metric_learning.mmc_space import root_of_scatter
from cgmm.numerics import BoolArray, FloatArray, blocks

# Distances below this part of the mean count as this much in the gradient, which divides by them.
FLOOR = 1e-8


def objective(
    components: ArrayLike,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    must_link: ArrayLike | None = None,
    cannot_link: ArrayLike | str | None = None,
) -> float:
    """Value of any metric for given relations: what :class:`~cgmm.metric_learning.MMC` maximises.

    The scale of the metric does not matter.

    Parameters
    ----------
    components : (any, D) array-like
        L with A = Lᵀ L.
    X : (N, D) array-like
        The points.
    y, must_link, cannot_link
        As in :meth:`cgmm.metric_learning.MMC.fit`.

    Returns
    -------
    float
        Σ_{Q_N} ‖x_i - x_j‖_A / (Σ_{Q_P} ‖x_i - x_j‖²_A)^½.

    Raises
    ------
    ValueError
        If the relations contradict each other or one kind is missing, or if all must-linked points
        coincide under the metric.

    Examples
    --------
    >>> X = [[0, 0], [3, 4], [5, 12]]
    >>> objective(np.eye(2), X, must_link=[[0, 1]], cannot_link=[[0, 2]])
    2.6
    """
    X = check_array(X, dtype=np.float64, input_name="X")
    components = check_array(components, dtype=np.float64, input_name="components")
    if components.shape[1] != X.shape[1]:
        raise ValueError(
            f"components has {components.shape[1]} columns, but the points have {X.shape[1]} "
            "features; give L of shape (any, D)."
        )
    near, far = check_relations(check_classes(X, y), must_link, cannot_link)
    # Differences only: without an offset they round less, and from the median no far point is one.
    mapped = (X - np.median(X, axis=0)) @ components.T
    scatter = np.linalg.norm(root_of_scatter(mapped, near))
    if scatter == 0:
        raise ValueError(
            "all must-linked points coincide under this metric: the objective has no value. Give "
            "must-links, or components, that tell them apart."
        )
    return float(Distances(mapped, far, identity_of=mapped).total() / scatter)


class Value(NamedTuple):
    """The objective at one factor, and what its gradient says."""

    factor: FloatArray
    """(r, r) L, or (r,) for a diagonal metric; of norm one."""
    objective: float
    """f = Σ d over Q_N."""
    gradient: FloatArray
    """(r, r) G, or (r,) its diagonal."""
    upper: float
    """No M of trace one has a larger objective."""


class Distances:
    """f and its gradient, over blocks of Q_N."""

    def __init__(self, V: FloatArray, far: Pairs, identity_of: FloatArray):
        # Identical points stay so under every metric, and their difference has no direction.
        # Asked before whitening, which may round equal rows differently.
        i, j = far.listed.T
        self._listed = far.listed[(identity_of[i] != identity_of[j]).any(axis=1)]
        order, self._ends = far.groups.order, far.groups.ends
        self._identity = np.unique(identity_of[order], axis=0, return_inverse=True)[1].ravel()
        self._V, self._grouped = V, V[order]
        self.n_pairs = len(self._listed) + int(sum(apart.sum() for *_, apart in self._rectangles()))
        # Until the lengths are known, just enough to divide by.
        self._floor = np.finfo(float).eps * abs(V).max(initial=1.0)
        self.mean_length = self.total() / max(1, self.n_pairs)
        self._floor = max(self._floor, FLOOR * self.mean_length / np.sqrt(max(1, V.shape[1])))

    def total(self) -> float:
        """Σ ‖u‖, the sum of the distances as they are."""
        ones = np.ones(self._V.shape[1])
        return float(sum(d for d, *_ in chain(self._along_list(ones), self._between_groups(ones))))

    def at(self, factor: FloatArray) -> Value:
        """The value at a factor, which is brought to norm one."""
        L = factor / np.linalg.norm(factor)
        total, lengths, G = 0.0, 0.0, np.zeros_like(L)
        for d, eta, moment in chain(self._along_list(L), self._between_groups(L)):
            total, lengths, G = total + d, lengths + eta, G + 0.5 * moment
        # √q ≤ ½ (q / η + η) for any η > 0, so that f(M') ≤ tr(G M') + ½ Σ η ≤ λ_max(G) + ½ Σ η for
        # every M' of trace one. With η = d it is the tangent of f at M.
        largest = G.max() if G.ndim == 1 else np.linalg.eigvalsh(G)[-1]
        return Value(L, float(total), G, float(largest + 0.5 * lengths))

    def _along_list(self, L: FloatArray) -> Iterator[tuple[float, float, FloatArray]]:
        """Σ d, Σ η and Σ u uᵀ / η over blocks of the pairs that are given by index."""
        for u in differences(self._V, self._listed):
            d = _lengths(u, L)
            eta = np.maximum(d, self._floor)
            yield d.sum(), eta.sum(), (1 / eta) @ u**2 if L.ndim == 1 else u.T @ (u / eta[:, None])

    def _between_groups(self, L: FloatArray) -> Iterator[tuple[float, float, FloatArray]]:
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
        ends, identity = self._ends, self._identity
        for rows in blocks(len(ends), len(ends), at_least=16):
            columns = slice(ends[rows.start], len(ends))
            # Of points sorted by group, those behind a row's group are its partners.
            apart = np.arange(columns.start, columns.stop) >= ends[rows, None]
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
