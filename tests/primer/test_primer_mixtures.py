"""Chapters 1 to 4 and 6 by hand: against scipy, sums over every assignment, and the package."""

from itertools import islice

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from primer_problems import FEW, SEEDS, assignments, enumerate_all, matrices, mixture, related
from scipy.spatial.distance import cdist
from scipy.special import logsumexp, softmax
from scipy.stats import invwishart, multivariate_normal

from cgmm import ConstrainedGaussianMixture, primer
from cgmm import mixture as production
from cgmm.inference import ENGINES
from cgmm.mixture import POOLINGS, Parameters
from cgmm.network import SideInformation
from cgmm.numerics import log_normalise

POOLS = {"full": primer.full, "tied": primer.tied, "diag": primer.diag}
POOLS["spherical"] = primer.spherical
SIZES = {"seed": SEEDS, "K": st.integers(1, 3), "D": st.integers(1, 3)}


# ---------------------------------------------------------------------------- chapter 1


@FEW
@given(**SIZES)
def test_a_sample_is_an_affine_map_of_the_same_noise(seed, K, D):
    theta = mixture(np.random.default_rng(seed), K, D)
    X, z = primer.sample(theta, 9, np.random.default_rng(seed))
    again = np.random.default_rng(seed)
    np.testing.assert_array_equal(z, again.choice(K, size=9, p=theta.weights))
    np.testing.assert_allclose(whitened(X, z, theta), again.standard_normal((9, D)), atol=1e-9)
    X, z = production.sample(Parameters(*theta), 9, np.random.default_rng(seed))
    again = np.random.default_rng(seed)
    again.multinomial(9, theta.weights)
    np.testing.assert_allclose(whitened(X, z, theta), again.standard_normal((9, D)), atol=1e-9)


def whitened(X, z, theta):
    L = np.linalg.cholesky(theta.covariances)
    return np.array([np.linalg.solve(L[k], x - theta.means[k]) for x, k in zip(X, z, strict=True)])


@FEW
@given(**SIZES)
def test_densities_are_those_of_scipy(seed, K, D):
    rng = np.random.default_rng(seed)
    theta, X = mixture(rng, K, D), 3 * rng.normal(size=(5, D))
    by_scipy = [
        multivariate_normal(m, S).logpdf(X)
        for m, S in zip(theta.means, theta.covariances, strict=True)
    ]
    one = primer.log_gaussian(X, theta.means[0], theta.covariances[0])
    np.testing.assert_allclose(one, by_scipy[0], rtol=1e-9)
    densities = primer.log_densities(X, theta)
    np.testing.assert_allclose(densities, np.transpose(by_scipy), rtol=1e-9)
    u = primer.log_joint(X, theta)
    np.testing.assert_allclose(np.exp(u - densities), np.tile(theta.weights, (5, 1)), rtol=1e-9)
    np.testing.assert_allclose(production.log_density(X, Parameters(*theta)), densities, rtol=1e-9)
    np.testing.assert_allclose(production.log_joint(X, Parameters(*theta)), u, rtol=1e-9)


@FEW
@given(SEEDS, st.integers(1, 4), st.integers(1, 3))
def test_responsibilities_are_margins_of_all_assignments(seed, N, K):
    u = 5 * np.random.default_rng(seed).normal(size=(N, K))
    r, log_evidence = primer.responsibilities(u)
    everything = enumerate_all(u, np.empty((0, 2), dtype=int), [])
    assert log_evidence == pytest.approx(everything.log_z, rel=1e-12)
    np.testing.assert_allclose(r, everything.marginals(K), atol=1e-12)
    shares, totals = log_normalise(u)
    np.testing.assert_allclose(r, shares, atol=1e-14)
    assert log_evidence == pytest.approx(totals.sum(), rel=1e-12)


# ---------------------------------------------------------------------------- chapter 2


@FEW
@given(**SIZES)
def test_the_bound_is_the_evidence_less_the_divergence(seed, K, D):
    rng = np.random.default_rng(seed)
    theta, X, q = mixture(rng, K, D), rng.normal(size=(3, D)), rng.dirichlet(np.ones(K), size=3)
    everything = enumerate_all(primer.log_joint(X, theta), np.empty((0, 2), dtype=int), [])
    q_joint = q[range(3), everything.z].prod(axis=1)
    divergence = q_joint @ np.log(q_joint / everything.p)
    bound = primer.lower_bound(X, theta, q)
    assert bound == pytest.approx(everything.log_z - divergence, rel=1e-9, abs=1e-9)
    assert production.lower_bound(X, Parameters(*theta), q) == pytest.approx(bound, rel=1e-12)


