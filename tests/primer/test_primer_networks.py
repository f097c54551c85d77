"""Test that the primer's functions of chapters 7 to 9 and 14 agree with the package.

Letters: J: number of nodes; K: number of states; eta (K,): logarithms of the weights π.
"""

import itertools
from functools import partial

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from primer_problems import (
    SEEDS,
    SLOPE_ERROR,
    compare_em_steps,
    draw_network,
    draw_related_points,
    draw_theta,
    enumerate_all,
    enumerate_assignments,
    given_examples,
)
from scipy.special import expit, log_expit, logsumexp

from cgmm import primer
from cgmm.diagnose import judge, log_odds_together
from cgmm.inference import ENGINES, min_fill
from cgmm.inference.clique import clique
from cgmm.inference.junction_tree import junction_tree
from cgmm.mixture import Parameters, Prior, match_counts
from cgmm.mixture.prior import PairwisePrior
from cgmm.network import Graph, connected_components, simplify, spanning_forest
from cgmm.scenarios import certainty_from_weight, preferences, weight_from_certainty

SIZES = {"seed": SEEDS, "J": st.integers(1, 5), "K": st.integers(2, 3)}
HARD = {"p_hard": 0.5, "p_masked": 0.2}


# ---------------------------------------------------------------------------- chapter 7


@given_examples(**SIZES)
def test_product_of_factors_equals_the_weight_of_every_assignment(seed, J, K):
    rng = np.random.default_rng(seed)
    net, order = draw_network(rng, J, K, **HARD), rng.permutation(J).tolist()
    enumeration = enumerate_all(*net)
    nodes, logs = primer.multiply(primer.factors(*net), order)
    assert nodes == order
    ours = logs[tuple(enumeration.z[:, order].T)]
    np.testing.assert_allclose(ours, enumeration.log_weights, rtol=1e-12, atol=1e-12)
    kept = [j for j in order if rng.random() < 0.5]
    p = enumeration.p.reshape((K,) * J).transpose(order)
    summed = primer.marginal(kept, order, p)
    removed = tuple(order.index(j) for j in order if j not in kept)
    np.testing.assert_allclose(summed, p.sum(axis=removed), rtol=1e-12)


@given_examples(**SIZES)
def test_elimination_equals_the_junction_tree(seed, J, K):
    net = draw_network(np.random.default_rng(seed), J, K, **HARD)
    tree = junction_tree(net.graph)
    theirs, q = tree(net.u), primer.marginals(*net)
    assert primer.log_z(*net) == pytest.approx(theirs.log_z, rel=1e-10, abs=1e-10)
    np.testing.assert_allclose(q, theirs.nodes, atol=1e-10)
    np.testing.assert_allclose(primer.marginals_by_slope(*net), q, atol=SLOPE_ERROR)
    np.testing.assert_array_equal(primer.most_probable(*net), tree.most_probable(net.u))


@given_examples(SEEDS, st.integers(1, 8))
def test_min_fill_order_is_that_of_the_package(seed, J):
    edges = draw_network(np.random.default_rng(seed), J, 2).edges
    order, with_edges = primer.min_fill(J, edges), set(edges.ravel().tolist())
    theirs = min_fill(edges, np.arange(J), J)
    neighbours = primer.neighbours(J, edges)
    steps = [(v, primer.take_out(neighbours, v)) for v in order]
    assert [step for step in steps if step[0] in with_edges] == theirs
    assert primer.induced_width(J, edges, order) == max(len(clique) for _, clique in steps)


@given_examples(**SIZES)
def test_spanning_tree_is_that_of_the_package(seed, J, K):
    graph = simplify(draw_network(np.random.default_rng(seed), J, K, p_hard=0.3).graph)
    kept = primer.spanning_tree(J, graph.edges, graph.weights)
    np.testing.assert_array_equal(graph.edges[kept], spanning_forest(graph).edges)


