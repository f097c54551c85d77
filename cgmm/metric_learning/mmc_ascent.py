"""The search for Xing's metric, which ends with a certificate.

Chapter 12. The objective f is concave in M, so that the gradient G at any M bounds its maximum:
f(M) + λ_max(G) - tr(G M) is not exceeded. The search climbs on a factor of M until the best value
so far is close enough to the lowest bound so far.

=========  =================================================================================
L, M       a factor of norm one, and the metric M = L Lᵀ; for a diagonal metric a vector, and
           M = diag(L²)
f, G       objective, and its gradient in M
v          vertex: of all v vᵀ with ‖v‖ = 1 the one to which f rises most
=========  =================================================================================
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize

from cgmm.metric_learning.mmc_distances import Distances, Value
from cgmm.numerics import FloatArray

# No certificate can be closer than the rounding of the sums that it compares.
ROUNDING = 1e-14


class Ascent:
    """The search: L-BFGS on the factor, and a step that needs no rank where that is stuck."""

    def __init__(self, distances: Distances, max_iter: int, tol: float, verbose: int):
        self.distances = distances
        self.max_iter, self.tol, self.verbose = max_iter, max(tol, ROUNDING), verbose
        # Nothing is known before the first look.
        self.best = Value(np.empty(0), -np.inf, np.empty(0), np.inf)
        self.upper = np.inf
        self.history: list[float] = []
        self.interrupted = False

    @property
    def certain(self) -> bool:
        """Whether the best objective is within tol of every other."""
        return bool(self.upper - self.best.objective <= self.tol * self.best.objective)

    @property
    def done(self) -> bool:
        """Whether there is nothing left to do, or no iteration left to do it."""
        return self.certain or len(self.history) >= self.max_iter

    def run(self, start: FloatArray) -> None:
        """Climb from a factor until the objective is certain, or no step gains any more."""
        try:
            self._look(start)
            self._record()
            gains = True
            while gains and not self.done:
                before = self.best.objective
                self._quasi_newton()
                if not self.done:
                    self._towards_vertex()
                gains = self.best.objective > before * (1 + 4 * np.finfo(float).eps)
        except KeyboardInterrupt:
            # A start alone is no fit.
            if len(self.history) < 2:
                raise
            self.interrupted = True

    def _look(self, factor: FloatArray) -> Value:
        """Evaluate; remember the best factor, and the lowest of the upper bounds."""
        value = self.distances.at(factor)
        if value.objective > self.best.objective:
            self.best = value
        self.upper = min(self.upper, value.upper)
        return value

    def _record(self) -> None:
        self.history.append(self.best.objective)
        if self.verbose:
            excess = self.upper / self.best.objective - 1
            print(
                f"  iteration {len(self.history) - 1:4d}   objective {self.best.objective:.8g}   "
                f"maximum at most {excess:.1e} higher"
            )

    def _quasi_newton(self) -> None:
        """Maximise log f(L / ‖L‖), which has no constraint and no scale, from the best factor."""
        shape = self.best.factor.shape

        def loss(x: FloatArray) -> tuple[float, FloatArray]:
            value = self._look(x.reshape(shape))
            L = value.factor
            GL = value.gradient * L if L.ndim == 1 else value.gradient @ L
            slope = 2 * GL / value.objective - L
            return -np.log(value.objective), -slope.ravel() / np.linalg.norm(x)

        def each_iteration(_: FloatArray) -> None:
            self._record()
            if self.done:
                raise StopIteration

        options: Any = {"maxiter": self.max_iter, "maxfun": np.inf, "ftol": 0.0, "gtol": 0.0}
        # The stubs want the callback's argument to be called xk.
        callback: Any = each_iteration
        x = self.best.factor.ravel()
        minimize(loss, x, jac=True, method="L-BFGS-B", callback=callback, options=options)

    def _towards_vertex(self) -> None:
        """Mix M with the rank-one metric to which f rises most: a step of Frank and Wolfe.

        A factor that has lost a direction has no slope into it; this step finds it again, and it
        gains whenever there is a gap.
        """
        value = self.best
        vertex = _vertex(value.gradient)
        for t in 0.5 ** np.arange(1, 40):
            if self._look(_mixed(value.factor, vertex, t)).objective > value.objective:
                break
        self._record()


def _vertex(G: FloatArray) -> FloatArray:
    """The unit factor of rank one along which the gradient is steepest."""
    if G.ndim == 1:
        return np.eye(len(G))[G.argmax()]
    return np.linalg.eigh(G)[1][:, -1]


def _mixed(L: FloatArray, vertex: FloatArray, t: float) -> FloatArray:
    """A factor of (1 - t) M + t v vᵀ."""
    if L.ndim == 1:
        return np.sqrt((1 - t) * L**2 + t * vertex**2)
    U, s, _ = np.linalg.svd(np.column_stack([np.sqrt(1 - t) * L, np.sqrt(t) * vertex]))
    return U * s
