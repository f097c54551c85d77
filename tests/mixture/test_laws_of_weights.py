"""Laws of weights and of order that hold for every engine, option and start."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from cgmm import (
    ENGINES,
    ConstrainedCategoricalMixture,
    ConstrainedGaussianMixture,
    COPKMeans,
    PCKMeans,
)
from cgmm.mixture import GUIDED_STARTS, POOLINGS, STARTS
from cgmm.network import ApproximationWarning

PAIRS = np.array([[0, 1, 1.0], [2, 3, -2.0], [4, 5, 0.5]])
CYCLE = np.array([[0, 1, 1.0], [1, 2, -2.0], [2, 3, 0.5], [0, 3, 1.5]])
# What each engine takes: nothing, a clique of cannot-links, disjoint pairs, or anything.
KNOWN = {
    "independent": {},
    "clique": {"cannot_link": [[0, 1]], "must_link": [[6, 7]]},
    "pairs": {"preferences": PAIRS, "must_link": [[6, 7]]},
}
EVERY = [*ENGINES, "spanning_tree"]


def points(n=14):
    rng = np.random.default_rng(3)
    return rng.normal(size=(n, 2)) + 3 * (np.arange(n) % 2)[:, None]


def known_to(name):
    return KNOWN.get(name, {"preferences": CYCLE, "must_link": [[6, 7]]})


def fitted(model, X, **known):
    with warnings.catch_warnings():
        for category in (ConvergenceWarning, ApproximationWarning):
            warnings.simplefilter("ignore", category)
        return model.fit(X, **known)


def from_here(name, **options):
    means = [[0.0, 0.0], [3.0, 3.0]]
    options = {"covariance_type": "tied", "max_iter": 3, "tol": 0} | options
    return ConstrainedGaussianMixture(
        2, inference=name, means_init=means, random_state=0, **options
    )


@pytest.mark.parametrize("name", EVERY)
def test_weights_of_one_are_no_weights(name):
    X = points()
    plain = fitted(from_here(name), X, **known_to(name))
    ones = fitted(from_here(name), X, sample_weight=np.ones(len(X)), **known_to(name))
    np.testing.assert_allclose(ones.responsibilities_, plain.responsibilities_, atol=1e-12)
    np.testing.assert_allclose(ones.history_, plain.history_, rtol=1e-12)
    np.testing.assert_array_equal(ones.labels_, plain.labels_)


@pytest.mark.parametrize("name", sorted(set(ENGINES) - {"independent", "gibbs", "mean_field"}))
def test_a_point_without_relations_counts_as_often_as_it_is_there(name):
    """On a forest all engines that report an evidence report the same, with the same update."""
    X, times = points(), np.r_[np.ones(8), 0, 1, 2, 3, 4, 0.5]
    known = known_to(name) if name in KNOWN else {"preferences": CYCLE[:3]}
    model, other = (from_here(engine, weights="exact") for engine in (name, "enumerate"))
    model = fitted(model, X, sample_weight=times, **known)
    other = fitted(other, X[times > 0], sample_weight=times[times > 0], **known)
    assert model.log_evidence_ == pytest.approx(other.log_evidence_, rel=1e-6)
    np.testing.assert_allclose(model.means_, other.means_, rtol=1e-5)


@pytest.mark.parametrize("name", sorted(set(EVERY) - {"gibbs"}))  # whose draws know an order
@pytest.mark.parametrize("weights", ["auto", "ignore", "cautious"])
@pytest.mark.parametrize("weighted", [False, True])
def test_permuted_points_have_permuted_answers(name, weights, weighted):
    X, rng = points(), np.random.default_rng(0)
    order, times = rng.permutation(len(X)), rng.integers(1, 3, len(X))
    place, known = np.argsort(order), known_to(name)
    moved = {key: np.array(value, dtype=float) for key, value in known.items()}
    for rows in moved.values():
        rows[:, :2] = place[rows[:, :2].astype(int)]
    one, other = {}, {}
    if weighted:
        one, other = {"sample_weight": times}, {"sample_weight": times[order]}
    here = fitted(from_here(name, weights=weights), X, **known, **one)
    there = fitted(from_here(name, weights=weights), X[order], **moved, **other)
    np.testing.assert_allclose(
        there.responsibilities_, here.responsibilities_[order], atol=1e-4 * (name not in EXACT)
        + 1e-9
    )  # fmt: skip
    np.testing.assert_array_equal(there.labels_, here.labels_[order])


EXACT = set(EVERY) - {"belief_propagation", "tree_reweighted", "mean_field"}


# ------------------------------------------------------------------ points that do not count


def with_outliers():
    """Three clumps, and as many points far away that do not count, first and last."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 2)) + 8 * np.eye(3)[np.arange(60) % 3][:, :2]
    far = rng.uniform(-500, 500, (12, 2))
    weights = np.r_[np.zeros(6), rng.integers(1, 4, 60), np.zeros(6)]
    return X, np.concatenate([far[:6], X, far[6:]]), weights


