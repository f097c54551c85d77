"""Test that the primer's functions of chapters 1 to 6 agree with the package.

The package itself is compared with SciPy and with enumeration in tests/mixture.
"""

from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import example
from hypothesis import strategies as st
from primer_problems import (
    SEEDS,
    compare_em_steps,
    convert_to_theta,
    draw_related_points,
    draw_theta,
    given_examples,
)
from scipy.spatial.distance import cdist
from scipy.special import logsumexp
from scipy.stats import invwishart

from cgmm import ConstrainedGaussianMixture, primer
from cgmm import mixture as production
from cgmm.mixture import POOLINGS, Parameters
from cgmm.network import SideInformation
from cgmm.numerics import log_normalise

M_STEPS = {kind: getattr(primer, kind) for kind in ("full", "tied", "diag", "spherical")}
SIZES = {"seed": SEEDS, "K": st.integers(1, 3), "D": st.integers(1, 3)}
N = 20


class Problem:
    """Random points, parameters, responsibilities, labels and possible relations."""

    def __init__(self, seed, K, D):
        rng = np.random.default_rng(seed)
        self.K, self.D, self.known = K, D, draw_related_points(rng, N, K, D)
        # The components are wide, so that none becomes singular within three steps of EM.
        theta = draw_theta(rng, K, D)
        self.theta = theta._replace(covariances=theta.covariances + 9 * np.eye(D))
        self.parameters = Parameters(*self.theta)
        self.X, self.r = 3 * rng.normal(size=(N, D)), rng.dirichlet(np.ones(K), size=N)
        self.y = np.r_[:K, rng.integers(-1, K, size=N - K)]
        self.labelled = SideInformation.build(N, labels=self.y)
        self.chunklet = primer.closure(N, self.known.must)

    def run_production_m_step(self, kind):
        """Return the parameters after the package's M-step, in the primer's format."""
        posterior = production.Posterior(self.r, self.r.sum(axis=0), 0.0)
        pool, update = POOLINGS[kind], production.closed_form
        return convert_to_theta(production.m_step(self.X, self.parameters, posterior, pool, update))


# Each of these functions yields pairs of values of the primer and of the package.


def compare_densities(problem):
    X, theta, parameters = problem.X, problem.theta, problem.parameters
    log_p = production.log_density(X, parameters)
    yield primer.log_gaussian(X, theta.means[0], theta.covariances[0]), log_p[:, 0]
    yield primer.log_densities(X, theta), log_p
    u = primer.log_joint(X, theta)
    yield u, production.log_joint(X, parameters)
    r, log_evidence = primer.responsibilities(u)
    their_r, totals = log_normalise(u)
    yield r, their_r
    yield log_evidence, totals.sum()
    yield primer.lower_bound(X, theta, problem.r), production.lower_bound(X, parameters, problem.r)


def compare_m_steps(problem):
    for kind, pool in M_STEPS.items():
        theirs = problem.run_production_m_step(kind)
        yield from zip(primer.m_step(problem.X, problem.r, pool), theirs, strict=True)


def compare_em_with_the_package(problem):
    side = SideInformation.build(N)
    for kind, pool in M_STEPS.items():
        ours = list(primer.em(problem.X, problem.theta, pool, 4))
        yield from compare_em_steps(ours, problem.X, problem.theta, side, kind)


def compare_em_in_blocks(problem):
    """Yield statistics added over blocks of rows, and those of all points."""
    X, theta = problem.X, problem.theta
    blocks = np.split(X, [problem.K, 8])
    r, log_p = primer.responsibilities(primer.log_joint(X, theta))
    n, new = r.sum(axis=0), production.from_responsibilities(X, r, POOLINGS["full"])
    sums = n[:, None] * new.means
    second_moments = n[:, None, None] * new.covariances + sums[:, :, None] * new.means[:, None]
    added = map(sum, zip(*(primer.statistics(block, theta) for block in blocks), strict=True))
    yield from zip(added, (log_p, n, sums, second_moments), strict=True)
    for pool in M_STEPS.values():
        new, log_p_of_blocks = primer.fold(blocks, theta, pool)
        yield log_p_of_blocks, log_p
        yield from zip(new, primer.m_step(X, r, pool), strict=True)


