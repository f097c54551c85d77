"""Test that a point of weight w counts as w points, in every family and with every engine."""

import warnings

import numpy as np
import pytest
from answers import repeat_answers
from hypothesis import given, settings
from hypothesis import strategies as st
from mixture_problems import assert_same_fit, draw_side_information
from refusals import refused
from sklearn.base import clone

import cgmm
from cgmm import ENGINES, ConstrainedGaussianMixture
from cgmm.mixture import GUIDED_STARTS, POOLINGS, STARTS

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::cgmm.network.ApproximationWarning"),
]
N, K = 40, 2
RELATIONS = ["nothing", "labels", "chunklets", "cannot", "preferences"]


def draw_problem(seed):
    """Return a generator, points of two classes, responsibilities, and integer weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 2)) + 2 * rng.integers(K, size=N)[:, None]
    return rng, X, rng.dirichlet(np.ones(K), N), rng.integers(1, 4, size=N)


@pytest.mark.each_value
@pytest.mark.parametrize("kind", RELATIONS)
@pytest.mark.parametrize("covariance_type", POOLINGS)
@pytest.mark.parametrize("sampling", ["points", "chunklets"])
@settings(max_examples=3)
@given(seed=st.integers(0, 10**6))
def test_weighted_points_equal_repeated_points(kind, covariance_type, sampling, seed):
    rng, X, r, times = draw_problem(seed)
    known = draw_side_information(rng, (X.sum(axis=1) > 2).astype(int), kind)
    options = {"covariance_type": covariance_type, "sampling": sampling, "max_iter": 4, "tol": 0}
    weighted = ConstrainedGaussianMixture(K, init_params=r, **options)
    weighted.fit(X, **known, sample_weight=times)
    repeated = ConstrainedGaussianMixture(K, init_params=np.repeat(r, times, axis=0), **options)
    repeated.fit(np.repeat(X, times, axis=0), **repeat_answers(known, times))
    assert_same_fit(weighted, repeated, times)


@pytest.mark.parametrize(
    "model", [cgmm.ConstrainedCategoricalMixture(K), cgmm.MixedMixture(K, categorical_features=[1])]
)
def test_weighted_rows_with_categories_equal_repeated_rows(model):
    _, X, r, times = draw_problem(0)
    X = X > 1 if "Categorical" in str(model) else np.column_stack([X[:, 0], X[:, 1] > 1])
    weighted, repeated = (
        clone(model).set_params(init_params=start, max_iter=4, tol=0)
        for start in (r, np.repeat(r, times, axis=0))
    )
    weighted.fit(X.astype(float), sample_weight=times)
    assert_same_fit(weighted, repeated.fit(np.repeat(X, times, axis=0).astype(float)), times)


def test_weighted_points_of_a_classifier_equal_repeated_points():
    _, X, _, times = draw_problem(0)
    y = np.where(np.arange(N) % 2, -1, X[:, 0] > 1)
    weighted, repeated = (
        cgmm.SemiSupervisedGaussianClassifier(max_iter=4, tol=0) for _ in range(2)
    )
    weighted.fit(X, y, sample_weight=times)
    repeated.fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert_same_fit(weighted.mixture_, repeated.mixture_, times)


test_invalid_sample_weights_are_refused = refused(
    lambda weights: ConstrainedGaussianMixture(K).fit(draw_problem(0)[1], sample_weight=weights),
    ([1.0] * 3, r"shape \(3,\)"),
    ([1.0] * 7 + [-1.0] + [1.0] * (N - 8), r"sample_weight\[7\] is -1"),
    ([np.nan] + [1.0] * (N - 1), r"sample_weight\[0\] is nan"),
    ([0.0] * N, "every entry"),
    ([1.0] + [0.0] * (N - 1), "positive for 1 of the points, too few for 2"),
)


# ------------------------------------------------------------------ every engine

CYCLE = np.array([[0, 1, 1.0], [1, 2, -2.0], [2, 3, 0.5], [0, 3, 1.5]])
# Side information for engines that accept only some networks: no edges, a clique, disjoint pairs.
SIDE_INFORMATION_OF_ENGINES = {
    "independent": {},
    "clique": {"cannot_link": [[0, 1]], "must_link": [[6, 7]]},
    "pairs": {"preferences": CYCLE[::2], "must_link": [[6, 7]]},
}
APPROXIMATE = ["belief_propagation", "tree_reweighted", "mean_field"]


# Gibbs sampling is left out, because its random numbers depend on the order of points.
@pytest.mark.parametrize("name", sorted({*ENGINES, "spanning_tree"} - {"gibbs"}))
def test_fits_of_permuted_points_are_permuted(name):
    rng, times = np.random.default_rng(3), np.arange(14) // 3 % 2 + 1
    X, order = rng.normal(size=(14, 2)) + 3 * (np.arange(14) % 2)[:, None], rng.permutation(14)
    known = SIDE_INFORMATION_OF_ENGINES.get(name, {"preferences": CYCLE, "must_link": [[6, 7]]})
    permuted_known = {key: np.array(rows, dtype=float) for key, rows in known.items()}
    for rows in permuted_known.values():
        rows[:, :2] = np.argsort(order)[rows[:, :2].astype(int)]
    model = ConstrainedGaussianMixture(
        2, covariance_type="tied", inference=name, means_init=[[0.0, 0.0], [3.0, 3.0]],
        max_iter=3, tol=0,
    )  # fmt: skip
    original = clone(model).fit(X, sample_weight=times, **known)
    permuted = clone(model).fit(X[order], sample_weight=times[order], **permuted_known)
    atol = 1e-4 if name in APPROXIMATE else 1e-9
    np.testing.assert_allclose(
        permuted.responsibilities_, original.responsibilities_[order], atol=atol
    )
    np.testing.assert_array_equal(permuted.labels_, original.labels_[order])


# ------------------------------------------------------------------ points of weight zero


@pytest.mark.each_value
@pytest.mark.parametrize("init", ["auto", *STARTS, *GUIDED_STARTS])
@pytest.mark.parametrize("step", ["fit", "partial_fit"])
def test_points_of_weight_zero_do_not_change_a_fit(init, step):
    """Distant points of weight zero must not change a fit or a step to three clumps."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 2)) + 8 * np.eye(3)[np.arange(60) % 3][:, :2]
    with_distant = np.insert(X, [0] * 6 + [60] * 6, rng.uniform(-500, 500, (12, 2)), axis=0)
    weights = np.r_[np.zeros(6), rng.integers(1, 4, 60), np.zeros(6)]
    counts = weights > 0
    labels = np.full(72, -1)
    labels[6:9] = range(3) if init == "labels" else -1
    expected, model = (
        ConstrainedGaussianMixture(3, init_params=init, random_state=0, max_iter=20)
        for _ in range(2)
    )
    getattr(expected, step)(X, labels=labels[counts], sample_weight=weights[counts])
    getattr(model, step)(with_distant, labels=labels, sample_weight=weights)
    np.testing.assert_allclose(model.means_, expected.means_, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(model.labels_[counts], expected.labels_)


def test_rows_of_weight_zero_do_not_change_a_categorical_fit():
    codes = np.random.default_rng(0).integers(3, size=(40, 4))
    codes[20:] = 2
    model = cgmm.ConstrainedCategoricalMixture(2, random_state=0, max_iter=5)
    expected = clone(model).fit(codes[:20]).labels_
    model.fit(codes, sample_weight=np.repeat([1.0, 0.0], 20))
    np.testing.assert_array_equal(model.labels_[:20], expected)


def test_a_class_whose_points_have_weight_zero_is_allowed():
    known = {"labels": [0, 0, 1, -1], "cannot_link": [[2, 0]], "sample_weight": [1, 1, 0, 1]}
    model = ConstrainedGaussianMixture(2).fit([[0.0], [1.0], [5.0], [2.0]], **known)
    assert model.labels_.tolist()[:3] == [0, 0, 1]
    assert np.isfinite(model.log_evidence_)


def test_weights_with_sum_one_give_a_warning_only_with_relations():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2)) + np.repeat([[0, 0], [5, 0]], 20, axis=0)
    model, shares = ConstrainedGaussianMixture(2, random_state=0), np.full(40, 1 / 40)
    with pytest.warns(UserWarning, match="scale them to the mean 1"):
        model.fit(X, must_link=[[0, 1], [20, 21]], sample_weight=shares)
    with warnings.catch_warnings(action="error"):
        model.fit(X, sample_weight=shares)
        model.fit(X, must_link=[[0, 1]], sample_weight=shares * 40 / shares.sum())


def test_evidence_is_continuous_in_log_odds_at_zero():
    """With sample weights, log-odds of zero and of nearly zero give the same evidence."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    pairs = np.column_stack([np.arange(0, 60, 2), np.arange(1, 60, 2)])
    model = ConstrainedGaussianMixture(2, init_params=np.eye(2)[np.arange(60) % 2], max_iter=3)
    evidences = []
    for log_odds in (0.0, 1e-12):
        preferences = np.column_stack([pairs, np.full(30, log_odds)])
        model.fit(X, preferences=preferences, sample_weight=np.full(60, 3.0))
        evidences.append(model.log_evidence_)
    assert evidences[0] == pytest.approx(evidences[1], abs=1e-6)
