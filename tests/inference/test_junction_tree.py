"""Compare the junction tree with enumeration, closed forms, and the library pyAgrum."""

import tracemalloc

import networkx as nx
import numpy as np
import pyagrum
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_networks import all_edges, assert_equals_enumeration, chain_edges, grid_edges, make_graph

from cgmm.inference import clique_tree, contraction
from cgmm.inference.junction_tree import junction_tree
from cgmm.network import Graph, TooCostlyError, edgeless, log_weight, simplify

# All connected and unconnected graphs with one to six nodes.
ATLAS = [graph for graph in nx.graph_atlas_g() if 1 <= graph.number_of_nodes() <= 6]


# Settings that select one of the algorithm's branches: merging of cliques, contraction of nodes
# with at most two neighbours, and sums of logarithms instead of products.
NO_MERGING = clique_tree, "MERGED_CELLS", 1
CONTRACTION = contraction, "SMALLEST_ROUND", 1
IN_LOGS = contraction, "SMALLEST_SUM", np.inf
BRANCHES = {
    "default": [],
    "no merging": [NO_MERGING],
    "no merging, in logs": [NO_MERGING, IN_LOGS],
    "contracting": [NO_MERGING, CONTRACTION],
    "contracting in logs": [NO_MERGING, CONTRACTION, IN_LOGS],
}


@pytest.fixture(params=BRANCHES.values(), ids=BRANCHES)
def branch(request, monkeypatch):
    """Run a test once for each branch of the algorithm."""
    for setting in request.param:
        monkeypatch.setattr(*setting)


def draw_network(rng, net, n_states):
    """Draw finite, zero and -inf log-weights for a graph, and unaries with forbidden states."""
    edges = np.array(net.edges, dtype=np.intp).reshape(-1, 2)
    weights = rng.normal(size=len(edges)) * 2
    weights[rng.random(len(edges)) < rng.choice([0.25, 1.0], p=[0.8, 0.2])] = -np.inf
    weights[rng.random(len(edges)) < 0.1] = 0
    unary = rng.normal(size=(net.number_of_nodes(), n_states)) * 3
    forbidden = rng.random(unary.shape) < 0.05
    forbidden[forbidden.all(axis=1)] = False
    unary[forbidden] = -np.inf
    return Graph(net.number_of_nodes(), edges, weights), unary


def is_feasible_and_exact(graph, unary):
    """Check the junction tree against enumeration; return whether any assignment is possible."""
    return assert_equals_enumeration(junction_tree(graph), graph, unary)


@pytest.mark.each_value
@pytest.mark.parametrize("n_states", [2, 3])
@pytest.mark.usefixtures("branch")
def test_junction_tree_equals_enumeration_for_all_graphs_of_up_to_six_nodes(n_states):
    rng = np.random.default_rng(n_states)
    feasible = [is_feasible_and_exact(*draw_network(rng, net, n_states)) for net in ATLAS]
    assert len(ATLAS) == 208
    assert 100 < sum(feasible) < 208


@pytest.mark.usefixtures("branch")
def test_states_that_underflow_count_if_all_others_are_forbidden():
    """The only feasible state of node 2, which is summed out first, has a unary of -760."""
    edges = [(0, 2), (1, 2), (0, 1), (0, 3), (0, 4), (1, 3), (1, 4), (3, 4)]
    unary = np.zeros((5, 3))
    unary[:3] = [[-900, 0, -900], [0, -900, -900], [0, 0, -760]]
    assert is_feasible_and_exact(make_graph(5, edges, [-np.inf] * 2 + [0.1] * 6), unary)


@pytest.mark.usefixtures("branch")
def test_junction_tree_is_exact_when_log_weights_differ_by_hundreds():
    """Some probabilities underflow, but they matter because the others are forbidden."""
    rng = np.random.default_rng(0)
    n_feasible = 0
    for _ in range(75):
        n, k = rng.integers(3, 7), rng.integers(2, 5)
        net = nx.gnp_random_graph(int(n), 0.6, seed=int(rng.integers(10_000)))
        edges = np.array(net.edges, dtype=np.intp).reshape(-1, 2)
        weights = rng.choice([-np.inf, -300.0, 1.0, 300.0], size=len(edges), p=[0.7, 0.1, 0.1, 0.1])
        unary = rng.choice([0.0, -380.0, -760.0], size=(n, k)) + rng.normal(size=(n, k))
        n_feasible += is_feasible_and_exact(Graph(int(n), edges, weights), unary)
    assert n_feasible > 35


# --------------------------------------------------------------------- chains, stars and grids


@pytest.mark.parametrize("weight", [-np.inf, -3.0, 0.7])
@pytest.mark.parametrize("shape", ["chain", "star"])
def test_junction_tree_has_the_closed_form_of_trees_with_equal_edges(shape, weight):
    """Given the state of its neighbour, a node has one equal state and K - 1 different ones."""
    n, k = 30_000, 3
    edges = chain_edges(n) * (1 if shape == "chain" else [0, 1])
    nodes, log_z, *_ = junction_tree(make_graph(n, edges, weight))(np.full((n, k), -1.0))
    expected = -n + np.log(k) + (n - 1) * np.log(np.exp(weight) + k - 1)
    assert log_z == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(nodes, 1 / k, rtol=1e-9)


