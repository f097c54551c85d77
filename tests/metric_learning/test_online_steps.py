"""Test single updates of online RCA: Algorithms 3 and 4 and the guarded step."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metric_problems import COVARIANCE, largest_deviation
from scipy.integrate import solve_ivp

from cgmm.metric_learning import flow_step, online_step, overshoots


def draw_step_arguments(seed, n=3, d=2):
    """Draw a map W (D, D) and deviations H (N, D) of a chunklet from its mean."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(d, d)), rng.normal(size=(n, d))


def test_algorithm_4_on_a_pair_is_algorithm_3_at_half_the_difference():
    # On a pair, Algorithm 4 therefore converges to twice the map, with half the step size.
    rng = np.random.default_rng(0)
    W, (x1, x2) = rng.normal(size=(3, 3)), rng.normal(size=(2, 3))
    H = np.array([x1, x2]) - (x1 + x2) / 2
    np.testing.assert_allclose(
        online_step(W, H, 0.1), online_step(W, (x1 - x2)[None] / 2, 0.2), atol=1e-12
    )
    # Algorithm 3 uses differences, whose variance is doubled: its map is half of Algorithm 4's.
    np.testing.assert_allclose(
        online_step(2 * W, H, 0.1) / 2, online_step(W, (x1 - x2)[None], 0.2), atol=1e-12
    )


def printed_step(W, H, eta):
    """Return Algorithm 4 as printed: W + η Σ (W - y yᵗ) W."""
    Y = H @ W.T
    return W + eta * (len(Y) * W - Y.T @ Y) @ W


def iterate_step(step, W, C, n_steps=4_000, eta=0.02):
    """Iterate a step on a chunklet whose scatter per point is exactly C; return the last W."""
    H = np.linalg.cholesky(C).T * np.sqrt(len(C))
    for _ in range(n_steps):
        W = step(W, H, eta)
    return W


def test_the_printed_bracket_is_not_algorithm_3_and_does_not_converge_to_a_whitening():
    """Algorithm 4 prints W - y yᵗ, which should agree with Algorithm 3 for a single deviation.

    Its only invertible fixed point, C⁻¹, is a saddle; from small starts W even vanishes. At a fixed
    point W = W C Wᵗ, so I = C Wᵗ. Near it E' = -Eᵗ C⁻¹, so that the off-diagonal part in C's
    eigenvectors grows at rate 1 / sqrt(c_1 c_2). The corrected bracket always whitens.
    """
    W, H = draw_step_arguments(0, n=1)
    assert abs(printed_step(W, H, 0.1) - online_step(W, H, 0.1)).max() > 0.01
    H = np.linalg.cholesky(COVARIANCE).T * np.sqrt(2)
    inverse, (c, V) = np.linalg.inv(COVARIANCE), np.linalg.eigh(COVARIANCE)
    np.testing.assert_allclose(printed_step(inverse, H, 0.02), inverse, atol=1e-12)
    mode = 1e-6 * V @ np.array([[0, np.sqrt(c[0])], [-np.sqrt(c[1]), 0]]) @ V.T
    moved = iterate_step(printed_step, inverse + mode, COVARIANCE, n_steps=100, eta=0.005) - inverse
    growth = np.sum(moved * mode) / np.sum(mode**2)
    assert growth == pytest.approx(np.exp(100 * 2 * 0.005 / np.sqrt(c[0] * c[1])), rel=0.05)
    # Symmetric starts as in the paper: some direction of W, or all of them, decays to zero.
    for start in ([[1, 0], [0, 1]], [[1, 0], [0, 0.5]], [[1, 0], [0, -0.5]], [[1, 2], [2, -1]]):
        start = 0.1 * np.array(start)
        assert largest_deviation(iterate_step(printed_step, start, COVARIANCE), COVARIANCE) > 0.8
        W = iterate_step(online_step, start, COVARIANCE)
        np.testing.assert_allclose(W @ COVARIANCE @ W.T, np.eye(2), atol=1e-9)


@given(st.integers(0, 10_000), st.floats(1e-6, 3.0))
@settings(max_examples=15)
def test_the_guarded_step_solves_the_differential_equation_of_the_flow(seed, eta):
    W, H = draw_step_arguments(seed, n=1 + seed % 4, d=3)

    def slope(_, w):
        return (online_step(w.reshape(3, 3), H, 1.0) - w.reshape(3, 3)).ravel()

    solved = solve_ivp(slope, (0, eta), W.ravel(), rtol=1e-10, atol=1e-12, method="DOP853")
    size = abs(solved.y[:, -1]).max()
    np.testing.assert_allclose(
        flow_step(W, H, eta), solved.y[:, -1].reshape(3, 3), rtol=1e-6, atol=1e-6 * size
    )


@given(st.floats(-3, 6), st.integers(1, 6), st.floats(1e-3, 0.5))
@settings(max_examples=50)
def test_the_guarded_step_is_bounded_for_any_chunklet(decades, n, eta):
    rng = np.random.default_rng(n)
    W, H = np.eye(3), 10.0**decades * rng.normal(size=(n, 3))
    after = flow_step(W, H, eta)
    largest = np.linalg.svd(H @ after.T)[1].max() ** 2
    assert largest <= n / -np.expm1(-2 * n * eta) * (1 + 1e-5)
    if n >= 3:  # The chunklet spans all dimensions, so W must stay invertible.
        assert np.linalg.svd(after)[1].min() > 0


def test_overshoots_decides_by_the_largest_eigenvalue():
    H = np.array([[3.0, 0.0], [0.0, 3.0]])
    # The threshold uses λ - n = 7; the bound by the trace alone, 16, would already fail at 0.05.
    assert not overshoots(np.eye(2), H, 0.05)
    assert overshoots(np.eye(2), H, 0.08)
    for far in (1e13, 1e200):
        with pytest.raises(ValueError, match=r"deviation of .* more than 1e\+12 in the metric"):
            overshoots(np.eye(1), np.array([[far]]), 0.1)
