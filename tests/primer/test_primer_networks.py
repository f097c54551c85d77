"""Chapters 7 to 9 by hand: against sums over every assignment, and against the package."""

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from primer_problems import (
    FEW,
    SEEDS,
    SLOPE,
    assignments,
    enumerate_all,
    mixture,
    network,
    related,
)
from scipy.special import expit, log_expit, logit, logsumexp
from test_primer_mixtures import assert_same_course, production_em

from cgmm import primer
from cgmm.diagnose import judge, log_odds_together
from cgmm.inference import ENGINES, min_fill
from cgmm.inference.clique import clique
from cgmm.inference.junction_tree import junction_tree
from cgmm.inference.mirror import contract_mirrored
from cgmm.mixture import Parameters, Prior, exact, prior_unaries, pseudo_likelihood
from cgmm.mixture.prior import PairwisePrior
from cgmm.network import Graph, SideInformation, log_weight, simplify, spanning_forest
from cgmm.scenarios import certainty_from_weight, preferences, weight_from_certainty

SIZES = {"seed": SEEDS, "J": st.integers(1, 5), "K": st.integers(2, 3)}
HARD = {"p_hard": 0.5, "p_masked": 0.2}


# ---------------------------------------------------------------------------- chapter 7


@FEW
@given(**SIZES)
def test_factors_multiply_to_the_weight_of_every_assignment(seed, J, K):
    rng = np.random.default_rng(seed)
    net = network(rng, J, K, **HARD)
    everything, some = enumerate_all(*net), primer.factors(*net)
    total = np.zeros(len(everything.z))
    for names, table in some:
        assert table.shape == (K,) * len(names)
        total = total + table[tuple(everything.z[:, names].T)]
    np.testing.assert_allclose(total, everything.log_weights, rtol=1e-12, atol=1e-12)
    order = rng.permutation(J).tolist()
    nodes, logs = primer.multiply(some, order)
    assert nodes == order
    np.testing.assert_allclose(logs[tuple(everything.z[:, order].T)], total, rtol=1e-12)
    z = rng.integers(K, size=J)
    assert logs[tuple(z[order])] == pytest.approx(log_weight(net.graph, net.u, z), rel=1e-12)


@FEW
@given(**SIZES)
def test_elimination_sums_over_every_assignment(seed, J, K):
    net = network(np.random.default_rng(seed), J, K, **HARD)
    everything = enumerate_all(*net)
    assert primer.log_z(*net) == pytest.approx(everything.log_z, rel=1e-12, abs=1e-12)
    q = primer.marginals(*net)
    np.testing.assert_allclose(q, everything.marginals(K), atol=1e-12)
    np.testing.assert_allclose(primer.marginals_by_slope(*net), q, atol=SLOPE)
    theirs = junction_tree(net.graph)(net.u)
    assert primer.log_z(*net) == pytest.approx(theirs.log_z, rel=1e-10, abs=1e-10)
    np.testing.assert_allclose(q, theirs.nodes, atol=1e-10)


@FEW
@given(**SIZES)
def test_a_clique_tells_a_node_from_those_after_it_in_any_order(seed, J, K):
    rng = np.random.default_rng(seed)
    net = network(rng, J, K, p_hard=0.3)
    everything, order = enumerate_all(*net), rng.permutation(J).tolist()
    largest, _ = primer.eliminate(*net, order, np.maximum.reduce)
    assert largest == pytest.approx(everything.log_weights.max(), rel=1e-12)
    log_z, cliques = primer.eliminate(*net, order, np.logaddexp.reduce)
    assert log_z == pytest.approx(everything.log_z, rel=1e-10, abs=1e-10)
    widths = [len(nodes) - 1 for nodes, _ in cliques.values()]
    assert max(widths) == primer.induced_width(J, net.edges, order)
    p = everything.p.reshape((K,) * J).transpose(order)
    for place, j in enumerate(order):
        nodes, clique = cliques[j]
        assert nodes[0] == j
        # The clique of the first of S has all of S: the sweep back rests on that.
        assert set(nodes[1:]) <= set(cliques[nodes[1]][0] if nodes[1:] else ())
        after = p.sum(axis=tuple(range(place)))
        total = after.sum(axis=0)
        axes = tuple(slice(None) if v in nodes else np.newaxis for v in order[place:])
        np.testing.assert_allclose(primer.given_later(clique)[axes] * total, after, atol=1e-10)


