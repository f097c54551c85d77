"""The semi-supervised classifier: scikit-learn's own where all is labelled, and what it adds."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import parametrize_with_checks

from cgmm import ConstrainedGaussianMixture, SemiSupervisedGaussianClassifier
from cgmm.mixture import POOLINGS

SAME = {
    "diag": GaussianNB(var_smoothing=0),
    "full": QuadraticDiscriminantAnalysis(solver="eigen"),
    "tied": LinearDiscriminantAnalysis(solver="lsqr"),
}


# scikit-learn exempts its own semi-supervised classifiers from the class -1 by their names.
UNKNOWN_IS_NO_CLASS = {"check_classifiers_classes": "y = -1 means unknown, and is no class"}


@parametrize_with_checks(
    [SemiSupervisedGaussianClassifier(covariance_type=name) for name in POOLINGS],
    expected_failed_checks=lambda estimator: UNKNOWN_IS_NO_CLASS,
)
def test_scikit_learn_estimator_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


@pytest.mark.parametrize("covariance_type", SAME)
@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_with_all_labels_it_is_scikit_learns_own(covariance_type, load):
    X, y = load(return_X_y=True)
    y = np.array(["c", "a", "b"])[y]
    ours = SemiSupervisedGaussianClassifier(covariance_type=covariance_type, reg_covar=0)
    theirs = clone(SAME[covariance_type])
    shuffled = np.random.default_rng(0).permutation(len(X))
    train, test = shuffled[:110], shuffled[110:]
    ours.fit(X[train], y[train])
    theirs.fit(X[train], y[train])
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    np.testing.assert_array_equal(ours.predict(X[test]), theirs.predict(X[test]))
    # Their eigenvalues and our Cholesky factors lose digits where columns differ by 1e5.
    np.testing.assert_allclose(
        ours.predict_proba(X[test]), theirs.predict_proba(X[test]), rtol=1e-6, atol=1e-12
    )
    np.testing.assert_array_equal(ours.transduction_, y[train])
    assert ours.mixture_.converged_


def test_naive_bayes_has_the_same_joint_log_probabilities():
    X, y = load_iris(return_X_y=True)
    ours = SemiSupervisedGaussianClassifier(covariance_type="diag", reg_covar=0).fit(X, y)
    theirs = GaussianNB(var_smoothing=0).fit(X, y)
    np.testing.assert_allclose(
        ours.predict_joint_log_proba(X), theirs.predict_joint_log_proba(X), rtol=1e-10
    )
    # A point that underflows everywhere keeps its logs.
    far = np.full((1, 4), 1e4)
    assert np.isfinite(ours.predict_log_proba(far)).sum() >= 1
    np.testing.assert_allclose(
        np.exp(ours.predict_log_proba(X)), ours.predict_proba(X), rtol=1e-10, atol=1e-300
    )


def test_it_is_the_mixture_with_labels():
    X, y = load_iris(return_X_y=True)
    hidden = np.where(np.arange(len(y)) % 10 == 0, y, -1)
    classifier = SemiSupervisedGaussianClassifier(tol=1e-6, max_iter=500).fit(X, hidden)
    mixture = ConstrainedGaussianMixture(
        3, init_params="labels", tol=1e-6, max_iter=500, random_state=5
    ).fit(X, labels=hidden)
    np.testing.assert_array_equal(classifier.mixture_.means_, mixture.means_)
    np.testing.assert_array_equal(classifier.transduction_, mixture.labels_)
    np.testing.assert_array_equal(classifier.transduction_[hidden >= 0], y[hidden >= 0])


def test_unlabelled_points_help_where_the_model_is_right():
    rng = np.random.default_rng(0)
    errors = {"labelled alone": 0, "with unlabelled": 0}
    for _ in range(20):
        y = rng.integers(2, size=300)
        X = rng.normal(size=(300, 2)) @ np.array([[1.0, 0.9], [0.0, 0.5]]) + 3 * y[:, None] * [
            1,
            -0.2,
        ]
        some = np.concatenate([np.flatnonzero(y == k)[:4] for k in (0, 1)])
        hidden = np.full(300, -1)
        hidden[some] = y[some]
        alone = SemiSupervisedGaussianClassifier().fit(X[some], y[some])
        both = SemiSupervisedGaussianClassifier().fit(X, hidden)
        errors["labelled alone"] += np.sum(alone.predict(X) != y)
        errors["with unlabelled"] += np.sum(both.predict(X) != y)
    assert errors["with unlabelled"] < 0.6 * errors["labelled alone"], errors


def test_relations_beside_labels_are_honoured():
    X, y = load_iris(return_X_y=True)
    hidden = np.full(len(y), -1)
    hidden[[0, 50, 100]] = [0, 1, 2]
    links = {"must_link": [[50, 70], [70, 77]], "cannot_link": [[77, 106]]}
    model = SemiSupervisedGaussianClassifier().fit(X, hidden, **links)
    assert model.transduction_[70] == model.transduction_[77] == 1
    assert model.transduction_[106] != 1


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (6 * [-1], "every entry of y is -1"),
        ([0, 0, -1, -1, -1, 0.5], "continuous|Unknown label type"),
    ],
)
def test_impossible_labels_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        SemiSupervisedGaussianClassifier().fit(np.arange(6.0)[:, None], y)


def test_minus_one_beside_one_alone_is_asked_about():
    """Half of the labels of {-1, 1} would be lost in silence."""
    X, y = np.arange(6.0)[:, None] ** 2, np.array([-1, -1, 1, 1, 1, -1])
    with pytest.warns(UserWarning, match=r"-1 means unknown.*np.where\(y == -1, 0, y\)"):
        SemiSupervisedGaussianClassifier().fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        SemiSupervisedGaussianClassifier().fit(X, np.where(y == -1, 0, y))
        SemiSupervisedGaussianClassifier().fit(X, [0, -1, 1, 1, 1, -1])
