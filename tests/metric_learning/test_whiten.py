"""Test `whitening`: the symmetric inverse root, and directions left out of singular matrices."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cgmm.metric_learning import whitening


@given(st.integers(1, 6), st.integers(0, 10_000), st.floats(0, 8))
@settings(max_examples=40)
def test_whitening_is_the_symmetric_inverse_root_up_to_condition_number_1e8(d, seed, decades):
    # Beyond a condition number of 10⁶ the function decomposes the matrix twice.
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0]
    values = np.logspace(0, -decades, d)
    W, root = whitening((Q.T * values) @ Q), (Q.T / np.sqrt(values)) @ Q
    np.testing.assert_allclose(W, root, atol=1e-6 * abs(root).max())


def test_whitening_of_a_singular_matrix_is_the_root_of_a_pseudo_inverse():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(5, 3))
    C = A @ A.T
    W = whitening(C)
    assert W.shape == (3, 5)
    np.testing.assert_allclose(W @ C @ W.T, np.eye(3), atol=1e-10)
    scale = np.sqrt(np.diag(C))
    expected = np.linalg.pinv(C / np.outer(scale, scale), rcond=1e-10) / np.outer(scale, scale)
    np.testing.assert_allclose(W.T @ W, expected, atol=1e-9)
    assert whitening(np.zeros((2, 2))).shape == (0, 2)


@pytest.mark.parametrize("decades", [3, 9, 140])
def test_whitening_of_columns_in_very_different_units(decades):
    A = np.random.default_rng(1).normal(size=(4, 9))
    C, units = A @ A.T, np.array([10.0**-decades, 1.0, 10.0**decades, 1.0])
    W = whitening(C * units * units[:, None]) * units
    np.testing.assert_allclose(W @ C @ W.T, np.eye(4), atol=1e-8)


@pytest.mark.parametrize(
    # The last column has this (variance, covariance); the first has variance 1.
    ("last_column", "settings", "rank"),
    [
        ([1e-20, 0], {}, 2),
        ([1e-20, 0], {"noise": np.array([0.0, 1e-9])}, 1),
        # The next condition number is so small that one decomposition suffices.
        ([1e-4, 0], {"noise": np.array([0.0, 0.1])}, 1),
        ([1, 1 - 1e-9], {}, 2),
        ([1, 1 - 1e-9], {"noise": 1e-4}, 1),
        ([1, 1 - 1e-4], {"tol": 1e-3}, 1),
    ],
)
def test_whitening_leaves_out_variance_below_noise_or_tolerance(last_column, settings, rank):
    variance, covariance = last_column
    C = np.array([[1, covariance], [covariance, variance]])
    assert whitening(C, **settings).shape == (rank, 2)
