"""The scikit-learn shell: conventions, bookkeeping, and answers where others give NaN."""

import io
import warnings
from contextlib import redirect_stdout

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import cgmm.mixture.base
from cgmm import ConstrainedGaussianMixture, Parameters
from cgmm.inference import ENGINES
from cgmm.mixture import POOLINGS, e_step, em, far_points
from cgmm.network import SideInformation


@pytest.fixture
def X():
    return load_iris().data


@parametrize_with_checks([ConstrainedGaussianMixture()])
def test_scikit_learn_estimator_checks(estimator, check):
    # Their data sets include two points and constant columns; warnings are theirs to cause.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


# ------------------------------------------------------------------ what is stored


@pytest.mark.parametrize("covariance_type", POOLINGS)
@pytest.mark.parametrize("reg_covar", [0.0, 1e-6, 1e-2])
def test_log_evidence_belongs_to_the_parameters_reported(X, covariance_type, reg_covar):
    model = ConstrainedGaussianMixture(
        3, covariance_type=covariance_type, reg_covar=reg_covar, random_state=0
    ).fit(X)
    theta = model.parameters_
    side = SideInformation.build(len(X))
    posterior = e_step(X, theta, side, ENGINES["independent"](side.graph))
    assert model.log_evidence_ == pytest.approx(posterior.log_evidence, rel=1e-12)
    assert model.log_evidence_ == pytest.approx(model.score_samples(X).sum(), rel=1e-12)
    np.testing.assert_allclose(model.responsibilities_, model.predict_proba(X), atol=1e-10)
    np.testing.assert_array_equal(model.labels_, model.predict(X))
    assert model.score(X) == pytest.approx(model.log_evidence_ / len(X), rel=1e-12)


def test_history_starts_at_the_start_and_has_one_entry_an_iteration(X):
    model = ConstrainedGaussianMixture(
        3, init_params="kmeans", random_state=0, tol=1e-6, max_iter=500
    ).fit(X)
    assert model.converged_
    assert model.history_.shape == (model.n_iter_,)
    side = SideInformation.build(len(X))
    start = ConstrainedGaussianMixture(3, init_params="kmeans")._starts(
        X, side, np.random.RandomState(0)
    )[0]
    posterior = e_step(X, start, side, ENGINES["independent"](side.graph))
    assert model.history_[0] == pytest.approx(posterior.log_evidence, rel=1e-12)
    assert model.history_[-1] <= model.log_evidence_ + 1e-9


@pytest.mark.parametrize("covariance_type", POOLINGS)
def test_fit_equals_scikit_learn_from_the_same_start(X, covariance_type):
    pool = POOLINGS[covariance_type]
    start = Parameters(np.full(3, 1 / 3), X[[0, 60, 120]], np.stack([np.eye(4)] * 3))
    precisions = pool.combine(np.ones(3), start.covariances)
    init = {"full": precisions, "tied": np.eye(4), "diag": np.ones((3, 4)), "spherical": np.ones(3)}
    theirs = GaussianMixture(
        3, covariance_type=covariance_type, weights_init=start.weights, means_init=start.means,
        precisions_init=init[covariance_type],
    ).fit(X)  # fmt: skip
    ours = ConstrainedGaussianMixture(
        3, covariance_type=covariance_type, weights_init=start.weights, means_init=start.means,
        covariances_init=init[covariance_type],
    ).fit(X)  # fmt: skip
    assert ours.n_iter_ == theirs.n_iter_
    np.testing.assert_allclose(ours.means_, theirs.means_, rtol=1e-8)
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), rtol=1e-8)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-9)
    for name in ("covariances_", "precisions_", "precisions_cholesky_"):
        mine, yours = getattr(ours, name), getattr(theirs, name)
        assert mine.shape == yours.shape
        # Entries that cancel, against precisions of up to about 100.
        np.testing.assert_allclose(mine, yours, rtol=1e-7, atol=1e-7)
    # Theirs is one M-step behind.
    assert ours.history_[-1] / len(X) == pytest.approx(theirs.lower_bound_, rel=1e-10)
    assert ours.lower_bound_ == pytest.approx(ours.score(X), rel=1e-12)
    assert ours.bic(X) == pytest.approx(theirs.bic(X), rel=1e-10)
    assert ours.aic(X) == pytest.approx(theirs.aic(X), rel=1e-10)
    np.testing.assert_array_equal(ours.fit_predict(X), theirs.fit_predict(X))


