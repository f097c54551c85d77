"""Test the semi-supervised classifier against scikit-learn's classifiers and by enumeration."""

import warnings

import numpy as np
import pytest
from every_assignment import every_assignment
from hypothesis import given
from hypothesis import strategies as st
from mixture_problems import draw_parameters
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

# scikit-learn's classifiers that equal ours if all points are labelled.
EQUIVALENTS = {
    "diag": GaussianNB(var_smoothing=0),
    "full": QuadraticDiscriminantAnalysis(solver="eigen"),
    "tied": LinearDiscriminantAnalysis(solver="lsqr"),
}


@pytest.mark.parametrize("covariance_type", EQUIVALENTS)
@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_fully_labelled_fit_equals_the_classifier_of_scikit_learn(covariance_type, load):
    X, y = load(return_X_y=True)
    y = np.array(["c", "a", "b"])[y]
    ours = SemiSupervisedGaussianClassifier(covariance_type=covariance_type, reg_covar=0)
    theirs = clone(EQUIVALENTS[covariance_type])
    shuffled = np.random.default_rng(0).permutation(len(X))
    train, test = shuffled[:110], shuffled[110:]
    ours.fit(X[train], y[train])
    theirs.fit(X[train], y[train])
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    np.testing.assert_array_equal(ours.predict(X[test]), theirs.predict(X[test]))
    # scikit-learn's eigenvalues and our Cholesky factors lose digits if columns differ by 1e5.
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


def test_labels_with_only_the_classes_minus_1_and_1_give_a_warning():
    """Classes -1 and 1 were probably meant, but -1 means an unknown label here."""
    X, y = np.arange(6.0)[:, None] ** 2, np.array([-1, -1, 1, 1, 1, -1])
    with pytest.warns(UserWarning, match=r"-1 means unknown.*np.where\(y == -1, 0, y\)"):
        SemiSupervisedGaussianClassifier().fit(X, y)
    with warnings.catch_warnings(action="error", category=UserWarning):
        SemiSupervisedGaussianClassifier().fit(X, np.where(y == -1, 0, y))
        SemiSupervisedGaussianClassifier().fit(X, [0, -1, 1, 1, 1, -1])


# ------------------------------------------------------------------ several Gaussians in a class


def draw_class_parameters(rng, sizes):
    """Draw parameters of classes with ``sizes[k]`` Gaussians in class k."""
    shares = np.concatenate([rng.dirichlet(np.ones(size)) for size in sizes])
    components = draw_parameters(rng, sum(sizes), 2).with_weights(shares)
    return ClassParameters(rng.dirichlet(np.ones(len(sizes))), components, tuple(sizes))


def draw_crossed_classes(seed, n=240):
    """Draw two classes, each of two clumps at opposite corners of a square.

    Return the points, their classes, and labels in which seven of eight are hidden.
    """
    rng = np.random.default_rng(seed)
    clump = rng.integers(4, size=n)
    X = 6 * np.array([[0, 0], [1, 1], [0, 1], [1, 0]])[clump] + rng.normal(size=(n, 2))
    y = clump // 2
    return X, y, np.where(np.arange(n) % 8 == 0, y, -1)


