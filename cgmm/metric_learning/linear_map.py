"""What RCA and its online form share as estimators. Chapter 12."""

from __future__ import annotations

import warnings
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from cgmm.metric_learning.chunklets import Groups, group_points, read_chunklets, require_squares
from cgmm.metric_learning.whiten import Spectrum
from cgmm.network import SideInformation
from cgmm.numerics import FloatArray, IntArray

# ---------------------------------------------------------------------------- what estimators share


class LinearMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """What is fitted is ``components_``, and its inverse as far as there is one."""

    def transform(self, X: ArrayLike) -> FloatArray:
        """Map points to where the Euclidean distance is the learnt metric.

        Parameters
        ----------
        X : (N, D) array-like
            Points.

        Returns
        -------
        (N, K) array
            ``X @ components_.T``; nothing is centred.
        """
        check_is_fitted(self, "components_")
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return X @ self.components_.T

    def inverse_transform(self, X: ArrayLike) -> FloatArray:
        """Map points back.

        Parameters
        ----------
        X : (N, K) array-like
            Points in the space of ``transform``.

        Returns
        -------
        (N, D) array
            The points. Exact where the map has an inverse: where K = D, and on the span of the
            training data where only constant or dependent columns were dropped. Otherwise what
            linear regression of the training data makes of X.

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

    def get_mahalanobis_matrix(self) -> FloatArray:
        """The metric as a matrix.

        Returns
        -------
        (D, D) array
            B = WᵗW, W being ``components_``: the squared distance is (x - x')ᵗ B (x - x').
        """
        check_is_fitted(self, "components_")
        return self.components_.T @ self.components_

    def _store(self, components: FloatArray, inverse: FloatArray, mean: FloatArray) -> Self:
        self.components_, self.inverse_components_, self.mean_ = components, inverse, mean
        self._offset = mean - inverse @ (components @ mean)
        return self

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)


def read_points(
    model: LinearMap,
    X: ArrayLike,
    y: ArrayLike | None,
    must_link: ArrayLike | None,
    *,
    reset: bool = True,
) -> tuple[FloatArray, Groups]:
    """The points, and the chunklets by ``y`` and ``must_link`` together."""
    X = validate_data(model, X, dtype=np.float64, ensure_min_samples=2, reset=reset)
    require_squares(X)
    groups = _groups_of(y, must_link, len(X))
    if len(groups.sizes) == 0:
        raise ValueError(
            f"no two of the {len(X)} points share a chunklet, and {type(model).__name__} learns "
            "from how points of a chunklet scatter. Give must_link pairs, or y, integers with -1 "
            "for none, with at least one chunklet of two points. Without side information, "
            "sklearn.decomposition.PCA(whiten=True) whitens the total covariance."
        )
    return X, groups


def _groups_of(y: ArrayLike | None, must_link: ArrayLike | None, n_samples: int) -> Groups:
    chunklet_of = np.full(n_samples, -1) if y is None else read_chunklets(y, n_samples)
    return group_points(
        chunklet_of if must_link is None else join_links(chunklet_of, must_link).node_of
    )


def join_links(chunklet_of: IntArray, must_link: ArrayLike | None) -> SideInformation:
    """Chunklets closed under must-links as well: those of ``y`` are stars about a member."""
    given = SideInformation.build(len(chunklet_of), must_link=must_link).must_link
    members = np.flatnonzero(chunklet_of >= 0)
    _, first, which = np.unique(chunklet_of[members], return_index=True, return_inverse=True)
    stars = np.stack([members[first][which], members], axis=1)
    return SideInformation.build(len(chunklet_of), must_link=np.concatenate([given, stars]))


def rounding_of(X: FloatArray) -> FloatArray:
    """(D,) what rounding may have done to each column."""
    return 4 * np.finfo(float).eps * np.maximum(X.max(axis=0), -X.min(axis=0))


# ---------------------------------------------------------------------------- checks


def require_width(n_components: int | None, n_features: int) -> None:
    if n_components is not None and n_components > n_features:
        raise ValueError(
            f"n_components={n_components}, but the data have n_features = {n_features}; ask for "
            "at most as many."
        )


def warn_left_out(spectrum: Spectrum) -> None:
    D, rank = spectrum.vectors.shape
    if rank < D:
        warn_convergence(
            f"The chunklets vary in {rank} of {D} dimensions: the metric would stretch the others "
            f"infinitely, so they are left out, and the {D} columns of transform have rank {rank}."
        )


def warn_convergence(message: str, category: type[Warning] = UserWarning) -> None:
    """A warning that points at the caller of ``fit``, two calls up."""
    warnings.warn(message, category, stacklevel=4)
