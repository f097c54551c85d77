"""What rules a colouring out, and the searches for one: cliques, peeling, backtracking, walks."""

import itertools

import numpy as np
from hard_graphs import breaks_none, matrix_of, planted
from hypothesis import given
from hypothesis import strategies as st
from small_networks import networks

import cgmm.inference.colour_search
from cgmm.inference import adjacency, forbidden_clique, list_colouring
from cgmm.inference.colour_search import (
    Colouring,
    ColourSearch,
    colour_in_order,
    neighbours_of,
    peel,
    tabu_walk,
)
from cgmm.network import Graph

NOT_FOUND = Colouring(None, complete=False)


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
    matrix = adjacency(graph._replace(weights=np.ones(len(graph.edges))))
    went = peel(graph.edges, np.full(30, n_clusters))
    core = went < 0
    assert (np.diff(matrix[core][:, core].indptr) >= n_clusters).all()
    for j in np.flatnonzero(went >= 0):
        still_there = core | (went >= went[j])
        assert still_there[neighbours_of(matrix, j)].sum() < n_clusters


@given(networks(max_nodes=5))
def test_list_colouring_finds_one_exactly_when_there_is_one(network):
    graph, unary = network
    allowed = np.isfinite(unary)
    n_nodes, n_states = unary.shape
    a, b = graph.edges.T
    proper = [
        z
        for z in map(np.array, itertools.product(range(n_states), repeat=n_nodes))
        if allowed[np.arange(n_nodes), z].all() and (z[a] != z[b]).all()
    ]
    found = list_colouring(adjacency(graph), allowed)
    assert found.complete
    assert (found.colours is None) == (not proper)
    if proper:
        assert any((found.colours == z).all() for z in proper)


def test_list_colouring_counts_the_nodes_that_it_colours():
    free = np.ones((10, 10), dtype=bool)
    rest = adjacency(Graph(10, np.array([[0, 1]]), np.ones(1)))
    # Nothing has to be taken back, so that there are as many steps as nodes.
    assert list_colouring(rest, free, max_steps=9) == (None, False)
    assert list_colouring(rest, free, max_steps=10).complete
    # Both ends of an edge have one colour, the same: one step, and nothing is left.
    stuck = np.array([[True, False], [True, False]])
    edge = adjacency(Graph(2, np.array([[0, 1]]), np.ones(1)))
    assert list_colouring(edge, stuck, max_steps=2) == (None, True)
    assert list_colouring(edge, stuck, max_steps=1) == (None, False)


def test_list_colouring_says_that_it_gave_up():
    i, j = np.triu_indices(10, 1)
    clique = adjacency(Graph(10, np.stack([i, j], axis=1), np.ones(len(i))))
    assert list_colouring(clique, np.ones((10, 10), dtype=bool)).colours is not None
    too_few = np.ones((10, 9), dtype=bool)
    assert list_colouring(clique, too_few, max_steps=500) == (None, False)


@given(networks(max_nodes=5), st.integers(0, 10**6))
def test_the_order_of_the_nodes_decides_nothing_but_the_time(network, seed):
    graph, unary = network
    order = np.random.default_rng(seed).permutation(graph.n_nodes)
    allowed = np.isfinite(unary)
    found = colour_in_order(adjacency(graph), allowed, order, 10_000)
    assert (found.colours is None) == (list_colouring(adjacency(graph), allowed).colours is None)
    if found.colours is not None:
        assert allowed[np.arange(graph.n_nodes), found.colours].all()
        assert (found.colours[graph.edges[:, 0]] != found.colours[graph.edges[:, 1]]).all()


def test_the_walk_repairs_and_counts_its_steps():
    graph, hidden = planted(80, 3, 4, 3)
    matrix, allowed = matrix_of(graph), np.ones((80, 3), dtype=bool)
    rng = np.random.RandomState(0)
    found, steps = tabu_walk(matrix, hidden, allowed, 10, rng)
    assert (found.complete, steps) == (True, 0)
    found, steps = tabu_walk(matrix, np.zeros(80, dtype=int), allowed, 5000, rng)
    assert found.complete
    assert breaks_none(graph, found.colours)
    assert 0 < steps < 5000
    found, steps = tabu_walk(matrix, np.zeros(80, dtype=int), allowed, 2, rng)
    assert (found.colours, found.complete, steps) == (None, False, 2)


def test_the_walk_keeps_to_the_lists():
    graph, hidden = planted(80, 3, 4, 3)
    allowed = np.ones((80, 3), dtype=bool)
    allowed[:20] = np.eye(3, dtype=bool)[hidden[:20]]
    start = np.roll(hidden, 1)
    found, _ = tabu_walk(matrix_of(graph), start, allowed, 20_000, np.random.RandomState(0))
    assert breaks_none(graph, found.colours)
    np.testing.assert_array_equal(found.colours[:20], hidden[:20])


def test_walks_start_near_the_hint_and_at_random_by_turns(monkeypatch):
    graph, hidden = planted(100, 3, 5, 3)
    near, starts = np.roll(hidden, 1), []

    def walk(matrix, start, allowed, n_steps, rng):
        starts.append(start)
        return NOT_FOUND, n_steps

    searches = cgmm.inference.colour_search
    monkeypatch.setattr(searches, "tabu_walk", walk)
    monkeypatch.setattr(searches, "list_colouring", lambda *_, **__: NOT_FOUND)
    search = ColourSearch(50_000, np.random.RandomState(0))
    assert search.colour(matrix_of(graph), np.ones((100, 3), dtype=bool), near) == NOT_FOUND
    assert search.steps_left <= 0
    assert len(starts) >= 4
    assert all((starts[t] == near).all() for t in range(0, len(starts), 2))
    assert all((starts[t] != near).any() for t in range(1, len(starts), 2))
    assert (starts[1] != starts[3]).any()
