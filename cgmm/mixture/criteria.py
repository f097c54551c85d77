"""Information criteria of a fit: how many components, and of which type. Chapter 3.

=====  ==================================================================
N      number of points; ν number of free parameters
θ      parameters of the fit
=====  ==================================================================
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from cgmm.mixture.density import FittedDensity


class InformationCriteria(FittedDensity):
    """What estimators of densities answer about their fit, by its evidence or for other points.

    Two evidences can be compared: that of points by themselves, as scikit-learn does, and that of
    the training points given all that was known of them. θ of a fit with relations is not what
    fits the points best by themselves, so ``bic(X)`` holds against it what it was told to honour;
    with relations or labels, choose K by ``bic()``, of fits that were told the same.
    """

    log_evidence_: float
    _n_points: float

    @abstractmethod
    def _n_free(self) -> int:
        """The number of free parameters."""

    @property
    def lower_bound_(self) -> float:
        """Log-evidence per training point, ``log_evidence_ / N``, in nats."""
        check_is_fitted(self, "weights_")
        return self.log_evidence_ / self._n_points

    def bic(self, X: ArrayLike | None = None) -> float:
        """Bayesian information criterion, lower is better.

        Parameters
        ----------
        X : (N, D) array-like, default=None
            Points by themselves, new ones or those of the fit; relations and labels do not count,
            as in scikit-learn. None: the training points with all that was known of them, by which
            to choose the number of components where relations were given.

        Returns
        -------
        float
            -2 log p(X | θ) + ν log N, or -2 ``log_evidence_`` + ν log N. N counts points, whatever
            is tied. The two are equal where nothing was known.

        Raises
        ------
        ValueError
            Without ``X``, if the engine of the fit reports no evidence.
        """
        evidence, n_samples = self._evidence(X)
        return float(-2 * evidence + self._n_free() * np.log(n_samples))

    def aic(self, X: ArrayLike | None = None) -> float:
        """Akaike information criterion, lower is better.

        Parameters
        ----------
        X : (N, D) array-like, default=None
            As in :meth:`bic`.

        Returns
        -------
        float
            -2 log p(X | θ) + 2 ν, or -2 ``log_evidence_`` + 2 ν.

        Raises
        ------
        ValueError
            As :meth:`bic`.
        """
        return float(-2 * self._evidence(X)[0] + 2 * self._n_free())

    def _evidence(self, X: ArrayLike | None) -> tuple[float, float]:
        """Log-evidence and number of points: those given, or the fit's with what it was told."""
        if X is not None:
            log_densities = self.score_samples(X)
            return float(log_densities.sum()), len(log_densities)
        check_is_fitted(self, "weights_")
        if np.isnan(self.log_evidence_):
            raise ValueError(
                "the engine of this fit reports no log-evidence, so there is no criterion that "
                "counts what was known. Fit with another, set_params(inference='auto').fit(...), "
                "or ask for points by themselves, bic(X)."
            )
        return self.log_evidence_, self._n_points