@FEW
@given(**SIZES)
def test_moments_are_those_of_numpy(seed, K, D):
    rng = np.random.default_rng(seed)
    X, r = rng.normal(size=(6, D)), rng.dirichlet(np.ones(K), size=6)
    N_k, mu, S = primer.moments(X, r)
    for k in range(K):
        np.testing.assert_allclose(mu[k], np.average(X, axis=0, weights=r[:, k]), atol=1e-12)
        by_numpy = np.cov(X.T, aweights=r[:, k], ddof=0).reshape(D, D)
        np.testing.assert_allclose(S[k] / r[:, k].sum(), by_numpy, atol=1e-12)
    for mine, theirs in zip((N_k, mu, S), production.weighted_moments(X, r), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-9)


def free_numbers(kind, K, D):
    """From the free numbers of a covariance type to (K, D, D), and how many there are."""
    upper = np.triu_indices(D)

    def symmetric(values):
        made = np.zeros((*values.shape[:-1], D, D))
        made[..., upper[0], upper[1]] = values
        return made + np.triu(made, 1).swapaxes(-1, -2)

    if kind == "full":
        return lambda covariances: covariances[:, *upper], symmetric
    if kind == "tied":
        return lambda c: c[0][upper], lambda v: np.repeat(symmetric(v)[None], K, axis=0)
    if kind == "diag":
        return lambda c: np.einsum("kdd->kd", c), lambda v: v[:, :, None] * np.eye(D)
    return lambda c: c[:, 0, 0], lambda v: v[:, None, None] * np.eye(D)


@FEW
@given(**SIZES, kind=st.sampled_from(sorted(POOLS)))
def test_the_m_step_stands_where_the_bound_is_level(seed, K, D, kind):
    rng = np.random.default_rng(seed)
    X, r = 2 * rng.normal(size=(9, D)), rng.dirichlet(np.ones(K), size=9)
    N_k, _, S = primer.moments(X, r)
    covariances = {"full": primer.full, "tied": primer.tied, "diag": primer.diag}
    covariances = (covariances | {"spherical": primer.spherical})[kind](N_k, S)
    theta = primer.m_step(X, r, POOLS[kind])
    np.testing.assert_array_equal(theta.covariances, covariances)
    read, write = free_numbers(kind, K, D)

    def bound_at(eta, mu, numbers):
        return primer.lower_bound(X, primer.Theta(softmax(eta), mu, write(numbers)), r)

    best = [np.log(theta.weights), theta.means, read(theta.covariances)]
    np.testing.assert_allclose(write(best[2]), theta.covariances, atol=1e-12)
    tightness = 1 + np.abs(np.linalg.inv(theta.covariances)).max() ** 2
    for i in range(3):
        slope = primer.derivative(lambda x, i=i: bound_at(*best[:i], x, *best[i + 1 :]), best[i])
        np.testing.assert_allclose(slope, 0, atol=1e-6 * tightness)
    posterior = production.Posterior(r, r.sum(axis=0), 0.0)
    start = Parameters(*mixture(rng, K, D))
    theirs = production.m_step(X, start, posterior, POOLINGS[kind], production.closed_form)
    assert_same(theta, theirs, 1e-9)


