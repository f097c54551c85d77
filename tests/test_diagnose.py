"""Relations judged: against enumeration of every assignment, against refits, and in the limits."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from cgmm import ConstrainedGaussianMixture, scenarios
from cgmm.diagnose import (
    _log_ratios,
    doubts,
    expected_flip_rate,
    judge,
    log_odds_together,
    pair_probabilities,
)
from cgmm.inference import ENGINES
from cgmm.inference.enumerate import _all_assignments, _edge_terms
from cgmm.mixture import Parameters, node_unaries
from cgmm.network import Graph, SideInformation

AUTO = ENGINES["auto"]
THETA = Parameters(np.full(2, 0.5), np.array([[-1.0], [1.0]]), np.ones((2, 1, 1)))


def random_parameters(rng, n_components, n_dims=2):
    means = 2 * rng.normal(size=(n_components, n_dims))
    return Parameters(
        rng.dirichlet(np.ones(n_components)), means, np.tile(np.eye(n_dims), (n_components, 1, 1))
    )


def log_odds_by_hand(unary, graph, a, b):
    """Every assignment of the whole network, sorted into equal and unequal."""
    z = _all_assignments(*unary.shape)
    log_weights = unary[np.arange(len(unary)), z].sum(axis=1) + _edge_terms(graph, z)
    equal = z[:, a] == z[:, b]
    with np.errstate(divide="ignore"):
        return logsumexp(log_weights[equal]) - logsumexp(log_weights[~equal])


def random_network(seed, n_nodes=6, n_components=3):
    rng = np.random.default_rng(seed)
    pairs = np.array(list(itertools.combinations(range(n_nodes), 2)))
    edges = pairs[rng.random(len(pairs)) < rng.uniform(0.1, 0.6)]
    weights = rng.normal(scale=2, size=len(edges))
    unary = rng.normal(scale=3, size=(n_nodes, n_components))
    return unary, Graph(n_nodes, edges, weights), pairs


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.integers(2, 3))
def test_log_odds_of_all_pairs_are_those_of_enumeration(seed, n_components):
    unary, graph, pairs = random_network(seed, 6, n_components)
    found = log_odds_together(AUTO(graph), unary, graph, pairs)
    expected = [log_odds_by_hand(unary, graph, a, b) for a, b in pairs]
    # Sums of a few hundred positive terms: nothing cancels.
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


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


def test_no_pair_is_no_work():
    graph = Graph(2, np.empty((0, 2), dtype=int), np.empty(0))
    assert len(log_odds_together(AUTO(graph), np.zeros((2, 2)), graph, np.empty((0, 2), int))) == 0


def test_nodes_of_different_components_are_held_at_once():
    calls = []
    graph = Graph(200, np.arange(200).reshape(-1, 2), np.ones(100))
    engine = AUTO(graph)

    def counted(unary):
        calls.append(1)
        # An engine that is not exact is asked itself.
        return engine(unary)._replace(exact=False)

    log_odds_together(counted, np.zeros((200, 3)), graph, graph.edges)
    assert len(calls) == 1 + 3


def test_of_each_pair_that_end_is_held_which_more_pairs_name():
    calls = []
    star = np.column_stack([np.arange(7), np.full(7, 7)])
    graph = Graph(8, star, np.ones(7))
    engine = AUTO(graph)

    def counted(unary):
        calls.append(1)
        # An engine that is not exact is asked itself.
        return engine(unary)._replace(exact=False)

    found = log_odds_together(counted, np.zeros((8, 3)), graph, star)
    # One leaf more or less changes nothing: p(same) : p(apart) = e : 2.
    np.testing.assert_allclose(found, 1 - np.log(2), atol=1e-12)
    assert len(calls) == 1 + 3


def test_pairs_of_a_large_component_take_one_call_of_the_engine():
    calls = []
    ring = np.column_stack([np.arange(200), np.roll(np.arange(200), -1)])
    graph = Graph(200, ring, np.ones(200))
    engine = AUTO(graph)

    def counted(unary):
        calls.append(1)
        return engine(unary)

    found = log_odds_together(counted, np.zeros((200, 3)), graph, ring)
    # Of a ring of equal weights: transfer matrix 1 + (e - 1) I has eigenvalues e + 2 and e - 1.
    first, second = np.e + 2, np.e - 1
    same = np.e * (first**199 + 2 * second**199) / (first**200 + 2 * second**200)
    np.testing.assert_allclose(found, np.log(same / (1 - same)), atol=1e-12)
    assert len(calls) == 1


def test_what_an_approximate_engine_says_is_not_mixed_with_what_is_exact():
    rng = np.random.default_rng(0)
    ring = np.column_stack([np.arange(12), np.roll(np.arange(12), -1)])
    graph, unary = Graph(12, ring, rng.normal(size=12)), rng.normal(size=(12, 2))
    loopy = ENGINES["belief_propagation"](graph)
    found = log_odds_together(loopy, unary, graph, ring)
    exact = log_odds_together(AUTO(graph), unary, graph, ring)
    assert loopy(unary).exact is False
    assert np.abs(found - exact).max() > 1e-9


# ---------------------------------------------------------------------------- pairs of points


def pairs_by_hand(X, theta, rows, certain, K):
    """p(z_i = z_j) from every assignment of points, relation by relation."""
    z = _all_assignments(len(X), K)
    log_weights = (theta.log_joint(X)[np.arange(len(X)), z]).sum(axis=1)
    for i, j, w in rows:
        log_weights = log_weights + np.where(z[:, int(i)] == z[:, int(j)], w, 0.0)
    for name, pairs in certain.items():
        for i, j in pairs:
            broken = (z[:, i] == z[:, j]) == (name == "cannot_link")
            log_weights = np.where(broken, -np.inf, log_weights)
    p = np.exp(log_weights - logsumexp(log_weights))
    return np.einsum("z,zij->ij", p, z[:, :, None] == z[:, None])


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(2, 3))
def test_pair_probabilities_are_those_of_enumeration(seed, K):
    X, theta, rows = problem(seed, n_points=6, n_components=K, n_relations=4)
    certain = {"must_link": [[0, 3]], "cannot_link": [[1, 3]]}
    side = SideInformation.build(len(X), preferences=rows, **certain)
    pairs = np.array(list(itertools.product(range(6), repeat=2)))
    found = pair_probabilities(X, theta, side, pairs, AUTO(side.graph)).reshape(6, 6)
    np.testing.assert_allclose(found, pairs_by_hand(X, theta, rows, certain, K), atol=1e-12)


def test_log_z_rises_with_an_edge_by_the_probability_of_its_pair():
    """p(z_a = z_b) = d log Z / d w at w = 0, of an edge that is not there."""
    X, theta, rows = problem(4)
    side = SideInformation.build(len(X), preferences=rows[:4])
    pair, h = [[2, 6]], 1e-5
    up, down = (SideInformation.build(len(X), preferences=[*rows[:4], [2, 6, w]]) for w in (h, -h))
    log_z = [AUTO(s.graph)(node_unaries(X, theta, s)).log_z for s in (up, down)]
    found = pair_probabilities(X, theta, side, pair, AUTO(side.graph))
    # Central difference: h² of truncation, 1e-14 / h of rounding.
    assert (log_z[0] - log_z[1]) / (2 * h) == pytest.approx(found[0], abs=1e-8)


def test_a_pair_of_no_points_is_named():
    X, theta, rows = problem(0)
    side = SideInformation.build(len(X), preferences=rows)
    with pytest.raises(ValueError, match=r"pairs\[1\] is \[0, 99"):
        pair_probabilities(X, theta, side, [[0, 1], [0, 99]], AUTO(side.graph))


# ---------------------------------------------------------------------------- relations


def problem(seed, n_points=7, n_components=2, n_relations=7):
    """Points, θ, and preferences of which some share points or even both points."""
    rng = np.random.default_rng(seed)
    X = 2 * rng.normal(size=(n_points, 2))
    pairs = np.array(list(itertools.combinations(range(n_points), 2)))
    chosen = pairs[rng.integers(len(pairs), size=n_relations)]
    w = rng.choice([-1, 1], n_relations) * rng.uniform(0.2, 3, n_relations)
    return X, random_parameters(rng, n_components), np.column_stack([chosen, w])


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.integers(2, 3), st.booleans())
def test_support_is_what_the_network_without_the_relation_says(seed, n_components, with_labels):
    X, theta, rows = problem(seed, n_components=n_components)
    certain = {"labels": [0, 1] + 5 * [-1]} if with_labels else {}
    found = judge(theta, X, preferences=rows, **certain)
    for e, (i, j, w) in enumerate(rows):
        others = SideInformation.build(len(X), preferences=np.delete(rows, e, axis=0), **certain)
        unary = node_unaries(X, theta, others)
        expected = np.sign(w) * log_odds_by_hand(unary, others.graph, int(i), int(j))
        assert found.support[e] == pytest.approx(expected, rel=1e-9, abs=1e-8)
        assert found.log_odds[e] == pytest.approx(expected + abs(w), rel=1e-9, abs=1e-8)
    assert found.support[found.order].tolist() == sorted(found.support)


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.integers(2, 3))
def test_a_hard_relation_is_judged_by_the_points_and_all_others(seed, n_components):
    X, theta, rows = problem(seed, n_components=n_components, n_relations=2)
    hard = [("must_link", [0, 1]), ("must_link", [1, 2]), ("cannot_link", [2, 3])]
    told = {"must_link": [[0, 1], [1, 2]], "cannot_link": [[2, 3]], "preferences": rows}
    found = judge(theta, X, **told)
    assert len(found.support) == 5
    for e, (name, pair) in enumerate(hard):
        left = {kind: [p for p in told[kind] if p != pair] for kind in ("must_link", "cannot_link")}
        p = pairs_by_hand(X, theta, rows, left, n_components)[tuple(pair)]
        expected = np.log(p / (1 - p)) * (1 if name == "must_link" else -1)
        # Others count for e^25, and p has sixteen digits.
        assert np.clip(found.support[e], -9, 9) == pytest.approx(np.clip(expected, -9, 9), abs=1e-4)


def test_hard_relations_that_contradict_each_other_are_judged():
    X, theta = np.array([[-1.0], [-1.2], [1.0], [1.1]]), THETA
    found = judge(theta, X, must_link=[[0, 1], [2, 3], [1, 2]], cannot_link=[[0, 3]])
    assert found.order[0] == 2


def test_held_out_relations_are_judged_by_the_network_as_it_is():
    X, theta, rows = problem(3)
    kept, out = rows[:4], rows[4:]
    found = judge(theta, X, preferences=kept, held_out=out)
    again = judge(theta, X, preferences=np.vstack([out[:1], kept]))
    assert found.support[0] == pytest.approx(again.support[0], abs=1e-9)
    assert found.log_odds[0] == pytest.approx(again.log_odds[0], abs=1e-9)
    # As it was before 1.0
    side = SideInformation.build(len(X), preferences=kept)
    before = judge(X, theta, side, out, AUTO(side.graph), held_out=True)
    np.testing.assert_allclose(before.support, found.support, atol=1e-12)


def test_support_does_not_depend_on_its_own_weight():
    X, theta, rows = problem(5)
    supports = []
    for scale in (0.1, 1.0, 4.0):
        mine = rows.copy()
        mine[2, 2] *= scale
        supports.append(judge(theta, X, preferences=mine).support[2])
    np.testing.assert_allclose(supports, supports[0], atol=1e-9)


def test_evidence_without_a_relation_follows_from_its_support():
    # Z(w) = A e^w + B: taking e out changes log Z by log(p_same e^-w + p_apart).
    X, theta, rows = problem(8)
    side = SideInformation.build(len(X), preferences=rows)
    found = judge(theta, X, preferences=rows)
    e = 1
    others = SideInformation.build(len(X), preferences=np.delete(rows, e, axis=0))
    log_z = [AUTO(s.graph)(node_unaries(X, theta, s)).log_z for s in (side, others)]
    w = rows[e, 2]
    log_odds = np.sign(w) * found.log_odds[e]
    p_same = 1 / (1 + np.exp(-log_odds))
    assert log_z[1] - log_z[0] == pytest.approx(np.log(p_same * np.exp(-w) + 1 - p_same), abs=1e-9)


def test_wrong_relations_come_first_on_separate_classes():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 40)
    X = rng.normal(size=(120, 2)) + 7 * np.array([[0, 0], [1, 0], [0, 1]])[y]
    true = scenarios.random_pairs(y, 50, random_state=0)
    said = scenarios.flip(true, 0.2, random_state=0)
    rows = scenarios.preferences(*said, certainty=0.9)
    together = y[rows[:, 0].astype(int)] == y[rows[:, 1].astype(int)]
    wrong = together != (rows[:, 2] > 0)
    model = ConstrainedGaussianMixture(3, random_state=0, n_init=3).fit(X, preferences=rows)
    found = judge(model, X, preferences=rows)
    assert 5 < wrong.sum() < 20
    assert set(found.order[: wrong.sum()]) == set(np.flatnonzero(wrong))
    assert ((found.log_odds < 0) == wrong).all()
    assert ((found.wrong > 0.5) == wrong).all()
    assert found.wrong.mean() == expected_flip_rate(found.log_odds)
    assert expected_flip_rate(found.log_odds) == pytest.approx(wrong.mean(), abs=0.01)


@pytest.mark.parametrize("q", [0.1, 0.3])
def test_the_expected_flip_rate_is_the_maximum_of_the_evidence_of_points_and_relations(q):
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1], 60)
    X = rng.normal(size=(120, 1)) + 3 * y[:, None]
    theta = Parameters(np.full(2, 0.5), np.array([[0.0], [3.0]]), np.ones((2, 1, 1)))
    said = scenarios.flip(scenarios.random_pairs(y, 60, random_state=1), q, random_state=1)

    def cost(rate):
        # [lu2007, eq. 2.15] with its constants: a broken relation has the probability q.
        rows = scenarios.preferences(*said, certainty=1 - rate)
        side = SideInformation.build(len(X), preferences=rows)
        n_must, n_cannot = map(len, said)
        log_z = AUTO(side.graph)(node_unaries(X, theta, side)).log_z
        return -(log_z + n_must * np.log(rate) + n_cannot * np.log1p(-rate))

    best = minimize_scalar(cost, bounds=(1e-3, 0.49), method="bounded", options={"xatol": 1e-8}).x
    rate = 0.2
    for _ in range(200):
        rows = scenarios.preferences(*said, certainty=1 - rate)
        rate = expected_flip_rate(judge(theta, X, preferences=rows).log_odds)
    assert rate == pytest.approx(best, abs=1e-5)


def test_nothing_said_of_a_relation_by_points_on_the_border():
    found = judge(THETA, np.zeros((2, 1)), preferences=[[0, 1, 1.7]])
    assert found.support[0] == pytest.approx(0, abs=1e-12)
    assert found.log_odds[0] == pytest.approx(1.7)


# ---------------------------------------------------------------------------- doubts


def doubted(seed, sep=2.5, q=0.0):
    """Whether relations of 90 points in three classes, true or flipped, are doubted."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=90)
    corners = sep * np.array([[0, 0], [1, 0], [0, 1]])
    X = rng.normal(size=(90, 2)) + corners[y]
    said = scenarios.flip(scenarios.random_pairs(y, 30, random_state=rng), q, random_state=rng)
    model = ConstrainedGaussianMixture(
        3, covariance_type="spherical", means_init=corners, init_params="k-means++"
    )
    return bool(doubts(model.fit(X, **said._asdict()), X, **said._asdict(), false_alarms=0.05))


