"""Compare densities, moments and covariance types with independent libraries."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mixture_problems import random_mixture
from scipy.stats import multivariate_normal

from cgmm import primer
from cgmm.mixture import (
    POOLINGS,
    Parameters,
    from_responsibilities,
    log_density,
    log_joint,
    products,
    sample,
)
from cgmm.mixture.pooling import moments_about

DIMENSIONS = [1, 2, 5, products.MAX_DIMENSION, products.MAX_DIMENSION + 1]


@pytest.fixture(params=[-1.0, np.inf], ids=["direct", "expanded"])
def _each_form(request, monkeypatch):
    """Run a test with the direct form of densities and with the expanded one."""
    monkeypatch.setattr(products, "SAFE_RATIO", request.param)


@pytest.mark.parametrize("n_dims", DIMENSIONS)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.usefixtures("_each_form")
def test_log_density_equals_scipy(n_dims, order):
    rng = np.random.default_rng(n_dims)
    theta = random_mixture(rng, 3, n_dims)
    X = np.array(rng.normal(size=(3000, n_dims)) * 3, order=order)
    truth = [multivariate_normal(*moments).logpdf(X) for moments in zip(*theta[1:], strict=True)]
    np.testing.assert_allclose(log_density(X, theta).T, truth, rtol=1e-11)


@given(st.integers(0, 1000), st.booleans(), st.sampled_from([3.0, 3e4]))
def test_all_covariance_types_give_equal_densities(seed, shared, reach):
    """Variances equal diagonal matrices, and a shared matrix equals K copies of it.

    Of points that reach so far that each mean is subtracted first, too.
    """
    rng = np.random.default_rng(seed)
    theta = random_mixture(rng, 3, 4)
    if shared:
        theta = theta._replace(covariances=np.broadcast_to(theta.covariances[:1], (3, 4, 4)))
    else:
        theta = theta._replace(covariances=theta.variances)
    plain = theta._replace(covariances=theta.full_covariances.copy())
    X = rng.normal(size=(20, 4)) * reach
    np.testing.assert_allclose(log_joint(X, theta), log_joint(X, plain), rtol=1e-12)
    np.testing.assert_array_equal(theta.variances, plain.variances)
    (here, z), (there, same) = (sample(t, 30, np.random.default_rng(7)) for t in (theta, plain))
    np.testing.assert_allclose(here, there, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(z, same)


def test_log_joint_adds_the_weights_and_knows_weight_zero():
    rng = np.random.default_rng(2)
    theta = random_mixture(rng, 3, 2)._replace(weights=np.array([0.25, 0.0, 0.75]))
    X = rng.normal(size=(10, 2))
    joint = log_joint(X, theta)
    assert (joint[:, 1] == -np.inf).all()
    expected = log_density(X, theta)[:, [0, 2]] + np.log([0.25, 0.75])
    np.testing.assert_allclose(joint[:, [0, 2]], expected, rtol=1e-14)


@pytest.mark.parametrize("n_dims", DIMENSIONS)
@pytest.mark.parametrize("offset", [0.0, 50.0])
@pytest.mark.usefixtures("_each_form")
def test_moments_of_responsibilities_equal_the_sums_written_down(n_dims, offset):
    rng = np.random.default_rng(n_dims)
    X, r = rng.normal(size=(3000, n_dims)) + offset, rng.dirichlet(np.ones(4), size=3000)
    counts, means, scatter = primer.moments(X, r)
    covariances = scatter / counts[:, None, None]
    truths = {
        "full": covariances,
        "tied": [scatter.sum(axis=0) / len(X)] * 4,
        "diag": np.einsum("kdd->kd", covariances),
    }
    for name, truth in truths.items():
        theta = from_responsibilities(X, r, POOLINGS[name])
        np.testing.assert_allclose(theta.means, means, rtol=1e-11)
        # Entries off the diagonal are sums that cancel: absolute, against variances of about one.
        np.testing.assert_allclose(theta.covariances, truth, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("form", ["diagonal", "full", "shared"])
@pytest.mark.parametrize("scale", [1.0, 1e-250])
def test_only_negligible_responsibilities_are_left_out(form, scale):
    """Small responsibilities add nothing beside the largest, which counts however small it is."""
    rng = np.random.default_rng(0)
    n_dims = products.MAX_DIMENSION + 1
    X = rng.normal(size=(900, n_dims)) + 9 * np.repeat(np.eye(3, n_dims), 300, axis=0)
    r = np.repeat(np.eye(3), 300, axis=0)
    # In each third a tenth is negligible, a tenth is small, and a tenth is impossible.
    r[:30, 1], r[30:60, 1] = 1e-60, 1e-3
    r[:, 2] *= scale
    shape = {"diagonal": form == "diagonal", "shared": form == "shared"}
    counts, firsts, seconds = moments_about(X[::300], X, r, **shape)
    apart = X[:, None] - X[::300]
    every = np.einsum("nk,nkd,nke->kde", r, apart, apart)
    every = every.sum(axis=0, keepdims=True) if form == "shared" else every
    every = np.einsum("kdd->kd", every) if form == "diagonal" else every
    for ours, theirs in ((firsts, np.einsum("nk,nkd->kd", r, apart)), (seconds, every)):
        for mine, sums in zip(ours, theirs, strict=True):
            largest = np.abs(sums).max()
            # Sums of at most 900 rounded products.
            np.testing.assert_allclose(mine / largest, sums / largest, atol=1e-13)
    np.testing.assert_allclose(counts, r.sum(axis=0))


@pytest.mark.parametrize(
    "bad",
    [np.zeros((2, 2)), [[1, 1], [1, 1]]]
    + [np.diag([1, variance]) for variance in (-1, 1e-310, np.inf, np.nan)],
)
def test_singular_covariance_is_named(bad):
    theta = Parameters(np.full(2, 0.5), np.zeros((2, 2)), np.array([np.eye(2), bad], float))
    with pytest.raises(ValueError, match="component 1 is not positive definite"):
        log_density(np.zeros((3, 2)), theta)


# ------------------------------------------------------------------ poolings


@pytest.mark.parametrize("name", POOLINGS)
def test_pooling_maximises_the_expected_log_likelihood_within_its_type(name):
    """No random competitor of the same type has a higher -½ Σ_k (N_k log|Σ_k| + tr Σ_k⁻¹ S_k)."""
    rng = np.random.default_rng(0)
    X, r = rng.normal(size=(200, 3)) * [1, 2, 3], rng.dirichlet(np.ones(3), size=200)
    counts, _, scatter = primer.moments(X, r)
    pool = POOLINGS[name]

    def expected(covariances):
        log_dets = np.linalg.slogdet(covariances)[1]
        traces = np.einsum("kde,ked->k", np.linalg.inv(covariances), scatter)
        return -0.5 * (counts * log_dets + traces).sum()

    def combined(counts, scatter):
        pooled = pool.reduce(pool.combine(counts, scatter))
        return Parameters(counts, np.zeros((3, 3)), pool.expand(pooled, 3, 3)).full_covariances

    best = combined(counts, scatter)
    ones = np.ones(3)
    for _ in range(200):
        factors = np.linalg.cholesky(best) + 0.05 * np.tril(rng.normal(size=(3, 3, 3)))
        competitor = combined(ones, factors @ factors.transpose(0, 2, 1))
        assert expected(competitor) <= expected(best) + 1e-9
