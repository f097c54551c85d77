"""Test constrained K-means as the limit of PPC: lu2007, App. C, and its misprints."""

from itertools import islice

import numpy as np
import pytest
from hard_graphs import objective
from kmeans_problems import all_assignments

from cgmm.inference import ENGINES
from cgmm.kmeans import Nodes, cop_rule, engine_rule, lloyd
from cgmm.mixture import Parameters, e_step
from cgmm.network import SideInformation

SIGNED = [[0, 1, 0.9], [1, 2, -0.6], [2, 3, 0.4], [0, 4, -1.1], [3, 4, 0.7]]


def small_problem(seed):
    """Return five points, three centres, and unequal weights."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(5, 2)), rng.normal(size=(3, 2)), rng.dirichlet([5, 5, 5])


def posterior(X, means, weights, rows, variance):
    """Return responsibilities of PPC with spherical components, by enumeration."""
    side = SideInformation.build(len(X), preferences=rows)
    theta = Parameters(weights, means, variance * np.stack([np.eye(2)] * len(means)))
    return e_step(X, theta, side, ENGINES["enumerate"](side.graph)).responsibilities


def scale_problem(rows, factor):
    return np.array(rows) * [1, 1, factor]


def every_cost(X, means, rows):
    """Return every assignment with its J."""
    side = SideInformation.build(len(X), preferences=rows)
    costs = Nodes.of(X, side, 0.5).costs(means)
    z = all_assignments(len(X), len(means))
    return z, np.array([objective(costs, side.graph, a) for a in z])


@pytest.mark.parametrize("seed", range(6))
def test_the_whole_run_of_ppc_becomes_that_of_pck_means(seed):
    """[lu2007, eqs. C.5, C.8, C.14]: σ → α σ and W → W / α², and responsibilities are 0 or 1.

    Lloyd's loop and EM of means only, at a variance near zero, side by side.
    """
    alpha, side = 1e-3, SideInformation.build(5, preferences=SIGNED)
    rule = engine_rule(side.graph, ENGINES["enumerate"])
    assert_same_run(seed, side, rule, scale_problem(SIGNED, alpha**-2), alpha**2)


@pytest.mark.parametrize("seed", range(6))
def test_the_whole_run_of_ppc_becomes_that_of_cop_k_means(seed):
    """[lu2007, eq. C.21]: σ → β σ and W → W / β³: broken relations cost ever more."""
    must, cannot, beta = [[0, 1]], [[1, 2], [2, 3], [0, 4]], 1e-3
    rows = [[i, j, 1.0] for i, j in must] + [[i, j, -1.0] for i, j in cannot]
    side = SideInformation.build(5, must_link=must, cannot_link=cannot)
    assert_same_run(seed, side, cop_rule(side.graph, 3), scale_problem(rows, beta**-3), beta**2)


def assert_same_run(seed, side, rule, rows, variance):
    """Compare centres and labels until a cluster is empty, where Lloyd's loop and EM differ."""
    X, means, weights = small_problem(seed)
    for step in islice(lloyd(Nodes.of(X, side, 0.5), side.graph, means, rule), 6):
        r = posterior(X, means, weights, rows, variance)
        np.testing.assert_allclose(means, step.centres, atol=1e-9)
        np.testing.assert_allclose(r, np.eye(3)[step.labels[side.node_of]], atol=1e-9)
        if r.sum(axis=0).min() < 0.5:
            break
        means = (r.T @ X) / r.sum(axis=0)[:, None]


def test_the_limit_needs_a_single_best_assignment():
    """[lu2007, eqs. C.7, C.14] fail at a tie: both assignments keep probability ½.

    C.12 takes ε > 0 for every other assignment. Consistent relations do not give that.
    """
    X, means = np.array([[0.0, 0.0], [0.0, 0.0]]), np.array([[-1.0, 0.0], [1.0, 0.0]])
    for beta in (1.0, 1e-1, 1e-3):
        rows = scale_problem([[0, 1, -1.0]], beta**-3)
        r = posterior(X, means, np.array([0.5, 0.5]), rows, beta**2)
        np.testing.assert_allclose(r, 0.5, atol=1e-12)


