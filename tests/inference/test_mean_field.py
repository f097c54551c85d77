"""Test mean field: its lower bound never exceeds log Z and never decreases."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_networks import networks

from cgmm import primer
from cgmm.inference import enumerate_assignments, mean_field_ascent
from cgmm.inference.mean_field import mean_field
from cgmm.network import Graph, adjacency


def compute_bound(graph, unary, q):
    """Return E_Q[log weight] + H(Q) [lu2007, eq. 3.3], by the definition."""
    return primer.mean_field_bound(q, np.where(q > 0, unary, 0.0), graph.edges, graph.weights)


# ---------------------------------------------------------------------------- theorems


@given(networks())
def test_the_mean_field_bound_is_below_log_z_and_never_decreases(network):
    graph, unary = network
    log_z = enumerate_assignments(graph)(unary).log_z
    ascent = mean_field_ascent(graph, unary)
    bounds = [marginals.log_z for marginals in itertools.islice(ascent, 12)]
    assert max(bounds) <= log_z + 1e-10
    assert np.diff(bounds).min() >= -1e-10


@given(networks(), st.integers(1, 4))
def test_mean_field_returns_the_bound_of_its_own_marginals(network, n_sweeps):
    graph, unary = network
    q, bound, exact, _ = mean_field(graph, max_sweeps=n_sweeps, tol=0.0)(unary)
    assert not exact
    np.testing.assert_allclose(q.sum(axis=1), 1, rtol=1e-12)
    assert bound == pytest.approx(compute_bound(graph, unary, q), rel=1e-10, abs=1e-10)


@given(networks(), st.sampled_from([0.1, 1e-3, 1e-6]))
def test_mean_field_stops_after_the_first_sweep_that_gains_at_most_tol(network, tol):
    graph, unary = network
    ascent = mean_field_ascent(graph, unary)
    bounds = [marginals.log_z for marginals in itertools.islice(ascent, 40)]
    last = np.append(np.diff(bounds)[:-1] <= tol * graph.n_nodes, True).argmax() + 1
    assert mean_field(graph, max_sweeps=40, tol=tol)(unary).log_z == bounds[last]


def test_the_fixed_point_printed_in_lu2007_is_that_of_half_the_log_weights():
    """The display after [lu2007, eq. 3.5] has exp(Σ W Q) although (3.1) counts each pair twice.

    The correct equation has w = 2 W. Iterating the printed one gives a larger divergence.
    """
    edges = np.array([[0, 1], [1, 2], [0, 3], [1, 4], [2, 5], [3, 4], [4, 5], [0, 4]])
    graph, unary = Graph(6, edges, np.ones(8)), np.random.default_rng(1).normal(size=(6, 3))
    exact, divergence = enumerate_assignments(graph)(unary).log_z, {}
    for name, w in (("printed", 0.5), ("correct", 1.0)):
        infer = mean_field(Graph(6, edges, np.full(8, w)), max_sweeps=5000, tol=0.0)
        q = infer(unary).nodes
        divergence[name] = exact - compute_bound(graph, unary, q)
        logs = unary + adjacency(graph) @ q
        drift = np.exp(logs - np.logaddexp.reduce(logs, axis=1, keepdims=True)) - q
        assert (abs(drift).max() < 1e-6) == (name == "correct")
    assert divergence["printed"] > divergence["correct"] + 0.1
