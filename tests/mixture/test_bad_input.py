"""A clear error or the right answer, never NaN."""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from cgmm import ConstrainedGaussianMixture
from cgmm.mixture import POOLINGS


def fit(X, n_components=2, **params):
    model = ConstrainedGaussianMixture(n_components, random_state=0, **params)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X)


def assert_sound(model, X):
    """Finite, normalised, and consistent with themselves."""
    for name in ("weights_", "means_", "covariances_", "history_", "responsibilities_"):
        assert np.isfinite(getattr(model, name)).all(), name
    assert model.weights_.sum() == pytest.approx(1, rel=1e-12)
    np.testing.assert_allclose(model.responsibilities_.sum(axis=1), 1, rtol=1e-12)
    assert np.isfinite(model.score_samples(X)).all()


@pytest.fixture
def blobs():
    rng = np.random.default_rng(0)
    # Multiples of 2^-20, so that offsets and powers of two are exact.
    X = np.concatenate([rng.normal(size=(60, 2)), rng.normal(size=(40, 2)) * [2, 0.5] + [6, 1]])
    return np.round(X * 2**20) / 2**20


def test_fewer_points_than_components(blobs):
    with pytest.raises(ValueError, match="minimum of 7"):
        fit(blobs[:6], 7)


@pytest.mark.parametrize("covariance_type", POOLINGS)
def test_duplicate_points(covariance_type):
    X = np.repeat([[0.0, 0.0], [4.0, 4.0]], 10, axis=0)
    model = fit(X, 2, covariance_type=covariance_type)
    assert_sound(model, X)
    np.testing.assert_allclose(np.sort(model.means_, axis=0), [[0, 0], [4, 4]], atol=1e-9)
    # More components than distinct points: some die, and the user is told.
    with pytest.warns(ConvergenceWarning, match="explains no point any more"):
        model = ConstrainedGaussianMixture(4, random_state=0, covariance_type=covariance_type).fit(
            X
        )
    assert_sound(model, X)


@pytest.mark.parametrize("covariance_type", POOLINGS)
def test_all_points_equal(covariance_type):
    X = np.full((10, 3), 7.0)
    model = fit(X, 1, covariance_type=covariance_type)
    assert_sound(model, X)
    np.testing.assert_allclose(model.parameters_.full_covariances[0], 1e-6 * np.eye(3), rtol=1e-9)
    with pytest.raises(ValueError, match="component 0 is not positive definite"):
        fit(X, 1, covariance_type=covariance_type, reg_covar=0)


@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag"])
def test_constant_column(blobs, covariance_type):
    X = np.column_stack([blobs, np.full(100, 3.0)])
    model = fit(X, covariance_type=covariance_type)
    assert_sound(model, X)
    np.testing.assert_allclose(model.parameters_.variances[:, 2], 1e-6, rtol=1e-6)
    np.testing.assert_array_equal(
        model.labels_, fit(blobs, covariance_type=covariance_type).labels_
    )
    with pytest.raises(ValueError, match=r"not positive definite.*Increase reg_covar"):
        fit(X, covariance_type=covariance_type, reg_covar=0)


def test_tiny_scale_with_the_default_regularisation_is_an_error_not_a_ball(blobs):
    with pytest.raises(ValueError, match="reg_covar=1e-06 exceeds the squared range"):
        fit(blobs * 1e-8)


def test_squares_that_overflow_are_an_error(blobs):
    with pytest.raises(ValueError, match="overflow"):
        fit(blobs * 1e160)


def test_a_point_that_no_component_can_reach_is_named(blobs):
    model = fit(blobs)
    with pytest.raises(ValueError, match="row 1"):
        model.score_samples([[0, 0], [1e200, 0]])


def test_collapse_onto_one_point_is_named():
    """At reg_covar=0 the likelihood is unbounded; EM that heads there must say so."""
    X = np.concatenate([np.random.default_rng(0).normal(size=(50, 2)), [[30.0, 30.0]]])
    start = {
        "weights_init": [0.9, 0.1],
        "means_init": [[0.0, 0.0], [30.0, 30.0]],
        "covariances_init": [np.eye(2), np.eye(2)],
    }
    with pytest.raises(ValueError, match="component 1 is not positive definite"):
        fit(X, reg_covar=0, **start)
    assert_sound(fit(X, **start), X)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 100_000),
    n_samples=st.integers(2, 12),
    n_dims=st.integers(1, 4),
    n_components=st.integers(1, 5),
    covariance_type=st.sampled_from(sorted(POOLINGS)),
    offset=st.sampled_from([0.0, 1e8, -1e12]),
    scale=st.sampled_from([1e-8, 1.0, 1e6]),
    distinct=st.integers(1, 12),
)
def test_small_hostile_data_give_an_answer_or_a_clear_error(
    seed, n_samples, n_dims, n_components, covariance_type, offset, scale, distinct
):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(distinct, n_dims))[rng.integers(distinct, size=n_samples)]
    X = X * scale * rng.integers(0, 2, size=n_dims) + offset
    try:
        model = fit(X, n_components, covariance_type=covariance_type)
    except ValueError as error:
        assert any(  # noqa: PT017
            cause in str(error)
            for cause in ("minimum of", "reg_covar", "positive definite", "too few digits")
        )
    else:
        assert_sound(model, X)


# Rows are contracted before number 47, and tied to it; in one block, and in several.
@pytest.mark.parametrize("n_points", [50, 12_000])
@pytest.mark.parametrize(
    ("must_link", "other"),
    [
        ([[0, 1], [2, 5]], {}),
        ([[0, 1], [49, 47]], {}),
        ([[0, 1], [2, 5]], {"cannot_link": [[7, 9]]}),
        ([[0, 1], [2, 5]], {"preferences": [[7, 47, 1.0]]}),
    ],
)
def test_a_point_too_far_for_a_density_is_named_by_its_row(n_points, must_link, other):
    X = np.random.default_rng(0).normal(size=(n_points, 1))
    start = {
        "weights_init": [0.5, 0.5], "means_init": [[-1.0], [1.0]],
        "covariances_init": [[[1e-290]], [[1e-290]]],
    }  # fmt: skip
    model = ConstrainedGaussianMixture(2, **start, max_iter=1, sampling="points")
    X[:] = np.sign(X)
    X[47] = 1e15
    with pytest.raises(ValueError, match=r"(row|point) 47 has (no possible|only)"):
        model.fit(X, must_link=must_link, **other)
    del start["covariances_init"]
    model = ConstrainedGaussianMixture(2, **start).fit(
        np.random.default_rng(0).normal(size=(60, 1))
    )
    X[47] = 1e200
    with pytest.raises(ValueError, match=r"(row|point) 47 has (no possible|only)"):
        model.predict_proba(X, must_link=must_link, **other)
