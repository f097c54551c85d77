"""Test the assignment step of constrained K-means, by its own rules and by inference engines."""

import itertools
import warnings
from functools import partial

import numpy as np
import pytest
from hard_graphs import breaks_no_edge, hard_graph, objective
from hypothesis import example, given
from hypothesis import strategies as st
from kmeans_problems import draw_problem, enumerate_assignments
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine

from cgmm.inference import ENGINES
from cgmm.inference.auto import auto
from cgmm.kmeans import COPKMeans, PCKMeans, cop_rule, engine_rule, pck_rule
from cgmm.metrics import broken_relations
from cgmm.network import ApproximationWarning, Graph, Inference, NetworkError
from cgmm.scenarios import random_pairs

# The optimum is reached if two groups exchange clusters and a single node moves afterwards.
EXCHANGE = (
    np.array([[0.97, 0.5], [0.54, 0.78], [0.3, 0.8], [0.75, 0.66]]),
    Graph(4, np.array([[0, 1], [0, 2], [2, 3]]), np.array([0.05, -np.inf, 1.0])),
)
TRIANGLE = np.eye(3)[:, :2], hard_graph(3, [[0, 1], [1, 2], [0, 2]])


@given(problem=draw_problem(), seed=st.integers(0, 99))
@example(problem=EXCHANGE, seed=11)
@example(problem=TRIANGLE, seed=0)
def test_assignment_is_optimal_or_an_error_reports_that_none_exists(problem, seed):
    """Compare with enumeration, with and without a previous assignment to start from."""
    costs, graph = problem
    z = enumerate_assignments(*costs.shape)
    values = np.array([objective(costs, graph, z_row) for z_row in z])
    possible = z[np.isfinite(values)]
    make = cop_rule if np.isneginf(graph.weights).all() else pck_rule
    if not len(possible):
        with pytest.raises(NetworkError, match="no assignment"):
            make(graph, costs.shape[1])
        return
    for rule in (make(graph, costs.shape[1]), engine_rule(graph, ENGINES["enumerate"])):
        for previous in (None, possible[np.random.default_rng(seed).integers(len(possible))]):
            z, optimal = rule(costs, previous)
            assert breaks_no_edge(graph, z)
            assert optimal
            assert objective(costs, graph, z) == pytest.approx(values.min(), rel=1e-12)


# ---------------------------------------------------------------------------- PCKMeans


def test_growing_penalty_leads_from_k_means_to_hard_relations():
    X, y = load_wine(return_X_y=True)
    must, cannot = random_pairs(y, 80, random_state=0)
    start = X[[0, 70, 150]]
    counts, plain = [], KMeans(3, init=start, n_init=1).fit(X)
    for w in (0.0, 1e4, 1e5, np.inf):
        model = PCKMeans(3, w=w, init=start).fit(X, must_link=must, cannot_link=cannot)
        counts.append(sum(broken_relations(model.labels_, must, cannot)))
        if w == 0:
            np.testing.assert_array_equal(model.labels_, plain.labels_)
    assert counts[0] > counts[1] > counts[3] == 0
    assert counts[1] >= counts[2]
    hard = COPKMeans(3, init=start).fit(X, must_link=must, cannot_link=cannot)
    np.testing.assert_array_equal(model.labels_, hard.labels_)
    assert model.objective_ == pytest.approx(hard.objective_ / 2, rel=1e-12)
    assert model.assignment_optimal_ == hard.assignment_optimal_


def test_preferences_have_penalties_of_their_own():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    pairs = rng.permutation(40).reshape(-1, 2)
    must, cannot = pairs[:10], pairs[10:]
    preferences = np.concatenate([np.c_[must, np.full(10, 0.7)], np.c_[cannot, np.full(10, -0.7)]])
    start = X[:3]
    from_pairs = PCKMeans(3, w=0.7, init=start).fit(X, must_link=must, cannot_link=cannot)
    from_preferences = PCKMeans(3, w=99.0, init=start).fit(X, preferences=preferences)
    np.testing.assert_array_equal(from_pairs.labels_, from_preferences.labels_)
    assert from_pairs.objective_ == from_preferences.objective_
    # A must-link and a cannot-link of one pair cancel.
    both = PCKMeans(3, w=0.7, init=start).fit(X, must_link=must, cannot_link=must)
    np.testing.assert_array_equal(both.labels_, COPKMeans(3, init=start).fit(X).labels_)
    hard = PCKMeans(3, init=start).fit(X, preferences=[[0, 1, np.inf], [0, 2, -np.inf]])
    assert hard.labels_[0] == hard.labels_[1] != hard.labels_[2]


# ---------------------------------------------------------------------------- engines


def test_engines_without_a_possible_assignment_are_refused():
    X = np.random.default_rng(0).normal(size=(10, 2))
    with pytest.raises(ValueError, match=r"'mean_field' cannot find the most probable"):
        PCKMeans(2, inference=ENGINES["mean_field"]).fit(X, preferences=[[0, 1, 1.0]])
    triangle = [[0, 1], [1, 2], [0, 2]]
    with pytest.raises(ValueError, match=r"of points 0, 1 and 2 is.*point 0 - point 1"):
        COPKMeans(2, inference=auto).fit(X, must_link=[[0, 5]], cannot_link=triangle)


@pytest.mark.parametrize("make", [COPKMeans, partial(PCKMeans, w=np.inf)])
def test_engine_named_in_an_error_about_costs_works(make):
    """The network is too dense for an engine with these limits, and the error names another."""
    X = np.random.default_rng(0).normal(size=(40, 2))
    pairs = np.array(list(itertools.combinations(range(14), 2)))
    exact = partial(ENGINES["exact"], max_bytes=1000, max_operations=1e3)
    known = {"cannot_link": pairs[pairs[:, 1] - pairs[:, 0] < 9]}
    with pytest.raises(ValueError, match="Use inference='auto'"):
        make(10, inference=exact).fit(X, **known)
    for inference in ("auto", ENGINES["auto"]):
        with warnings.catch_warnings(action="ignore"):
            model = make(10, inference=inference, random_state=0).fit(X, **known)
        assert model.converged_
    with pytest.raises(ValueError, match="inference"):
        make(10, inference="no such engine").fit(X, **known)


def test_equally_good_assignments_do_not_replace_the_previous_one():
    """The previous assignment is kept unless the new one is better, so K-means must end."""
    results = iter(np.array([[0, 1], [1, 0], [1, 0]]))

    def engine(graph):
        return Inference(None, lambda unary: next(results))

    rule = engine_rule(hard_graph(2, [[0, 1]]), engine)
    first, _ = rule(np.ones((2, 2)), None)
    second, _ = rule(np.ones((2, 2)), first)
    np.testing.assert_array_equal(first, second)
    third, _ = rule(np.array([[2.0, 1.0], [1.0, 2.0]]), first)
    np.testing.assert_array_equal(third, [1, 0])


def test_assignment_is_not_optimal_if_a_part_is_approximated():
    ring = [[0, 1], [1, 2], [2, 3], [0, 3]]
    costs = np.random.default_rng(0).normal(size=(6, 3))
    z, optimal = engine_rule(hard_graph(6, ring), auto)(costs, None)
    assert optimal
    limited = partial(auto, max_operations=10.0)
    with pytest.warns(ApproximationWarning):
        z_limited, optimal = engine_rule(hard_graph(6, ring), limited)(costs, None)
    assert not optimal
    assert all(z_limited[a] != z_limited[b] for a, b in ring)
    np.testing.assert_array_equal(z_limited[4:], z[4:])
