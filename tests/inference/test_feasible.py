"""Test colourings: feasibility, the nodes to blame, and the smallest number of colours."""

import networkx as nx
import numpy as np
import pytest
from hard_graphs import breaks_no_edge, hard_graph, planted_colouring
from hypothesis import example, given
from hypothesis import strategies as st
from small_networks import complete, enumerate_all, make_graph, networks, without_others

import cgmm.inference.feasible
from cgmm.inference import colour_nodes, feasible_assignment
from cgmm.inference.feasible import tabu_walk
from cgmm.kmeans import COPKMeans, SearchBudgetError
from cgmm.network import NetworkError
from cgmm.network.graph import edge_matrix


@given(networks(max_nodes=6, p_forbidden=0.8), st.booleans())
def test_an_assignment_is_found_exactly_when_there_is_one(network, with_lists):
    graph, unary = network
    allowed = np.isfinite(unary) if with_lists else np.ones(unary.shape, dtype=bool)
    lists = allowed if with_lists else None
    if enumerate_all(graph, np.where(allowed, 0.0, -np.inf)) is None:
        with pytest.raises(NetworkError, match="no assignment"):
            feasible_assignment(graph, unary.shape[1], allowed=lists)
        return
    z = feasible_assignment(graph, unary.shape[1], allowed=lists)
    assert breaks_no_edge(graph, z)
    assert allowed[np.arange(graph.n_nodes), z].all()


@example(seed=10)  # No four nodes are a clique.
@given(seed=st.integers(0, 10**6))
def test_the_nodes_that_an_error_names_are_a_minimal_contradiction(seed):
    """Three states do not suffice for these graphs, nor for any core that the error names."""
    rng = np.random.default_rng(seed)
    graph = hard_graph(9, complete(9)[rng.random(36) < 0.55])
    try:
        assert breaks_no_edge(graph, feasible_assignment(graph, 3))
    except NetworkError as error:
        blamed = error.nodes
        assert enumerate_all(without_others(graph, blamed), np.zeros((9, 3))) is None
        for j in blamed:
            fewer = without_others(graph, blamed[blamed != j])
            assert enumerate_all(fewer, np.zeros((9, 3))) is not None


def test_the_data_hint_at_an_assignment():
    """Search near the hardest density, where only the clusters of the data make it quick."""
    graph, hidden = planted_colouring(1000, 3, 5, 0)
    wrong = hidden.copy()
    wrong[:50] = (wrong[:50] + 1) % 3
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cgmm.inference.feasible, "STEPS_PER_BRANCH", 10**9)
        with pytest.raises(SearchBudgetError):
            feasible_assignment(graph, 3, max_search=5_000)
        z = feasible_assignment(graph, 3, max_search=5_000, hint=lambda: wrong)
        assert breaks_no_edge(graph, z)
        X = 50 + np.eye(3)[hidden] + 0.2 * np.random.default_rng(0).normal(size=(1000, 3))
        model = COPKMeans(3, random_state=0, max_search=5_000).fit(X, cannot_link=graph.edges)
    assert breaks_no_edge(graph, model.labels_)


@pytest.mark.parametrize("seed", [0, 1, 3, 4])
def test_a_component_without_a_core_needs_no_search(seed):
    """Greedy colouring needs a fourth state, but all nodes can be removed and put back."""
    graph, _ = planted_colouring(100, 3, 3, seed)
    assert colour_nodes(graph).max() >= 3
    assert breaks_no_edge(graph, feasible_assignment(graph, 3, max_search=1))


@given(st.integers(0, 10**6))
def test_a_walk_leaves_no_node_in_a_state_that_is_not_allowed(seed):
    graph, hidden = planted_colouring(40, 4, 4, seed)
    rng = np.random.RandomState(seed)
    allowed = rng.uniform(size=(40, 4)) < 0.6
    allowed[np.arange(40), hidden] = True
    z, _ = tabu_walk(edge_matrix(graph), np.zeros(40, dtype=int), allowed, 3_000, rng)
    assert z is not None
    assert breaks_no_edge(graph, z)
    assert allowed[np.arange(40), z].all()


# ---------------------------------------------------------------------------- without a limit


@given(st.integers(1, 60), st.floats(0, 0.5), st.integers(0, 10**6))
def test_colourings_are_proper_and_use_few_colours(n_nodes, density, seed):
    rng = np.random.default_rng(seed)
    edges = complete(n_nodes)
    edges = edges[rng.random(len(edges)) < density]
    graph = make_graph(n_nodes, edges, rng.normal(size=len(edges)))
    colours = colour_nodes(graph)
    np.testing.assert_array_equal(colour_nodes(make_graph(n_nodes, edges, 0.0)), 0)
    assert (colours[edges[:, 0]] != colours[edges[:, 1]]).all()
    assert colours.min() == 0
    net = nx.Graph(edges.tolist())
    for part in map(net.subgraph, nx.connected_components(net)):
        assert not nx.is_bipartite(part) or colours[list(part)].max() == 1
    assert colours.max() <= np.bincount(edges.ravel(), minlength=n_nodes).max()
    np.testing.assert_array_equal(colours, colour_nodes(graph))