def test_true_relations_are_doubted_as_rarely_as_stated_and_wrong_ones_mostly():
    # A count of 60 at a rate of 0.05 at most is above 8 in one of 500 tests.
    assert sum(doubted(seed) for seed in range(60)) <= 8
    assert sum(doubted(seed, sep=6, q=0.1) for seed in range(20)) >= 18


def test_the_ratio_of_a_right_relation_has_expectation_one():
    """At the θ that made the points, which is what bounds the rate of false alarms."""
    rng = np.random.default_rng(0)
    theta = THETA._replace(weights=np.array([0.3, 0.7]))
    z = rng.choice(2, size=100_000, p=theta.weights)
    X = rng.normal(size=(100_000, 1)) + theta.means[z]
    pairs = np.arange(100_000).reshape(-1, 2)
    said = np.column_stack([pairs, z[pairs[:, 0]] == z[pairs[:, 1]]]).astype(int)
    for kind in (0, 1):
        ratios = np.exp(_log_ratios(theta, X, said[said[:, 2] == kind]))
        error = ratios.std() / np.sqrt(len(ratios))
        assert abs(ratios.mean() - 1) < 4 * error


def test_a_covariance_is_doubted_where_points_are_too_few_for_it():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 15)) + 4 * np.repeat([[0], [1]], 30, axis=0)
    healthy = ConstrainedGaussianMixture(2, random_state=0).fit(X)
    assert doubts(healthy, X) == []
    few = np.concatenate([X[:10], X[30:]])
    thin = ConstrainedGaussianMixture(2, random_state=0).fit(few)
    assert "reg_covar" in doubts(thin, few)[0]


# ---------------------------------------------------------------------------- bad input


@pytest.mark.parametrize("w", [0.0, np.inf, -np.inf, np.nan])
def test_what_cannot_be_judged_is_refused(w):
    X, theta, rows = problem(0)
    rows[2, 2] = w
    with pytest.raises(ValueError, match=r"preferences\[2\] has the log-odds"):
        judge(theta, X, must_link=[[0, 1]], preferences=rows)


def test_a_point_that_does_not_exist_is_named():
    X, theta, rows = problem(0)
    rows[1, 0] = 99
    with pytest.raises(ValueError, match=r"preferences\[1\] is \[99"):
        judge(theta, X, preferences=rows)


def test_no_relation_has_no_rate():
    with pytest.raises(ValueError, match="no relation"):
        expected_flip_rate([])
