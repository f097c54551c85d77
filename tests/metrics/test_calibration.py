"""Test calibration against scipy's bins, true probabilities, and the optimum."""

from operator import call

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from scipy.special import expit
from scipy.stats import binned_statistic

from cgmm.metrics import reliability

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


def test_the_standard_error_is_that_of_a_share():
    found = reliability([0.2] * 4, [True, False, False, False])
    np.testing.assert_allclose(found.standard_error, [0.2])  # √(0.2 · 0.8 / 4)


def test_true_probabilities_lie_within_their_errors_and_exaggerated_ones_do_not():
    rng = np.random.default_rng(0)
    log_odds = 2 * rng.normal(size=20_000)
    held = rng.random(20_000) < expit(log_odds)
    true, sure = reliability(expit(log_odds), held), reliability(expit(3 * log_odds), held)
    z = (true.observed - true.predicted) / true.standard_error
    # Ten bins of some 2,000 cases each: chi-square with ten degrees of freedom.
    assert (z**2).sum() < 30
    assert true.error < 0.01 < 0.1 < sure.error


test_what_is_no_probability_is_refused = refused(
    call,
    (lambda: reliability([0.5], [True, False]), r"\(1,\) and held \(2,\)"),
    (lambda: reliability([0.5, 1.5], [True, False]), r"probabilities\[1\] is 1.5"),
    (lambda: reliability([0.5], [2]), "true or false"),
    (lambda: reliability([0.5], [True], n_bins=0), "n_bins=10"),
)
