"""Chapter 12 by hand: optima by slopes, and against the package."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from primer_problems import FEW, SEEDS

from cgmm import MMC, primer
from cgmm import metric_learning as production
from cgmm.metric_learning import chunklets
from cgmm.metric_learning.mmc_distances import Distances
from cgmm.metric_learning.mmc_pairs import check_relations

SIZES = {"seed": SEEDS, "D": st.integers(1, 3)}


def spd(rng, D):
    A = rng.normal(size=(D, D))
    return A @ A.T + 0.3 * np.eye(D)


# ---------------------------------------------------------------------------- RCA


@FEW
@given(**SIZES, N=st.integers(8, 15))
def test_the_scatter_within_is_that_of_the_definition(seed, D, N):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(N, D)), rng.integers(-1, 3, size=N)
    assume((np.bincount(y[y >= 0], minlength=1) > 1).any())
    sizes = np.bincount(y[y >= 0])
    inside = [i for i in range(N) if y[i] >= 0 and sizes[y[i]] > 1]
    h = np.array([X[i] - X[y == y[i]].mean(axis=0) for i in inside])
    found = primer.deviations(X, y)
    np.testing.assert_allclose(np.sort(found, axis=0), np.sort(h, axis=0), atol=1e-12)
    C = primer.within_covariance(X, y)
    np.testing.assert_allclose(C, np.mean([np.outer(x, x) for x in h], axis=0), atol=1e-12)
    np.testing.assert_allclose(C, production.within_chunklet_covariance(X, y), atol=1e-12)
    theirs = chunklets.chunklet_deviations(X, chunklets.group_points(y))
    np.testing.assert_allclose(
        np.sort(np.concatenate(theirs), axis=0), np.sort(found, axis=0), atol=1e-12
    )


@FEW
@given(**SIZES)
def test_whitening_is_the_symmetric_root_that_whitens(seed, D):
    C = spd(np.random.default_rng(seed), D)
    W = primer.whitening(C)
    np.testing.assert_allclose(W @ C @ W.T, np.eye(D), atol=1e-9)
    np.testing.assert_allclose(W, W.T, atol=1e-12)
    assert (np.linalg.eigvalsh(W) > 0).all()
    np.testing.assert_allclose(W, production.whitening(C), atol=1e-8)


@FEW
@given(**SIZES)
def test_three_criteria_are_level_at_the_inverse(seed, D):
    rng = np.random.default_rng(seed)
    C, A = spd(rng, D), rng.normal(size=(D, D)) + 2 * np.eye(D)
    assume(abs(np.linalg.det(A)) > 0.1)
    best = np.linalg.inv(C)
    for criterion in (
        lambda B: primer.information(B, C),
        lambda B: primer.within_distance(B, C),
        lambda B: primer.likelihood_criterion(B, C, 7),
    ):
        np.testing.assert_allclose(primer.derivative(criterion, best), 0, atol=1e-6)
    B = A.T @ A
    assert primer.information(best, C) >= primer.information(B, C) - 1e-9
    assert primer.within_distance(best, C) <= primer.within_distance(B, C) + 1e-9
    found = primer.likelihood_criterion(B, C, 7)
    assert primer.likelihood_criterion(best, C, 7) <= found + 1e-9
    assert primer.information(B, C) == pytest.approx(production.information(A, C), rel=1e-9)
    theirs = production.within_distance(B, C)
    assert primer.within_distance(B, C) == pytest.approx(theirs, rel=1e-9)
    assert found == pytest.approx(production.likelihood_criterion(B, C, 7), rel=1e-9, abs=1e-9)


@FEW
@given(**SIZES, d=st.integers(1, 3))
def test_the_discriminant_solves_fishers_equation(seed, D, d):
    rng = np.random.default_rng(seed)
    C = spd(rng, D)
    S, d = C + spd(rng, D), min(d, D)
    A = primer.cfld(C, S, d)
    np.testing.assert_allclose(A @ C @ A.T, np.eye(d), atol=1e-9)
    ratios = np.diag(A @ S @ A.T)
    np.testing.assert_allclose(A @ S, ratios[:, None] * A @ C, atol=1e-8 * ratios[0])
    rows, theirs = production.cfld(C, S, d)
    np.testing.assert_allclose(ratios, theirs, rtol=1e-8)
    gaps = np.diff(np.linalg.eigvalsh(primer.whitening(C) @ S @ primer.whitening(C)))
    if D == 1 or gaps.min() > 1e-3:
        np.testing.assert_allclose(np.abs(A), np.abs(rows), atol=1e-6)


@FEW
@given(**SIZES, n=st.integers(1, 5))
def test_an_online_step_adds_a_bracket_a_point(seed, D, n):
    rng = np.random.default_rng(seed)
    W, h, eta = rng.normal(size=(D, D)), rng.normal(size=(n, D)), rng.random()
    found = primer.online_step(W, h, eta)
    np.testing.assert_allclose(found, production.online_step(W, h, eta), atol=1e-9)
    # At rest where the points, as the map shows them, are white.
    h = rng.normal(size=(3 * D, D))
    root = primer.whitening(h.T @ h / len(h))
    np.testing.assert_allclose(primer.online_step(root, h, eta), root, atol=1e-8)


# ---------------------------------------------------------------------------- Xing et al.


def linked(rng, D):
    """Points, must-links and cannot-links, and the differences of both."""
    X = rng.normal(size=(12, D))
    near, far = np.arange(8).reshape(4, 2), np.column_stack([np.arange(6), np.arange(6, 12)])
    return X, near, far, X[near[:, 0]] - X[near[:, 1]], X[far[:, 0]] - X[far[:, 1]]


@FEW
@given(**SIZES)
def test_the_spread_is_the_objective_and_uphill_its_slope(seed, D):
    rng = np.random.default_rng(seed)
    X, must, cannot, near, far = linked(rng, D)
    L = rng.normal(size=(D, D)) + 2 * np.eye(D)
    A = L.T @ L
    np.testing.assert_allclose(primer.squares(A, near), (near @ L.T) ** 2 @ np.ones(D), rtol=1e-9)
    found = primer.spread(A, near, far)
    theirs = production.objective(L, X, must_link=must, cannot_link=cannot)
    assert found == pytest.approx(theirs, rel=1e-9)
    assume(np.linalg.eigvalsh(A)[0] > 1e-2)
    slope = primer.derivative(lambda A: np.log(primer.spread(A, near, far)), A)
    uphill = primer.uphill(A, near, far)
    np.testing.assert_allclose(uphill, slope, atol=1e-6)
    # The package has the slope of Σ_far |h|_A, at factors of norm one.
    _, pairs = check_relations(np.full(len(X), -1), must, cannot)
    theirs = Distances(X, pairs, identity_of=X).at(L.T)
    size = np.linalg.norm(L) ** 2
    within = 0.5 * near.T @ near / primer.squares(A, near).sum()
    by_package = theirs.gradient / theirs.objective / size - within
    np.testing.assert_allclose(uphill, by_package, atol=1e-9)


@FEW
@given(**SIZES)
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