def test_a_tree_of_six_hundred_nodes():
    rng = np.random.default_rng(0)
    edges = np.array([[j, rng.integers(j)] for j in range(1, 600)])
    u, w = rng.normal(size=(600, 3)), rng.choice([-np.inf, 1.0], 599)
    theirs = junction_tree(Graph(600, edges, w))
    assert primer.log_z(u, edges, w) == pytest.approx(theirs(u).log_z, rel=1e-12)
    np.testing.assert_allclose(primer.marginals(u, edges, w), theirs(u).nodes, atol=1e-12)
    np.testing.assert_array_equal(primer.most_probable(u, edges, w), theirs.most_probable(u))


@FEW
@given(**SIZES)
def test_a_distribution_is_summed_over_what_is_not_kept(seed, J, K):
    rng = np.random.default_rng(seed)
    nodes = rng.permutation(2 * J)[:J].tolist()
    p, kept = rng.random((K,) * J), [v for v in nodes if rng.random() < 0.5]
    left, found = nodes, p
    for v in set(nodes) - set(kept):
        found = found.sum(axis=left.index(v))
        left = [other for other in left if other != v]
    np.testing.assert_allclose(primer.marginal(kept, nodes, p), found, rtol=1e-12)


@FEW
@given(**SIZES)
def test_the_most_probable_assignment_is_the_best_of_all(seed, J, K):
    net = network(np.random.default_rng(seed), J, K, **HARD)
    everything, z = enumerate_all(*net), primer.most_probable(*net)
    best = everything.log_weights.max()
    assert log_weight(net.graph, net.u, z) == pytest.approx(best, rel=1e-12)
    np.testing.assert_array_equal(z, junction_tree(net.graph).most_probable(net.u))


@FEW
@given(SEEDS, st.integers(1, 3), st.integers(1, 3))
def test_slopes_of_a_quadratic_are_those_of_calculus(seed, m, n):
    rng = np.random.default_rng(seed)
    x, A = rng.normal(size=(m, n)), rng.normal(size=(2, m * n, m * n))

    def form(x):
        return np.einsum("i,cij,j->c", x.ravel(), A, x.ravel())

    by_calculus = np.einsum("cij,j->ic", A + A.transpose(0, 2, 1), x.ravel()).reshape(m, n, 2)
    np.testing.assert_allclose(primer.derivative(form, x), by_calculus, atol=1e-8)
    alone = primer.derivative(lambda x: form(x)[0], x)
    np.testing.assert_allclose(alone, by_calculus[..., 0], atol=1e-8)


@FEW
@given(SEEDS, st.integers(1, 8))
def test_the_order_fills_in_as_little_as_it_can(seed, J):
    edges = network(np.random.default_rng(seed), J, 2).edges
    order = primer.min_fill(J, edges)
    left, steps, mine = nx.Graph(edges.tolist()), [], primer.neighbours(J, edges)
    left.add_nodes_from(range(J))
    for v in order:
        assert mine == {u: set(left[u]) for u in left}
        missing = {u: len(list(nx.non_edges(left.subgraph(left[u])))) for u in left}
        assert missing[v] == min(missing.values())
        assert len(primer.fill_ins(mine, v)) == missing[v]
        steps.append((v, set(left[v])))
        left.add_edges_from(itertools.combinations(left[v], 2))
        left.remove_node(v)
        assert primer.take_out(mine, v) == steps[-1][1]
    assert len(left) == 0
    assert primer.induced_width(J, edges, order) == max(len(near) for _, near in steps)
    tied = set(edges.ravel().tolist())
    theirs = min_fill(edges, np.arange(J), J)
    assert [step for step in steps if step[0] in tied] == theirs


