"""Test the semi-supervised classifier: scikit-learn's if all is labelled, and its additions."""

import warnings

import numpy as np
import pytest
from every_assignment import every_assignment
from hypothesis import given
from hypothesis import strategies as st
from mixture_problems import random_mixture
from refusals import refused
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB

from cgmm import ConstrainedGaussianMixture, SemiSupervisedGaussianClassifier
from cgmm.inference import ENGINES
from cgmm.mixture import POOLINGS, e_step
from cgmm.mixture.class_mixture import ClassMixture, ClassParameters
from cgmm.network import SideInformation

SAME = {
    "diag": GaussianNB(var_smoothing=0),
    "full": QuadraticDiscriminantAnalysis(solver="eigen"),
    "tied": LinearDiscriminantAnalysis(solver="lsqr"),
}


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
    log_joint = ours.predict_joint_log_proba(X)
    if covariance_type == "diag":
        np.testing.assert_allclose(log_joint, theirs.predict_joint_log_proba(X), rtol=1e-8)
    log_proba = log_joint - np.logaddexp.reduce(log_joint, axis=1, keepdims=True)
    np.testing.assert_allclose(ours.predict_log_proba(X), log_proba, atol=1e-9)


def test_a_lone_class_1_beside_minus_1_gives_a_warning():
    """Half of the labels of {-1, 1} would be lost silently."""
    X, y = np.arange(6.0)[:, None] ** 2, np.array([-1, -1, 1, 1, 1, -1])
    with pytest.warns(UserWarning, match=r"-1 means unknown.*np.where\(y == -1, 0, y\)"):
        SemiSupervisedGaussianClassifier().fit(X, y)
    with warnings.catch_warnings(action="error", category=UserWarning):
        SemiSupervisedGaussianClassifier().fit(X, np.where(y == -1, 0, y))
        SemiSupervisedGaussianClassifier().fit(X, [0, -1, 1, 1, 1, -1])


# ------------------------------------------------------------------ several Gaussians a class


def random_classes(rng, sizes):
    shares = np.concatenate([rng.dirichlet(np.ones(size)) for size in sizes])
    components = random_mixture(rng, sum(sizes), 2).with_weights(shares)
    return ClassParameters(rng.dirichlet(np.ones(len(sizes))), components, tuple(sizes))


def crossed(seed, n=240):
    """Return two classes of two clumps each at the corners of a square, an eighth labelled."""
    rng = np.random.default_rng(seed)
    clump = rng.integers(4, size=n)
    X = 6 * np.array([[0, 0], [1, 1], [0, 1], [1, 0]])[clump] + rng.normal(size=(n, 2))
    y = clump // 2
    return X, y, np.where(np.arange(n) % 8 == 0, y, -1)


# ------------------------------------------------------------------ oracles


