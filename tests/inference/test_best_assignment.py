"""Test the search for the best assignment: it breaks no hard relation and is near the optimum."""

import numpy as np
import pytest
from hard_graphs import breaks_no_edge, hard_graph, planted_colouring
from hypothesis import given
from hypothesis import strategies as st
from small_networks import enumerate_all, networks

from cgmm.inference import best_assignment as module
from cgmm.inference import enumerate_assignments, feasible
from cgmm.inference.best_assignment import find_best
from cgmm.inference.feasible import SearchBudgetError
from cgmm.network import NetworkError, log_weight, simplify
from cgmm.numerics import log_normalise


def draw_planted_problem(n_nodes, n_states, degree, signal, seed):
    """Draw a graph of cannot-links, the hidden assignment that satisfies it, and noisy unaries."""
    graph, hidden = planted_colouring(n_nodes, n_states, degree, seed)
    noise = np.random.default_rng(seed).normal(size=(n_nodes, n_states))
    return graph, hidden, signal * np.eye(n_states)[hidden] + noise


# ---------------------------------------------------------------------------- against enumeration


@given(networks(p_forbidden=0.5), st.booleans(), st.integers(0, 3))
def test_find_best_is_feasible_and_not_above_the_optimum(network, only_descent, seed):
    graph, unary = network
    marginals = np.random.default_rng(seed).random(unary.shape)
    with pytest.MonkeyPatch.context() as patch:
        if only_descent:  # These settings turn off elimination and the integer programme.
            patch.setattr(module, "MAX_STATES", 1)
            patch.setattr(module, "solve_program", lambda *_, **__: feasible.UNKNOWN)
        if enumerate_all(graph, unary) is None:
            with pytest.raises(NetworkError):
                find_best(graph, unary, marginals)
            return
        z, exact = find_best(graph, unary, marginals)
    best = log_weight(graph, unary, enumerate_assignments(graph).most_probable(unary))
    log_weight_of_z = log_weight(graph, unary, z)
    assert -np.inf < log_weight_of_z <= best + 1e-9 * (1 + abs(best))
    if exact:
        assert log_weight_of_z == pytest.approx(best, rel=1e-9, abs=1e-9)


@given(networks(p_forbidden=0.3))
def test_the_integer_programme_finds_the_optimum(network):
    graph, unary = simplify(network[0]), network[1]
    (z, proved), exact = feasible.solve_program(graph, unary), enumerate_assignments(graph)
    assert proved
    if enumerate_all(graph, unary) is None:
        assert z is None
        return
    best = log_weight(graph, unary, exact.most_probable(unary))
    assert log_weight(graph, unary, z) == pytest.approx(best, rel=1e-6, abs=1e-6)


# ---------------------------------------------------------------------------- hard problems


def test_find_best_proves_infeasibility_and_reports_an_exhausted_budget():
    with pytest.raises(NetworkError, match="1, 3 and 4"):
        find_best(hard_graph(5, [[1, 3], [3, 4], [4, 1]]), np.zeros((5, 2)), np.ones((5, 2)))
    graph, hidden = planted_colouring(300, 3, 5, 0)
    start, small_budget = np.ones((300, 3)), {"max_search": 2, "prove": False}
    with pytest.raises(SearchBudgetError, match=r"not known.*Do as follows"):
        find_best(graph, np.zeros((300, 3)), start, remedy="Do as follows.", **small_budget)
    z = find_best(graph, np.zeros((300, 3)), start, known=hidden, **small_budget).states
    assert breaks_no_edge(graph, z)


def test_find_best_improves_a_known_assignment_unless_it_breaks_a_relation():
    graph, hidden, unary = draw_planted_problem(200, 3, 4, signal=4.0, seed=3)
    wrong_marginals = np.eye(3)[(hidden + 1) % 3]
    z = find_best(graph, unary, wrong_marginals, known=hidden).states
    assert log_weight(graph, unary, z) >= log_weight(graph, unary, hidden)
    infeasible = np.zeros(200, dtype=int)
    z = find_best(graph, unary, wrong_marginals, known=infeasible).states
    assert breaks_no_edge(graph, z)


@pytest.mark.parametrize("seed", range(4))
def test_descent_comes_near_the_proved_optimum(seed):
    """The constraints cost descent at most twice as much log-weight as they cost the optimum."""
    graph, _, unary = draw_planted_problem(90, 4, 5, signal=1.5, seed=seed)
    proved, descended = (
        find_best(graph, unary, log_normalise(unary)[0], prove=prove) for prove in (True, False)
    )
    assert (proved.exact, descended.exact) == (True, False)
    unconstrained = unary.max(axis=1).sum()
    smallest_cost, cost = (
        unconstrained - log_weight(graph, unary, best.states) for best in (proved, descended)
    )
    assert smallest_cost - 1e-9 <= cost <= 2 * smallest_cost


@pytest.mark.parametrize(("degree", "signal"), [(2, 0.0), (3, 3.0), (4, 1.0), (5, 0.0)])
def test_find_best_breaks_no_cannot_link_in_dense_graphs(degree, signal):
    """Three-colouring is hardest at degree 5; with signal 0 the unaries are noise only."""
    graph, hidden, unary = draw_planted_problem(250, 3, degree, signal, seed=degree)
    z = find_best(graph, unary, log_normalise(unary)[0]).states
    assert breaks_no_edge(graph, z)
    if signal == 3.0:
        assert log_weight(graph, unary, z) >= log_weight(graph, unary, hidden)
