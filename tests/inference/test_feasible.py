"""Test the search for a feasible assignment of cannot-linked nodes, and graph colouring."""

import networkx as nx
import numpy as np
import pytest
from hard_graphs import breaks_no_edge, hard_graph, planted_colouring
from hypothesis import example, given
from hypothesis import strategies as st
from small_networks import all_edges, enumerate_all, make_graph, networks, subgraph

import cgmm.inference.feasible
from cgmm.inference import colour_nodes, feasible_assignment
from cgmm.inference.feasible import tabu_walk
from cgmm.kmeans import COPKMeans, SearchBudgetError
from cgmm.network import NetworkError
from cgmm.network.graph import edge_matrix


@given(networks(max_nodes=6, p_forbidden=0.8), st.booleans())
def test_feasible_assignment_is_found_if_and_only_if_one_exists(network, with_allowed):
    graph, unary = network
    allowed = np.isfinite(unary) if with_allowed else np.ones(unary.shape, dtype=bool)
    argument = allowed if with_allowed else None
    if enumerate_all(graph, np.where(allowed, 0.0, -np.inf)) is None:
        with pytest.raises(NetworkError, match="no assignment"):
            feasible_assignment(graph, unary.shape[1], allowed=argument)
        return
    z = feasible_assignment(graph, unary.shape[1], allowed=argument)
    assert breaks_no_edge(graph, z)
    assert allowed[np.arange(graph.n_nodes), z].all()


@example(seed=10)  # This graph needs four colours although it has no clique of four nodes.
@given(seed=st.integers(0, 10**6))
def test_infeasibility_errors_name_a_minimal_set_of_nodes(seed):
    """Three states do not suffice for the named nodes, but do if any one of them is removed."""
    rng = np.random.default_rng(seed)
    graph = hard_graph(9, all_edges(9)[rng.random(36) < 0.55])
    try:
        assert breaks_no_edge(graph, feasible_assignment(graph, 3))
    except NetworkError as error:
        named = error.nodes
        assert enumerate_all(subgraph(graph, named), np.zeros((9, 3))) is None
        for j in named:
            rest = subgraph(graph, named[named != j])
            assert enumerate_all(rest, np.zeros((9, 3))) is not None


def test_a_hint_makes_the_search_for_a_feasible_assignment_quick():
    """At this density of cannot-links a search without a hint exceeds its budget.

    The hint may have errors. COP-K-means finds its hint in the clusters of the data.
    """
    graph, hidden = planted_colouring(1000, 3, 5, 0)
    hint = hidden.copy()
    hint[:50] = (hint[:50] + 1) % 3
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cgmm.inference.feasible, "STEPS_PER_BRANCH", 10**9)
        with pytest.raises(SearchBudgetError):
            feasible_assignment(graph, 3, max_search=5_000)
        z = feasible_assignment(graph, 3, max_search=5_000, hint=lambda: hint)
        assert breaks_no_edge(graph, z)
        X = 50 + np.eye(3)[hidden] + 0.2 * np.random.default_rng(0).normal(size=(1000, 3))
        model = COPKMeans(3, random_state=0, max_search=5_000).fit(X, cannot_link=graph.edges)
    assert breaks_no_edge(graph, model.labels_)


@pytest.mark.parametrize("seed", [0, 1, 3, 4])
def test_graphs_without_a_core_need_no_search(seed):
    """A core is a subgraph in which every node has at least three neighbours.

    Greedy colouring needs a fourth state here, but nodes with at most two neighbours can be
    removed one after another, and coloured in the reverse order.
    """
    graph, _ = planted_colouring(100, 3, 3, seed)
    assert colour_nodes(graph).max() >= 3
    assert breaks_no_edge(graph, feasible_assignment(graph, 3, max_search=1))


@given(st.integers(0, 10**6))
def test_tabu_walk_respects_the_allowed_states(seed):
    graph, hidden = planted_colouring(40, 4, 4, seed)
    rng = np.random.RandomState(seed)
    allowed = rng.uniform(size=(40, 4)) < 0.6
    allowed[np.arange(40), hidden] = True
    z, _ = tabu_walk(edge_matrix(graph), np.zeros(40, dtype=int), allowed, 3_000, rng)
    assert z is not None
    assert breaks_no_edge(graph, z)
    assert allowed[np.arange(40), z].all()


# ---------------------------------------------------------------------------- graph colouring


@given(st.integers(1, 60), st.floats(0, 0.5), st.integers(0, 10**6))
def test_colourings_are_proper_deterministic_and_at_most_degree_plus_one(n_nodes, density, seed):
    rng = np.random.default_rng(seed)
    edges = all_edges(n_nodes)
    edges = edges[rng.random(len(edges)) < density]
    graph = make_graph(n_nodes, edges, rng.normal(size=len(edges)))
    colours = colour_nodes(graph)
    # Edges of log-weight zero are ignored, so all nodes get the first colour.
    np.testing.assert_array_equal(colour_nodes(make_graph(n_nodes, edges, 0.0)), 0)
    assert (colours[edges[:, 0]] != colours[edges[:, 1]]).all()
    assert colours.min() == 0
    net = nx.Graph(edges.tolist())
    for part in map(net.subgraph, nx.connected_components(net)):
        assert not nx.is_bipartite(part) or colours[list(part)].max() == 1
    assert colours.max() <= np.bincount(edges.ravel(), minlength=n_nodes).max()
    np.testing.assert_array_equal(colours, colour_nodes(graph))
