"""Test Lloyd's algorithm in constrained K-means: without relations, and with empty clusters."""

import warnings

import numpy as np
import pytest
from answers import true_relations
from hypothesis import given
from hypothesis import strategies as st
from kmeans_problems import NONE_BROKEN
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from cgmm.kmeans import COPKMeans, Nodes, PCKMeans
from cgmm.kmeans.loop import Step, _fill_empty, run_to_convergence
from cgmm.metrics import broken_relations
from cgmm.network import Graph, SideInformation, edgeless


@pytest.mark.parametrize("make", [COPKMeans, PCKMeans])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("settings", [{}, {"tol": 0.0}, {"max_iter": 2}, {"tol": 0.03}])
def test_fit_without_relations_equals_scikit_learn(make, seed, settings):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(150, 3)) + 1.5 * rng.integers(4, size=(150, 1))
    start = X[rng.choice(150, 5, replace=False)]
    theirs = KMeans(5, init=start, n_init=1, algorithm="lloyd", **settings)
    ours = make(5, init=start, **settings)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        theirs.fit(X)
        ours.fit(X)
    np.testing.assert_array_equal(ours.labels_, theirs.labels_)
    np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_, rtol=1e-10)
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-10)
    assert ours.n_iter_ == theirs.n_iter_
    new = rng.normal(size=(50, 3))
    np.testing.assert_array_equal(ours.predict(new), theirs.predict(new))
    np.testing.assert_allclose(ours.transform(new), theirs.transform(new), rtol=1e-7)
    assert ours.score(new) == pytest.approx(theirs.score(new), rel=1e-9)
    assert ours.assignment_optimal_


def test_fit_of_data_far_from_zero_is_precise():
    """Without subtracting a centre, sums of many numbers near 1e8 would lose digits."""
    rng = np.random.default_rng(0)
    X = rng.integers(2**20, size=(100_000, 1)) / 2.0**20 + 3.0 * rng.integers(2, size=(100_000, 1))
    start = np.array([[0.0], [4.0]])
    near, far = (COPKMeans(2, init=start + shift).fit(X + shift) for shift in (0.0, 1e8))
    np.testing.assert_array_equal(far.labels_, near.labels_)
    # A centre near 1e8 is rounded to a multiple of 2^-26.
    np.testing.assert_allclose(far.cluster_centers_ - 1e8, near.cluster_centers_, atol=2.0**-25)
    np.testing.assert_allclose(far.history_, near.history_, rtol=1e-7)


def test_a_cluster_without_points_keeps_its_centre():
    nodes = Nodes.of(np.array([[1.0, 2.0], [3.0, 4.0]]), SideInformation.build(2))
    before = np.array([[7.0, -7.0], [5.0, 5.0], [6.0, 1.0]])
    centres = nodes.centres(np.array([1, 1]), before)
    np.testing.assert_array_equal(centres, [[7.0, -7.0], [2.0, 3.0], [6.0, 1.0]])


@given(seed=st.integers(0, 10**6), make=st.sampled_from([COPKMeans, PCKMeans]))
def test_filling_empty_clusters_does_not_raise_the_objective(seed, make):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=30)
    X = rng.normal(size=(30, 2)) + 3 * np.eye(3)[y][:, :2]
    known = true_relations(rng, y, 12)
    start = np.concatenate([X[:2], X[:3] + 500])
    model = make(5, init=start).fit(X, **known)
    assert len(set(model.labels_)) == 5
    # The tolerance allows for rounding in sums of some thousand squares.
    assert (np.diff(model.history_) <= 1e-11 * np.abs(model.history_[:-1])).all()
    if make is COPKMeans:
        assert broken_relations(model.labels_, **known) == NONE_BROKEN


COSTS = np.array([[4.0, 9.0], [1.0, 9.0], [6.0, 9.0]])
LINKED = Graph(3, np.array([[1, 2]]), np.array([1000.0]))
WITH_SINGLE = np.array([[4.0, 9.0, 9.0], [9.0, 1.0, 9.0], [9.0, 2.0, 9.0]])


@pytest.mark.parametrize(
    ("costs", "graph", "z", "filled"),
    [
        # Moving the farthest point, 2, would break a must-link of penalty 1000, so 0 is moved.
        (COSTS, LINKED, [0, 0, 0], [1, 0, 0]),
        (COSTS, LINKED._replace(weights=np.array([-3.5])), [0, 0, 0], [0, 0, 1]),
        # The farthest point, 0, is the only one of its cluster, so 2 is moved.
        (WITH_SINGLE, edgeless(3), [0, 1, 1], [0, 1, 2]),
    ],
)
def test_cheapest_move_fills_an_empty_cluster(costs, graph, z, filled):
    np.testing.assert_array_equal(_fill_empty(costs, graph, np.array(z)), filled)


def test_clusters_that_cannot_be_filled_give_a_warning():
    X = np.repeat([[0.0], [1.0]], 5, axis=0)
    with pytest.warns(ConvergenceWarning, match="only 2 of 3 clusters"):
        model = COPKMeans(3, random_state=0).fit(X)
    assert np.isfinite(model.cluster_centers_).all()
    assert model.inertia_ == 0
    chain = [[i, i + 1] for i in range(9)]
    with pytest.warns(ConvergenceWarning, match="only 1 of 2 clusters"):
        COPKMeans(2, random_state=0).fit(np.random.default_rng(0).normal(size=(10, 2)),
                                         must_link=chain)  # fmt: skip


def test_an_interrupted_run_keeps_its_iterations():
    def steps(n):
        yield from (Step(np.full((1, 1), t), np.array([t]), -t, False) for t in range(n))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_to_convergence(steps(1), tol=0.0, max_iter=9)
    run = run_to_convergence(steps(3), tol=0.0, max_iter=9)
    assert (run.n_iter, run.history, run.interrupted) == (2, [0, -1, -2], True)
