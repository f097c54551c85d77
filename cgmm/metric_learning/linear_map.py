"""Base classes of the metric learners, whose result is a linear map of the points.

A linear map W defines the metric B = WᵗW: the Euclidean distance between W x and W x' is the
distance between x and x' in this metric. ``RCA``, ``OnlineRCA`` and ``MMC`` inherit ``transform``
and the checks of their arguments from these classes. Chapter 12 explains them.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from cgmm.given import explain_missing
from cgmm.metric_learning.chunklets import Groups, check_chunklets, close_chunklets, group_points
from cgmm.network.misreadings import check_rows
from cgmm.numerics import FloatArray, IntArray, check_ranges, warn_caller
from cgmm.runs import Versioned


def warn_of_two_sources(model: LinearMap, y: IntArray, **relations: Any) -> None:
    """Warn that the fit uses both ``y`` and relations.

    A pipeline passes ``y`` to each of its steps, even if the user needs it only for the score.
    """
    sources = [name for name, pairs in relations.items() if _has_pairs(pairs)]
    if not sources or len(group_points(y).sizes) == 0:
        return
    name, known, listed = type(model).__name__, y[y >= 0], " and ".join(sources)
    warn_caller(
        f"{name} learns from y as well as from {listed}: y puts {len(known)} of "
        f"{len(y)} points into {len(np.unique(known))} groups. If y is there only to score the "
        f"result, as in a pipeline or a search, {name} has learnt what it is judged "
        "by: fit without y, and score afterwards. If both are meant, ignore this warning.",
        UserWarning,
    )


def _has_pairs(pairs: Any) -> bool:
    """Return True if an argument contains at least one pair of points."""
    return pairs is not None and not isinstance(pairs, str) and np.size(pairs) > 0


class LinearMap(Versioned, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base class of estimators whose fit results in ``components_``, the matrix of a linear map."""

    components_: FloatArray

    def transform(self, X: ArrayLike) -> FloatArray:
        """Map points to a space whose Euclidean distance is the learnt metric.

        Parameters
        ----------
        X : (N, D) array-like
            Points.

        Returns
        -------
        (N, K) array
            ``X @ components_.T``; the mean is not subtracted.
        """
        check_is_fitted(self, "components_")
        with explain_missing(X):
            X = validate_data(self, X, dtype=np.float64, reset=False)
        return X @ self.components_.T

    def get_mahalanobis_matrix(self) -> FloatArray:
        """Return the metric as a matrix.

        Returns
        -------
        (D, D) array
            B = WᵗW, where W is ``components_``; the squared distance is (x - x')ᵗ B (x - x').
        """
        check_is_fitted(self, "components_")
        return self.components_.T @ self.components_

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)


class ChunkletMap(LinearMap):
    """Base class of estimators that learn a linear map, and its inverse, from chunklets."""

    def inverse_transform(self, X: ArrayLike) -> FloatArray:
        """Map transformed points back to the original space.

        Parameters
        ----------
        X : (N, K) array-like
            Points in the space of ``transform``.

        Returns
        -------
        (N, D) array
            Points in the original space. They are exact if K = D; and, for points in the span of
            the training data, if only constant or dependent columns were dropped. Otherwise they
            are predictions by linear regression of the training data on the transformed data.

        Raises
        ------
        ValueError
            If X does not have K columns.
        """
        check_is_fitted(self, "components_")
        Y = np.asarray(X, dtype=np.float64)
        if Y.ndim != 2 or Y.shape[1] != len(self.components_):
            raise ValueError(
                f"X has shape {Y.shape}; inverse_transform takes what transform returns, "
                f"(N, {len(self.components_)})."
            )
        return Y @ self.inverse_components_.T + self._offset

    def _store_map(self, components: FloatArray, inverse: FloatArray, mean: FloatArray) -> Self:
        """Store the map, its inverse and the mean of the data as attributes."""
        self.components_, self.inverse_components_, self.mean_ = components, inverse, mean
        self._offset = mean - inverse @ (components @ mean)
        return self

    def _validate_chunklets(
        self, X: ArrayLike, y: ArrayLike | None, must_link: ArrayLike | None, reset: bool = True
    ) -> tuple[FloatArray, Groups]:
        """Return the points, and the chunklets that follow from ``y`` and ``must_link``."""
        check_rows(X, must_link=must_link)
        with explain_missing(X):
            X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2, reset=reset)
        check_ranges(X)
        chunklet_of = check_chunklets(y, len(X))
        if must_link is not None:
            warn_of_two_sources(self, chunklet_of, must_link=must_link)
            chunklet_of = close_chunklets(chunklet_of, must_link).node_of
        groups = group_points(chunklet_of)
        if len(groups.sizes) == 0:
            raise ValueError(
                f"no two of the {len(X)} points share a chunklet, and {type(self).__name__} learns "
                "from how points of a chunklet scatter. Give must_link pairs, or y, integers with "
                "-1 for none, with at least one chunklet of two points. Without side information, "
                "sklearn.decomposition.PCA(whiten=True) whitens the total covariance."
            )
        return X, groups
