"""The contract of a family of components: what EM, starts and predictions ask of it. Chapter 4.

Everything else (labels, relations, engines, the update of the weights, data on disks and on
clusters) sees only the (N, K) table of log-densities and sums of statistics, so it works with any
family. :mod:`cgmm.mixture.categorical` is a short example; CONTRIBUTING writes another one.

======  ====================================================================
N, K    number of points and of components
θ       parameters, e.g. weights, means and covariances
r_ik    responsibilities p(z_i = k | X, θ, what is known)
======  ====================================================================
"""

from __future__ import annotations

from typing import Any, Protocol, Self, TypeVar, cast

import numpy as np

from cgmm.numerics import FloatArray

Statistics = tuple[FloatArray, ...]
"""Sufficient statistics of some points: arrays that add over blocks of points."""


class Theta(Protocol):
    """The parameters θ of a mixture of any family; a NamedTuple as a rule."""

    @property
    def weights(self) -> FloatArray:
        """(K,) π_k."""

    def log_density(self, X: Any) -> FloatArray:
        """(N, K) log p(x_i | z_i = k, θ)."""

    def with_weights(self, weights: FloatArray) -> Self:
        """Return the same components with other weights."""


AnyTheta = TypeVar("AnyTheta", bound=Theta)


class Family(Protocol[AnyTheta]):
    """A family of components. Settings of its M-step, such as ``reg_covar``, are its fields."""

    def start(self, X: Any, responsibilities: FloatArray) -> AnyTheta:
        """Return θ made of (N, K) responsibilities alone, weights included."""

    def statistics(self, X: Any, responsibilities: FloatArray, parameters: AnyTheta) -> Statistics:
        """Return the sufficient statistics of some points for an M-step from θ."""

    def maximise(self, statistics: Statistics, parameters: AnyTheta) -> AnyTheta:
        """Return the θ that maximises the bound, with the old weights."""

    def n_free(self, parameters: AnyTheta) -> int:
        """Return the number of free parameters of the mixture, weights included."""


AnyFamily = TypeVar("AnyFamily")


def with_settings(family: AnyFamily, **settings: Any) -> AnyFamily:
    """Return the family with other settings of its M-step, or itself if none are given."""
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
        If a covariance is not positive definite; the component is named.

    Examples
    --------
    >>> from cgmm.mixture import Parameters
    >>> theta = Parameters(np.array([0.5, 0.5]), np.zeros((2, 1)), np.ones((2, 1, 1)))
    >>> log_joint(np.zeros((1, 1)), theta).round(4)
    array([[-1.6121, -1.6121]])
    """
    with np.errstate(divide="ignore"):
        # [lu2007, eq. 2.1]: the factor of point i and of its weight, if z_i = k
        return parameters.log_density(X) + np.log(parameters.weights)
