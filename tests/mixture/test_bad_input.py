"""A clear error or the right answer, never NaN."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from cgmm import ConstrainedGaussianMixture
from cgmm.mixture import POOLINGS

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
BLOBS = np.random.default_rng(0).normal(size=(100, 2)) * [1, 0.5] + np.repeat(
    [[0], [6]], 50, axis=0
)


def fit(X, n_components=2, **params):
    return ConstrainedGaussianMixture(n_components, random_state=0, **params).fit(X)


def assert_sound(model, X):
    """Finite, normalised, and consistent with themselves."""
    for name in ("weights_", "means_", "covariances_", "history_", "responsibilities_"):
        assert np.isfinite(getattr(model, name)).all(), name
    assert model.weights_.sum() == pytest.approx(1, rel=1e-12)
    np.testing.assert_allclose(model.responsibilities_.sum(axis=1), 1, rtol=1e-12)
    assert np.isfinite(model.score_samples(X)).all()


def test_fewer_points_than_components():
    with pytest.raises(ValueError, match="minimum of 7"):
        fit(BLOBS[:6], 7)


@pytest.mark.parametrize("covariance_type", POOLINGS)
def test_duplicate_points(covariance_type):
    X = np.repeat([[0.0, 0.0], [4.0, 4.0]], 10, axis=0)
    model = fit(X, 2, covariance_type=covariance_type)
    assert_sound(model, X)
    np.testing.assert_allclose(np.sort(model.means_, axis=0), [[0, 0], [4, 4]], atol=1e-9)
    # More components than distinct points: some die, and the user is told.
    with pytest.warns(ConvergenceWarning, match="explains no point any more"):
        model = fit(X, 4, covariance_type=covariance_type)
    assert_sound(model, X)


@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag"])
def test_constant_column(covariance_type):
    X = np.column_stack([BLOBS, np.full(100, 3.0)])
    model = fit(X, covariance_type=covariance_type)
    assert_sound(model, X)
    np.testing.assert_allclose(model.parameters_.variances[:, 2], 1e-6, rtol=1e-6)
    np.testing.assert_array_equal(
        model.labels_, fit(BLOBS, covariance_type=covariance_type).labels_
    )
    with pytest.raises(ValueError, match=r"not positive definite.*Increase reg_covar"):
        fit(X, covariance_type=covariance_type, reg_covar=0)


def test_tiny_scale_with_the_default_regularisation_is_an_error_not_a_ball():
    with pytest.raises(ValueError, match="reg_covar=1e-06 exceeds the squared range"):
        fit(BLOBS * 1e-8)


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


# Rows are contracted before number 47, and tied to it; in one block, and in several.
@pytest.mark.parametrize("n_points", [50, 12_000])
@pytest.mark.parametrize(
    "known",
    [
        {},
        {"must_link": [[0, 1], [49, 47]]},
        {"must_link": [[0, 1], [2, 5]], "preferences": [[7, 47, 1.0]]},
    ],
)
def test_a_point_too_far_for_a_density_is_named_by_its_row(n_points, known):
    X = np.sign(np.random.default_rng(0).normal(size=(n_points, 1)))
    start = {"weights_init": [0.5, 0.5], "means_init": [[-1.0], [1.0]]}
    narrow = fit(BLOBS[:, :1], **start).set_params(covariances_init=np.full((2, 1, 1), 1e-290))
    named = r"(row|point) 47 has (no possible|only)"
    X[47] = 1e200
    with pytest.raises(ValueError, match=named):
        narrow.predict_proba(X, **known)
    X[47] = 1e15
    with pytest.raises(ValueError, match=named):
        narrow.fit(X, **known)