def compare_criteria(problem):
    X, K, D = problem.X, problem.K, problem.D
    n_parameters = primer.n_parameters(K, D)
    yield n_parameters, POOLINGS["full"].n_parameters(K, D) + K - 1 + K * D
    fit = ConstrainedGaussianMixture(K, max_iter=3, random_state=0).fit(X)
    theta = primer.Theta(fit.weights_, fit.means_, fit.covariances_)
    log_evidence = primer.responsibilities(primer.log_joint(X, theta))[1]
    yield primer.bic(log_evidence, n_parameters, N), fit.bic(X)
    yield primer.aic(log_evidence, n_parameters), fit.aic(X)


def compare_labels(problem):
    X, K, y, theta, labelled = problem.X, problem.K, problem.y, problem.theta, problem.labelled
    A = primer.allowed(y, K)
    yield A, labelled.mask(K)
    u = primer.masked(primer.log_joint(X, theta), A)
    yield u, production.node_unaries(X, problem.parameters, labelled)
    start = production.from_labels(X, K, np.random.RandomState(0), labelled)
    yield primer.nearest(X, primer.label_means(X, y, K)), start

    def reduce_counts(N_k):
        """Return weights from reduced counts, as if labels had been drawn class by class."""
        return primer.shares(N_k - 0.9)

    for update, theirs in ((primer.shares, production.closed_form), (reduce_counts,) * 2):
        ours = list(primer.labelled_em(X, theta, A, primer.tied, update, 3))
        yield from compare_em_steps(ours, X, theta, labelled, "tied", theirs)


def compare_must_links(problem):
    X, theta, chunklet = problem.X, problem.theta, problem.chunklet
    log_p = primer.log_densities(X, theta)
    for sampling in ("points", "chunklets"):
        side = SideInformation.build(N, must_link=problem.known.must, sampling=sampling)
        yield chunklet, side.node_of
        n = getattr(primer, f"if_{sampling}_are_sampled")(chunklet)
        yield n, side.multiplicity
        u = primer.node_unaries(log_p, theta.weights, chunklet, n)
        yield u, production.node_unaries(X, problem.parameters, side)
    ours = list(primer.chunklet_em(X, theta, chunklet, primer.tied, 3))
    yield from compare_em_steps(ours, X, theta, side, "tied")


def compare_cannot_links(problem):
    relations = {"must_link": problem.known.must, "cannot_link": problem.known.cannot}
    theirs = SideInformation.build(N, **relations).graph.edges
    yield primer.cannot_edges(problem.chunklet, problem.known.cannot), theirs


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "compare",
    [
        compare_densities, compare_m_steps, compare_em_with_the_package, compare_em_in_blocks,
        compare_criteria, compare_labels, compare_must_links, compare_cannot_links,
    ],
)  # fmt: skip
@given_examples(**SIZES)
def test_values_of_the_primer_equal_those_of_the_package(compare, seed, K, D):
    for ours, theirs in compare(Problem(seed, K, D)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-7)


# ------------------------------------------------------- functions without a twin in the package


@given_examples(**SIZES)
def test_sample_is_an_affine_map_of_standard_normal_numbers(seed, K, D):
    theta = draw_theta(np.random.default_rng(seed), K, D)
    X, z = primer.sample(theta, 9, np.random.default_rng(seed))
    rng = np.random.default_rng(seed)
    np.testing.assert_array_equal(z, rng.choice(K, size=9, p=theta.weights))
    L = np.linalg.cholesky(theta.covariances)
    noise = [np.linalg.solve(L[k], x - theta.means[k]) for x, k in zip(X, z, strict=True)]
    np.testing.assert_allclose(noise, rng.standard_normal((9, D)), atol=1e-9)


