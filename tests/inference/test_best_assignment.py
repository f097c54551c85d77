"""Test the search for the best assignment: relations hold, and it is near the optimum."""

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

# ---------------------------------------------------------------------------- against all


@given(networks(p_forbidden=0.5), st.booleans(), st.integers(0, 3))
def test_an_assignment_found_is_feasible_and_not_above_the_optimum(network, alone, seed):
    graph, unary = network
    marginals = np.random.default_rng(seed).random(unary.shape)
    with pytest.MonkeyPatch.context() as patch:
        if alone:  # the descent, without elimination and proofs
            patch.setattr(module, "MAX_STATES", 1)
            patch.setattr(module, "solve_program", lambda *_, **__: feasible.UNKNOWN)
        if enumerate_all(graph, unary) is None:
            with pytest.raises(NetworkError):
                find_best(graph, unary, marginals)
            return
        z, exact = find_best(graph, unary, marginals)
    best = log_weight(graph, unary, enumerate_assignments(graph).most_probable(unary))
    found = log_weight(graph, unary, z)
    assert -np.inf < found <= best + 1e-9 * (1 + abs(best))
    if exact:
        assert found == pytest.approx(best, rel=1e-9, abs=1e-9)


# ---------------------------------------------------------------------------- what is hard


def test_infeasibility_is_proved_and_an_exhausted_budget_reported():
    with pytest.raises(NetworkError, match="1, 3 and 4"):
        find_best(hard_graph(5, [[1, 3], [3, 4], [4, 1]]), np.zeros((5, 2)), np.ones((5, 2)))
    graph, hidden = planted_colouring(300, 3, 5, 0)
    start, in_haste = np.ones((300, 3)), {"max_search": 2, "prove": False}
    with pytest.raises(SearchBudgetError, match=r"not known.*Do as follows"):
        find_best(graph, np.zeros((300, 3)), start, remedy="Do as follows.", **in_haste)
    z = find_best(graph, np.zeros((300, 3)), start, known=hidden, **in_haste).states
    assert breaks_no_edge(graph, z)


def test_a_known_assignment_is_improved_and_one_that_breaks_something_is_not_used():
    graph, hidden = planted_colouring(200, 3, 4, 3)
    unary = 4.0 * np.eye(3)[hidden] + np.random.default_rng(0).normal(size=(200, 3))
    misled = np.eye(3)[(hidden + 1) % 3]
    z = find_best(graph, unary, misled, known=hidden).states
    assert log_weight(graph, unary, z) >= log_weight(graph, unary, hidden)
    broken = np.zeros(200, dtype=int)
    assert breaks_no_edge(graph, find_best(graph, unary, misled, known=broken).states)


@pytest.mark.parametrize("seed", range(4))
def test_descent_reaches_the_proved_optimum(seed):
    """Descent loses at most twice what the optimum loses against the points' first choices."""
    graph, hidden = planted_colouring(90, 4, 5, seed)
    unary = 1.5 * np.eye(4)[hidden] + np.random.default_rng(seed).normal(size=(90, 4))
    proved, descended = (
        find_best(graph, unary, log_normalise(unary)[0], prove=prove) for prove in (True, False)
    )
    assert (proved.exact, descended.exact) == (True, False)
    free = unary.max(axis=1).sum()
    least, paid = (free - log_weight(graph, unary, way.states) for way in (proved, descended))
    assert least - 1e-9 <= paid <= 2 * least


# ---------------------------------------------------------------------------- its moves


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


@pytest.mark.parametrize(("degree", "signal"), [(2, 0.0), (3, 3.0), (4, 1.0), (5, 0.0)])
def test_dense_cannot_links_are_never_broken(degree, signal):
    """Use densities up to the hardest for three colours, with helpful and misleading data."""
    graph, hidden = planted_colouring(250, 3, degree, degree)
    unary = signal * np.eye(3)[hidden] + np.random.default_rng(0).normal(size=(250, 3))
    z = find_best(graph, unary, log_normalise(unary)[0]).states
    assert breaks_no_edge(graph, z)
    if signal == 3.0:
        assert log_weight(graph, unary, z) >= log_weight(graph, unary, hidden)
