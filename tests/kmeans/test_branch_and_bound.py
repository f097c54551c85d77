"""Branch and bound beside enumeration, and the bound that it relies on."""

import numpy as np
import pytest
from hard_graphs import breaks_none, hard_graph, matrix_of, planted
from kmeans_problems import enumerated, objective

from cgmm.inference.colour_search import neighbours_of
from cgmm.inference.exchange import exchange
from cgmm.kmeans.branch_and_bound import _outlook, branch_and_bound


def neighbours_in(graph):
    return [neighbours_of(matrix_of(graph), j) for j in range(graph.n_nodes)]


def test_branch_and_bound_finds_the_best_from_any_colouring():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        graph, hidden = planted(7, 3, 3, seed)
        costs, neighbours = rng.uniform(size=(7, 3)), neighbours_in(graph)
        z, complete = branch_and_bound(costs, graph.edges, neighbours, hidden, 10_000)
        assert complete
        assert breaks_none(graph, z)
        assert objective(costs, graph, z) == pytest.approx(enumerated(costs, graph), rel=1e-12)
        z, complete = branch_and_bound(costs, graph.edges, neighbours, hidden, 0)
        assert objective(costs, graph, z) <= objective(costs, graph, hidden) + 1e-12
        assert breaks_none(graph, z)


def test_branch_and_bound_moves_three_at_once_where_no_exchange_helps():
    # Each of three would rather be where the next one is, who loses more by any exchange.
    costs = np.array([[1.0, 0.0, 9.0], [9.0, 1.0, 0.0], [0.0, 9.0, 1.0]])
    graph = hard_graph(3, [[0, 1], [1, 2], [0, 2]])
    z = np.arange(3)
    np.testing.assert_array_equal(exchange(costs, graph.edges, z), z)
    found, best = branch_and_bound(costs, graph.edges, neighbours_in(graph), z, 1000)
    np.testing.assert_array_equal(found, [1, 2, 0])
    assert best


@pytest.mark.parametrize("seed", range(20))
def test_the_bound_of_a_branch_lies_below_its_best_assignment(seed):
    """All want one cluster and clash at a hub: who leaves pays once, however many it meets."""
    rng = np.random.default_rng(seed)
    losses = rng.uniform(0.5, 1.5, size=(6, 3))
    losses[:, 0] = 0
    star = [[0, j] for j in range(1, 6)]
    graph = hard_graph(6, star + [[1, 2]] * (seed % 2))
    choice, lower, node = _outlook(losses, graph.edges, np.inf)
    best = enumerated(losses, graph)
    assert 0 < lower <= best + 1e-12
    assert node in range(6)
    assert choice.tolist() == [0] * 6
    worst = np.array([1, 0, 2, 0, 0, 0]) if seed % 2 else np.array([1, 2, 2, 2, 2, 2])
    z, complete = branch_and_bound(losses, graph.edges, neighbours_in(graph), worst, 10_000)
    assert complete
    assert objective(losses, graph, z) == pytest.approx(best, rel=1e-12)
