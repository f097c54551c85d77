"""All pairs from one tree: against enumeration, against nodes held one by one, and in the tails."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from small_networks import chain, complete, enumerated, networks, tied

from cgmm.diagnose import log_odds_together
from cgmm.inference import ENGINES, pair_sums
from cgmm.inference.enumerate import _all_assignments, _edge_terms
from cgmm.network import simplify

SEEDS = st.integers(0, 10_000)
AUTO = ENGINES["auto"]


def by_hand(graph, unary, pairs):
    """Sums over every assignment, of equal states and of different ones."""
    z = _all_assignments(*unary.shape)
    logs = unary[np.arange(len(unary)), z].sum(axis=1) + _edge_terms(graph, z)
    p = np.exp(logs - logsumexp(logs))
    equal = z[:, pairs[:, 0]] == z[:, pairs[:, 1]]
    return p @ equal, p @ ~equal


def found(graph, unary, pairs, **options):
    return pair_sums.pair_sums(graph, unary, AUTO(graph)(unary).nodes, pairs, **options)


@settings(max_examples=50)
@given(networks(p_forbidden=0.3), st.sampled_from([1, 100, 10**6]))
def test_all_pairs_are_those_of_enumeration_however_many_nodes_are_carried(network, carried):
    """With two states the network is contracted by mirror images before its tree is grown."""
    graph, unary = simplify(network[0]), network[1]
    if enumerated(graph, unary) is None:
        return
    pairs = np.argwhere(np.ones((graph.n_nodes, graph.n_nodes)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pair_sums, "MAX_CARRIED", carried)
        sums = found(graph, unary, pairs)
    assert len(found(graph, unary, pairs[:0]).same) == 0
    same, apart = by_hand(graph, unary, pairs)
    assert sums.found.all()
    np.testing.assert_allclose(sums.same, same, rtol=1e-10, atol=1e-300)
    np.testing.assert_allclose(sums.apart, apart, rtol=1e-10, atol=1e-300)


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
