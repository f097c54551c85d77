"""The junction tree against everything small, closed forms, and an independent library."""

import tracemalloc

import networkx as nx
import numpy as np
import pyagrum
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_networks import assert_as_enumerated, chain, grid

from cgmm.inference import (
    clique_tree,
    contraction,
    contraction_rounds,
)
from cgmm.inference.junction_tree import junction_tree
from cgmm.network import Graph, NetworkError, TooCostlyError, edgeless, simplify

# Every graph of up to six nodes.
ATLAS = [graph for graph in nx.graph_atlas_g() if 1 <= graph.number_of_nodes() <= 6]


# The ways through the code: as it is; nothing contracted or merged; all contracted; in logs alone.
WAYS = {
    "as it is": {},
    "no merging": {(clique_tree, "MERGED_CELLS"): 1},
    "no merging, in logs": {
        (contraction_rounds, "SMALLEST_SUM"): np.inf,
        (clique_tree, "MERGED_CELLS"): 1,
    },
    "contracting": {(contraction, "SMALLEST_ROUND"): 1, (clique_tree, "MERGED_CELLS"): 1},
    "contracting in logs": {
        (contraction, "SMALLEST_ROUND"): 1,
        (contraction_rounds, "SMALLEST_SUM"): np.inf,
        (clique_tree, "MERGED_CELLS"): 1,
    },
}


@pytest.fixture(params=WAYS.values(), ids=WAYS)
def way(request, monkeypatch):
    for (where, name), value in request.param.items():
        monkeypatch.setattr(where, name, value)


def draw(rng, net, n_states):
    """Random finite, zero and -inf weights; the evidence forbids a state here and there."""
    edges = np.array(net.edges, dtype=np.intp).reshape(-1, 2)
    weights = rng.normal(size=len(edges)) * 2
    weights[rng.random(len(edges)) < rng.choice([0.25, 1.0], p=[0.8, 0.2])] = -np.inf
    weights[rng.random(len(edges)) < 0.1] = 0
    unary = rng.normal(size=(net.number_of_nodes(), n_states)) * 3
    forbidden = rng.random(unary.shape) < 0.05
    forbidden[forbidden.all(axis=1)] = False
    unary[forbidden] = -np.inf
    return Graph(net.number_of_nodes(), edges, weights), unary


def is_possible_and_right(graph, unary):
    return assert_as_enumerated(junction_tree(graph), graph, unary)


@pytest.mark.parametrize("n_states", [2, 3])
@pytest.mark.usefixtures("way")
def test_every_graph_of_up_to_six_nodes(n_states):
    rng = np.random.default_rng(n_states)
    feasible = [is_possible_and_right(*draw(rng, net, n_states)) for net in ATLAS]
    assert len(ATLAS) == 208
    assert 100 < sum(feasible) < 208


@settings(deadline=None)
@given(
    seed=st.integers(0, 100_000),
    n_nodes=st.integers(1, 7),
    n_edges=st.integers(0, 14),
    n_states=st.integers(1, 4),
    scale=st.sampled_from([0.0, 1.0, 100.0, 900.0]),
    hard=st.sampled_from([0.0, 0.4, 1.0]),
)
def test_any_network_at_any_scale(seed, n_nodes, n_edges, n_states, scale, hard):
    rng = np.random.default_rng(seed)
    edges = rng.integers(n_nodes, size=(n_edges, 2))
    edges = edges[edges[:, 0] != edges[:, 1]]
    weights = rng.normal(size=len(edges)) * rng.choice([1, 30, 500], size=len(edges))
    weights[rng.random(len(edges)) < hard] = -np.inf
    graph = Graph(n_nodes, edges, weights)
    unary = rng.uniform(-scale, scale, size=(n_nodes, n_states))
    before = unary.copy()
    is_possible_and_right(graph, unary)
    np.testing.assert_array_equal(unary, before)


