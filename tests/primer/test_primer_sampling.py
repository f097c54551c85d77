"""Test the primer's approximate inference of chapter 10: sampling, mean field and messages.

The distribution after a random move is computed exactly, by running the move with every sequence
of outcomes of its random generator.
"""

import itertools
from itertools import islice

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from primer_problems import SEEDS, draw_network, draw_theta, enumerate_all, given_examples
from scipy.special import ndtri
from scipy.stats import rankdata

from cgmm import primer
from cgmm.inference import by_colour, mean_field_ascent, r_hat
from cgmm.inference.belief_propagation import belief_propagation
from cgmm.inference.gibbs import draw_clusters, prepare_network
from cgmm.network import Graph

SIZES = {"seed": SEEDS, "J": st.integers(1, 5), "K": st.integers(2, 3)}


# ---------------------------------------------------------------------------- sampling


class PrescribedGenerator:
    """A random generator that takes prescribed outcomes and records their probability.

    After the prescribed ones it takes the first possible outcome of each draw.
    """

    def __init__(self, prescribed):
        self.prescribed, self.n_outcomes, self.probability = prescribed, [], 1.0

    def _draw(self, probabilities):
        draw, possible = len(self.n_outcomes), np.flatnonzero(np.greater(probabilities, 0))
        self.n_outcomes.append(len(possible))
        outcome = possible[self.prescribed[draw] if draw < len(self.prescribed) else 0]
        self.probability *= probabilities[outcome]
        return outcome

    def random(self):
        return self

    def __lt__(self, probability):
        return self._draw([probability, 1 - probability]) == 0

    def choice(self, n, size=1, replace=True, p=None):
        if size == 2:
            pairs = list(itertools.permutations(range(n), 2))
            return np.array(pairs[self._draw(np.full(len(pairs), 1 / len(pairs)))])
        return self._draw(p)


def enumerate_outcomes(move):
    """Yield every result of a random move, with its probability."""
    to_run = [[]]
    while to_run:
        rng = PrescribedGenerator(to_run.pop())
        yield move(rng), rng.probability
        for draw in range(len(rng.prescribed), len(rng.n_outcomes)):
            before = rng.prescribed + [0] * (draw - len(rng.prescribed))
            to_run += [[*before, outcome] for outcome in range(1, rng.n_outcomes[draw])]


def distribution_after(move, enumeration, K):
    """Return the distribution over assignments after a move that starts from the posterior."""
    # An assignment is identified by the number whose digits to the base K are its states.
    powers = K ** np.arange(enumeration.z.shape[1])[::-1]
    q = np.zeros(len(enumeration.z))
    for z, p in zip(enumeration.z, enumeration.p, strict=True):
        if p > 0:
            results = list(enumerate_outcomes(lambda rng, z=z: move(z, rng)))
            assert sum(probability for _, probability in results) == pytest.approx(1, rel=1e-12)
            for z_after, probability in results:
                q[z_after @ powers] += p * probability
    return q


@settings(max_examples=10)
@given(SEEDS, st.integers(1, 3), st.integers(2, 3))
def test_moves_of_the_sampler_preserve_the_posterior(seed, J, K):
    net = draw_network(np.random.default_rng(seed), J, K, p_edge=0.8, p_hard=0.3, p_masked=0.2)
    enumeration = enumerate_all(*net)
    for move in (primer.single_moves, primer.cluster_move):
        before = enumeration.z.copy()
        q = distribution_after(lambda z, rng, move=move: move(z, *net, rng), enumeration, K)
        np.testing.assert_allclose(q, enumeration.p, atol=1e-12)
        np.testing.assert_array_equal(enumeration.z, before)


@given_examples(**SIZES)
def test_clusters_of_nodes_are_those_of_the_package(seed, J, K):
    rng = np.random.default_rng(seed)
    u, edges, w = draw_network(rng, J, K, p_hard=0.3)
    z, states = primer.most_probable(u, edges, w), np.array([0, 1])
    strong = np.where(w < 0, -np.inf, 1e3)
    sampler = prepare_network(Graph(J, edges, strong))
    in_k, in_l = (z[sampler.order] == states[:, None])[:, None]
    theirs = draw_clusters(sampler, in_k, in_l, rng)
    ours = primer.tie(z, states, edges, strong, rng)[sampler.order]
    np.testing.assert_array_equal(ours[:, None] == ours, theirs[:, None] == theirs)