@given_examples(SEEDS, st.integers(2, 6), st.integers(1, 3), st.data())
def test_far_points_are_drawn_by_squared_distance_to_the_nearest_centre(seed, N, D, data):
    X = np.random.default_rng(seed).normal(size=(N, D))
    drawn = data.draw(st.permutations(range(N)))
    # This generator returns prescribed draws and records its calls.
    rng = Mock(**{"integers.return_value": drawn[0], "choice.side_effect": drawn[1:]})
    np.testing.assert_array_equal(primer.far_points(X, N, rng), X[drawn])
    rng.integers.assert_called_once_with(N)
    squared = cdist(X, X, "sqeuclidean")
    for n, call in enumerate(rng.choice.call_args_list, start=1):
        gaps = squared[:, drawn[:n]].min(axis=1)
        np.testing.assert_allclose(call.kwargs["p"], gaps / gaps.sum(), atol=1e-12)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@given_examples(SEEDS, st.integers(1, 2), st.floats(1e-4, 1e-1))
# With a tolerance of zero EM does not converge, so all iterations are made.
@example(seed=0, D=1, tol=0.0)
def test_em_ends_after_the_same_iterations_as_the_estimator(seed, D, tol):
    X = np.random.default_rng(seed).normal(size=(40, D))
    r = primer.nearest(X, X[:2])
    options = {"covariance_type": "tied", "reg_covar": 0, "tol": tol, "max_iter": 30}
    fit = ConstrainedGaussianMixture(2, init_params=r, **options).fit(X)
    steps = primer.em(X, primer.m_step(X, r, primer.tied), primer.tied, 30)
    log_evidences = [log_evidence for _, log_evidence in primer.until(steps, tol * len(X))]
    np.testing.assert_allclose(log_evidences, fit.history_, rtol=1e-9)


@given_examples(SEEDS, st.integers(1, 4), st.lists(st.integers(0, 3), min_size=1, unique=True))
def test_empty_components_can_be_left_out(seed, D, occupied):
    """Leaving out components without points does not change the density."""
    assert primer.occupied(np.eye(3)[[0, 0, 2]]).shape == (3, 2)
    problem = Problem(seed, 4, D)
    problem.r = np.zeros((N, 4))
    problem.r[:, occupied] = np.random.default_rng(seed).dirichlet(np.ones(len(occupied)), size=N)
    r = primer.occupied(problem.r)
    np.testing.assert_array_equal(r, problem.r[:, sorted(occupied)])
    with np.errstate(divide="ignore"):
        with_empty = primer.log_joint(problem.X, problem.run_production_m_step("tied"))
    without = primer.log_joint(problem.X, primer.m_step(problem.X, r, primer.tied))
    expected = logsumexp(with_empty, axis=1)
    np.testing.assert_allclose(logsumexp(without, axis=1), expected, rtol=1e-7)


@given_examples(**SIZES, nu=st.floats(0, 9))
def test_map_covariances_are_a_stationary_point_of_the_posterior(seed, K, D, nu):
    rng = np.random.default_rng(seed)
    X, r = rng.normal(size=(9, D)), rng.dirichlet(np.ones(K), size=9)
    (N_k, mu, S), Psi = primer.moments(X, r), np.eye(D) * rng.uniform(0.5, 2)
    upper = np.triu_indices(D)

    def make_symmetric(entries):
        matrices = np.zeros((K, D, D))
        matrices[:, *upper] = entries
        return matrices + np.triu(matrices, 1).swapaxes(-1, -2)

    def log_posterior(entries):
        theta = primer.Theta(np.full(K, 1 / K), mu, make_symmetric(entries))
        # SciPy needs ν > D - 1, so use ν + D and correct the exponent of the determinant.
        prior = sum(
            invwishart(nu + D, Psi).logpdf(C) + D / 2 * np.linalg.slogdet(C).logabsdet
            for C in theta.covariances
        )
        return primer.lower_bound(X, theta, r) + prior

    estimate = primer.map_covariances(N_k, S, Psi, nu)[:, *upper]
    np.testing.assert_allclose(primer.derivative(log_posterior, estimate), 0, atol=1e-5)
