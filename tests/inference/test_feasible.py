"""Colours: whether as many as there are suffice, and who is to blame; or as many as it takes."""

import itertools

import networkx as nx
import numpy as np
import pytest
from hard_graphs import breaks_none, hard_graph, matrix_of, planted
from hypothesis import given, settings
from hypothesis import strategies as st
from small_networks import complete, enumerated, networks, tied

import cgmm.inference.feasible
from cgmm.inference import colour_nodes, feasible_assignment, forbidden_clique
from cgmm.inference.feasible import peel, tabu_walk
from cgmm.kmeans import COPKMeans, SearchBudgetError
from cgmm.network import Graph, NetworkError


@given(networks(max_nodes=6, p_forbidden=0.8), st.booleans())
def test_an_assignment_is_found_exactly_when_there_is_one(network, with_lists):
    graph, unary = network
    allowed = np.isfinite(unary) if with_lists else np.ones(unary.shape, dtype=bool)
    lists = allowed if with_lists else None
    if enumerated(graph, np.where(allowed, 0.0, -np.inf)) is None:
        with pytest.raises(NetworkError, match="no assignment"):
            feasible_assignment(graph, unary.shape[1], allowed=lists)
        return
    z = feasible_assignment(graph, unary.shape[1], allowed=lists)
    assert breaks_none(graph, z)
    assert allowed[np.arange(graph.n_nodes), z].all()


@given(seed=st.integers(0, 10**6))
def test_who_is_blamed_cannot_be_honoured_and_without_any_of_them_it_can(seed):
    """Three states are too few for these graphs, and for every core that is blamed."""
    rng = np.random.default_rng(seed)
    graph = hard_graph(9, complete(9)[rng.random(36) < 0.55])
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


def test_a_wheel_needs_four_states():
    """No clique of four, and yet three colours do not suffice: a hub and an odd rim."""
    rim = [(j, (j + 1) % 7) for j in range(7)]
    graph = hard_graph(9, [*rim, *((7, j) for j in range(7)), (8, 0)])
    with pytest.raises(NetworkError, match=r"that is proved") as info:
        feasible_assignment(graph, 3)
    np.testing.assert_array_equal(np.sort(info.value.nodes), np.arange(8))
    assert breaks_none(graph, feasible_assignment(graph, 4))


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
    assert forbidden_clique(Graph(4, square, weights), 4) is None
    assert forbidden_clique(Graph(4, square, weights), 3).tolist() in ([0, 1, 2], [1, 2, 3])


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


# ---------------------------------------------------------------------------- without a limit


@settings(deadline=None)
@given(st.integers(1, 60), st.floats(0, 0.5), st.integers(0, 10**6))
def test_colourings_are_proper_and_not_wasteful(n_nodes, density, seed):
    rng = np.random.default_rng(seed)
    edges = complete(n_nodes)
    edges = edges[rng.random(len(edges)) < density]
    graph = tied(n_nodes, edges, rng.normal(size=len(edges)))
    colours = colour_nodes(graph)
    np.testing.assert_array_equal(colour_nodes(tied(n_nodes, edges, 0.0)), 0)
    assert (colours[edges[:, 0]] != colours[edges[:, 1]]).all()
    assert colours.min() == 0
    net = nx.Graph(edges.tolist())
    for part in map(net.subgraph, nx.connected_components(net)):
        assert not nx.is_bipartite(part) or colours[list(part)].max() == 1
    assert colours.max() <= np.bincount(edges.ravel(), minlength=n_nodes).max()
    np.testing.assert_array_equal(colours, colour_nodes(graph))
