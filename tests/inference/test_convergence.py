"""Compare R-hat and effective sample size with their known values for simple chains."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import lfilter

from cgmm.inference import effective_sample_size, r_hat


def autoregressive(phi, shape, seed):
    """Draw AR(1) chains: stationary, of variance one, with correlation phi^t at lag t."""
    rng = np.random.default_rng(seed)
    noise = np.sqrt(1 - phi**2) * rng.normal(size=shape)
    noise[:, 0] = rng.normal(size=shape[0])
    return lfilter([1.0], [1.0, -phi], noise, axis=1)


@pytest.mark.parametrize("phi", [-0.5, 0.0, 0.3, 0.6, 0.9])
def test_an_autoregressive_chain_has_the_size_of_the_textbook(phi):
    """The effective size is N (1 - φ) / (1 + φ), and at most N log10 N."""
    sizes = [effective_sample_size(autoregressive(phi, (4, 5000), s)) for s in range(10)]
    expected = 20_000 * (1 - phi) / (1 + phi)
    assert np.mean(sizes) == pytest.approx(expected, rel=0.08)


def test_draws_that_alternate_are_worth_more_than_independent_ones_up_to_a_limit():
    draws = np.tile([1.0, -1.0], (2, 500)) + 1e-3 * np.random.default_rng(0).normal(size=(2, 1000))
    assert effective_sample_size(draws) == pytest.approx(2000 * np.log10(2000), rel=1e-12)


def test_diagnostics_of_chains_that_differ_or_never_move():
    apart = np.random.default_rng(0).normal(size=(4, 500)) + 2 * np.arange(4)[:, None]
    assert effective_sample_size(apart) < 20
    stuck = np.repeat(np.arange(3.0)[:, None], 8, axis=1)
    assert r_hat(stuck) == np.inf
    assert r_hat(np.ones((3, 8))) == 1
    assert np.isnan(effective_sample_size(np.ones((3, 8))))
    assert effective_sample_size(stuck) <= 24


@given(seed=st.integers(0, 10**6), m=st.integers(1, 4), n=st.integers(4, 60))
def test_the_effective_sample_size_depends_on_ranks_only(seed, m, n):
    rng = np.random.default_rng(seed)
    draws = rng.normal(size=(m, n))
    size = effective_sample_size(draws)
    assert effective_sample_size(np.exp(draws[rng.permutation(m)])) == pytest.approx(size, rel=1e-6)
    assert 0 < size <= m * n * max(np.log10(m * n), 1) * (1 + 1e-12)


@pytest.mark.parametrize("judge", [r_hat, effective_sample_size])
def test_short_or_missing_draws_are_refused(judge):
    for shape in ((2, 0), (2, 3), (9,)):
        with pytest.raises(ValueError, match="at least 4 draws"):
            judge(np.zeros(shape))
    with pytest.raises(ValueError, match="draw 2 of chain 1 is nan"):
        judge([[0, 1, 2, 3], [0, 1, np.nan, 3]])
