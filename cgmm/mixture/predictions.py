"""What a fitted mixture says of new points: the component of each, alone or tied to others.

Relations among new points are a network like that of a fit, which the same engine answers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from cgmm.given import explain_missing
from cgmm.mixture.arranged import named_as_points
from cgmm.mixture.loop import Points, e_step
from cgmm.mixture.prepare import Prepared, apply_engine
from cgmm.mixture.runs import Run
from cgmm.network import ApproximationWarning, Engine, SideInformation
from cgmm.network.misreadings import check_rows
from cgmm.numerics import FloatArray, IntArray, WarnedOnce, log_normalise


class Predictions(ABC):
    """Components of new points, from the fitted θ and what relations say of them."""

    _asked: tuple[str, str | Engine, Engine]
    """Sampling, the engine's name, and the engine, as the fit had them."""

    @abstractmethod
    def _read_new(self, X: ArrayLike) -> Points:
        """New points, checked against those of the fit."""

    @abstractmethod
    def _parameters(self) -> Any:
        """θ from the attributes."""

    def _log_joint(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self, "weights_")
        with explain_missing(X):
            X = self._read_new(X)
        return self._parameters().log_joint(X)

    def _tied(self, X: ArrayLike, **known: Any) -> tuple[Points, Prepared, Run]:
        """New points that relations tie: their network, and its posterior at the fitted θ."""
        check_is_fitted(self, "weights_")
        check_rows(X, **known)
        with explain_missing(X):
            points, theta = self._read_new(X), self._parameters()
        sampling, inference, engine = self._asked
        side = SideInformation.build(points.shape[0], **known, sampling=sampling)
        with named_as_points(side), WarnedOnce(ApproximationWarning):
            prepared = apply_engine(side, inference, engine, len(theta.weights))
            posterior = e_step(
                points, theta, prepared.side, prepared.naming, log_z_prior=prepared.log_z_prior
            )
        return points, prepared, Run(theta, posterior, [], converged=True)

    def predict(
        self, X: ArrayLike, *, must_link: ArrayLike | None = None,
        cannot_link: ArrayLike | None = None, preferences: ArrayLike | None = None,
    ) -> IntArray:  # fmt: skip
        """Most probable component of each point, by itself or with the points that it is tied to.

        Parameters
        ----------
        X : (N, D) array-like
            Points, not necessarily those of the fit.
        must_link, cannot_link, preferences : arrays, default=None
            Relations among these points, as in ``fit``. There are no ``labels`` here: of a point
            whose class is known there is nothing to predict, and what it says about its
            neighbours can be said with ``fit``, which learns from it as well.

        Returns
        -------
        (N,) int array
            The component. With relations the components of all points together, found as
            ``labels_`` is: no hard relation is broken.

        Raises
        ------
        ValueError
            If relations name a point that does not exist, contradict each other or cannot be
            honoured; if the engine of the fit cannot do what is asked.
        """
        if must_link is None and cannot_link is None and preferences is None:
            return self._log_joint(X).argmax(axis=1)
        points, prepared, run = self._tied(
            X, must_link=must_link, cannot_link=cannot_link, preferences=preferences
        )
        with named_as_points(prepared.side):
            chains = prepared.chains(points, run)
            return prepared.joint_labels(points, run, chains).states

    def predict_proba(
        self, X: ArrayLike, *, must_link: ArrayLike | None = None,
        cannot_link: ArrayLike | None = None, preferences: ArrayLike | None = None,
    ) -> FloatArray:  # fmt: skip
        """Responsibilities of the components for each point, given the relations among the points.

        Parameters
        ----------
        X : (N, D) array-like
            Points.
        must_link, cannot_link, preferences : arrays, default=None
            As in ``predict``.

        Returns
        -------
        (N, K) array
            Rows sum to one.
        """
        if must_link is None and cannot_link is None and preferences is None:
            return log_normalise(self._log_joint(X))[0]
        _, _, run = self._tied(
            X, must_link=must_link, cannot_link=cannot_link, preferences=preferences
        )
        return run.posterior.responsibilities
