"""All pairs from one tree: against enumeration, against nodes held one by one, and in the tails."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from small_networks import chain, complete, enumerated, networks, tied

from cgmm.diagnose import log_odds_together
from cgmm.inference import ENGINES, pair_sums
from cgmm.inference.enumerate import _all_assignments, _edge_terms
from cgmm.network import edgeless, simplify

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


def found(graph, unary, pairs, **options):
    return pair_sums.pair_sums(graph, unary, AUTO(graph)(unary).nodes, pairs, **options)


@settings(max_examples=50)
@given(networks(p_forbidden=0.3))
def test_all_pairs_are_those_of_enumeration(network):
    """With two states the network is contracted by mirror images before its tree is grown."""
    graph, unary = simplify(network[0]), network[1]
    if enumerated(graph, unary) is None:
        return
    pairs = np.argwhere(np.ones((graph.n_nodes, graph.n_nodes)))
    sums = found(graph, unary, pairs)
    same, apart = by_hand(graph, unary, pairs)
    assert sums.found.all()
    np.testing.assert_allclose(sums.same, same, rtol=1e-10, atol=1e-300)
    np.testing.assert_allclose(sums.apart, apart, rtol=1e-10, atol=1e-300)


@pytest.mark.parametrize("height", [1, 7, 1000])
def test_however_nodes_are_carried_their_pairs_are_those_of_nodes_held(height, monkeypatch):
    rng = np.random.default_rng(3)
    edges = complete(30)[rng.choice(435, 34, replace=False)]
    graph, unary = tied(30, edges, rng.normal(scale=2, size=34)), rng.normal(size=(30, 3))
    pairs = rng.integers(30, size=(90, 2))
    monkeypatch.setattr(pair_sums, "MAX_CARRIED", height * 1000)
    sums = found(graph, unary, pairs)
    different = pairs[:, 0] != pairs[:, 1]
    assert sums.found.all()
    expected = by_holding(graph, unary, pairs[different])
    np.testing.assert_allclose(sums.same[different], expected, rtol=1e-11)
    np.testing.assert_array_equal(sums.apart[~different], 0.0)


def test_tables_beyond_the_memory_leave_the_pairs_to_nodes_held():
    rng = np.random.default_rng(0)
    clique = complete(8)
    graph, unary = tied(8, clique, rng.normal(size=28)), rng.normal(size=(8, 3))
    assert not found(graph, unary, clique, max_bytes=8 * 3**6).found.any()
    sums = found(graph, unary, clique)
    odds = log_odds_together(AUTO(graph), unary, graph, clique)
    np.testing.assert_allclose(odds, np.log(sums.same / sums.apart), rtol=1e-9)


def test_both_tails_keep_their_digits_along_a_chain():
    """Each step differs with probability e^-40 at most: 12 steps away it is 12 times as much."""
    pairs = complete(13)
    sums = found(tied(13, chain(13), 40.0), np.zeros((13, 2)), pairs)
    np.testing.assert_allclose(sums.apart, np.ptp(pairs, axis=1) * np.exp(-40.0), rtol=1e-12)


def test_nothing_asked_and_nothing_tied():
    unary = np.log([[0.3, 0.7], [0.6, 0.4]])
    nodes = np.exp(unary)
    none = pair_sums.pair_sums(edgeless(2), unary, nodes, np.empty((0, 2), dtype=int))
    assert len(none.same) == 0
    sums = pair_sums.pair_sums(edgeless(2), unary, nodes, np.array([[0, 1], [1, 1]]))
    np.testing.assert_allclose(sums.same, [0.3 * 0.6 + 0.7 * 0.4, 1], rtol=1e-15)
    assert sums.found.all()
