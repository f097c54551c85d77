"""What a fitted mixture says of points one by one: densities and draws. Chapter 1.

Relations are silent here: what is asked is the marginal density of single points.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from cgmm.mixture.seeding import Rng
from cgmm.numerics import FloatArray, IntArray, log_normalise


class FittedDensity(DensityMixin, ABC):
    """The mixture as a density of single points, from its log-joint."""

    random_state: int | np.random.RandomState | None

    @abstractmethod
    def _log_joint(self, X: ArrayLike) -> FloatArray:
        """(N, K) log π_k + log p(x_i | k) of new points."""

    @abstractmethod
    def _draw(self, n_samples: int, rng: Rng) -> tuple[FloatArray | IntArray, IntArray]:
        """Points from the fitted mixture, and their components."""

    def score_samples(self, X: ArrayLike) -> FloatArray:
        """Log-density of the mixture at each point.

        Parameters
        ----------
        X : (N, D) array-like
            Points.

        Returns
        -------
        (N,) array
            log p(x_i | θ) in nats.
        """
        return log_normalise(self._log_joint(X))[1]

    def score(self, X: ArrayLike, y: object = None) -> float:
        """Mean log-density of the points.

        Parameters
        ----------
        X : (N, D) array-like
            Points.
        y : ignored
            Present for scikit-learn's conventions.

        Returns
        -------
        float
            In nats per point.
        """
        return float(self.score_samples(X).mean())

    def sample(self, n_samples: int = 1) -> tuple[FloatArray | IntArray, IntArray]:
        """Draw points from the fitted mixture.

        Parameters
        ----------
        n_samples : int, default=1
            How many.

        Returns
        -------
        X : (n_samples, D) array
            The points, grouped by component.
        z : (n_samples,) int array
            The component of each.

        Raises
        ------
        ValueError
            If ``n_samples`` is not positive.
        """
        check_is_fitted(self, "weights_")
        if n_samples < 1:
            raise ValueError(f"n_samples is {n_samples}; ask for at least one sample.")
        return self._draw(n_samples, check_random_state(self.random_state))