@pytest.mark.usefixtures("way")
def test_two_ways_to_give_up_780_nats():
    """The middle gives up all of them (its probability underflows), or each end gives up half."""
    graph = Graph(3, chain(3), np.full(2, -np.inf))
    unary = np.array([[-900.0, 0.0, -390.0], [-780.0, 0.0, -900.0], [-900.0, 0.0, -390.0]])
    nodes, log_z, *_ = junction_tree(graph)(unary)
    assert log_z == pytest.approx(-780 + np.log(2), rel=1e-15)
    np.testing.assert_allclose(nodes[1], [0.5, 0.5, 0], atol=1e-13)


@pytest.mark.usefixtures("way")
def test_steps_of_hundreds_of_nats():
    """Probabilities beside which others underflow, which forbidden pairs then call for."""
    rng = np.random.default_rng(0)
    n_feasible = 0
    for _ in range(150):
        n, k = rng.integers(3, 7), rng.integers(2, 5)
        net = nx.gnp_random_graph(int(n), 0.6, seed=int(rng.integers(10_000)))
        edges = np.array(net.edges, dtype=np.intp).reshape(-1, 2)
        weights = rng.choice([-np.inf, -300.0, 1.0, 300.0], size=len(edges), p=[0.7, 0.1, 0.1, 0.1])
        unary = rng.choice([0.0, -380.0, -760.0], size=(n, k)) + rng.normal(size=(n, k))
        n_feasible += is_possible_and_right(Graph(int(n), edges, weights), unary)
    assert n_feasible > 75


# ------------------------------------------------------------------------------- grids


def log_z_by_frontier(n_rows, n_columns, weights, unary):
    """Sum a grid cell by cell; the state is that of the last n_columns cells."""
    k = unary.shape[1]

    def factor(weight):
        return np.exp(np.where(np.eye(k), weight, 0.0))

    w = {tuple(e): x for e, x in zip(grid(n_rows, n_columns).tolist(), weights, strict=True)}
    front, log_z = np.ones((k,) * n_columns) / k**n_columns, 0.0
    for j in range(n_rows * n_columns):
        row, column = divmod(j, n_columns)
        old = np.moveaxis(front, column, -1)
        above = factor(w[j - n_columns, j]) if row else np.ones((k, k))
        front = np.moveaxis(old @ above * np.exp(unary[j]), -1, column)
        if column:
            pair = np.moveaxis(front, (column - 1, column), (-2, -1))
            pair *= factor(w[j - 1, j])
        log_z += np.log(front.sum())
        front = front / front.sum()
    return log_z


def posteriors_of_pyagrum(graph, unary):
    """Marginals by pyAgrum's Shafer-Shenoy inference in the same Markov random field."""
    n_states = unary.shape[1]
    field = pyagrum.MarkovRandomField()
    names = [f"z{j}" for j in range(graph.n_nodes)]
    for j, name in enumerate(names):
        field.add(pyagrum.RangeVariable(name, name, 0, n_states - 1))
        field.addFactor({name}).fillWith(np.exp(unary[j]).tolist())
    for (a, b), w in zip(graph.edges.tolist(), graph.weights, strict=True):
        table = np.exp(np.where(np.eye(n_states), w, 0.0))
        field.addFactor({names[a], names[b]}).fillWith(table.ravel().tolist())
    inference = pyagrum.ShaferShenoyMRFInference(field)
    inference.makeInference()
    return np.array([inference.posterior(name).toarray() for name in names])


@pytest.mark.parametrize(("side", "n_states"), [(5, 2), (5, 3), (5, 5), (8, 2), (8, 3), (8, 4)])
@pytest.mark.parametrize("hard", [0.0, 0.1])
def test_grids_agree_with_pyagrum_and_with_a_frontier(side, n_states, hard):
    rng = np.random.default_rng(side + n_states)
    edges = grid(side, side)
    weights = rng.normal(size=len(edges)) * 1.5
    weights[rng.random(len(edges)) < hard] = -np.inf
    unary = rng.normal(size=(side**2, n_states))
    graph = Graph(side**2, edges, weights)
    nodes, log_z, *_ = junction_tree(graph)(unary)
    np.testing.assert_allclose(nodes, posteriors_of_pyagrum(graph, unary), rtol=1e-9, atol=1e-12)
    assert log_z == pytest.approx(log_z_by_frontier(side, side, weights, unary), rel=1e-12)


