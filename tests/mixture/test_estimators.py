"""Test scikit-learn's conventions, the attributes of a fit, and difficult data."""

import numpy as np
import pytest
from refusals import refused
from sklearn import config_context
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import cgmm.mixture.problem
from cgmm import (
    MMC,
    RCA,
    ConstrainedCategoricalMixture,
    ConstrainedGaussianMixture,
    COPKMeans,
    MixedMixture,
    OnlineRCA,
    Parameters,
    PCKMeans,
    SemiSupervisedGaussianClassifier,
)
from cgmm.mixture import POOLINGS, em
from cgmm.network import PairsAmong

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


CENTRES = np.repeat([[0, 0], [5, 0], [0, 5]], 40, axis=0)
X = load_iris().data
BLOBS = CENTRES + np.random.default_rng(0).normal(size=(120, 2))


# scikit-learn exempts its own semi-supervised classifiers from the class -1 by their names.
UNKNOWN = {"check_classifiers_classes": "y = -1 means unknown, and is no class"}
COPIES = "check_sample_weight_equivalence_on_dense_data"
DRAWS = {COPIES: "draws of a start know no weights, as those of scikit-learn's KMeans"}
EXPECTED = {
    ConstrainedCategoricalMixture: {COPIES: "its numbers lie between 0 and 1"},
    SemiSupervisedGaussianClassifier: UNKNOWN,
    COPKMeans: DRAWS,
    PCKMeans: DRAWS,
}
EVERY = [ConstrainedGaussianMixture, MixedMixture, *EXPECTED, RCA, OnlineRCA, MMC]


# Labels of these checks are not made for metric learning, so some ranks are deficient.
@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_checks(
    [*(make() for make in EVERY), ConstrainedGaussianMixture(2), MixedMixture(2)],
    expected_failed_checks=lambda estimator: (
        DRAWS if getattr(estimator, "n_components", 1) == 2 else EXPECTED.get(type(estimator), {})
    ),
)
def test_scikit_learn_estimator_checks(estimator, check):
    check(estimator)


# ------------------------------------------------------------------ what is stored


