"""Cliques of cannot-links: a sum over matchings, against enumeration and by its theorems."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cgmm.inference import enumerate_assignments
from cgmm.inference.clique import clique
from cgmm.inference.junction_tree import junction_tree
from cgmm.network import Graph, NetworkError


def cliques(n_cliques, n):
    """Disjoint cliques of n mutually cannot-linked nodes."""
    pairs = np.array(list(itertools.combinations(range(n), 2)), dtype=np.intp).reshape(-1, 2)
    edges = np.concatenate([pairs + n * b for b in range(n_cliques)])
    return Graph(n * n_cliques, edges, np.full(len(edges), -np.inf))


@settings(deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 4),
    extra=st.integers(0, 2),
    scale=st.sampled_from([0.0, 1.0, 30.0, 900.0]),
)
def test_clique_equals_enumeration(seed, n, extra, scale):
    rng = np.random.default_rng(seed)
    graph, n_states = cliques(1, n), n + extra
    unary = rng.uniform(-scale, scale, size=(n, n_states))
    unary[rng.random(unary.shape) < 0.15] = -np.inf
    unary[np.arange(n), rng.permutation(n_states)[:n]] = rng.normal(size=n)
    nodes, log_z, exact, _ = clique(graph)(unary)
    expected = enumerate_assignments(graph)(unary)
    assert exact
    np.testing.assert_allclose(nodes, expected.nodes, rtol=1e-10, atol=1e-13)
    assert log_z == pytest.approx(expected.log_z, rel=1e-13, abs=1e-12)
    best = clique(graph).most_probable(unary)
    rows = np.arange(n)
    top = unary[rows, enumerate_assignments(graph).most_probable(unary)].sum()
    assert len(set(best)) == n
    assert unary[rows, best].sum() == pytest.approx(top, rel=1e-14, abs=1e-12)


def test_uniform_unaries_count_matchings():
    """K! / (K - n)! of them."""
    _, log_z, *_ = clique(cliques(3, 4))(np.zeros((12, 6)))
    assert np.exp(log_z) == pytest.approx((6 * 5 * 4 * 3) ** 3, rel=1e-12)


@pytest.mark.parametrize("n", [8, 12])
def test_as_many_nodes_as_labels_use_every_label_once(n):
    unary = np.random.default_rng(0).uniform(-900, 900, size=(3 * n, n))
    nodes, log_z, *_ = clique(cliques(3, n))(unary)
    assert np.isfinite(log_z)
    np.testing.assert_allclose(nodes.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(nodes.reshape(3, n, n).sum(axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 50.0, 900.0])
def test_clique_equals_the_junction_tree(scale):
    unary = np.random.default_rng(0).uniform(-scale, scale, size=(7, 7))
    ours, theirs = (engine(cliques(1, 7))(unary) for engine in (clique, junction_tree))
    np.testing.assert_allclose(ours.nodes, theirs.nodes, rtol=1e-9, atol=1e-13)
    assert ours.log_z == pytest.approx(theirs.log_z, rel=1e-13)


def test_no_digits_are_lost_where_the_best_labels_collide():
    """All prefer label 0 by 800: every matching gives up all but one of those preferences."""
    n, unary = 5, np.random.default_rng(0).normal(size=(5, 6))
    shifted = unary.copy()
    shifted[:, 0] += 800
    nodes, log_z, *_ = clique(cliques(1, n))(shifted)
    # Label 0 is surely used once; the rest is a clique of four on five labels.
    log_terms = [
        unary[j, 0] + clique(cliques(1, n - 1))(np.delete(unary[:, 1:], j, axis=0)).log_z
        for j in range(n)
    ]
    assert log_z == pytest.approx(800 + np.logaddexp.reduce(log_terms), rel=1e-14)
    p = np.exp(log_terms - np.logaddexp.reduce(log_terms))
    np.testing.assert_allclose(nodes[:, 0], p, rtol=1e-12)


def test_cliques_of_several_sizes_in_any_order_of_nodes():
    rng = np.random.default_rng(0)
    names = rng.permutation(9)
    sizes, start, edges, expected = [4, 1, 3, 1], 0, [], 0.0
    unary, nodes = rng.normal(size=(9, 5)), np.empty((9, 5))
    for n in sizes:
        members = np.sort(names[start : start + n])
        edges += list(itertools.combinations(members, 2))
        part = enumerate_assignments(cliques(1, n))(unary[members])
        nodes[members], expected, start = part.nodes, expected + part.log_z, start + n
    graph = Graph(9, np.array(edges), np.full(len(edges), -np.inf))
    marginals = clique(graph)(unary)
    np.testing.assert_allclose(marginals.nodes, nodes, rtol=1e-11)
    assert marginals.log_z == pytest.approx(expected, rel=1e-13)


def test_many_labels_are_no_matter_for_few_nodes():
    nodes, *_ = clique(cliques(2, 2))(np.zeros((4, 100)))
    np.testing.assert_allclose(nodes, 0.01, rtol=1e-12)


@pytest.mark.parametrize(
    "ask", [lambda infer, u: infer(u), lambda infer, u: infer.most_probable(u)]
)
class TestRefusals:
    def test_more_nodes_than_labels(self, ask):
        with pytest.raises(NetworkError, match=r"nodes 0, 1, 2 and 3 are more than K = 3"):
            ask(clique(cliques(2, 4)), np.zeros((8, 3)))

    def test_evidence_that_leaves_no_matching(self, ask):
        unary = np.zeros((6, 3))
        unary[3:, 2] = -np.inf
        with pytest.raises(NetworkError, match="nodes 3, 4 and 5 is possible"):
            ask(clique(cliques(2, 3)), unary)


def test_soft_edges_and_missing_edges_are_named():
    with pytest.raises(NetworkError, match="nodes 0 and 1 are tied with log-weight 2"):
        clique(Graph(2, np.array([[0, 1]]), np.array([2.0])))
    path = Graph(4, np.array([[0, 1], [1, 2]]), np.full(2, -np.inf))
    with pytest.raises(NetworkError, match="not all of nodes 0, 1 and 2"):
        clique(path)