@pytest.mark.parametrize("init", ["auto", *STARTS, *GUIDED_STARTS])
@pytest.mark.parametrize("covariance_type", POOLINGS)
@pytest.mark.parametrize("step", [False, True])
def test_a_point_of_weight_zero_is_no_seed(init, covariance_type, step):
    X, more, weights = with_outliers()
    inside = weights > 0
    labels = np.where(np.arange(60) < 3, np.arange(60) % 3, -1) if init == "labels" else None
    among = None if labels is None else np.r_[np.full(6, -1), labels, np.full(6, -1)]
    few, many = (
        ConstrainedGaussianMixture(
            3, init_params=init, covariance_type=covariance_type, random_state=0, max_iter=20
        )
        for _ in range(2)
    )
    fit = ConstrainedGaussianMixture.partial_fit if step else ConstrainedGaussianMixture.fit
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        fit(few, X, labels=labels, sample_weight=weights[inside])
        fit(many, more, labels=among, sample_weight=weights)
    np.testing.assert_allclose(many.means_, few.means_, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(many.labels_[inside], few.labels_)


@pytest.mark.parametrize("init", ["auto", "chunklets", "k-means++", "random"])
@pytest.mark.parametrize("estimator", [COPKMeans, PCKMeans])
@pytest.mark.parametrize("pairs", [[], [[0, 3], [1, 4]]])
def test_a_point_of_weight_zero_is_no_seed_of_k_means(init, estimator, pairs):
    X, more, weights = with_outliers()
    model, inside = estimator(3, init=init, random_state=0), weights > 0
    few = fitted(model, X, must_link=pairs, sample_weight=weights[inside]).labels_
    shifted = np.reshape(pairs, (-1, 2)) + 6
    many = fitted(model, more, must_link=shifted, sample_weight=weights).labels_[inside]
    np.testing.assert_array_equal(many, few)


def test_a_category_of_weight_zero_is_no_seed():
    codes = np.random.default_rng(0).integers(3, size=(40, 4))
    weights = np.repeat([1.0, 0.0], 20)
    codes[20:] = 2
    model = ConstrainedCategoricalMixture(2, random_state=0, max_iter=5)
    few = fitted(model, codes[:20]).labels_
    np.testing.assert_array_equal(fitted(model, codes, sample_weight=weights).labels_[:20], few)


def test_a_class_that_only_points_of_weight_zero_have():
    known = {"labels": [0, 0, 1, -1], "cannot_link": [[2, 0]], "sample_weight": [1, 1, 0, 1]}
    model = fitted(ConstrainedGaussianMixture(2), [[0.0], [1.0], [5.0], [2.0]], **known)
    assert model.labels_.tolist()[:3] == [0, 0, 1]
    assert np.isfinite(model.log_evidence_)
    with pytest.raises(ValueError, match="leaves 1 points for 2"):
        model.fit([[0.0], [1.0]], sample_weight=[0, 1])
