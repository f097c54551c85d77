"""Exchanges along Kempe chains end where no exchange helps, with and without preferences."""

import itertools

import numpy as np
import pytest
import scipy.sparse.csgraph
from hard_graphs import breaks_none, hard_graph, matrix_of, objective, planted
from hypothesis import given
from hypothesis import strategies as st

from cgmm.inference import adjacency
from cgmm.inference.exchange import _gains, exchange, kempe_chains
from cgmm.network import Graph


@pytest.mark.parametrize("seed", range(10))
def test_exchanges_end_where_none_helps(seed):
    graph, hidden = planted(60, 4, 3, seed)
    costs = np.random.default_rng(seed).uniform(size=(60, 4))
    z = exchange(costs, graph.edges, hidden)
    assert breaks_none(graph, z)
    assert objective(costs, graph, z) < objective(costs, graph, hidden)
    np.testing.assert_array_equal(exchange(costs, graph.edges, z), z)
    assert best_exchange(costs, graph, z) <= 1e-12


def best_exchange(costs, graph, z):
    """The most that one exchange gains: two clusters, the parts of their subgraph one by one."""
    best = -np.inf
    for k, m in itertools.combinations(range(costs.shape[1]), 2):
        inside = np.flatnonzero(np.isin(z, (k, m)))
        part = matrix_of(graph)[inside][:, inside]
        _, label = scipy.sparse.csgraph.connected_components(part, directed=False)
        gains = costs[inside, z[inside]] - costs[inside, k + m - z[inside]]
        best = max(best, np.bincount(label, gains).max(initial=-np.inf))
    return best


@given(seed=st.integers(0, 10**6), n_clusters=st.integers(2, 4))
def test_a_chain_gains_what_the_objective_falls_by(seed, n_clusters):
    """Every chain, moved as a whole, beside the objective written down, preferences included."""
    rng = np.random.default_rng(seed)
    graph, z = planted(9, n_clusters, 2, seed)
    pairs = np.array(list(itertools.combinations(range(9), 2)))
    pairs = pairs[~(pairs[:, None] == graph.edges).all(axis=2).any(axis=1)]
    preferred = Graph(9, pairs, rng.normal(size=len(pairs)) * rng.integers(2, size=len(pairs)))
    both = np.r_[graph.edges, pairs], np.r_[graph.weights, preferred.weights]
    whole, costs = Graph(9, *both), rng.uniform(size=(9, n_clusters))
    chain = kempe_chains(graph.edges, z, n_clusters)
    gains = _gains(costs, z, chain, adjacency(preferred))
    for j, k in itertools.product(range(9), range(n_clusters)):
        moved, (nodes, others) = z.copy(), np.nonzero(chain == chain[j, k])
        moved[nodes] = others
        falls = objective(costs, whole, z) - objective(costs, whole, moved)
        assert gains[chain[j, k]] == pytest.approx(falls, abs=1e-12)
        assert breaks_none(graph, moved)


@pytest.mark.parametrize("seed", range(10))
def test_with_preferences_too_the_descent_ends_where_no_chain_helps(seed):
    rng = np.random.default_rng(seed)
    graph, hidden = planted(40, 4, 3, seed)
    pairs = rng.integers(40, size=(30, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    preferred = Graph(40, pairs, rng.normal(size=len(pairs)))
    soft, costs = adjacency(preferred), rng.uniform(size=(40, 4))
    z = exchange(costs, graph.edges, hidden, soft)
    assert breaks_none(graph, z)
    own, before = (objective(costs, preferred, a) for a in (z, hidden))
    assert own < before
    chain = kempe_chains(graph.edges, z, 4)
    for c in range(chain.max() + 1):
        moved, (nodes, others) = z.copy(), np.nonzero(chain == c)
        moved[nodes] = others
        assert objective(costs, preferred, moved) >= own - 1e-12


def test_two_soft_neighbours_in_one_chain_keep_their_penalty():
    """0 and 2 are tied softly and hang on 1: a swap changes neither's equality with the other."""
    links, z = np.array([[0, 1], [1, 2]]), np.array([0, 1, 0])
    costs = np.array([[0.4, 0.0], [0.0, 0.6], [0.4, 0.0]])
    soft = adjacency(Graph(3, np.array([[0, 2]]), np.array([3.0])))
    chain = kempe_chains(links, z, 2)
    gain = _gains(costs, z, chain, soft)[chain[0, 1]]
    assert gain == pytest.approx(1.4, rel=1e-12)
    # Without the second link, 2 stays where it is, and the preference is broken.
    chain = kempe_chains(links[:1], z, 2)
    leaves = _gains(costs, z, chain, soft)[chain[0, 1]]
    assert leaves == pytest.approx(1.0 - 3.0, rel=1e-12)


def test_exchanges_stop_where_every_node_is_tempted_and_none_can_move():
    # Each of three would rather be where the next one is, who loses more by any exchange.
    costs = np.array([[1.0, 0.0, 9.0], [9.0, 1.0, 0.0], [0.0, 9.0, 1.0]])
    graph = hard_graph(3, [[0, 1], [1, 2], [0, 2]])
    np.testing.assert_array_equal(exchange(costs, graph.edges, np.arange(3)), np.arange(3))
