"""The weights whose prior counts match the posterior's, a concave problem. Chapter 8.

=====  ==================================================================
π, η   weights and their logarithms
C_k    expected counts of the posterior
=====  ==================================================================
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cgmm.numerics import FloatArray, warn_caller

Loss = Callable[[FloatArray], tuple[float, FloatArray]]
"""Value and gradient."""

SMALLEST_GRADIENT = 1e-8
SMALLEST_STEP, LONGEST_STEP = 1e-12, 3.0
ROUNDING = 1e-15
# Counts that differ by more than this share of all are not matched.
UNMATCHED = 1e-4
# Questions to an engine that approximates, in one update: its log Z has no maximum to be found.
MOST_QUESTIONS = 20
# A concave problem in so few numbers needs five to ten.
MOST_OF_EXACT = 200

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
        log_weights[alive] = eta - np.logaddexp.reduce(eta)
        log_z, counts = log_z_and_counts(log_weights)
        # [shental2003, eq. 11], in η = log π
        gradient = (counts[alive] - expected_counts[alive]) / total
        # [shental2003, eq. 7] and [lu2007, eq. 2.13], their terms in π, with the opposite sign
        return (log_z - expected_counts[alive] @ log_weights[alive]) / total, gradient

    curvature = _inverse_curvature(weights[alive])
    with np.errstate(divide="ignore", invalid="ignore"):  # a search that runs away: told below
        eta, unmatched = _descend(loss, start, curvature, most_questions or MOST_OF_EXACT)
    if not unmatched < UNMATCHED:
        warn_caller(NO_MAXIMUM.format(n_components=len(weights)), RuntimeWarning)
    # The maximum may lie at π_k = 0 although C_k > 0, where relations leave no lower count. Zero
    # would forbid what they demand; the smallest number does not.
    weights[alive] = np.maximum(np.exp(eta - np.logaddexp.reduce(eta)), np.finfo(float).tiny)
    return weights


def _descend(
    loss: Loss, eta: FloatArray, inverse: FloatArray, most_questions: int
) -> tuple[FloatArray, float]:
    """Where BFGS with halved steps meets the smallest gradient, and its largest entry there.

    Updates are small and many: a search by scipy costs more than the questions that it asks.
    """
    value, gradient = loss(eta)
    nearest, unmatched = eta, np.abs(gradient).max()
    step = _step(inverse, gradient)
    for _ in range(most_questions - 1):
        slope = gradient @ step
        # Below that gradient the loss would change by less than its rounding.
        if unmatched <= SMALLEST_GRADIENT or not slope < 0 or np.abs(step).max() < SMALLEST_STEP:
            break
        trial, trial_gradient = loss(eta + step)
        if np.abs(trial_gradient).max() < unmatched:
            nearest, unmatched = eta + step, np.abs(trial_gradient).max()
        if not trial <= value + slope / 10_000 + ROUNDING * abs(value):
            step = step / 2
            continue
        inverse = _learn(inverse, step, trial_gradient - gradient)
        eta, value, gradient = eta + step, trial, trial_gradient
        step = _step(inverse, gradient)
    return nearest, float(unmatched)


def _step(inverse: FloatArray, gradient: FloatArray) -> FloatArray:
    """To where a quadratic loss would be lowest, but no weight changes more than twentyfold."""
    step = -inverse @ gradient
    return step * (LONGEST_STEP / max(np.abs(step).max(), LONGEST_STEP))


def _learn(inverse: FloatArray, step: FloatArray, change: FloatArray) -> FloatArray:
    """The inverse curvature nearest to the last that maps the gradient's change to the step."""
    along = step @ change
    if not along > 0:
        return inverse
    rest = np.eye(len(step)) - np.outer(step, change) / along
    return rest @ inverse @ rest.T + np.outer(step, step) / along


def _inverse_curvature(weights: FloatArray) -> FloatArray:
    """A first guess, as if all nodes were single points: the pseudo-inverse of diag(π) - π πᵀ.

    Tiny weights count as larger ones, lest rounding spoil that it is positive definite.
    """
    n = len(weights)
    centring = np.eye(n) - 1 / n
    inverse = (centring / np.maximum(weights, 1e-6)) @ centring + 1 / n
    return (inverse + inverse.T) / 2
