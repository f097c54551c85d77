"""All pairs from one tree: against enumeration, against nodes held one by one, and in the tails."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from cgmm.diagnose import log_odds_together
from cgmm.inference import ENGINES, pair_sums, pair_tree
from cgmm.inference.enumerate import _all_assignments, _edge_terms
from cgmm.network import Graph, connected_components, edgeless, simplify

SEEDS = st.integers(0, 10_000)
AUTO = ENGINES["auto"]


def by_hand(graph, unary, pairs):
    """Sums over every assignment, of equal states and of different ones."""
    z = _all_assignments(*unary.shape)
    logs = unary[np.arange(len(unary)), z].sum(axis=1) + _edge_terms(graph, z)
    p = np.exp(logs - logsumexp(logs))
    equal = z[:, pairs[:, 0]] == z[:, pairs[:, 1]]
    return p @ equal, p @ ~equal


def by_holding(graph, unary, pairs):
    """The engine is asked of b with a held, a and its states one after the other."""
    infer, K = AUTO(graph), unary.shape[1]
    p, same = infer(unary).nodes, np.zeros(len(pairs))
    for a, k in itertools.product(np.unique(pairs[:, 0]), range(K)):
        held = np.where(np.arange(K) == k, unary[a], -np.inf)
        now = np.flatnonzero(pairs[:, 0] == a)
        given_k = infer(np.where((np.arange(len(unary)) == a)[:, None], held, unary)).nodes
        same[now] += p[a, k] * given_k[pairs[now, 1], k]
    return same


def random_graph(rng, n_nodes, n_edges, p_hard=0.0):
    ends = np.array([rng.choice(n_nodes, 2, replace=False) for _ in range(n_edges)], dtype=int)
    weights = rng.normal(scale=2, size=n_edges)
    weights[rng.random(n_edges) < p_hard] = -np.inf
    return simplify(Graph(n_nodes, ends.reshape(-1, 2), weights))


def all_pairs(n_nodes):
    return np.array(list(itertools.product(range(n_nodes), repeat=2)))


def found(graph, unary, pairs, **options):
    return pair_sums.pair_sums(graph, unary, AUTO(graph)(unary).nodes, pairs, **options)


@settings(max_examples=40)
@given(SEEDS, st.integers(1, 3), st.integers(0, 14))
def test_all_pairs_are_those_of_enumeration(seed, K, n_edges):
    rng = np.random.default_rng(seed)
    graph, unary = random_graph(rng, 7, n_edges), rng.normal(scale=2, size=(7, K))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pair_sums, "FEW", 0)
        sums = found(graph, unary, all_pairs(7))
    assert sums.found.all()
    same, apart = by_hand(graph, unary, all_pairs(7))
    np.testing.assert_allclose(sums.same, same, rtol=1e-11)
    np.testing.assert_allclose(sums.apart, apart, rtol=1e-11)


@settings(max_examples=30)
@given(SEEDS, st.integers(2, 3), st.integers(1, 12))
def test_a_tree_has_the_tied_nodes_and_tells_their_pairs(seed, K, n_edges):
    rng = np.random.default_rng(seed)
    graph, unary = random_graph(rng, 7, n_edges), rng.normal(scale=2, size=(7, K))
    tree, label = pair_tree.grow(graph, K, 7), connected_components(graph)
    np.testing.assert_array_equal(np.sort(tree.nodes), np.unique(graph.edges))
    places = all_pairs(len(tree.nodes))
    pairs = tree.nodes[places]
    tied = (label[pairs[:, 0]] == label[pairs[:, 1]]) & (pairs[:, 0] != pairs[:, 1])
    sums = pair_tree.sums_of_pairs(tree, unary, pair_tree.plan(tree, places[tied]))
    np.testing.assert_allclose(sums, by_hand(graph, unary, pairs[tied]), rtol=1e-11)


@settings(max_examples=30)
@given(SEEDS, st.integers(2, 4), st.integers(3, 9))
def test_forbidden_pairs_and_evidence_are_honoured(seed, K, n_edges):
    """With two states the network is contracted by mirror images before its tree is grown."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(K, size=6)
    graph, unary = random_graph(rng, 6, n_edges, p_hard=0.6), rng.normal(scale=2, size=(6, K))
    broken = truth[graph.edges[:, 0]] == truth[graph.edges[:, 1]]
    graph = graph._replace(weights=np.where(broken & np.isneginf(graph.weights), 1, graph.weights))
    unary[0, np.arange(K) != truth[0]] = -np.inf
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pair_sums, "FEW", 0)
        sums = found(graph, unary, all_pairs(6))
    same, apart = by_hand(graph, unary, all_pairs(6))
    np.testing.assert_allclose(sums.same[sums.found], same[sums.found], rtol=1e-10, atol=1e-300)
    np.testing.assert_allclose(sums.apart[sums.found], apart[sums.found], rtol=1e-10, atol=1e-300)
    assert sums.found.all()


