"""Chains, trees and ladders by rake and compress, against closed forms and other algorithms."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_networks import chain

from cgmm.inference import contraction
from cgmm.inference.junction_tree import junction_tree
from cgmm.network import Graph, log_weight, simplify


@pytest.mark.parametrize("weight", [-np.inf, -3.0, 0.7])
def test_chain_of_a_hundred_thousand(weight):
    """Every step but the first has the K - 1 other states and the one same."""
    n, k = 100_000, 3
    unary = np.full((n, k), -1.0)
    nodes, log_z, *_ = junction_tree(Graph(n, chain(n), np.full(n - 1, weight)))(unary)
    expected = -n + np.log(k) + (n - 1) * np.log(np.exp(weight) + k - 1)
    assert log_z == pytest.approx(expected, rel=1e-13)
    np.testing.assert_allclose(nodes, 1 / k, rtol=1e-11)


def transfers(weights, n_states):
    """exp of a weight where the states of neighbours agree, one elsewhere."""
    return np.exp(weights[:, None, None] * np.eye(n_states))


def forward_backward(unary, transfer):
    """Transfer matrices along a chain, scaled at each step."""
    n, k = unary.shape
    forward, backward, log_z = np.empty((n, k)), np.ones((n, k)), 0.0
    p = np.exp(unary)
    for j in range(n):
        forward[j] = p[j] * (forward[j - 1] @ transfer[j - 1] if j else 1.0)
        log_z += np.log(forward[j].sum())
        forward[j] /= forward[j].sum()
    for j in reversed(range(n - 1)):
        backward[j] = transfer[j] @ (p[j + 1] * backward[j + 1])
        backward[j] /= backward[j].sum()
    nodes = forward * backward
    return nodes / nodes.sum(axis=1, keepdims=True), log_z


def test_random_chain_equals_the_forward_backward_algorithm():
    rng = np.random.default_rng(0)
    unary, weights = rng.normal(size=(100_000, 3)), rng.normal(size=99_999) * 2
    shuffled = rng.permutation(100_000)
    graph = Graph(100_000, shuffled[chain(100_000)], weights)
    scrambled = np.empty_like(unary)
    scrambled[shuffled] = unary
    infer = junction_tree(graph)
    nodes, log_z, *_ = infer(scrambled)
    expected, expected_log_z = forward_backward(unary, transfers(weights, 3))
    assert log_z == pytest.approx(expected_log_z, rel=1e-13)
    np.testing.assert_allclose(nodes[shuffled], expected, atol=1e-12)
    # Viterbi's score bounds: no change of one state improves the best assignment.
    z = infer.most_probable(scrambled)[shuffled]
    padded = np.concatenate([[0.0], weights, [0.0]])
    own = unary.copy()
    rows = np.arange(1, 100_000)
    np.add.at(own, (rows, z[:-1]), padded[1:-1])
    np.add.at(own, (rows - 1, z[1:]), padded[1:-1])
    assert (own.max(axis=1) <= own[np.arange(100_000), z] + 1e-9).all()


def test_a_long_ladder_equals_the_chain_of_its_rungs():
    """So long that products of messages would leave the range of numbers, were they not scaled."""
    rng = np.random.default_rng(0)
    n, k = 3000, 3
    left, right, rung = (rng.normal(size=m) * 2 for m in (n - 1, n - 1, n))
    unary = rng.normal(size=(2 * n, k)) * 2
    rails = [chain(n), chain(n) + n, np.column_stack([np.arange(n), np.arange(n) + n])]
    nodes, log_z, *_ = junction_tree(
        Graph(2 * n, np.concatenate(rails), np.concatenate([left, right, rung]))
    )(unary)
    # A state of a rung is that of its left end times K, plus that of its right end.
    of_rung = unary[:n, :, None] + unary[n:, None, :] + rung[:, None, None] * np.eye(k)
    steps = np.einsum("nab,ncd->nacbd", transfers(left, k), transfers(right, k))
    expected, expected_log_z = forward_backward(
        of_rung.reshape(n, k * k), steps.reshape(n - 1, k * k, k * k)
    )
    assert log_z == pytest.approx(expected_log_z, rel=1e-13)
    expected = expected.reshape(n, k, k)
    ends = np.concatenate([expected.sum(axis=2), expected.sum(axis=1)])
    np.testing.assert_allclose(nodes, ends, atol=1e-11)


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 10_000), n_nodes=st.integers(40, 150), n_extra=st.integers(0, 4))
def test_contraction_changes_nothing(seed, n_nodes, n_extra):
    """Random trees with a few more edges, by rounds and one by one."""
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
    ours, theirs = by_rounds(unary), one_by_one(unary)
    np.testing.assert_allclose(ours.nodes, theirs.nodes, atol=1e-11)
    assert ours.log_z == pytest.approx(theirs.log_z, rel=1e-13)
    scores = [log_weight(graph, unary, way.most_probable(unary)) for way in (by_rounds, one_by_one)]
    assert scores[0] == pytest.approx(scores[1], rel=1e-13)
    assert scores[0] <= ours.log_z


def test_a_star_with_many_leaves():
    n, k, w = 20_000, 4, 1.3
    edges = np.column_stack([np.zeros(n - 1, dtype=np.intp), np.arange(1, n)])
    nodes, log_z, *_ = junction_tree(Graph(n, edges, np.full(n - 1, w)))(np.zeros((n, k)))
    assert log_z == pytest.approx(np.log(k) + (n - 1) * np.log(np.exp(w) + k - 1), rel=1e-12)
    np.testing.assert_allclose(nodes, 1 / k, rtol=1e-9)