@settings(max_examples=10)
@given(SEEDS, st.integers(1, 2), st.integers(2, 3))
def test_gibbs_sweep_from_the_posterior_has_its_marginals(seed, J, K):
    """The expected result of a sweep that starts from the posterior is its marginals."""
    net = draw_network(np.random.default_rng(seed), J, K, p_edge=0.8, p_hard=0.3)
    enumeration, q = enumerate_all(*net), 0
    for z, p in zip(enumeration.z, enumeration.p, strict=True):
        if p > 0:
            results = enumerate_outcomes(lambda rng, z=z: primer.gibbs(*net, z, 1, rng))
            q = q + p * sum(probability * marginals for marginals, probability in results)
    np.testing.assert_allclose(q, enumeration.marginals(K), atol=1e-12)


@given_examples(SEEDS, st.integers(2, 4), st.integers(2, 10))
def test_r_hat_is_that_of_the_package_on_ranks(seed, chains, half):
    # Rounding makes some draws equal.
    draws = np.random.default_rng(seed).normal(size=(chains, 2 * half)).round(1)
    # The package takes the larger R-hat of ranks, and of ranks of distances to the median.
    ranks = [ndtri((rankdata(x) - 3 / 8) / (x.size + 1 / 4)).reshape(x.shape) for x in (
        draws, np.abs(draws - np.median(draws)))]  # fmt: skip
    assert max(map(primer.r_hat, ranks)) == pytest.approx(r_hat(draws), rel=1e-12)
    # Of an odd number of draws the middle one is left out.
    assert r_hat(np.insert(draws, half, 9.0, axis=1)) == r_hat(draws)
    assert primer.r_hat(3 - 7 * draws) == pytest.approx(primer.r_hat(draws), rel=1e-9)
    assert primer.r_hat(draws + 99 * np.arange(chains)[:, None]) > 2


# ---------------------------------------------------------------------------- mean field


@given_examples(**SIZES)
def test_mean_field_of_the_primer_equals_cgmm_with_nodes_sorted_by_colour(seed, J, K):
    u, edges, w = draw_network(np.random.default_rng(seed), J, K)
    graph = Graph(J, edges, w)
    order = by_colour(graph).order
    rank = np.argsort(order)
    net = u[order], rank[edges], w
    for sweeps, theirs in enumerate(islice(mean_field_ascent(graph, u), 3), start=1):
        q = primer.mean_field(*net, sweeps)
        np.testing.assert_allclose(q[rank], theirs.nodes, atol=1e-10)
        bound = primer.mean_field_bound(q, *net)
        assert bound == pytest.approx(theirs.log_z, rel=1e-9, abs=1e-9)


# ---------------------------------------------------------------------------- belief propagation


@given_examples(**SIZES)
def test_belief_propagation_is_exact_on_a_forest(seed, J, K):
    u, edges, w = draw_network(np.random.default_rng(seed), J, K, p_hard=0.3)
    kept = primer.spanning_tree(J, edges, w)
    net = u, edges[kept], w[kept]
    enumeration, m = enumerate_all(*net), primer.messages(*net, 0, J)
    np.testing.assert_allclose(primer.beliefs(m, u), enumeration.marginals(K), atol=1e-10)
    bethe_log_z = primer.bethe_log_z(m, *net)
    assert bethe_log_z == pytest.approx(enumeration.log_z, rel=1e-10, abs=1e-10)


