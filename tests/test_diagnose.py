"""Test ``cgmm.diagnose``: probabilities of pairs and support of relations, against enumeration."""

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
from cgmm.diagnose import expected_flip_rate, judge, log_odds_together, pair_probabilities
from cgmm.inference import ENGINES, pair_sums
from cgmm.mixture import Parameters, node_unaries
from cgmm.network import Graph, SideInformation

AUTO = ENGINES["auto"]
THETA = Parameters(np.full(2, 0.5), np.array([[-1.0], [1.0]]), np.ones((2, 1, 1)))


def draw_problem(seed, n_points=6, n_components=2, n_relations=7):
    """Draw points, parameters, and preferences, some of which share points."""
    rng = np.random.default_rng(seed)
    means = 2 * rng.normal(size=(n_components, 2))
    covariances = np.tile(np.eye(2), (n_components, 1, 1))
    theta = Parameters(rng.dirichlet(np.ones(n_components)), means, covariances)
    pairs = np.array(list(itertools.combinations(range(n_points), 2)))
    chosen = pairs[rng.integers(len(pairs), size=n_relations)]
    w = rng.choice([-1, 1], n_relations) * rng.uniform(0.2, 3, n_relations)
    return 2 * rng.normal(size=(n_points, 2)), theta, np.column_stack([chosen, w])


def enumerate_log_odds(X, theta, preferences):
    """Return the log-odds (N, N) that pairs are together, from all assignments of the points."""
    z, log_weights = every_assignment(X, theta, preferences)
    equal, log_weights = z[:, :, None] == z[:, None], log_weights[:, None, None]
    together, apart = (
        logsumexp(np.where(mask, log_weights, -np.inf), axis=0) for mask in (equal, ~equal)
    )
    return together - apart


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.integers(2, 3), st.integers(0, 8), st.sampled_from([1, 10**6]))
def test_log_odds_of_all_pairs_equal_enumeration(seed, K, n_relations, max_carried):
    """Results must not depend on ``MAX_CARRIED``, the number of nodes whose states a pass keeps."""
    X, theta, rows = draw_problem(seed, n_components=K, n_relations=n_relations)
    certain = {"must_link": [[0, 3]], "cannot_link": [[1, 3]]}
    side = SideInformation.build(len(X), preferences=rows, **certain)
    infer, pairs = AUTO(side.graph), np.array(list(itertools.product(range(6), repeat=2)))
    unary = node_unaries(X, theta, side)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pair_sums, "MAX_CARRIED", max_carried)
        log_odds = log_odds_together(infer, unary, side.graph, side.node_of[pairs]).reshape(6, 6)
    expected = enumerate_log_odds(X, theta, [*rows, [0, 3, np.inf], [1, 3, -np.inf]])
    # All terms of the sums are positive, so no digits cancel.
    np.testing.assert_allclose(log_odds, expected, rtol=1e-9, atol=1e-9)
    p = pair_probabilities(X, theta, side, pairs, infer)
    np.testing.assert_allclose(p.reshape(6, 6), expit(expected), atol=1e-12)


def test_log_odds_of_pairs_fixed_by_hard_edges_or_evidence_are_infinite():
    graph = Graph(4, np.array([[0, 1], [1, 2]]), np.array([-np.inf, 1.0]))
    unary = np.zeros((4, 2))
    # Node 0 has state 0, and node 3 has state 1.
    unary[0, 1] = unary[3, 0] = -np.inf
    pairs = np.array([[0, 1], [0, 2], [1, 2], [0, 3], [1, 3], [2, 2]])
    log_odds = log_odds_together(AUTO(graph), unary, graph, pairs)
    np.testing.assert_allclose(log_odds, [-np.inf, -1, 1, -np.inf, np.inf, np.inf], atol=1e-12)


