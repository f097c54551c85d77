"""Test that the estimators follow scikit-learn's conventions, also with difficult data."""

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
from cgmm import ConstrainedCategoricalMixture, ConstrainedGaussianMixture
from cgmm.mixture import POOLINGS, em
from cgmm.network import PairsAmong

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


CENTRES = np.repeat([[0, 0], [5, 0], [0, 5]], 40, axis=0)
X = load_iris().data
BLOBS = CENTRES + np.random.default_rng(0).normal(size=(120, 2))


# scikit-learn exempts only its own semi-supervised classifiers from this check.
FAILURES_OF_CLASSIFIER = {"check_classifiers_classes": "y = -1 means unknown, and is no class"}
EQUIVALENCE = "check_sample_weight_equivalence_on_dense_data"
FAILURES_OF_RANDOM_STARTS = {
    EQUIVALENCE: "initial points are drawn without weights, as in scikit-learn's KMeans"
}
EXPECTED_FAILURES = {
    ConstrainedCategoricalMixture: {EQUIVALENCE: "the check uses numbers between 0 and 1"},
    cgmm.SemiSupervisedGaussianClassifier: FAILURES_OF_CLASSIFIER,
    cgmm.COPKMeans: FAILURES_OF_RANDOM_STARTS,
    cgmm.PCKMeans: FAILURES_OF_RANDOM_STARTS,
}
ESTIMATORS = [
    ConstrainedGaussianMixture,
    cgmm.MixedMixture,
    *EXPECTED_FAILURES,
    cgmm.RCA,
    cgmm.OnlineRCA,
    cgmm.MMC,
]


# The labels of some checks give metric learners within-class scatter of deficient rank.
@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_checks(
    [*(make() for make in ESTIMATORS), ConstrainedGaussianMixture(2), cgmm.MixedMixture(2)],
    expected_failed_checks=lambda estimator: (
        FAILURES_OF_RANDOM_STARTS
        if getattr(estimator, "n_components", 1) == 2
        else EXPECTED_FAILURES.get(type(estimator), {})
    ),
)
def test_scikit_learn_estimator_checks(estimator, check):
    check(estimator)


# ------------------------------------------------------------------ fitted attributes


@pytest.mark.parametrize("covariance_type", POOLINGS)
@pytest.mark.parametrize("reg_covar", [0.0, 1e-6, 1e-2])
def test_fit_without_side_information_equals_scikit_learn(covariance_type, reg_covar):
    """Compare parameters, the evidence in every iteration, and predictions."""
    pool = POOLINGS[covariance_type]
    start = cgmm.Parameters(np.full(3, 1 / 3), X[[0, 60, 120]], np.stack([np.eye(4)] * 3))
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
        # Some entries are differences of numbers up to about 100, so an absolute tolerance is used.
        np.testing.assert_allclose(
            getattr(ours, name), getattr(theirs, name), rtol=1e-7, atol=1e-7, strict=True
        )
    np.testing.assert_allclose(ours.history_ / len(X), theirs.lower_bounds_, rtol=1e-9)
    assert ours.lower_bound_ == pytest.approx(ours.score(X), rel=1e-12)
    assert ours.bic(X) == pytest.approx(theirs.bic(X), rel=1e-10)
    assert ours.aic(X) == pytest.approx(theirs.aic(X), rel=1e-10)
    np.testing.assert_array_equal(ours.fit_predict(X), theirs.fit_predict(X))


# ------------------------------------------------------------------ the start


