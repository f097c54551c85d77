"""Test paired differences: against sums written out, invariances, and refusals."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from refusals import refused
from scipy.stats import ttest_rel

from cgmm.metrics import paired_difference

SCORES = st.tuples(st.integers(12, 30), st.integers(1, 3)).flatmap(
    lambda shape: st.tuples(*[arrays(float, shape, elements=st.floats(0, 1))] * 2)
)


@given(SCORES)
def test_ahead_and_behind_exchange_with_the_methods(pair):
    one, other = paired_difference(*pair), paired_difference(*pair[::-1])
    assert np.array_equal(one.ahead, other.behind)
    assert not np.any(one.ahead & one.behind)
    np.testing.assert_allclose(one.mean, -other.mean)


def test_mean_over_error_is_the_paired_t_of_scipy():
    scores, baseline = np.random.default_rng(0).normal(size=(2, 40, 3))
    found = paired_difference(scores, baseline)
    np.testing.assert_allclose(found.mean, (scores - baseline).mean(axis=0), rtol=1e-12)
    t = ttest_rel(scores, baseline).statistic
    np.testing.assert_allclose(found.mean / found.standard_error, t, rtol=1e-12)


def test_ahead_and_behind_begin_beyond_two_standard_errors():
    """The differences alternate about their mean, and their standard error is √(1 / 11) = 0.30."""
    alternating = np.resize([1.0, -1.0], 12)
    found = paired_difference(alternating[:, None] + [-0.8, -0.5, 0.5, 0.8], np.zeros((12, 4)))
    np.testing.assert_allclose(found.standard_error, 11**-0.5)
    np.testing.assert_array_equal(found.behind, [True, False, False, False])
    np.testing.assert_array_equal(found.ahead, [False, False, False, True])


def test_no_difference_is_neither_ahead_nor_behind():
    same = np.linspace(0, 1, 12)
    found = paired_difference(same, same)
    assert (found.mean, found.standard_error) == (0, 0)
    assert not found.ahead
    assert not found.behind
    assert paired_difference(same + 1, same).ahead  # the same lead in every draw
    assert str(found) == "+0.000 ± 0.000"


test_what_is_no_paired_comparison_is_refused = refused(
    paired_difference,
    (np.ones(11), np.zeros(11), r"11 draws.*range\(12\)"),
    (np.ones(12), np.zeros(13), r"\(12,\).*\(13,\)"),
    (1.0, 0.0, "each draw"),
    (np.append(np.ones(12), np.nan), np.zeros(13), "draw 12 .*leave the draw out of both"),
    (np.ones(12), np.full(12, np.inf), "draw 0 "),
)
