"""Cliques of cannot-links: a sum over matchings, against enumeration and by its theorems."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_networks import assert_as_enumerated, chain, complete, tied

from cgmm.inference.clique import clique
from cgmm.inference.junction_tree import junction_tree
from cgmm.network import NetworkError


def cliques(n_cliques, n):
    """Disjoint cliques of n mutually cannot-linked nodes."""
    edges = np.concatenate([complete(n) + n * b for b in range(n_cliques)])
    return tied(n * n_cliques, edges, -np.inf)


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
    assert assert_as_enumerated(clique(graph), graph, unary)


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
    parts = np.split(rng.permutation(9), [4, 5, 8])
    edges = np.concatenate([part[complete(len(part))] for part in parts])
    graph = tied(9, edges, -np.inf)
    assert assert_as_enumerated(clique(graph), graph, rng.normal(size=(9, 5)))


def test_more_nodes_than_labels_and_evidence_that_leaves_no_matching_are_refused():
    unary = np.zeros((6, 3))
    unary[3:, 2] = -np.inf
    for infer, h, message in (
        (clique(cliques(2, 4)), np.zeros((8, 3)), "nodes 0, 1, 2 and 3 are more than K = 3"),
        (clique(cliques(2, 3)), unary, "nodes 3, 4 and 5 is possible"),
    ):
        for question in (infer, infer.most_probable):
            with pytest.raises(NetworkError, match=message):
                question(h)


def test_soft_edges_and_missing_edges_are_named():
    with pytest.raises(NetworkError, match="nodes 0 and 1 are tied with log-weight 2"):
        clique(tied(2, [(0, 1)], 2.0))
    with pytest.raises(NetworkError, match="not all of nodes 0, 1 and 2"):
        clique(tied(4, chain(3), -np.inf))