def test_log_odds_of_nearly_certain_pairs_are_precise():
    # Two nodes without an edge have the same state with probability 2 e^-100 or 1 - 2 e^-100.
    graph = Graph(2, np.empty((0, 2), dtype=int), np.empty(0))
    unary = np.array([[0.0, -100.0], [-100.0, 0.0]])
    pair = np.array([[0, 1]])
    low, high = (
        log_odds_together(AUTO(graph), unary[rows], graph, pair)[0] for rows in ([0, 1], [0, 0])
    )
    np.testing.assert_allclose([low, high], [np.log(2) - 100, 100 - np.log(2)], rtol=1e-12)
    # Neighbours in a chain differ with probability e^-40, and nodes n steps apart with n e^-40.
    steps = np.column_stack([np.arange(12), np.arange(1, 13)])
    graph = Graph(13, steps, np.full(12, 40.0))
    log_odds = log_odds_together(AUTO(graph), np.zeros((13, 2)), graph, steps * [0, 1])
    np.testing.assert_allclose(log_odds, 40 - np.log(steps[:, 1]), rtol=1e-12)


def test_pair_sums_leave_out_pairs_whose_tables_need_too_much_memory():
    pairs = np.array(list(itertools.combinations(range(8), 2)))
    graph, unary = Graph(8, pairs, np.linspace(-1, 1, 28)), np.zeros((8, 3))
    nodes = AUTO(graph)(unary).nodes
    assert not pair_sums.pair_sums(graph, unary, nodes, pairs, max_bytes=8 * 3**6).found.any()


def record_calls(engine, calls, **changes):
    """Return an engine that appends to ``calls`` in each call, and changes fields of the result."""
    return lambda unary: calls.append(1) or engine(unary)._replace(**changes)


CHAIN = np.column_stack([np.arange(7), np.arange(1, 8)])
STAR = np.column_stack([np.arange(7), np.full(7, 7)])
RING = np.column_stack([np.arange(200), np.roll(np.arange(200), -1)])
# The transfer matrix of the ring, 1 + (e - 1) I, has the eigenvalues e + 2 and e - 1.
POWERS = [[factor**n for n in (199, 200)] for factor in (np.e + 2, np.e - 1)]
P_SAME = np.e * (POWERS[0][0] + 2 * POWERS[1][0]) / (POWERS[0][1] + 2 * POWERS[1][1])


@pytest.mark.parametrize(
    ("edges", "exact", "n_fixed", "p_same"),
    [
        # In a tree other edges do not matter, so p(same) : p(apart) = e : 2.
        (np.arange(200).reshape(-1, 2), False, 1, np.e / (np.e + 2)),
        (STAR, False, 1, np.e / (np.e + 2)),
        (CHAIN, False, 6, np.e / (np.e + 2)),
        (RING, True, 0, P_SAME),
    ],
)
def test_engine_is_called_once_for_each_state_of_fixed_nodes(edges, exact, n_fixed, p_same):
    """An exact engine is called once, and others again for each state of each fixed node.

    Of the two nodes of a pair, the one that occurs in more pairs is fixed. Nodes of different
    connected components are fixed in the same call.
    """
    calls, graph = [], Graph(edges.max() + 1, edges, np.ones(len(edges)))
    infer = record_calls(AUTO(graph), calls, **({} if exact else {"exact": False}))
    log_odds = log_odds_together(infer, np.zeros((graph.n_nodes, 3)), graph, edges)
    np.testing.assert_allclose(log_odds, np.log(p_same / (1 - p_same)), atol=1e-12)
    assert len(calls) == 1 + 3 * n_fixed


def test_approximate_pairs_are_not_mixed_with_exact_ones():
    rng = np.random.default_rng(0)
    ring = np.column_stack([np.arange(12), np.roll(np.arange(12), -1)])
    graph, unary = Graph(12, ring, rng.normal(size=12)), rng.normal(size=(12, 2))
    loopy = ENGINES["belief_propagation"](graph)
    log_odds = log_odds_together(loopy, unary, graph, ring)
    exact = log_odds_together(AUTO(graph), unary, graph, ring)
    assert loopy(unary).exact is False
    assert np.abs(log_odds - exact).max() > 1e-9