def large(seed=3):
    """A network whose largest component is large, its tree, and tied pairs by nodes and places."""
    rng = np.random.default_rng(seed)
    graph, unary = random_graph(rng, 60, 66), rng.normal(size=(60, 3))
    tree, label = pair_tree.grow(graph, 3, 12), connected_components(graph)
    pairs = rng.integers(60, size=(150, 2))
    pairs = pairs[(label[pairs[:, 0]] == label[pairs[:, 1]]) & (pairs[:, 0] != pairs[:, 1])]
    assert len(np.unique(pairs)) > 40
    place = np.full(60, -1)
    place[tree.nodes] = np.arange(len(tree.nodes))
    return graph, unary, tree, pairs, place[pairs]


@pytest.mark.parametrize("height", [1, 7, 1000])
def test_however_pairs_are_blocked_they_are_those_of_nodes_held(height, monkeypatch):
    graph, unary, tree, pairs, places = large()
    monkeypatch.setattr(pair_tree, "MAX_CARRIED", height * 3 ** (tree.width + 2))
    ways = pair_tree.plan(tree, places)
    assert (len(ways.blocks) == 1) == (height == 1000)
    same, _ = pair_tree.sums_of_pairs(tree, unary, ways)
    np.testing.assert_allclose(same, by_holding(graph, unary, pairs), rtol=1e-11)


@settings(max_examples=30)
@given(SEEDS, st.sampled_from([1, 3, 1000]))
def test_a_plan_counts_the_cells_of_all_cliques_on_the_way(seed, height):
    graph = random_graph(np.random.default_rng(seed), 9, 10)
    tree, label = pair_tree.grow(graph, 3, 9), connected_components(graph)
    places = all_pairs(len(tree.nodes))
    of = label[tree.nodes[places]]
    places = places[(of[:, 0] == of[:, 1]) & (places[:, 0] != places[:, 1])]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pair_tree, "MAX_CARRIED", height * 3 ** (tree.width + 2))
        ways, n_cells = pair_tree.plan(tree, places), 0
    for rows in ways.blocks:
        passed = set()
        for (a, b), meet, carried in zip(
            ways.pairs[rows], ways.meets[rows], ways.carried[rows], strict=True
        ):
            for node in (a, b)[: 1 + carried]:
                v = node
                while v <= meet:
                    passed.add((node, v))
                    v = tree.parent[v] if tree.separators[v] else len(places)
        n_cells += sum(3 ** (len(tree.separators[v]) + 1) for _, v in passed)
    assert ways.n_cells == n_cells


def test_ways_that_are_dearer_than_nodes_held_are_not_gone(monkeypatch):
    graph, unary, tree, _, _ = large()
    ends, label = all_pairs(60), connected_components(graph)
    pairs = ends[(label[ends[:, 0]] == label[ends[:, 1]]) & (ends[:, 0] < ends[:, 1])]
    pairs = pairs[np.bincount(label)[label[pairs[:, 0]]] > pair_sums.FEW]
    one_go = found(graph, unary, pairs)
    assert one_go.found.all()
    monkeypatch.setattr(pair_tree, "MAX_CARRIED", 3 ** (tree.width + 2))
    assert not found(graph, unary, pairs).found.any()
    odds = log_odds_together(AUTO(graph), unary, graph, pairs)
    np.testing.assert_allclose(odds, np.log(one_go.same / one_go.apart), rtol=1e-9)


def test_both_tails_keep_their_digits_along_a_chain():
    """Each step differs with probability e^-40 at most: 12 steps away it is 12 times as much."""
    n = np.arange(13)
    chain = Graph(13, np.column_stack([n[:-1], n[1:]]), np.full(12, 40.0))
    sums = found(chain, np.zeros((13, 2)), np.array([[i, j] for i in n for j in n if i < j]))
    steps = np.array([j - i for i in n for j in n if i < j])
    np.testing.assert_allclose(sums.apart, steps * np.exp(-40.0), rtol=1e-12)


def test_a_component_too_wide_is_left_and_the_others_are_found():
    rng = np.random.default_rng(0)
    clique = np.array(list(itertools.combinations(range(14), 2)))
    chain = 14 + np.column_stack([np.arange(19), np.arange(1, 20)])
    graph = Graph(34, np.concatenate([clique, chain]), rng.normal(size=len(clique) + 19))
    unary = rng.normal(size=(34, 3))
    pairs = np.concatenate([clique, chain])
    sums = found(graph, unary, pairs, max_bytes=8 * 3**10)
    assert not sums.found[: len(clique)].any()
    assert sums.found[len(clique) :].all()


def test_nothing_asked_and_nothing_tied():
    unary = np.log([[0.3, 0.7], [0.6, 0.4]])
    nodes = np.exp(unary)
    none = pair_sums.pair_sums(edgeless(2), unary, nodes, np.empty((0, 2), dtype=int))
    assert len(none.same) == 0
    sums = pair_sums.pair_sums(edgeless(2), unary, nodes, np.array([[0, 1], [1, 1]]))
    np.testing.assert_allclose(sums.same, [0.3 * 0.6 + 0.7 * 0.4, 1], rtol=1e-15)
    assert sums.found.all()
