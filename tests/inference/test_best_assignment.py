"""The best assignment that is found: never a broken relation, and how near the best of all."""

import itertools

import numpy as np
import pytest
from hard_graphs import breaks_none, hard_graph, planted
from hypothesis import given
from hypothesis import strategies as st
from small_networks import networks

from cgmm.inference import ENGINES, enumerate_assignments, integer_program
from cgmm.inference import best_assignment as module
from cgmm.inference.best_assignment import find_best
from cgmm.inference.feasible import SearchBudgetError
from cgmm.network import Graph, NetworkError
from cgmm.numerics import log_normalise


def log_weight(graph, unary, z):
    together = z[graph.edges[:, 0]] == z[graph.edges[:, 1]]
    return unary[np.arange(len(z)), z].sum() + graph.weights[together].sum()


def most_probable(graph, unary):
    """The best of all, or None if nothing is possible."""
    try:
        return enumerate_assignments(graph).most_probable(unary)
    except ValueError:
        return None


def no_exact_help(monkeypatch):
    """Neither elimination nor proofs: the descent alone."""
    monkeypatch.setattr(module, "MAX_STATES", 1)
    monkeypatch.setattr(module, "solve", lambda *_, **__: integer_program.UNKNOWN)


# ---------------------------------------------------------------------------- against all


@given(networks(max_nodes=6, p_forbidden=0.5), st.booleans(), st.integers(0, 3))
def test_never_better_than_the_best_nor_broken_and_refused_only_if_impossible(network, alone, seed):
    graph, unary = network
    marginals = np.random.default_rng(seed).random(unary.shape)
    with pytest.MonkeyPatch.context() as patch:
        if alone:
            no_exact_help(patch)
        truth = most_probable(graph, unary)
        if truth is None:
            with pytest.raises(NetworkError):
                find_best(graph, unary, marginals)
            return
        z, exact = find_best(graph, unary, marginals)
    best, found = log_weight(graph, unary, truth), log_weight(graph, unary, z)
    assert -np.inf < found <= best + 1e-9 * (1 + abs(best))
    if exact:
        assert found == pytest.approx(best, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("p_hard", "at_least"), [(0.0, 0.85), (0.4, 0.85), (1.0, 0.85)])
def test_the_search_alone_mostly_finds_the_best_of_all(p_hard, at_least, monkeypatch):
    """From the marginals of an engine that knows no relation, the worst that there is.

    Measured with these seeds: see the assertion's margin; each is one of 200 problems.
    """
    no_exact_help(monkeypatch)
    rng, n_best, n_problems = np.random.default_rng(0), 0, 0
    pairs = np.array(list(itertools.combinations(range(7), 2)))
    while n_problems < 200:
        edges = pairs[rng.random(len(pairs)) < 0.4]
        weights = np.where(rng.random(len(edges)) < p_hard, -np.inf, rng.normal(size=len(edges)))
        graph, unary = Graph(7, edges, weights), rng.normal(size=(7, 3))
        truth = most_probable(graph, unary)
        if truth is None:
            continue
        z = find_best(graph, unary, log_normalise(unary)[0]).states
        best, found = log_weight(graph, unary, truth), log_weight(graph, unary, z)
        assert found <= best + 1e-9
        n_best, n_problems = n_best + (found > best - 1e-9), n_problems + 1
    assert n_best >= at_least * n_problems, n_best


@pytest.mark.parametrize("seed", range(5))
def test_on_trees_it_is_exact(seed):
    rng = np.random.default_rng(seed)
    parents = np.array([rng.integers(j) for j in range(1, 300)])
    weights = np.where(rng.random(299) < 0.5, -np.inf, 2 * rng.normal(size=299))
    graph = Graph(300, np.column_stack([parents, np.arange(1, 300)]), weights)
    unary = rng.normal(size=(300, 3))
    z, exact = find_best(graph, unary, rng.random((300, 3)))
    truth = ENGINES["junction_tree"](graph).most_probable(unary)
    assert exact
    assert log_weight(graph, unary, z) == pytest.approx(log_weight(graph, unary, truth), rel=1e-12)


def grid(side, weights):
    at = np.arange(side**2).reshape(side, side)
    across = np.stack([at[:, :-1], at[:, 1:]], axis=-1).reshape(-1, 2)
    down = np.stack([at[:-1], at[1:]], axis=-1).reshape(-1, 2)
    edges = np.concatenate([across, down])
    return Graph(side**2, edges, weights(len(edges)))


@pytest.mark.parametrize("seed", range(5))
def test_on_soft_grids_it_comes_near_the_best(seed):
    """Between what single nodes prefer and the best of all it gains 97 per cent at least."""
    rng = np.random.default_rng(seed)
    graph = grid(9, lambda n: 1.5 * rng.normal(size=n))
    unary = rng.normal(size=(81, 2))
    exact = ENGINES["junction_tree"](graph)
    best = log_weight(graph, unary, exact.most_probable(unary))
    begun = log_weight(graph, unary, unary.argmax(axis=1))
    found = log_weight(graph, unary, find_best(graph, unary, exact(unary).nodes).states)
    assert begun + 0.97 * (best - begun) <= found <= best + 1e-9


# ---------------------------------------------------------------------------- what is hard