@FEW
@given(**SIZES)
def test_the_kept_edges_are_a_heaviest_forest(seed, J, K):
    net = network(np.random.default_rng(seed), J, K, p_hard=0.3)
    graph = simplify(net.graph)
    kept = primer.spanning_tree(J, graph.edges, graph.weights)
    forest, made = nx.Graph(), nx.Graph()
    for some, rows in ((forest, kept), (made, range(len(graph.edges)))):
        some.add_nodes_from(range(J))
        for e in rows:
            some.add_edge(*graph.edges[e], weight=min(abs(graph.weights[e]), 1e6))
    assert nx.is_forest(forest)
    heaviest = nx.maximum_spanning_tree(made)
    assert forest.size("weight") == pytest.approx(heaviest.size("weight"), rel=1e-12)
    np.testing.assert_array_equal(graph.edges[kept], spanning_forest(graph).edges)


@settings(max_examples=10)
@given(SEEDS, st.integers(1, 4), st.integers(4, 5))
def test_a_clique_is_summed_by_classes_taken(seed, J, K):
    u = 3 * np.random.default_rng(seed).normal(size=(J, K))
    edges = np.array(list(itertools.combinations(range(J), 2)), dtype=int).reshape(-1, 2)
    hard = np.full(len(edges), -np.inf)
    found = primer.clique_log_z(u)
    assert found == pytest.approx(enumerate_all(u, edges, hard).log_z, rel=1e-10)
    theirs = clique(Graph(J, edges, hard))(u)
    assert found == pytest.approx(theirs.log_z, rel=1e-10)
    slopes = primer.derivative(primer.clique_log_z, u)
    np.testing.assert_allclose(slopes, theirs.nodes, atol=SLOPE)


@FEW
@given(SEEDS, st.integers(1, 6))
def test_a_component_of_two_states_is_one_node_and_its_mirror_image(seed, J):
    net = network(np.random.default_rng(seed), J, 2, p_hard=0.6)
    hard = np.isinf(net.w)
    part, parity = primer.mirror_images(J, net.edges[hard])
    soft = primer.contract(net.u, net.edges[~hard], net.w[~hard], part, parity)
    found = enumerate_all(*soft[:3]).log_z + soft[3]
    assert found == pytest.approx(enumerate_all(*net).log_z, rel=1e-10, abs=1e-10)
    mirror = contract_mirrored(simplify(net.graph))
    if mirror is not None:
        theirs = enumerate_all(mirror.enter(net.u), mirror.graph.edges, mirror.graph.weights)
        assert found == pytest.approx(theirs.log_z + mirror.constant, rel=1e-10, abs=1e-10)
        # The same parts, which may be named by another of their members.
        assert part.max() + 1 == mirror.graph.n_nodes
        a, b = np.triu_indices(J)
        together = part[a] == part[b]
        differ = (parity[a] != parity[b])[together]
        np.testing.assert_array_equal(differ, (mirror.parity[a] != mirror.parity[b])[together])


# ---------------------------------------------------------------------------- chapter 8


def prior_of(seed, K):
    """Relations of six points, and their network: n, edges, w."""
    rng = np.random.default_rng(seed)
    known = related(rng, 6, K, 2)
    chunklet = primer.closure(6, known.must)
    edges, w = known.edges_of(chunklet)
    return known, chunklet, primer.if_points_are_sampled(chunklet), edges, w


