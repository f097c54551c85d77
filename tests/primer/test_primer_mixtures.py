"""The primer's functions of chapters 1 to 6 agree with the package.

The package has its own oracles (scipy, sums over every assignment) in its own tests.
"""

from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import example
from hypothesis import strategies as st
from primer_problems import SEEDS, as_theta, courses, examples, mixture, related
from scipy.spatial.distance import cdist
from scipy.special import logsumexp
from scipy.stats import invwishart

from cgmm import ConstrainedGaussianMixture, primer
from cgmm import mixture as production
from cgmm.mixture import POOLINGS, Parameters
from cgmm.network import SideInformation
from cgmm.numerics import log_normalise

POOLS = {kind: getattr(primer, kind) for kind in ("full", "tied", "diag", "spherical")}
SIZES = {"seed": SEEDS, "K": st.integers(1, 3), "D": st.integers(1, 3)}
N = 20


class Problem:
    """Points, θ, responsibilities, labels, and relations that some assignment satisfies."""

    def __init__(self, seed, K, D):
        rng = np.random.default_rng(seed)
        self.K, self.D, self.known = K, D, related(rng, N, K, D)
        # Components are wide and share all points, so none collapses within three steps.
        theta = mixture(rng, K, D)
        self.theta = theta._replace(covariances=theta.covariances + 9 * np.eye(D))
        self.parameters = Parameters(*self.theta)
        self.X, self.r = 3 * rng.normal(size=(N, D)), rng.dirichlet(np.ones(K), size=N)
        self.y = np.r_[:K, rng.integers(-1, K, size=N - K)]
        self.labelled = SideInformation.build(N, labels=self.y)
        self.chunklet = primer.closure(N, self.known.must)

    def production_m_step(self, kind):
        posterior = production.Posterior(self.r, self.r.sum(axis=0), 0.0)
        made = production.m_step(
            self.X, self.parameters, posterior, POOLINGS[kind], production.closed_form
        )
        return as_theta(made)


def densities(p):
    log_p = production.log_density(p.X, p.parameters)
    yield primer.log_gaussian(p.X, p.theta.means[0], p.theta.covariances[0]), log_p[:, 0]
    yield primer.log_densities(p.X, p.theta), log_p
    u = primer.log_joint(p.X, p.theta)
    yield u, production.log_joint(p.X, p.parameters)
    r, log_evidence = primer.responsibilities(u)
    shares, totals = log_normalise(u)
    yield r, shares
    yield log_evidence, totals.sum()
    bound = production.lower_bound(p.X, p.parameters, p.r)
    yield primer.lower_bound(p.X, p.theta, p.r), bound


def m_steps(p):
    for kind, pool in POOLS.items():
        theirs = p.production_m_step(kind)
        yield from zip(primer.m_step(p.X, p.r, pool), theirs, strict=True)


def em(p):
    side = SideInformation.build(N)
    for kind, pool in POOLS.items():
        mine = list(primer.em(p.X, p.theta, pool, 4))
        yield from courses(mine, p.X, p.theta, side, kind)


def em_in_blocks(p):
    """Yield pairs that must be equal: sums over blocks, and statistics of all points."""
    parts = np.split(p.X, [p.K, 8])
    r, log_p = primer.responsibilities(primer.log_joint(p.X, p.theta))
    n, theta = r.sum(axis=0), production.from_responsibilities(p.X, r, POOLINGS["full"])
    sums = n[:, None] * theta.means
    about_zero = n[:, None, None] * theta.covariances + sums[:, :, None] * theta.means[:, None]
    added = map(sum, zip(*(primer.statistics(part, p.theta) for part in parts), strict=True))
    yield from zip(added, (log_p, n, sums, about_zero), strict=True)
    for pool in POOLS.values():
        folded, found = primer.fold(parts, p.theta, pool)
        yield found, log_p
        yield from zip(folded, primer.m_step(p.X, r, pool), strict=True)


def criteria(p):
    P = primer.n_parameters(p.K, p.D)
    yield P, POOLINGS["full"].n_parameters(p.K, p.D) + p.K - 1 + p.K * p.D
    fit = ConstrainedGaussianMixture(p.K, max_iter=3, random_state=0).fit(p.X)
    theta = primer.Theta(fit.weights_, fit.means_, fit.covariances_)
    log_evidence = primer.responsibilities(primer.log_joint(p.X, theta))[1]
    yield primer.bic(log_evidence, P, N), fit.bic(p.X)
    yield primer.aic(log_evidence, P), fit.aic(p.X)


def labels(p):
    A = primer.allowed(p.y, p.K)
    yield A, p.labelled.mask(p.K)
    u = primer.masked(primer.log_joint(p.X, p.theta), A)
    yield u, production.node_unaries(p.X, p.parameters, p.labelled)
    start = production.from_labels(p.X, p.K, np.random.RandomState(0), p.labelled)
    yield primer.nearest(p.X, primer.label_means(p.X, p.y, p.K)), start

    def of_the_others(N_k):
        """Return an update of the weights as if labels had been drawn class by class."""
        return primer.shares(N_k - 0.9)

    for mine, theirs in ((primer.shares, production.closed_form), (of_the_others,) * 2):
        course = list(primer.labelled_em(p.X, p.theta, A, primer.tied, mine, 3))
        yield from courses(course, p.X, p.theta, p.labelled, "tied", theirs)


def must_links(p):
    draws = {"points": primer.if_points_are_sampled, "chunklets": primer.if_chunklets_are_sampled}
    log_p = primer.log_densities(p.X, p.theta)
    for sampling, multiplicities in draws.items():
        side = SideInformation.build(N, must_link=p.known.must, sampling=sampling)
        yield p.chunklet, side.node_of
        n = multiplicities(p.chunklet)
        yield n, side.multiplicity
        u = primer.node_unaries(log_p, p.theta.weights, p.chunklet, n)
        yield u, production.node_unaries(p.X, p.parameters, side)
    course = list(primer.chunklet_em(p.X, p.theta, p.chunklet, primer.tied, 3))
    yield from courses(course, p.X, p.theta, side, "tied")