@given(seed=st.integers(0, 10**6), hard=st.booleans())
def test_relations_of_classes_are_the_sum_over_all_components(seed, hard):
    """Sum over every assignment of five points to four components; relations concern classes."""
    rng = np.random.default_rng(seed)
    theta, X = random_classes(rng, (1, 3)), 2 * rng.normal(size=(5, 2))
    known = {"must_link": [[0, 1]], "preferences": [[2, 3, 1.5], [1, 4, -0.7]]}
    if hard:
        known["cannot_link"] = [[1, 2]]
    side = SideInformation.build(5, **known)
    posterior = e_step(X, theta, side, ENGINES["auto"](side.graph))
    split = theta.split_responsibilities(X, posterior.responsibilities)

    mixture = theta.as_mixture()
    z, logs = every_assignment(X, mixture)
    c = np.minimum(z, 1).T
    factor = (c[0] == c[1]) * np.exp(1.5 * (c[2] == c[3]) - 0.7 * (c[1] == c[4]))
    factor *= ~(hard & (c[1] == c[2]))
    joint, prior = factor * np.exp(logs), factor * mixture.weights[z].prod(axis=1)
    evidence = np.log(joint.sum() / prior.sum())
    assert posterior.log_evidence == pytest.approx(evidence, rel=1e-9)
    by_hand = np.tensordot(joint / joint.sum(), z[:, :, None] == np.arange(4), axes=1)
    np.testing.assert_allclose(split, by_hand, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("covariance_type", POOLINGS)
def test_without_relations_it_is_the_mixture_with_a_mask(covariance_type):
    """One mixture of all components, with points confined to those of their class, is the same."""
    X, _, hidden = crossed(1)
    options = {"covariance_type": covariance_type, "tol": 1e-7, "max_iter": 300}
    classes = ClassMixture((2, 2), random_state=0, **options).fit(X, labels=hidden)
    side = SideInformation.build(len(X), labels=hidden)
    start = ClassMixture((2, 2), **options)._starts(X, side, np.random.RandomState(0))[0]()
    mask = (hidden[:, None] == [0, 0, 1, 1]) | (hidden[:, None] < 0)
    mixture = start.as_mixture()
    given_start = {"weights_init": mixture.weights, "means_init": mixture.means}
    masked = ConstrainedGaussianMixture(
        4, covariances_init=POOLINGS[covariance_type].reduce(mixture.covariances),
        **given_start, **options,
    ).fit(X, labels=mask)  # fmt: skip
    np.testing.assert_allclose(classes.history_, masked.history_, rtol=1e-9)
    np.testing.assert_allclose(classes.means_, masked.means_, rtol=1e-6, atol=1e-6)
    by_class = masked.responsibilities_.reshape(-1, 2, 2).sum(axis=2)
    np.testing.assert_allclose(classes.responsibilities_, by_class, atol=1e-6)
    assert classes.bic() == pytest.approx(masked.bic(), rel=1e-9)


# ------------------------------------------------------------------ the classifier


def test_two_gaussians_a_class_tell_crossed_classes_apart():
    X, y, hidden = crossed(4)
    one = SemiSupervisedGaussianClassifier().fit(X, hidden)
    two = SemiSupervisedGaussianClassifier(components_per_class={0: 2, 1: 2}, n_init=3).fit(
        X, hidden
    )
    # Clumps at six deviations from their neighbours: three points in a thousand lie beyond.
    assert two.score(X, y) > 0.98 > 0.9 > one.score(X, y)
    # A must-link between two clumps of a class is right: each point has its own component.
    a, b = (np.flatnonzero((y == 0) & (np.linalg.norm(X - corner, axis=1) < 2))[0] for corner in
            ([0, 0], [6, 6]))  # fmt: skip
    tied = clone(two).fit(X, hidden, must_link=[[a, b]])
    assert tied.transduction_[a] == tied.transduction_[b] == 0
    split = tied.mixture_.parameters_.split_responsibilities(X, tied.mixture_.responsibilities_)
    assert split[a].argmax() != split[b].argmax()
    np.testing.assert_array_equal(two.predict(X[[a, b]], cannot_link=[[0, 1]]).sum(), 1)
    drawn, classes = two.mixture_.sample(500)
    assert np.mean(two.mixture_.predict(drawn) == classes) > 0.95


def test_points_beyond_all_densities_keep_finite_responsibilities():
    theta = random_classes(np.random.default_rng(0), (2, 2))
    with np.errstate(divide="raise", invalid="raise"):
        split = theta.split_responsibilities(np.full((1, 2), 1e200), np.array([[0.5, 0.5]]))
    np.testing.assert_allclose(split, 0.5 * theta.components.weights[None], rtol=1e-12)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::cgmm.network.DoubtWarning")
def test_a_class_too_rare_for_the_sample_of_a_start_is_fitted():
    X, y = np.random.default_rng(0).normal(size=(20_000, 1)), np.zeros(20_000, dtype=int)
    X[[5, 9999], 0], y[[5, 9999]] = [5, -5], 1
    for seed in range(3):
        model = SemiSupervisedGaussianClassifier(components_per_class={1: 2}, random_state=seed)
        assert model.set_params(max_iter=1).fit(X, y).mixture_.means_.shape == (3, 1)


test_impossible_labels_and_numbers_of_components_are_refused = refused(
    lambda y, asked, **weighed: SemiSupervisedGaussianClassifier(components_per_class=asked).fit(
        [[0.0], [1.0], [1.0], [7.0], [8.0], [9.0]], y, **weighed
    ),
    (6 * [-1], {"asked": 1}, "every entry of y is -1"),
    ([0, 0, -1, -1, -1, 0.5], {"asked": 1}, "continuous|Unknown label type"),
    (list("aaabbb"), {"asked": 0}, "components_per_class"),
    (list("aaabbb"), {"asked": {"c": 2}}, "names 'c', but the classes in y are"),
    (list("aaabbb"), {"asked": {"a": 0}}, "asks for 0 components of class 'a'"),
    (list("aaabbb"), {"asked": {"a": 1.5}}, "asks for 1.5 components of class 'a'"),
    (list("aaabbb"), {"asked": {"a": 3}}, "class 'a' has 2 distinct labelled points, too few"),
    (
        list("aaabbb"),
        {"asked": {"a": 2}, "sample_weight": [0, 1, 1, 1, 1, 1]},
        "class 'a' has 1 distinct labelled points, too few",
    ),
)