# ---------------------------------------------------------------------------- relations


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.integers(2, 3), st.booleans())
def test_support_equals_enumeration_without_the_relation_itself(seed, n_components, has_hard):
    X, theta, rows = draw_problem(seed, n_components=n_components)
    must, cannot = ([[0, 1], [1, 2]], [[2, 3]]) if has_hard else ([], [])
    judgement = judge(theta, X, must_link=must, cannot_link=cannot, preferences=rows)
    # These log-odds are finite, but so large that they act as hard relations.
    hard = scenarios.preferences(must, cannot, certainty=1 - 1e-11)
    rows = np.concatenate([hard, rows])
    for e, (i, j, w) in enumerate(rows):
        others = np.delete(rows, e, axis=0)
        expected = np.sign(w) * enumerate_log_odds(X, theta, others)[int(i), int(j)]
        assert judgement.support[e] == pytest.approx(expected, rel=1e-9, abs=1e-8)
        assert judgement.log_odds[e] == pytest.approx(expected + abs(w), rel=1e-9, abs=1e-8)
    assert judgement.support[judgement.order].tolist() == sorted(judgement.support)
    np.testing.assert_allclose(judgement.wrong, expit(-judgement.log_odds), rtol=1e-12)


def test_contradictory_hard_relations_are_judged():
    X, theta = np.array([[-1.0], [-1.2], [1.0], [1.1]]), THETA
    judgement = judge(theta, X, must_link=[[0, 1], [2, 3], [1, 2]], cannot_link=[[0, 3]])
    assert judgement.order[0] == 2


def test_held_out_relations_are_judged_without_using_them():
    """A held-out relation has the support that it would have if it were added."""
    X, theta, rows = draw_problem(3)
    kept, held_out = rows[:4], rows[4:]
    judgement = judge(theta, X, preferences=kept, held_out=held_out)
    added = judge(theta, X, preferences=np.vstack([held_out[:1], kept]))
    assert judgement.support[0] == pytest.approx(added.support[0], abs=1e-9)
    assert judgement.log_odds[0] == pytest.approx(added.log_odds[0], abs=1e-9)


def test_iterated_flip_rate_has_the_highest_evidence():
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1], 30)
    X, theta = rng.normal(size=(60, 1)) + 4 * y[:, None] - 2, THETA._replace(means=2 * THETA.means)
    flipped = scenarios.flip(scenarios.random_pairs(y, 30, random_state=1), 0.3, random_state=1)

    def negative_log_evidence(rate):
        # [lu2007, eq. 2.15] with constants that depend on the rate of wrong answers.
        rows = scenarios.preferences(*flipped, certainty=1 - rate)
        side = SideInformation.build(len(X), preferences=rows)
        n_must, n_cannot = map(len, flipped)
        log_z = AUTO(side.graph)(node_unaries(X, theta, side)).log_z
        return -(log_z + n_must * np.log(rate) + n_cannot * np.log1p(-rate))

    best = minimize_scalar(
        negative_log_evidence, bounds=(1e-3, 0.49), method="bounded", options={"xatol": 1e-8}
    ).x
    rate = 0.2
    for _ in range(40):
        rows = scenarios.preferences(*flipped, certainty=1 - rate)
        rate = expected_flip_rate(judge(theta, X, preferences=rows).log_odds)
    assert rate == pytest.approx(best, abs=1e-5)
    with pytest.raises(ValueError, match="no relation"):
        expected_flip_rate([])


# ---------------------------------------------------------------------------- bad input


test_invalid_preferences_are_refused = refused(
    lambda rows: judge(THETA, np.zeros((3, 1)), must_link=[[0, 1]], preferences=rows),
    *(([[0, 1, 1.0], [0, 2, w]], r"preferences\[1\] has") for w in (0.0, np.inf, np.nan)),
    ([[0, 1, 1.0], [99, 2, 1.0]], r"preferences\[1\] is \[99"),
)
