"""Compare the engine for cliques of cannot-links with enumeration and closed-form results."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_networks import all_edges, assert_equals_enumeration, make_graph

from cgmm.inference.clique import clique


def make_cliques(n_cliques, n):
    """Build a graph of disjoint cliques, each of n mutually cannot-linked nodes."""
    edges = np.concatenate([all_edges(n) + n * b for b in range(n_cliques)])
    return make_graph(n * n_cliques, edges, -np.inf)


@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 4),
    n_extra_states=st.integers(0, 2),
    scale=st.sampled_from([0.0, 1.0, 30.0, 900.0]),
    bonus=st.sampled_from([0.0, 800.0]),
)
def test_clique_equals_enumeration(seed, n, n_extra_states, scale, bonus):
    """In some examples all nodes prefer state 0 by 800 nats, although only one can have it."""
    rng = np.random.default_rng(seed)
    graph, n_states = make_cliques(1, n), n + n_extra_states
    unary = rng.uniform(-scale, scale, size=(n, n_states))
    unary[rng.random(unary.shape) < 0.15] = -np.inf
    unary[np.arange(n), rng.permutation(n_states)[:n]] = rng.normal(size=n)
    unary[:, 0] += bonus
    assert assert_equals_enumeration(clique(graph), graph, unary)


@pytest.mark.parametrize("n_states", [62, 63, 70])
def test_clique_supports_more_states_than_an_integer_has_bits(n_states):
    graph, unary = make_cliques(1, 2), np.random.default_rng(0).normal(size=(2, n_states))
    assert assert_equals_enumeration(clique(graph), graph, unary)


@pytest.mark.parametrize("n", [8, 12])
def test_each_state_is_used_once_in_cliques_with_as_many_nodes_as_states(n):
    unary = np.random.default_rng(0).uniform(-900, 900, size=(3 * n, n))
    nodes, log_z, *_ = clique(make_cliques(3, n))(unary)
    assert np.isfinite(log_z)
    np.testing.assert_allclose(nodes.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(nodes.reshape(3, n, n).sum(axis=1), 1, rtol=1e-12)