def test_products_and_logs_agree_on_a_grid(monkeypatch):
    """Also where unaries are spread so far that only logs can tell, with forbidden pairs."""
    rng = np.random.default_rng(0)
    edges = grid(7, 7)
    for scale, hard in ((1.0, 0.0), (1.0, 0.2), (900.0, 0.0), (900.0, 0.2)):
        weights = np.where(rng.random(len(edges)) < hard, -np.inf, rng.normal(size=len(edges)))
        unary = rng.uniform(-scale, scale, size=(49, 3))
        infer = junction_tree(Graph(49, edges, weights))
        products = infer(unary)
        with monkeypatch.context() as patch:
            patch.setattr(contraction_rounds, "SMALLEST_SUM", np.inf)
            logs = infer(unary)
        np.testing.assert_allclose(products.nodes, logs.nodes, atol=1e-12)
        assert products.log_z == pytest.approx(logs.log_z, rel=1e-13)


def test_grid_of_twelve_by_twelve_within_a_gibibyte():
    rng = np.random.default_rng(0)
    infer = junction_tree(Graph(144, grid(12, 12), rng.normal(size=264)))
    tracemalloc.start()
    nodes, log_z, *_ = infer(rng.normal(size=(144, 3)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert np.isfinite(log_z)
    np.testing.assert_allclose(nodes.sum(axis=1), 1, rtol=1e-12)
    assert peak < 2**30


# --------------------------------------------------------------------------- refusals


def test_a_component_without_a_colouring_is_named():
    """Four mutually different nodes, three colours, beside a component that is all right."""
    net = nx.disjoint_union(nx.path_graph(3), nx.complete_graph(4))
    graph = Graph(7, np.array(net.edges), np.full(net.number_of_edges(), -np.inf))
    infer = junction_tree(graph)
    for question in (infer, infer.most_probable):
        with pytest.raises(NetworkError, match="nodes 3, 4, 5 and 6 is possible with K = 3"):
            question(np.zeros((7, 3)))
    assert infer(np.zeros((7, 4))).log_z == pytest.approx(np.log(4 * 9 * 24), rel=1e-12)


def test_an_odd_cycle_in_two_colours_is_named_also_after_contraction():
    n = 101
    edges = np.concatenate([chain(n), [[n - 1, 0]]])
    with pytest.raises(NetworkError, match=r"nodes 0, 1.*\(101 in all\) is possible with K = 2"):
        junction_tree(Graph(n, edges, np.full(n, -np.inf)))(np.zeros((n, 2)))


def test_what_is_too_wide_is_refused_at_once():
    infer = junction_tree(Graph(400, grid(20, 20), np.ones(760)))
    tracemalloc.start()
    with pytest.raises(TooCostlyError, match=r"400 in all.*width of at least 19.*K = 5.*'auto'"):
        infer(np.zeros((400, 5)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**24


def test_max_bytes_is_the_users_choice():
    graph = Graph(64, grid(8, 8), np.ones(112))
    with pytest.raises(TooCostlyError, match=r"max_bytes is 100 KiB"):
        junction_tree(graph, max_bytes=100 * 1024)(np.zeros((64, 3)))
    assert np.isfinite(junction_tree(graph)(np.zeros((64, 3))).log_z)


def test_a_dense_graph_is_refused_quickly_and_is_no_matter_for_one_state():
    rng = np.random.default_rng(0)
    edges = rng.integers(1000, size=(10_000, 2))
    edges = edges[edges[:, 0] != edges[:, 1]]
    graph = simplify(Graph(1000, edges, np.ones(len(edges))))
    infer = junction_tree(graph)
    with pytest.raises(TooCostlyError, match="width of at least"):
        infer(np.zeros((1000, 2)))
    assert infer(np.ones((1000, 1))).log_z == pytest.approx(1000 + graph.weights.sum())


def test_no_nodes_and_no_edges():
    nodes, log_z, *_ = junction_tree(edgeless(0))(np.empty((0, 2)))
    assert nodes.shape == (0, 2)
    assert log_z == 0
    _, log_z, *_ = junction_tree(edgeless(3))(np.zeros((3, 2)))
    assert log_z == pytest.approx(3 * np.log(2))
