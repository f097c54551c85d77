"""Test graphs: simplification, errors, connected components and spanning forests."""

import pickle

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from cgmm.network import (
    Graph,
    NetworkError,
    TooCostlyError,
    connected_components,
    simplify,
    spanning_forest,
)

test_simplify_refuses_invalid_edges_by_their_index = refused(
    lambda edges, weights: simplify(Graph(3, np.array(edges), np.array(weights))),
    ([[0, 1], [2, 2]], [1.0, 1.0], "edge 1, between nodes 2 and 2.*connects a node to itself"),
    ([[0, 3]], [1.0], r"edge 0, between nodes 0 and 3.*outside 0 \.\. 2"),
    ([[-1, 0]], [1.0], "names a node outside"),
    ([[0, 1]], [np.inf], r"weight \+inf: must-links are contracted"),
    ([[0, 1], [1, 2]], [0.0, np.nan], "edge 1.*not a number"),
    ([[0, 1]], [1.0, 2.0], r"shape \(1, 2\) and weights \(2,\)"),
    ([[0.0, 1.0]], [1.0], "named by integers"),
)


def test_network_errors_keep_their_nodes_through_renaming_and_pickling():
    for kind in (NetworkError, TooCostlyError):
        error = kind("{nodes} clash", np.array([0, 2])).renamed(np.array([10, 11, 12]))
        assert str(error) == "nodes 10 and 12 clash"
        assert str(pickle.loads(pickle.dumps(error))) == str(error)
        assert type(error) is type(pickle.loads(pickle.dumps(error))) is kind
    assert str(NetworkError("{nodes}", np.arange(20))).endswith("7, ... (20 in all)")


@given(seed=st.integers(0, 10_000), n_nodes=st.integers(2, 12), n_edges=st.integers(0, 12))
def test_components_and_spanning_forest_equal_those_of_networkx(seed, n_nodes, n_edges):
    """Edges may be given twice and in both orders, with finite, zero and -inf log-weights."""
    rng = np.random.default_rng(seed)
    edges = rng.integers(n_nodes, size=(n_edges, 2))
    edges = edges[edges[:, 0] != edges[:, 1]]
    weights = rng.choice([-np.inf, 0.0, 1.5, -0.5, 2.0], size=len(edges))
    graph = simplify(Graph(n_nodes, edges, weights))
    net = nx.empty_graph(graph.n_nodes)
    strengths = np.minimum(np.abs(graph.weights), 1e6)
    edges = zip(*graph.edges.T.tolist(), strengths, strict=True)
    net.add_weighted_edges_from(edges, weight="strength")
    labels = connected_components(graph)
    for members in nx.connected_components(net):
        assert len(set(labels[list(members)])) == 1
    assert labels.max() + 1 == nx.number_connected_components(net)
    forest = spanning_forest(graph)
    np.testing.assert_array_equal(connected_components(forest), labels)
    assert len(forest.edges) == graph.n_nodes - labels.max() - 1
    heaviest = nx.maximum_spanning_tree(net, weight="strength")
    strength = np.minimum(np.abs(forest.weights), 1e6).sum()
    assert strength == pytest.approx(heaviest.size(weight="strength"))
    weight_of = dict(zip(map(tuple, graph.edges.tolist()), graph.weights, strict=True))
    assert [weight_of[a, b] for a, b in forest.edges.tolist()] == forest.weights.tolist()
