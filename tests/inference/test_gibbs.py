"""Compare Gibbs sampling with enumeration, up to sampling error and with forbidden pairs."""

from importlib import import_module

import numpy as np
import pytest
from hard_graphs import planted_colouring
from scipy import stats
from small_networks import complete, make_graph

from cgmm.inference import enumerate_assignments, r_hat
from cgmm.inference.feasible import SearchBudgetError
from cgmm.inference.gibbs import gibbs, gibbs_chains
from cgmm.network import NetworkError, log_weight

sweeps = import_module("cgmm.inference.gibbs")

HARD = -np.inf
N_SEEDS = 24


def graph_of(n_nodes, *edges):
    """Return the graph of edges (a, b, w)."""
    return make_graph(n_nodes, [edge[:2] for edge in edges], [edge[2] for edge in edges])


PROBLEMS = {
    "soft": (graph_of(4, (0, 1, 1.5), (1, 2, -1.0), (2, 3, 0.7), (0, 3, -2.0), (0, 2, 1.0)), 3),
    "hard path, two states": (graph_of(4, (0, 1, HARD), (1, 2, HARD), (2, 3, HARD)), 2),
    "hard clique, four states": (make_graph(4, complete(4), HARD), 4),
    "hard and soft": (
        graph_of(6, (0, 1, HARD), (1, 2, 2.0), (2, 3, HARD), (3, 4, -1.0), (0, 4, 1.0), (4, 5, 1)),
        2,
    ),
    "some states impossible": (graph_of(3, (0, 1, 1.0), (1, 2, 1.0)), 3),
    "hard and soft, three states": (
        graph_of(5, (0, 1, HARD), (1, 2, HARD), (0, 2, 1.5), (2, 3, -1.5), (3, 4, 2.0)),
        3,
    ),
}


def problem_named(problem):
    """Return the graph and unaries of a problem."""
    graph, n_states = PROBLEMS[problem]
    unary = np.random.default_rng(7).normal(size=(graph.n_nodes, n_states))
    if problem == "some states impossible":
        unary[0, 0] = unary[2, 1:] = -np.inf
    return graph, unary


# ---------------------------------------------------------------------------- right answers


@pytest.mark.each_value
@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("cluster_moves", [None, True])
def test_within_sampling_error_of_enumeration(problem, cluster_moves):
    """Compare independent runs with the exact marginals by Student's t.

    Each of the at most 18 numbers is refused wrongly with probability 10^-8, so all tests of this
    module together fail by chance with less than 10^-5; a bias of a few per cent does not pass.
    """
    graph, unary = problem_named(problem)
    settings = {"n_sweeps": 10, "burn_in": 20, "n_chains": 400, "cluster_moves": cluster_moves}
    engines = [gibbs(graph, random_state=seed, **settings) for seed in range(N_SEEDS)]
    runs = np.array([engine(unary).nodes for engine in engines])
    error = runs.mean(axis=0) - enumerate_assignments(graph)(unary).nodes
    standard_error = runs.std(axis=0, ddof=1) / np.sqrt(N_SEEDS)
    limit = stats.t.isf(0.5e-8, N_SEEDS - 1)
    assert (np.abs(error) <= limit * standard_error + 1e-12).all(), (error, standard_error)
    assert np.abs(error).max() < 0.03


# ---------------------------------------------------------------------------- forbidden pairs


def test_every_chain_starts_where_nothing_is_broken_although_a_greedy_start_fails():
    graph = graph_of(3, (0, 1, HARD), (1, 2, HARD))
    unary = np.zeros((3, 3))
    unary[0, [1, 2]] = unary[2, [0, 2]] = -np.inf  # leaves one state for the node between them
    infer = gibbs(graph, n_sweeps=5, burn_in=0, n_chains=64)
    np.testing.assert_allclose(infer(unary).nodes, [[1, 0, 0], [0, 0, 1], [0, 1, 0]])


def test_a_failed_search_for_a_start_names_a_working_remedy(monkeypatch):
    monkeypatch.setattr(sweeps, "MAX_SEARCH", 3)
    graph, _ = planted_colouring(150, 3, 5, 0)
    with pytest.raises(SearchBudgetError, match=r"not known.*preferences=np.column_stack"):
        gibbs(graph)(np.zeros((150, 3)))
    # The result of a search does not depend on its budget.
    with pytest.raises(NetworkError, match=r"0, 1, 2, 3, 4, 5, 6, 7, \.\.\. \(9 in all\)"):
        gibbs(make_graph(9, complete(9), HARD))(np.zeros((9, 8)))


def test_the_mean_of_the_chains_equals_the_marginals_of_the_engine():
    graph, unary = problem_named("hard and soft, three states")
    settings = {"n_sweeps": 50, "burn_in": 5, "n_chains": 3, "random_state": 2}
    infer, chains = gibbs(graph, **settings), gibbs_chains(graph, unary, **settings)
    np.testing.assert_array_equal(infer(unary).nodes, chains.nodes)
    np.testing.assert_array_equal(infer.chains(unary).log_weights, chains.log_weights)
    assert chains.log_weights.shape == (3, 50)
    assert np.isfinite(chains.log_weights).all()  # a forbidden pair is never drawn together
    np.testing.assert_array_equal(chains.counts.sum(axis=0), graph.n_nodes)
    # In so small a network the best state visited is the best of all.
    best = enumerate_assignments(graph).most_probable(unary)
    np.testing.assert_array_equal(chains.best, best)
    assert chains.log_weights.max() == pytest.approx(log_weight(graph, unary, best), rel=1e-12)
    # Counts of drawn states and averaged probabilities estimate the same.
    drawn = gibbs_chains(graph, unary, n_sweeps=2000)
    np.testing.assert_allclose(drawn.counts.mean(axis=(1, 2)), drawn.nodes.sum(axis=0), atol=0.1)


def test_edges_that_are_weak_alone_are_strong_together():
    """Three nodes linked by 3 nats each hold each other for e^6 sweeps if each moves alone."""
    graph, unary = make_graph(3, complete(3), 3.3), np.zeros((3, 2))
    unary[0] = np.log([0.6, 0.4])
    settings = {"n_sweeps": 200, "n_chains": 200}
    alone = gibbs_chains(graph, unary, cluster_moves=False, **settings)
    moved = gibbs_chains(graph, unary, **settings)
    assert r_hat(alone.counts[0]) > 1.5
    assert r_hat(moved.counts[0]) < 1.05
    exact = enumerate_assignments(graph)(unary).nodes
    # 40,000 draws, about every other one new: standard error 0.004
    np.testing.assert_allclose(moved.nodes, exact, atol=0.02)


# ---------------------------------------------------------------------------- randomness


def test_growth_multiplies_the_sweeps_from_call_to_call_up_to_a_limit():
    graph, unary = problem_named("soft")
    growing = gibbs(graph, n_sweeps=5, growth=2.0, max_sweeps=20)
    for n_sweeps in (5, 10, 20, 20):
        expected = gibbs(graph, n_sweeps=n_sweeps)(unary).nodes
        np.testing.assert_array_equal(growing(unary).nodes, expected)
