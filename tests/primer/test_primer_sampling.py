"""Compare the primer's sampling of chapter 10 with every possible course of a move."""

from functools import partial
from itertools import islice

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from primer_problems import SEEDS, enumerate_all, examples, mixture, network
from scipy.special import ndtri
from scipy.stats import rankdata

from cgmm import primer
from cgmm.inference import by_colour, mean_field_ascent, r_hat
from cgmm.inference.belief_propagation import belief_propagation
from cgmm.inference.gibbs import draw_clusters, prepare_network
from cgmm.network import Graph

SIZES = {"seed": SEEDS, "J": st.integers(1, 5), "K": st.integers(2, 3)}


# ---------------------------------------------------------------- every course of a random move


class Scripted:
    """A random generator that follows prescribed outcomes and records their probability."""

    def __init__(self, turns):
        self.turns, self.options, self.probability = turns, [], 1.0

    def _turn(self, probabilities):
        place, possible = len(self.options), np.flatnonzero(np.greater(probabilities, 0))
        self.options.append(len(possible))
        chosen = possible[self.turns[place] if place < len(self.turns) else 0]
        self.probability *= probabilities[chosen]
        return chosen

    def random(self):
        return self

    def __lt__(self, chance):
        return self._turn([chance, 1 - chance]) == 0

    def choice(self, n, size=1, replace=True, p=None):
        if size == 2:
            pairs = [(k, other) for k in range(n) for other in range(n) if k != other]
            return np.array(pairs[self._turn(np.full(len(pairs), 1 / len(pairs)))])
        return self._turn(p)


def outcomes(move):
    """Return every outcome of a move that takes a generator, with its probability."""
    waiting = [[]]
    while waiting:
        rng = Scripted(waiting.pop())
        yield move(rng), rng.probability
        for place in range(len(rng.turns), len(rng.options)):
            before = rng.turns + [0] * (place - len(rng.turns))
            waiting += [[*before, turn] for turn in range(1, rng.options[place])]


def distribution_after(move, everything, K):
    """Return the distribution over assignments after a move from the posterior."""
    q, places = np.zeros(len(everything.z)), K ** np.arange(everything.z.shape[1])[::-1]
    for z, p in zip(everything.z, everything.p, strict=True):
        if p > 0:
            reached = list(outcomes(lambda rng, z=z: move(z, rng)))
            assert sum(chance for _, chance in reached) == pytest.approx(1, rel=1e-12)
            for found, chance in reached:
                q[found @ places] += p * chance
    return q


@settings(max_examples=10)
@given(SEEDS, st.integers(1, 3), st.integers(2, 3))
def test_no_move_changes_the_posterior(seed, J, K):
    net = network(np.random.default_rng(seed), J, K, p_edge=0.8, p_hard=0.3, p_masked=0.2)
    everything = enumerate_all(*net)
    for move in (primer.single_moves, primer.cluster_move):
        before = everything.z.copy()
        q = distribution_after(lambda z, rng, move=move: move(z, *net, rng), everything, K)
        np.testing.assert_allclose(q, everything.p, atol=1e-12)
        np.testing.assert_array_equal(everything.z, before)


@examples(**SIZES)
def test_clusters_hold_what_an_edge_can_tie(seed, J, K):
    rng = np.random.default_rng(seed)
    u, edges, w = network(rng, J, K, p_hard=0.3)
    z, states = primer.most_probable(u, edges, w), np.array([0, 1])
    strong = np.where(w < 0, -np.inf, 1e3)
    sampler = prepare_network(Graph(J, edges, strong))
    in_k, in_l = (z[sampler.order] == states[:, None])[:, None]
    theirs = draw_clusters(sampler, in_k, in_l, rng)
    mine = primer.tie(z, states, edges, strong, rng)[sampler.order]
    np.testing.assert_array_equal(mine[:, None] == mine, theirs[:, None] == theirs)


