"""Test paired differences of scores: their t statistic, and which method is ahead or behind."""

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
def test_ahead_and_behind_are_exchanged_if_the_methods_are_exchanged(pair):
    one, other = paired_difference(*pair), paired_difference(*pair[::-1])
    assert np.array_equal(one.ahead, other.behind)
    assert not np.any(one.ahead & one.behind)
    np.testing.assert_allclose(one.mean, -other.mean)


def test_mean_over_standard_error_is_the_paired_t_statistic_of_scipy():
    scores, baseline = np.random.default_rng(0).normal(size=(2, 40, 3))
    result = paired_difference(scores, baseline)
    np.testing.assert_allclose(result.mean, (scores - baseline).mean(axis=0), rtol=1e-12)
    t = ttest_rel(scores, baseline).statistic
    np.testing.assert_allclose(result.mean / result.standard_error, t, rtol=1e-12)


def test_a_method_is_ahead_or_behind_beyond_two_standard_errors():
    """The differences alternate around their mean, and their standard error is √(1 / 11) = 0.30."""
    alternating = np.resize([1.0, -1.0], 12)
    result = paired_difference(alternating[:, None] + [-0.8, -0.5, 0.5, 0.8], np.zeros((12, 4)))
    np.testing.assert_allclose(result.standard_error, 11**-0.5)
    np.testing.assert_array_equal(result.behind, [True, False, False, False])
    np.testing.assert_array_equal(result.ahead, [False, False, False, True])


def test_equal_scores_are_neither_ahead_nor_behind():
    same = np.linspace(0, 1, 12)
    result = paired_difference(same, same)
    assert (result.mean, result.standard_error) == (0, 0)
    assert not result.ahead
    assert not result.behind
    assert paired_difference(same + 1, same).ahead  # The difference is 1 in every draw.
    assert str(result) == "+0.000 ± 0.000"


test_paired_difference_refuses_invalid_scores = refused(
    paired_difference,
    (np.ones(11), np.zeros(11), r"11 draws.*range\(12\)"),
    (np.ones(12), np.zeros(13), r"\(12,\).*\(13,\)"),
    (1.0, 0.0, "each draw"),
    (np.append(np.ones(12), np.nan), np.zeros(13), "draw 12 .*leave the draw out of both"),
    (np.ones(12), np.full(12, np.inf), "draw 0 "),
)
