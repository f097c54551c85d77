"""The weights whose prior counts match the posterior's, a concave problem. Chapter 8.

=====  ==================================================================
π, η   weights and their logarithms
C_k    expected counts of the posterior
=====  ==================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

from cgmm.numerics import FloatArray, warn_caller

# Counts that differ by more than this share of all are not matched.
UNMATCHED = 1e-4
# Questions to an engine that approximates, in one update: its log Z has no maximum to be found.
MOST_QUESTIONS = 20

NO_MAXIMUM = (
    "the update of the weights found no maximum: the prior's counts cannot be made to match the "
    "posterior's. That happens to 'pseudo-likelihood' where relations share many points, and to "
    "'exact' with an engine that is not exact. 'auto' and 'cautious' do not need one: say "
    "ConstrainedGaussianMixture({n_components}, weights='auto')."
)


def maximise(
    log_z_and_counts: Callable[[FloatArray], tuple[float, FloatArray]],
    expected_counts: FloatArray,
    closed_form: FloatArray,
    most_questions: int | None = None,
) -> FloatArray:
    """The maximiser of C · η - log Z(η) by quasi-Newton steps from the closed form.

    Adding a constant to η changes nothing, because C and the prior's counts both sum to M; so η is
    free, and the softmax at the end puts π on the simplex. A component without counts leaves.
    """
    weights = closed_form.copy()
    alive, total = weights > 0, expected_counts.sum()
    start = np.log(weights[alive])

    def loss(eta: FloatArray) -> tuple[float, FloatArray]:
        log_weights = np.full(len(weights), -np.inf)
        log_weights[alive] = eta - logsumexp(eta)
        log_z, counts = log_z_and_counts(log_weights)
        # [shental2003, eq. 11], in η = log π
        gradient = (counts[alive] - expected_counts[alive]) / total
        # [shental2003, eq. 7] and [lu2007, eq. 2.13], their terms in π, with the opposite sign
        return (log_z - expected_counts[alive] @ log_weights[alive]) / total, gradient

    # Below that gradient the loss would change by less than its rounding.
    options: Any = {"gtol": 1e-8, "hess_inv0": _inverse_curvature(weights[alive])}
    with np.errstate(divide="ignore", invalid="ignore"):  # a search that runs away: told below
        eta, unmatched = _Questions(loss, most_questions).minimise(start, options)
    if not unmatched < UNMATCHED:
        warn_caller(NO_MAXIMUM.format(n_components=len(weights)), RuntimeWarning)
    # The maximum may lie at π_k = 0 although C_k > 0, where relations leave no lower count. Zero
    # would forbid what they demand; the smallest number does not.
    weights[alive] = np.maximum(np.exp(eta - logsumexp(eta)), np.finfo(float).tiny)
    return weights


class _EnoughError(Exception):
    """The engine has been asked as often as it may be."""


class _Questions:
    """A loss that is asked so often and no more, and where its gradient was smallest."""

    def __init__(self, loss: Callable[[FloatArray], tuple[float, FloatArray]], most: int | None):
        self.loss, self.left = loss, np.inf if most is None else most
        self.nearest: tuple[FloatArray, float] = np.empty(0), np.inf

    def __call__(self, eta: FloatArray) -> tuple[float, FloatArray]:
        if self.left == 0:
            raise _EnoughError
        self.left -= 1
        value, gradient = self.loss(eta)
        if np.abs(gradient).max() < self.nearest[1]:
            self.nearest = eta.copy(), float(np.abs(gradient).max())
        return value, gradient

    def minimise(self, start: FloatArray, options: Any) -> tuple[FloatArray, float]:
        """Where the search ends, and the largest entry of the gradient there."""
        try:
            found = minimize(self, start, jac=True, method="BFGS", options=options)
        except _EnoughError:
            return self.nearest
        return found.x, float(np.abs(found.jac).max())


def _inverse_curvature(weights: FloatArray) -> FloatArray:
    """A first guess, as if all nodes were single points: the pseudo-inverse of diag(π) - π πᵀ.

    Tiny weights count as larger ones, lest rounding spoil that it is positive definite.
    """
    n = len(weights)
    centring = np.eye(n) - 1 / n
    inverse = (centring / np.maximum(weights, 1e-6)) @ centring + 1 / n
    return (inverse + inverse.T) / 2
