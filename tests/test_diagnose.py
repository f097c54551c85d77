"""Test judged relations against enumeration, refits, and limits."""

import itertools

import numpy as np
import pytest
from every_assignment import every_assignment
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from scipy.optimize import minimize_scalar
from scipy.special import expit, logsumexp

from cgmm import scenarios
from cgmm.diagnose import (
    expected_flip_rate,
    judge,
    log_odds_together,
    pair_probabilities,
)
from cgmm.inference import ENGINES, pair_sums
from cgmm.mixture import Parameters, node_unaries
from cgmm.network import Graph, SideInformation

AUTO = ENGINES["auto"]
THETA = Parameters(np.full(2, 0.5), np.array([[-1.0], [1.0]]), np.ones((2, 1, 1)))


def problem(seed, n_points=6, n_components=2, n_relations=7):
    """Return points, θ, and preferences, some of which share points."""
    rng = np.random.default_rng(seed)
    means = 2 * rng.normal(size=(n_components, 2))
    covariances = np.tile(np.eye(2), (n_components, 1, 1))
    theta = Parameters(rng.dirichlet(np.ones(n_components)), means, covariances)
    pairs = np.array(list(itertools.combinations(range(n_points), 2)))
    chosen = pairs[rng.integers(len(pairs), size=n_relations)]
    w = rng.choice([-1, 1], n_relations) * rng.uniform(0.2, 3, n_relations)
    return 2 * rng.normal(size=(n_points, 2)), theta, np.column_stack([chosen, w])


def log_odds_by_hand(X, theta, rows):
    """Return the log-odds of each relation, by summing over all assignments of the points."""
    z, log_weights = every_assignment(X, theta, rows)
    equal, log_weights = z[:, :, None] == z[:, None], log_weights[:, None, None]
    together, apart = (
        logsumexp(np.where(kind, log_weights, -np.inf), axis=0) for kind in (equal, ~equal)
    )
    return together - apart


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.integers(2, 3), st.integers(0, 8), st.sampled_from([1, 10**6]))
def test_log_odds_of_all_pairs_are_those_of_enumeration(seed, K, n_relations, carried):
    """The number of nodes carried along the network's tree does not matter."""
    X, theta, rows = problem(seed, n_components=K, n_relations=n_relations)
    certain = {"must_link": [[0, 3]], "cannot_link": [[1, 3]]}
    side = SideInformation.build(len(X), preferences=rows, **certain)
    infer, pairs = AUTO(side.graph), np.array(list(itertools.product(range(6), repeat=2)))
    unary = node_unaries(X, theta, side)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pair_sums, "MAX_CARRIED", carried)
        found = log_odds_together(infer, unary, side.graph, side.node_of[pairs]).reshape(6, 6)
    expected = log_odds_by_hand(X, theta, [*rows, [0, 3, np.inf], [1, 3, -np.inf]])
    # Sums of a few hundred positive terms: nothing cancels.
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    p = pair_probabilities(X, theta, side, pairs, infer)
    np.testing.assert_allclose(p.reshape(6, 6), expit(expected), atol=1e-12)


def test_hard_edges_and_evidence_decide():
    graph = Graph(4, np.array([[0, 1], [1, 2]]), np.array([-np.inf, 1.0]))
    unary = np.zeros((4, 2))
    unary[0, 1] = unary[3, 0] = -np.inf  # node 0 has state 0, node 3 state 1
    pairs = np.array([[0, 1], [0, 2], [1, 2], [0, 3], [1, 3], [2, 2]])
    found = log_odds_together(AUTO(graph), unary, graph, pairs)
    np.testing.assert_allclose(found, [-np.inf, -1, 1, -np.inf, np.inf, np.inf], atol=1e-12)


def test_both_tails_keep_their_digits():
    # Two lone nodes, sure of their states to e^-100: p(equal) ≈ 2 e^-100.
    graph = Graph(2, np.empty((0, 2), dtype=int), np.empty(0))
    unary = np.array([[0.0, -100.0], [-100.0, 0.0]])
    pair = np.array([[0, 1]])
    low = log_odds_together(AUTO(graph), unary, graph, pair)
    high = log_odds_together(
        AUTO(graph), unary[:, ::-1] * [[1], [0]] + unary * [[0], [1]], graph, pair
    )
    np.testing.assert_allclose([low[0], high[0]], [np.log(2) - 100, 100 - np.log(2)], rtol=1e-12)
    # Each step of a chain differs with probability e^-40: n steps away it is n times as much.
    steps = np.column_stack([np.arange(12), np.arange(1, 13)])
    graph = Graph(13, steps, np.full(12, 40.0))
    found = log_odds_together(AUTO(graph), np.zeros((13, 2)), graph, steps * [0, 1])
    np.testing.assert_allclose(found, 40 - np.log(steps[:, 1]), rtol=1e-12)


def test_tables_beyond_the_memory_leave_the_pairs_to_nodes_held():
    pairs = np.array(list(itertools.combinations(range(8), 2)))
    graph, unary = Graph(8, pairs, np.linspace(-1, 1, 28)), np.zeros((8, 3))
    nodes = AUTO(graph)(unary).nodes
    assert not pair_sums.pair_sums(graph, unary, nodes, pairs, max_bytes=8 * 3**6).found.any()


def counting(engine, calls, **changes):
    """Return an engine that counts its calls in a list, with changes to its results."""

    def counted(unary):
        calls.append(1)
        return engine(unary)._replace(**changes)

    return counted


