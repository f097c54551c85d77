"""The two shared tools: blocks cover, and normalisation in logs is exact where exp is not."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cgmm.numerics import blocks, log_normalise


@given(st.integers(0, 5000), st.integers(1, 300_000), st.integers(1, 2000))
def test_blocks_cover_every_row_once_in_order(n_rows, width, at_least):
    parts = list(blocks(n_rows, width, at_least=at_least))
    rows = [row for part in parts for row in range(n_rows)[part]]
    assert rows == list(range(n_rows))
    assert all(part.stop - part.start >= at_least for part in parts[:-1])


@given(arrays(float, (3, 4), elements=st.floats(-5000, 5000)))
def test_log_normalise_equals_arbitrary_precision(log_values):
    p, totals = log_normalise(log_values)
    with mpmath.workdps(60):
        for row, (values, total) in enumerate(zip(log_values, totals, strict=True)):
            exact = [mpmath.exp(mpmath.mpf(v)) for v in values]
            # One rounding of the largest value and a few of the sum: a handful of ulp.
            assert total == pytest.approx(float(mpmath.log(sum(exact))), rel=1e-14, abs=1e-14)
            for column, part in enumerate(exact):
                assert p[row, column] == pytest.approx(
                    float(part / sum(exact)), rel=1e-11, abs=1e-300
                )


def test_log_normalise_works_across_block_borders():
    log_values = np.random.default_rng(0).normal(size=(200_000, 3)) * 50
    p, totals = log_normalise(log_values)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-15 * 4)
    np.testing.assert_allclose(np.exp(log_values - totals[:, None]), p, rtol=1e-12)


@pytest.mark.parametrize("value", [-np.inf, np.nan, np.inf])
def test_log_normalise_names_the_impossible_row(value):
    log_values = np.zeros((5, 2))
    log_values[3] = value
    with pytest.raises(ValueError, match="row 3"):
        log_normalise(log_values)


def test_log_normalise_accepts_impossible_entries():
    p, totals = log_normalise(np.array([[-np.inf, -800.0]]))
    np.testing.assert_array_equal(p, [[0, 1]])
    assert totals[0] == -800
