"""A weighted point counts as that number of points, in every family and with every engine."""

import warnings

import numpy as np
import pytest
from answers import repeat_answers
from hypothesis import given, settings
from hypothesis import strategies as st
from mixture_problems import assert_same_fit, what_is_known
from refusals import refused
from sklearn.base import clone

from cgmm import (
    ENGINES,
    ConstrainedCategoricalMixture,
    ConstrainedGaussianMixture,
    SemiSupervisedGaussianClassifier,
)
from cgmm.mixture import GUIDED_STARTS, POOLINGS, STARTS

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::cgmm.network.ApproximationWarning"),
]
N, K = 40, 2
RELATIONS = ["nothing", "labels", "chunklets", "cannot", "preferences"]


def problem(seed):
    """Return points of two classes, a start, and the number of copies of each point."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 2)) + 2 * rng.integers(K, size=N)[:, None]
    return rng, X, rng.dirichlet(np.ones(K), N), rng.integers(1, 4, size=N)


@pytest.mark.each_value
@pytest.mark.parametrize("kind", RELATIONS)
@pytest.mark.parametrize("covariance_type", POOLINGS)
@pytest.mark.parametrize("sampling", ["points", "chunklets"])
@settings(max_examples=3)
@given(seed=st.integers(0, 10**6))
def test_a_weight_is_a_number_of_points(kind, covariance_type, sampling, seed):
    rng, X, r, times = problem(seed)
    known = what_is_known(rng, (X.sum(axis=1) > 2).astype(int), kind)
    options = {"covariance_type": covariance_type, "sampling": sampling, "max_iter": 4, "tol": 0}
    weighted = ConstrainedGaussianMixture(K, init_params=r, **options)
    weighted.fit(X, **known, sample_weight=times)
    copied = ConstrainedGaussianMixture(K, init_params=np.repeat(r, times, axis=0), **options)
    copied.fit(np.repeat(X, times, axis=0), **repeat_answers(known, times))
    assert_same_fit(weighted, copied, times)


def test_categories_and_classes_count_their_points():
    _, X, r, times = problem(0)
    codes = (X > 1).astype(int)
    weighted, copied = (
        ConstrainedCategoricalMixture(K, init_params=start, max_iter=4, tol=0)
        for start in (r, np.repeat(r, times, axis=0))
    )
    weighted.fit(codes, sample_weight=times)
    assert_same_fit(weighted, copied.fit(np.repeat(codes, times, axis=0)), times)
    y = np.where(np.arange(N) % 2, -1, X[:, 0] > 1)
    one, other = (SemiSupervisedGaussianClassifier(max_iter=4, tol=0) for _ in range(2))
    one.fit(X, y, sample_weight=times)
    other.fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert_same_fit(one.mixture_, other.mixture_, times)


test_weights_that_are_none_are_refused = refused(
    lambda weights: ConstrainedGaussianMixture(K).fit(problem(0)[1], sample_weight=weights),
    ([1.0] * 3, r"shape \(3,\)"),
    ([1.0] * 7 + [-1.0] + [1.0] * (N - 8), r"sample_weight\[7\] is -1"),
    ([np.nan] + [1.0] * (N - 1), r"sample_weight\[0\] is nan"),
    ([0.0] * N, "every entry"),
    ([1.0] + [0.0] * (N - 1), "positive for 1 of the points, too few for 2"),
)


# ------------------------------------------------------------------ every engine

CYCLE = np.array([[0, 1, 1.0], [1, 2, -2.0], [2, 3, 0.5], [0, 3, 1.5]])
# Networks for engines that do not take every one: no edges, a clique, disjoint pairs.
KNOWN = {
    "independent": {},
    "clique": {"cannot_link": [[0, 1]], "must_link": [[6, 7]]},
    "pairs": {"preferences": CYCLE[::2], "must_link": [[6, 7]]},
}
APPROXIMATE = ["belief_propagation", "tree_reweighted", "mean_field"]


@pytest.mark.parametrize("name", sorted({*ENGINES, "spanning_tree"} - {"gibbs"}))  # draws in order
def test_permuted_points_have_permuted_answers(name):
    rng, times = np.random.default_rng(3), np.arange(14) // 3 % 2 + 1
    X, order = rng.normal(size=(14, 2)) + 3 * (np.arange(14) % 2)[:, None], rng.permutation(14)
    known = KNOWN.get(name, {"preferences": CYCLE, "must_link": [[6, 7]]})
    moved = {key: np.array(rows, dtype=float) for key, rows in known.items()}
    for rows in moved.values():
        rows[:, :2] = np.argsort(order)[rows[:, :2].astype(int)]
    model = ConstrainedGaussianMixture(
        2, covariance_type="tied", inference=name, means_init=[[0.0, 0.0], [3.0, 3.0]],
        max_iter=3, tol=0,
    )  # fmt: skip
    here = clone(model).fit(X, sample_weight=times, **known)
    there = clone(model).fit(X[order], sample_weight=times[order], **moved)
    atol = 1e-4 if name in APPROXIMATE else 1e-9
    np.testing.assert_allclose(there.responsibilities_, here.responsibilities_[order], atol=atol)
    np.testing.assert_array_equal(there.labels_, here.labels_[order])


# ------------------------------------------------------------------ points that do not count


@pytest.mark.each_value
@pytest.mark.parametrize("init", ["auto", *STARTS, *GUIDED_STARTS])
@pytest.mark.parametrize("step", ["fit", "partial_fit"])
def test_a_point_of_weight_zero_is_no_seed(init, step):
    """There are three clumps, and an equal number of distant points of weight zero."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 2)) + 8 * np.eye(3)[np.arange(60) % 3][:, :2]
    more = np.insert(X, [0] * 6 + [60] * 6, rng.uniform(-500, 500, (12, 2)), axis=0)
    weights = np.r_[np.zeros(6), rng.integers(1, 4, 60), np.zeros(6)]
    inside = weights > 0
    among = np.full(72, -1)
    among[6:9] = range(3) if init == "labels" else -1
    inner, many = (
        ConstrainedGaussianMixture(3, init_params=init, random_state=0, max_iter=20)
        for _ in range(2)
    )
    getattr(inner, step)(X, labels=among[inside], sample_weight=weights[inside])
    getattr(many, step)(more, labels=among, sample_weight=weights)
    np.testing.assert_allclose(many.means_, inner.means_, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(many.labels_[inside], inner.labels_)


def test_a_category_of_weight_zero_is_no_seed():
    codes = np.random.default_rng(0).integers(3, size=(40, 4))
    codes[20:] = 2
    inner, many = (ConstrainedCategoricalMixture(2, random_state=0, max_iter=5) for _ in range(2))
    many.fit(codes, sample_weight=np.repeat([1.0, 0.0], 20))
    np.testing.assert_array_equal(many.labels_[:20], inner.fit(codes[:20]).labels_)


def test_a_class_of_weight_zero_is_allowed():
    known = {"labels": [0, 0, 1, -1], "cannot_link": [[2, 0]], "sample_weight": [1, 1, 0, 1]}
    model = ConstrainedGaussianMixture(2).fit([[0.0], [1.0], [5.0], [2.0]], **known)
    assert model.labels_.tolist()[:3] == [0, 0, 1]
    assert np.isfinite(model.log_evidence_)


def test_weights_that_are_shares_of_one_are_noticed_where_relations_are():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2)) + np.repeat([[0, 0], [5, 0]], 20, axis=0)
    model, shares = ConstrainedGaussianMixture(2, random_state=0), np.full(40, 1 / 40)
    with pytest.warns(UserWarning, match="scale them to the mean 1"):
        model.fit(X, must_link=[[0, 1], [20, 21]], sample_weight=shares)
    with warnings.catch_warnings(action="error"):
        model.fit(X, sample_weight=shares)
        model.fit(X, must_link=[[0, 1]], sample_weight=shares * 40 / shares.sum())


def test_log_odds_near_zero_mean_what_zero_means():
    """Any relation, even of log-odds zero, changes the meaning of its points' weights."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    ends = np.column_stack([np.arange(0, 60, 2), np.arange(1, 60, 2)])
    model = ConstrainedGaussianMixture(2, init_params=np.eye(2)[np.arange(60) % 2], max_iter=3)
    found = []
    for odds in (0.0, 1e-12):
        preferences = np.column_stack([ends, np.full(30, odds)])
        model.fit(X, preferences=preferences, sample_weight=np.full(60, 3.0))
        found.append(model.log_evidence_)
    assert found[0] == pytest.approx(found[1], abs=1e-6)