@given(seed=st.integers(0, 10**6), has_cannot_link=st.booleans())
def test_e_step_with_relations_of_classes_equals_enumeration(seed, has_cannot_link):
    """Compare with a sum over all assignments of five points to four components."""
    rng = np.random.default_rng(seed)
    theta, X = draw_class_parameters(rng, (1, 3)), 2 * rng.normal(size=(5, 2))
    known = {"must_link": [[0, 1]], "preferences": [[2, 3, 1.5], [1, 4, -0.7]]}
    if has_cannot_link:
        known["cannot_link"] = [[1, 2]]
    side = SideInformation.build(5, **known)
    posterior = e_step(X, theta, side, ENGINES["auto"](side.graph))
    split = theta.split_responsibilities(X, posterior.responsibilities)

    mixture = theta.as_mixture()
    z, logs = every_assignment(X, mixture)
    c = np.minimum(z, 1).T
    factor = (c[0] == c[1]) * np.exp(1.5 * (c[2] == c[3]) - 0.7 * (c[1] == c[4]))
    factor *= ~(has_cannot_link & (c[1] == c[2]))
    joint, prior = factor * np.exp(logs), factor * mixture.weights[z].prod(axis=1)
    evidence = np.log(joint.sum() / prior.sum())
    assert posterior.log_evidence == pytest.approx(evidence, rel=1e-9)
    expected = np.tensordot(joint / joint.sum(), z[:, :, None] == np.arange(4), axes=1)
    np.testing.assert_allclose(split, expected, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("covariance_type", POOLINGS)
def test_class_mixture_equals_a_mixture_with_masked_components(covariance_type):
    """A plain mixture fits equally if a mask excludes the components of other classes."""
    X, _, labels = draw_crossed_classes(1)
    options = {"covariance_type": covariance_type, "tol": 1e-7, "max_iter": 300}
    classes = ClassMixture((2, 2), random_state=0, **options).fit(X, labels=labels)
    side = SideInformation.build(len(X), labels=labels)
    start = ClassMixture((2, 2), **options)._starts(X, side, np.random.RandomState(0))[0]()
    mask = (labels[:, None] == [0, 0, 1, 1]) | (labels[:, None] < 0)
    mixture = start.as_mixture()
    masked = ConstrainedGaussianMixture(
        4, covariances_init=POOLINGS[covariance_type].reduce(mixture.covariances),
        weights_init=mixture.weights, means_init=mixture.means, **options,
    ).fit(X, labels=mask)  # fmt: skip
    np.testing.assert_allclose(classes.history_, masked.history_, rtol=1e-9)
    np.testing.assert_allclose(classes.means_, masked.means_, rtol=1e-6, atol=1e-6)
    by_class = masked.responsibilities_.reshape(-1, 2, 2).sum(axis=2)
    np.testing.assert_allclose(classes.responsibilities_, by_class, atol=1e-6)
    assert classes.bic() == pytest.approx(masked.bic(), rel=1e-9)


# ------------------------------------------------------------------ the classifier


def test_two_gaussians_in_each_class_separate_crossed_classes():
    X, y, labels = draw_crossed_classes(4)
    one_gaussian = SemiSupervisedGaussianClassifier().fit(X, labels)
    two_gaussians = SemiSupervisedGaussianClassifier(
        components_per_class={0: 2, 1: 2}, n_init=3
    ).fit(X, labels)
    # Clumps are six standard deviations apart, so 0.3 % of the points lie nearer to another clump.
    assert two_gaussians.score(X, y) > 0.98 > 0.9 > one_gaussian.score(X, y)
    # Points of two clumps of one class may be must-linked, and keep different components.
    a, b = (np.flatnonzero((y == 0) & (np.linalg.norm(X - corner, axis=1) < 2))[0] for corner in
            ([0, 0], [6, 6]))  # fmt: skip
    linked = clone(two_gaussians).fit(X, labels, must_link=[[a, b]])
    assert linked.transduction_[a] == linked.transduction_[b] == 0
    split = linked.mixture_.parameters_.split_responsibilities(X, linked.mixture_.responsibilities_)
    assert split[a].argmax() != split[b].argmax()
    np.testing.assert_array_equal(two_gaussians.predict(X[[a, b]], cannot_link=[[0, 1]]).sum(), 1)
    drawn, classes = two_gaussians.mixture_.sample(500)
    assert np.mean(two_gaussians.mixture_.predict(drawn) == classes) > 0.95


def test_points_beyond_all_densities_keep_finite_responsibilities():
    theta = draw_class_parameters(np.random.default_rng(0), (2, 2))
    with np.errstate(divide="raise", invalid="raise"):
        split = theta.split_responsibilities(np.full((1, 2), 1e200), np.array([[0.5, 0.5]]))
    np.testing.assert_allclose(split, 0.5 * theta.components.weights[None], rtol=1e-12)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::cgmm.network.DoubtWarning")
def test_a_class_with_two_points_among_many_is_initialised():
    X, y = np.random.default_rng(0).normal(size=(20_000, 1)), np.zeros(20_000, dtype=int)
    X[[5, 9999], 0], y[[5, 9999]] = [5, -5], 1
    for seed in range(3):
        model = SemiSupervisedGaussianClassifier(components_per_class={1: 2}, random_state=seed)
        assert model.set_params(max_iter=1).fit(X, y).mixture_.means_.shape == (3, 1)


test_impossible_labels_and_numbers_of_components_are_refused = refused(
    lambda y, sizes, **weights: SemiSupervisedGaussianClassifier(components_per_class=sizes).fit(
        [[0.0], [1.0], [1.0], [7.0], [8.0], [9.0]], y, **weights
    ),
    (6 * [-1], {"sizes": 1}, "every entry of y is -1"),
    ([0, 0, -1, -1, -1, 0.5], {"sizes": 1}, "continuous|Unknown label type"),
    (list("aaabbb"), {"sizes": 0}, "components_per_class"),
    (list("aaabbb"), {"sizes": {"c": 2}}, "names 'c', but the classes in y are"),
    (list("aaabbb"), {"sizes": {"a": 0}}, "asks for 0 components of class 'a'"),
    (list("aaabbb"), {"sizes": {"a": 1.5}}, "asks for 1.5 components of class 'a'"),
    (list("aaabbb"), {"sizes": {"a": 3}}, "class 'a' has 2 distinct labelled points, too few"),
    (
        list("aaabbb"),
        {"sizes": {"a": 2}, "sample_weight": [0, 1, 1, 1, 1, 1]},
        "class 'a' has 1 distinct labelled points, too few",
    ),
)
