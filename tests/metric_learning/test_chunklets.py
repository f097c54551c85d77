"""Compare the covariance within chunklets and the total covariance with their definitions."""

import numpy as np
import pytest
from refusals import refused

import cgmm.numerics
from cgmm import primer
from cgmm.metric_learning import total_covariance, within_chunklet_covariance


@pytest.mark.parametrize("block_cells", [1, 7, 60, 131_072])
@pytest.mark.parametrize("seed", range(4))
def test_covariances_equal_their_definitions_for_any_size_of_blocks(monkeypatch, block_cells, seed):
    """Chunklets of a single point do not count."""
    monkeypatch.setattr(cgmm.numerics, "BLOCK_CELLS", block_cells)
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(41, 3)) + 5, rng.integers(-1, rng.integers(1, 20), size=41)
    deviations, sizes = primer.deviations(X, y), np.bincount(y[y >= 0])
    n_points, n_chunklets = sizes[sizes > 1].sum(), (sizes > 1).sum()
    for unbiased, n_freedom in ((False, n_points), (True, n_points - n_chunklets)):
        within = within_chunklet_covariance(X, y, unbiased=unbiased)
        np.testing.assert_allclose(within, deviations.T @ deviations / n_freedom, rtol=1e-10)
    np.testing.assert_allclose(total_covariance(X), np.cov(X.T, bias=True), rtol=1e-10)


def test_covariance_does_not_depend_on_chunklet_numbers_order_or_offset():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 3)), rng.integers(-1, 15, size=60)
    X = np.round(X * 2**12) / 2**12  # Adding 2**40 to these numbers is exact.
    shuffled = np.random.default_rng(1).permutation(60)
    # Consecutive integers near 2**60 would be equal as floating-point numbers.
    numbers = np.where(y >= 0, 2**60 - 7 * y, -1)
    np.testing.assert_allclose(
        within_chunklet_covariance(X[shuffled] + 2.0**40, numbers[shuffled]),
        within_chunklet_covariance(X, y),
        rtol=1e-12,
    )


def test_chunklets_of_coinciding_points_have_covariance_exactly_zero():
    X = np.repeat(np.random.default_rng(0).normal(size=(200, 2)) + 1e6 / 3, 7, axis=0)
    # The means that numpy computes differ from the points by rounding.
    assert (X.reshape(200, 7, 2).mean(axis=1) != X[::7]).any()
    assert (within_chunklet_covariance(X, np.repeat(np.arange(200), 7)) == 0).all()


test_within_chunklet_covariance_refuses_invalid_chunklets = refused(
    lambda y: within_chunklet_covariance(np.arange(6.0).reshape(3, 2), y),
    ([0, 1, -1], "no two points share a chunklet"),
    ([[0], [0], [1]], r"chunklet_of has shape \(3, 1\); it must be \(3,\)"),
    ([0, 0, -2], r"chunklet_of\[2\] is -2; it must be an integer from 0"),
)