def test_more_starts_never_give_less_evidence(X):
    one = ConstrainedGaussianMixture(4, init_params="random", random_state=3, n_init=1)
    many = clone(one).set_params(n_init=8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert many.fit(X).log_evidence_ >= one.fit(X).log_evidence_


def test_a_numpy_generator_lends_its_randomness(X):
    """The stream goes on from fit to fit; the same seed gives the same fits."""
    rng, again = np.random.default_rng(1), np.random.default_rng(1)
    for _ in range(2):
        one, two = (
            ConstrainedGaussianMixture(3, init_params="random_from_data", random_state=source)
            for source in (rng, again)
        )
        np.testing.assert_array_equal(one.fit(X).means_, two.fit(X).means_)
    assert rng.random() == again.random() != np.random.default_rng(1).random()


def test_an_engine_without_evidence_stops_by_what_moves(X):
    # Without relations sampling averages probabilities: the very same iterations, unmeasured.
    start = far_points(X, 3, np.random.RandomState(0))
    model = ConstrainedGaussianMixture(3, init_params=start, inference="gibbs", tol=1e-4).fit(X)
    assert np.isnan(model.log_evidence_)
    assert np.isnan(model.history_).all()
    assert model.converged_
    exact = ConstrainedGaussianMixture(
        3, init_params=start, tol=0, max_iter=model.n_iter_, means_init=None
    )
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        exact.fit(X)
    np.testing.assert_allclose(model.means_, exact.means_, rtol=1e-8)


# ------------------------------------------------------------------ the start


def test_given_responsibilities_are_the_start(X):
    r = np.eye(3)[load_iris().target]
    model = ConstrainedGaussianMixture(3, init_params=r).fit(X)
    for k in range(3):
        # EM from the true classes stays near them.
        assert np.linalg.norm(model.means_[k] - X[load_iris().target == k].mean(axis=0)) < 0.5
    wrong = r.copy()
    wrong[5, 0] = 0.5
    with pytest.raises(ValueError, match="row 5 of init_params"):
        ConstrainedGaussianMixture(3, init_params=wrong).fit(X)
    with pytest.raises(ValueError, match="must have"):
        ConstrainedGaussianMixture(2, init_params=r).fit(X)


def test_given_means_alone_start_from_the_points_nearest_to_them(X):
    means = X[[0, 60, 120]]
    side = SideInformation.build(len(X))
    model = ConstrainedGaussianMixture(3, means_init=means)
    (start,) = model._starts(X, side, np.random.RandomState(0))
    np.testing.assert_array_equal(start.means, means)
    nearest = ((X[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
    np.testing.assert_allclose(start.weights, np.bincount(nearest) / len(X), rtol=1e-14)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"weights_init": [0.5, 0.5]}, "weights_init has shape"),
        ({"weights_init": [0.5, 0.6, 0.1]}, "sum to one"),
        ({"weights_init": [1.5, -0.5, 0.0]}, "non-negative"),
        ({"means_init": np.zeros((3, 3))}, "means_init has shape"),
        ({"means_init": np.full((3, 4), np.nan)}, "means_init holds NaN"),
        ({"covariances_init": np.eye(4)}, "covariances_init has shape"),
        ({"covariances_init": np.stack([np.triu(np.ones((4, 4)))] * 3)}, "not symmetric"),
        ({"covariances_init": np.stack([np.eye(4), -np.eye(4), np.eye(4)])}, r"\[1\] is not pos"),
        (
            {"covariances_init": np.stack([np.eye(4) + 0.1] * 3), "covariance_type": "diag"},
            "not of the type 'diag'",
        ),
    ],
)
def test_impossible_starts_are_refused(X, params, message):
    with pytest.raises(ValueError, match=message):
        ConstrainedGaussianMixture(3, **params).fit(X)


