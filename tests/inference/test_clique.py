"""Compare sums over matchings in cliques of cannot-links with enumeration and theorems."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_networks import assert_as_enumerated, complete, make_graph

from cgmm.inference.clique import clique


def cliques(n_cliques, n):
    """Return disjoint cliques of n mutually cannot-linked nodes."""
    edges = np.concatenate([complete(n) + n * b for b in range(n_cliques)])
    return make_graph(n * n_cliques, edges, -np.inf)


@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 4),
    extra=st.integers(0, 2),
    scale=st.sampled_from([0.0, 1.0, 30.0, 900.0]),
    preferred=st.sampled_from([0.0, 800.0]),
)
def test_clique_equals_enumeration(seed, n, extra, scale, preferred):
    """Include the case in which all prefer one label by 800 nats and only one can have it."""
    rng = np.random.default_rng(seed)
    graph, n_states = cliques(1, n), n + extra
    unary = rng.uniform(-scale, scale, size=(n, n_states))
    unary[rng.random(unary.shape) < 0.15] = -np.inf
    unary[np.arange(n), rng.permutation(n_states)[:n]] = rng.normal(size=n)
    unary[:, 0] += preferred
    assert assert_as_enumerated(clique(graph), graph, unary)


@pytest.mark.parametrize("n_states", [62, 63, 70])
def test_sets_of_more_labels_than_a_number_has_bits(n_states):
    graph, unary = cliques(1, 2), np.random.default_rng(0).normal(size=(2, n_states))
    assert assert_as_enumerated(clique(graph), graph, unary)


@pytest.mark.parametrize("n", [8, 12])
def test_as_many_nodes_as_labels_use_every_label_once(n):
    unary = np.random.default_rng(0).uniform(-900, 900, size=(3 * n, n))
    nodes, log_z, *_ = clique(cliques(3, n))(unary)
    assert np.isfinite(log_z)
    np.testing.assert_allclose(nodes.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(nodes.reshape(3, n, n).sum(axis=1), 1, rtol=1e-12)