@settings(max_examples=10)
@given(SEEDS, st.integers(1, 2), st.integers(2, 3))
def test_a_mean_of_probabilities_keeps_the_marginals(seed, J, K):
    """From the posterior, the expected result of a sweep over every course is the posterior."""
    net = network(np.random.default_rng(seed), J, K, p_edge=0.8, p_hard=0.3)
    everything, q = enumerate_all(*net), 0
    for z, p in zip(everything.z, everything.p, strict=True):
        if p > 0:
            courses = outcomes(lambda rng, z=z: primer.gibbs(*net, z, 1, rng))
            q = q + p * sum(chance * found for found, chance in courses)
    np.testing.assert_allclose(q, everything.marginals(K), atol=1e-12)


@examples(SEEDS, st.integers(2, 4), st.integers(2, 10))
def test_chains_that_disagree_are_noticed(seed, chains, half):
    draws = np.random.default_rng(seed).normal(size=(chains, 2 * half)).round(1)  # some are equal
    found = primer.r_hat(draws)
    # The package computes it from ranks, and from ranks of distances to the median.
    ranks = [ndtri((rankdata(x) - 3 / 8) / (x.size + 1 / 4)).reshape(x.shape) for x in (
        draws, np.abs(draws - np.median(draws)))]  # fmt: skip
    assert max(map(primer.r_hat, ranks)) == pytest.approx(r_hat(draws), rel=1e-12)
    assert r_hat(np.insert(draws, half, 9.0, axis=1)) == r_hat(draws)  # without the middle draw
    assert primer.r_hat(3 - 7 * draws) == pytest.approx(found, rel=1e-9)
    assert primer.r_hat(draws + 99 * np.arange(chains)[:, None]) > 2


# ---------------------------------------------------------------------------- mean field


@examples(**SIZES)
def test_mean_field_is_that_of_the_package_colour_by_colour(seed, J, K):
    u, edges, w = network(np.random.default_rng(seed), J, K)
    graph = Graph(J, edges, w)
    order = by_colour(graph).order
    place = np.argsort(order)
    net = u[order], place[edges], w
    for sweeps, theirs in enumerate(islice(mean_field_ascent(graph, u), 3), start=1):
        q = primer.mean_field(*net, sweeps)
        np.testing.assert_allclose(q[place], theirs.nodes, atol=1e-10)
        bound = primer.mean_field_bound(q, *net)
        assert bound == pytest.approx(theirs.log_z, rel=1e-9, abs=1e-9)


# ---------------------------------------------------------------------------- belief propagation


@examples(**SIZES)
def test_belief_propagation_is_exact_on_a_forest(seed, J, K):
    u, edges, w = network(np.random.default_rng(seed), J, K, p_hard=0.3)
    kept = primer.spanning_tree(J, edges, w)
    net = u, edges[kept], w[kept]
    everything, m = enumerate_all(*net), primer.messages(*net, 0, J)
    np.testing.assert_allclose(primer.beliefs(m, u), everything.marginals(K), atol=1e-10)
    found = primer.bethe_log_z(m, *net)
    assert found == pytest.approx(everything.log_z, rel=1e-10, abs=1e-10)


@settings(max_examples=10)
@given(SEEDS, st.integers(3, 5), st.integers(2, 3), st.sampled_from([0, 0.3]))
@example(seed=1, J=4, K=2, damping=0)
def test_belief_propagation_settles_where_that_of_the_package_does(seed, J, K, damping):
    u, edges, w = network(np.random.default_rng(seed), J, K, p_edge=0.8, p_hard=0.3)
    net = u, edges, w / 4
    m, again = (primer.messages(*net, damping, n_sweeps) for n_sweeps in (50, 51))
    q = primer.beliefs(again, u)
    assume(np.abs(primer.beliefs(m, u) - q).max() < 1e-10)
    theirs = belief_propagation(Graph(J, edges, w / 4), tol=1e-10)(u)
    np.testing.assert_allclose(q, theirs.nodes, atol=1e-7)
    assert primer.bethe_log_z(m, *net) == pytest.approx(theirs.log_z, abs=1e-6)
    for b, j in list(m)[:2]:
        # The belief of b without j, and then the message from j.
        both = np.exp(primer.log_belief(b, m, u, j) + m[j, b])
        np.testing.assert_allclose(both / both.sum(), q[b], atol=1e-9)


