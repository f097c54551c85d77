"""Blocks, pieces, and inference piece by piece: against networkx, enumeration, junction tree."""

import importlib
import itertools
import time

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cgmm.inference import block_tree, enumerate_assignments
from cgmm.inference.block_tree import blocks_of_edges
from cgmm.inference.cut_vertices import cut_vertices
from cgmm.inference.exact import exact
from cgmm.inference.junction_tree import junction_tree
from cgmm.network import Graph, NetworkError, log_weight, simplify


@pytest.fixture(params=[True, False], ids=["cliques apart", "as it is"])
def cliques_apart(request, monkeypatch):
    """Take small cliques for dear ones, so that enumeration can follow."""
    if request.param:
        monkeypatch.setattr(block_tree, "is_dear", lambda n, n_states: 2 < n <= n_states)
        monkeypatch.setattr(importlib.import_module("cgmm.inference.auto"), "CHEAP", 0)


def tree_of_piles(rng, n_piles, size, n_soft=0, n_rings=0):
    """Piles of mutually cannot-linked nodes, each sharing one with a pile before.

    Nodes hang on them by preferences, and so do rings of three preferences.
    """
    edges, n = list(itertools.combinations(range(size), 2)), size
    for _ in range(n_piles - 1):
        shared = int(rng.integers(n))
        edges += itertools.combinations([shared, *range(n, n + size - 1)], 2)
        n += size - 1
    n_hard, of_piles = len(edges), n
    edges += [(int(rng.integers(of_piles)), n + leaf) for leaf in range(n_soft)]
    n += n_soft
    for _ in range(n_rings):
        edges += itertools.combinations([int(rng.integers(of_piles)), n, n + 1], 2)
        n += 2
    soft = rng.normal(size=len(edges) - n_hard)
    return simplify(Graph(n, np.array(edges), np.append(np.full(n_hard, -np.inf), soft)))


@settings(deadline=None)
@given(seed=st.integers(0, 100_000), n_nodes=st.integers(2, 14), n_edges=st.integers(1, 22))
def test_blocks_are_those_of_networkx(seed, n_nodes, n_edges):
    edges = np.random.default_rng(seed).integers(n_nodes, size=(n_edges, 2))
    edges = edges[edges[:, 0] != edges[:, 1]]
    graph = simplify(Graph(n_nodes, edges, np.ones(len(edges))))
    block = blocks_of_edges(graph)
    found = {frozenset(map(tuple, graph.edges[block == b].tolist())) for b in set(block.tolist())}
    blocks = nx.biconnected_component_edges(nx.Graph(graph.edges.tolist()))
    assert found == {frozenset(tuple(sorted(edge)) for edge in block) for block in blocks}


def test_a_long_chain_does_not_recurse():
    n = np.arange(50_000)
    block = blocks_of_edges(Graph(50_000, np.column_stack([n[:-1], n[1:]]), np.ones(49_999)))
    assert len(np.unique(block)) == 49_999


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 100_000),
    n_nodes=st.integers(1, 8),
    n_edges=st.integers(0, 14),
    n_states=st.integers(1, 4),
    scale=st.sampled_from([0.0, 1.0, 30.0, 900.0]),
    hard=st.sampled_from([0.3, 0.8, 1.0]),
)
@pytest.mark.usefixtures("cliques_apart")
def test_piece_by_piece_equals_enumeration(seed, n_nodes, n_edges, n_states, scale, hard):
    rng = np.random.default_rng(seed)
    n_states = min(n_states, 3) if n_nodes > 7 else n_states
    edges = rng.integers(n_nodes, size=(n_edges, 2))
    edges = edges[edges[:, 0] != edges[:, 1]]
    weights = np.where(rng.random(len(edges)) < hard, -np.inf, 2 * rng.normal(size=len(edges)))
    unary = rng.uniform(-scale, scale, size=(n_nodes, n_states))
    unary[rng.random(unary.shape) < 0.1] = -np.inf
    unary[np.arange(n_nodes), rng.integers(n_states, size=n_nodes)] = 0.0
    assert_as_enumerated(simplify(Graph(n_nodes, edges, weights)), unary)


def assert_as_enumerated(graph, unary):
    oracle = enumerate_assignments(graph)
    try:
        expected = oracle(unary)
    except ValueError:
        for question in (cut_vertices(graph), cut_vertices(graph).most_probable):
            with pytest.raises(NetworkError, match="no joint assignment of"):
                question(unary)
        return
    infer = cut_vertices(graph)
    found, z = infer(unary), infer.most_probable(unary)
    assert found.exact
    np.testing.assert_allclose(found.nodes, expected.nodes, rtol=0, atol=1e-11)
    assert found.log_z == pytest.approx(expected.log_z, rel=1e-13, abs=1e-11)
    top = log_weight(graph, unary, oracle.most_probable(unary))
    assert log_weight(graph, unary, z) == pytest.approx(top, rel=1e-13, abs=1e-11)


@pytest.mark.usefixtures("cliques_apart")
@pytest.mark.parametrize("seed", range(6))
def test_trees_of_piles_equal_the_junction_tree(seed):
    """K = 4 and 5, many levels, preferences hanging on the piles, at scales that underflow."""
    rng = np.random.default_rng(seed)
    graph = tree_of_piles(rng, 5, 4 + seed % 2, n_soft=4, n_rings=4)
    unary = rng.uniform(-900, 900, size=(graph.n_nodes, 5))
    unary[rng.random(unary.shape) < 0.1] = -np.inf
    expected, found = junction_tree(graph)(unary), cut_vertices(graph)(unary)
    np.testing.assert_allclose(found.nodes, expected.nodes, rtol=0, atol=1e-11)
    assert found.log_z == pytest.approx(expected.log_z, rel=1e-13)
    ways = [cut_vertices(graph).most_probable(unary), junction_tree(graph).most_probable(unary)]
    assert log_weight(graph, unary, ways[0]) == pytest.approx(log_weight(graph, unary, ways[1]))


def test_teachers_whose_piles_overlap_are_within_reach_at_ten_classes():
    """Ten labels: 9! matchings of a pile when one of its ten is given, in each pile once more."""
    rng = np.random.default_rng(0)
    graph = tree_of_piles(rng, 40, 10, n_soft=30)
    infer = exact(graph)
    unary = np.zeros((graph.n_nodes, 10))
    assert [answer.engine for answer in infer.answered(unary)] == ["cut_vertices"]
    soft = graph.weights[graph.weights > -np.inf]
    expected = np.log(10) + 40 * np.log(np.arange(1, 10)).sum()
    expected += np.log(9 + np.exp(soft)).sum()
    assert infer(unary).log_z == pytest.approx(expected, rel=1e-12)
    unary = rng.uniform(-900, 900, size=unary.shape)
    began = time.process_time()
    nodes = infer(unary).nodes
    assert time.process_time() - began < 5
    z = infer.most_probable(unary)
    assert log_weight(graph, unary, z) > -np.inf
    # At this scale the best assignment is all of the probability, nearly everywhere.
    assert (nodes.argmax(axis=1) == z).mean() > 0.99


def test_a_component_without_assignment_is_named():
    """Two piles of eight share one node; the eighth label is forbidden to all of the first."""
    graph = tree_of_piles(np.random.default_rng(0), 2, 8)
    unary = np.zeros((15, 8))
    unary[:8, 3] = -np.inf
    for question in (cut_vertices(graph), cut_vertices(graph).most_probable):
        with pytest.raises(NetworkError, match="no joint assignment of") as caught:
            question(unary)
        assert len(caught.value.nodes) == 15