def assert_same(theta, other, tolerance):
    """The package may store variances where the primer has matrices."""
    np.testing.assert_allclose(theta.weights, other.weights, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(theta.means, other.means, rtol=tolerance, atol=tolerance)
    theirs = matrices(other.covariances, *theta.means.shape)
    np.testing.assert_allclose(theta.covariances, theirs, rtol=tolerance, atol=tolerance)


def production_em(X, theta, side, kind, n_iter, update=production.closed_form, infer=None):
    infer = infer or ENGINES["enumerate"](side.graph)
    steps = production.em(X, Parameters(*theta), side, infer, POOLINGS[kind], update)
    return [(found, posterior.log_evidence) for found, posterior in islice(steps, n_iter)]


def assert_same_course(mine, theirs, rtol=1e-7):
    for (theta, log_evidence), (other, theirs_says) in zip(mine, theirs, strict=True):
        assert log_evidence == pytest.approx(theirs_says, rel=rtol, abs=rtol)
        assert_same(theta, other, rtol)


@FEW
@given(**SIZES, kind=st.sampled_from(sorted(POOLS)))
def test_em_climbs_as_the_package_does(seed, K, D, kind):
    rng = np.random.default_rng(seed)
    # Wide components and points for all of them: no component collapses within three steps.
    X, theta = 3 * rng.normal(size=(40, D)), mixture(rng, K, D)
    theta = theta._replace(covariances=theta.covariances + 9 * np.eye(D))
    course = list(primer.em(X, theta, POOLS[kind], 4))
    evidence = [log_evidence for _, log_evidence in course]
    assert evidence[0] == pytest.approx(logsumexp(primer.log_joint(X, theta), axis=1).sum())
    # Not from the start, whose covariances are of another type.
    assert (np.diff(evidence[1:]) >= -1e-9 * np.abs(evidence[0])).all()
    side = SideInformation.build(40)
    infer = ENGINES["independent"](side.graph)
    assert_same_course(course, production_em(X, theta, side, kind, 4, infer=infer))


@FEW
@given(**SIZES, kind=st.sampled_from(list(POOLS)), cut=st.integers(1, 40))
def test_statistics_of_blocks_add_up(seed, K, D, kind, cut):
    """To those of all points; and one iteration on their sum is one on all of them."""
    rng = np.random.default_rng(seed)
    X, theta = 3 * rng.normal(size=(40, D)), mixture(rng, K, D)
    theta = theta._replace(covariances=theta.covariances + 9 * np.eye(D))
    parts = [primer.statistics(part, theta) for part in np.split(X, [cut])]
    log_p, N_k, sums, squares = map(sum, zip(*parts, strict=True))
    r, whole = primer.responsibilities(primer.log_joint(X, theta))
    assert log_p == pytest.approx(whole)
    moments = production.weighted_moments(X, r)
    np.testing.assert_allclose(N_k, moments.counts)
    np.testing.assert_allclose(sums, moments.counts[:, None] * moments.means, atol=1e-9)
    about_zero = moments.counts[:, None, None] * np.einsum("kd,ke->kde", *2 * [moments.means])
    np.testing.assert_allclose(squares, moments.scatter + about_zero, atol=1e-9)
    folded, log_p = primer.fold(np.split(X, [cut]), theta, POOLS[kind])
    assert log_p == pytest.approx(whole)
    for here, there in zip(folded, primer.m_step(X, r, POOLS[kind]), strict=True):
        np.testing.assert_allclose(here, there, rtol=1e-7, atol=1e-8)


# ---------------------------------------------------------------------------- chapter 3


class Recorder:
    """A generator that draws what it is told, and remembers with which probabilities."""

    def __init__(self, drawn):
        self.drawn, self.p = list(drawn), []

    def integers(self, n):
        self.p.append(np.full(n, 1 / n))
        return self.drawn[0]

    def choice(self, n, p):
        self.p.append(p)
        return self.drawn[len(self.p) - 1]


@FEW
@given(SEEDS, st.integers(2, 6), st.integers(1, 3), st.data())
def test_centres_are_drawn_by_squared_distance_from_the_nearest(seed, N, D, data):
    X = np.random.default_rng(seed).normal(size=(N, D))
    drawn = data.draw(st.permutations(range(N)))
    rng = Recorder(drawn)
    np.testing.assert_array_equal(primer.far_points(X, N, rng), X[drawn])
    squared = cdist(X, X, "sqeuclidean")
    for n in range(1, N):
        gaps = [min(squared[i, j] for j in drawn[:n]) for i in range(N)]
        np.testing.assert_allclose(rng.p[n], np.array(gaps) / sum(gaps), atol=1e-12)


@FEW
@given(SEEDS, st.integers(1, 4), st.integers(1, 3), st.integers(1, 5))
def test_as_many_heaps_as_centres_get_one_each_as_in_the_package(seed, K, D, n):
    """Nobody draws a place twice; so both part the heaps, whatever their dice."""
    rng = np.random.default_rng(seed)
    X = rng.permutation(np.repeat(rng.normal(size=(K, D)), n, axis=0))
    r = primer.nearest(X, primer.far_points(X, K, rng))
    theirs = production.far_points(X, K, np.random.RandomState(seed % 2**32))
    np.testing.assert_array_equal(r @ r.T, theirs @ theirs.T)
    np.testing.assert_array_equal(r @ r.T, (cdist(X, X) == 0).astype(float))


@FEW
@given(SEEDS, st.integers(1, 4), st.integers(1, 3))
def test_a_point_belongs_to_the_nearest_centre(seed, K, D):
    rng = np.random.default_rng(seed)
    X, mu = rng.normal(size=(9, D)), rng.normal(size=(K, D))
    r = primer.nearest(X, mu)
    np.testing.assert_array_equal(r.argmax(axis=1), cdist(X, mu).argmin(axis=1))
    np.testing.assert_array_equal(r.sum(axis=1), 1)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@FEW
@given(SEEDS, st.integers(1, 2), st.floats(1e-4, 1e-1))
def test_em_stops_where_the_estimator_does(seed, D, tol):
    X = np.random.default_rng(seed).normal(size=(40, D))
    r = primer.nearest(X, X[:2])
    options = {"covariance_type": "tied", "reg_covar": 0, "tol": tol, "max_iter": 30}
    fit = ConstrainedGaussianMixture(2, init_params=r, **options).fit(X)
    steps = primer.em(X, primer.m_step(X, r, primer.tied), primer.tied, 30)
    course = [log_evidence for _, log_evidence in primer.until(steps, tol * len(X))]
    # The estimator reports the parameters that its last step has made.
    np.testing.assert_allclose(course, fit.history_, rtol=1e-9)


@FEW
@given(SEEDS, st.integers(1, 4), st.lists(st.integers(0, 3), min_size=1, unique=True))
def test_an_empty_component_is_no_loss(seed, D, lived_in):
    """The density without it is that with it: its weight is zero."""
    rng = np.random.default_rng(seed)
    r = np.zeros((9, 4))
    r[:, lived_in] = rng.dirichlet(np.ones(len(lived_in)), size=9)
    left = primer.occupied(r)
    np.testing.assert_array_equal(left, r[:, sorted(lived_in)])
    X = 3 * rng.normal(size=(9, D))
    theta = primer.m_step(X, left, primer.tied)
    start = Parameters(*mixture(rng, 4, D))
    theirs = production.m_step(
        X, start, production.Posterior(r, r.sum(axis=0), 0.0), POOLINGS["tied"],
        production.closed_form,
    )  # fmt: skip
    with np.errstate(divide="ignore"):
        whole = primer.log_joint(X, primer.Theta(*theirs[:2], matrices(theirs[2], 4, D)))
    there = logsumexp(whole, axis=1)
    np.testing.assert_allclose(logsumexp(primer.log_joint(X, theta), axis=1), there, rtol=1e-7)


@FEW
@given(**SIZES, nu=st.floats(0, 9))
def test_the_prior_on_covariances_makes_its_posterior_level(seed, K, D, nu):
    rng = np.random.default_rng(seed)
    X, r = rng.normal(size=(9, D)), rng.dirichlet(np.ones(K), size=9)
    (N_k, mu, S), Psi = primer.moments(X, r), np.eye(D) * rng.uniform(0.5, 2)
    found = primer.map_covariances(N_k, S, Psi, nu)
    read, write = free_numbers("full", K, D)

    def log_posterior(numbers):
        theta = primer.Theta(np.full(K, 1 / K), mu, write(numbers))
        # scipy's density exists for ν > D - 1; its terms in Σ are those of any ν.
        prior = sum(
            invwishart(nu + D, Psi).logpdf(C) + D / 2 * np.linalg.slogdet(C).logabsdet
            for C in theta.covariances
        )
        return primer.lower_bound(X, theta, r) + prior

    np.testing.assert_allclose(primer.derivative(log_posterior, read(found)), 0, atol=1e-5)


@FEW
@given(**SIZES, eps=st.floats(1e-6, 1))
def test_reg_covar_is_a_prior_as_strong_as_the_counts(seed, K, D, eps):
    rng = np.random.default_rng(seed)
    X, r = rng.normal(size=(9, D)), rng.dirichlet(np.ones(K), size=9)
    N_k, _, S = primer.moments(X, r)
    found = primer.map_covariances(N_k, S, eps * N_k[:, None, None] * np.eye(D), -D - 1)
    start = Parameters(*mixture(rng, K, D))
    pool = POOLINGS["full"]
    theirs = pool.maximise(pool.statistics(X, r, start), start, reg_covar=eps)
    np.testing.assert_allclose(found, theirs.covariances, atol=1e-9)


@FEW
@given(**SIZES)
def test_free_numbers_are_counted(seed, K, D):
    theta = mixture(np.random.default_rng(seed), K, D)
    read, _ = free_numbers("full", K, D)
    P = primer.n_parameters(K, D)
    assert theta.weights[1:].size + theta.means.size + read(theta.covariances).size == P
    assert POOLINGS["full"].n_parameters(K, D) + K - 1 + K * D == P


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@FEW
@given(SEEDS, st.integers(1, 2), st.integers(1, 2))
def test_criteria_are_those_of_the_estimator(seed, K, D):
    X = np.random.default_rng(seed).normal(size=(20, D))
    fit = ConstrainedGaussianMixture(K, max_iter=3, random_state=0).fit(X)
    P = primer.n_parameters(K, D)
    log_evidence = primer.responsibilities(
        primer.log_joint(X, primer.Theta(fit.weights_, fit.means_, fit.covariances_))
    )[1]
    assert primer.bic(log_evidence, P, 20) == pytest.approx(fit.bic(X), rel=1e-9)
    assert primer.aic(log_evidence, P) == pytest.approx(fit.aic(X), rel=1e-9)


# ---------------------------------------------------------------------------- chapter 4


@FEW
@given(**SIZES)
def test_labels_leave_the_assignments_that_agree_with_them(seed, K, D):
    rng = np.random.default_rng(seed)
    theta, X, y = mixture(rng, K, D), rng.normal(size=(4, D)), rng.integers(-1, K, size=4)
    A = primer.allowed(y, K)
    u = primer.masked(primer.log_joint(X, theta), A)
    z = assignments(4, K)
    agree = ((z == y) | (y < 0)).all(axis=1)
    log_p = primer.log_joint(X, theta)[range(4), z[agree]].sum(axis=1)
    assert primer.responsibilities(u)[1] == pytest.approx(logsumexp(log_p), rel=1e-12)
    side = SideInformation.build(4, labels=y)
    mask = side.mask(K)
    np.testing.assert_array_equal(A, True if mask is None else mask)
    np.testing.assert_allclose(u, production.node_unaries(X, Parameters(*theta), side), rtol=1e-9)


@FEW
@given(**SIZES)
def test_em_with_labels_climbs_as_the_package_does(seed, K, D):
    rng = np.random.default_rng(seed)
    theta, X, y = mixture(rng, K, D), 3 * rng.normal(size=(9, D)), rng.integers(-1, K, size=9)
    theta = theta._replace(covariances=theta.covariances + 9 * np.eye(D))
    A = primer.allowed(y, K)
    course = list(primer.labelled_em(X, theta, A, primer.tied, primer.shares, 3))
    evidence = [log_evidence for _, log_evidence in course]
    # Not from the start, whose covariances are of another type.
    assert (np.diff(evidence[1:]) >= -1e-9 * np.abs(evidence[0])).all()
    side = SideInformation.build(9, labels=y)
    infer = ENGINES["independent"](side.graph)
    assert_same_course(course, production_em(X, theta, side, "tied", 3, infer=infer))


@FEW
@given(**SIZES)
def test_weights_of_labelled_em_are_what_the_update_says(seed, K, D):
    """Labels that were chosen by class count for means, and not for weights."""
    rng = np.random.default_rng(seed)
    theta, X = mixture(rng, K, D), 3 * rng.normal(size=(9 + K, D))
    theta = theta._replace(covariances=theta.covariances + 9 * np.eye(D))
    y = np.r_[:K, np.full(9, -1)]

    def of_the_others(N_k):
        return primer.shares(N_k - 1)

    A = primer.allowed(y, K)
    course = list(primer.labelled_em(X, theta, A, primer.tied, of_the_others, 3))
    side = SideInformation.build(len(X), labels=y)
    infer = ENGINES["independent"](side.graph)
    theirs = production_em(X, theta, side, "tied", 3, update=of_the_others, infer=infer)
    assert_same_course(course, theirs)


@FEW
@given(SEEDS, st.integers(1, 3), st.integers(1, 3))
def test_a_start_at_the_means_of_labels_is_that_of_the_package(seed, K, D):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(9, D)), np.r_[:K, rng.integers(-1, K, size=9 - K)]
    mu = primer.label_means(X, y, K)
    for k in range(K):
        np.testing.assert_allclose(mu[k], np.average(X, axis=0, weights=y == k))
    side, dice = SideInformation.build(9, labels=y), np.random.RandomState(0)
    theirs = production.from_labels(X, K, dice, side)
    np.testing.assert_array_equal(primer.nearest(X, mu), theirs)


