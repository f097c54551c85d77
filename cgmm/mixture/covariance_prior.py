"""An inverse Wishart prior of covariances, for components with few points. Chapter 3.

With the prior ``p(Σ_k) ∝ |Σ_k|^(-(ν + D + 1) / 2) exp(-½ tr Λ Σ_k⁻¹)`` an M-step maximises the
bound plus ``Σ_k log p(Σ_k)``: it adds Λ to each scatter and ν + D + 1 to each count. A shared
covariance has the prior once, and diagonal ones have the same density at diagonal matrices.

=====  ====================================================================
D, K   dimensions of the points, and number of components
ν      degrees of freedom, e.g. D + 2; Λ scale matrix (D, D)
=====  ====================================================================
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cgmm.mixture.gaussian import whiten
from cgmm.mixture.missing import PointsWithGaps
from cgmm.numerics import FloatArray


class CovariancePrior(NamedTuple):
    """ν and Λ of the inverse Wishart prior."""

    degrees: float
    """ν ≥ 0."""
    scale: FloatArray
    """(D, D) Λ, symmetric and positive definite."""

    @classmethod
    def of(cls, given: Any, X: Any, n_components: int) -> CovariancePrior | None:
        """Return the prior that ``covariance_prior`` of an estimator stands for."""
        if given is None or isinstance(given, CovariancePrior):
            return given
        n_dims = X.shape[1]
        if isinstance(given, str):
            # Fraley and Raftery (2007), sect. 2.2: K components share the volume of all the data
            is_complete = not isinstance(X, PointsWithGaps)
            scatter = np.atleast_2d(np.cov(X.T)) if is_complete else X.single.covariances[0]
            return cls(n_dims + 2, scatter / n_components ** (2 / n_dims))
        degrees, scale = float(given[0]), np.asarray(given[1], dtype=float)
        is_square = scale.shape == (n_dims, n_dims) and np.allclose(scale, scale.T)
        if not (degrees >= 0 and is_square and np.linalg.eigvalsh(scale).min() > 0):
            raise ValueError(
                f"covariance_prior is ({degrees:g}, an array of shape {scale.shape}); it must be "
                f"(ν, Λ) with ν ≥ 0 and Λ symmetric, positive definite and of shape "
                f"({n_dims}, {n_dims}), or 'fraley-raftery'."
            )
        return cls(degrees, scale)

    def added_to(
        self, counts: FloatArray, scatter: FloatArray, shared: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Return counts (K,) and scatter, full or its diagonals, with those of the prior."""
        more = self.degrees + len(self.scale) + 1
        scale = np.diag(self.scale) if scatter.ndim == 2 else self.scale
        return counts + (more / len(counts) if shared else more), scatter + scale

    def log_density(self, covariances: FloatArray, shared: bool) -> float:
        """Return Σ_k log p(Σ_k), up to a constant, of covariances in the form of θ."""
        whiteners, log_dets = whiten(covariances[:1] if shared else covariances)
        if whiteners.ndim == 2:
            traces = np.square(whiteners) @ np.diag(self.scale)
        else:
            traces = np.einsum("kde,ef,kdf->k", whiteners, self.scale, whiteners)
        return float(-0.5 * ((self.degrees + len(self.scale) + 1) * log_dets + traces).sum())
