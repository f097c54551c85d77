"""Chapter 13 by hand: against every experiment of a few realisations, and against the package."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from primer_problems import FEW, SEEDS

from cgmm import primer
from cgmm.replicate.reading import realisations_needed, spread, wrong_order


@FEW
@given(seed=SEEDS, R=st.integers(2, 30), n=st.integers(1, 50), alpha=st.floats(0.01, 0.4))
def test_errors_and_orders_are_those_of_the_package(seed, R, n, alpha):
    d = np.random.default_rng(seed).normal(0.3, size=R)
    assert primer.mean_and_error(d) == pytest.approx(spread(d)[:2], rel=1e-12)
    assert primer.wrong_order(d, n) == pytest.approx(wrong_order(d, n), rel=1e-12)
    enough = primer.realisations_needed(d, alpha)
    assert enough == realisations_needed(d, alpha)
    # Rounding moves the border by less than a thousandth of a realisation.
    assert primer.wrong_order(d, enough + 1e-3) < alpha
    assert primer.wrong_order(d, max(enough - 1 - 1e-3, 0)) > alpha


@FEW
@given(seed=SEEDS, R=st.integers(2, 4), n=st.integers(1, 2))
def test_sharing_saves_twice_the_covariance_over_all_experiments(seed, R, n):
    """With the deviation of a law of R equal values, (R - 1) / R of the estimated variance."""
    a, b = np.random.default_rng(seed).normal(size=(2, R))
    draws = list(product(range(R), repeat=n))
    shared = [np.mean([a[r] - b[r] for r in one]) for one in draws]
    separate = [a[list(one)].mean() - b[list(two)].mean() for one, two in product(draws, draws)]
    s_d, s_a, s_b = (primer.mean_and_error(v)[1] ** 2 * (R - 1) for v in (a - b, a, b))
    assert np.var(shared) == pytest.approx(s_d / n)
    assert np.var(separate) == pytest.approx((s_a + s_b) / n)
    covariance = np.mean(a * b) - a.mean() * b.mean()
    assert np.var(separate) - np.var(shared) == pytest.approx(2 * covariance / n)
