"""Every engine against the sum over all assignments; the registry is the list of tests."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgmm.inference import ENGINES, enumerate_assignments
from cgmm.inference.enumerate import MAX_ASSIGNMENTS
from cgmm.network import Graph, TooCostlyError, edgeless, require_edgeless


def brute_force(graph, unary):
    """Marginals and Z in probabilities, by loops that follow the definition word for word."""
    n_nodes, n_states = unary.shape
    z_total, nodes = 0.0, np.zeros_like(unary)
    for z in itertools.product(range(n_states), repeat=n_nodes):
        weight = np.prod([np.exp(unary[j, z[j]]) for j in range(n_nodes)])
        for (a, b), w in zip(graph.edges, graph.weights, strict=True):
            weight *= np.exp(w) if z[a] == z[b] else 1.0
        z_total += weight
        for j in range(n_nodes):
            nodes[j, z[j]] += weight
    if z_total == 0:
        return nodes, -np.inf
    return nodes / z_total, np.log(z_total)


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
@given(seed=st.integers(0, 10_000), n_nodes=st.integers(1, 5), n_states=st.integers(1, 3))
def test_engine_on_isolated_nodes_equals_brute_force(engine, seed, n_nodes, n_states):
    unary = np.random.default_rng(seed).normal(size=(n_nodes, n_states)) * 3
    before = unary.copy()
    nodes, log_z, exact, _ = engine(edgeless(n_nodes))(unary)
    expected_nodes, expected_log_z = brute_force(edgeless(n_nodes), unary)
    # Nothing is tied: also the approximations have nothing to approximate.
    np.testing.assert_allclose(nodes, expected_nodes, rtol=1e-12)
    if exact or not np.isnan(log_z):
        assert log_z == pytest.approx(expected_log_z, rel=1e-12, abs=1e-12)
    np.testing.assert_array_equal(unary, before)


@given(seed=st.integers(0, 10_000), n_nodes=st.integers(2, 5), n_states=st.integers(2, 3))
def test_enumeration_with_edges_equals_brute_force(seed, n_nodes, n_states):
    rng = np.random.default_rng(seed)
    pairs = np.array(list(itertools.combinations(range(n_nodes), 2)))
    edges = pairs[rng.random(len(pairs)) < 0.6]
    weights = np.where(rng.random(len(edges)) < 0.1, -np.inf, rng.normal(size=len(edges)))
    graph, unary = Graph(n_nodes, edges, weights), rng.normal(size=(n_nodes, n_states))
    expected_nodes, expected_log_z = brute_force(graph, unary)
    if expected_log_z == -np.inf:
        with pytest.raises(ValueError, match="no joint assignment is possible"):
            enumerate_assignments(graph)(unary)
        return
    nodes, log_z, exact, _ = enumerate_assignments(graph)(unary)
    assert exact
    np.testing.assert_allclose(nodes, expected_nodes, rtol=1e-10, atol=1e-14)
    assert log_z == pytest.approx(expected_log_z, rel=1e-10, abs=1e-12)


def test_enumeration_stays_right_where_exp_underflows():
    unary = np.array([[-2000.0, -2001.0], [-3000.0, -3000.0]])
    nodes, log_z, *_ = enumerate_assignments(edgeless(2))(unary)
    assert log_z == pytest.approx(-5000 + np.log1p(np.exp(-1)) + np.log(2), rel=1e-15)
    np.testing.assert_allclose(nodes[0], [1 / (1 + np.exp(-1)), 1 / (1 + np.e)], rtol=1e-12)


def test_enumeration_refuses_what_is_too_large():
    # Also more than a float can hold.
    for n_nodes in (int(np.log2(MAX_ASSIGNMENTS)) + 1, 5000):
        with pytest.raises(TooCostlyError, match="too many to enumerate"):
            enumerate_assignments(edgeless(n_nodes))(np.zeros((n_nodes, 2)))


def test_independent_names_the_pair_that_it_cannot_honour():
    graph = Graph(3, np.array([[0, 1], [1, 2]]), np.array([0.0, -np.inf]))
    with pytest.raises(ValueError, match="nodes 1 and 2 are tied"):
        ENGINES["independent"](graph)


def test_zero_weights_are_no_ties():
    require_edgeless(Graph(3, np.array([[0, 1]]), np.zeros(1)), "any")
