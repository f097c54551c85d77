"""Several Gaussians a class: a family whose states are classes, each a mixture. Chapter 4.

Mixture discriminant analysis (Hastie and Tibshirani, 1996), told relations as well. The loop, the
engines and the weights' update see classes alone, and only their densities know of components. So
relations speak of classes: two points that must be linked share a class, and each has its own
component of it. Given their classes points are independent, so nothing is approximated, and what
an engine costs does not grow with the number of components.

=====  ====================================================================
C, M   number of classes, and of the components of all of them together
π_c    weights of the classes
ρ_m    share of component m in its class; shares of a class sum to one
r_ic   responsibilities of the classes
=====  ====================================================================
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cgmm.mixture.gaussian import Parameters
from cgmm.mixture.moments import SMALLEST_COUNT, Moments, Sums
from cgmm.mixture.pooling import Pooling
from cgmm.mixture.ready import GaussiansReady, GaussiansSeen
from cgmm.numerics import FloatArray, IntArray


class ClassParameters(NamedTuple):
    """θ of classes that are mixtures of Gaussians: what the loop asks of any family."""

    weights: FloatArray
    """(C,) π_c."""
    components: Parameters
    """The M components, class by class; their weights are the shares ρ_m."""
    sizes: tuple[int, ...]
    """(C,) how many components each class has, at least one."""

    @property
    def starts(self) -> IntArray:
        """(C,) the first component of each class."""
        return np.cumsum((0, *self.sizes[:-1]))

    @property
    def class_of(self) -> IntArray:
        """(M,) the class of each component."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def log_density(self, X: FloatArray, log_weights: FloatArray | float = 0.0) -> FloatArray:
        """(N, C) log p(x_i | class c) = log Σ_m ρ_m N(x_i | μ_m, Σ_m), plus what is given."""
        return self.of_classes(self.components.log_joint(X), log_weights)

    def of_classes(self, joint: FloatArray, log_weights: FloatArray | float = 0.0) -> FloatArray:
        """(N, C) log-densities of the classes, from (N, M) log ρ_m N(x_i | μ_m, Σ_m)."""
        # Hastie and Tibshirani (1996), eq. 1: a class is a mixture
        totals = np.logaddexp.reduceat(joint.T, self.starts)
        return (totals + np.reshape(log_weights, (-1, 1))).T

    def with_weights(self, weights: FloatArray) -> ClassParameters:
        """The same classes with other weights."""
        return self._replace(weights=weights)

    def log_joint(self, X: FloatArray) -> FloatArray:
        """(N, C) log π_c + log p(x_i | class c)."""
        with np.errstate(divide="ignore"):
            return self.log_density(X, np.log(self.weights))

    def split(self, X: FloatArray, responsibilities: FloatArray) -> FloatArray:
        """(N, M) responsibilities of the components, from (N, C) those of the classes."""
        return self.within(self.components.log_joint(X), responsibilities)

    def within(self, joint: FloatArray, responsibilities: FloatArray) -> FloatArray:
        """As ``split``, from (N, M) log ρ_m N(x_i | μ_m, Σ_m)."""
        totals = np.logaddexp.reduceat(joint, self.starts, axis=1)[:, self.class_of]
        # Where a class has no density its components share as they do on the whole.
        shares = np.broadcast_to(np.log(self.components.weights), joint.shape)
        known = totals > -np.inf
        within = np.where(known, joint - np.where(known, totals, 0), shares)
        return np.asfortranarray(responsibilities[:, self.class_of] * np.exp(within))

    def as_mixture(self) -> Parameters:
        """The mixture of all components, with weights π_c ρ_m."""
        return self.components.with_weights(self.weights[self.class_of] * self.components.weights)


class ClassPooling(NamedTuple):
    """The M-step of :class:`ClassParameters`: responsibilities are split, then each part pooled."""

    pool: Pooling
    """How the covariances of all components are pooled; "tied" is what the authors do."""

    def maximise(
        self,
        X: FloatArray,
        parameters: ClassParameters,
        responsibilities: FloatArray,
        *,
        reg_covar: float = 0.0,
    ) -> ClassParameters:
        """θ with the shares, means and covariances that maximise the bound.

        Parameters
        ----------
        X : (N, D) array
            The points.
        parameters : ClassParameters
            θ so far. Its weights stay, and so do the shares in a class without responsibility.
        responsibilities : (N, C) array
            r_ic of the classes.
        reg_covar : float, default=0
            ε, added to the diagonals.

        Returns
        -------
        ClassParameters
            The new θ, with the old weights.

        Notes
        -----
        Hastie and Tibshirani (1996), sect. 3, with r_ic where they have a label.
        """
        split = parameters.split(X, responsibilities)
        components = self.pool.maximise(X, parameters.components, split, reg_covar=reg_covar)
        return _shared_out(split.sum(axis=0), components, parameters)

    def survey(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """As :meth:`cgmm.mixture.Pooling.survey`."""
        return self.pool.survey(X)

    def height(self, n_components: int, n_columns: int) -> int:
        """As :meth:`cgmm.mixture.Pooling.height`."""
        return self.pool.height(n_components, n_columns)

    def ready(
        self, parameters: ClassParameters, survey: tuple[FloatArray, FloatArray]
    ) -> ClassesReady:
        """θ ready for block after block of points."""
        return ClassesReady(parameters, self.pool.ready(parameters.components, survey))


class ClassesReady(NamedTuple):
    """θ of classes ready for block after block, with its components."""

    parameters: ClassParameters
    components: GaussiansReady

    @property
    def weights(self) -> FloatArray:
        """(C,) π_c."""
        return self.parameters.weights

    def look(self, X: FloatArray) -> ClassesSeen:
        """A block of points as the components see it: their joint densities are made once."""
        seen = self.components.look(X)
        with np.errstate(divide="ignore"):
            return ClassesSeen(self, seen, seen.log_density(X, np.log(seen.weights)))

    def summary(self, sums: Sums) -> tuple[Moments, ClassesReady | None]:
        """The moments of the components; and what sums them more closely, should digits be lost."""
        moments, closer = self.components.summary(sums)
        return moments, None if closer is None else self._replace(components=closer)

    def from_summary(self, summary: Moments, *, reg_covar: float = 0.0) -> ClassParameters:
        """θ that maximises the bound."""
        components = self.components.from_summary(summary, reg_covar=reg_covar)
        return _shared_out(summary.counts, components, self.parameters)


class ClassesSeen(NamedTuple):
    """A block of points as the components see it."""

    ready: ClassesReady
    components: GaussiansSeen
    joint: FloatArray
    """(B, M) log ρ_m N(x_i | μ_m, Σ_m)."""

    @property
    def weights(self) -> FloatArray:
        """(C,) π_c."""
        return self.ready.weights

    def log_density(self, X: FloatArray, log_weights: FloatArray | float = 0.0) -> FloatArray:
        """(B, C) log p(x_i | class c), plus what is given."""
        return self.ready.parameters.of_classes(self.joint, log_weights)

    def sums(self, responsibilities: FloatArray) -> Sums:
        """The sums of the components."""
        return self.components.sums(self.ready.parameters.within(self.joint, responsibilities))


def _shared_out(
    counts: FloatArray, components: Parameters, parameters: ClassParameters
) -> ClassParameters:
    """The classes with these components, whose shares are their counts (M,) within the class."""
    totals = np.add.reduceat(counts, parameters.starts)[parameters.class_of]
    dead = totals <= SMALLEST_COUNT
    shares = np.where(dead, parameters.components.weights, counts / np.where(dead, 1, totals))
    return parameters._replace(components=components.with_weights(shares))