@pytest.mark.parametrize("covariance_type", POOLINGS)
@pytest.mark.parametrize("reg_covar", [0.0, 1e-6, 1e-2])
def test_fit_equals_scikit_learn_from_the_same_start(covariance_type, reg_covar):
    """Compare the path of the evidence, its end, and the predictions for points."""
    pool = POOLINGS[covariance_type]
    start = Parameters(np.full(3, 1 / 3), X[[0, 60, 120]], np.stack([np.eye(4)] * 3))
    precisions = pool.combine(np.ones(3), start.covariances)
    init = {"full": precisions, "tied": np.eye(4), "diag": np.ones((3, 4)), "spherical": np.ones(3)}
    options = {
        "covariance_type": covariance_type, "reg_covar": reg_covar, "weights_init": start.weights,
        "means_init": start.means,
    }  # fmt: skip
    theirs = GaussianMixture(3, precisions_init=init[covariance_type], **options).fit(X)
    ours = ConstrainedGaussianMixture(3, covariances_init=init[covariance_type], **options).fit(X)
    assert ours.n_iter_ == theirs.n_iter_
    np.testing.assert_allclose(ours.means_, theirs.means_, rtol=1e-8)
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), rtol=1e-8)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-9)
    for name in ("covariances_", "precisions_", "precisions_cholesky_"):
        mine, yours = getattr(ours, name), getattr(theirs, name)
        assert mine.shape == yours.shape
        # Entries that cancel, against precisions of up to about 100.
        np.testing.assert_allclose(mine, yours, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(ours.history_ / len(X), theirs.lower_bounds_, rtol=1e-9)
    assert ours.lower_bound_ == pytest.approx(ours.score(X), rel=1e-12)
    assert ours.bic(X) == pytest.approx(theirs.bic(X), rel=1e-10)
    assert ours.aic(X) == pytest.approx(theirs.aic(X), rel=1e-10)
    np.testing.assert_array_equal(ours.fit_predict(X), theirs.fit_predict(X))


# ------------------------------------------------------------------ the start


test_impossible_starts_are_refused = refused(
    lambda **params: ConstrainedGaussianMixture(3, **params).fit(X),
    ({"init_params": np.full((150, 3), 0.5)}, "row 0 of init_params"),
    ({"init_params": np.full((150, 2), 0.5)}, "must have"),
    ({"weights_init": [0.5, 0.5]}, "weights_init has shape"),
    ({"weights_init": [0.5, 0.6, 0.1]}, "sum to one"),
    ({"weights_init": [1.5, -0.5, 0.0]}, "non-negative"),
    ({"means_init": np.full((3, 4), np.nan)}, "means_init holds NaN"),
    ({"covariances_init": np.stack([np.triu(np.ones((4, 4)))] * 3)}, "not symmetric"),
    ({"covariances_init": np.stack([np.eye(4), -np.eye(4), np.eye(4)])}, r"\[1\] is not pos"),
    (
        {"covariances_init": np.stack([np.eye(4) + 0.1] * 3), "covariance_type": "diag"},
        "not of the type 'diag'",
    ),
)


# ------------------------------------------------------------------ warnings and interruption


def test_a_failed_run_does_not_end_the_others(monkeypatch):
    starts = []

    def sometimes(data, theta, *args, **kwargs):
        starts.append(theta.means.tobytes())
        if len(starts) == 2:
            raise ValueError("the covariance of component 0 is not positive definite")
        return em(data, theta, *args, **kwargs)

    monkeypatch.setattr(cgmm.mixture.problem, "em", sometimes)
    with pytest.warns(ConvergenceWarning, match="run 1 of 3 failed: the covariance"):
        model = ConstrainedGaussianMixture(3, init_params="random", random_state=0, n_init=3).fit(X)
    assert len(starts) == len(set(starts)) == 3
    assert np.isfinite(model.log_evidence_)


# ------------------------------------------------------------------ criteria


def test_an_engine_without_evidence_has_no_criterion_of_the_fit():
    model = ConstrainedGaussianMixture(3, random_state=0, inference="gibbs", tol=0.05)
    model.fit(BLOBS, cannot_link=[[0, 40]])
    for criterion in (model.bic, model.aic):
        with pytest.raises(ValueError, match=r"reports no log-evidence.*inference='auto'"):
            criterion()
    assert np.isfinite(model.bic(BLOBS))
    assert np.isfinite(model.set_params(inference="auto").fit(BLOBS, cannot_link=[[0, 40]]).bic())
    with pytest.raises(NotFittedError):
        ConstrainedGaussianMixture().bic()


# ------------------------------------------------------------------ warm starts


@pytest.mark.parametrize(
    ("make", "X"),
    [(ConstrainedGaussianMixture, BLOBS), (ConstrainedCategoricalMixture, (BLOBS > 1) * 1)],
)
def test_a_warm_start_goes_on_where_the_last_fit_ended(make, X):
    links = {"cannot_link": [[0, 40], [1, 80]]}
    once = make(3, tol=0.0, random_state=0, max_iter=9).fit(X, **links)
    twice = make(3, tol=0.0, random_state=0, max_iter=4, warm_start=True).fit(X, **links)
    first = twice.history_
    twice.set_params(max_iter=5, n_init=3).fit(X, **links)
    np.testing.assert_allclose(np.concatenate([first, twice.history_]), once.history_, rtol=1e-12)
    np.testing.assert_allclose(twice.weights_, once.weights_, rtol=1e-12)


def test_a_warm_start_of_another_shape_is_refused():
    model = ConstrainedGaussianMixture(3, warm_start=True, random_state=0).fit(BLOBS)
    with pytest.raises(ValueError, match=r"a fit of 3 components in 2 columns.*has 2 in 2"):
        model.set_params(n_components=2).fit(BLOBS)
    with pytest.raises(ValueError, match="warm_start"):
        model.set_params(n_components=3).fit(BLOBS[:, :1])
    model.set_params(warm_start=False).fit(BLOBS[:, :1])


# ------------------------------------------------------------------ K-means as the start


def test_the_start_by_kmeans_is_that_of_scikit_learn():
    """In pure noise, another number of runs would end elsewhere."""
    noise = np.random.default_rng(0).normal(size=(120, 2))
    options = {"init_params": "kmeans", "random_state": 4, "max_iter": 1}
    ours, theirs = (
        make(5, **options).fit(noise) for make in (ConstrainedGaussianMixture, GaussianMixture)
    )
    np.testing.assert_allclose(ours.means_, theirs.means_, rtol=1e-9)


# ------------------------------------------------------------------ poor data


def fit(X, n_components=2, **params):
    return ConstrainedGaussianMixture(n_components, random_state=0, **params).fit(X)


def test_tiny_scale_with_the_default_regularisation_is_an_error_not_a_ball():
    with pytest.raises(ValueError, match="reg_covar=1e-06 exceeds the squared range"):
        fit(BLOBS * 1e-8)


# Rows before the third last are contracted and linked to it; in one block and in several.
@pytest.mark.parametrize("n_points", [50, 12_100])
@pytest.mark.parametrize("kind", ["nothing", "must_link", "preferences"])
def test_a_point_too_far_for_a_density_is_named_by_its_row(n_points, kind):
    row = n_points - 3
    known = {
        "nothing": {},
        "must_link": {"must_link": [[0, 1], [row + 1, row]]},
        "preferences": {"must_link": [[0, 1], [2, 5]], "preferences": [[7, row, 1.0]]},
    }[kind]
    X = np.sign(np.random.default_rng(0).normal(size=(n_points, 1)))
    start = {"weights_init": [0.5, 0.5], "means_init": [[-1.0], [1.0]]}
    narrow = fit(BLOBS[:, :1], **start).set_params(covariances_init=np.full((2, 1, 1), 1e-290))
    named = rf"(row|point) {row} has (no possible|only)"
    X[row] = 1e200
    with pytest.raises(ValueError, match=named):
        narrow.predict_proba(X, **known)
    X[row] = 1e15
    with pytest.raises(ValueError, match=named):
        narrow.fit(X, **known)


def test_a_search_over_a_pipeline_that_routes_relations_scores_numbers():
    """Pipelines hand sample_weight to score; without it every score would be NaN."""
    pairs = PairsAmong([[i, i + 1] for i in range(0, 40, 2)], len(BLOBS))
    with config_context(enable_metadata_routing=True):
        model = ConstrainedGaussianMixture(3, random_state=0).set_fit_request(must_link=True)
        search = GridSearchCV(
            make_pipeline(StandardScaler(), model),
            {"constrainedgaussianmixture__covariance_type": ["tied", "diag"]},
            error_score="raise",
        )
        search.fit(BLOBS, must_link=pairs)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    counted = np.repeat([0, 3], 60)
    fitted = search.best_estimator_
    densities = fitted.score_samples(BLOBS)
    assert fitted.score(BLOBS, sample_weight=counted) == pytest.approx(
        np.average(densities, weights=counted)
    )
