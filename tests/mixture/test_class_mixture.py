"""Several Gaussians a class: enumeration of components, scikit-learn class by class, reductions."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.utils.estimator_checks import parametrize_with_checks

from cgmm import ConstrainedGaussianMixture, SemiSupervisedGaussianClassifier
from cgmm.inference import ENGINES
from cgmm.metrics import broken_relations
from cgmm.mixture import POOLINGS, Parameters, e_step, sample
from cgmm.mixture.class_mixture import ClassMixture, ClassParameters, ClassPooling
from cgmm.network import SideInformation

# scikit-learn exempts its own semi-supervised classifiers from the class -1 by their names.
UNKNOWN_IS_NO_CLASS = {"check_classifiers_classes": "y = -1 means unknown, and is no class"}


ONE_POINT_IS_TOO_FEW = {
    "check_sample_weight_equivalence_on_dense_data": "a class there is one point, many times over",
}


@parametrize_with_checks(
    [
        SemiSupervisedGaussianClassifier(components_per_class=2, covariance_type=name)
        for name in ("full", "tied", "diag")
    ],
    expected_failed_checks=lambda estimator: UNKNOWN_IS_NO_CLASS | ONE_POINT_IS_TOO_FEW,
)
def test_scikit_learn_estimator_checks_with_two_components(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


def random_classes(rng, sizes, n_dims=2):
    n = sum(sizes)
    factors = rng.normal(size=(n, n_dims, n_dims))
    covariances = factors @ factors.transpose(0, 2, 1) + 0.3 * np.eye(n_dims)
    shares = np.concatenate([rng.dirichlet(np.ones(size)) for size in sizes])
    components = Parameters(shares, 2 * rng.normal(size=(n, n_dims)), covariances)
    return ClassParameters(rng.dirichlet(np.ones(len(sizes))), components, tuple(sizes))


def crossed(seed, n=240):
    """Two classes of two clumps each, at the corners of a square; every eighth point labelled."""
    rng = np.random.default_rng(seed)
    clump = rng.integers(4, size=n)
    X = 6 * np.array([[0, 0], [1, 1], [0, 1], [1, 0]])[clump] + rng.normal(size=(n, 2))
    y = clump // 2
    return X, y, np.where(np.arange(n) % 8 == 0, y, -1)


# ------------------------------------------------------------------ oracles


@given(seed=st.integers(0, 10**6), hard=st.booleans())
def test_relations_of_classes_are_the_sum_over_all_components(seed, hard):
    """Five points in M = 4 components: every assignment, relations judged by the class of each."""
    rng = np.random.default_rng(seed)
    theta, X = random_classes(rng, (1, 3)), 2 * rng.normal(size=(5, 2))
    known = {"must_link": [[0, 1]], "preferences": [[2, 3, 1.5], [1, 4, -0.7]]}
    if hard:
        known["cannot_link"] = [[1, 2]]
    side = SideInformation.build(5, **known)
    posterior = e_step(X, theta, side, ENGINES["auto"](side.graph))
    split = theta.split(X, posterior.responsibilities)

    parts = [multivariate_normal(m, S) for _, m, S in zip(*theta.components, strict=True)]
    density = np.column_stack([part.pdf(X) for part in parts])
    weights, class_of = theta.as_mixture().weights, np.array([0, 1, 1, 1])
    totals, by_hand = np.zeros(2), np.zeros((5, 4))
    for z in itertools.product(range(4), repeat=5):
        c = class_of[list(z)]
        factor = float(c[0] == c[1]) * np.exp(1.5 * (c[2] == c[3]) - 0.7 * (c[1] == c[4]))
        factor *= not (hard and c[1] == c[2])
        prior = factor * np.prod(weights[list(z)])
        joint = prior * np.prod(density[range(5), z])
        totals += prior, joint
        by_hand[range(5), z] += joint
    assert posterior.log_evidence == pytest.approx(np.log(totals[1] / totals[0]), rel=1e-9)
    np.testing.assert_allclose(split, by_hand / totals[1], rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("covariance_type", ["full", "diag", "spherical"])
def test_with_all_labels_each_class_is_a_mixture_of_scikit_learn(covariance_type):
    """Classes that share nothing are fitted each by itself, iteration for iteration."""
    X, y, _ = crossed(0)
    options = {"covariance_type": covariance_type, "tol": 0.0, "reg_covar": 1e-6}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        start = ClassMixture((2, 3), max_iter=1, random_state=0, **options).fit(X, labels=y)
        theta = start.parameters_
        pool, after = ClassPooling(POOLINGS[covariance_type]), theta
        for _ in range(7):
            statistics = pool.statistics(X, np.eye(2)[y], after)
            after = pool.maximise(statistics, after, reg_covar=1e-6)
        for c, own in enumerate([slice(0, 2), slice(2, 5)]):
            theirs = GaussianMixture(
                own.stop - own.start, max_iter=7, weights_init=theta.components.weights[own],
                means_init=theta.components.means[own], precisions_init=start.precisions_[own],
                init_params="random_from_data", **options,
            ).fit(X[y == c])  # fmt: skip
            np.testing.assert_allclose(after.components.weights[own], theirs.weights_, rtol=1e-7)
            np.testing.assert_allclose(after.components.means[own], theirs.means_, rtol=1e-7)


@pytest.mark.parametrize("covariance_type", POOLINGS)
def test_without_relations_it_is_the_mixture_with_a_mask(covariance_type):
    """All components in one mixture, points confined to those of their class: the same fit."""
    X, _, hidden = crossed(1)
    options = {"covariance_type": covariance_type, "tol": 1e-7, "max_iter": 300}
    classes = ClassMixture((2, 2), random_state=0, **options).fit(X, labels=hidden)
    side = SideInformation.build(len(X), labels=hidden)
    start = ClassMixture((2, 2), **options)._starts(X, side, np.random.RandomState(0))[0]
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


def test_the_evidence_never_falls_and_relations_hold():
    X, y, hidden = crossed(2)
    links = {"must_link": [[1, 3], [9, 12]], "cannot_link": [[5, 6], [2, 4]]}
    links = {name: [p for p in pairs if (y[p[0]] == y[p[1]]) == (name == "must_link")]
             for name, pairs in links.items()}  # fmt: skip
    model = ClassMixture((2, 2), tol=1e-6, max_iter=200, reg_covar=0, random_state=0)
    model.fit(X, labels=hidden, **links)
    assert (np.diff(model.history_) >= -1e-8).all()
    assert sum(broken_relations(model.labels_, **{k: np.array(v).reshape(-1, 2)
                                                  for k, v in links.items()})) == 0  # fmt: skip


# ------------------------------------------------------------------ the classifier


def test_two_gaussians_a_class_tell_crossed_classes_apart():
    X, y, hidden = crossed(4)
    one = SemiSupervisedGaussianClassifier().fit(X, hidden)
    two = SemiSupervisedGaussianClassifier(components_per_class=2, n_init=3).fit(X, hidden)
    # Clumps at six deviations from their neighbours: three points in a thousand lie beyond.
    assert two.score(X, y) > 0.98 > 0.9 > one.score(X, y)
    p = two.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(np.exp(two.predict_log_proba(X)), p, rtol=1e-9, atol=1e-300)
    # A must-link of two clumps of a class is no lie: each point has its own component.
    a, b = (np.flatnonzero((y == 0) & (np.linalg.norm(X - corner, axis=1) < 2))[0] for corner in
            ([0, 0], [6, 6]))  # fmt: skip
    tied = clone(two).fit(X, hidden, must_link=[[a, b]])
    assert tied.transduction_[a] == tied.transduction_[b] == 0
    split = tied.mixture_.parameters_.split(X, tied.mixture_.responsibilities_)
    assert split[a].argmax() != split[b].argmax()
    np.testing.assert_array_equal(two.predict(X[[a, b]], cannot_link=[[0, 1]]).sum(), 1)


def test_names_of_classes_and_a_clone_of_the_mixture():
    X, y, hidden = crossed(5)
    named = np.array(["a", "b"], dtype=object)[y]
    named[hidden < 0] = -1
    model = SemiSupervisedGaussianClassifier(components_per_class={"b": 3}, random_state=1)
    model.fit(X, named)
    assert model.mixture_.means_.shape == (4, 2)
    assert clone(model.mixture_).get_params() == model.mixture_.get_params()
    Z, z = model.mixture_.sample(500)
    assert Z.shape == (500, 2)
    assert np.mean(model.mixture_.predict(Z) == z) > 0.8


def test_samples_have_the_shares_of_their_classes():
    theta = random_classes(np.random.default_rng(0), (2, 1))
    X, z = sample(theta.as_mixture(), 40_000, np.random.default_rng(1))
    shares = np.bincount(theta.class_of[z], minlength=2) / len(X)
    # Five standard errors.
    np.testing.assert_allclose(shares, theta.weights, atol=5 * 0.5 / 200)


def test_points_beyond_all_densities_keep_finite_responsibilities():
    theta = random_classes(np.random.default_rng(0), (2, 2))
    with np.errstate(divide="raise", invalid="raise"):
        split = theta.split(np.full((1, 2), 1e200), np.array([[0.5, 0.5]]))
    np.testing.assert_allclose(split, 0.5 * theta.components.weights[None], rtol=1e-12)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (0, "components_per_class"),
        ({"c": 2}, "names 'c', but the classes in y are"),
        ({"a": 0}, "asks for 0 components of class 'a'"),
        ({"a": 1.5}, "asks for 1.5 components of class 'a'"),
        ({"a": 3}, "class 'a' has 2 distinct labelled points, too few to start 3"),
    ],
)
def test_impossible_numbers_of_components_are_refused(asked, message):
    X = np.array([[0.0], [1.0], [1.0], [7.0], [8.0], [9.0]])
    y = np.array(["a", "a", "a", "b", "b", "b"])
    with pytest.raises(ValueError, match=message):
        SemiSupervisedGaussianClassifier(components_per_class=asked).fit(X, y)
    SemiSupervisedGaussianClassifier(components_per_class={"a": 2}).fit(X, y)
