"""Weighted points: each is so many points, in every family and with every relation."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from cgmm import (
    ConstrainedCategoricalMixture,
    ConstrainedGaussianMixture,
    SemiSupervisedGaussianClassifier,
)
from cgmm.mixture import POOLINGS

N, K = 40, 2
RELATIONS = ["nothing", "labels", "chunklets", "cannot", "preferences"]


def problem(seed):
    """Points of two classes, a start, and how many times each point comes."""
    rng = np.random.default_rng(seed)
    z = rng.integers(K, size=N)
    X = rng.normal(size=(N, 2)) + 2 * z[:, None]
    return rng, X, rng.dirichlet(np.ones(K), N), rng.integers(1, 4, size=N)


def doubled(known, times):
    """What is known of points that come so many times: copies of related points are linked."""
    first, pairs = np.cumsum(times) - times, {}
    for name in known.keys() - {"labels"}:
        pairs[name] = known[name].copy()
        pairs[name][:, :2] = first[known[name][:, :2].astype(int)]
    related = {int(i) for name in pairs for i in np.ravel(known[name][:, :2])}
    links = [[first[i], first[i] + c] for i in related for c in range(1, times[i])]
    pairs["must_link"] = [*pairs.get("must_link", []), *links]
    return pairs | {name: np.repeat(known[name], times) for name in known.keys() & {"labels"}}


def relations(rng, kind):
    some = rng.permutation(N)
    return {
        "nothing": {},
        "labels": {"labels": np.where(np.arange(N) % 3 == 0, rng.integers(K, size=N), -1)},
        "chunklets": {"must_link": some[:12].reshape(-1, 2)},
        "cannot": {"cannot_link": some[:12].reshape(-1, 2), "must_link": some[[0, 20]][None]},
        "preferences": {
            "preferences": np.column_stack([some[:12].reshape(-1, 2), rng.normal(size=6)])
        },
    }[kind]


def assert_same_fit(weighted, repeated, times):
    """Parameters, evidence and what is said of each point."""
    for here, there in zip(weighted.parameters_, repeated.parameters_, strict=True):
        np.testing.assert_allclose(here, there, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(weighted.history_, repeated.history_, rtol=1e-10)
    assert weighted.log_evidence_ == pytest.approx(repeated.log_evidence_, rel=1e-10)
    assert weighted.lower_bound_ == pytest.approx(repeated.lower_bound_, rel=1e-10)
    assert weighted.bic() == pytest.approx(repeated.bic(), rel=1e-10)
    r = np.repeat(weighted.responsibilities_, times, axis=0)
    np.testing.assert_allclose(r, repeated.responsibilities_, atol=1e-8)
    np.testing.assert_array_equal(np.repeat(weighted.labels_, times), repeated.labels_)


@pytest.mark.each_value
@pytest.mark.parametrize("kind", RELATIONS)
@pytest.mark.parametrize("covariance_type", POOLINGS)
@pytest.mark.parametrize("sampling", ["points", "chunklets"])
@settings(max_examples=3)
@given(seed=st.integers(0, 10**6))
def test_a_weight_is_a_number_of_points(kind, covariance_type, sampling, seed):
    rng, X, r, times = problem(seed)
    known = relations(rng, kind)
    options = {"covariance_type": covariance_type, "sampling": sampling, "max_iter": 4, "tol": 0}
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        weighted = ConstrainedGaussianMixture(K, init_params=r, **options)
        weighted.fit(X, **known, sample_weight=times)
        repeated = ConstrainedGaussianMixture(K, init_params=np.repeat(r, times, axis=0), **options)
        repeated.fit(np.repeat(X, times, axis=0), **doubled(known, times))
    assert_same_fit(weighted, repeated, times)


def test_categories_and_classes_count_their_points():
    _, X, r, times = problem(0)
    codes = (X > 1).astype(int)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        weighted, repeated = (
            ConstrainedCategoricalMixture(K, init_params=start, max_iter=4, tol=0)
            for start in (r, np.repeat(r, times, axis=0))
        )
        assert_same_fit(
            weighted.fit(codes, sample_weight=times),
            repeated.fit(np.repeat(codes, times, axis=0)),
            times,
        )
        y = np.where(np.arange(N) % 2, -1, X[:, 0] > 1)
        one, other = (SemiSupervisedGaussianClassifier(max_iter=4, tol=0) for _ in range(2))
        one.fit(X, y, sample_weight=times)
        other.fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert_same_fit(one.mixture_, other.mixture_, times)


def test_a_weight_of_zero_leaves_a_point_out():
    _, X, r, times = problem(1)
    times[::3] = 0
    kept = times > 0
    options = {"max_iter": 4, "tol": 0, "covariance_type": "tied"}
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        one = ConstrainedGaussianMixture(K, init_params=r, **options).fit(X, sample_weight=times)
        other = ConstrainedGaussianMixture(K, init_params=r[kept], **options)
        other.fit(X[kept], sample_weight=times[kept])
    np.testing.assert_allclose(one.means_, other.means_, rtol=1e-10)
    assert one.log_evidence_ == pytest.approx(other.log_evidence_, rel=1e-12)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0] * 3, r"shape \(3,\)"),
        ([1.0] * 7 + [-1.0] + [1.0] * (N - 8), r"sample_weight\[7\] is -1"),
        ([np.nan] + [1.0] * (N - 1), r"sample_weight\[0\] is nan"),
        ([0.0] * N, "every entry"),
    ],
)
def test_weights_that_are_none_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        ConstrainedGaussianMixture(K).fit(problem(0)[1], sample_weight=weights)
