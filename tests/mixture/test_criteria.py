"""Criteria by the evidence of a fit, fits that go on, and the start by K-means."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.mixture import GaussianMixture

from cgmm import ConstrainedCategoricalMixture, ConstrainedGaussianMixture
from cgmm.mixture import POOLINGS, from_responsibilities
from cgmm.network import SideInformation


@pytest.fixture
def blobs():
    rng = np.random.default_rng(0)
    z = np.repeat([0, 1, 2], 40)
    return np.array([[0, 0], [5, 0], [0, 5]])[z] + rng.normal(size=(120, 2)), z


def fit_early(model, X, **known):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, **known)


# ------------------------------------------------------------------ criteria


@pytest.mark.parametrize("covariance_type", POOLINGS)
def test_where_nothing_is_known_both_criteria_agree(blobs, covariance_type):
    X, _ = blobs
    model = ConstrainedGaussianMixture(3, covariance_type=covariance_type, random_state=0).fit(X)
    assert model.bic() == pytest.approx(model.bic(X), rel=1e-12)
    assert model.aic() == pytest.approx(model.aic(X), rel=1e-12)
    assert model.lower_bound_ == pytest.approx(model.score(X), rel=1e-12)


def test_relations_count_in_the_criterion_of_the_fit_alone(blobs):
    X, _ = blobs
    known = {"must_link": [[0, 1], [40, 41]], "cannot_link": [[0, 40], [2, 80]]}
    model = ConstrainedGaussianMixture(3, random_state=0).fit(X, **known)
    n_free = 2 + 3 * 2 + 3 * 3
    expected = -2 * model.log_evidence_ + n_free * np.log(120)
    assert model.bic() == pytest.approx(expected, rel=1e-12)
    assert model.aic() == pytest.approx(-2 * model.log_evidence_ + 2 * n_free, rel=1e-12)
    plain = -2 * model.score_samples(X).sum() + n_free * np.log(120)
    assert model.bic(X) == pytest.approx(plain, rel=1e-12)
    assert abs(model.bic() - model.bic(X)) > 0.1


def test_relations_choose_the_number_of_components_that_they_speak_of():
    """Two clumps that overlap, told apart by answers: points alone see one, the answers two."""
    rng = np.random.default_rng(1)
    z = np.repeat([0, 1], 60)
    X = rng.normal(size=(120, 1)) + 1.5 * z[:, None]
    pairs = rng.permutation(120).reshape(-1, 2)
    same = z[pairs[:, 0]] == z[pairs[:, 1]]
    known = {"must_link": pairs[same], "cannot_link": pairs[~same]}
    fits = {
        K: ConstrainedGaussianMixture(K, covariance_type="tied", random_state=0, n_init=5)
        for K in (2, 3)
    }
    for model in fits.values():
        fit_early(model, X, **known)
    assert fits[2].bic() < fits[3].bic()
    # One component cannot even be asked: cannot-links forbid it.
    with pytest.raises(ValueError, match="component"):
        ConstrainedGaussianMixture(1).fit(X, **known)


def test_an_engine_without_evidence_has_no_criterion_of_the_fit(blobs):
    X, _ = blobs
    model = ConstrainedGaussianMixture(3, random_state=0, inference="gibbs", tol=0.05)
    fit_early(model, X, cannot_link=[[0, 40]])
    for criterion in (model.bic, model.aic):
        with pytest.raises(ValueError, match=r"reports no log-evidence.*inference='auto'"):
            criterion()
    assert np.isfinite(model.bic(X))
    assert np.isfinite(model.set_params(inference="auto").fit(X, cannot_link=[[0, 40]]).bic())
    with pytest.raises(NotFittedError):
        ConstrainedGaussianMixture().bic()


# ------------------------------------------------------------------ warm starts


@pytest.mark.parametrize("covariance_type", POOLINGS)
def test_a_warm_start_goes_on_where_the_last_fit_ended(blobs, covariance_type):
    X, _ = blobs
    options = {"covariance_type": covariance_type, "tol": 0.0, "random_state": 0}
    links = {"cannot_link": [[0, 40], [1, 80]]}
    once = fit_early(ConstrainedGaussianMixture(3, max_iter=9, **options), X, **links)
    model = ConstrainedGaussianMixture(3, max_iter=4, warm_start=True, n_init=3, **options)
    fit_early(model.set_params(n_init=1), X, **links)
    first = model.history_
    fit_early(model.set_params(max_iter=5, n_init=3), X, **links)
    np.testing.assert_allclose(np.concatenate([first, model.history_]), once.history_, rtol=1e-12)
    np.testing.assert_allclose(model.means_, once.means_, rtol=1e-12)


def test_a_warm_start_may_be_told_something_else(blobs):
    X, _ = blobs
    model = ConstrainedGaussianMixture(3, warm_start=True, random_state=0).fit(X)
    before = model.means_
    model.set_params(covariance_type="tied").fit(X, cannot_link=[[0, 40]])
    assert model.covariances_.shape == (2, 2)
    assert np.abs(model.means_ - before).max() < 0.5
    cold = clone(model).set_params(warm_start=False)
    np.testing.assert_array_equal(cold.fit(X).means_, cold.fit(X).means_)


def test_a_warm_start_of_another_shape_is_refused(blobs):
    X, _ = blobs
    model = ConstrainedGaussianMixture(3, warm_start=True, random_state=0).fit(X)
    with pytest.raises(ValueError, match=r"a fit of 3 components in 2 columns.*has 2 in 2"):
        model.set_params(n_components=2).fit(X)
    with pytest.raises(ValueError, match="warm_start"):
        model.set_params(n_components=3).fit(X[:, :1])
    model.set_params(warm_start=False).fit(X[:, :1])


def test_categories_go_on_as_well():
    X = np.random.default_rng(0).integers(3, size=(60, 4))
    options = {"tol": 0.0, "random_state": 0}
    once = fit_early(ConstrainedCategoricalMixture(2, max_iter=6, **options), X)
    model = ConstrainedCategoricalMixture(2, max_iter=3, warm_start=True, **options)
    fit_early(fit_early(model, X), X)
    np.testing.assert_allclose(model.weights_, once.weights_, rtol=1e-12)
    assert model.bic() == pytest.approx(model.bic(X), rel=1e-12)
    with pytest.raises(ValueError, match="warm_start"):
        model.fit(np.column_stack([X, X[:, 0]]))


# ------------------------------------------------------------------ K-means as the start


def test_the_start_by_kmeans_is_that_of_scikit_learn(blobs):
    X, _ = blobs
    labels = KMeans(3, n_init=1, random_state=np.random.RandomState(4)).fit(X).labels_
    pool, side = POOLINGS["full"], SideInformation.build(len(X))
    expected = from_responsibilities(X, np.eye(3)[labels], pool, reg_covar=1e-6)
    model = ConstrainedGaussianMixture(3, init_params="kmeans", random_state=4)
    (start,) = model._starts(X, side, np.random.RandomState(4))
    np.testing.assert_array_equal(start.means, expected.means)
    theirs = GaussianMixture(3, init_params="kmeans", random_state=4).fit(X)
    assert model.fit(X).log_evidence_ / len(X) == pytest.approx(theirs.score(X), abs=1e-4)


def test_the_start_by_kmeans_agrees_with_labels(blobs):
    X, z = blobs
    labels = np.where(np.arange(len(X)) % 10 == 0, (z + 1) % 3, -1)
    model = ConstrainedGaussianMixture(3, init_params="kmeans", random_state=0)
    # Clumps overlap a little.
    assert np.mean(model.fit(X, labels=labels).labels_ == (z + 1) % 3) > 0.97
