"""Check the theorems of barhillel2005 about RCA, and its printed statements that are wrong."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metric_problems import WINE
from scipy.linalg import eigh
from scipy.optimize import approx_fprime, minimize
from scipy.stats import multivariate_normal

from cgmm.datasets import shared_axis
from cgmm.metric_learning import (
    RCA,
    cfld,
    information,
    likelihood_criterion,
    principal_axes,
    total_covariance,
    variance_of_covariance,
    variance_ratio,
    weight_ratio,
    whitening,
    within_chunklet_covariance,
    within_distance,
)
from cgmm.primer import deviations


@pytest.fixture(scope="module")
def sample():
    """Return points in four correlated dimensions, in chunklets of 2 to 5 or in none."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(2, 6, size=25)
    y = np.concatenate([np.repeat(np.arange(25), sizes), np.full(20, -1)])
    centres = 3 * rng.normal(size=(26, 4))
    X = centres[y] + rng.normal(size=(len(y), 4)) @ rng.normal(size=(4, 4))
    return X, y


@pytest.fixture(scope="module")
def within(sample):
    """Return the covariance within chunklets."""
    return within_chunklet_covariance(*sample)


@pytest.fixture(scope="module")
def total(sample):
    """Return the total covariance."""
    return total_covariance(sample[0])


def draw_metric(rng, d):
    """Draw a positive definite matrix."""
    A = rng.normal(size=(d, d))
    return A @ A.T + 1e-3 * np.eye(d)


# ------------------------------------------------------------------ eqs. 2 to 5


def test_the_solution_of_equation_4_is_the_inverse_covariance_over_d(sample, within):
    B = np.linalg.inv(within) / 4
    H = deviations(*sample)
    assert np.mean(np.einsum("id,de,ie->i", H, B, H)) == pytest.approx(1, rel=1e-10)
    # Another bound in the constraint changes only the scale.
    for scale in (1, 7):
        assert information(scale * whitening(within), within) == pytest.approx(
            0.5 * np.linalg.slogdet(B).logabsdet, rel=1e-10
        )


@pytest.mark.parametrize("K", [1, 2, 3, 4])
def test_no_map_to_k_dimensions_keeps_more_information_than_the_discriminant(within, total, K):
    A, ratios = cfld(within, total, K)
    best = information(A, within, total)
    assert best == pytest.approx(np.sum(np.log(ratios)) - K * np.log(K), rel=1e-9)
    rng = np.random.default_rng(K)
    rivals = [principal_axes(total, K), *(A + 0.05 * rng.normal(size=(200, K, 4)))]
    assert max(information(rival, within, total) for rival in rivals) <= best + 1e-9
    # A general optimiser, which does not use eigenvectors, reaches the same value.
    start = rng.normal(size=4 * K)
    found = minimize(lambda a: -information(a.reshape(K, 4), within, total), start, tol=1e-10)
    assert -found.fun == pytest.approx(best, abs=1e-5)
    if K == 4:
        # For square maps the two criteria differ by a constant.
        constant = np.linalg.slogdet(total).logabsdet
        assert best == pytest.approx(2 * information(A, within) + constant, rel=1e-9)
    else:
        with pytest.raises(ValueError, match=r"loses dimensions.*total"):
            information(A, within)


def test_the_entropy_of_an_image_in_k_dimensions_has_the_factor_k_over_two():
    # Section 3.3 prints D/2 log 2πe for Y = A X, although Y has K dimensions.
    A, S = np.array([[1.0, 2.0, 0.5]]), np.diag([1.0, 2.0, 3.0])
    entropy = multivariate_normal(np.zeros(1), A @ S @ A.T).entropy()
    half_log_det = 0.5 * np.linalg.slogdet(A @ S @ A.T).logabsdet
    assert entropy == pytest.approx(1 / 2 * np.log(2 * np.pi * np.e) + half_log_det, rel=1e-12)
    assert abs(entropy - (3 / 2 * np.log(2 * np.pi * np.e) + half_log_det)) > 2


def test_the_criterion_of_equation_14_is_a_ratio_of_determinants(within, total):
    """It is printed without determinants, as a ratio of matrices, which has no maximum."""
    K = 2
    A, ratios = cfld(within, total, K)

    def determinant_ratio(rows):
        return np.linalg.det(rows @ total @ rows.T) / np.linalg.det(rows @ within @ rows.T)

    assert determinant_ratio(A) == pytest.approx(np.prod(ratios), rel=1e-9)
    rng = np.random.default_rng(0)
    for _ in range(300):
        assert determinant_ratio(rng.normal(size=(K, 4))) <= determinant_ratio(A) * (1 + 1e-9)
    # The solutions are eigenvectors of S_w⁻¹ S_t, which are not orthogonal.
    assert abs(A[0] @ A[1]) > 1e-3 * np.linalg.norm(A[0]) * np.linalg.norm(A[1])


