"""Calibration: the bins of scipy, probabilities that are true by construction, and the optimum."""

from operator import call

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_softmax
from scipy.stats import binned_statistic

from cgmm.metrics import fit_temperature, reliability

SEEDS = st.integers(0, 10_000)


@given(SEEDS, st.integers(1, 60), st.integers(1, 12))
def test_bins_are_those_of_scipy_that_have_cases(seed, n, n_bins):
    rng = np.random.default_rng(seed)
    # Borders of bins, 0 and 1 among them.
    p = np.where(rng.random(n) < 0.3, rng.integers(0, 5, n) / 4, rng.random(n))
    t = rng.random(n) < p
    found = reliability(p, t, n_bins=n_bins)
    sums, *_ = binned_statistic(p, [np.ones(n), p, t], "sum", n_bins, range=(0, 1))
    counts, predicted, observed = sums[:, sums[0] > 0]
    np.testing.assert_array_equal(found.counts, counts)
    np.testing.assert_allclose(found.predicted, predicted / counts, atol=1e-12)
    np.testing.assert_allclose(found.observed, observed / counts, atol=1e-12)
    assert found.error == pytest.approx(np.abs(observed - predicted).sum() / n, abs=1e-12)


def test_true_probabilities_lie_within_their_errors_and_exaggerated_ones_do_not():
    rng = np.random.default_rng(0)
    log_odds = 2 * rng.normal(size=20_000)
    held = rng.random(20_000) < expit(log_odds)
    true, sure = reliability(expit(log_odds), held), reliability(expit(3 * log_odds), held)
    z = (true.observed - true.predicted) / true.standard_error
    # Ten bins of some 2,000 cases each: chi-square with ten degrees of freedom.
    assert (z**2).sum() < 30
    assert true.error < 0.01 < 0.1 < sure.error


@given(SEEDS, st.integers(2, 4), st.floats(0.2, 5))
def test_the_temperature_is_where_the_logarithmic_loss_is_least(seed, K, scale):
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(80, K))
    y = (truth + rng.gumbel(size=truth.shape)).argmax(axis=1)
    x = scale * truth

    def loss(inverse):
        return -log_softmax(inverse * x, axis=1)[np.arange(80), y].mean()

    T = fit_temperature(x, y)
    found = 1 / T
    best = minimize_scalar(loss, bounds=(0, 40 / scale), method="bounded").x
    assert loss(found) <= loss(best) + 1e-12
    # Where the slope at 0 does not gain, 1 / T is 0; rounding of a mean of 80 numbers else.
    slope = (loss(found + 1e-5) - loss(max(found - 1e-5, 0))) / 2e-5
    assert slope == pytest.approx(0, abs=1e-6 * scale**2) or (found == 0 and slope > 0)
    assert (x.argmax(axis=1) == (x / min(T, 1e6)).argmax(axis=1)).all()
    # A constant for each case says nothing; a scale of all is a scale of T.
    again = fit_temperature(2 * x + rng.normal(size=(80, 1)), y)
    assert 1 / again == pytest.approx(found / 2, abs=1e-9)


def test_worse_than_chance_is_told_as_chance():
    assert fit_temperature([[0.0, 1.0], [0.0, 2.0]], [0, 0]) == np.inf


test_what_is_no_probability_or_has_no_temperature_is_refused = refused(
    call,
    (lambda: reliability([0.5], [True, False]), r"\(1,\) and held \(2,\)"),
    (lambda: reliability([0.5, 1.5], [True, False]), r"probabilities\[1\] is 1.5"),
    (lambda: reliability([0.5], [2]), "true or false"),
    (lambda: reliability([0.5], [True], n_bins=0), "n_bins=10"),
    (lambda: fit_temperature([[0.0, 1.0]], [1]), "the true one in all cases"),
    (lambda: fit_temperature([[0.0, 1.0]], [2]), r"\(1, 2\)"),
    (lambda: fit_temperature([[0.0, -np.inf], [0.0, 1.0]], [0, 0]), r"logits\[0, 1\] is -inf"),
)