@settings(max_examples=10)
@given(SEEDS, st.integers(3, 5), st.integers(2, 3), st.sampled_from([0, 0.3]))
@example(seed=1, J=4, K=2, damping=0)
def test_converged_beliefs_equal_those_of_the_package(seed, J, K, damping):
    u, edges, w = draw_network(np.random.default_rng(seed), J, K, p_edge=0.8, p_hard=0.3)
    net = u, edges, w / 4
    m, m_next = (primer.messages(*net, damping, n_sweeps) for n_sweeps in (50, 51))
    q = primer.beliefs(m_next, u)
    assume(np.abs(primer.beliefs(m, u) - q).max() < 1e-10)
    theirs = belief_propagation(Graph(J, edges, w / 4), tol=1e-10)(u)
    np.testing.assert_allclose(q, theirs.nodes, atol=1e-7)
    assert primer.bethe_log_z(m, *net) == pytest.approx(theirs.log_z, abs=1e-6)
    for b, j in list(m)[:2]:
        # The belief of b without the message from j, times that message, is its belief.
        belief = np.exp(primer.log_belief(b, m, u, j) + m[j, b])
        np.testing.assert_allclose(belief / belief.sum(), q[b], atol=1e-9)


@given_examples(SEEDS, st.floats(0, 1))
def test_damping_mixes_new_messages_with_old_ones(seed, damping):
    """A damped message is the weighted mean of the new and the old one, which is 1 at first."""
    u, edges, w = draw_network(np.random.default_rng(seed), 2, 2, p_edge=1.0)
    plain, damped = (primer.messages(u, edges, w, d, 1)[0, 1] for d in (0, damping))
    mixed = (1 - damping) * np.exp(plain) + damping
    np.testing.assert_allclose(np.exp(damped), mixed, rtol=1e-12)


@given_examples(SEEDS, st.integers(2, 5), st.integers(2, 3), st.integers(1, 4))
def test_tree_bound_is_never_below_the_log_normaliser(seed, J, K, M):
    rng = np.random.default_rng(seed)
    u, edges, w = draw_network(rng, J, K)
    # Draw random trees, and add a tree for each edge that none of them contains.
    trees = [primer.spanning_tree(J, edges, rng.random(len(w)) + 1) for _ in range(M)]
    for e in sorted(set(range(len(w))) - set(np.concatenate(trees))):
        trees.append(primer.spanning_tree(J, edges, (np.arange(len(w)) == e).astype(float)))
    trees = [np.array(tree, dtype=int) for tree in trees]
    exact = enumerate_all(u, edges, w).log_z
    bound = primer.tree_bound(u, edges, w, trees)
    assert bound >= exact - 1e-9 * (1 + abs(exact))
    if len(w) == len(trees[0]):
        assert bound == pytest.approx(exact, rel=1e-9, abs=1e-9)


# ---------------------------------------------------------------------------- approximate EM


# With this seed a neighbouring node is almost certain of its state.
@example(126, 2, "points")
@settings(max_examples=6)
@given(SEEDS, st.integers(2, 3), st.sampled_from(["points", "chunklets"]))
def test_approximate_em_with_exact_inference_equals_exact_em(seed, K, sampling):
    rng = np.random.default_rng(seed)
    theta, X = draw_theta(rng, K, 1), rng.normal(size=(7, 1))
    theta = theta._replace(covariances=np.repeat(theta.covariances[:1], K, axis=0))
    chunklet = primer.closure(7, [[0, 1], [0, 2]])
    multiplicities = primer.if_points_are_sampled, primer.if_chunklets_are_sampled
    n, edges = multiplicities[sampling == "chunklets"](chunklet), np.array([[0, 1], [2, 3]])
    known = X, theta, chunklet, n, edges, np.array([-np.inf, rng.normal()]), primer.tied
    _, (expected, _) = primer.constrained_em(*known, 2)

    def propagate_beliefs(u, *net):
        """Return exact marginals, because the network is a forest."""
        return primer.beliefs(primer.messages(u, *net, 0, 3), u)

    for infer in (primer.marginals, propagate_beliefs):
        (_, r_start), (theta, r) = primer.approximate_em(*known, infer, 2)
        assert r.shape == (5, K)
        # Counts are compared, because they may hardly depend on the weights.
        counts = primer.prior_counts(np.log(theta.weights), n, *known[4:6])
        np.testing.assert_allclose(counts, n @ r_start, atol=1e-5)
        np.testing.assert_allclose(theta.means, expected.means, atol=1e-9)
        np.testing.assert_allclose(theta.covariances, expected.covariances, atol=1e-9)
