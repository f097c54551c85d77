"""The interface of a family of components, which EM and predictions use. Chapter 4.

Everything else (labels, relations, engines, the update of the weights, data on disk or on a
cluster) uses only the (N, K) table of log-densities and sums of statistics, so it works with any
family. :mod:`cgmm.mixture.categorical` is a short example, and CONTRIBUTING contains another one.

======  ====================================================================
N, K    number of points and of components
θ       parameters, e.g. weights, means and covariances
r_ik    responsibilities p(z_i = k | X, θ, side information)
======  ====================================================================
"""

from __future__ import annotations

from typing import Any, Protocol, Self, TypeVar, cast

import numpy as np

from cgmm.numerics import FloatArray

Statistics = tuple[FloatArray, ...]
"""Sufficient statistics of some points: arrays that can be summed over blocks of points."""


class Theta(Protocol):
    """The parameters θ of a mixture of any family, usually a NamedTuple."""

    @property
    def weights(self) -> FloatArray:
        """(K,) mixing weights π_k."""

    def log_density(self, X: Any) -> FloatArray:
        """Return (N, K) log p(x_i | z_i = k, θ)."""

    def with_weights(self, weights: FloatArray) -> Self:
        """Return the same components with new mixing weights."""


AnyTheta = TypeVar("AnyTheta", bound=Theta)


class Family(Protocol[AnyTheta]):
    """A family of components, whose fields are the settings of its M-step, e.g. ``reg_covar``."""

    def start(self, X: Any, responsibilities: FloatArray) -> AnyTheta:
        """Return an initial θ, including the weights, from (N, K) responsibilities."""

    def statistics(self, X: Any, responsibilities: FloatArray, parameters: AnyTheta) -> Statistics:
        """Return the sufficient statistics of some points for an M-step that starts at θ."""

    def maximise(self, statistics: Statistics, parameters: AnyTheta) -> AnyTheta:
        """Return the θ that maximises the bound, with unchanged weights."""

    def n_free(self, parameters: AnyTheta) -> int:
        """Return the number of free parameters of the mixture, including the weights."""


AnyFamily = TypeVar("AnyFamily")


def with_settings(family: AnyFamily, **settings: Any) -> AnyFamily:
    """Return the family with the given settings of its M-step; unchanged without settings."""
    return cast("AnyFamily", cast("Any", family)._replace(**settings)) if settings else family


def log_joint(X: Any, parameters: Theta) -> FloatArray:
    """Return log p(x_i, z_i = k | θ) = log π_k + log p(x_i | z_i = k, θ).

    Parameters
    ----------
    X : (N, D) array
        The points.
    parameters : Parameters
        θ, of any family.

    Returns
    -------
    (N, K) array
        In nats, column-major; ``-inf`` where π_k = 0.

    Raises
    ------
    ValueError
        If a covariance is not positive definite; the message names the component.

    Examples
    --------
    >>> from cgmm.mixture import Parameters
    >>> theta = Parameters(np.array([0.5, 0.5]), np.zeros((2, 1)), np.ones((2, 1, 1)))
    >>> log_joint(np.zeros((1, 1)), theta).round(4)
    array([[-1.6121, -1.6121]])
    """
    with np.errstate(divide="ignore"):
        # [lu2007, eq. 2.1]: log of the factor of point i, π_k p(x_i | θ_k)
        return parameters.log_density(X) + np.log(parameters.weights)
