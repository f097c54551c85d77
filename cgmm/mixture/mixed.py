"""The family of tables with numbers and categories, independent given the component. Chapter 4.

It combines one family per kind of column. The density of a row is the product of the densities of
its parts, so log-densities are summed, and each family maximises its own part of the bound. Missing
values are left out of the density: :mod:`cgmm.mixture.missing` does this for numbers, and for
categories their one-hot code is zero.

=====  ====================================================================
N, K   points and components; D_c columns of categories
part   points, parameters or family of one kind of column; parts of numbers precede categories
=====  ====================================================================
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np
from scipy.sparse import csr_array

from cgmm.mixture.categorical import Categories
from cgmm.mixture.family import Family, Statistics
from cgmm.numerics import FloatArray


class MixedPoints:
    """Points of a mixed table: numbers (an array or ``PointsWithGaps``) and one-hot categories."""

    def __init__(self, parts: tuple[Any, ...], n_columns: int):
        self.parts, self.shape, self.dtype = parts, (parts[0].shape[0], n_columns), np.dtype(object)
        self.has_gaps = hasattr(parts[0], "pattern_of")
        self.pattern_of = getattr(parts[0], "pattern_of", None)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> MixedPoints:
        if isinstance(rows, slice) and rows == slice(0, len(self)):
            return self
        return MixedPoints(tuple(part[rows] for part in self.parts), self.shape[1])


class MixedParameters(NamedTuple):
    """θ, the parameters of a mixture over several kinds of columns."""

    weights: FloatArray
    """(K,) π_k ≥ 0, summing to one."""
    parts: tuple[Any, ...]
    """Parameters of each kind of column, whose own weights are not used."""

    def log_density(self, X: MixedPoints) -> FloatArray:
        """Return the (N, K) log-densities, summed over the parts."""
        total = self.parts[0].log_density(X.parts[0])
        for theta, points in zip(self.parts[1:], X.parts[1:], strict=True):
            total = total + theta.log_density(points)
        return total

    def with_weights(self, weights: FloatArray) -> MixedParameters:
        """Return the same components with new mixing weights."""
        return self._replace(weights=weights)


class MixedFamily(NamedTuple):
    """The family of :class:`MixedParameters`."""

    families: tuple[Family[Any], ...]
    """The family of each part."""

    def start(self, X: MixedPoints, responsibilities: FloatArray) -> MixedParameters:
        """Return an initial θ from (N, K) responsibilities."""
        pairs = zip(self.families, X.parts, strict=True)
        parts = tuple(family.start(points, responsibilities) for family, points in pairs)
        return MixedParameters(parts[0].weights, parts)

    def statistics(
        self, X: MixedPoints, responsibilities: FloatArray, parameters: MixedParameters
    ) -> Statistics:
        """Return a tuple with the sufficient statistics of each part."""
        parts = zip(self.families, X.parts, parameters.parts, strict=True)
        found: Any = tuple(
            family.statistics(points, responsibilities, theta) for family, points, theta in parts
        )
        return cast("Statistics", found)

    def maximise(self, statistics: Any, parameters: MixedParameters) -> MixedParameters:
        """Return the θ that maximises the bound in each part, with unchanged weights."""
        parts = zip(self.families, statistics, parameters.parts, strict=True)
        return parameters._replace(
            parts=tuple(family.maximise(found, theta) for family, found, theta in parts)
        )

    def n_free(self, parameters: MixedParameters) -> int:
        """Return the number of free parameters; the weights, common to all parts, count once."""
        parts = zip(self.families, parameters.parts, strict=True)
        n_own = [family.n_free(theta) for family, theta in parts]
        return sum(n_own) - (len(n_own) - 1) * (len(parameters.weights) - 1)


def coordinates(one_hot: csr_array, sizes: tuple[int, ...], n_most: int) -> FloatArray:
    """Convert categories to a few numeric coordinates by multiple correspondence analysis.

    The coordinates are the leading principal components of the one-hot columns, each of which is
    divided by the square root of its frequency. A missing category counts as an average one.

    Parameters
    ----------
    one_hot : (N, C) sparse array
        One-hot rows, from ``one_hot_with_gaps``.
    sizes : tuple of int
        C_d.
    n_most : int
        Maximum number of coordinates.

    Returns
    -------
    (N, n) array
        The coordinates, column-major.
    """
    indicators, starts = one_hot.toarray(), Categories(sizes).starts
    n_present = np.add.reduceat(indicators, starts, axis=1)
    shares = indicators.sum(axis=0) / np.repeat(np.maximum(n_present.sum(axis=0), 1), sizes)
    expected = shares * np.repeat(n_present, sizes, axis=1)
    scaled = (indicators - expected) / np.sqrt(np.maximum(shares, 1e-12))
    n_kept = min(n_most, len(shares) - len(sizes))
    axes = np.linalg.eigh(scaled.T @ scaled)[1][:, ::-1][:, :n_kept]
    return np.asfortranarray(scaled @ axes)