def test_the_normaliser_is_no_constant_but_may_be_left_out():
    """[lu2007, eqs. C.15, C.23] call log Ω constant; it depends on π, but stays bounded in that."""
    differences = []
    for alpha in (1.0, 0.1, 0.01):
        graph = SideInformation.build(5, preferences=scale_problem(SIGNED, alpha**-2)).graph
        infer = ENGINES["enumerate"](graph)
        log_z = [infer(np.tile(np.log(w), (5, 1))).log_z for w in ([0.5, 0.5], [0.9, 0.1])]
        differences.append(abs(log_z[0] - log_z[1]))
    assert min(differences) > 0.1
    # Five factors of π, none below 0.1: at most 5 log 10, where 1 / α² grows to 10^4.
    assert max(differences) < 5 * np.log(10)


def test_the_variance_scales_the_penalties():
    """[lu2007, eq. C.8] has no σ: with σ² ≠ 1 the limit of C.6 has the penalties σ² W."""
    X, means = np.array([[0.0, 0.0], [3.0, 0.0]]), np.array([[0.0, 0.0], [3.0, 0.0]])
    weights, alpha, sigma2 = np.array([0.4, 0.6]), 0.05, 4.0
    # Together costs 4.5, apart w or σ² w = 8.
    rows = [[0, 1, 2.0]]
    r = posterior(X, means, weights, scale_problem(rows, alpha**-2), alpha**2 * sigma2)
    z, cost = every_cost(X, means, rows)
    np.testing.assert_array_equal(z[cost.argmin()], [0, 1])
    together = r.argmax(axis=1)
    assert together[0] == together[1]
    least, next_one, *_ = np.sort(every_cost(X, means, scale_problem(rows, sigma2))[1])
    assert next_one == pytest.approx(least, abs=1e-12)  # 0 0 or 1 1


# Compare what App. C prints with its own definitions on a small problem.


@pytest.fixture
def printed_formula():
    X, means, weights = small_problem(1)
    half = 0.5 * np.square(X[:, None] - means).sum(axis=2)
    W = np.zeros((5, 5))
    for i, j, w in SIGNED:
        W[int(i), int(j)] = W[int(j), int(i)] = w
    z, cost = every_cost(X, means, SIGNED)
    same = (z[:, :, None] == z[:, None, :]).astype(float)
    distances = half[np.arange(5), z].sum(axis=1)
    return X, means, weights, W, z, same, distances, cost


def test_the_sum_of_eq_c2_runs_over_unordered_pairs_and_its_constant_is_positive(printed_formula):
    *_, W, _, same, distances, cost = printed_formula
    ordered = np.einsum("zij,ij->z", same, W)
    links = W[W > 0].sum() / 2
    np.testing.assert_allclose(distances - ordered / 2 + links, cost, rtol=1e-12)
    # As printed: both orders of each pair, and C = -Σ a.
    assert np.ptp(distances - ordered - cost) > 1
    assert abs(distances - ordered / 2 - links - cost).min() > 1


def test_eqs_c4_c6_c20_c22_print_a_sum_inside_the_product(printed_formula):
    X, means, weights, W, z, same, distances, _ = printed_formula
    ties = np.einsum("zij,ij->z", same, W) / 2
    log_pi = np.log(weights)[z].sum(axis=1)
    side = SideInformation.build(5, preferences=SIGNED)
    theta = Parameters(weights, means, np.stack([np.eye(2)] * 3))
    evidence = e_step(X, theta, side, ENGINES["enumerate"](side.graph)).log_evidence
    # p(X) = Σ_Z p(X, Z) / Ω, with the density's constant of 1 / 2π a point.
    log_omega = np.log(np.exp(log_pi + ties).sum())
    right = np.log(np.exp(log_pi - distances + ties).sum()) - log_omega - 5 * np.log(2 * np.pi)
    assert right == pytest.approx(evidence, rel=1e-12)
    nested = np.log(np.exp(log_pi - 5 * distances + ties).sum()) - log_omega - 5 * np.log(2 * np.pi)
    assert abs(nested - evidence) > 1


def test_eqs_c10_and_c11_print_one_term_twice(printed_formula):
    _, _, weights, W, z, same, distances, cost = printed_formula
    ties = np.einsum("zij,ij->z", same, W) / 2
    best, log_pi = cost.argmin(), np.log(weights)[z].sum(axis=1)
    log_p = log_pi - distances + ties
    epsilon = (distances - distances[best]) - (ties - ties[best])
    np.testing.assert_allclose(log_p[best] - log_p, log_pi[best] - log_pi + epsilon, atol=1e-12)
    assert (np.delete(epsilon, best) > 0).all()
    # As printed, z' minus z' in the distances leaves only the relations. These are no larger for Z*
    # than for the same partition with other labels, so C.11 would not be positive there.
    assert np.delete(ties[best] - ties, best).min() < 1e-12
