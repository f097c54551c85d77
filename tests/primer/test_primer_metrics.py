"""Test that the primer's metric learning of chapter 12 agrees with the package."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from primer_problems import SEEDS, given_examples

from cgmm import MMC, primer
from cgmm import metric_learning as production
from cgmm.metric_learning import chunklets

SIZES = {"seed": SEEDS, "D": st.integers(1, 3)}


def draw_covariance(rng, D):
    """Draw a positive definite matrix."""
    A = rng.normal(size=(D, D))
    return A @ A.T + 0.3 * np.eye(D)


# ---------------------------------------------------------------------------- RCA


@given_examples(**SIZES, N=st.integers(8, 15))
def test_scatter_within_chunklets_is_that_of_the_package(seed, D, N):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(N, D)), rng.integers(-1, 3, size=N)
    assume((np.bincount(y[y >= 0], minlength=1) > 1).any())
    theirs = np.concatenate([*chunklets.chunklet_deviations(X, chunklets.group_points(y))])
    ours = primer.deviations(X, y)
    np.testing.assert_allclose(np.sort(ours, axis=0), np.sort(theirs, axis=0), atol=1e-12)
    C = production.within_chunklet_covariance(X, y)
    np.testing.assert_allclose(primer.within_covariance(X, y), C, atol=1e-12)


@given_examples(**SIZES)
def test_whitening_and_criteria_of_rca_are_those_of_the_package(seed, D):
    rng = np.random.default_rng(seed)
    C, A = draw_covariance(rng, D), rng.normal(size=(D, D)) + 2 * np.eye(D)
    assume(abs(np.linalg.det(A)) > 0.1)
    np.testing.assert_allclose(primer.whitening(C), production.whitening(C), atol=1e-8)
    B, best = A.T @ A, np.linalg.inv(C)
    for criterion, theirs in (
        # [barhillel2005, eq. 3]
        (lambda B: primer.information(B, C), production.information(A, C)),
        (lambda B: primer.within_distance(B, C), production.within_distance(B, C)),
        (lambda B: primer.likelihood_criterion(B, C, 7), production.likelihood_criterion(B, C, 7)),
    ):
        assert criterion(B) == pytest.approx(theirs, rel=1e-9, abs=1e-9)
        # Each criterion has its optimum at the inverse of the covariance.
        np.testing.assert_allclose(primer.derivative(criterion, best), 0, atol=1e-6)


@given_examples(**SIZES, d=st.integers(1, 3))
def test_discriminant_solves_the_equation_of_fisher(seed, D, d):
    rng = np.random.default_rng(seed)
    C = draw_covariance(rng, D)
    S, d = C + draw_covariance(rng, D), min(d, D)
    A, ratios = primer.cfld(C, S, d), production.cfld(C, S, d).ratios
    np.testing.assert_allclose(A @ C @ A.T, np.eye(d), atol=1e-9)
    np.testing.assert_allclose(A @ S, ratios[:, None] * A @ C, atol=1e-7 * ratios[0])


@given_examples(**SIZES, n=st.integers(1, 5))
def test_online_step_is_that_of_the_package(seed, D, n):
    rng = np.random.default_rng(seed)
    W, h, eta = rng.normal(size=(D, D)), rng.normal(size=(n, D)), rng.random()
    expected = production.online_step(W, h, eta)
    np.testing.assert_allclose(primer.online_step(W, h, eta), expected, atol=1e-9)


# ---------------------------------------------------------------------------- Xing et al.


def draw_pairs(rng, D):
    """Draw points; return them, must-links, cannot-links, and the difference vectors of both."""
    X = rng.normal(size=(12, D))
    must, cannot = np.arange(8).reshape(4, 2), np.column_stack([np.arange(6), np.arange(6, 12)])
    return X, must, cannot, X[must[:, 0]] - X[must[:, 1]], X[cannot[:, 0]] - X[cannot[:, 1]]


@given_examples(**SIZES)
def test_spread_is_the_objective_of_mmc_and_uphill_its_gradient(seed, D):
    rng = np.random.default_rng(seed)
    X, must, cannot, near, far = draw_pairs(rng, D)
    L = rng.normal(size=(D, D)) + 2 * np.eye(D)
    A = L.T @ L
    np.testing.assert_allclose(primer.squares(A, near), ((near @ L.T) ** 2).sum(axis=1), rtol=1e-9)
    theirs = production.objective(L, X, must_link=must, cannot_link=cannot)
    assert primer.spread(A, near, far) == pytest.approx(theirs, rel=1e-9)
    assume(np.linalg.eigvalsh(A)[0] > 1e-2)
    slope = primer.derivative(lambda A: np.log(primer.spread(A, near, far)), A)
    np.testing.assert_allclose(primer.uphill(A, near, far), slope, atol=1e-6)


@given_examples(**SIZES)
def test_projection_gives_the_nearest_semidefinite_matrix(seed, D):
    rng = np.random.default_rng(seed)
    _, _, _, near, _ = draw_pairs(rng, D)
    A = rng.normal(size=(D, D))
    A = A + A.T
    assume(np.linalg.eigvalsh(A)[-1] > 1e-3)
    projected = primer.project(A, near)
    assert np.linalg.eigvalsh(projected)[0] > -1e-9 * np.abs(projected).max()
    assert primer.squares(projected, near).sum() == pytest.approx(1)
    # Up to the scale c the change is positive semidefinite and orthogonal to the projection.
    c = np.trace(projected @ A) / np.trace(projected @ projected)
    change = c * projected - A
    assert np.linalg.eigvalsh(change)[0] > -1e-8 * np.abs(A).max()
    assert np.trace(change @ projected) == pytest.approx(0, abs=1e-8 * np.trace(projected))


# Sizes of steps, because the entries of A may be between 1e-4 and 1000.
ETAS = 10.0 ** np.arange(-4, 4)


@settings(max_examples=6)
@given(SEEDS, st.integers(2, 3))
def test_gradient_ascent_nearly_reaches_the_certified_maximum(seed, D):
    X, must, cannot, near, far = draw_pairs(np.random.default_rng(seed), D)
    certified = MMC(tol=1e-9).fit(X, must_link=must, cannot_link=cannot)
    highest = certified.objective_ + certified.gap_
    A = primer.project(np.eye(D), near)
    start = primer.spread(A, near, far)
    for _ in range(250):
        A = max(
            (primer.ascent_step(A, near, far, eta) for eta in ETAS),
            key=lambda A: primer.spread(A, near, far),
        )
        assert primer.spread(A, near, far) <= highest * (1 + 1e-9)
    assert primer.spread(A, near, far) >= start * (1 - 1e-12)
    assert primer.spread(A, near, far) > highest * (1 - 1e-4)