test_impossible_starts_and_reg_covar_are_refused = refused(
    lambda **params: ConstrainedGaussianMixture(3, **params).fit(X),
    ({"init_params": np.full((150, 3), 0.5)}, "row 0 of init_params"),
    ({"init_params": np.full((150, 2), 0.5)}, "must have"),
    ({"reg_covar": 1e3}, "reg_covar=1000 exceeds the squared range"),
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


# ------------------------------------------------------------------ failed runs


def test_a_failed_run_does_not_end_the_others(monkeypatch):
    starts = []

    def fail_in_second_run(data, theta, *args, **kwargs):
        starts.append(theta.means.tobytes())
        if len(starts) == 2:
            raise ValueError("the covariance of component 0 is not positive definite")
        return em(data, theta, *args, **kwargs)

    monkeypatch.setattr(cgmm.mixture.problem, "em", fail_in_second_run)
    with pytest.warns(ConvergenceWarning, match="run 1 of 3 failed: the covariance"):
        model = ConstrainedGaussianMixture(3, init_params="random", random_state=0, n_init=3).fit(X)
    assert len(starts) == len(set(starts)) == 3
    assert np.isfinite(model.log_evidence_)


# ------------------------------------------------------------------ information criteria


def test_bic_and_aic_of_a_fit_need_an_engine_with_evidence():
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
def test_a_warm_start_continues_the_previous_fit(make, X):
    links = {"cannot_link": [[0, 40], [1, 80]]}
    once = make(3, tol=0.0, random_state=0, max_iter=9).fit(X, **links)
    twice = make(3, tol=0.0, random_state=0, max_iter=4, warm_start=True).fit(X, **links)
    first_history = twice.history_
    twice.set_params(max_iter=5, n_init=3).fit(X, **links)
    history = np.concatenate([first_history, twice.history_])
    np.testing.assert_allclose(history, once.history_, rtol=1e-12)
    np.testing.assert_allclose(twice.weights_, once.weights_, rtol=1e-12)


def test_a_warm_start_with_other_components_or_columns_is_refused():
    model = ConstrainedGaussianMixture(3, warm_start=True, random_state=0).fit(BLOBS)
    with pytest.raises(ValueError, match=r"a fit of 3 components in 2 columns.*has 2 in 2"):
        model.set_params(n_components=2).fit(BLOBS)
    with pytest.raises(ValueError, match="warm_start"):
        model.set_params(n_components=3).fit(BLOBS[:, :1])
    model.set_params(warm_start=False).fit(BLOBS[:, :1])


# ------------------------------------------------------------------ initialisation by K-means


def test_kmeans_initialisation_equals_scikit_learn():
    """In pure noise K-means with another number of restarts would end at other means."""
    noise = np.random.default_rng(0).normal(size=(120, 2))
    options = {"init_params": "kmeans", "random_state": 4, "max_iter": 1}
    ours, theirs = (
        make(5, **options).fit(noise) for make in (ConstrainedGaussianMixture, GaussianMixture)
    )
    np.testing.assert_allclose(ours.means_, theirs.means_, rtol=1e-9)


# ------------------------------------------------------------------ difficult data


# The distant point is the third last. 12,100 points are processed in several blocks.
@pytest.mark.parametrize("n_points", [50, 12_100])
@pytest.mark.parametrize("kind", ["nothing", "must_link", "preferences"])
def test_error_names_the_row_of_a_point_without_finite_density(n_points, kind):
    row = n_points - 3
    known = {
        "nothing": {},
        "must_link": {"must_link": [[0, 1], [row + 1, row]]},
        "preferences": {"must_link": [[0, 1], [2, 5]], "preferences": [[7, row, 1.0]]},
    }[kind]
    X = np.sign(np.random.default_rng(0).normal(size=(n_points, 1)))
    start = {"weights_init": [0.5, 0.5], "means_init": [[-1.0], [1.0]]}
    narrow = ConstrainedGaussianMixture(2, random_state=0, **start).fit(BLOBS[:, :1])
    narrow.set_params(covariances_init=np.full((2, 1, 1), 1e-290))
    named = rf"(row|point) {row} has (no possible|only)"
    X[row] = 1e200
    with pytest.raises(ValueError, match=named):
        narrow.predict_proba(X, **known)
    X[row] = 1e15
    with pytest.raises(ValueError, match=named):
        narrow.fit(X, **known)


def test_grid_search_over_a_pipeline_with_routed_relations_has_finite_scores():
    """A pipeline passes ``sample_weight`` to ``score``, which must accept it to return numbers."""
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
    weights, fitted = np.repeat([0, 3], 60), search.best_estimator_
    expected = np.average(fitted.score_samples(BLOBS), weights=weights)
    assert fitted.score(BLOBS, sample_weight=weights) == pytest.approx(expected)
