"""Compare densities, moments and covariance types with independent libraries."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mixture_problems import draw_parameters
from scipy.stats import multivariate_normal

from cgmm import mixture, primer
from cgmm.mixture.pooling import moments_about

DIMENSIONS = [1, 2, 5, mixture.products.MAX_DIMENSION, mixture.products.MAX_DIMENSION + 1]


@pytest.fixture(params=[-1.0, np.inf], ids=["direct", "expanded"])
def _each_formula(request, monkeypatch):
    """Run a test twice: with distances computed directly, and expanded into products x xᵀ."""
    monkeypatch.setattr(mixture.products, "SAFE_RATIO", request.param)


@pytest.mark.parametrize("n_dims", DIMENSIONS)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.usefixtures("_each_formula")
def test_log_density_equals_scipy(n_dims, order):
    rng = np.random.default_rng(n_dims)
    theta = draw_parameters(rng, 3, n_dims)
    X = np.array(rng.normal(size=(3000, n_dims)) * 3, order=order)
    scipys = [multivariate_normal(*moments).logpdf(X) for moments in zip(*theta[1:], strict=True)]
    np.testing.assert_allclose(mixture.log_density(X, theta).T, scipys, rtol=1e-11)


@given(st.integers(0, 1000), st.booleans(), st.sampled_from([3.0, 3e4]))
def test_all_covariance_types_give_equal_densities(seed, shared, scale):
    """Variances equal diagonal matrices, and a shared matrix equals K copies of it.

    At the larger scale the means are subtracted before distances are computed.
    """
    rng = np.random.default_rng(seed)
    theta = draw_parameters(rng, 3, 4)
    if shared:
        theta = theta._replace(covariances=np.broadcast_to(theta.covariances[:1], (3, 4, 4)))
    else:
        theta = theta._replace(covariances=theta.variances)
    plain = theta._replace(covariances=theta.full_covariances.copy())
    X = rng.normal(size=(20, 4)) * scale
    np.testing.assert_allclose(mixture.log_joint(X, theta), mixture.log_joint(X, plain), rtol=1e-12)
    np.testing.assert_array_equal(theta.variances, plain.variances)
    (drawn, z), (drawn_plain, z_plain) = (
        mixture.sample(t, 30, np.random.default_rng(7)) for t in (theta, plain)
    )
    np.testing.assert_allclose(drawn, drawn_plain, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(z, z_plain)


def test_log_joint_is_minus_infinity_for_components_of_weight_zero():
    rng = np.random.default_rng(2)
    theta = draw_parameters(rng, 3, 2)._replace(weights=np.array([0.25, 0.0, 0.75]))
    X = rng.normal(size=(10, 2))
    joint = mixture.log_joint(X, theta)
    assert (joint[:, 1] == -np.inf).all()
    expected = mixture.log_density(X, theta)[:, [0, 2]] + np.log([0.25, 0.75])
    np.testing.assert_allclose(joint[:, [0, 2]], expected, rtol=1e-14)


@pytest.mark.parametrize("n_dims", DIMENSIONS)
@pytest.mark.parametrize("offset", [0.0, 50.0])
@pytest.mark.usefixtures("_each_formula")
def test_parameters_from_responsibilities_equal_plain_sums(n_dims, offset):
    rng = np.random.default_rng(n_dims)
    X, r = rng.normal(size=(3000, n_dims)) + offset, rng.dirichlet(np.ones(4), size=3000)
    counts, means, scatter = primer.moments(X, r)
    covariances = scatter / counts[:, None, None]
    expected = {
        "full": covariances,
        "tied": [scatter.sum(axis=0) / len(X)] * 4,
        "diag": np.einsum("kdd->kd", covariances),
    }
    for name, expected_covariances in expected.items():
        theta = mixture.from_responsibilities(X, r, mixture.POOLINGS[name])
        np.testing.assert_allclose(theta.means, means, rtol=1e-11)
        # Entries off the diagonal may cancel, so an absolute tolerance is needed.
        np.testing.assert_allclose(theta.covariances, expected_covariances, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("form", ["diagonal", "full", "shared"])
@pytest.mark.parametrize("scale", [1.0, 1e-250])
def test_only_responsibilities_that_are_negligible_in_their_component_are_left_out(form, scale):
    """Responsibilities are negligible relative to the largest of their component only.

    At the smaller scale all responsibilities of component 2 are tiny, but they must be used.
    """
    rng = np.random.default_rng(0)
    n_dims = mixture.products.MAX_DIMENSION + 1
    X = rng.normal(size=(900, n_dims)) + 9 * np.repeat(np.eye(3, n_dims), 300, axis=0)
    r = np.repeat(np.eye(3), 300, axis=0)
    # Component 1 has some negligible and some small responsibilities; others are zero.
    r[:30, 1], r[30:60, 1] = 1e-60, 1e-3
    r[:, 2] *= scale
    shape = {"diagonal": form == "diagonal", "shared": form == "shared"}
    counts, firsts, seconds = moments_about(X[::300], X, r, **shape)
    apart = X[:, None] - X[::300]
    products_of_all = np.einsum("nk,nkd,nke->kde", r, apart, apart)
    if form == "shared":
        products_of_all = products_of_all.sum(axis=0, keepdims=True)
    if form == "diagonal":
        products_of_all = np.einsum("kdd->kd", products_of_all)
    expected = np.einsum("nk,nkd->kd", r, apart), products_of_all
    for moments, sums in zip((firsts, seconds), expected, strict=True):
        for ours, theirs in zip(moments, sums, strict=True):
            largest = np.abs(theirs).max()
            # The tolerance allows for the rounding of sums of 900 products.
            np.testing.assert_allclose(ours / largest, theirs / largest, atol=1e-13)
    np.testing.assert_allclose(counts, r.sum(axis=0))


@pytest.mark.parametrize(
    "bad",
    [np.zeros((2, 2)), [[1, 1], [1, 1]]]
    + [np.diag([1, variance]) for variance in (-1, 1e-310, np.inf, np.nan)],
)
def test_error_names_the_component_with_a_singular_covariance(bad):
    theta = mixture.Parameters(np.full(2, 0.5), np.zeros((2, 2)), np.array([np.eye(2), bad], float))
    with pytest.raises(ValueError, match="component 1 is not positive definite"):
        mixture.log_density(np.zeros((3, 2)), theta)
