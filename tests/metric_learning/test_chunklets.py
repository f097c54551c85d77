"""Compare covariances within chunklets and of all points with their definitions."""

import numpy as np
import pytest
from refusals import refused

import cgmm.numerics
from cgmm import primer
from cgmm.metric_learning import total_covariance, within_chunklet_covariance


@pytest.mark.parametrize("cells", [1, 7, 60, 131_072])
@pytest.mark.parametrize("seed", range(4))
def test_covariances_are_their_definitions_however_the_blocks_fall(monkeypatch, cells, seed):
    monkeypatch.setattr(cgmm.numerics, "BLOCK_CELLS", cells)
    rng = np.random.default_rng(seed)
    # Some chunklets have one point; they count neither as point nor as chunklet.
    X, y = rng.normal(size=(41, 3)) + 5, rng.integers(-1, rng.integers(1, 20), size=41)
    apart, sizes = primer.deviations(X, y), np.bincount(y[y >= 0])
    n_points, n_chunklets = sizes[sizes > 1].sum(), (sizes > 1).sum()
    for unbiased, freedom in ((False, n_points), (True, n_points - n_chunklets)):
        within = within_chunklet_covariance(X, y, unbiased=unbiased)
        np.testing.assert_allclose(within, apart.T @ apart / freedom, rtol=1e-10)
    np.testing.assert_allclose(total_covariance(X), np.cov(X.T, bias=True), rtol=1e-10)


def test_covariances_do_not_depend_on_names_order_or_offset():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 3)), rng.integers(-1, 15, size=60)
    X = np.round(X * 2**12) / 2**12  # so that adding 2**40 is exact
    shuffled = np.random.default_rng(1).permutation(60)
    # Neighbours at 2**60 are the same floating-point number.
    names = np.where(y >= 0, 2**60 - 7 * y, -1)
    np.testing.assert_allclose(
        within_chunklet_covariance(X[shuffled] + 2.0**40, names[shuffled]),
        within_chunklet_covariance(X, y),
        rtol=1e-12,
    )


def test_points_that_coincide_leave_exact_zeros():
    X = np.repeat(np.random.default_rng(0).normal(size=(200, 2)) + 1e6 / 3, 7, axis=0)
    # Means computed by numpy need not equal the points that they are means of.
    assert (X.reshape(200, 7, 2).mean(axis=1) != X[::7]).any()
    assert (within_chunklet_covariance(X, np.repeat(np.arange(200), 7)) == 0).all()


test_chunklets_that_are_none = refused(
    lambda y: within_chunklet_covariance(np.arange(6.0).reshape(3, 2), y),
    ([0, 1, -1], "no two points share a chunklet"),
    ([[0], [0], [1]], r"chunklet_of has shape \(3, 1\); it must be \(3,\)"),
    ([0, 0, -2], r"chunklet_of\[2\] is -2; it must be an integer from 0"),
)
