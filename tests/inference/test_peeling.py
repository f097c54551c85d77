"""Leaves are taken off until none is left, and what trees say and hear is exact."""

import numpy as np
from hypothesis import given
from small_networks import networks

from cgmm.inference import enumerate_assignments
from cgmm.inference.feasible import peel
from cgmm.inference.peeling import peel_leaves
from cgmm.network import Graph, simplify, spanning_forest


@given(networks(max_nodes=9))
def test_the_core_is_what_peeling_leaves_and_each_node_goes_once(network):
    graph = simplify(network[0])
    peeling = peel_leaves(graph)
    # Nodes of the core, by the rule of colouring: as long as a node has two neighbours, it stays.
    core = np.flatnonzero(peel(graph.edges, np.full(graph.n_nodes, 2)) < 0)
    np.testing.assert_array_equal(peeling.nodes, core)
    gone = [node for step in peeling.rounds for node in step.summed_out]
    everyone = np.concatenate([gone, peeling.roots, peeling.nodes])
    np.testing.assert_array_equal(np.sort(everyone), np.arange(graph.n_nodes))
    inside = np.isin(graph.edges, core).all(axis=1)
    np.testing.assert_array_equal(core[peeling.core.edges], graph.edges[inside])
    np.testing.assert_array_equal(peeling.core.weights, graph.weights[inside])


@given(networks(p_forbidden=0.3))
def test_on_forests_what_comes_in_is_log_z_and_what_goes_out_is_exact(network):
    # Two states more, which all may have, so that an assignment exists.
    graph, unary = spanning_forest(network[0]), np.pad(network[1], ((0, 0), (0, 2)))
    exact, peeling, h = enumerate_assignments(graph)(unary), peel_leaves(graph), unary.copy()
    log_z = peeling.send_inward(h).sum()
    np.testing.assert_allclose(log_z, exact.log_z, rtol=1e-10, atol=1e-10)
    nodes = peeling.send_outward(h, np.empty((0, unary.shape[1])))
    np.testing.assert_allclose(nodes, exact.nodes, rtol=1e-9, atol=1e-12)


def test_the_work_on_a_path_is_linear():
    """Each round looks at its own leaves only: 20,000 nodes in 10,000 rounds."""
    n = np.arange(20_000)
    peeling = peel_leaves(Graph(len(n), np.column_stack([n[:-1], n[1:]]), np.ones(len(n) - 1)))
    assert len(peeling.rounds) == 10_000
    assert max(len(step.summed_out) for step in peeling.rounds) == 2