def test_the_trace_of_appendix_a_must_be_that_of_a_c_a_transposed(sample, within):
    # tr(AᵗĈ) and tr(AᵗĈA) are undefined for K < D; tr(AĈAᵗ) is the mean over points.
    A = np.random.default_rng(0).normal(size=(2, 4))
    assert A.T.shape[1] != len(within)
    mean_over_points = np.mean(np.sum((deviations(*sample) @ A.T) ** 2, axis=1))
    assert mean_over_points == pytest.approx(np.trace(A @ within @ A.T), rel=1e-10)


# ------------------------------------------------------------------ eqs. 6, 7, 9, 10


@given(st.integers(0, 100_000))
@settings(max_examples=20)
def test_no_metric_of_unit_volume_gives_smaller_distances_within_chunklets(sample, within, seed):
    B = draw_metric(np.random.default_rng(seed), 4)
    assert within_distance(B, within) >= within_distance(np.linalg.inv(within), within) - 1e-10
    H = deviations(*sample)
    unit = B / np.linalg.det(B) ** (1 / 4)
    expected = np.mean(np.einsum("id,de,ie->i", H, unit, H))
    assert within_distance(B, within) == pytest.approx(expected, rel=1e-10)


def test_the_exponent_of_the_volume_is_one_over_d(within):
    # The exponent is printed as 1/b below eq. 7.
    volume = np.linalg.det(within)
    B = volume ** (1 / 4) * np.linalg.inv(within)
    assert np.linalg.det(B) == pytest.approx(1, rel=1e-10)
    assert within_distance(B, within) == pytest.approx(4 * volume ** (1 / 4), rel=1e-10)
    # B is stationary for the Lagrangian: N Ĉ = λ B⁻¹ with λ = N |Ĉ|^(1/D).
    np.testing.assert_allclose(within, volume ** (1 / 4) * np.linalg.inv(B), rtol=1e-9)


# ------------------------------------------------------------------ eqs. 11 and 12, App. B


def test_rca_is_the_maximum_likelihood_covariance_within_classes(sample, within):
    X, y = sample
    n = int(np.sum(y >= 0))
    H = deviations(X, y)
    rng = np.random.default_rng(0)
    best = likelihood_criterion(np.linalg.inv(within), within, n)
    for _ in range(100):
        B = draw_metric(rng, 4)
        assert likelihood_criterion(B, within, n) >= best
        log_likelihood = multivariate_normal(np.zeros(4), np.linalg.inv(B)).logpdf(H).sum()
        assert likelihood_criterion(B, within, n) == pytest.approx(
            -2 * log_likelihood - n * 4 * np.log(2 * np.pi), rel=1e-9
        )
    top = np.linalg.inv(within)
    slope = approx_fprime(
        top.ravel(), lambda b: likelihood_criterion(b.reshape(4, 4), within, n) / n, 1e-7
    )
    assert abs(slope).max() < 1e-5


def test_n_of_equation_1_must_be_the_number_of_points_in_chunklets(sample, within):
    # Algorithm 1 defines N as the number of all points. The covariance is then too small by a
    # factor, and its likelihood is not the greatest.
    n, n_all = np.sum(sample[1] >= 0), len(sample[1])
    printed, correct = (
        likelihood_criterion(np.linalg.inv(C), within, n) for C in (within * n / n_all, within)
    )
    assert n_all - n == 20
    assert printed > correct + 1


