"""Graphs: simplification, checks, components, forests, and messages across edges."""

import pickle

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

from cgmm.network import (
    Graph,
    NetworkError,
    TooCostlyError,
    are_disjoint_pairs,
    connected_components,
    edge_message,
    edgeless,
    simplify,
    spanning_forest,
)


def random_graph(seed, n_nodes, n_edges):
    """Duplicates and both orders occur; weights are finite, zero and -inf."""
    rng = np.random.default_rng(seed)
    edges = rng.integers(n_nodes, size=(n_edges, 2))
    edges = edges[edges[:, 0] != edges[:, 1]]
    weights = rng.choice([-np.inf, 0.0, 1.5, -0.5, 2.0], size=len(edges))
    return Graph(n_nodes, edges, weights)


def as_networkx(graph):
    net = nx.Graph()
    net.add_nodes_from(range(graph.n_nodes))
    for (a, b), w in zip(graph.edges.tolist(), graph.weights, strict=True):
        net.add_edge(a, b, strength=min(abs(w), 1e6))
    return net


@given(seed=st.integers(0, 10_000), n_nodes=st.integers(2, 8), n_edges=st.integers(0, 20))
def test_simplify_adds_the_weights_of_each_pair(seed, n_nodes, n_edges):
    graph = random_graph(seed, n_nodes, n_edges)
    expected = {}
    for (a, b), w in zip(graph.edges.tolist(), graph.weights, strict=True):
        pair = min(a, b), max(a, b)
        expected[pair] = expected.get(pair, 0.0) + w
    simple = simplify(graph)
    pairs = [tuple(pair) for pair in simple.edges.tolist()]
    assert pairs == sorted(pair for pair, w in expected.items() if w != 0)
    assert simple.weights.tolist() == [expected[pair] for pair in pairs]
    assert simple.weights.dtype == float
    again = simplify(simple)
    assert again.edges is simple.edges
    assert again.weights is simple.weights


@pytest.mark.parametrize(
    ("edges", "weights", "message"),
    [
        ([[0, 1], [2, 2]], [1.0, 1.0], "edge 1, between nodes 2 and 2.*ties a node to itself"),
        ([[0, 3]], [1.0], r"edge 0, between nodes 0 and 3.*outside 0 \.\. 2"),
        ([[-1, 0]], [1.0], "names a node outside"),
        ([[0, 1]], [np.inf], r"weight \+inf: must-links are contracted"),
        ([[0, 1], [1, 2]], [0.0, np.nan], "edge 1.*not a number"),
        ([[0, 1]], [1.0, 2.0], r"shape \(1, 2\) and weights \(2,\)"),
        ([[0.0, 1.0]], [1.0], "named by integers"),
    ],
)
def test_simplify_names_the_edge_that_is_wrong(edges, weights, message):
    with pytest.raises(ValueError, match=message):
        simplify(Graph(3, np.array(edges), np.array(weights)))


def test_an_error_keeps_its_nodes_through_renaming_and_pickling():
    for kind in (NetworkError, TooCostlyError):
        error = kind("{nodes} clash", np.array([0, 2])).renamed(np.array([10, 11, 12]))
        assert str(error) == "nodes 10 and 12 clash"
        assert str(pickle.loads(pickle.dumps(error))) == str(error)
        assert type(error) is type(pickle.loads(pickle.dumps(error))) is kind
    assert str(NetworkError("{nodes}", np.arange(20))).endswith("7, ... (20 in all)")


@given(seed=st.integers(0, 10_000), n_nodes=st.integers(1, 12), n_edges=st.integers(0, 12))
def test_components_and_forest_equal_those_of_networkx(seed, n_nodes, n_edges):
    graph = simplify(random_graph(seed, max(n_nodes, 2), n_edges))
    net = as_networkx(graph)
    labels = connected_components(graph)
    for members in nx.connected_components(net):
        assert len(set(labels[list(members)])) == 1
    assert labels.max() + 1 == nx.number_connected_components(net)
    forest = spanning_forest(graph)
    np.testing.assert_array_equal(connected_components(forest), labels)
    assert len(forest.edges) == graph.n_nodes - labels.max() - 1
    best = nx.maximum_spanning_tree(net, weight="strength")
    strength = np.minimum(np.abs(forest.weights), 1e6).sum()
    assert strength == pytest.approx(best.size(weight="strength"))
    kept = {(*pair, w) for pair, w in zip(map(tuple, graph.edges), graph.weights, strict=True)}
    assert {(*p, w) for p, w in zip(map(tuple, forest.edges), forest.weights, strict=True)} <= kept


def test_disjoint_pairs():
    assert are_disjoint_pairs(edgeless(3))
    assert are_disjoint_pairs(Graph(4, np.array([[0, 2], [1, 3]]), np.ones(2)))
    assert not are_disjoint_pairs(Graph(4, np.array([[0, 2], [2, 3]]), np.ones(2)))


@given(
    seed=st.integers(0, 10_000),
    n_states=st.integers(1, 6),
    scale=st.sampled_from([0.0, 1.0, 900.0]),
)
def test_edge_message_equals_the_sum_and_the_largest_over_a_table(seed, n_states, scale):
    rng = np.random.default_rng(seed)
    h = rng.uniform(-1, 1, size=(20, n_states)) * scale
    h[rng.random(h.shape) < 0.3] = -np.inf
    weights = rng.choice([-np.inf, -900.0, -40.0, -1.0, 0.0, 2.0, 800.0], size=20)
    table = h[:, None, :] + np.where(np.eye(n_states), weights[:, None, None], 0.0)
    with np.errstate(divide="ignore"):
        expected = logsumexp(table, axis=2)
    np.testing.assert_allclose(edge_message(h, weights), expected, rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(edge_message(h, weights, largest=True), table.max(axis=2))
