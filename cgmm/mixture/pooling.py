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

from cgmm.mixture.exponential_form import block_height, extent_of
from cgmm.mixture.gaussian import Densities, Parameters
from cgmm.mixture.moments import (
    SMALLEST_COUNT,
    AboutCentre,
    AboutMeans,
    Measure,
    Moments,
    weighted_moments,
)
from cgmm.mixture.ready import GaussiansReady
from cgmm.numerics import FloatArray


class Pooling(NamedTuple):
    """One way in which the components share a scatter: a covariance type.

    ``combine(counts, scatter)`` gives the covariances that maximise the expected log-likelihood
    within the type, for a scatter (K, D, D) or in the form that the type asks of
    :func:`weighted_moments`: (K, D, D), or (K, D) variances for diagonal types. What components or
    directions share stands there once: (1, D, D) if tied, (K, 1) if spherical. ``diagonal`` and
    ``shared`` say what of the scatter it reads; ``n_parameters(K, D)`` counts the free numbers in
    the covariances; ``shape(K, D)`` is scikit-learn's for the type, ``expand(array, K, D)`` turns
    an array of that shape into the covariances of θ, and ``reduce(covariances)`` turns them back.
    """

    combine: Callable[[FloatArray, FloatArray], FloatArray]
    diagonal: bool
    shared: bool
    n_parameters: Callable[[int, int], int]
    shape: Callable[[int, int], tuple[int, ...]]
    expand: Callable[[FloatArray, int, int], FloatArray]
    reduce: Callable[[FloatArray], FloatArray]

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
        moments = weighted_moments(X, responsibilities, diagonal=self.diagonal, shared=self.shared)
        return self.from_moments(moments, parameters, reg_covar=reg_covar)

    def from_moments(
        self, moments: Moments, parameters: Parameters, *, reg_covar: float = 0.0
    ) -> Parameters:
        """As :meth:`maximise`, where the weighted moments are at hand.

        Parameters
        ----------
        moments : Moments
            In the form that the type asks for.
        parameters : Parameters
            θ so far.
        reg_covar : float, default=0
            ε, added to the diagonals.

        Returns
        -------
        Parameters
            The new θ, with the old weights.
        """
        n_dims = moments.means.shape[1]
        regular = reg_covar * (np.ones(n_dims) if self.diagonal else np.eye(n_dims))
        moments = self._with_dead(moments, parameters, regular)
        # [schmidt2016, sect. 3.2], pooled as the covariance type says
        covariances = self.combine(moments.counts, moments.scatter) + regular
        if self.shared:  # repeated without a copy
            covariances = np.broadcast_to(covariances, (len(moments.means), *covariances.shape[1:]))
        return parameters._replace(means=moments.means, covariances=covariances)

    def survey(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Where the points lie, so that blocks are measured from the same place.

        Parameters
        ----------
        X : (N, D) array
            The points.

        Returns
        -------
        centre : (D,) array
            From where to measure.
        radii2 : (D,) array
            The largest squared distance from there, by coordinate.
        """
        return extent_of(X)

    def height(self, n_components: int, n_columns: int) -> int:
        """How many points make a block that fits the cache.

        Parameters
        ----------
        n_components, n_columns : int
            K and D.

        Returns
        -------
        int
            Points.
        """
        return block_height(n_components, n_columns, self.diagonal)

    def ready(
        self, parameters: Parameters, survey: tuple[FloatArray, FloatArray]
    ) -> GaussiansReady:
        """θ ready for block after block of points.

        Parameters
        ----------
        parameters : Parameters
            θ.
        survey : tuple
            From :meth:`survey`.

        Returns
        -------
        GaussiansReady
            Its ``look`` gives densities and sums of a block, its ``from_summary`` the new θ.
        """
        densities, form = Densities(parameters, survey), (self.diagonal, self.shared)
        # Sums are those of φ where densities are; else about the means, which will be near.
        measure: Measure = AboutMeans(parameters.means, *form)
        if densities.natural is not None:
            measure = AboutCentre(*survey, *form)
        return GaussiansReady(parameters, densities, measure, self.from_moments)

    def _with_dead(self, moments: Moments, parameters: Parameters, regular: FloatArray) -> Moments:
        """A dead component keeps its parameters, as if seen with the smallest count."""
        dead = ~moments.alive
        if not dead.any():
            return moments
        counts, means, scatter = moments
        if not self.shared:
            kept = parameters.variances if self.diagonal else parameters.full_covariances
            scatter[dead] = SMALLEST_COUNT * (kept[dead] - regular)
        means = np.where(dead[:, None], parameters.means, means)
        return Moments(np.maximum(counts, SMALLEST_COUNT), means, scatter)


def _full(counts: FloatArray, scatter: FloatArray) -> FloatArray:
    return scatter / counts[:, None, None]


def _tied(counts: FloatArray, scatter: FloatArray) -> FloatArray:
    return scatter.sum(axis=0, keepdims=True) / counts.sum()


def _diag(counts: FloatArray, scatter: FloatArray) -> FloatArray:
    diagonals = scatter if scatter.ndim == 2 else np.einsum("kdd->kd", scatter)
    return diagonals / counts[:, None]


def _spherical(counts: FloatArray, scatter: FloatArray) -> FloatArray:
    return _diag(counts, scatter).mean(axis=1, keepdims=True)


POOLINGS: dict[str, Pooling] = {
    "full": Pooling(
        _full, diagonal=False, shared=False, n_parameters=lambda k, d: k * d * (d + 1) // 2,
        shape=lambda k, d: (k, d, d), expand=lambda c, k, d: c, reduce=lambda c: c,
    ),
    "tied": Pooling(
        _tied, diagonal=False, shared=True, n_parameters=lambda k, d: d * (d + 1) // 2,
        shape=lambda k, d: (d, d), expand=lambda c, k, d: np.broadcast_to(c, (k, d, d)),
        reduce=lambda c: c[0],
    ),
    "diag": Pooling(
        _diag, diagonal=True, shared=False, n_parameters=lambda k, d: k * d,
        shape=lambda k, d: (k, d), expand=lambda c, k, d: c, reduce=lambda c: c,
    ),
    "spherical": Pooling(
        _spherical, diagonal=True, shared=False, n_parameters=lambda k, d: k,
        shape=lambda k, d: (k,), expand=lambda c, k, d: np.broadcast_to(c[:, None], (k, d)),
        reduce=lambda c: c[:, 0],
    ),
}  # fmt: skip
"""Every covariance type, by its name in scikit-learn."""