# Nodes of different components are fixed at once, those of one component in turn; of each pair the
# end that occurs in more pairs is fixed.
@pytest.mark.parametrize(
    ("edges", "n_turns"),
    [
        (np.arange(200).reshape(-1, 2), 1),
        (np.column_stack([np.arange(7), np.full(7, 7)]), 1),
        (np.column_stack([np.arange(7), np.arange(1, 8)]), 6),
    ],
)
def test_few_nodes_are_held_one_after_another(edges, n_turns):
    calls = []
    graph = Graph(edges.max() + 1, edges, np.ones(len(edges)))
    found = log_odds_together(
        counting(AUTO(graph), calls, exact=False), np.zeros((graph.n_nodes, 3)), graph, edges
    )
    # One leaf more or less changes nothing: p(same) : p(apart) = e : 2.
    np.testing.assert_allclose(found, 1 - np.log(2), atol=1e-12)
    assert len(calls) == 1 + 3 * n_turns


def test_pairs_of_a_large_component_take_one_call_of_the_engine():
    calls = []
    ring = np.column_stack([np.arange(200), np.roll(np.arange(200), -1)])
    graph = Graph(200, ring, np.ones(200))
    found = log_odds_together(counting(AUTO(graph), calls), np.zeros((200, 3)), graph, ring)
    # Of a ring of equal weights: transfer matrix 1 + (e - 1) I has eigenvalues e + 2 and e - 1.
    first, second = np.e + 2, np.e - 1
    same = np.e * (first**199 + 2 * second**199) / (first**200 + 2 * second**200)
    np.testing.assert_allclose(found, np.log(same / (1 - same)), atol=1e-12)
    assert len(calls) == 1


def test_approximate_pairs_are_not_mixed_with_exact_ones():
    rng = np.random.default_rng(0)
    ring = np.column_stack([np.arange(12), np.roll(np.arange(12), -1)])
    graph, unary = Graph(12, ring, rng.normal(size=12)), rng.normal(size=(12, 2))
    loopy = ENGINES["belief_propagation"](graph)
    found = log_odds_together(loopy, unary, graph, ring)
    exact = log_odds_together(AUTO(graph), unary, graph, ring)
    assert loopy(unary).exact is False
    assert np.abs(found - exact).max() > 1e-9


# ---------------------------------------------------------------------------- relations


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.integers(2, 3), st.booleans())
def test_support_is_computed_without_the_relation_itself(seed, n_components, with_hard):
    X, theta, rows = problem(seed, n_components=n_components)
    must, cannot = ([[0, 1], [1, 2]], [[2, 3]]) if with_hard else ([], [])
    found = judge(theta, X, must_link=must, cannot_link=cannot, preferences=rows)
    # Near enough to certain
    hard = scenarios.preferences(must, cannot, certainty=1 - 1e-11)
    rows = np.concatenate([hard, rows])
    for e, (i, j, w) in enumerate(rows):
        others = np.delete(rows, e, axis=0)
        expected = np.sign(w) * log_odds_by_hand(X, theta, others)[int(i), int(j)]
        assert found.support[e] == pytest.approx(expected, rel=1e-9, abs=1e-8)
        assert found.log_odds[e] == pytest.approx(expected + abs(w), rel=1e-9, abs=1e-8)
    assert found.support[found.order].tolist() == sorted(found.support)
    np.testing.assert_allclose(found.wrong, expit(-found.log_odds), rtol=1e-12)


def test_hard_relations_that_contradict_each_other_are_judged():
    X, theta = np.array([[-1.0], [-1.2], [1.0], [1.1]]), THETA
    found = judge(theta, X, must_link=[[0, 1], [2, 3], [1, 2]], cannot_link=[[0, 3]])
    assert found.order[0] == 2


def test_held_out_relations_are_judged_by_the_unchanged_network():
    X, theta, rows = problem(3)
    kept, out = rows[:4], rows[4:]
    found = judge(theta, X, preferences=kept, held_out=out)
    again = judge(theta, X, preferences=np.vstack([out[:1], kept]))
    assert found.support[0] == pytest.approx(again.support[0], abs=1e-9)
    assert found.log_odds[0] == pytest.approx(again.log_odds[0], abs=1e-9)


def test_the_expected_flip_rate_is_the_maximum_of_the_evidence_of_points_and_relations():
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1], 30)
    X, theta = rng.normal(size=(60, 1)) + 4 * y[:, None] - 2, THETA._replace(means=2 * THETA.means)
    flipped = scenarios.flip(scenarios.random_pairs(y, 30, random_state=1), 0.3, random_state=1)

    def cost(rate):
        # [lu2007, eq. 2.15] with its constants: a broken relation has the probability q.
        rows = scenarios.preferences(*flipped, certainty=1 - rate)
        side = SideInformation.build(len(X), preferences=rows)
        n_must, n_cannot = map(len, flipped)
        log_z = AUTO(side.graph)(node_unaries(X, theta, side)).log_z
        return -(log_z + n_must * np.log(rate) + n_cannot * np.log1p(-rate))

    best = minimize_scalar(cost, bounds=(1e-3, 0.49), method="bounded", options={"xatol": 1e-8}).x
    rate = 0.2
    for _ in range(40):
        rows = scenarios.preferences(*flipped, certainty=1 - rate)
        rate = expected_flip_rate(judge(theta, X, preferences=rows).log_odds)
    assert rate == pytest.approx(best, abs=1e-5)
    with pytest.raises(ValueError, match="no relation"):
        expected_flip_rate([])


# ---------------------------------------------------------------------------- bad input


test_short_or_missing_draws_are_refused = refused(
    lambda rows: judge(THETA, np.zeros((3, 1)), must_link=[[0, 1]], preferences=rows),
    *(([[0, 1, 1.0], [0, 2, w]], r"preferences\[1\] has") for w in (0.0, np.inf, np.nan)),
    ([[0, 1, 1.0], [99, 2, 1.0]], r"preferences\[1\] is \[99"),
)
