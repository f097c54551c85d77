"""Test constrained K-means as the limit of PPC, and misprints of [lu2007, App. C].

PPC is a Gaussian mixture with pairwise preferences. In the limit its variance σ² goes to zero.
Letters: J: objective of constrained K-means; Ω: normaliser of the prior of assignments.
"""

from itertools import islice

import numpy as np
import pytest
from hard_graphs import objective
from kmeans_problems import enumerate_assignments
from scipy.special import logsumexp

from cgmm.inference import ENGINES
from cgmm.kmeans import Nodes, cop_rule, engine_rule, lloyd
from cgmm.mixture import Parameters, e_step
from cgmm.network import SideInformation

PREFERENCES = [[0, 1, 0.9], [1, 2, -0.6], [2, 3, 0.4], [0, 4, -1.1], [3, 4, 0.7]]


def draw_problem(seed):
    """Draw five points, three centres, and unequal weights."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(5, 2)), rng.normal(size=(3, 2)), rng.dirichlet([5, 5, 5])


def enumerate_responsibilities(X, means, weights, preferences, variance):
    """Compute responsibilities of PPC with spherical components by enumeration."""
    side = SideInformation.build(len(X), preferences=preferences)
    theta = Parameters(weights, means, variance * np.stack([np.eye(2)] * len(means)))
    return e_step(X, theta, side, ENGINES["enumerate"](side.graph)).responsibilities


def scale_weights(preferences, factor):
    """Return preferences whose weights are multiplied by the factor."""
    return np.array(preferences) * [1, 1, factor]


def enumerate_objectives(X, means, preferences):
    """Return all assignments, and the objective J of each."""
    side = SideInformation.build(len(X), preferences=preferences)
    costs = Nodes.of(X, side, 0.5).costs(means)
    z = enumerate_assignments(len(X), len(means))
    return z, np.array([objective(costs, side.graph, z_row) for z_row in z])


@pytest.mark.parametrize("seed", range(6))
def test_em_of_ppc_becomes_pck_means_at_small_variance(seed):
    """Scale σ by α and W by 1 / α²; for small α EM equals Lloyd's algorithm with penalties.

    [lu2007, eqs. C.5, C.8, C.14]
    """
    alpha, side = 1e-3, SideInformation.build(5, preferences=PREFERENCES)
    rule = engine_rule(side.graph, ENGINES["enumerate"])
    assert_same_run(seed, side, rule, scale_weights(PREFERENCES, alpha**-2), alpha**2)


@pytest.mark.parametrize("seed", range(6))
def test_em_of_ppc_becomes_cop_k_means_at_small_variance(seed):
    """Scale σ by β and W by 1 / β³; for small β EM equals Lloyd's algorithm with hard relations.

    [lu2007, eq. C.21]
    """
    must, cannot, beta = [[0, 1]], [[1, 2], [2, 3], [0, 4]], 1e-3
    preferences = [[i, j, 1.0] for i, j in must] + [[i, j, -1.0] for i, j in cannot]
    side = SideInformation.build(5, must_link=must, cannot_link=cannot)
    assert_same_run(
        seed, side, cop_rule(side.graph, 3), scale_weights(preferences, beta**-3), beta**2
    )


def assert_same_run(seed, side, rule, preferences, variance):
    """Compare iterations of Lloyd's algorithm and of EM with updates of the means only.

    The comparison ends when a cluster is empty, because the algorithms differ from then on.
    """
    X, means, weights = draw_problem(seed)
    for step in islice(lloyd(Nodes.of(X, side, 0.5), side.graph, means, rule), 6):
        r = enumerate_responsibilities(X, means, weights, preferences, variance)
        np.testing.assert_allclose(means, step.centres, atol=1e-9)
        np.testing.assert_allclose(r, np.eye(3)[step.labels[side.node_of]], atol=1e-9)
        if r.sum(axis=0).min() < 0.5:
            break
        means = (r.T @ X) / r.sum(axis=0)[:, None]


def test_limit_needs_a_unique_best_assignment():
    """If two assignments are optimal, both keep the probability ½ in the limit.

    [lu2007, eqs. C.7, C.14] then fail, because C.12 assumes ε > 0 for every other assignment.
    """
    X, means = np.array([[0.0, 0.0], [0.0, 0.0]]), np.array([[-1.0, 0.0], [1.0, 0.0]])
    for beta in (1.0, 1e-1, 1e-3):
        preferences = scale_weights([[0, 1, -1.0]], beta**-3)
        r = enumerate_responsibilities(X, means, np.array([0.5, 0.5]), preferences, beta**2)
        np.testing.assert_allclose(r, 0.5, atol=1e-12)


def test_normaliser_depends_on_weights_but_is_bounded():
    """log Ω depends on π, but its range stays bounded while the objective grows without bound.

    [lu2007, eqs. C.15, C.23] call it constant.
    """
    differences = []
    for alpha in (1.0, 0.1, 0.01):
        graph = SideInformation.build(5, preferences=scale_weights(PREFERENCES, alpha**-2)).graph
        infer = ENGINES["enumerate"](graph)
        log_z = [infer(np.tile(np.log(w), (5, 1))).log_z for w in ([0.5, 0.5], [0.9, 0.1])]
        differences.append(abs(log_z[0] - log_z[1]))
    assert min(differences) > 0.1
    # Five factors π of at least 0.1 differ by at most 5 log 10, while 1 / α² grows to 10^4.
    assert max(differences) < 5 * np.log(10)


def test_limit_at_another_variance_has_scaled_penalties():
    """If σ² is not 1, the limit of [lu2007, eq. C.6] has the penalties σ² W, but C.8 prints W."""
    X, means = np.array([[0.0, 0.0], [3.0, 0.0]]), np.array([[0.0, 0.0], [3.0, 0.0]])
    weights, alpha, sigma2 = np.array([0.4, 0.6]), 0.05, 4.0
    # One cluster costs 4.5; two clusters cost w = 2 as printed, and σ² w = 8 in fact.
    preferences = [[0, 1, 2.0]]
    r = enumerate_responsibilities(
        X, means, weights, scale_weights(preferences, alpha**-2), alpha**2 * sigma2
    )
    z, cost = enumerate_objectives(X, means, preferences)
    np.testing.assert_array_equal(z[cost.argmin()], [0, 1])
    z_limit = r.argmax(axis=1)
    assert z_limit[0] == z_limit[1]
    # The assignments 0 0 and 1 1 are equally good.
    costs = np.sort(enumerate_objectives(X, means, scale_weights(preferences, sigma2))[1])
    assert costs[1] == pytest.approx(costs[0], abs=1e-12)


# ---------------------------------------------------------------------------- misprints


@pytest.fixture
def terms():
    """Return the terms of [lu2007, App. C] for all assignments of a small problem."""
    X, means, weights = draw_problem(1)
    half = 0.5 * np.square(X[:, None] - means).sum(axis=2)
    W = np.zeros((5, 5))
    for i, j, w in PREFERENCES:
        W[int(i), int(j)] = W[int(j), int(i)] = w
    z, cost = enumerate_objectives(X, means, PREFERENCES)
    same = (z[:, :, None] == z[:, None, :]).astype(float)
    distances = half[np.arange(5), z].sum(axis=1)
    return X, means, weights, W, z, same, distances, cost


def test_the_sum_of_eq_c2_runs_over_unordered_pairs_and_its_constant_is_positive(terms):
    *_, W, _, same, distances, cost = terms
    ordered = np.einsum("zij,ij->z", same, W)
    links = W[W > 0].sum() / 2
    np.testing.assert_allclose(distances - ordered / 2 + links, cost, rtol=1e-12)
    # The paper sums over both orders of each pair, and its constant is C = -Σ a.
    assert np.ptp(distances - ordered - cost) > 1
    assert abs(distances - ordered / 2 - links - cost).min() > 1


def test_eqs_c4_c6_c20_c22_print_a_sum_inside_the_product(terms):
    X, means, weights, W, z, same, distances, _ = terms
    kept = np.einsum("zij,ij->z", same, W) / 2
    log_pi = np.log(weights)[z].sum(axis=1)
    side = SideInformation.build(5, preferences=PREFERENCES)
    theta = Parameters(weights, means, np.stack([np.eye(2)] * 3))
    evidence = e_step(X, theta, side, ENGINES["enumerate"](side.graph)).log_evidence
    # p(X) = Σ_Z p(X, Z) / Ω, in which the density of each point has the constant 1 / 2π.
    constant = np.log(np.exp(log_pi + kept).sum()) + 5 * np.log(2 * np.pi)
    corrected = logsumexp(log_pi - distances + kept) - constant
    assert corrected == pytest.approx(evidence, rel=1e-12)
    printed = logsumexp(log_pi - 5 * distances + kept) - constant
    assert abs(printed - evidence) > 1


def test_eqs_c10_and_c11_print_one_term_twice(terms):
    _, _, weights, W, z, same, distances, cost = terms
    kept = np.einsum("zij,ij->z", same, W) / 2
    best, log_pi = cost.argmin(), np.log(weights)[z].sum(axis=1)
    log_p = log_pi - distances + kept
    epsilon = (distances - distances[best]) - (kept - kept[best])
    np.testing.assert_allclose(log_p[best] - log_p, log_pi[best] - log_pi + epsilon, atol=1e-12)
    assert (np.delete(epsilon, best) > 0).all()
    # In the printed difference the distances cancel, so only the relations remain. They are equal
    # for the best assignment and the same partition with other labels, so ε would be zero there.
    assert np.delete(kept[best] - kept, best).min() < 1e-12
