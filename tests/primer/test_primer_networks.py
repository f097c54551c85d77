"""The primer's functions of chapters 7 to 9 and 14 agree with enumeration and the package."""

import itertools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from primer_problems import (
    SEEDS,
    SLOPE,
    assignments,
    courses,
    enumerate_all,
    examples,
    mixture,
    network,
    related,
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


@examples(**SIZES)
def test_factors_multiply_to_the_weight_of_every_assignment(seed, J, K):
    rng = np.random.default_rng(seed)
    net, order = network(rng, J, K, **HARD), rng.permutation(J).tolist()
    everything = enumerate_all(*net)
    nodes, logs = primer.multiply(primer.factors(*net), order)
    assert nodes == order
    found = logs[tuple(everything.z[:, order].T)]
    np.testing.assert_allclose(found, everything.log_weights, rtol=1e-12, atol=1e-12)
    kept = [j for j in order if rng.random() < 0.5]
    p = everything.p.reshape((K,) * J).transpose(order)
    summed = primer.marginal(kept, order, p)
    lost = tuple(order.index(j) for j in order if j not in kept)
    np.testing.assert_allclose(summed, p.sum(axis=lost), rtol=1e-12)


@examples(**SIZES)
def test_elimination_is_that_of_the_junction_tree(seed, J, K):
    net = network(np.random.default_rng(seed), J, K, **HARD)
    tree = junction_tree(net.graph)
    theirs, q = tree(net.u), primer.marginals(*net)
    assert primer.log_z(*net) == pytest.approx(theirs.log_z, rel=1e-10, abs=1e-10)
    np.testing.assert_allclose(q, theirs.nodes, atol=1e-10)
    np.testing.assert_allclose(primer.marginals_by_slope(*net), q, atol=SLOPE)
    np.testing.assert_array_equal(primer.most_probable(*net), tree.most_probable(net.u))


@examples(SEEDS, st.integers(1, 8))
def test_the_order_fills_in_as_little_as_it_can(seed, J):
    edges = network(np.random.default_rng(seed), J, 2).edges
    order, tied = primer.min_fill(J, edges), set(edges.ravel().tolist())
    theirs = min_fill(edges, np.arange(J), J)
    left = primer.neighbours(J, edges)
    steps = [(v, primer.take_out(left, v)) for v in order]
    assert [step for step in steps if step[0] in tied] == theirs
    assert primer.induced_width(J, edges, order) == max(len(near) for _, near in steps)


@examples(**SIZES)
def test_the_kept_edges_are_the_heaviest_forest_of_the_package(seed, J, K):
    graph = simplify(network(np.random.default_rng(seed), J, K, p_hard=0.3).graph)
    kept = primer.spanning_tree(J, graph.edges, graph.weights)
    np.testing.assert_array_equal(graph.edges[kept], spanning_forest(graph).edges)


@settings(max_examples=10)
@given(SEEDS, st.integers(1, 4), st.integers(4, 5))
def test_a_clique_is_summed_by_classes_taken(seed, J, K):
    u = 3 * np.random.default_rng(seed).normal(size=(J, K))
    edges = np.array(list(itertools.combinations(range(J), 2)), dtype=int).reshape(-1, 2)
    theirs = clique(Graph(J, edges, np.full(len(edges), -np.inf)))(u)
    assert primer.clique_log_z(u) == pytest.approx(theirs.log_z, rel=1e-10)


@examples(SEEDS, st.integers(1, 6))
@example(seed=17, J=6)  # Cannot-links in a ring.
def test_a_component_of_two_states_is_one_node_and_its_mirror_image(seed, J):
    net = network(np.random.default_rng(seed), J, 2, p_hard=0.6)
    hard = np.isinf(net.w)
    part, parity = primer.mirror_images(J, net.edges[hard])
    soft = primer.contract(net.u, net.edges[~hard], net.w[~hard], part, parity)
    parts = connected_components(Graph(J, net.edges[hard], net.w[hard]))
    assert len(soft[0]) == parts.max() + 1
    found = enumerate_all(*soft[:3]).log_z + soft[3]
    assert found == pytest.approx(enumerate_all(*net).log_z, rel=1e-10, abs=1e-10)


# ---------------------------------------------------------------------------- chapter 8


@examples(SEEDS, st.integers(2, 3))
def test_the_prior_network_and_pseudo_likelihood_are_those_of_the_package(seed, K):
    rng = np.random.default_rng(seed)
    known, eta = related(rng, 6, K, 2), np.log(rng.dirichlet(np.ones(K)))
    side, chunklet = known.side(), primer.closure(6, known.must)
    graph = simplify(Graph(chunklet.max() + 1, *known.edges_of(chunklet)))
    net = primer.if_points_are_sampled(chunklet), graph.edges, graph.weights
    for log_z, counts, theirs in (
        (primer.prior_log_z, primer.prior_counts, Prior(side, ENGINES["exact"])),
        (primer.pseudo_log_z, primer.pseudo_counts, PairwisePrior(side)),
    ):
        found = log_z(eta, *net), *counts(eta, *net)
        expected, their_counts = theirs.log_z_and_counts(eta)
        np.testing.assert_allclose(found, [expected, *their_counts], rtol=1e-9, atol=1e-9)
        slopes = primer.derivative(lambda eta, log_z=log_z: log_z(eta, *net), eta)
        np.testing.assert_allclose(slopes, found[1:], atol=10 * SLOPE)
    # For disjoint edges both are one.
    net = rng.integers(1, 4, size=5), np.array([[0, 1], [2, 3]]), np.array([-np.inf, rng.normal()])
    exactly = primer.prior_log_z(eta, *net)
    assert primer.pseudo_log_z(eta, *net) == pytest.approx(exactly, rel=1e-9, abs=1e-9)


@settings(max_examples=12)
@given(SEEDS, st.integers(2, 4), st.sampled_from([0.0, 3.0]))
@example(seed=5, K=2, spread=3.0)
def test_newton_ends_where_counts_match(seed, K, spread):
    """Include counts near their bounds, and large chunklets that move as one."""
    rng = np.random.default_rng(seed)
    net = network(rng, J=4, K=K, p_hard=0.6)
    loose = np.empty((0, 2), dtype=int), np.empty(0)
    for edges, w, most in ((net.edges, net.w, 4), (*loose, 9)):
        n = rng.integers(1, most, size=4)

        def counts(eta, known=(n, edges, w)):
            return primer.prior_counts(eta, *known)

        C = counts(rng.normal(size=K) * spread)
        found = primer.newton(C, counts)
        np.testing.assert_allclose(counts(np.log(found)), C, atol=1e-7)


@settings(max_examples=8)
@given(SEEDS, st.integers(2, 3), st.sampled_from(["points", "chunklets"]))
def test_em_with_relations_climbs_as_the_package_does(seed, K, sampling):
    rng = np.random.default_rng(seed)
    theta, known = mixture(rng, K, 1), related(rng, 6, K, 1)
    # Start from a shared covariance: another start may be better than any step with a shared one.
    theta = theta._replace(covariances=np.repeat(theta.covariances[:1], K, axis=0))
    chunklet = primer.closure(6, known.must)
    draws = primer.if_points_are_sampled, primer.if_chunklets_are_sampled
    n, net = draws[sampling == "chunklets"](chunklet), known.edges_of(chunklet)
    course = list(primer.constrained_em(known.X, theta, chunklet, n, *net, primer.tied, 2))
    assert course[1][1] >= course[0][1] - 1e-7
    side = known.side(sampling)
    update = match_counts(Prior(side, ENGINES["exact"]))
    pairs = list(courses(course, known.X, theta, side, "tied", update, "exact"))
    (_, *start), (height, weights, *rest) = pairs[:4], pairs[4:]
    for mine, theirs in (pairs[0], *start, *rest):
        np.testing.assert_allclose(mine, theirs, rtol=1e-7, atol=1e-7)
    # The maximum may be at a weight of zero, which steps only approach; and where counts hardly
    # depend on weights, searches that stop at slopes of 1e-8 stop at different points.
    counts = [primer.prior_counts(np.log(pi + 1e-300), n, *net) for pi in weights]
    if np.abs(counts[0] - counts[1]).max() < 1e-7:
        assert height[0] == pytest.approx(height[1], abs=1e-5)


# ---------------------------------------------------------------------------- chapters 9 and 14


@examples(SEEDS, st.integers(1, 5))
def test_a_weight_is_the_log_odds_of_the_certainty(seed, E):
    rng = np.random.default_rng(seed)
    gamma, are_together = rng.uniform(0.5, 1, size=E), rng.random(E) < 0.5
    w = primer.log_weights(are_together, gamma)
    np.testing.assert_allclose(np.abs(w), weight_from_certainty(gamma), rtol=1e-9)
    np.testing.assert_allclose(certainty_from_weight(np.abs(w)), primer.certainty(w), rtol=1e-9)
    pairs = rng.integers(9, size=(E, 2))
    order = np.argsort(~are_together, kind="stable")
    rows = preferences(pairs[are_together], pairs[~are_together], certainty=gamma[order])
    np.testing.assert_allclose(rows[:, 2], w[order], rtol=1e-9)


@examples(**SIZES)
def test_answers_as_data_are_weighed_by_what_each_says(seed, J, K):
    u, edges, w = network(np.random.default_rng(seed), J, K)
    z = assignments(J, K)
    same = z[:, edges[:, 0]] == z[:, edges[:, 1]]
    # An answer is right with probability γ, whatever it says: (same) == (w > 0).
    right = log_expit(np.abs(w)), log_expit(-np.abs(w))
    log_answers = np.where(same == (w > 0), *right).sum(axis=1)
    total = logsumexp(u[range(J), z].sum(axis=1) + log_answers)
    assert primer.log_p_of_answers(u, edges, w) == pytest.approx(total, rel=1e-10, abs=1e-10)


@examples(SEEDS, st.integers(2, 3))
def test_support_is_that_of_judge(seed, K):
    rng = np.random.default_rng(seed)
    theta, X = mixture(rng, K, 1), rng.normal(size=(4, 1))
    edges, w = np.array([[0, 1], [1, 2], [0, 2], [2, 3]]), rng.normal(size=4)
    u, graph = primer.log_joint(X, theta), Graph(4, edges, w)
    together = log_odds_together(junction_tree(graph), u, graph, edges)
    np.testing.assert_allclose(primer.p_together(u, edges, w), expit(together), atol=SLOPE)
    verdict = judge(Parameters(*theta), X, preferences=np.column_stack([edges, w]))
    # Finite differences give a probability of e^-8 to four digits.
    plain = np.abs(verdict.log_odds) < 8
    found = primer.support(u, edges, w)
    np.testing.assert_allclose(found[plain], verdict.support[plain], atol=1e-3)
