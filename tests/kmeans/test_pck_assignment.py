"""The rule of PCKMeans: a local minimum that never rises, from plain K-means to hard relations."""

import itertools

import numpy as np
import pytest
from hard_graphs import breaks_none
from hypothesis import assume, example, given
from hypothesis import strategies as st
from kmeans_problems import all_assignments, enumerated, objective, soft_problems
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine

from cgmm.inference import ENGINES
from cgmm.kmeans import COPKMeans, PCKMeans, engine_rule, pck_rule
from cgmm.metrics import broken_relations
from cgmm.network import Graph, SideInformation
from cgmm.scenarios import random_pairs

# Two groups change places, and leave a node behind that is then better off alone.
LEFT_BEHIND = (
    np.array([[0.97, 0.5], [0.54, 0.78], [0.3, 0.8], [0.75, 0.66]]),
    Graph(4, np.array([[0, 1], [0, 2], [2, 3]]), np.array([0.05, -np.inf, 1.0])),
)


@given(problem=soft_problems(), seed=st.integers(0, 99))
@example(problem=LEFT_BEHIND, seed=11)
def test_pck_assignment_never_rises_and_is_a_local_minimum(problem, seed):
    costs, graph = problem
    simple = SideInformation.build(
        len(costs), preferences=np.column_stack([graph.edges, graph.weights])
    ).graph
    values = [objective(costs, simple, z) for z in all_assignments(*costs.shape)]
    assume(min(values) < np.inf)
    feasible = np.flatnonzero(np.isfinite(values))
    rule = pck_rule(graph, costs.shape[1])
    start = all_assignments(*costs.shape)[np.random.default_rng(seed).choice(feasible)]
    for before in (None, start):
        z, optimal = rule(costs, before)
        j_z = objective(costs, simple, z)
        assert breaks_none(simple, z)
        if before is not None:
            assert j_z <= objective(costs, simple, before) + 1e-12
        assert not optimal or j_z == pytest.approx(min(values), rel=1e-12)
        for j, k in itertools.product(range(len(z)), range(costs.shape[1])):
            moved = z.copy()
            moved[j] = k
            assert objective(costs, simple, moved) >= j_z - 1e-12
        # The gain of moves is in the right unit: the best is the engine's.
        best, _ = engine_rule(simple, ENGINES["enumerate"])(costs, None)
        assert objective(costs, simple, best) == pytest.approx(min(values), rel=1e-12)


def test_groups_that_hold_each_other_in_place_move_together():
    """Three points in a must-linked triangle: none moves alone, all are better off together."""
    graph = Graph(4, np.array([[0, 1], [1, 2], [0, 2], [2, 3]]), np.array([5.0, 5.0, 5.0, -0.1]))
    costs = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    stuck = np.zeros(4, dtype=int)
    z, _ = pck_rule(graph, 2)(costs, stuck)
    np.testing.assert_array_equal(z, [1, 1, 1, 0])
    # Without other ties a group is free, and goes where it is nearest.
    z, _ = pck_rule(Graph(3, graph.edges[:3], graph.weights[:3]), 2)(costs[:3], stuck[:3])
    np.testing.assert_array_equal(z, [1, 1, 1])


def test_hard_ties_with_preferences_move_along_chains():
    """A hard pair can only trade places; the preference that makes it worth while is soft."""
    graph = Graph(3, np.array([[0, 1], [1, 2]]), np.array([-np.inf, 2.0]))
    costs = np.array([[0.0, 0.5], [0.5, 0.0], [0.0, 9.0]])
    before = np.array([0, 1, 0])
    z, _ = pck_rule(graph, 2)(costs, before)
    np.testing.assert_array_equal(z, [1, 0, 0])
    assert objective(costs, graph, z) == pytest.approx(enumerated(costs, graph))


def test_hard_ties_with_preferences_start_where_none_is_broken():
    """A path 0 - 1 - 2 - 3 whose nearest centres are 1, 0, 0, 1: no node can repair it alone."""
    edges = np.array([[0, 1], [1, 2], [2, 3], [0, 3]])
    graph = Graph(4, edges, np.array([-np.inf, -np.inf, -np.inf, 0.1]))
    costs = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    z, _ = pck_rule(graph, 2)(costs, None)
    assert breaks_none(graph, z)


def test_two_soft_neighbours_in_one_chain_move_together():
    """0 and 2 are tied softly and hang on 1: a swap changes neither's equality with the other."""
    edges = np.array([[0, 1], [1, 2], [0, 2]])
    graph = Graph(3, edges, np.array([-np.inf, -np.inf, 3.0]))
    costs = np.array([[0.4, 0.0], [0.0, 0.6], [0.4, 0.0]])
    z, _ = pck_rule(graph, 2)(costs, np.array([0, 1, 0]))
    np.testing.assert_array_equal(z, [1, 0, 1])


def test_w_grows_from_plain_k_means_to_hard_relations():
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


def test_preferences_are_weights_of_their_own():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    pairs = rng.permutation(40).reshape(-1, 2)
    must, cannot = pairs[:10], pairs[10:]
    rows = np.concatenate([np.c_[must, np.full(10, 0.7)], np.c_[cannot, np.full(10, -0.7)]])
    start = X[:3]
    given_as_pairs = PCKMeans(3, w=0.7, init=start).fit(X, must_link=must, cannot_link=cannot)
    given_as_rows = PCKMeans(3, w=99.0, init=start).fit(X, preferences=rows)
    np.testing.assert_array_equal(given_as_pairs.labels_, given_as_rows.labels_)
    assert given_as_pairs.objective_ == given_as_rows.objective_
    # Two reports on one pair add; opposite ones cancel.
    both = PCKMeans(3, w=0.7, init=start).fit(X, must_link=must, cannot_link=must)
    np.testing.assert_array_equal(both.labels_, COPKMeans(3, init=start).fit(X).labels_)
    firm = PCKMeans(3, init=start).fit(X, preferences=[[0, 1, np.inf], [0, 2, -np.inf]])
    assert firm.labels_[0] == firm.labels_[1] != firm.labels_[2]
