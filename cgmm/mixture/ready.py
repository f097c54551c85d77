"""Gaussians ready for block after block: densities and the M-step's sums, from one look. Chapter 3.

What depends on θ alone is done once an iteration. What depends on a block, the statistics φ of
:mod:`cgmm.mixture.exponential_form`, is made once a block: its densities and its sums are two
products with them.

=====  ====================================================================
θ      parameters; D, K dimensions and components
φ(x)   sufficient statistics of a point
r_ik   responsibilities
=====  ====================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from cgmm.mixture.gaussian import Densities, Parameters
from cgmm.mixture.moments import Measure, Moments, Sums
from cgmm.numerics import FloatArray


class GaussiansReady(NamedTuple):
    """θ, and what an iteration needs of it."""

    parameters: Parameters
    densities: Densities
    measure: Measure
    """From where the M-step's sums are measured."""
    from_moments: Callable[..., Parameters]
    """From moments and θ to the new θ: a method of :class:`~cgmm.mixture.Pooling`."""

    @property
    def weights(self) -> FloatArray:
        """(K,) π_k."""
        return self.parameters.weights

    def look(self, X: FloatArray) -> GaussiansSeen:
        """What is to be known of a block of points."""
        return GaussiansSeen(self, X, self.densities.phi(X))

    def summary(self, sums: Sums) -> tuple[Moments, GaussiansReady | None]:
        """The moments; and what sums them more closely, should digits be lost."""
        moments, closer = self.measure.moments(sums)
        return moments, None if closer is None else self._replace(measure=closer)

    def from_summary(self, summary: Moments, *, reg_covar: float = 0.0) -> Parameters:
        """θ that maximises the bound."""
        return self.from_moments(summary, self.parameters, reg_covar=reg_covar)


class GaussiansSeen(NamedTuple):
    """A block of points as θ sees it."""

    ready: GaussiansReady
    X: FloatArray
    phi: FloatArray | None

    @property
    def weights(self) -> FloatArray:
        """(K,) π_k."""
        return self.ready.weights

    def log_density(self, X: FloatArray, log_weights: FloatArray | float = 0.0) -> FloatArray:
        """(B, K) log p(x_i | z_i = k, θ) of the points seen, plus what is given."""
        return self.ready.densities.log_density(X, log_weights, phi=self.phi).T

    def sums(self, responsibilities: FloatArray) -> Sums:
        """The sums that the M-step needs."""
        same = self.ready.densities.diagonal == self.ready.measure.diagonal
        return self.ready.measure.sums(self.X, responsibilities, self.phi if same else None)
