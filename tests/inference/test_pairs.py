"""Disjoint pairs against enumeration, at size, and where they must be refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgmm.inference import enumerate_assignments
from cgmm.inference.pairs import pairs
from cgmm.network import Graph, NetworkError


@given(
    seed=st.integers(0, 10_000),
    n_states=st.integers(2, 4),
    n_pairs=st.integers(0, 2),
    scale=st.sampled_from([1.0, 30.0, 900.0]),
)
def test_pairs_and_singles_equal_enumeration(seed, n_states, n_pairs, scale):
    rng = np.random.default_rng(seed)
    edges = rng.permutation(5)[: 2 * n_pairs].reshape(-1, 2)
    graph = Graph(5, edges, rng.choice([-np.inf, -2.0, 0.0, 3.0], size=n_pairs))
    unary = rng.uniform(-scale, scale, size=(5, n_states))
    nodes, log_z, exact, _ = pairs(graph)(unary)
    expected = enumerate_assignments(graph)(unary)
    assert exact
    np.testing.assert_allclose(nodes, expected.nodes, rtol=1e-10, atol=1e-13)
    assert log_z == pytest.approx(expected.log_z, rel=1e-13, abs=1e-12)
    best = enumerate_assignments(graph).most_probable(unary)
    np.testing.assert_array_equal(pairs(graph).most_probable(unary), best)


def test_ties_go_to_low_labels():
    graph = Graph(2, np.array([[0, 1]]), np.array([-np.inf]))
    np.testing.assert_array_equal(pairs(graph).most_probable(np.zeros((2, 3))), [0, 1])


def test_a_soft_pair_has_the_normaliser_of_the_prior():
    """[lu2007, sect. 3.1], for a soft pair 1 + (e^w - 1) Σ π_k²."""
    pi, w = np.array([0.5, 0.3, 0.2]), 1.7
    graph = Graph(2, np.array([[0, 1]]), np.array([w]))
    _, log_z, *_ = pairs(graph)(np.log(np.tile(pi, (2, 1))))
    assert np.exp(log_z) == pytest.approx(1 + np.expm1(w) * np.sum(pi**2), rel=1e-14)


def test_a_node_with_two_edges_is_named():
    graph = Graph(4, np.array([[0, 3], [3, 1]]), np.ones(2))
    with pytest.raises(NetworkError, match="node 3 has 2 of them"):
        pairs(graph)


def test_a_pair_without_an_assignment_is_named():
    graph = Graph(4, np.array([[1, 3]]), np.array([-np.inf]))
    unary = np.zeros((4, 2))
    unary[[1, 3], 0] = -np.inf
    for question in (pairs(graph), pairs(graph).most_probable):
        with pytest.raises(NetworkError, match="nodes 1 and 3 is possible with K = 2"):
            question(unary)