@pytest.mark.each_value
@pytest.mark.parametrize("degree", [2, 3, 4, 5])
@pytest.mark.parametrize("signal", [0.0, 1.0, 3.0])
def test_dense_cannot_links_are_never_broken(degree, signal):
    """Up to the density where three colours are hardest to find, with data that help or do not."""
    graph, hidden = planted(400, 3, degree, degree)
    rng = np.random.default_rng(0)
    unary = signal * np.eye(3)[hidden] + rng.normal(size=(400, 3))
    z = find_best(graph, unary, log_normalise(unary)[0]).states
    assert breaks_none(graph, z)
    if signal == 3.0:
        assert log_weight(graph, unary, z) >= log_weight(graph, unary, hidden)


def test_masks_are_honoured_where_they_leave_one_way():
    graph = hard_graph(4, [[0, 1], [1, 2], [2, 3], [3, 0], [0, 2]])
    unary = np.zeros((4, 3))
    unary[0, 0] = unary[2, 1] = -np.inf
    unary[1] = [-np.inf, 0.0, -np.inf]
    z, exact = find_best(graph, unary, np.ones((4, 3)))
    assert exact
    np.testing.assert_array_equal(z, [2, 1, 0, 1])


def test_no_way_is_proved_and_an_exhausted_budget_says_so():
    triangle = hard_graph(5, [[1, 3], [3, 4], [4, 1]])
    with pytest.raises(NetworkError, match="1, 3 and 4"):
        find_best(triangle, np.zeros((5, 2)), np.ones((5, 2)))
    # A wheel of seven and a hub, tied to a tail, and no cheap way out by elimination.
    wheel = [*((j, (j + 1) % 7) for j in range(7)), *((7, j) for j in range(7)), (7, 8)]
    with pytest.MonkeyPatch.context() as patch:
        no_exact_help(patch)
        with pytest.raises(NetworkError, match="that is proved") as info:
            find_best(hard_graph(9, wheel), np.zeros((9, 3)), np.ones((9, 3)))
    np.testing.assert_array_equal(np.sort(info.value.nodes), np.arange(8))
    # The same behind two nodes that are no part of it, and a chord, which leaves a wheel of five.
    behind = hard_graph(11, np.array([*wheel, (6, 2)]) + 2)
    with pytest.raises(NetworkError, match="that is proved") as info:
        find_best(behind, np.zeros((11, 3)), np.ones((11, 3)))
    np.testing.assert_array_equal(np.sort(info.value.nodes), np.arange(4, 10))
    graph, hidden = planted(300, 3, 5, 0)
    start = np.ones((300, 3))
    with pytest.raises(SearchBudgetError, match=r"not known.*Do as follows"):
        find_best(graph, np.zeros((300, 3)), start, max_search=2, remedy="Do as follows.")
    z = find_best(graph, np.zeros((300, 3)), start, max_search=2, known=hidden).states
    assert breaks_none(graph, z)


def test_a_known_assignment_is_improved_and_one_that_breaks_something_is_not_used():
    graph, hidden = planted(200, 3, 4, 3)
    unary = 4.0 * np.eye(3)[hidden] + np.random.default_rng(0).normal(size=(200, 3))
    misled = np.eye(3)[(hidden + 1) % 3]
    z = find_best(graph, unary, misled, known=hidden).states
    assert log_weight(graph, unary, z) >= log_weight(graph, unary, hidden)
    broken = np.zeros(200, dtype=int)
    assert breaks_none(graph, find_best(graph, unary, misled, known=broken).states)


@pytest.mark.parametrize("seed", range(5))
def test_the_scale_of_the_unaries_makes_no_difference(seed):
    """By powers of two, which round nothing; what all states of a node share decides nothing."""
    graph, hidden = planted(60, 3, 4, seed)
    unary = np.round(np.eye(3)[hidden] + np.random.default_rng(seed).normal(size=(60, 3)), 3)
    marginals = log_normalise(unary)[0]
    one = find_best(graph, unary, marginals).states
    for scale in (1 / 1024, 1024):
        np.testing.assert_array_equal(find_best(graph, scale * unary, marginals).states, one)


# ---------------------------------------------------------------------------- its moves


@pytest.mark.parametrize("seed", range(8))
def test_what_the_descent_finds_is_measured_by_the_optimum_that_is_proved(seed, monkeypatch):
    """Of what cannot-links cost of the points' first choices at least, it pays at most twice."""
    graph, hidden = planted(90, 4, 5, seed)
    rng = np.random.default_rng(seed)
    unary = 1.5 * np.eye(4)[hidden] + rng.normal(size=(90, 4))
    marginals = log_normalise(unary)[0]
    best, exact = find_best(graph, unary, marginals)
    assert exact
    descended = find_best(graph, unary, marginals, prove=False)
    assert not descended.exact
    least, paid = (unary.max(axis=1).sum() - log_weight(graph, unary, z) for z in (
        best, descended.states))  # fmt: skip
    assert least - 1e-9 <= paid <= 2 * least


def test_the_same_input_has_the_same_answer():
    graph, hidden = planted(300, 3, 4, 2)
    unary = np.eye(3)[hidden] + np.random.default_rng(0).normal(size=(300, 3))
    marginals = log_normalise(unary)[0]
    one, other = (find_best(graph, unary, marginals).states for _ in range(2))
    np.testing.assert_array_equal(one, other)


def test_without_edges_every_node_has_its_own_best():
    unary = np.random.default_rng(0).normal(size=(20, 4))
    empty = Graph(20, np.empty((0, 2), dtype=int), np.empty(0))
    z, exact = find_best(empty, unary, np.ones((20, 4)))
    assert exact
    np.testing.assert_array_equal(z, unary.argmax(axis=1))


def test_shapes_are_checked():
    with pytest.raises(ValueError, match="unary has shape"):
        find_best(hard_graph(3, [[0, 1]]), np.zeros((2, 3)), np.zeros((2, 3)))
