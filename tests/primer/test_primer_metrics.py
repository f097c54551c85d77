"""The primer's functions of chapter 12 reach optima and agree with the package."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from primer_problems import SEEDS, examples

from cgmm import MMC, primer
from cgmm import metric_learning as production
from cgmm.metric_learning import chunklets

SIZES = {"seed": SEEDS, "D": st.integers(1, 3)}


def spd(rng, D):
    A = rng.normal(size=(D, D))
    return A @ A.T + 0.3 * np.eye(D)


# ---------------------------------------------------------------------------- RCA


@examples(**SIZES, N=st.integers(8, 15))
def test_the_scatter_within_is_that_of_the_package(seed, D, N):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(N, D)), rng.integers(-1, 3, size=N)
    assume((np.bincount(y[y >= 0], minlength=1) > 1).any())
    theirs = np.concatenate([*chunklets.chunklet_deviations(X, chunklets.group_points(y))])
    found = primer.deviations(X, y)
    np.testing.assert_allclose(np.sort(found, axis=0), np.sort(theirs, axis=0), atol=1e-12)
    C = production.within_chunklet_covariance(X, y)
    np.testing.assert_allclose(primer.within_covariance(X, y), C, atol=1e-12)


@examples(**SIZES)
def test_whitening_and_three_criteria_are_those_of_the_package(seed, D):
    rng = np.random.default_rng(seed)
    C, A = spd(rng, D), rng.normal(size=(D, D)) + 2 * np.eye(D)
    assume(abs(np.linalg.det(A)) > 0.1)
    np.testing.assert_allclose(primer.whitening(C), production.whitening(C), atol=1e-8)
    B, best = A.T @ A, np.linalg.inv(C)
    # [barhillel2005, eq. 3] first
    for mine, theirs in (
        (lambda B: primer.information(B, C), production.information(A, C)),
        (lambda B: primer.within_distance(B, C), production.within_distance(B, C)),
        (
            lambda B: primer.likelihood_criterion(B, C, 7),
            production.likelihood_criterion(B, C, 7),
        ),
    ):
        assert mine(B) == pytest.approx(theirs, rel=1e-9, abs=1e-9)
        # Level at the inverse of the covariance.
        np.testing.assert_allclose(primer.derivative(mine, best), 0, atol=1e-6)


@examples(**SIZES, d=st.integers(1, 3))
def test_the_discriminant_solves_fishers_equation(seed, D, d):
    rng = np.random.default_rng(seed)
    C = spd(rng, D)
    S, d = C + spd(rng, D), min(d, D)
    A, ratios = primer.cfld(C, S, d), production.cfld(C, S, d).ratios
    np.testing.assert_allclose(A @ C @ A.T, np.eye(d), atol=1e-9)
    np.testing.assert_allclose(A @ S, ratios[:, None] * A @ C, atol=1e-7 * ratios[0])


@examples(**SIZES, n=st.integers(1, 5))
def test_an_online_step_adds_a_bracket_a_point(seed, D, n):
    rng = np.random.default_rng(seed)
    W, h, eta = rng.normal(size=(D, D)), rng.normal(size=(n, D)), rng.random()
    found = primer.online_step(W, h, eta)
    np.testing.assert_allclose(found, production.online_step(W, h, eta), atol=1e-9)


# ---------------------------------------------------------------------------- Xing et al.


def linked(rng, D):
    """Return points, must-links and cannot-links, and the differences of both."""
    X = rng.normal(size=(12, D))
    near, far = np.arange(8).reshape(4, 2), np.column_stack([np.arange(6), np.arange(6, 12)])
    return X, near, far, X[near[:, 0]] - X[near[:, 1]], X[far[:, 0]] - X[far[:, 1]]


@examples(**SIZES)
def test_the_spread_is_the_objective_and_uphill_its_slope(seed, D):
    rng = np.random.default_rng(seed)
    X, must, cannot, near, far = linked(rng, D)
    L = rng.normal(size=(D, D)) + 2 * np.eye(D)
    A = L.T @ L
    np.testing.assert_allclose(primer.squares(A, near), ((near @ L.T) ** 2).sum(axis=1), rtol=1e-9)
    theirs = production.objective(L, X, must_link=must, cannot_link=cannot)
    assert primer.spread(A, near, far) == pytest.approx(theirs, rel=1e-9)
    assume(np.linalg.eigvalsh(A)[0] > 1e-2)
    slope = primer.derivative(lambda A: np.log(primer.spread(A, near, far)), A)
    np.testing.assert_allclose(primer.uphill(A, near, far), slope, atol=1e-6)


@examples(**SIZES)
def test_projection_is_to_the_nearest_semidefinite_matrix(seed, D):
    rng = np.random.default_rng(seed)
    _, _, _, near, _ = linked(rng, D)
    A = rng.normal(size=(D, D))
    A = A + A.T
    assume(np.linalg.eigvalsh(A)[-1] > 1e-3)
    found = primer.project(A, near)
    assert np.linalg.eigvalsh(found)[0] > -1e-9 * np.abs(found).max()
    assert primer.squares(found, near).sum() == pytest.approx(1)
    # Up to its scale, c: what is cut off is semi-definite and at right angles to what is kept.
    c = np.trace(found @ A) / np.trace(found @ found)
    cut = c * found - A
    assert np.linalg.eigvalsh(cut)[0] > -1e-8 * np.abs(A).max()
    assert np.trace(cut @ found) == pytest.approx(0, abs=1e-8 * np.trace(found))


# A is as large as 1/near²: from a step for entries of 1e-4 to one for entries of a thousand.
ETAS = 10.0 ** np.arange(-4, 4)


@settings(max_examples=6)
@given(SEEDS, st.integers(2, 3))
def test_ascent_comes_near_the_certified_maximum(seed, D):
    X, must, cannot, near, far = linked(np.random.default_rng(seed), D)
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