# ---------------------------------------------------------------------------- chapters 5 and 6


@FEW
@given(SEEDS, st.integers(1, 12), st.integers(0, 9))
def test_chunklets_are_connected_components(seed, N, P):
    pairs = np.random.default_rng(seed).integers(N, size=(P, 2))
    chunklet = primer.closure(N, pairs)
    made = nx.Graph(pairs.tolist())
    made.add_nodes_from(range(N))
    for part in nx.connected_components(made):
        assert len(set(chunklet[list(part)])) == 1
    assert chunklet.max() + 1 == nx.number_connected_components(made)
    side = SideInformation.build(N, must_link=pairs)
    np.testing.assert_array_equal(chunklet, side.node_of)
    np.testing.assert_array_equal(primer.if_points_are_sampled(chunklet), side.multiplicity)
    side = SideInformation.build(N, must_link=pairs, sampling="chunklets")
    np.testing.assert_array_equal(primer.if_chunklets_are_sampled(chunklet), side.multiplicity)


@FEW
@given(SEEDS, st.integers(2, 6), st.integers(2, 3), st.integers(0, 3), st.integers(1, 4))
def test_edges_join_the_chunklets_that_cannot_links_tell_apart(seed, N, K, n_must, n_cannot):
    rng = np.random.default_rng(seed)
    pairs = np.stack(np.triu_indices(N, 1), axis=1)
    must, cannot = (rng.choice(pairs, n) for n in (n_must, n_cannot))
    chunklet = primer.closure(N, must)
    a, b = primer.cannot_edges(chunklet, cannot).T
    # As many assignments of chunklets heed the edges as of points the relations; none, if a
    # cannot-link lies within a chunklet.
    z, of_chunklets = assignments(N, K), assignments(chunklet.max() + 1, K)
    heeded = (z[:, must[:, 0]] == z[:, must[:, 1]]).all(axis=1)
    heeded &= (z[:, cannot[:, 0]] != z[:, cannot[:, 1]]).all(axis=1)
    assert heeded.sum() == (of_chunklets[:, a] != of_chunklets[:, b]).all(axis=1).sum()
    if (a != b).all():
        graph = SideInformation.build(N, must_link=must, cannot_link=cannot).graph
        np.testing.assert_array_equal(np.stack([a, b], axis=1), graph.edges)