@settings(max_examples=10)
@given(SEEDS, st.integers(1, 4), st.integers(4, 5))
def test_log_normaliser_of_a_clique_is_that_of_the_package(seed, J, K):
    u = 3 * np.random.default_rng(seed).normal(size=(J, K))
    edges = np.array(list(itertools.combinations(range(J), 2)), dtype=int).reshape(-1, 2)
    theirs = clique(Graph(J, edges, np.full(len(edges), -np.inf)))(u)
    assert primer.clique_log_z(u) == pytest.approx(theirs.log_z, rel=1e-10)


@given_examples(SEEDS, st.integers(1, 6))
# With this seed there is a cycle of cannot-links.
@example(seed=17, J=6)
def test_cannot_linked_parts_of_two_states_are_contracted_to_one_node(seed, J):
    net = draw_network(np.random.default_rng(seed), J, 2, p_hard=0.6)
    hard = np.isinf(net.w)
    part, parity = primer.mirror_images(J, net.edges[hard])
    soft = primer.contract(net.u, net.edges[~hard], net.w[~hard], part, parity)
    parts = connected_components(Graph(J, net.edges[hard], net.w[hard]))
    assert len(soft[0]) == parts.max() + 1
    ours = enumerate_all(*soft[:3]).log_z + soft[3]
    assert ours == pytest.approx(enumerate_all(*net).log_z, rel=1e-10, abs=1e-10)


# ---------------------------------------------------------------------------- chapter 8


@given_examples(SEEDS, st.integers(2, 3))
def test_prior_and_pseudo_likelihood_are_those_of_the_package(seed, K):
    rng = np.random.default_rng(seed)
    known, eta = draw_related_points(rng, 6, K, 2), np.log(rng.dirichlet(np.ones(K)))
    side, chunklet = known.side(), primer.closure(6, known.must)
    graph = simplify(Graph(chunklet.max() + 1, *known.edges_between(chunklet)))
    net = primer.if_points_are_sampled(chunklet), graph.edges, graph.weights
    for log_z, counts, theirs in (
        (primer.prior_log_z, primer.prior_counts, Prior(side, ENGINES["exact"])),
        (primer.pseudo_log_z, primer.pseudo_counts, PairwisePrior(side)),
    ):
        ours = log_z(eta, *net), *counts(eta, *net)
        their_log_z, their_counts = theirs.log_z_and_counts(eta)
        np.testing.assert_allclose(ours, [their_log_z, *their_counts], rtol=1e-9, atol=1e-9)
        slopes = primer.derivative(lambda eta, log_z=log_z: log_z(eta, *net), eta)
        np.testing.assert_allclose(slopes, ours[1:], atol=10 * SLOPE_ERROR)
    # For disjoint edges the pseudo-likelihood is exact.
    net = rng.integers(1, 4, size=5), np.array([[0, 1], [2, 3]]), np.array([-np.inf, rng.normal()])
    exact = primer.prior_log_z(eta, *net)
    assert primer.pseudo_log_z(eta, *net) == pytest.approx(exact, rel=1e-9, abs=1e-9)


@settings(max_examples=12)
@given(SEEDS, st.integers(2, 4), st.sampled_from([0.0, 3.0]))
@example(seed=5, K=2, spread=3.0)
def test_newton_matches_expected_counts(seed, K, spread):
    """Newton's method must find weights for counts near their bounds, and for large chunklets."""
    rng = np.random.default_rng(seed)
    net = draw_network(rng, J=4, K=K, p_hard=0.6)
    edgeless = np.empty((0, 2), dtype=int), np.empty(0)
    for edges, w, max_size in ((net.edges, net.w, 4), (*edgeless, 9)):
        n = rng.integers(1, max_size, size=4)

        counts = partial(primer.prior_counts, n=n, edges=edges, w=w)
        C = counts(rng.normal(size=K) * spread)
        weights = primer.newton(C, counts)
        np.testing.assert_allclose(counts(np.log(weights)), C, atol=1e-7)


