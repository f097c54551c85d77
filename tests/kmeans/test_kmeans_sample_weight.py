"""Test that a point of weight w counts as w points in constrained K-means."""

import numpy as np
import pytest
from answers import repeat_answers
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import KMeans

from cgmm import COPKMeans, PCKMeans

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
N, K = 30, 3
KINDS_OF_RELATIONS = [(), ("must_link",), ("cannot_link",), ("must_link", "cannot_link")]


def draw_problem(seed):
    """Return a generator, points, initial centres, integer weights and disjoint relations."""
    rng = np.random.default_rng(seed)
    z = rng.integers(K, size=N)
    rows = rng.permutation(N)
    known = {"must_link": rows[:8].reshape(-1, 2), "cannot_link": rows[8:14].reshape(-1, 2)}
    centres = 7 + np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
    X = rng.normal(size=(N, 2)) + centres[z]
    # From a start near the truth no cluster becomes empty and is refilled by one copy of a point.
    return rng, X, centres + 0.3 * rng.normal(size=(K, 2)), rng.integers(1, 4, size=N), known


@pytest.mark.parametrize("kinds", KINDS_OF_RELATIONS)
@given(seed=st.integers(0, 10**6))
def test_weighted_points_equal_repeated_points(kinds, seed):
    _, X, init, times, both = draw_problem(seed)
    known = {kind: both[kind] for kind in kinds}
    weighted, repeated = (COPKMeans(K, init=init) for _ in range(2))
    weighted.fit(X, **known, sample_weight=times)
    repeated.fit(np.repeat(X, times, axis=0), **repeat_answers(known, times))
    np.testing.assert_array_equal(np.repeat(weighted.labels_, times), repeated.labels_)
    np.testing.assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_, rtol=1e-10)
    np.testing.assert_allclose(weighted.history_, repeated.history_, rtol=1e-10)
    assert weighted.inertia_ == pytest.approx(repeated.inertia_, rel=1e-10)
    assert weighted.objective_ == pytest.approx(weighted.inertia_, rel=1e-10)


@given(seed=st.integers(0, 10**6), w=st.floats(0.1, 5))
def test_doubled_weights_and_penalties_double_the_objective(seed, w):
    """Doubling the weights of points and the penalties doubles the objective, and no more."""
    _, X, init, _, known = draw_problem(seed)
    doubled = PCKMeans(K, w=2 * w, init=init).fit(X, **known, sample_weight=np.full(N, 2.0))
    plain = PCKMeans(K, w=w, init=init).fit(X, **known)
    np.testing.assert_array_equal(doubled.labels_, plain.labels_)
    np.testing.assert_allclose(doubled.history_, 2 * plain.history_, rtol=1e-10)


@given(seed=st.integers(0, 10**6))
def test_weighted_fit_without_relations_equals_scikit_learn(seed):
    rng, X, *_ = draw_problem(seed)
    weights = rng.uniform(size=N) * rng.integers(0, 2, size=N)
    weights[0] = 1
    ours = COPKMeans(K, init=X[:K], tol=0).fit(X, sample_weight=weights)
    theirs = KMeans(K, init=ours.cluster_centers_, n_init=1, tol=0, algorithm="lloyd")
    theirs.fit(X, sample_weight=weights)
    # scikit-learn starts at our final centres, and must not leave them.
    if len(np.unique(ours.labels_[weights > 0])) == K:
        np.testing.assert_allclose(theirs.cluster_centers_, ours.cluster_centers_, rtol=1e-9)
        np.testing.assert_array_equal(theirs.labels_, ours.labels_)
        assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-9)
