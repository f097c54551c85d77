"""Test online RCA on streams: limits of Algorithms 3 and 4, stability, and degenerate data."""

import numpy as np
import pytest
from metric_problems import COVARIANCE, draw_stream, largest_deviation

from cgmm.metric_learning import RCA, OnlineRCA, within_chunklet_covariance


@pytest.mark.parametrize("size", [2, 7])
def test_a_stationary_stream_converges_to_the_batch_metric_up_to_a_rotation(size):
    X, y = draw_stream(COVARIANCE, 4000, size)
    batch = RCA().fit(X, y)
    online = OnlineRCA(random_state=0)
    for start in range(0, 4000, 500):
        batch_rows = (y >= start) & (y < start + 500)
        online.partial_fit(X[batch_rows], y[batch_rows])
    assert (online.n_steps_, online.n_points_) == (4000, len(X))
    P = online.components_ @ np.linalg.inv(batch.components_)
    np.testing.assert_allclose(P @ P.T, np.eye(2), atol=0.05)
    # The rotation is not the identity, so a comparison that ignored rotations would fail.
    assert abs(P - np.eye(2)).max() > 0.1
    np.testing.assert_allclose(online.inverse_transform(online.transform(X)), X, atol=1e-9)
    np.testing.assert_allclose(online.mean_, X.mean(axis=0), rtol=1e-9)


def test_chunklets_of_different_sizes_converge_to_the_pooled_covariance():
    """If all chunklets have the same size, Appendix C of the paper prints the right steady state.

    It is E[(1/n) Σ h hᵗ]. If sizes depend on classes, both the algorithm and eq. 1 give the pooled
    covariance instead.
    """
    small, large = np.diag([1.0, 9.0]), np.diag([9.0, 1.0])
    X2, y2 = draw_stream(small, 4000, 2, seed=1)
    X8, y8 = draw_stream(large, 4000, 8, seed=2)
    X, y = np.concatenate([X2, X8]), np.concatenate([2 * y2, 2 * y8 + 1])
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    pooled = within_chunklet_covariance(X, y)
    printed = (within_chunklet_covariance(X2, y2) + within_chunklet_covariance(X8, y8)) / 2
    W = OnlineRCA(random_state=0).partial_fit(X, y).components_
    assert largest_deviation(W, pooled) < 0.1
    assert largest_deviation(W, printed) > 0.3


# ------------------------------------------------------------------ stability and degenerate data


def test_an_outlier_does_not_make_online_rca_diverge():
    X, y = draw_stream(COVARIANCE, 2000, 2)
    model = OnlineRCA("constant", eta=0.02, random_state=0).partial_fit(X, y)
    outlier = np.array([[0.0, 0.0], [1e10, -1e9]])
    before = model.n_guarded_
    model.partial_fit(outlier, [0, 0])
    assert model.n_guarded_ == before + 1
    assert np.linalg.norm(model.transform(outlier[1:])) < 2 / np.sqrt(0.02)
    model.partial_fit(X, y)
    assert largest_deviation(model.components_, COVARIANCE / 2) < 1


def test_online_rca_ignores_constant_columns_until_they_vary():
    X, y = draw_stream(COVARIANCE, 300, 3)
    Z = np.column_stack([X[:, 0], np.full(900, 5.0), X[:, 1]])
    model = OnlineRCA(random_state=0).partial_fit(Z, y)
    assert (model.components_[:, 1] == 0).all()
    np.testing.assert_allclose(model.inverse_transform(model.transform(Z)), Z, atol=1e-9)
    Z[:, 1] = np.random.default_rng(0).normal(size=900)
    for _ in range(20):
        model.partial_fit(Z, y)
    assert largest_deviation(model.components_, within_chunklet_covariance(Z, y)) < 0.3


def test_online_rca_warns_of_dependent_columns_and_leaves_directions_out():
    X, y = draw_stream(COVARIANCE, 300, 3)
    Z = np.column_stack([X, X @ [1, 2]])
    with pytest.warns(UserWarning, match="vary in 2 of 3 dimensions.*columns of transform have"):
        model = OnlineRCA(random_state=0).fit(Z, y)
    # With every column scaled to unit variance, a pseudo-inverse leaves out the same direction.
    units = np.diag(within_chunklet_covariance(Z, y))
    np.testing.assert_allclose(model.components_ @ (units * [1, 2, -1]), np.zeros(3), atol=1e-9)
    assert np.linalg.matrix_rank(model.components_, tol=1e-6) == 2


def test_a_failed_first_partial_fit_leaves_the_model_unfitted():
    model = OnlineRCA()
    with pytest.raises(ValueError, match="coincide"):
        model.partial_fit(np.ones((4, 2)), [0, 0, 1, 1])
    assert not hasattr(model, "components_")
    assert not hasattr(model, "n_features_in_")
    X, y = draw_stream(COVARIANCE, 10, 2)
    model.partial_fit(X, y)
    with pytest.raises(ValueError, match="3 features"):
        model.partial_fit(np.ones((4, 3)), [0, 0, 1, 1])
    # Later chunklets without scatter change nothing.
    assert model.partial_fit(np.ones((4, 2)), [0, 0, 1, 1]).n_steps_ == 12


def test_online_rca_processes_chunklets_in_the_order_of_their_first_points():
    X, y = draw_stream(COVARIANCE, 30, 2)

    def learn_metric(X, y=None, **relations):
        return OnlineRCA(random_state=0).partial_fit(X, y, **relations).components_

    expected = learn_metric(X, y)
    renumbered = np.random.default_rng(0).permutation(30)[y]
    np.testing.assert_allclose(learn_metric(X, renumbered), expected)
    np.testing.assert_allclose(learn_metric(X, must_link=np.arange(60).reshape(30, 2)), expected)
    # Chunklets of one point change nothing.
    with_singletons = np.concatenate([X, X[:5] + 1]), np.concatenate([y, 100 + np.arange(5)])
    np.testing.assert_array_equal(learn_metric(*with_singletons), expected)
    assert abs(learn_metric(X[::-1], y[::-1]) - expected).max() > 1e-6


def test_a_step_that_overflows_is_refused():
    rng = np.random.default_rng(0)
    # The second column does not vary within chunklets, so W only grows along it.
    X = np.column_stack([rng.normal(size=40), np.repeat(np.arange(4.0), 10)])
    model = OnlineRCA("constant", eta=40.0)
    with (
        pytest.warns(UserWarning, match="vary in 1 of 2 dimensions"),
        pytest.raises(ValueError, match="a step of 40 times the 10 points"),
    ):
        model.fit(X, np.repeat(np.arange(4), 10))


@pytest.mark.parametrize("scale", [1.0, 1e-140])
def test_growth_along_a_column_that_no_longer_varies_is_refused_for_any_unit(scale):
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(20, 2)), 2, axis=0) + 0.1 * rng.normal(size=(40, 2))
    model = OnlineRCA("constant", eta=0.01, random_state=0)
    model.partial_fit(scale * X, np.repeat(np.arange(20), 2))
    before = model.components_.copy()
    # From now on the first column does not vary, so W grows along it.
    X[:, 0] = 0
    long_stream = np.tile(scale * X, (100, 1))
    with pytest.raises(ValueError, match=r"W has grown to .*some combination of columns"):
        model.partial_fit(long_stream, np.repeat(np.arange(2000), 2))
    # The error comes late, because a stream cannot be checked in advance; the model is restored.
    np.testing.assert_array_equal(model.components_, before)
    assert model.n_steps_ == 20