@FEW
@given(SEEDS, st.integers(2, 3))
def test_the_prior_network_is_that_of_all_assignments(seed, K):
    known, _, n, edges, w = prior_of(seed, K)
    eta = np.random.default_rng(seed).normal(size=K)
    everything = enumerate_all(n[:, None] * eta, edges, w)
    found, counts = primer.prior_log_z(eta, n, edges, w), primer.prior_counts(eta, n, edges, w)
    assert found == pytest.approx(everything.log_z, rel=1e-10, abs=1e-10)
    np.testing.assert_allclose(counts, n @ everything.marginals(K), atol=1e-10)
    slopes = primer.derivative(lambda eta: primer.prior_log_z(eta, n, edges, w), eta)
    np.testing.assert_allclose(slopes, counts, atol=10 * SLOPE)
    theirs = Prior(known.side(), ENGINES["exact"]).log_z_and_counts(eta)
    assert found == pytest.approx(theirs[0], rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(counts, theirs[1], atol=1e-9)
    weights = np.exp(eta - logsumexp(eta))
    unaries = prior_unaries(weights, known.side())
    np.testing.assert_allclose(unaries, n[:, None] * np.log(weights), rtol=1e-9)


@FEW
@given(SEEDS, st.integers(2, 3))
def test_pseudo_likelihood_is_exact_for_disjoint_edges(seed, K):
    rng = np.random.default_rng(seed)
    known, _, n, edges, w = prior_of(seed, K)
    eta = np.log(rng.dirichlet(np.ones(K)))
    graph = simplify(Graph(len(n), edges, w))
    theirs, their_counts = PairwisePrior(known.side()).log_z_and_counts(eta)
    network = n, graph.edges, graph.weights
    assert primer.pseudo_log_z(eta, *network) == pytest.approx(theirs, rel=1e-9, abs=1e-9)
    counts = primer.pseudo_counts(eta, *network)
    np.testing.assert_allclose(counts, their_counts, atol=1e-9)
    slopes = primer.derivative(lambda eta: primer.pseudo_log_z(eta, *network), eta)
    np.testing.assert_allclose(slopes, counts, atol=10 * SLOPE)
    disjoint, w = np.array([[0, 1], [2, 3]]), np.array([-np.inf, rng.normal()])
    n = rng.integers(1, 4, size=5)
    exactly = primer.prior_log_z(eta, n, disjoint, w)
    assert primer.pseudo_log_z(eta, n, disjoint, w) == pytest.approx(exactly, rel=1e-9, abs=1e-9)


@settings(max_examples=8)
@given(SEEDS, st.integers(2, 3))
def test_newton_finds_the_weights_of_given_counts(seed, K):
    known, _, n, edges, w = prior_of(seed, K)
    truth = np.random.default_rng(seed).dirichlet(np.full(K, 5.0))
    C = primer.prior_counts(np.log(truth), n, edges, w)
    found = primer.newton(C, lambda eta: primer.prior_counts(eta, n, edges, w))
    matched = primer.prior_counts(np.log(found), n, edges, w)
    np.testing.assert_allclose(matched, C, atol=1e-7)
    # Where counts hardly depend on the weights, equal counts do not make equal weights.
    theirs = exact(Prior(known.side(), ENGINES["exact"]))(C)
    curvature = primer.derivative(lambda eta: primer.prior_counts(eta, n, edges, w), np.log(truth))
    if np.linalg.eigvalsh(curvature)[1] > 0.05:
        np.testing.assert_allclose(found, truth, atol=1e-5)
        np.testing.assert_allclose(theirs, truth, atol=1e-5)


@settings(max_examples=12)
@given(SEEDS, st.integers(1, 4), st.integers(2, 4), st.floats(-5, -1))
def test_newton_moves_rare_classes_of_chunklets_of_one_size(seed, size, K, log10_rare):
    C = 60 * np.random.default_rng(seed).dirichlet(np.full(K, 3.0)) + 0.1
    C[0] = 10**log10_rare
    n, edges, w = np.full(4, size), np.empty((0, 2), dtype=int), np.empty(0)
    C = C * n.sum() / C.sum()
    # Without edges a chunklet is in k with a probability like π_k^size.
    root = C ** (1 / size)
    found = primer.newton(C, lambda eta: primer.prior_counts(eta, n, edges, w))
    np.testing.assert_allclose(found, root / root.sum(), rtol=1e-6)


@settings(max_examples=12)
@given(SEEDS, st.integers(2, 4))
@example(seed=5, K=2)
def test_newton_matches_counts_of_chunklets_of_many_sizes(seed, K):
    """Large chunklets move all at once: a whole step of Newton's may lead far beyond."""
    rng = np.random.default_rng(seed)
    n, edges, w = rng.integers(1, 9, size=4), np.empty((0, 2), dtype=int), np.empty(0)
    C = rng.dirichlet(np.full(K, 2.0)) * n.sum()

    def counts(eta):
        return primer.prior_counts(eta, n, edges, w)

    found = primer.newton(C, counts)
    np.testing.assert_allclose(counts(np.log(found)), C, rtol=1e-7)


@settings(max_examples=12)
@given(SEEDS, st.integers(2, 4), st.sampled_from([0.0, 3.0]))
def test_newton_ends_where_counts_match_in_hard_networks(seed, K, spread):
    """Chunklets beside single points, near edges of what counts are possible."""
    rng = np.random.default_rng(seed)
    net = network(rng, J=4, K=K, p_hard=0.6)
    n, truth = rng.integers(1, 4, size=4), rng.normal(size=K) * spread

    def counts(eta):
        return primer.prior_counts(eta, n, net.edges, net.w)

    C = counts(truth)
    found = primer.newton(C, counts)
    np.testing.assert_allclose(counts(np.log(found)), C, atol=1e-7)


@settings(max_examples=8)
@given(st.integers(1, 3), st.floats(0.01, 0.99))
def test_newton_returns_its_start_where_all_weights_match(m, share):
    edges, w = np.arange(2 * m).reshape(-1, 2), np.full(m, -np.inf)

    def counts(eta):
        return primer.prior_counts(eta, np.ones(2 * m), edges, w)

    C = counts(np.log([share, 1 - share]))
    np.testing.assert_allclose(primer.newton(C, counts), 0.5, atol=1e-12)


@settings(max_examples=8)
@given(SEEDS, st.integers(2, 3))
def test_newton_finds_the_weights_of_the_pseudo_likelihood(seed, K):
    C = np.random.default_rng(seed).dirichlet(np.full(K, 9.0)) * 6
    n, edges, w = np.ones(6), np.array([[0, 1], [2, 3]]), np.array([-np.inf, 1.0])
    side = SideInformation.build(6, cannot_link=[[0, 1]], preferences=[[2, 3, 1.0]])

    def counts(eta):
        return primer.pseudo_counts(eta, n, edges, w)

    found = primer.newton(C, counts)
    update = pseudo_likelihood(Prior(side, ENGINES["pairs"]))
    np.testing.assert_allclose(found, update(C), atol=1e-6)


@settings(max_examples=8)
@given(SEEDS, st.integers(2, 3), st.sampled_from(["points", "chunklets"]))
def test_em_with_relations_climbs_as_the_package_does(seed, K, sampling):
    rng = np.random.default_rng(seed)
    theta, known = mixture(rng, K, 1), related(rng, 6, K, 1)
    # Tied from the start: a start of another type may be better than any tied step.
    theta = theta._replace(covariances=np.repeat(theta.covariances[:1], K, axis=0))
    chunklet = primer.closure(6, known.must)
    draws = primer.if_points_are_sampled, primer.if_chunklets_are_sampled
    n, (edges, w) = draws[sampling == "chunklets"](chunklet), known.edges_of(chunklet)
    course = list(primer.constrained_em(known.X, theta, chunklet, n, edges, w, primer.tied, 2))
    # The start's evidence by the stories, given that no hard relation is broken.
    everything = enumerate_all(n[:, None] * np.log(theta.weights), edges, w)
    log_p = np.zeros((len(n), K))
    np.add.at(log_p, chunklet, primer.log_densities(known.X, theta))
    expected = everything.p @ np.exp(log_p[range(len(n)), everything.z].sum(axis=1))
    assert course[0][1] == pytest.approx(np.log(expected), rel=1e-9)
    assert course[1][1] >= course[0][1] - 1e-7
    side = known.side(sampling)
    update = exact(Prior(side, ENGINES["exact"]))
    theirs = production_em(known.X, theta, side, "tied", 2, update, ENGINES["exact"](side.graph))
    assert_same_course(course[:1], theirs[:1])
    np.testing.assert_allclose(course[1][0].means, theirs[1][0].means, atol=1e-7)
    # The maximum may lie at a weight of zero, which steps only approach. And where counts hardly
    # depend on weights, searches that end at slopes of 1e-8 end apart.
    C = n @ primer.marginals(primer.node_unaries(
        primer.log_densities(known.X, theta), theta.weights, chunklet, n), edges, w)  # fmt: skip
    matched = primer.prior_counts(np.log(course[1][0].weights), n, edges, w)
    if np.abs(matched - C).max() < 1e-7:
        assert course[1][1] == pytest.approx(theirs[1][1], abs=1e-5)


# ---------------------------------------------------------------------------- chapters 9 and 14


@FEW
@given(SEEDS, st.integers(1, 5))
def test_a_weight_is_the_log_odds_of_the_certainty(seed, E):
    rng = np.random.default_rng(seed)
    gamma, are_together = rng.uniform(0.5, 1, size=E), rng.random(E) < 0.5
    w = primer.log_weights(are_together, gamma)
    np.testing.assert_allclose(expit(w), np.where(are_together, gamma, 1 - gamma), rtol=1e-9)
    np.testing.assert_allclose(primer.certainty(w), gamma, rtol=1e-9)
    np.testing.assert_allclose(np.abs(w), weight_from_certainty(gamma), rtol=1e-9)
    np.testing.assert_allclose(certainty_from_weight(np.abs(w)), primer.certainty(w), rtol=1e-9)
    pairs = rng.integers(9, size=(E, 2))
    order = np.argsort(~are_together, kind="stable")
    rows = preferences(pairs[are_together], pairs[~are_together], certainty=gamma[order])
    np.testing.assert_allclose(rows[:, 2], w[order], rtol=1e-9)


@FEW
@given(**SIZES)
def test_answers_as_data_are_weighed_by_what_each_says(seed, J, K):
    u, edges, w = network(np.random.default_rng(seed), J, K)
    z = assignments(J, K)
    same = z[:, edges[:, 0]] == z[:, edges[:, 1]]
    # An answer is right with probability γ, whatever it says: (same) == (w > 0).
    right = log_expit(np.abs(w)), log_expit(-np.abs(w))
    log_answers = np.where(same == (w > 0), *right).sum(axis=1)
    total = logsumexp(u[range(J), z].sum(axis=1) + log_answers)
    assert primer.log_p_of_answers(u, edges, w) == pytest.approx(total, rel=1e-10, abs=1e-10)


@FEW
@given(SEEDS, st.integers(2, 5), st.integers(2, 3))
def test_support_is_what_the_network_without_the_relation_says(seed, J, K):
    u, edges, w = network(np.random.default_rng(seed), J, K, p_edge=1.0)
    everything = enumerate_all(u, edges, w)
    same = everything.z[:, edges[:, 0]] == everything.z[:, edges[:, 1]]
    found = primer.p_together(u, edges, w)
    np.testing.assert_allclose(found, everything.mean(same), atol=SLOPE)
    theirs = log_odds_together(junction_tree(Graph(J, edges, w)), u, Graph(J, edges, w), edges)
    np.testing.assert_allclose(found, expit(theirs), atol=SLOPE)
    without = [
        logit(leave_out(u, edges, w, e).mean(same[:, e])) * np.sign(w[e]) for e in range(len(w))
    ]
    # A slope of that error, seen through the logit.
    tolerance = SLOPE / (everything.mean(same) * (1 - everything.mean(same)))
    assert (np.abs(primer.support(u, edges, w) - without) < 10 * tolerance + 1e-9).all()


def leave_out(u, edges, w, e):
    return enumerate_all(u, np.delete(edges, e, axis=0), np.delete(w, e))


@FEW
@given(SEEDS, st.integers(2, 3))
def test_support_is_that_of_judge(seed, K):
    rng = np.random.default_rng(seed)
    theta, X = mixture(rng, K, 1), rng.normal(size=(4, 1))
    edges, w = np.array([[0, 1], [1, 2], [0, 2], [2, 3]]), rng.normal(size=4)
    side = SideInformation.build(4, preferences=np.column_stack([edges, w]))
    infer = ENGINES["exact"](side.graph)
    verdict = judge(X, Parameters(*theta), side, np.column_stack([edges, w]), infer)
    found = primer.support(primer.log_joint(X, theta), edges, w)
    # A slope knows a probability of e^-8 to four digits.
    plain = np.abs(verdict.log_odds) < 8
    np.testing.assert_allclose(found[plain], verdict.support[plain], atol=1e-3)
