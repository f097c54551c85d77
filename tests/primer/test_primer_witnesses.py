"""Chapter 16 by hand: error rates against every assignment, and against the package."""

from itertools import combinations

import numpy as np
from hypothesis import given
from primer_problems import FEW, SEEDS, SLOPE, assignments, mixture

from cgmm import primer
from cgmm.decide import error_rates
from cgmm.inference import ENGINES
from cgmm.mixture import Parameters
from cgmm.network import SideInformation


def problem(seed, J=5, K=2, P=7, G=2):
    """Points, θ, and answers of two witnesses; some pairs twice."""
    rng = np.random.default_rng(seed)
    theta, X = mixture(rng, K, 1), 2 * rng.normal(size=(J, 1))
    edges = np.array(list(combinations(range(J), 2)))[rng.integers(J * (J - 1) // 2, size=P)]
    return X, theta, edges, rng.random(P) < 0.5, np.arange(P) % G


def by_definition(u, edges, said, g, q):
    """log p(X, answers), and p(wrong), of all assignments."""
    z = assignments(*u.shape)
    wrong = (z[:, edges[:, 0]] == z[:, edges[:, 1]]) != said
    p = np.exp(u[range(len(u)), z].sum(axis=1)) * np.where(wrong, q[g], 1 - q[g]).prod(axis=1)
    return np.log(p.sum()), p @ wrong / p.sum()


@FEW
@given(seed=SEEDS)
def test_answers_are_wrong_as_often_as_in_all_assignments(seed):
    X, theta, edges, said, g = problem(seed)
    u, q = primer.log_joint(X, theta), np.array([0.1, 0.7])
    expected = by_definition(u, edges, said, g, q)[1]
    found = primer.p_wrong(u, edges, said, 1 - q[g])
    np.testing.assert_allclose(found, expected, atol=SLOPE)
    side = SideInformation.build(len(X))
    rows = np.column_stack([edges, said])
    given_back = error_rates(X, Parameters(*theta), side, rows, ENGINES["auto"], witness=g)
    again = primer.p_wrong(u, edges, said, 1 - given_back.false_apart[g])
    np.testing.assert_allclose(given_back.wrong, again, atol=SLOPE)


@FEW
@given(seed=SEEDS)
def test_new_rates_are_where_the_expected_likelihood_is_level(seed):
    rng = np.random.default_rng(seed)
    wrong, g, (a, b) = rng.random(9), np.arange(9) % 3, 1 + rng.exponential(size=2)
    q = primer.new_rates(wrong, g, a, b)

    def expected(rates):
        of_answers = wrong * np.log(rates[g]) + (1 - wrong) * np.log(1 - rates[g])
        return of_answers.sum() + ((a - 1) * np.log(rates) + (b - 1) * np.log(1 - rates)).sum()

    # The likelihood is steep near rates of nearly 0 or 1: compare with its curvature.
    slope = primer.derivative(expected, q)
    np.testing.assert_allclose(slope * q * (1 - q), 0, atol=1e-4)


@FEW
@given(seed=SEEDS)
def test_em_with_witnesses_climbs_as_the_package_does(seed):
    X, theta, edges, said, g = problem(seed)
    u, start = primer.log_joint(X, theta), np.full(2, 0.2)
    course = list(primer.witness_em(u, edges, said, g, start, 2, 5, 12))
    heights = [height for _, height in course]
    for q, height in course[:3]:
        prior = (np.log(q) + 4 * np.log(1 - q)).sum()
        np.testing.assert_allclose(
            height, by_definition(u, edges, said, g, q)[0] + prior, rtol=1e-12
        )
    # A posterior by central differences: a maximum is reached up to their error.
    assert min(np.diff(heights)) > -1e-7
    side, rows = SideInformation.build(len(X)), np.column_stack([edges, said])
    found = error_rates(
        X, Parameters(*theta), side, rows, ENGINES["auto"], witness=g, tol=0, max_iter=11
    )
    n = len(found.history)  # it may have arrived to the last bit
    np.testing.assert_allclose(found.false_apart, course[n][0], atol=1e-6)
    np.testing.assert_allclose(found.history, heights[:n], atol=1e-6)
    again = error_rates(X, Parameters(*theta), side, rows, ENGINES["auto"], witness=g, tol=1e-9)
    counted = primer.new_rates(again.wrong, g, 2, 5)
    np.testing.assert_allclose(counted, again.false_apart, atol=1e-8)