@examples(SEEDS, st.floats(0, 1))
def test_damping_mixes_new_messages_with_old_ones(seed, damping):
    """The fixed point itself is compared with the package's messages above."""
    u, edges, w = network(np.random.default_rng(seed), 2, 2, p_edge=1.0)
    plain, damped = (primer.messages(u, edges, w, d, 1)[0, 1] for d in (0, damping))
    mixed = (1 - damping) * np.exp(plain) + damping
    np.testing.assert_allclose(np.exp(damped), mixed, rtol=1e-12)


@examples(SEEDS, st.integers(2, 5), st.integers(2, 3), st.integers(1, 4))
def test_a_mean_over_trees_is_never_below_log_z(seed, J, K, M):
    rng = np.random.default_rng(seed)
    u, edges, w = network(rng, J, K)
    # Trees by random priorities, and one more for each edge that none of them contains.
    trees = [primer.spanning_tree(J, edges, rng.random(len(w)) + 1) for _ in range(M)]
    for e in sorted(set(range(len(w))) - set(np.concatenate(trees))):
        trees.append(primer.spanning_tree(J, edges, (np.arange(len(w)) == e).astype(float)))
    trees = [np.array(tree, dtype=int) for tree in trees]
    exact = enumerate_all(u, edges, w).log_z
    bound = primer.tree_bound(u, edges, w, trees)
    assert bound >= exact - 1e-9 * (1 + abs(exact))
    if len(w) == len(trees[0]):
        assert bound == pytest.approx(exact, rel=1e-9, abs=1e-9)


# ---------------------------------------------------------------------------- EM with either


@example(126, 2, "points")  # A neighbour that is all but certain.
@settings(max_examples=6)
@given(SEEDS, st.integers(2, 3), st.sampled_from(["points", "chunklets"]))
def test_em_with_any_e_step_is_exact_where_edges_are_disjoint_and_the_e_step_is(seed, K, sampling):
    rng = np.random.default_rng(seed)
    theta, X = mixture(rng, K, 1), rng.normal(size=(7, 1))
    theta = theta._replace(covariances=np.repeat(theta.covariances[:1], K, axis=0))
    chunklet = primer.closure(7, [[0, 1], [0, 2]])
    draws = primer.if_points_are_sampled, primer.if_chunklets_are_sampled
    n, edges = draws[sampling == "chunklets"](chunklet), np.array([[0, 1], [2, 3]])
    known = X, theta, chunklet, n, edges, np.array([-np.inf, rng.normal()]), primer.tied
    exact = primer.constrained_em(*known, 2)
    courses = [primer.approximate_em(*known, primer.marginals, 2)]
    # A tree, so that messages are exact too.
    tell = partial(primer.messages, damping=0, n_sweeps=3)
    courses.append(primer.approximate_em(*known, lambda u, *net: primer.beliefs(
        tell(u, *net), u), 2))  # fmt: skip
    _, (theta, _) = exact
    for (_, r_start), (found, r) in courses:
        assert r.shape == (5, K)
        # Where counts hardly depend on weights, equal counts do not imply equal weights.
        matched = primer.prior_counts(np.log(found.weights), n, *known[4:6])
        np.testing.assert_allclose(matched, n @ r_start, atol=1e-5)
        np.testing.assert_allclose(found.means, theta.means, atol=1e-9)
        np.testing.assert_allclose(found.covariances, theta.covariances, atol=1e-9)
