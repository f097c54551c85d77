"""Densities, moments and poolings against independent libraries, in both of their forms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import check_grad
from scipy.stats import multivariate_normal

from cgmm.mixture import (
    POOLINGS,
    Parameters,
    exponential_form,
    gaussian,
    log_density,
    log_joint,
    sample,
    weighted_moments,
)

DIMENSIONS = [1, 2, 5, exponential_form.MAX_DIMENSION, exponential_form.MAX_DIMENSION + 1]


def random_mixture(rng, n_components, n_dims, *, scale=1.0):
    factors = rng.normal(size=(n_components, n_dims, n_dims)) * scale
    covariances = factors @ factors.transpose(0, 2, 1) + 0.3 * scale**2 * np.eye(n_dims)
    weights = rng.dirichlet(np.ones(n_components))
    return Parameters(weights, rng.normal(size=(n_components, n_dims)) * 3 * scale, covariances)


def reference_density(X, theta):
    pairs = zip(theta.means, theta.covariances, strict=True)
    return np.column_stack([multivariate_normal(m, c).logpdf(X) for m, c in pairs])


def reference_moments(X, r):
    counts = r.sum(axis=0)
    means = (r.T @ X) / counts[:, None]
    apart = X[:, None] - means
    return counts, means, np.einsum("nk,nkd,nke->kde", r, apart, apart)


@pytest.fixture
def force_form(monkeypatch):
    """Choose the direct or the expanded form, whatever the data."""

    def choose(form):
        monkeypatch.setattr(
            exponential_form, "SAFE_RATIO", {"direct": -1.0, "expanded": np.inf}[form]
        )

    return choose


@pytest.mark.parametrize("n_dims", DIMENSIONS)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("form", ["direct", "expanded"])
def test_log_density_equals_scipy(n_dims, order, form, force_form):
    force_form(form)
    rng = np.random.default_rng(n_dims)
    theta = random_mixture(rng, 3, n_dims)
    X = np.array(rng.normal(size=(3000, n_dims)) * 3, order=order)
    np.testing.assert_allclose(log_density(X, theta), reference_density(X, theta), rtol=1e-11)


@pytest.mark.parametrize("form", ["direct", "expanded"])
def test_log_density_of_diagonal_covariances(form, force_form):
    force_form(form)
    rng = np.random.default_rng(1)
    theta = random_mixture(rng, 4, 40)
    theta = theta._replace(covariances=theta.covariances * np.eye(40))
    X = rng.normal(size=(500, 40))
    np.testing.assert_allclose(log_density(X, theta), reference_density(X, theta), rtol=1e-11)


def test_diagonal_covariances_need_no_square_matrices(monkeypatch):
    theta = Parameters(np.ones(1), np.zeros((1, 3)), np.diag([1.0, 4.0, 9.0])[None])
    expected = reference_density(np.ones((2, 3)), theta)
    monkeypatch.setattr(gaussian, "_cholesky", None)
    np.testing.assert_allclose(log_density(np.ones((2, 3)), theta), expected, rtol=1e-14)


def test_log_joint_adds_the_weights_and_knows_weight_zero():
    rng = np.random.default_rng(2)
    theta = random_mixture(rng, 3, 2)._replace(weights=np.array([0.25, 0.0, 0.75]))
    X = rng.normal(size=(10, 2))
    joint = log_joint(X, theta)
    assert (joint[:, 1] == -np.inf).all()
    expected = log_density(X, theta)[:, [0, 2]] + np.log([0.25, 0.75])
    np.testing.assert_allclose(joint[:, [0, 2]], expected, rtol=1e-14)


@pytest.mark.parametrize("n_dims", DIMENSIONS)
@pytest.mark.parametrize("form", ["direct", "expanded"])
@pytest.mark.parametrize("offset", [0.0, 50.0])
def test_weighted_moments_equal_the_sums_written_down(n_dims, form, offset, force_form):
    force_form(form)
    rng = np.random.default_rng(n_dims)
    X, r = rng.normal(size=(3000, n_dims)) + offset, rng.dirichlet(np.ones(4), size=3000)
    moments = weighted_moments(X, r)
    for ours, theirs in zip(moments, reference_moments(X, r), strict=True):
        # Off-diagonal scatter is a sum that cancels: absolute, against entries of about 750.
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-8)
    diagonal = weighted_moments(X, r, diagonal=True)
    np.testing.assert_allclose(diagonal.scatter, moments.scatter * np.eye(n_dims), rtol=1e-10)


def test_a_tiny_component_beside_a_large_extent_keeps_its_digits():
    """The expanded form would lose them all: 1e-6 beside 1e6 is a ratio of 1e24."""
    rng = np.random.default_rng(0)
    tight = rng.integers(-3, 4, size=(50, 2)) * 2.0**-20
    X = np.concatenate([tight, tight + 2.0**20])
    r = np.repeat(np.eye(2), 50, axis=0)
    expected = np.cov(tight.T, bias=True)
    moments = weighted_moments(X, r)
    # A mean near 2^20 is rounded to 2^-33; beside a deviation of 2^-19 that is (2^-14)² = 4e-9.
    np.testing.assert_allclose(moments.scatter / 50, [expected, expected], rtol=4e-9)
    theta = Parameters(np.full(2, 0.5), moments.means, moments.scatter / 50)
    np.testing.assert_allclose(log_density(X, theta), reference_density(X, theta), rtol=1e-9)


def test_an_offset_of_1e8_costs_no_digits():
    rng = np.random.default_rng(3)
    # Multiples of 2^-20 stay exact when 1e8 is added.
    X = np.round(rng.normal(size=(400, 3)) * 2**20) / 2**20
    r = rng.dirichlet(np.ones(2), size=400)
    here, there = weighted_moments(X, r), weighted_moments(X + 1e8, r)
    np.testing.assert_allclose(there.scatter, here.scatter, rtol=1e-10)
    np.testing.assert_allclose(there.means - 1e8, here.means, atol=2e-8)  # spacing at 1e8: 1.5e-8


def test_dead_component_is_zero_not_nan():
    X = np.arange(6.0).reshape(3, 2)
    r = np.array([[1.0, 0.0]] * 3)
    moments = weighted_moments(X, r)
    np.testing.assert_array_equal(moments.alive, [True, False])
    assert np.isfinite(moments.means).all()
    assert not moments.scatter[1].any()


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
    """No random competitor of the same type does better on -½ Σ_k (N_k log|Σ_k| + tr Σ_k⁻¹ S_k)."""
    rng = np.random.default_rng(0)
    X, r = rng.normal(size=(200, 3)) * [1, 2, 3], rng.dirichlet(np.ones(3), size=200)
    counts, _, scatter = weighted_moments(X, r)
    pool = POOLINGS[name]

    def expected(covariances):
        log_dets = np.linalg.slogdet(covariances)[1]
        traces = np.einsum("kde,ked->k", np.linalg.inv(covariances), scatter)
        return -0.5 * (counts * log_dets + traces).sum()

    best = pool.combine(counts, scatter)
    ones = np.ones(3)
    for _ in range(200):
        factors = np.linalg.cholesky(best) + 0.05 * np.tril(rng.normal(size=(3, 3, 3)))
        competitor = pool.combine(ones, factors @ factors.transpose(0, 2, 1))
        assert expected(competitor) <= expected(best) + 1e-9


@pytest.mark.parametrize("name", POOLINGS)
def test_expand_and_shape_agree_with_combine(name):
    pool, rng = POOLINGS[name], np.random.default_rng(0)
    array = rng.uniform(1, 2, size=pool.shape(3, 2))
    if array.ndim >= 2 and array.shape[-2:] == (2, 2):
        array = array + np.swapaxes(array, -1, -2) + np.eye(2)
    full = pool.expand(array, 3, 2)
    assert full.shape == (3, 2, 2)
    np.testing.assert_allclose(pool.combine(np.ones(3), full), full, rtol=1e-14)


@pytest.mark.parametrize(
    ("name", "count"), [("full", 3 * 10), ("tied", 10), ("diag", 12), ("spherical", 3)]
)
def test_number_of_parameters(name, count):
    assert POOLINGS[name].n_parameters(3, 4) == count


# ------------------------------------------------------------------ sampling and derivatives


def test_sample_has_the_moments_of_the_mixture():
    rng = np.random.default_rng(0)
    theta = random_mixture(rng, 3, 2)
    X, z = sample(theta, 200_000, rng)
    for k in range(3):
        part = X[z == k]
        # Five standard errors.
        assert len(part) / len(X) == pytest.approx(theta.weights[k], abs=5 * 0.5 / len(X) ** 0.5)
        error = 5 * np.sqrt(np.diag(theta.covariances[k]) / len(part))
        assert (abs(part.mean(axis=0) - theta.means[k]) < error).all()
        np.testing.assert_allclose(np.cov(part.T), theta.covariances[k], rtol=0.1, atol=0.1)


@given(st.integers(0, 1000))
def test_gradient_in_the_mean_by_finite_differences(seed):
    """∂ log N / ∂μ = Σ⁻¹ (x - μ)."""
    rng = np.random.default_rng(seed)
    theta, x = random_mixture(rng, 1, 3), rng.normal(size=(1, 3))

    def value(mean):
        return log_density(x, theta._replace(means=mean[None]))[0, 0]

    def gradient(mean):
        return np.linalg.solve(theta.covariances[0], x[0] - mean)

    size = np.linalg.norm(gradient(theta.means[0])) + 1
    assert check_grad(value, gradient, theta.means[0]) < 1e-5 * size
