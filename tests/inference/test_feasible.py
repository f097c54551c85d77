"""Whether cannot-links can be honoured: an assignment, a proof that names nodes, or neither."""

import itertools

import numpy as np
import pytest
from hard_graphs import breaks_none, hard_graph, matrix_of, planted
from hypothesis import given
from hypothesis import strategies as st
from small_networks import networks

import cgmm.inference.feasible
from cgmm.inference import colour_nodes, feasible_assignment, forbidden_clique
from cgmm.inference.feasible import peel, tabu_walk
from cgmm.kmeans import COPKMeans, SearchBudgetError
from cgmm.network import Graph, NetworkError


@given(networks(max_nodes=6, p_forbidden=0.8), st.booleans())
def test_an_assignment_is_found_exactly_when_there_is_one(network, with_lists):
    graph, unary = network
    allowed = np.isfinite(unary) if with_lists else np.ones(unary.shape, dtype=bool)
    every = map(np.array, itertools.product(range(unary.shape[1]), repeat=graph.n_nodes))
    rows = np.arange(graph.n_nodes)
    possible = any(allowed[rows, z].all() and breaks_none(graph, z) for z in every)
    lists = allowed if with_lists else None
    if not possible:
        with pytest.raises(NetworkError, match="no assignment"):
            feasible_assignment(graph, unary.shape[1], allowed=lists)
        return
    z = feasible_assignment(graph, unary.shape[1], allowed=lists)
    assert breaks_none(graph, z)
    assert allowed[rows, z].all()


@given(seed=st.integers(0, 10**6))
def test_who_is_blamed_cannot_be_honoured_and_without_any_of_them_it_can(seed):
    """Three states are too few for these graphs, and for every core that is blamed."""
    rng = np.random.default_rng(seed)
    pairs = np.array(list(itertools.combinations(range(9), 2)))
    graph = hard_graph(9, pairs[rng.random(len(pairs)) < 0.55])
    try:
        assert breaks_none(graph, feasible_assignment(graph, 3))
    except NetworkError as error:
        blamed = error.nodes
        assert not can_be_honoured(graph, blamed, 3)
        for j in blamed:
            assert can_be_honoured(graph, blamed[blamed != j], 3)


def can_be_honoured(graph, nodes, n_states):
    inside = np.isin(graph.edges, nodes).all(axis=1)
    part = Graph(len(nodes), np.searchsorted(nodes, graph.edges[inside]), graph.weights[inside])
    every = itertools.product(range(n_states), repeat=len(nodes))
    return any(breaks_none(part, np.array(z)) for z in every)


def test_soft_edges_do_not_count():
    triangle = np.array([[0, 1], [1, 2], [0, 2]])
    graph = Graph(3, triangle, np.array([-np.inf, -900.0, 5.0]))
    assert breaks_none(graph, feasible_assignment(graph, 2))


def test_a_wheel_needs_four_states():
    """No clique of four, and yet three colours do not suffice: a hub and an odd rim."""
    rim = [(j, (j + 1) % 7) for j in range(7)]
    graph = hard_graph(9, [*rim, *((7, j) for j in range(7)), (8, 0)])
    with pytest.raises(NetworkError, match=r"that is proved") as info:
        feasible_assignment(graph, 3)
    np.testing.assert_array_equal(np.sort(info.value.nodes), np.arange(8))
    assert breaks_none(graph, feasible_assignment(graph, 4))


def test_an_exhausted_budget_is_no_verdict(monkeypatch):
    monkeypatch.setattr(cgmm.inference.feasible, "STEPS_A_BRANCH", 10**9)
    graph, _ = planted(150, 3, 5, 0)
    with pytest.raises(SearchBudgetError, match=r"in 3 steps and.*not known") as info:
        feasible_assignment(graph, 3, max_search=3)
    assert not isinstance(info.value, ValueError)
    assert breaks_none(graph, feasible_assignment(graph, 3))
    X = np.random.default_rng(0).normal(size=(150, 2))
    with pytest.raises(SearchBudgetError, match="max_search"):
        COPKMeans(3, max_search=3).fit(X, cannot_link=graph.edges)


