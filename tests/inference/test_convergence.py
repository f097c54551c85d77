"""Compare R-hat and the effective sample size with their known values for simple chains."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import lfilter

from cgmm.inference import effective_sample_size, r_hat


def draw_ar1_chains(phi, shape, seed):
    """Draw stationary AR(1) chains of variance 1, whose correlation at lag t is phi^t."""
    rng = np.random.default_rng(seed)
    noise = np.sqrt(1 - phi**2) * rng.normal(size=shape)
    noise[:, 0] = rng.normal(size=shape[0])
    return lfilter([1.0], [1.0, -phi], noise, axis=1)


@pytest.mark.parametrize("phi", [-0.5, 0.0, 0.3, 0.6, 0.9])
def test_effective_sample_size_of_autoregressive_chains_agrees_with_theory(phi):
    """Theory gives an effective size of N (1 - φ) / (1 + φ); it is capped at N log10 N."""
    sizes = [effective_sample_size(draw_ar1_chains(phi, (4, 5000), s)) for s in range(10)]
    expected = 20_000 * (1 - phi) / (1 + phi)
    assert np.mean(sizes) == pytest.approx(expected, rel=0.08)


def test_effective_sample_size_of_alternating_draws_is_capped():
    """Alternating draws estimate the mean better than independent ones, so the cap applies."""
    draws = np.tile([1.0, -1.0], (2, 500)) + 1e-3 * np.random.default_rng(0).normal(size=(2, 1000))
    assert effective_sample_size(draws) == pytest.approx(2000 * np.log10(2000), rel=1e-12)


def test_diagnostics_of_chains_that_disagree_or_never_move():
    disagreeing = np.random.default_rng(0).normal(size=(4, 500)) + 2 * np.arange(4)[:, None]
    assert effective_sample_size(disagreeing) < 20
    stuck = np.repeat(np.arange(3.0)[:, None], 8, axis=1)
    assert r_hat(stuck) == np.inf
    assert r_hat(np.ones((3, 8))) == 1
    assert np.isnan(effective_sample_size(np.ones((3, 8))))
    assert effective_sample_size(stuck) <= 24


@given(seed=st.integers(0, 10**6), m=st.integers(1, 4), n=st.integers(4, 60))
def test_effective_sample_size_depends_only_on_ranks(seed, m, n):
    """The exponential function and another order of the chains leave all ranks unchanged."""
    rng = np.random.default_rng(seed)
    draws = rng.normal(size=(m, n))
    size = effective_sample_size(draws)
    assert effective_sample_size(np.exp(draws[rng.permutation(m)])) == pytest.approx(size, rel=1e-6)
    assert 0 < size <= m * n * max(np.log10(m * n), 1) * (1 + 1e-12)


@pytest.mark.parametrize("diagnostic", [r_hat, effective_sample_size])
def test_diagnostics_refuse_short_chains_and_missing_draws(diagnostic):
    for shape in ((2, 0), (2, 3), (9,)):
        with pytest.raises(ValueError, match="at least 4 draws"):
            diagnostic(np.zeros(shape))
    with pytest.raises(ValueError, match="draw 2 of chain 1 is nan"):
        diagnostic([[0, 1, 2, 3], [0, 1, np.nan, 3]])
