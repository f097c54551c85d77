"""Compare calibration with scipy's bins and with true and exaggerated probabilities."""

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
def test_reliability_has_the_nonempty_bins_of_scipy(seed, n, n_bins):
    rng = np.random.default_rng(seed)
    # Some probabilities are 0, 1 or borders of bins.
    p = np.where(rng.random(n) < 0.3, rng.integers(0, 5, n) / 4, rng.random(n))
    t = rng.random(n) < p
    result = reliability(p, t, n_bins=n_bins)
    sums, *_ = binned_statistic(p, [np.ones(n), p, t], "sum", n_bins, range=(0, 1))
    counts, predicted, observed = sums[:, sums[0] > 0]
    np.testing.assert_array_equal(result.counts, counts)
    np.testing.assert_allclose(result.predicted, predicted / counts, atol=1e-12)
    np.testing.assert_allclose(result.observed, observed / counts, atol=1e-12)
    assert result.error == pytest.approx(np.abs(observed - predicted).sum() / n, abs=1e-12)


def test_standard_error_of_a_bin_is_that_of_a_proportion():
    result = reliability([0.2] * 4, [True, False, False, False])
    np.testing.assert_allclose(result.standard_error, [0.2])  # = √(0.2 · 0.8 / 4)


def test_true_probabilities_are_calibrated_and_exaggerated_ones_are_not():
    rng = np.random.default_rng(0)
    log_odds = 2 * rng.normal(size=20_000)
    outcomes = rng.random(20_000) < expit(log_odds)
    true, exaggerated = (reliability(expit(s * log_odds), outcomes) for s in (1, 3))
    z = (true.observed - true.predicted) / true.standard_error
    # The sum over ten bins is chi-square distributed with ten degrees of freedom.
    assert (z**2).sum() < 30
    assert true.error < 0.01 < 0.1 < exaggerated.error


test_reliability_refuses_invalid_arguments = refused(
    call,
    (lambda: reliability([0.5], [True, False]), r"\(1,\) and held \(2,\)"),
    (lambda: reliability([0.5, 1.5], [True, False]), r"probabilities\[1\] is 1.5"),
    (lambda: reliability([0.5], [2]), "true or false"),
    (lambda: reliability([0.5], [True], n_bins=0), "n_bins=10"),
)