def test_the_data_hint_at_an_assignment():
    """Near the hardest density it takes a proof or a long walk, but clusters that are seen help."""
    graph, hidden = planted(1000, 3, 5, 0)
    wrong = hidden.copy()
    wrong[:50] = (wrong[:50] + 1) % 3
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cgmm.inference.feasible, "STEPS_A_BRANCH", 10**9)
        with pytest.raises(SearchBudgetError):
            feasible_assignment(graph, 3, max_search=5_000)
        z = feasible_assignment(graph, 3, max_search=5_000, hint=lambda: wrong)
        assert breaks_none(graph, z)
        X = 50 + np.eye(3)[hidden] + 0.2 * np.random.default_rng(0).normal(size=(1000, 3))
        model = COPKMeans(3, random_state=0, max_search=5_000).fit(X, cannot_link=graph.edges)
    assert breaks_none(graph, model.labels_)


def test_that_there_is_no_assignment_is_proved_where_a_clique_does_not_show_it():
    """Random graphs of a density at which three colours do not suffice; none has a K4."""
    rng, n_proved = np.random.default_rng(0), 0
    pairs = np.array(list(itertools.combinations(range(40), 2)))
    while n_proved < 3:
        graph = hard_graph(40, pairs[rng.permutation(len(pairs))[:110]])
        if forbidden_clique(graph, 4) is not None:
            continue
        with pytest.raises(NetworkError, match="that is proved"):
            feasible_assignment(graph, 3)
        n_proved += 1


@pytest.mark.parametrize("seed", [0, 1, 3, 4])
def test_a_component_without_a_core_needs_no_search(seed):
    """Greedy colouring takes a fourth state, but all nodes can be peeled off and put back."""
    graph, _ = planted(100, 3, 3, seed)
    assert colour_nodes(graph).max() >= 3
    assert (peel(graph.edges, np.full(100, 3)) >= 0).all()
    assert breaks_none(graph, feasible_assignment(graph, 3, max_search=1))


# ---------------------------------------------------------------------------- its means


def test_a_clique_needs_cannot_links_and_all_of_them():
    """A soft edge may be broken, so it proves nothing about the number of states."""
    square = np.array([[0, 1], [0, 2], [1, 2], [2, 3], [0, 3], [1, 3]])
    weights = np.full(6, -np.inf)
    assert forbidden_clique(Graph(4, square, weights), 4).tolist() == [0, 1, 2, 3]
    weights[4] = -700.0
    soft = Graph(4, square, weights)
    assert forbidden_clique(soft, 4) is None
    assert sorted(forbidden_clique(soft, 3).tolist()) in ([0, 1, 2], [1, 2, 3])
    assert forbidden_clique(Graph(4, square, np.full(6, -700.0)), 2) is None


@given(seed=st.integers(0, 10**6), n_clusters=st.integers(1, 4))
def test_the_core_is_what_peeling_leaves(seed, n_clusters):
    graph, _ = planted(30, 4, 5, seed)
    matrix = matrix_of(graph).toarray() > 0
    went = peel(graph.edges, np.full(30, n_clusters))
    core = went < 0
    assert (matrix[core][:, core].sum(axis=1) >= n_clusters).all()
    for j in np.flatnonzero(went >= 0):
        still_there = core | (went >= went[j])
        assert still_there[matrix[j]].sum() < n_clusters


def test_the_walk_repairs_and_counts_its_steps():
    graph, hidden = planted(80, 3, 4, 3)
    matrix, allowed = matrix_of(graph), np.ones((80, 3), dtype=bool)
    rng = np.random.RandomState(0)
    found, steps = tabu_walk(matrix, hidden, allowed, 10, rng)
    assert steps == 0
    found, steps = tabu_walk(matrix, np.zeros(80, dtype=int), allowed, 5000, rng)
    assert breaks_none(graph, found)
    assert 0 < steps < 5000
    found, steps = tabu_walk(matrix, np.zeros(80, dtype=int), allowed, 2, rng)
    assert (found, steps) == (None, 2)


def test_the_walk_keeps_to_the_lists():
    graph, hidden = planted(80, 3, 4, 3)
    allowed = np.ones((80, 3), dtype=bool)
    allowed[:20] = np.eye(3, dtype=bool)[hidden[:20]]
    start = np.roll(hidden, 1)
    found, _ = tabu_walk(matrix_of(graph), start, allowed, 20_000, np.random.RandomState(0))
    assert breaks_none(graph, found)
    np.testing.assert_array_equal(found[:20], hidden[:20])
