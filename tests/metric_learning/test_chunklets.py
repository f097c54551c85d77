"""Covariances within chunklets and of all points, against their definitions."""

import numpy as np
import pytest
from metric_problems import correlated, scatter_by_hand

import cgmm.numerics
from cgmm.metric_learning import (
    total_covariance,
    within_chunklet_covariance,
)


@pytest.mark.parametrize("cells", [1, 7, 16, 60, 131_072])
@pytest.mark.parametrize("seed", range(8))
def test_covariances_are_their_definitions_however_the_blocks_fall(monkeypatch, cells, seed):
    monkeypatch.setattr(cgmm.numerics, "BLOCK_CELLS", cells)
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(41, 3)) + 5
    y = rng.integers(-1, rng.integers(1, 20), size=41)
    scatter, n_points, n_chunklets = scatter_by_hand(X, y)
    np.testing.assert_allclose(within_chunklet_covariance(X, y), scatter / n_points, rtol=1e-10)
    np.testing.assert_allclose(
        within_chunklet_covariance(X, y, unbiased=True),
        scatter / (n_points - n_chunklets),
        rtol=1e-10,
    )
    np.testing.assert_allclose(total_covariance(X), np.cov(X.T, bias=True), rtol=1e-10)


def test_a_chunklet_of_one_point_counts_neither_as_point_nor_as_chunklet():
    X, y = np.array([[0.0], [2.0], [7.0], [8.0]]), np.array([0, 0, 1, -1])
    for unbiased in (False, True):
        whole = within_chunklet_covariance(X, y, unbiased=unbiased)
        np.testing.assert_array_equal(
            whole, within_chunklet_covariance(X[:2], y[:2], unbiased=unbiased)
        )


def test_names_of_chunklets_and_order_of_points_do_not_matter():
    X, y = correlated(60, 3)
    shuffled = np.random.default_rng(1).permutation(60)
    names = np.where(y >= 0, 10**15 - 7 * y, -1)
    reference = within_chunklet_covariance(X, y)
    np.testing.assert_allclose(
        within_chunklet_covariance(X[shuffled], names[shuffled]), reference, rtol=1e-12
    )
    # Neighbours at 2**60 are one and the same as floating-point numbers.
    np.testing.assert_array_equal(
        within_chunklet_covariance(X, np.where(y >= 0, 2**60 + y, -1)), reference
    )


def test_offsets_cost_no_digits():
    X, y = correlated(50, 3)
    X = np.round(X * 2**12) / 2**12  # so that adding 2**40 is exact
    np.testing.assert_allclose(
        within_chunklet_covariance(X + 2.0**40, y), within_chunklet_covariance(X, y), rtol=1e-12
    )


def test_points_that_coincide_leave_exact_zeros():
    X = np.repeat(np.random.default_rng(0).normal(size=(200, 2)) + 1e6 / 3, 7, axis=0)
    y = np.repeat(np.arange(200), 7)
    assert any(
        np.ptp(X[y == j] - X[y == j].mean(axis=0)) or (X[7 * j] != X[y == j].mean(axis=0)).any()
        for j in range(200)
    )
    assert (within_chunklet_covariance(X, y) == 0).all()


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 1, 2], "no two points share a chunklet"),
        ([-1, -1, -1], "no two points share a chunklet"),
        ([0, 0], r"chunklet_of has shape \(2,\); it must be \(3,\)"),
        ([[0], [0], [1]], r"it must be \(3,\)"),
        ([0, 0, -2], r"chunklet_of\[2\] is -2; it must be an integer from 0"),
        ([0, 0.5, 0], r"chunklet_of\[1\] is 0.5"),
        ([0, 0, np.nan], r"chunklet_of\[2\] is nan"),
        (["a", "a", "b"], r"chunklet_of is of type .*number_classes.* numbers labels"),
    ],
)
def test_chunklets_that_are_none(y, message):
    X = np.arange(6.0).reshape(3, 2)
    with pytest.raises(ValueError, match=message):
        within_chunklet_covariance(X, y)