def draw_estimates(n_chunklets, size, C, n_draws, seed=0):
    """Draw (n_draws, D, D) unbiased covariances of Gaussian chunklets around their own means."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_draws, n_chunklets, size, len(C))) @ np.linalg.cholesky(C).T
    X -= X.mean(axis=2, keepdims=True)
    return np.einsum("sjid,sjie->sde", X, X) / (n_chunklets * (size - 1))


C3 = np.array([[2.0, 0.8, 0.0], [0.8, 1.0, -0.3], [0.0, -0.3, 0.5]])
# The standard error of a variance of n_draws values is sqrt(2 / n_draws) of it, 2.8 % here, and
# 3.5 % for these slightly skewed values. Tolerances are four standard errors.
N_DRAWS, ERROR = 2500, 0.14


@pytest.mark.parametrize("size", [2, 5])
def test_variance_of_the_covariance_estimator_and_its_ratio_to_that_of_one_chunklet(size):
    n = 60 // size
    chunklets = draw_estimates(n, size, C3, N_DRAWS)
    whole = draw_estimates(1, 60, C3, N_DRAWS, seed=1)
    np.testing.assert_allclose(chunklets.mean(axis=0), C3, atol=0.04)
    variances = chunklets.var(axis=0)
    np.testing.assert_allclose(variances, variance_of_covariance(C3, n * (size - 1)), rtol=ERROR)
    # [barhillel2005, eq. 12] is a bound; (nk - 1) / (n (k - 1)) is the ratio itself, also for
    # off-diagonal elements.
    ratio = variances / whole.var(axis=0)
    np.testing.assert_allclose(ratio, variance_ratio(size, n), rtol=1.5 * ERROR)
    assert variance_ratio(size, n) <= variance_ratio(size) == size / (size - 1)
    with pytest.raises(ValueError, match="at least one chunklet of at least two points"):
        variance_ratio(1, n)


def test_the_variance_of_off_diagonal_elements_needs_k_minus_1_too():
    # Appendix B prints λ_i λ_j / k, half of the true value for pairs. Eq. 12 holds with k - 1.
    L = np.diag([3.0, 1.0])
    variance = draw_estimates(20, 2, L, N_DRAWS).var(axis=0)[0, 1]
    assert variance == pytest.approx(3 * 1 / (20 * (2 - 1)), rel=ERROR)
    assert variance > 1.7 * 3 * 1 / (20 * 2)


def test_elements_of_the_rotated_estimator_are_not_uncorrelated():
    # Appendix B sums var[Ĉᵘ_qr U U] over q and r as if Ĉᵘ_qr and Ĉᵘ_rq, which are equal, were
    # uncorrelated. The sum is wrong, but the ratio of two such sums is correct.
    values, U = np.linalg.eigh(C3)
    diagonal = variance_of_covariance(np.diag(values), 1)
    printed = np.einsum("iq,jr,qr->ij", U**2, U**2, diagonal)
    correct = variance_of_covariance(C3, 1)
    # The estimate from one pair is half the square of its difference. Because of the kurtosis,
    # the standard error of the variance is sqrt(14 / 200,000) = 0.8 %.
    half = np.random.default_rng(0).multivariate_normal(np.zeros(3), C3, size=200_000)
    simulated = np.einsum("si,sj->sij", half, half).var(axis=0)
    np.testing.assert_allclose(simulated, correct, rtol=0.04)
    assert abs(printed / simulated - 1).max() > 0.2
    # With the missing covariances the sum is exact.
    missing = np.einsum("iq,jr,ir,jq,qr->ij", U, U, U, U, diagonal * (1 - np.eye(3)))
    np.testing.assert_allclose(printed + missing, correct, rtol=1e-10)


# ------------------------------------------------------------------ eq. 13, Alg. 2, Fig. 11


def test_weight_ratio_is_the_change_of_relative_weights_of_principal_directions():
    # Estimate the expectations in [barhillel2005, eq. 13].
    rng = np.random.default_rng(0)
    variances = np.array([4.0, 1.0, 0.25])
    pairs = np.sqrt(variances) * rng.normal(size=(2, 200_000, 3))

    before = pairs[0] - pairs[1]
    after = before @ whitening(np.diag(variances)).T
    weights, weights_after = (np.mean(d**2, axis=0) / np.mean(d**2) for d in (before, after))
    np.testing.assert_allclose(weights / weights_after, weight_ratio(variances), rtol=0.02)
    np.testing.assert_allclose(np.mean(before**2, axis=0), 2 * variances, rtol=0.02)
    np.testing.assert_array_equal(weight_ratio(variances) > 1, variances > variances.mean())


def test_the_rank_of_the_within_covariance_is_never_higher_than_the_dimension():
    # Section 6 asks for a rank "higher than the dimensionality", which no matrix has.
    X, y = WINE
    assert len(X) - 3 > 13
    assert np.linalg.matrix_rank(RCA().fit(X, y).within_covariance_, tol=1e-10) == 13


def test_figure_11_lists_standard_deviations():
    # Figure 11 calls diag(ε, 1, 2) covariances that RCA conditions worse; both are misprints.
    data = shared_axis(epsilon=0.1)
    Y = RCA().fit(data.X, data.y).transform(data.X)
    # By class: printed eigenvalues before and after RCA, and the factor between their conditions.
    for k, before, after, factor in (
        (0, (3.947, 1.045, 0.009), (1.979, 1.001, 0.017), 3.78),
        (1, (3.953, 1.045, 0.010), (1.984, 1.001, 0.022), 4.24),
    ):
        b, a = (np.linalg.eigvalsh(np.cov(Z[data.y == k].T))[::-1] for Z in (data.X, Y))
        # The standard error of an eigenvalue of 1000 points is 4.5 %, also of the printed ones.
        np.testing.assert_allclose(b, before, rtol=0.2, atol=1e-3)
        np.testing.assert_allclose(a, after, rtol=0.2, atol=3e-3)
        assert b[0] / b[2] / (a[0] / a[2]) == pytest.approx(factor, rel=0.15)
        # The printed factor agrees with the printed eigenvalues, up to rounding.
        assert before[0] / before[2] / (after[0] / after[2]) == pytest.approx(factor, rel=0.05)


def test_within_and_total_covariance_have_common_but_not_orthogonal_eigenvectors(within, total):
    # Appendix A calls the diagonalisation of both matrices orthogonal.
    _, G = eigh(total, within)
    np.testing.assert_allclose(G.T @ within @ G, np.eye(4), atol=1e-9)
    off = G.T @ total @ G
    assert abs(off - np.diag(np.diag(off))).max() < 1e-8 * off.max()
    unit = G / np.linalg.norm(G, axis=0)
    assert abs(unit.T @ unit - np.eye(4)).max() > 0.05
