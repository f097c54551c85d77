"""A weighted point of K-means counts as that number of points, with any side information."""

import numpy as np
import pytest
from answers import repeat_answers
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import KMeans

from cgmm import COPKMeans, PCKMeans

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
N, K = 30, 3
KINDS = [(), ("must_link",), ("cannot_link",), ("must_link", "cannot_link")]


def problem(seed):
    rng = np.random.default_rng(seed)
    z = rng.integers(K, size=N)
    some = rng.permutation(N)
    known = {"must_link": some[:8].reshape(-1, 2), "cannot_link": some[8:14].reshape(-1, 2)}
    centres = 7 + np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
    X = rng.normal(size=(N, 2)) + centres[z]
    # Start near the truth: an empty cluster would be refilled by a single copy of a point.
    return rng, X, centres + 0.3 * rng.normal(size=(K, 2)), rng.integers(1, 4, size=N), known


@pytest.mark.parametrize("kinds", KINDS)
@given(seed=st.integers(0, 10**6))
def test_a_weight_is_a_number_of_points(kinds, seed):
    _, X, init, times, both = problem(seed)
    known = {kind: both[kind] for kind in kinds}
    one, other = (COPKMeans(K, init=init) for _ in range(2))
    one.fit(X, **known, sample_weight=times)
    other.fit(np.repeat(X, times, axis=0), **repeat_answers(known, times))
    np.testing.assert_array_equal(np.repeat(one.labels_, times), other.labels_)
    np.testing.assert_allclose(one.cluster_centers_, other.cluster_centers_, rtol=1e-10)
    np.testing.assert_allclose(one.history_, other.history_, rtol=1e-10)
    assert one.inertia_ == pytest.approx(other.inertia_, rel=1e-10)
    assert one.objective_ == pytest.approx(one.inertia_, rel=1e-10)


@given(seed=st.integers(0, 10**6), w=st.floats(0.1, 5))
def test_relations_count_once_beside_weighted_points(seed, w):
    """Doubling all points doubles the distances, while the penalties stay the same."""
    _, X, init, _, known = problem(seed)
    one = PCKMeans(K, w=2 * w, init=init).fit(X, **known, sample_weight=np.full(N, 2.0))
    other = PCKMeans(K, w=w, init=init).fit(X, **known)
    np.testing.assert_array_equal(one.labels_, other.labels_)
    np.testing.assert_allclose(one.history_, 2 * other.history_, rtol=1e-10)


@given(seed=st.integers(0, 10**6))
def test_without_relations_it_is_weighted_k_means_of_scikit_learn(seed):
    rng, X, *_ = problem(seed)
    weights = rng.uniform(size=N) * rng.integers(0, 2, size=N)
    weights[0] = 1
    ours = COPKMeans(K, init=X[:K], tol=0).fit(X, sample_weight=weights)
    theirs = KMeans(K, init=ours.cluster_centers_, n_init=1, tol=0, algorithm="lloyd")
    theirs.fit(X, sample_weight=weights)
    # scikit-learn stays where ours ends.
    if len(np.unique(ours.labels_[weights > 0])) == K:
        np.testing.assert_allclose(theirs.cluster_centers_, ours.cluster_centers_, rtol=1e-9)
        np.testing.assert_array_equal(theirs.labels_, ours.labels_)
        assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-9)