@pytest.mark.parametrize(("side", "n_states"), [(5, 5), (8, 2), (8, 4)])
@pytest.mark.parametrize("hard", [0.0, 0.1])
def test_junction_tree_agrees_with_pyagrum_on_grids(side, n_states, hard):
    """PyAgrum computes marginals of the same Markov random field by Shafer-Shenoy inference."""
    rng = np.random.default_rng(side + n_states)
    edges = grid_edges(side, side)
    weights = rng.normal(size=len(edges)) * 1.5
    weights[rng.random(len(edges)) < hard] = -np.inf
    graph, unary = Graph(side**2, edges, weights), rng.normal(size=(side**2, n_states))
    field, names = pyagrum.MarkovRandomField(), [f"z{j}" for j in range(side**2)]
    for name, u in zip(names, unary, strict=True):
        field.add(pyagrum.RangeVariable(name, name, 0, n_states - 1))
        field.addFactor({name}).fillWith(np.exp(u).tolist())
    for (a, b), w in zip(graph.edges.tolist(), graph.weights, strict=True):
        table = np.exp(np.where(np.eye(n_states), w, 0.0))
        field.addFactor({names[a], names[b]}).fillWith(table.ravel().tolist())
    inference = pyagrum.ShaferShenoyMRFInference(field)
    inference.makeInference()
    expected = [inference.posterior(name).toarray() for name in names]
    np.testing.assert_allclose(junction_tree(graph)(unary).nodes, expected, rtol=1e-9, atol=1e-12)


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), n_nodes=st.integers(40, 150), n_extra=st.integers(0, 4))
def test_contraction_leaves_the_marginals_unchanged(seed, n_nodes, n_extra):
    """Contract random trees with up to four extra edges, once in rounds and once node by node."""
    rng = np.random.default_rng(seed)
    tree = [(int(rng.integers(max(0, j - 20), j)), j) for j in range(1, n_nodes)]
    edges = np.concatenate([tree, rng.choice(n_nodes, size=(n_extra, 2))])
    edges = edges[edges[:, 0] != edges[:, 1]]
    weights = rng.normal(size=len(edges)) * 2
    weights[rng.random(len(edges)) < 0.2] = -np.inf
    graph, unary = Graph(n_nodes, edges, weights), rng.normal(size=(n_nodes, 5)) * 20
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contraction, "SMALLEST_ROUND", 2)
        by_rounds = junction_tree(graph)
        assert len(contraction.contract(simplify(graph)).rounds) > 3
        patch.setattr(contraction, "SMALLEST_ROUND", n_nodes + 1)
        one_by_one = junction_tree(graph)
    expected, result = one_by_one(unary), by_rounds(unary)
    np.testing.assert_allclose(result.nodes, expected.nodes, atol=1e-11)
    assert result.log_z == pytest.approx(expected.log_z, rel=1e-13)
    engines = (by_rounds, one_by_one)
    scores = [log_weight(graph, unary, engine.most_probable(unary)) for engine in engines]
    assert scores[0] == pytest.approx(scores[1], rel=1e-13)
    assert scores[0] <= result.log_z


# --------------------------------------------------------------------------- refusals


def test_tables_stay_within_max_bytes_and_larger_ones_are_refused_before_allocation():
    rng = np.random.default_rng(0)
    grid_of_12, grid_of_20 = (
        make_graph(n * n, grid_edges(n, n), rng.normal(size=2 * n * (n - 1))) for n in (12, 20)
    )
    tracemalloc.start()
    with pytest.raises(TooCostlyError, match=r"400 in all.*width of at least 19.*K = 5.*'auto'"):
        junction_tree(grid_of_20)(np.zeros((400, 5)))
    with pytest.raises(TooCostlyError, match="max_bytes is 100 KiB"):
        junction_tree(grid_of_12, max_bytes=100 * 1024)(np.zeros((144, 3)))
    assert tracemalloc.get_traced_memory()[1] < 2**24
    nodes, *_ = junction_tree(grid_of_12)(rng.normal(size=(144, 3)))
    assert tracemalloc.get_traced_memory()[1] < 2**30
    tracemalloc.stop()
    np.testing.assert_allclose(nodes.sum(axis=1), 1, rtol=1e-12)


def test_junction_tree_handles_a_single_state_and_an_empty_graph():
    graph = make_graph(200, all_edges(200), 1e-3)
    assert junction_tree(graph)(np.ones((200, 1))).log_z == pytest.approx(200 + 19.9)
    nodes, log_z, *_ = junction_tree(edgeless(0))(np.empty((0, 2)))
    assert nodes.shape == (0, 2)
    assert log_z == 0