@settings(max_examples=8)
@given(SEEDS, st.integers(2, 3), st.sampled_from(["points", "chunklets"]))
def test_em_with_relations_takes_the_steps_of_the_package(seed, K, sampling):
    rng = np.random.default_rng(seed)
    theta, known = draw_theta(rng, K, 1), draw_related_points(rng, 6, K, 1)
    # The start must have a shared covariance, or no step with a shared one may reach its evidence.
    theta = theta._replace(covariances=np.repeat(theta.covariances[:1], K, axis=0))
    chunklet = primer.closure(6, known.must)
    multiplicities = primer.if_points_are_sampled, primer.if_chunklets_are_sampled
    n, net = multiplicities[sampling == "chunklets"](chunklet), known.edges_between(chunklet)
    steps = list(primer.constrained_em(known.X, theta, chunklet, n, *net, primer.tied, 2))
    assert steps[1][1] >= steps[0][1] - 1e-7
    side = known.side(sampling)
    update = match_counts(Prior(side, ENGINES["exact"]))
    pairs = list(compare_em_steps(steps, known.X, theta, side, "tied", update, "exact"))
    start, (log_evidence, weights, *moments) = pairs[:4], pairs[4:]
    for ours, theirs in (*start, *moments):
        np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-7)
    # The evidence is compared only if both searches for weights ended at the same counts. They may
    # differ if the maximum is at a weight of zero, or if counts hardly depend on the weights.
    counts = [primer.prior_counts(np.log(pi + 1e-300), n, *net) for pi in weights]
    if np.abs(counts[0] - counts[1]).max() < 1e-7:
        assert log_evidence[0] == pytest.approx(log_evidence[1], abs=1e-5)


# ---------------------------------------------------------------------------- chapters 9 and 14


@given_examples(SEEDS, st.integers(1, 5))
def test_log_weights_are_the_log_odds_of_certainties(seed, E):
    rng = np.random.default_rng(seed)
    gamma, are_together = rng.uniform(0.5, 1, size=E), rng.random(E) < 0.5
    w = primer.log_weights(are_together, gamma)
    np.testing.assert_allclose(np.abs(w), weight_from_certainty(gamma), rtol=1e-9)
    np.testing.assert_allclose(certainty_from_weight(np.abs(w)), primer.certainty(w), rtol=1e-9)
    pairs = rng.integers(9, size=(E, 2))
    order = np.argsort(~are_together, kind="stable")
    rows = preferences(pairs[are_together], pairs[~are_together], certainty=gamma[order])
    np.testing.assert_allclose(rows[:, 2], w[order], rtol=1e-9)


@given_examples(**SIZES)
def test_log_probability_of_answers_equals_enumeration(seed, J, K):
    u, edges, w = draw_network(np.random.default_rng(seed), J, K)
    z = enumerate_assignments(J, K)
    same = z[:, edges[:, 0]] == z[:, edges[:, 1]]
    # An answer agrees with z if (same) == (w > 0), which has the probability γ = expit(|w|).
    log_probabilities = log_expit(np.abs(w)), log_expit(-np.abs(w))
    log_answers = np.where(same == (w > 0), *log_probabilities).sum(axis=1)
    total = logsumexp(u[range(J), z].sum(axis=1) + log_answers)
    assert primer.log_p_of_answers(u, edges, w) == pytest.approx(total, rel=1e-10, abs=1e-10)


@given_examples(SEEDS, st.integers(2, 3))
def test_support_of_relations_is_that_of_judge(seed, K):
    rng = np.random.default_rng(seed)
    theta, X = draw_theta(rng, K, 1), rng.normal(size=(4, 1))
    edges, w = np.array([[0, 1], [1, 2], [0, 2], [2, 3]]), rng.normal(size=4)
    u, graph = primer.log_joint(X, theta), Graph(4, edges, w)
    together = log_odds_together(junction_tree(graph), u, graph, edges)
    np.testing.assert_allclose(primer.p_together(u, edges, w), expit(together), atol=SLOPE_ERROR)
    judgement = judge(Parameters(*theta), X, preferences=np.column_stack([edges, w]))
    # Finite differences are precise enough unless a probability is below e^-8.
    is_precise = np.abs(judgement.log_odds) < 8
    support = primer.support(u, edges, w)
    np.testing.assert_allclose(support[is_precise], judgement.support[is_precise], atol=1e-3)
