"""Colourings without a limit, and the network sorted by colour."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from small_networks import networks

from cgmm.inference import adjacency, by_colour, colour_nodes
from cgmm.network import Graph


@settings(deadline=None)
@given(st.integers(1, 60), st.floats(0, 0.5), st.integers(0, 10**6))
def test_colourings_are_proper_and_not_wasteful(n_nodes, density, seed):
    rng = np.random.default_rng(seed)
    i, j = np.triu_indices(n_nodes, 1)
    kept = rng.random(len(i)) < density
    edges = np.stack([i[kept], j[kept]], axis=1)
    graph = Graph(n_nodes, edges, rng.normal(size=len(edges)))
    colours = colour_nodes(graph)
    assert (colours[edges[:, 0]] != colours[edges[:, 1]]).all()
    assert colours.min() == 0
    assert colours.max() <= np.bincount(edges.ravel(), minlength=n_nodes).max()
    np.testing.assert_array_equal(colours, colour_nodes(graph))


def test_bipartite_components_need_two_colours_beside_others_that_do_not():
    rng = np.random.default_rng(0)
    left, right = rng.integers(30, size=200), 30 + rng.integers(30, size=200)
    triangle = np.array([[60, 61], [61, 62], [62, 60]])
    edges = np.concatenate([np.stack([left, right], axis=1), triangle])
    colours = colour_nodes(Graph(63, edges, np.ones(len(edges))))
    assert colours[:60].max() == 1
    assert sorted(colours[60:]) == [0, 1, 2]


def test_edges_of_weight_zero_do_not_colour():
    assert colour_nodes(Graph(2, np.array([[0, 1]]), np.zeros(1))).tolist() == [0, 0]


@given(networks())
def test_blocks_sort_the_network_by_colour(network):
    graph, _ = network
    order, slices, matrix = by_colour(graph)
    assert sorted(order) == list(range(graph.n_nodes))
    assert [s.start for s in slices] == [0, *(s.stop for s in slices[:-1])]
    assert slices[-1].stop == graph.n_nodes
    assert all(matrix[s][:, s].nnz == 0 for s in slices)
    expected = adjacency(graph).toarray()[np.ix_(order, order)]
    np.testing.assert_array_equal(matrix.toarray(), expected)
