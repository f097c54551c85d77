"""Four poolings of one scatter: full, tied, diagonal, spherical. Chapters 2 and 3.

=====  ====================================================================
N_k    counts; S_k scatter about the weighted means
ε      reg_covar, added to the diagonal of each covariance
=====  ====================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from cgmm.mixture.gaussian import Parameters
from cgmm.mixture.moments import SMALLEST_COUNT, weighted_moments
from cgmm.numerics import FloatArray


class Pooling(NamedTuple):
    """One way in which the components share a scatter: a covariance type.

    ``combine(counts, scatter)`` gives the (K, D, D) covariances that maximise the expected
    log-likelihood within the type; ``diagonal`` says that it reads only the diagonals of the
    scatter; ``n_parameters(K, D)`` counts the free numbers in the covariances; ``expand(init, K,
    D)`` turns scikit-learn's array for the type into (K, D, D).
    """

    combine: Callable[[FloatArray, FloatArray], FloatArray]
    diagonal: bool
    n_parameters: Callable[[int, int], int]
    shape: Callable[[int, int], tuple[int, ...]]
    expand: Callable[[FloatArray, int, int], FloatArray]

    def maximise(
        self,
        X: FloatArray,
        parameters: Parameters,
        responsibilities: FloatArray,
        *,
        reg_covar: float = 0.0,
    ) -> Parameters:
        """θ with the means and covariances of this type that maximise the bound.

        Parameters
        ----------
        X : (N, D) array
            The points.
        parameters : Parameters
            θ so far. Its weights stay; a component without responsibility keeps everything.
        responsibilities : (N, K) array
            r_ik.
        reg_covar : float, default=0
            ε, added to the diagonals.

        Returns
        -------
        Parameters
            The new θ, with the old weights.

        Notes
        -----
        [schmidt2016, sect. 3.2] with r_c^i for the printed r_c^k; [green, "Maximisation step"].
        """
        moments = weighted_moments(X, responsibilities, diagonal=self.diagonal)
        regular = reg_covar * np.eye(X.shape[1])
        # A dead component keeps its parameters, as if they had been seen with the smallest count.
        dead = ~moments.alive
        counts = np.maximum(moments.counts, SMALLEST_COUNT)
        means = np.where(dead[:, None], parameters.means, moments.means)
        moments.scatter[dead] = SMALLEST_COUNT * (parameters.covariances[dead] - regular)
        # [schmidt2016, sect. 3.2], pooled as the covariance type says
        covariances = self.combine(counts, moments.scatter) + regular
        return parameters._replace(means=means, covariances=covariances)


def _full(counts: FloatArray, scatter: FloatArray) -> FloatArray:
    return scatter / counts[:, None, None]


def _tied(counts: FloatArray, scatter: FloatArray) -> FloatArray:
    return np.repeat(scatter.sum(axis=0, keepdims=True) / counts.sum(), len(counts), axis=0)


def _diag(counts: FloatArray, scatter: FloatArray) -> FloatArray:
    return _full(counts, scatter) * np.eye(scatter.shape[1])


def _spherical(counts: FloatArray, scatter: FloatArray) -> FloatArray:
    n_dims = scatter.shape[1]
    variances = np.einsum("kdd->k", scatter) / (n_dims * counts)
    return variances[:, None, None] * np.eye(n_dims)


POOLINGS: dict[str, Pooling] = {
    "full": Pooling(
        _full, False, lambda k, d: k * d * (d + 1) // 2,
        lambda k, d: (k, d, d), lambda c, k, d: c,
    ),
    "tied": Pooling(
        _tied, False, lambda k, d: d * (d + 1) // 2,
        lambda k, d: (d, d), lambda c, k, d: np.repeat(c[None], k, axis=0),
    ),
    "diag": Pooling(
        _diag, True, lambda k, d: k * d,
        lambda k, d: (k, d), lambda c, k, d: c[:, :, None] * np.eye(d),
    ),
    "spherical": Pooling(
        _spherical, True, lambda k, d: k,
        lambda k, d: (k,), lambda c, k, d: c[:, None, None] * np.eye(d),
    ),
}  # fmt: skip