@pytest.mark.parametrize(
    "params",
    [
        {"n_components": 0},
        {"covariance_type": "round"},
        {"inference": "oracle"},
        {"tol": -1},
        {"reg_covar": -1e-6},
        {"max_iter": 0},
        {"n_init": 0},
        {"init_params": "k-medoids"},
    ],
)
def test_impossible_parameters_are_refused_in_fit(X, params):
    (name,) = params
    with pytest.raises(ValueError, match=name):
        ConstrainedGaussianMixture(**params).fit(X)


# ------------------------------------------------------------------ scikit-learn's habits


def test_pipeline_search_and_set_output(X):
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    model = make_pipeline(
        StandardScaler().set_output(transform="pandas"),
        ConstrainedGaussianMixture(3, random_state=0),
    ).fit(frame)
    assert list(model[-1].feature_names_in_) == ["a", "b", "c", "d"]
    assert len(set(model.predict(frame))) == 3
    with pytest.raises(ValueError, match="feature names"):
        model[-1].predict(frame[["b", "a", "c", "d"]])
    shuffled = np.random.default_rng(0).permutation(X)
    search = GridSearchCV(
        ConstrainedGaussianMixture(random_state=0), {"n_components": [1, 2, 3]}, cv=3
    ).fit(shuffled)
    assert search.best_params_["n_components"] > 1


def test_sample(X):
    model = ConstrainedGaussianMixture(3, random_state=0).fit(X)
    drawn, z = model.sample(3000)
    assert drawn.shape == (3000, 4)
    np.testing.assert_allclose(np.bincount(z) / 3000, model.weights_, atol=0.05)
    np.testing.assert_array_equal(model.sample(3000)[0], drawn)
    with pytest.raises(ValueError, match="at least one"):
        model.sample(0)


def test_inputs_of_every_kind_give_the_same_answer(X):
    reference = ConstrainedGaussianMixture(3, random_state=0).fit(X)
    read_only = X.copy()
    read_only.flags.writeable = False
    views = [np.asfortranarray(X), X.tolist(), read_only, np.repeat(X, 2, axis=0)[::2]]
    for view in views:
        model = ConstrainedGaussianMixture(3, random_state=0).fit(view)
        np.testing.assert_allclose(model.means_, reference.means_, rtol=1e-12)
    single = ConstrainedGaussianMixture(3, random_state=0).fit(X.astype(np.float32))
    np.testing.assert_allclose(single.means_, reference.means_, rtol=1e-5)
    before = X.copy()
    np.testing.assert_array_equal(X, before)


def test_verbose_reports_runs_and_iterations(X):
    out = io.StringIO()
    with redirect_stdout(out):
        ConstrainedGaussianMixture(3, random_state=0, n_init=2, verbose=2).fit(X)
    lines = out.getvalue().splitlines()
    assert sum(line.startswith("run ") for line in lines) == 2
    assert any("iteration    1" in line for line in lines)
    quiet = io.StringIO()
    with redirect_stdout(quiet):
        ConstrainedGaussianMixture(3, random_state=0).fit(X)
    assert quiet.getvalue() == ""


# ------------------------------------------------------------------ warnings and interruption


def test_too_few_iterations_warn(X):
    with pytest.warns(ConvergenceWarning, match="did not converge in 2"):
        model = ConstrainedGaussianMixture(3, init_params="random", max_iter=2).fit(X)
    assert not model.converged_
    assert model.n_iter_ == 2


def test_a_run_that_fails_does_not_lose_the_others(X, monkeypatch):
    calls = []
    original = em

    def sometimes(*args, **kwargs):
        calls.append(1)
        if len(calls) == 2:
            raise ValueError("the covariance of component 0 is not positive definite")
        return original(*args, **kwargs)

    monkeypatch.setattr(cgmm.mixture.base, "em", sometimes)
    with pytest.warns(ConvergenceWarning, match="run 1 of 3 failed: the covariance"):
        model = ConstrainedGaussianMixture(3, random_state=0, n_init=3).fit(X)
    assert len(calls) == 3
    assert np.isfinite(model.log_evidence_)