@FEW
@given(**SIZES, sampling=st.sampled_from(["points", "chunklets"]))
def test_unaries_weigh_the_assignments_that_honour_must_links(seed, K, D, sampling):
    rng = np.random.default_rng(seed)
    theta, known = mixture(rng, K, D), related(rng, 5, K, D, with_edges=False)
    chunklet = primer.closure(5, known.must)
    draws = primer.if_points_are_sampled, primer.if_chunklets_are_sampled
    n = draws[sampling == "chunklets"](chunklet)
    log_p = primer.log_densities(known.X, theta)
    u = primer.node_unaries(log_p, theta.weights, chunklet, n)
    # The stories: a factor π for each point, or for the first point of each chunklet.
    z = assignments(5, K)
    z = z[(z[:, known.must[:, 0]] == z[:, known.must[:, 1]]).all(axis=1)]
    drawn = np.arange(5) if sampling == "points" else np.unique(chunklet, return_index=True)[1]
    log_weights = log_p[range(5), z].sum(axis=1) + np.log(theta.weights)[z[:, drawn]].sum(axis=1)
    assert primer.responsibilities(u)[1] == pytest.approx(logsumexp(log_weights), rel=1e-9)
    theirs = production.node_unaries(known.X, Parameters(*theta), known.side(sampling))
    np.testing.assert_allclose(u, theirs, rtol=1e-9, atol=1e-9)


@FEW
@given(**SIZES)
def test_em_with_chunklets_climbs_as_the_package_does(seed, K, D):
    rng = np.random.default_rng(seed)
    theta, known = mixture(rng, K, D), related(rng, 9, K, D, with_edges=False)
    theta = theta._replace(covariances=theta.covariances + 9 * np.eye(D))
    chunklet = primer.closure(9, known.must)
    course = list(primer.chunklet_em(known.X, theta, chunklet, primer.tied, 3))
    evidence = [log_evidence for _, log_evidence in course]
    # Not from the start, whose covariances are of another type.
    assert (np.diff(evidence[1:]) >= -1e-9 * np.abs(evidence[0])).all()
    side = known.side("chunklets")
    infer = ENGINES["independent"](side.graph)
    assert_same_course(course, production_em(known.X, theta, side, "tied", 3, infer=infer))
