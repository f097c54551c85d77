"""Test the steps of online RCA: Algorithms 3 and 4, their common flow, and overshooting."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metric_problems import C2, off_by
from scipy.integrate import solve_ivp

from cgmm.metric_learning import flow_step, online_step, overshoots


def ordinary(seed, n=3, d=2):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(d, d)), rng.normal(size=(n, d))


def test_algorithm_4_on_a_pair_is_algorithm_3_at_half_the_difference():
    # So it converges to twice the W, with twice the step.
    rng = np.random.default_rng(0)
    W, (x1, x2) = rng.normal(size=(3, 3)), rng.normal(size=(2, 3))
    H = np.array([x1, x2]) - (x1 + x2) / 2
    np.testing.assert_allclose(
        online_step(W, H, 0.1), online_step(W, (x1 - x2)[None] / 2, 0.2), atol=1e-12
    )
    # W as Algorithm 3 has it, for differences of twice the variance: half of Algorithm 4's
    np.testing.assert_allclose(
        online_step(2 * W, H, 0.1) / 2, online_step(W, (x1 - x2)[None], 0.2), atol=1e-12
    )


def printed_step(W, H, eta):
    """Return Algorithm 4 as printed: W + η Σ (W - y yᵗ) W."""
    Y = H @ W.T
    return W + eta * (len(Y) * W - Y.T @ Y) @ W


def run(step, W, C, n_steps=4_000, eta=0.02):
    """Return the mean field of a step: a chunklet whose scatter is exactly C per point."""
    H = np.linalg.cholesky(C).T * np.sqrt(len(C))
    for _ in range(n_steps):
        W = step(W, H, eta)
    return W


def test_the_printed_bracket_does_not_become_algorithm_3():
    W, H = ordinary(0, n=1)
    assert abs(printed_step(W, H, 0.1) - online_step(W, H, 0.1)).max() > 0.01


def test_the_printed_bracket_does_not_converge_to_a_whitening():
    # Its only invertible fixed point is C⁻¹, for W = W C Wᵗ means I = C Wᵗ; and that is a saddle:
    # near it E' = -Eᵗ C⁻¹, whose off-diagonal part in C's eigenvectors grows at 1 / sqrt(c_1 c_2).
    H = np.linalg.cholesky(C2).T * np.sqrt(2)
    inverse, (c, V) = np.linalg.inv(C2), np.linalg.eigh(C2)
    np.testing.assert_allclose(printed_step(inverse, H, 0.02), inverse, atol=1e-12)
    mode = 1e-6 * V @ np.array([[0, np.sqrt(c[0])], [-np.sqrt(c[1]), 0]]) @ V.T
    moved = run(printed_step, inverse + mode, C2, n_steps=100, eta=0.005) - inverse
    growth = np.sum(moved * mode) / np.sum(mode**2)
    assert growth == pytest.approx(np.exp(100 * 2 * 0.005 / np.sqrt(c[0] * c[1])), rel=0.05)
    # From symmetric starts, as the paper has them, W fades away, wholly or in part; the corrected
    # bracket whitens from every one of them.
    for start in ([[1, 0], [0, 1]], [[1, 0], [0, 0.5]], [[1, 0], [0, -0.5]], [[1, 2], [2, -1]]):
        start = 0.1 * np.array(start)
        assert off_by(run(printed_step, start, C2), C2) > 0.8
        W = run(online_step, start, C2)
        np.testing.assert_allclose(W @ C2 @ W.T, np.eye(2), atol=1e-9)


@given(st.integers(0, 10_000), st.floats(1e-6, 3.0))
@settings(max_examples=15)
def test_the_guarded_step_solves_the_differential_equation(seed, eta):
    W, H = ordinary(seed, n=1 + seed % 4, d=3)

    def slope(_, w):
        return (online_step(w.reshape(3, 3), H, 1.0) - w.reshape(3, 3)).ravel()

    solved = solve_ivp(slope, (0, eta), W.ravel(), rtol=1e-10, atol=1e-12, method="DOP853")
    size = abs(solved.y[:, -1]).max()
    np.testing.assert_allclose(
        flow_step(W, H, eta), solved.y[:, -1].reshape(3, 3), rtol=1e-6, atol=1e-6 * size
    )


@given(st.floats(-3, 6), st.integers(1, 6), st.floats(1e-3, 0.5))
@settings(max_examples=50)
def test_no_chunklet_is_too_far_for_the_guarded_step(decades, n, eta):
    rng = np.random.default_rng(n)
    W, H = np.eye(3), 10.0**decades * rng.normal(size=(n, 3))
    after = flow_step(W, H, eta)
    largest = np.linalg.svd(H @ after.T)[1].max() ** 2
    assert largest <= n / -np.expm1(-2 * n * eta) * (1 + 1e-5)
    if n >= 3:
        # no direction is lost
        assert np.linalg.svd(after)[1].min() > 0


def test_overshooting_is_bounded_by_the_largest_eigenvalue():
    H = np.array([[3.0, 0.0], [0.0, 3.0]])
    # λ - n = 7: the bound by the trace, 16, alone would say otherwise at 0.05.
    assert not overshoots(np.eye(2), H, 0.05)
    assert overshoots(np.eye(2), H, 0.08)
    for far in (1e13, 1e200):
        with pytest.raises(ValueError, match=r"deviation of .* more than 1e\+12 in the metric"):
            overshoots(np.eye(1), np.array([[far]]), 0.1)
