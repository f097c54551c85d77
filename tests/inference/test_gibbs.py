"""Compare Gibbs sampling with enumeration, up to sampling error, with and without cannot-links."""

from importlib import import_module

import numpy as np
import pytest
from hard_graphs import planted_colouring
from scipy import stats
from small_networks import all_edges, make_graph

from cgmm.inference import enumerate_assignments, r_hat
from cgmm.inference.feasible import SearchBudgetError
from cgmm.inference.gibbs import gibbs, gibbs_chains
from cgmm.network import NetworkError, log_weight

module = import_module("cgmm.inference.gibbs")

HARD = -np.inf
N_SEEDS = 24


def build_graph(n_nodes, *triples):
    """Build a graph from triples (a, b, w): the two nodes of an edge, and its log-weight."""
    edges, weights = [triple[:2] for triple in triples], [triple[2] for triple in triples]
    return make_graph(n_nodes, edges, weights)


PROBLEMS = {
    "soft": (build_graph(4, (0, 1, 1.5), (1, 2, -1.0), (2, 3, 0.7), (0, 3, -2.0), (0, 2, 1.0)), 3),
    "hard path, two states": (build_graph(4, (0, 1, HARD), (1, 2, HARD), (2, 3, HARD)), 2),
    "hard clique, four states": (make_graph(4, all_edges(4), HARD), 4),
    "hard and soft": (
        build_graph(
            6, (0, 1, HARD), (1, 2, 2.0), (2, 3, HARD), (3, 4, -1.0), (0, 4, 1.0), (4, 5, 1)
        ),
        2,
    ),
    "some states impossible": (build_graph(3, (0, 1, 1.0), (1, 2, 1.0)), 3),
    "hard and soft, three states": (
        build_graph(5, (0, 1, HARD), (1, 2, HARD), (0, 2, 1.5), (2, 3, -1.5), (3, 4, 2.0)),
        3,
    ),
}


def make_problem(problem):
    """Return the graph of a problem and random unaries."""
    graph, n_states = PROBLEMS[problem]
    unary = np.random.default_rng(7).normal(size=(graph.n_nodes, n_states))
    if problem == "some states impossible":
        unary[0, 0] = unary[2, 1:] = -np.inf
    return graph, unary


# ---------------------------------------------------------------------------- correct marginals


@pytest.mark.each_value
@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("cluster_moves", [None, True])
def test_gibbs_marginals_are_within_sampling_error_of_enumeration(problem, cluster_moves):
    """Compare independent runs with the exact marginals by Student's t-test.

    Each of the at most 18 marginals is rejected by chance with probability 1e-8, so all tests of
    this module together fail by chance with probability below 1e-5. A bias above 0.03 fails.
    """
    graph, unary = make_problem(problem)
    settings = {"n_sweeps": 10, "burn_in": 20, "n_chains": 400, "cluster_moves": cluster_moves}
    engines = [gibbs(graph, random_state=seed, **settings) for seed in range(N_SEEDS)]
    runs = np.array([engine(unary).nodes for engine in engines])
    error = runs.mean(axis=0) - enumerate_assignments(graph)(unary).nodes
    standard_error = runs.std(axis=0, ddof=1) / np.sqrt(N_SEEDS)
    limit = stats.t.isf(0.5e-8, N_SEEDS - 1)
    assert (np.abs(error) <= limit * standard_error + 1e-12).all(), (error, standard_error)
    assert np.abs(error).max() < 0.03


# ---------------------------------------------------------------------------- cannot-links


def test_every_chain_starts_at_a_feasible_state_even_if_greedy_assignment_fails():
    graph = build_graph(3, (0, 1, HARD), (1, 2, HARD))
    unary = np.zeros((3, 3))
    unary[0, [1, 2]] = unary[2, [0, 2]] = -np.inf  # Node 1 can then only have state 2.
    infer = gibbs(graph, n_sweeps=5, burn_in=0, n_chains=64)
    np.testing.assert_allclose(infer(unary).nodes, [[1, 0, 0], [0, 0, 1], [0, 1, 0]])


def test_errors_of_the_search_for_a_first_state_name_a_remedy_or_nodes(monkeypatch):
    """The error names a remedy if the budget is exhausted, and nodes if the graph is infeasible."""
    monkeypatch.setattr(module, "MAX_SEARCH", 3)
    graph, _ = planted_colouring(150, 3, 5, 0)
    with pytest.raises(SearchBudgetError, match=r"not known.*preferences=np.column_stack"):
        gibbs(graph)(np.zeros((150, 3)))
    # The complete graph of nine nodes is found to be infeasible within the same budget.
    with pytest.raises(NetworkError, match=r"0, 1, 2, 3, 4, 5, 6, 7, \.\.\. \(9 in all\)"):
        gibbs(make_graph(9, all_edges(9), HARD))(np.zeros((9, 8)))


def test_gibbs_chains_average_to_the_marginals_of_the_engine():
    graph, unary = make_problem("hard and soft, three states")
    settings = {"n_sweeps": 50, "burn_in": 5, "n_chains": 3, "random_state": 2}
    infer, chains = gibbs(graph, **settings), gibbs_chains(graph, unary, **settings)
    np.testing.assert_array_equal(infer(unary).nodes, chains.nodes)
    np.testing.assert_array_equal(infer.chains(unary).log_weights, chains.log_weights)
    assert chains.log_weights.shape == (3, 50)
    assert np.isfinite(chains.log_weights).all()  # No drawn state breaks a cannot-link.
    np.testing.assert_array_equal(chains.counts.sum(axis=0), graph.n_nodes)
    # The network is so small that a chain visits its best state.
    best = enumerate_assignments(graph).most_probable(unary)
    np.testing.assert_array_equal(chains.best, best)
    assert chains.log_weights.max() == pytest.approx(log_weight(graph, unary, best), rel=1e-12)
    # Counts of the drawn states and averaged probabilities estimate the same marginals.
    drawn = gibbs_chains(graph, unary, n_sweeps=2000)
    np.testing.assert_allclose(drawn.counts.mean(axis=(1, 2)), drawn.nodes.sum(axis=0), atol=0.1)


def test_cluster_moves_mix_faster_than_single_node_moves_in_a_linked_triangle():
    """If nodes move one at a time, the triangle keeps its state for about e^6 sweeps."""
    graph, unary = make_graph(3, all_edges(3), 3.3), np.zeros((3, 2))
    unary[0] = np.log([0.6, 0.4])
    settings = {"n_sweeps": 200, "n_chains": 200}
    single = gibbs_chains(graph, unary, cluster_moves=False, **settings)
    moved = gibbs_chains(graph, unary, **settings)
    assert r_hat(single.counts[0]) > 1.5
    assert r_hat(moved.counts[0]) < 1.05
    exact = enumerate_assignments(graph)(unary).nodes
    # There are 40,000 draws, about half of them independent: the standard error is 0.004.
    np.testing.assert_allclose(moved.nodes, exact, atol=0.02)


# ---------------------------------------------------------------------------- number of sweeps


def test_growth_multiplies_the_sweeps_in_each_call_up_to_max_sweeps():
    graph, unary = make_problem("soft")
    growing = gibbs(graph, n_sweeps=5, growth=2.0, max_sweeps=20)
    for n_sweeps in (5, 10, 20, 20):
        expected = gibbs(graph, n_sweeps=n_sweeps)(unary).nodes
        np.testing.assert_array_equal(growing(unary).nodes, expected)