def cannot_links(p):
    relations = {"must_link": p.known.must, "cannot_link": p.known.cannot}
    theirs = SideInformation.build(N, **relations).graph.edges
    yield primer.cannot_edges(p.chunklet, p.known.cannot), theirs


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "compared",
    [
        densities, m_steps, em, em_in_blocks, criteria, labels,
        must_links, cannot_links,
    ],
)  # fmt: skip
def test_the_primer_says_what_the_package_says(compared):
    @examples(**SIZES)
    def says_the_same(seed, K, D):
        for mine, theirs in compared(Problem(seed, K, D)):
            np.testing.assert_allclose(mine, theirs, rtol=1e-7, atol=1e-7)

    says_the_same()


# ---------------------------------------------------------------- what has no twin in the package


@examples(**SIZES)
def test_a_sample_is_an_affine_map_of_noise(seed, K, D):
    theta = mixture(np.random.default_rng(seed), K, D)
    X, z = primer.sample(theta, 9, np.random.default_rng(seed))
    again = np.random.default_rng(seed)
    np.testing.assert_array_equal(z, again.choice(K, size=9, p=theta.weights))
    L = np.linalg.cholesky(theta.covariances)
    noise = [np.linalg.solve(L[k], x - theta.means[k]) for x, k in zip(X, z, strict=True)]
    np.testing.assert_allclose(noise, again.standard_normal((9, D)), atol=1e-9)


@examples(SEEDS, st.integers(2, 6), st.integers(1, 3), st.data())
def test_centres_are_drawn_by_squared_distance_from_the_nearest(seed, N, D, data):
    X = np.random.default_rng(seed).normal(size=(N, D))
    drawn = data.draw(st.permutations(range(N)))
    # A generator that returns prescribed draws and records its calls.
    rng = Mock(**{"integers.return_value": drawn[0], "choice.side_effect": drawn[1:]})
    np.testing.assert_array_equal(primer.far_points(X, N, rng), X[drawn])
    rng.integers.assert_called_once_with(N)
    squared = cdist(X, X, "sqeuclidean")
    for n, asked in enumerate(rng.choice.call_args_list, start=1):
        gaps = squared[:, drawn[:n]].min(axis=1)
        np.testing.assert_allclose(asked.kwargs["p"], gaps / gaps.sum(), atol=1e-12)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@examples(SEEDS, st.integers(1, 2), st.floats(1e-4, 1e-1))
@example(seed=0, D=1, tol=0.0)  # It does not converge, so all steps are taken.
def test_em_stops_where_the_estimator_does(seed, D, tol):
    X = np.random.default_rng(seed).normal(size=(40, D))
    r = primer.nearest(X, X[:2])
    options = {"covariance_type": "tied", "reg_covar": 0, "tol": tol, "max_iter": 30}
    fit = ConstrainedGaussianMixture(2, init_params=r, **options).fit(X)
    steps = primer.em(X, primer.m_step(X, r, primer.tied), primer.tied, 30)
    course = [log_evidence for _, log_evidence in primer.until(steps, tol * len(X))]
    # The estimator reports the parameters that its last step has made.
    np.testing.assert_allclose(course, fit.history_, rtol=1e-9)


@examples(SEEDS, st.integers(1, 4), st.lists(st.integers(0, 3), min_size=1, unique=True))
def test_an_empty_component_is_no_loss(seed, D, lived_in):
    """An empty component has weight zero and does not change the density."""
    assert primer.occupied(np.eye(3)[[0, 0, 2]]).shape == (3, 2)
    p = Problem(seed, 4, D)
    p.r = np.zeros((N, 4))
    p.r[:, lived_in] = np.random.default_rng(seed).dirichlet(np.ones(len(lived_in)), size=N)
    left = primer.occupied(p.r)
    np.testing.assert_array_equal(left, p.r[:, sorted(lived_in)])
    with np.errstate(divide="ignore"):
        whole = primer.log_joint(p.X, p.production_m_step("tied"))
    found = primer.log_joint(p.X, primer.m_step(p.X, left, primer.tied))
    there = logsumexp(whole, axis=1)
    np.testing.assert_allclose(logsumexp(found, axis=1), there, rtol=1e-7)


@examples(**SIZES, nu=st.floats(0, 9))
def test_the_prior_on_covariances_makes_its_posterior_level(seed, K, D, nu):
    rng = np.random.default_rng(seed)
    X, r = rng.normal(size=(9, D)), rng.dirichlet(np.ones(K), size=9)
    (N_k, mu, S), Psi = primer.moments(X, r), np.eye(D) * rng.uniform(0.5, 2)
    upper = np.triu_indices(D)

    def symmetric(numbers):
        made = np.zeros((K, D, D))
        made[:, *upper] = numbers
        return made + np.triu(made, 1).swapaxes(-1, -2)

    def log_posterior(numbers):
        theta = primer.Theta(np.full(K, 1 / K), mu, symmetric(numbers))
        # scipy's density exists for ν > D - 1; its terms in Σ are those of any ν.
        prior = sum(
            invwishart(nu + D, Psi).logpdf(C) + D / 2 * np.linalg.slogdet(C).logabsdet
            for C in theta.covariances
        )
        return primer.lower_bound(X, theta, r) + prior

    found = primer.map_covariances(N_k, S, Psi, nu)[:, *upper]
    np.testing.assert_allclose(primer.derivative(log_posterior, found), 0, atol=1e-5)
