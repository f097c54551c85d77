"""Xing's metric: closed forms, other solvers, its certificate, its symmetries, and what it refuses.

The oracles solve the problem as the papers state it, in the coordinates of the data, without the
whitening and the factor that the module works with.
"""

import io
import pickle
import warnings
from contextlib import redirect_stdout
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import special_ortho_group
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import cgmm.metric_learning.mmc
from cgmm.datasets import load
from cgmm.metric_learning import MMC, objective
from cgmm.metric_learning.mmc_ascent import Ascent, _mixed, _vertex
from cgmm.metric_learning.mmc_distances import Distances
from cgmm.metric_learning.mmc_pairs import Pairs

BOTH = pytest.mark.parametrize("diagonal", [False, True])


@parametrize_with_checks([MMC(), MMC(diagonal=True), MMC(max_cannot_links=10, random_state=0)])
def test_scikit_learn_estimator_checks(estimator, check):
    # Their data sets include constant columns; warnings are theirs to cause.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


# ------------------------------------------------------------------ the papers' sums, in full


def sums(A, X, must_link, cannot_link):
    """Σ over S of squared distances and Σ over D of distances, pair by pair."""
    S = sum((X[i] - X[j]) @ A @ (X[i] - X[j]) for i, j in must_link)
    D = sum(np.sqrt(max((X[i] - X[j]) @ A @ (X[i] - X[j]), 0)) for i, j in cannot_link)
    return S, D


def pairs_of(y, same):
    """All unordered pairs of labelled points of one class, or of two."""
    labelled = np.flatnonzero(np.asarray(y) != -1)
    return [(i, j) for i, j in combinations(labelled, 2) if (y[i] == y[j]) == same]


def random_problem(seed, n_dims=3, n_points=14):
    """Points of two overlapping classes, and some relations between them."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_points) % 2
    X = rng.normal(size=(n_points, n_dims)) + 0.7 * y[:, None]
    must, cannot = (np.array(pairs_of(y, same)) for same in (True, False))
    return X, rng.permutation(must)[: 4 * n_dims], rng.permutation(cannot)[:9]


@BOTH
@pytest.mark.parametrize("seed", range(3))
def test_reported_objective_is_the_papers_sum_on_the_constraints_boundary(seed, diagonal):
    X, must, cannot = random_problem(seed)
    metric = MMC(diagonal).fit(X, must_link=must, cannot_link=cannot)
    A = metric.get_mahalanobis_matrix()
    S, D = sums(A, X, must, cannot)
    # Plain sums of a dozen terms: only rounding separates them.
    assert pytest.approx(1, rel=1e-12) == S
    assert pytest.approx(metric.objective_, rel=1e-12) == D
    value = objective(metric.components_, X, must_link=must, cannot_link=cannot)
    assert value == pytest.approx(D, rel=1e-12)
    assert objective(7 * metric.components_, X, must_link=must, cannot_link=cannot) == (
        pytest.approx(value, rel=1e-12)
    )
    assert np.linalg.eigvalsh(A)[0] > -1e-13 * np.linalg.norm(A)
    if diagonal:
        np.testing.assert_array_equal(A, np.diag(np.diag(A)))
    assert metric.n_cannot_links_ == len(cannot)


# ------------------------------------------------------------------ closed forms


@BOTH
def test_one_dimension(diagonal):
    X = np.array([[0.0], [2.0], [5.0], [1.0]])
    metric = MMC(diagonal).fit(X, must_link=[[0, 1], [0, 3]], cannot_link=[[0, 2], [1, 2]])
    # The constraint alone fixes A: (2² + 1²) A = 1.
    np.testing.assert_allclose(metric.get_mahalanobis_matrix(), [[1 / 5]], rtol=1e-14)
    assert metric.objective_ == pytest.approx((5 + 3) / np.sqrt(5), rel=1e-14)
    assert metric.converged_
    assert metric.n_iter_ == 1


def test_a_single_cannot_link_is_fishers_direction():
    X, must, cannot = random_problem(1)
    metric = MMC().fit(X, must_link=must, cannot_link=cannot[:1])
    C = sum(np.outer(X[i] - X[j], X[i] - X[j]) for i, j in must)
    delta = X[cannot[0, 0]] - X[cannot[0, 1]]
    direction = np.linalg.solve(C, delta)
    # Cauchy-Schwarz: δᵀ A δ ≤ tr(A C) δᵀ C⁻¹ δ, with equality for the rank-one A along C⁻¹ δ.
    best = delta @ direction
    assert metric.objective_ == pytest.approx(np.sqrt(best), rel=1e-9)
    A = np.outer(direction, direction) / best
    # The objective is flat at its maximum: to 1e-6 in it is to about 1e-3 in A.
    np.testing.assert_allclose(metric.get_mahalanobis_matrix(), A, atol=2e-3 * abs(A).max())


def test_a_single_cannot_link_with_a_diagonal_metric_takes_the_best_feature():
    X, must, cannot = random_problem(2)
    metric = MMC(diagonal=True).fit(X, must_link=must, cannot_link=cannot[:1])
    ratios = (X[cannot[0, 0]] - X[cannot[0, 1]]) ** 2
    ratios /= sum((X[i] - X[j]) ** 2 for i, j in must)
    assert metric.objective_ == pytest.approx(np.sqrt(ratios.max()), rel=1e-6)
    weights = np.diag(metric.get_mahalanobis_matrix())
    assert weights.argmax() == ratios.argmax()


@BOTH
def test_orthogonal_pairs_share_the_metric_by_the_squares_of_their_lengths(diagonal):
    lengths = np.array([1.0, 2.0, 5.0])
    X = np.vstack([np.zeros(3), np.eye(3), np.diag(lengths)])
    must = [[0, 1], [0, 2], [0, 3]]
    metric = MMC(diagonal, tol=1e-12)
    with warnings.catch_warnings():
        # Rounding may hide the last digits of the certificate.
        warnings.simplefilter("ignore", ConvergenceWarning)
        metric.fit(X, must_link=must, cannot_link=[[0, 4], [0, 5], [0, 6]])
    # max Σ a_k √m_k with Σ m_k = 1 is at m_k ∝ a_k², by Cauchy-Schwarz.
    assert metric.objective_ == pytest.approx(np.sqrt(30), rel=1e-10)
    expected = np.diag(lengths**2 / 30)
    np.testing.assert_allclose(metric.get_mahalanobis_matrix(), expected, atol=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_two_dimensions_by_a_dense_grid(seed):
    X, must, cannot = random_problem(seed, n_dims=2)
    near = np.array([X[i] - X[j] for i, j in must])
    far = np.array([X[i] - X[j] for i, j in cannot])

    def best_of(A):
        squares = np.einsum("pi,gij,pj->gp", far, A, far)
        scale = np.einsum("pi,gij,pj->g", near, A, near)
        return (np.sqrt(np.maximum(squares, 0)).sum(axis=1) / np.sqrt(scale)).max()

    # All symmetric positive semi-definite matrices up to scale: a disc of (cos, sin) and roundness.
    angle, excess = np.meshgrid(np.linspace(0, 2 * np.pi, 721), np.linspace(0, 1, 401))
    a, b = (excess * f(angle) for f in (np.cos, np.sin))
    full = np.moveaxis(np.array([[1 + a, b], [b, 1 - a]]), [0, 1], [-2, -1]).reshape(-1, 2, 2)
    t = np.linspace(0, 1, 20001)
    flat = np.moveaxis(np.array([[t, 0 * t], [0 * t, 1 - t]]), -1, 0)
    for diagonal, grid in ((False, full), (True, flat)):
        found = MMC(diagonal).fit(X, must_link=must, cannot_link=cannot).objective_
        # No grid point is better than the certificate allows, and the best is as good as its step.
        assert best_of(grid) <= found * (1 + 1e-6)
        assert best_of(grid) == pytest.approx(found, rel=1e-4)


# ------------------------------------------------------------------ other solvers


def solved_by_slsqp(X, must, cannot, n_starts=4):
    """Maximise over a triangular factor of A in the data's own coordinates, from random starts."""
    n_dims = X.shape[1]
    lower = np.tril_indices(n_dims)
    near = np.array([X[i] - X[j] for i, j in must])
    far = np.array([X[i] - X[j] for i, j in cannot])

    def factor(x):
        C = np.zeros((n_dims, n_dims))
        C[lower] = x
        return C

    rng = np.random.default_rng(0)
    results = [
        minimize(
            lambda x: -np.sqrt(np.square(far @ factor(x)).sum(axis=1) + 1e-300).sum(),
            rng.normal(size=len(lower[0])),
            method="SLSQP",
            constraints={
                "type": "ineq",
                "fun": lambda x: 1 - np.square(near @ factor(x)).sum(),
            },
            options={"maxiter": 2000, "ftol": 1e-14},
        )
        for _ in range(n_starts)
    ]
    return max(-result.fun for result in results if result.success)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n_dims", [2, 3, 4])
def test_full_metric_against_slsqp(seed, n_dims):
    X, must, cannot = random_problem(seed, n_dims)
    metric = MMC(tol=1e-8).fit(X, must_link=must, cannot_link=cannot)
    assert metric.converged_
    # SLSQP differentiates numerically: about seven digits.
    assert metric.objective_ == pytest.approx(solved_by_slsqp(X, must, cannot), rel=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_diagonal_metric_against_slsqp_and_against_newtons_objective_of_xing(seed):
    X, must, cannot = random_problem(seed, n_dims=4)
    near = np.array([X[i] - X[j] for i, j in must])
    far = np.array([X[i] - X[j] for i, j in cannot]) ** 2
    s = (near**2).sum(axis=0)
    metric = MMC(diagonal=True, tol=1e-8).fit(X, must_link=must, cannot_link=cannot)
    weights = np.diag(metric.get_mahalanobis_matrix())
    bounds = [(0, None)] * 4

    def solve(fun, **kwargs):
        options = {"ftol": 1e-15, "maxiter": 1000}
        return minimize(fun, 0.25 / s, bounds=bounds, method="SLSQP", options=options, **kwargs)

    # [Xing et al. 2003, the diagonal case]: g(A) = Σ_S ‖·‖²_A - log Σ_D ‖·‖_A, without constraint.
    newton = solve(lambda a: s @ a - np.log(np.sqrt(far @ a + 1e-300).sum()))
    np.testing.assert_allclose(s * newton.x, 0.5 * s * weights, atol=1e-4)
    value = np.sqrt(far @ newton.x).sum() / np.sqrt(s @ newton.x)
    assert metric.objective_ == pytest.approx(value, rel=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_equation_8_of_barhillel_is_the_same_problem_at_another_scale(seed):
    X, must, cannot = random_problem(seed)
    metric = MMC(tol=1e-8).fit(X, must_link=must, cannot_link=cannot)
    B = metric.get_mahalanobis_matrix() / metric.objective_**2
    S, D = sums(B, X, must, cannot)
    assert pytest.approx(1, rel=1e-12) == D
    assert pytest.approx(metric.objective_**-2, rel=1e-12) == S
    lower = np.tril_indices(3)

    def matrix(x):
        C = np.zeros((3, 3))
        C[lower] = x
        return C @ C.T

    # [barhillel2005, eq. 8]: min Σ_S ‖·‖²_B with Σ_D ‖·‖_B ≥ 1, by a solver that sees only this.
    start = np.linalg.cholesky(np.eye(3) / sums(np.eye(3), X, must, cannot)[1] ** 2)[lower]
    other = minimize(
        lambda x: sums(matrix(x), X, must, cannot)[0],
        start + 0.01 * np.random.default_rng(seed).normal(size=6),
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda x: sums(matrix(x), X, must, cannot)[1] - 1},
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert pytest.approx(other.fun, rel=1e-6) == S


# ------------------------------------------------------------------ gradient and certificate


def everything_about(L, V, pairs, floor=0.0):
    """f, G and Σ η, pair by pair."""
    U = np.array([V[i] - V[j] for i, j in pairs])
    if L.ndim == 1:
        L = np.diag(L)
    d = np.linalg.norm(U @ L, axis=1)
    eta = np.maximum(d, floor)
    G = 0.5 * sum(np.outer(u, u) / x for u, x in zip(U, eta, strict=True))
    return d.sum(), G, eta.sum()


@BOTH
@pytest.mark.parametrize("cells", [None, 40])
def test_value_and_gradient_by_enumeration_over_listed_pairs_and_groups(
    diagonal, cells, monkeypatch
):
    if cells:
        monkeypatch.setattr("cgmm.numerics.BLOCK_CELLS", cells)
        monkeypatch.setattr("cgmm.metric_learning.mmc_distances.KEPT_CELLS", 0)
    rng = np.random.default_rng(0)
    V = rng.normal(size=(40, 3))
    V[7] = V[3]
    groups = rng.integers(-1, 4, size=40)
    groups[[3, 7]] = 1, 2
    listed = np.array([(0, 1), (3, 7), *combinations(range(20, 30), 2)])
    far = Pairs(listed, groups)
    L = rng.normal(size=3 if diagonal else (3, 3))
    L /= np.linalg.norm(L)
    distances = Distances(V, far, identity_of=V)
    value = distances.at(L)
    pairs = [(i, j) for i, j in pairs_of(groups, False) if (i, j) != (3, 7)]
    # Its pairs are summed as they are listed: that none is implied by groups is settled before.
    pairs += [(0, 1), *combinations(range(20, 30), 2)]
    f, G, _ = everything_about(L, V, pairs)
    assert distances.n_pairs == len(pairs)
    assert value.objective == pytest.approx(f, rel=1e-13)
    np.testing.assert_allclose(value.gradient, np.diag(G) if diagonal else G, rtol=1e-11)
    largest = np.diag(G).max() if diagonal else np.linalg.eigvalsh(G)[-1]
    assert value.upper == pytest.approx(largest + f / 2, rel=1e-12)
    assert distances.total() == pytest.approx(everything_about(np.eye(3), V, pairs)[0], rel=1e-13)


@BOTH
def test_pairs_that_a_metric_joins_keep_the_bound_finite_and_true(diagonal):
    # The first feature alone is seen; points 0 and 1 differ in the others, as 2 and 3 do.
    V = np.array([[0, 0, 1], [0, 2, 0], [1, 0, 0], [1, 1, 3], [3, 1, 1], [5, 2, 0.5]])
    L = np.array([1.0, 0, 0]) if diagonal else np.diag([1.0, 0, 0])
    listed, groups = np.array([[0, 1], [2, 4]]), np.array([-1, -1, 0, 1, 0, 2])
    pairs = [(0, 1), (2, 4), *pairs_of(groups, False)]
    distances = Distances(V, Pairs(listed, groups), identity_of=V)
    value = distances.at(L)
    f, G, lengths = everything_about(L, V, pairs, distances._floor)
    largest = np.diag(G).max() if diagonal else np.linalg.eigvalsh(G)[-1]
    assert value.objective == pytest.approx(f, rel=1e-14)
    # Weights reach one over the floor: of sixteen digits, eight are left.
    assert value.upper == pytest.approx(largest + lengths / 2, rel=1e-6)
    assert value.upper < 1e10 * f
    best = Ascent(distances, 500, 1e-7, verbose=0)
    best.run(np.ones(3) if diagonal else np.eye(3))
    assert best.certain
    assert best.best.objective < value.upper


@pytest.mark.parametrize("floor", [1e-3, 0.5, 3.0])
def test_bound_holds_for_any_floor(floor):
    rng = np.random.default_rng(0)
    V, groups = rng.normal(size=(12, 3)), np.arange(12) % 3
    far = Pairs(np.array([[0, 3], [1, 4]]), groups)
    distances = Distances(V, far, identity_of=V)
    best = Ascent(distances, 500, 1e-9, verbose=0)
    best.run(np.eye(3))
    distances._floor = floor
    pairs = [(0, 3), (1, 4), *pairs_of(groups, False)]
    for L in (best.best.factor, rng.normal(size=(3, 3))):
        value = distances.at(L)
        _, G, lengths = everything_about(value.factor, V, pairs, floor)
        expected = np.linalg.eigvalsh(G)[-1] + lengths / 2
        assert value.upper == pytest.approx(expected, rel=1e-12)
        assert value.upper > best.best.objective * (1 - 1e-12)


def test_sums_do_not_depend_on_how_the_pairs_are_cut_into_blocks(monkeypatch):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(60, 3)), rng.integers(-1, 5, size=60)
    whole = MMC().fit(X, y, must_link=[[0, 1]] if y[0] == y[1] else None)
    monkeypatch.setattr("cgmm.numerics.BLOCK_CELLS", 50)
    cut = MMC().fit(X, y, must_link=[[0, 1]] if y[0] == y[1] else None)
    assert cut.objective_ == pytest.approx(whole.objective_, rel=1e-12)
    np.testing.assert_allclose(cut.components_, whole.components_, atol=1e-6)


@BOTH
@pytest.mark.parametrize("max_iter", [1, 2, 4, 1000])
def test_certificate_holds_at_every_stage(diagonal, max_iter):
    X, y, *_ = load("wine")
    y = np.where(np.arange(len(y)) % 3, -1, y)
    best = MMC(diagonal, tol=1e-8).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        metric = MMC(diagonal, max_iter=max_iter).fit(X, y)
    assert metric.objective_ <= best.objective_ + best.gap_
    assert best.objective_ <= metric.objective_ + metric.gap_ * (1 + 1e-12)
    assert metric.converged_ == (metric.gap_ <= 1e-6 * metric.objective_)


@pytest.mark.parametrize("seed", range(5))
def test_diagonal_components_are_not_negative(seed):
    # On its way the search may change the sign of a factor: the metric has only its square.
    rng = np.random.default_rng(seed)
    y = np.arange(20) % 2
    metric = MMC(diagonal=True).fit(rng.normal(size=(20, 6)) + 0.5 * y[:, None], y)
    assert (metric.components_ >= 0).all()


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), diagonal=st.booleans())
def test_no_competitor_beats_the_certificate(seed, diagonal):
    X, must, cannot = random_problem(seed)
    metric = MMC(diagonal).fit(X, must_link=must, cannot_link=cannot)
    rng = np.random.default_rng(seed)
    for _ in range(20):
        rank = int(rng.integers(1, 4))
        L = rng.normal(size=(rank, 3)) if not diagonal else np.diag(rng.random(3) ** 3)
        near_it = metric.components_ + 0.1 * np.linalg.norm(metric.components_) * (
            np.diag(rng.normal(size=3)) if diagonal else rng.normal(size=(3, 3))
        )
        for competitor in (L, near_it):
            value = objective(competitor, X, must_link=must, cannot_link=cannot)
            assert value <= (metric.objective_ + metric.gap_) * (1 + 1e-12)


def test_start_is_the_inverse_scatter_and_the_objective_never_falls():
    X, y, *_ = load("iris")
    metric = MMC(tol=1e-8).fit(X, y)
    within = sum(np.cov(X[y == k].T, bias=True) for k in range(3))
    rca = np.linalg.inv(np.linalg.cholesky(within))
    assert metric.history_[0] == pytest.approx(objective(rca, X, y), rel=1e-10)
    assert (np.diff(metric.history_) >= 0).all()
    assert metric.history_[-1] == metric.objective_
    assert metric.history_.shape == (metric.n_iter_,)


@pytest.mark.parametrize("name", ["iris", "wine"])
def test_the_best_metric_of_iris_and_wine_is_a_line(name):
    X, y, *_ = load(name)
    s = np.linalg.svd(MMC(tol=1e-8).fit(X, y).components_ * X.std(axis=0))[1]
    assert s[1] < 1e-2 * s[0]


@BOTH
def test_a_factor_that_lost_a_direction_finds_it_again(diagonal):
    rng = np.random.default_rng(0)
    V = rng.normal(size=(12, 3))
    far = Pairs(np.array(list(combinations(range(12), 2))), np.full(12, -1))
    distances = Distances(V, far, identity_of=V)
    lost, whole = (Ascent(distances, 500, 1e-7, verbose=0) for _ in range(2))
    whole.run(np.ones(3) if diagonal else np.eye(3))
    # A critical point of the factor's problem: its gradient has no part outside its own range.
    lost.run(np.array([1.0, 0, 0]) if diagonal else np.diag([1.0, 0, 0]))
    assert whole.certain
    assert lost.certain
    assert lost.best.objective == pytest.approx(whole.best.objective, rel=1e-7)


@BOTH
def test_a_lost_direction_that_deserves_little_is_found_by_a_short_step(diagonal):
    # Lengths 1 and 5, at right angles: the best shares are 1/26 and 25/26, and half is too much.
    V = np.array([[0.0, 0], [1, 0], [0, 5]])
    far = Pairs(np.array([[0, 1], [0, 2]]), np.full(3, -1))
    ascent = Ascent(Distances(V, far, identity_of=V), 500, 1e-7, verbose=0)
    ascent.run(np.array([0.0, 1]) if diagonal else np.diag([0.0, 1]))
    assert ascent.certain
    assert ascent.best.objective == pytest.approx(np.sqrt(26), rel=1e-7)


def test_search_keeps_the_best_metric_and_the_lowest_bound_it_has_seen():
    V = np.array([[0.0, 0], [1, 0], [0, 5]])
    far = Pairs(np.array([[0, 1], [0, 2]]), np.full(3, -1))
    ascent = Ascent(Distances(V, far, identity_of=V), 500, 1e-7, verbose=0)
    seen = [ascent._look(np.array(factor)) for factor in ([1.0, 5.0], [5.0, 1.0], [1.0, 4.0])]
    assert ascent.best is seen[0]
    assert ascent.upper == seen[0].upper < min(seen[1].upper, seen[2].upper)


def test_vertex_is_where_the_gradient_is_steepest():
    A = np.random.default_rng(0).normal(size=(4, 4))
    G = A @ A.T
    v = _vertex(G)
    assert v @ G @ v == pytest.approx(np.linalg.eigvalsh(G)[-1], rel=1e-12)
    np.testing.assert_array_equal(_vertex(np.array([1.0, 3.0, 2.0])), [0, 1, 0])


@BOTH
def test_mixture_of_metrics(diagonal):
    rng = np.random.default_rng(0)
    L = rng.normal(size=3 if diagonal else (3, 3))
    v = np.array([0.6, 0.8, 0]) if diagonal else rng.normal(size=3)
    mixed = _mixed(L, v, 0.25)
    if diagonal:
        np.testing.assert_allclose(mixed**2, 0.75 * L**2 + 0.25 * v**2, rtol=1e-14)
    else:
        expected = 0.75 * L @ L.T + 0.25 * np.outer(v, v)
        np.testing.assert_allclose(mixed @ mixed.T, expected, rtol=1e-12)


# ------------------------------------------------------------------ symmetries


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    diagonal=st.booleans(),
    exponents=st.lists(st.integers(-60, 60), min_size=3, max_size=3),
)
def test_units_and_origin_of_the_features_do_not_matter(seed, diagonal, exponents):
    X, must, cannot = random_problem(seed)
    # Powers of two round nothing.
    units = 2.0 ** np.array(exponents)
    relations = {"must_link": must, "cannot_link": cannot}
    here = MMC(diagonal).fit(X, **relations)
    there = MMC(diagonal).fit((X - X[0]) * units, **relations)
    assert there.objective_ == pytest.approx(here.objective_, rel=3e-6)
    exact = MMC(diagonal).fit(X * units, **relations)
    np.testing.assert_allclose(exact.transform(X * units), here.transform(X), atol=1e-9)
    assert exact.objective_ == pytest.approx(here.objective_, rel=1e-12)


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6))
def test_axes_of_the_data_do_not_matter_to_the_full_metric(seed):
    X, must, cannot = random_problem(seed)
    relations = {"must_link": must, "cannot_link": cannot}
    Q = special_ortho_group.rvs(3, random_state=np.random.default_rng(seed))
    mix = Q @ np.diag([1.0, 20.0, 0.05]) @ Q.T + 0.01
    here = MMC(tol=1e-7).fit(X, **relations)
    for transformation in (Q, mix):
        there = MMC(tol=1e-7).fit(X @ transformation, **relations)
        # Both are within tol of one maximum; how the whitening rounds may change the path.
        assert there.objective_ == pytest.approx(here.objective_, rel=2e-7)
        back = objective(there.components_ @ transformation.T, X, **relations)
        assert back == pytest.approx(here.objective_, rel=2e-7)


@BOTH
def test_order_direction_and_repetition_of_pairs_do_not_matter(diagonal):
    X, must, cannot = random_problem(3)
    here = MMC(diagonal).fit(X, must_link=must, cannot_link=cannot)
    there = MMC(diagonal).fit(
        X,
        must_link=np.vstack([must[::-1, ::-1], must[:4], [[5, 5]]]),
        cannot_link=np.vstack([cannot[:5], cannot[::-1, ::-1]]),
    )
    np.testing.assert_array_equal(there.components_, here.components_)
    assert there.n_cannot_links_ == len(cannot)


def test_two_fits_agree_to_the_last_bit():
    X, y, *_ = load("wine")
    first, second = (MMC(max_cannot_links=500, random_state=3).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.components_, second.components_)
    np.testing.assert_array_equal(first.history_, second.history_)


# ------------------------------------------------------------------ ways to give relations


@BOTH
def test_classes_say_the_same_as_all_their_pairs(diagonal):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(25, 3)), rng.integers(-1, 3, size=25)
    by_class = MMC(diagonal, tol=1e-8).fit(X, y)
    relations = {"must_link": pairs_of(y, True), "cannot_link": pairs_of(y, False)}
    by_pair = MMC(diagonal, tol=1e-8).fit(X, **relations)
    assert by_class.n_cannot_links_ == by_pair.n_cannot_links_ == len(relations["cannot_link"])
    assert by_class.objective_ == pytest.approx(by_pair.objective_, rel=1e-8)
    assert objective(np.eye(3), X, y) == pytest.approx(objective(np.eye(3), X, **relations))
    # Pairs that the classes imply are the same pairs.
    both = MMC(diagonal, tol=1e-8).fit(X, y, **relations)
    np.testing.assert_array_equal(both.components_, by_class.components_)


@pytest.mark.parametrize(
    "rename",
    [
        lambda y: np.array(["none", "a", "b", "c"])[y + 1],
        lambda y: y * 10.0 - 7,
        lambda y: np.where(y == 0, -5, y),
        lambda y: y.astype(np.float64),
    ],
)
def test_classes_may_have_any_names(rename):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(25, 3)), np.arange(25) % 3
    np.testing.assert_array_equal(MMC().fit(X, rename(y)).components_, MMC().fit(X, y).components_)


def test_minus_one_is_no_class_in_any_numbers():
    X, y = np.random.default_rng(0).normal(size=(25, 3)), np.arange(25) % 4 - 1
    rest = MMC().fit(X, np.where(y == -1, -1.0, y * 3.0 - 9)).components_
    np.testing.assert_allclose(rest, MMC().fit(X[y >= 0], y[y >= 0]).components_, atol=1e-5)


def test_classes_and_pairs_together():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(25, 3))
    y = np.where(np.arange(25) < 15, np.arange(25) % 3, -1)
    extra_must, extra_cannot = [[15, 16], [0, 17], [20, 20]], [[18, 0], [19, 21], [21, 19]]
    mixed = MMC(tol=1e-8).fit(X, y, must_link=extra_must, cannot_link=extra_cannot)
    listed = MMC(tol=1e-8).fit(
        X,
        must_link=pairs_of(y, True) + extra_must[:2],
        cannot_link=pairs_of(y, False) + extra_cannot[:2],
    )
    assert mixed.n_cannot_links_ == 75 + 2
    assert mixed.objective_ == pytest.approx(listed.objective_, rel=1e-8)


def test_must_links_are_not_closed_unless_given_as_chunklets():
    X = np.random.default_rng(0).normal(size=(8, 1))
    chain, cannot = [[0, 1], [1, 2]], [[0, 5]]
    expected = sum(((X[i] - X[j]) ** 2).item() for i, j in chain)
    A = MMC().fit(X, must_link=chain, cannot_link=cannot).get_mahalanobis_matrix()
    assert A.item() == pytest.approx(1 / expected, rel=1e-12)
    chunklets = np.array([0, 0, 0, -1, -1, -1, -1, -1])
    A = MMC().fit(X, chunklets, cannot_link=cannot).get_mahalanobis_matrix()
    expected += ((X[0] - X[2]) ** 2).item()
    assert A.item() == pytest.approx(1 / expected, rel=1e-12)


def test_the_rest_is_every_pair_that_no_chain_ties():
    X = np.random.default_rng(0).normal(size=(12, 2))
    must = [[0, 1], [1, 2], [5, 6], [8, 9]]
    chunklet = np.array([0, 0, 0, 3, 4, 5, 5, 7, 8, 8, 10, 11])
    cannot = pairs_of(chunklet, False)
    rest = MMC(tol=1e-8).fit(X, must_link=must, cannot_link="rest")
    listed = MMC(tol=1e-8).fit(X, must_link=must, cannot_link=cannot)
    assert rest.n_cannot_links_ == len(cannot) == 66 - 3 - 1 - 1
    assert rest.objective_ == pytest.approx(listed.objective_, rel=1e-8)
    # With classes as well: the class ties its members, the unlabelled points are apart.
    joined = np.where(np.isin(chunklet, [3, 4]), 5, chunklet)
    for name in (7, 0):
        y = np.array([-1, -1, -1, name, name, name, -1, -1, -1, -1, -1, -1])
        both = MMC().fit(X, y, must_link=must, cannot_link="rest")
        assert both.n_cannot_links_ == len(pairs_of(joined, False))


def test_unknown_word_for_cannot_links():
    with pytest.raises(ValueError, match="cannot_link is 'all'"):
        MMC().fit(np.eye(4), must_link=[[0, 1]], cannot_link="all")


# ------------------------------------------------------------------ samples of pairs


def test_drawn_cannot_links_are_distinct_pairs_of_two_classes_all_equally_likely():
    y = np.array([0, 0, 1, -1, 2, 1, 2, 2])
    X = np.arange(8.0)[:, None] ** 2
    far = Pairs(np.empty((0, 2), dtype=np.intp), y)
    allowed = set(pairs_of(y, False))
    rng = np.random.RandomState(0)
    counts = dict.fromkeys(allowed, 0)
    for _ in range(2000):
        drawn = [
            tuple(pair)
            for pair in cgmm.metric_learning.mmc_pairs.at_most(far, 4, rng).pairs.tolist()
        ]
        assert len(set(drawn)) == 4
        for pair in drawn:
            counts[pair] += 1
    # Each of the 16 pairs is drawn with probability 1/4; five standard deviations are 97.
    np.testing.assert_allclose(list(counts.values()), 500, atol=97)
    assert MMC(max_cannot_links=4, random_state=0).fit(X, y).n_cannot_links_ == 4


def test_a_large_enough_sample_is_everything():
    X, y, *_ = load("iris")
    whole = MMC().fit(X, y)
    for limit in (7500, 10**9):
        sample = MMC(max_cannot_links=limit).fit(X, y)
        np.testing.assert_array_equal(sample.components_, whole.components_)
    fewer = MMC(max_cannot_links=7499, random_state=0).fit(X, y)
    assert fewer.n_cannot_links_ == 7499
    assert fewer.objective_ == pytest.approx(whole.objective_, rel=1e-3)


def test_listed_cannot_links_stay_beside_a_sample():
    X = np.random.default_rng(0).normal(size=(30, 2))
    y = np.where(np.arange(30) < 24, np.arange(30) % 2, -1)
    limited = MMC(max_cannot_links=10, random_state=0)
    assert limited.fit(X, y, cannot_link=[[25, 26], [0, 29]]).n_cannot_links_ == 12


def test_many_points_by_a_sample_of_their_pairs():
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=20_000)
    X = rng.normal(size=(20_000, 4)) + np.eye(4)[y]
    metric = MMC(max_cannot_links=50_000, random_state=0).fit(X, y)
    # 150 million pairs: a sample of them sees the same best metric, to the noise of the sample.
    again = MMC(max_cannot_links=50_000, random_state=1).fit(X, y)
    assert metric.n_cannot_links_ == 50_000
    assert again.objective_ == pytest.approx(metric.objective_, rel=0.01)


# ------------------------------------------------------------------ refusals


def test_contradictions_show_the_chain():
    X = np.random.default_rng(0).normal(size=(6, 2))
    with pytest.raises(ValueError, match="0 - 1 - 2"):
        MMC().fit(X, must_link=[[0, 1], [1, 2]], cannot_link=[[0, 2]])
    with pytest.raises(ValueError, match="0 - 5 - 1"):
        MMC().fit(X, [0, 1, -1, -1, -1, -1], must_link=[[0, 5], [5, 1]], cannot_link="rest")
    with pytest.raises(ValueError, match="must both have class 3"):
        MMC().fit(X, [3, 3, 1, 1, 1, 1], cannot_link=[[0, 1]])
    with pytest.raises(ValueError, match="ties point 2 to itself"):
        MMC().fit(X, must_link=[[0, 1]], cannot_link=[[2, 2]])
    with pytest.raises(ValueError, match=r"must_link\[0\] is \[0, 6\]"):
        MMC().fit(X, must_link=[[0, 6]], cannot_link=[[0, 1]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "no must-link"),
        ({"cannot_link": [[0, 1]]}, "no must-link"),
        ({"must_link": [[1, 1]], "cannot_link": [[0, 1]]}, "no must-link"),
        ({"y": [0, 1, 2, 3, -1, -1]}, "no must-link"),
        ({"must_link": [[0, 1]]}, "no cannot-link"),
        ({"must_link": [[0, 1]], "cannot_link": np.empty((0, 2))}, "no cannot-link"),
        ({"y": [2, 2, 2, 2, 2, -1]}, "no cannot-link"),
        ({"y": [0, 1, 0]}, "inconsistent numbers of samples"),
        ({"y": [0, 1, 0, 1, np.nan, 0]}, "NaN"),
        ({"must_link": [[0, 1, 2]], "cannot_link": [[0, 1]]}, "must be \\(P, 2\\)"),
    ],
)
def test_missing_or_malformed_relations(arguments, message):
    X = np.random.default_rng(0).normal(size=(6, 1))
    with pytest.raises(ValueError, match=message):
        MMC().fit(X, **arguments)
    with pytest.raises(ValueError, match=message):
        objective([[1.0]], X, **arguments)


@pytest.mark.parametrize(
    "params", [{"diagonal": 2}, {"tol": -1}, {"max_iter": 0}, {"max_cannot_links": 0}]
)
def test_impossible_parameters(params):
    (name,) = params
    with pytest.raises(ValueError, match=name):
        MMC(**params).fit(np.eye(4), [0, 0, 1, 1])


def test_objective_of_a_metric_that_sees_no_must_link():
    X = np.array([[0.0, 0], [0, 1], [1, 0]])
    relations = {"must_link": [[0, 1]], "cannot_link": [[0, 2]]}
    with pytest.raises(ValueError, match="coincide under this metric"):
        objective([[1.0, 0.0]], X, **relations)
    with pytest.raises(ValueError, match="components has 3 columns"):
        objective(np.eye(3), X, **relations)
    assert objective([[0.0, 1.0]], X, **relations) == 0


# ------------------------------------------------------------------ no maximum, no difference


@BOTH
def test_a_direction_without_must_linked_differences_has_no_maximum(diagonal):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10, 3))
    y = np.arange(10) % 2
    X[:, 1] = y
    message = r"points \d and \d differ in a direction, mostly that of feature 1, .*span 2 of 3"
    with pytest.raises(ValueError, match=message):
        MMC(diagonal).fit(X, y)
    with pytest.raises(ValueError, match=message):
        MMC(diagonal).fit(X, must_link=pairs_of(y, True), cannot_link=[[0, 3]])
    with pytest.raises(ValueError, match=message):
        MMC(diagonal, max_cannot_links=3, random_state=0).fit(X, y)


def test_fewer_must_links_than_dimensions_have_no_maximum_for_the_full_metric():
    X, must, cannot = random_problem(0, n_dims=5)
    with pytest.raises(ValueError, match=r"span 3 of 5 dimensions.*reduce the data to 3"):
        MMC().fit(X, must_link=must[:3], cannot_link=cannot)
    # Each feature by itself has must-linked differences: a diagonal metric is fine.
    assert MMC(diagonal=True).fit(X, must_link=must[:3], cannot_link=cannot).converged_


def test_the_points_named_are_apart_along_that_direction():
    X = np.random.default_rng(0).normal(size=(8, 2))
    X[:, 1] = [0, 0, 0, 0, 0, 0, 0, 4]
    relations = {"must_link": [[0, 1], [2, 3]], "cannot_link": [[0, 2], [7, 4], [1, 3]]}
    with pytest.raises(ValueError, match=r"points 4 and 7 .* feature 1"):
        MMC().fit(X, **relations)


@BOTH
def test_constant_and_dependent_features_get_a_warning_and_no_weight(diagonal):
    X, must, cannot = random_problem(0)
    relations = {"must_link": must, "cannot_link": cannot}
    plain = MMC(diagonal).fit(X, **relations)
    constant = np.insert(X, 1, 1e6, axis=1)
    with pytest.warns(UserWarning, match="differ in 3 of 4 dimensions"):
        metric = MMC(diagonal).fit(constant, **relations)
    assert metric.objective_ == pytest.approx(plain.objective_, rel=1e-9)
    assert (metric.components_[1] == 0).all()
    assert (metric.components_[:, 1] == 0).all()
    if not diagonal:
        dependent = np.column_stack([X, X @ [1.0, 2.0, -1.0] + 5])
        with pytest.warns(UserWarning, match="differ in 3 of 4 dimensions"):
            metric = MMC().fit(dependent, **relations)
        assert metric.objective_ == pytest.approx(plain.objective_, rel=3e-6)


@BOTH
def test_digits_with_their_constant_pixels(diagonal):
    X, y = load_digits(return_X_y=True)
    X, y = X[:400], y[:400]
    rank = np.linalg.matrix_rank(X - X.mean(axis=0))
    with pytest.warns(UserWarning, match=f"differ in {rank} of 64 dimensions"):
        metric = MMC(diagonal).fit(X, y)
    assert metric.converged_
    assert np.isfinite(metric.components_).all()
    assert metric.objective_ == pytest.approx(objective(metric.components_, X, y), rel=1e-9)


@BOTH
def test_pairs_of_identical_points(diagonal):
    X, must, cannot = random_problem(4)
    plain = MMC(diagonal).fit(X, must_link=must, cannot_link=cannot)
    X = np.vstack([X, X[0], X[1]])
    with_twins = MMC(diagonal).fit(
        X,
        must_link=np.vstack([must, [[0, 14]]]),
        cannot_link=np.vstack([cannot, [[1, 15]]]),
    )
    # Neither sum has anything from them, under any metric.
    assert with_twins.objective_ == pytest.approx(plain.objective_, rel=1e-12)
    assert with_twins.n_cannot_links_ == plain.n_cannot_links_
    with pytest.raises(ValueError, match="identical points"):
        MMC(diagonal).fit(X, must_link=must, cannot_link=[[1, 15]])
    with pytest.raises(ValueError, match="no must-linked points differ"):
        MMC(diagonal).fit(X, must_link=[[1, 15]], cannot_link=cannot)
    with pytest.raises(ValueError, match="identical points"):
        MMC(diagonal).fit(np.ones((4, 2)), [0, 0, 1, 1])


def test_cannot_linked_points_that_differ_by_rounding_alone():
    X = np.array([[0.1 + 0.2, 0.0], [0.3, 0.0], [1.0, 1.0], [2.0, 5.0], [0.0, 2.0]])
    assert X[0, 0] != X[1, 0]
    must = [[2, 3], [3, 4]]
    with pytest.raises(ValueError, match="identical points"):
        MMC().fit(X, must_link=must, cannot_link=[[0, 1]])


@BOTH
@pytest.mark.parametrize("distance", [1e-3, 1e-8, 1e-13])
def test_a_cannot_link_between_almost_identical_points(diagonal, distance):
    X, must, cannot = random_problem(5)
    plain = MMC(diagonal).fit(X, must_link=must, cannot_link=cannot)
    X = np.vstack([X, X[0] + distance * np.array([1.0, -1.0, 0.5])])
    metric = MMC(diagonal).fit(X, must_link=must, cannot_link=np.vstack([cannot, [[0, 14]]]))
    assert metric.converged_
    assert metric.objective_ == pytest.approx(plain.objective_, rel=2e-6 + distance)


@pytest.mark.parametrize("scale", [1e-120, 1e120])
def test_extreme_units(scale):
    X, must, cannot = random_problem(0)
    relations = {"must_link": must, "cannot_link": cannot}
    metric, plain = (MMC().fit(points, **relations) for points in (scale * X, X))
    assert metric.objective_ == pytest.approx(plain.objective_, rel=3e-6)
    for impossible in (1e-160, 1e160):
        with pytest.raises(ValueError, match=r"column 0 spans .* cannot be represented"):
            MMC().fit(impossible * X, **relations)


def test_features_in_very_different_units_are_not_taken_for_missing_ones():
    X, must, cannot = random_problem(0)
    relations = {"must_link": must, "cannot_link": cannot}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        metric = MMC().fit(X * [1e-90, 1.0, 1e90], **relations)
    value = objective(metric.components_, X * [1e-90, 1.0, 1e90], **relations)
    assert value == pytest.approx(MMC().fit(X, **relations).objective_, rel=3e-6)


@BOTH
def test_a_feature_that_is_constant_up_to_rounding_is_constant(diagonal):
    X, must, cannot = random_problem(0)
    relations = {"must_link": must, "cannot_link": cannot}
    plain = MMC(diagonal).fit(X, **relations)
    last_bit = np.random.default_rng(0).integers(0, 2, size=len(X)) * np.spacing(1e6)
    with pytest.warns(UserWarning, match="differ in 3 of 4 dimensions"):
        metric = MMC(diagonal).fit(np.insert(X, 1, 1e6 + last_bit, axis=1), **relations)
    assert metric.objective_ == pytest.approx(plain.objective_, rel=1e-9)
    assert (metric.components_[:, 1] == 0).all()


def test_objective_of_offset_points_is_exact():
    # Multiples of 2^-20, which an offset of 2^32 leaves exact.
    X, must, cannot = random_problem(0)
    X = np.round(X * 2**20) / 2**20
    relations = {"must_link": must, "cannot_link": cannot}
    L = np.random.default_rng(0).normal(size=(3, 3))
    here, there = (objective(L, points, **relations) for points in (X, X + 2**32))
    assert there == pytest.approx(here, rel=1e-12)


def test_a_large_offset_costs_only_its_own_digits():
    X, must, cannot = random_problem(0)
    relations = {"must_link": must, "cannot_link": cannot}
    # Rounding at 1e9 is 1e-7 of the spread.
    metric = MMC().fit(X + 1e9, **relations)
    assert metric.objective_ == pytest.approx(MMC().fit(X, **relations).objective_, rel=1e-5)


# ------------------------------------------------------------------ warnings and interruption


def hard_problem():
    X, y, *_ = load("wine")
    return X, y


def test_too_few_iterations_warn_and_say_how_far_it_may_be():
    X, y = hard_problem()
    with pytest.warns(ConvergenceWarning, match=r"did not converge in 3 .* fraction of \d\.\de-"):
        metric = MMC(max_iter=3).fit(X, y)
    assert not metric.converged_
    assert metric.n_iter_ == 3
    assert metric.gap_ > 1e-6 * metric.objective_


def test_a_tolerance_below_rounding_says_so_or_is_met():
    X, y = hard_problem()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        metric = MMC(tol=0).fit(X, y)
    assert metric.gap_ < 1e-7 * metric.objective_
    assert metric.converged_ == (not caught)
    assert all("rounding hides" in str(warning.message) for warning in caught)


def test_no_tolerance_at_all_is_met_where_nothing_is_to_choose():
    for seed in range(30):
        X, must, cannot = random_problem(seed, n_dims=1)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert MMC(tol=0).fit(X, must_link=must, cannot_link=cannot).converged_


def test_interruption_keeps_the_best_metric_so_far(monkeypatch):
    X, y = hard_problem()
    look, calls = Ascent._look, []

    def interrupted(self, factor):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return look(self, factor)

    monkeypatch.setattr(Ascent, "_look", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        metric = MMC().fit(X, y)
    assert not metric.converged_
    assert metric.objective_ == pytest.approx(objective(metric.components_, X, y), rel=1e-9)
    calls[:] = [1, 1, 1]
    with pytest.raises(KeyboardInterrupt):
        MMC().fit(X, y)


def test_verbose_reports_every_iteration():
    X, y = hard_problem()
    out, quiet = io.StringIO(), io.StringIO()
    with redirect_stdout(out):
        metric = MMC(verbose=1).fit(X, y)
    lines = out.getvalue().splitlines()
    assert len(lines) == metric.n_iter_
    assert f"objective {metric.objective_:.8g}" in lines[-1]
    with redirect_stdout(quiet):
        MMC().fit(X, y)
    assert quiet.getvalue() == ""


# ------------------------------------------------------------------ scikit-learn's habits


@BOTH
def test_transformed_points_are_as_far_apart_as_the_metric_says(diagonal):
    X, must, cannot = random_problem(0)
    metric = MMC(diagonal).fit(X, must_link=must, cannot_link=cannot)
    Z, A = metric.transform(X), metric.get_mahalanobis_matrix()
    delta = X[2] - X[9]
    assert ((Z[2] - Z[9]) ** 2).sum() == pytest.approx(delta @ A @ delta, rel=1e-10)
    again = MMC(diagonal).fit_transform(X, must_link=must, cannot_link=cannot)
    np.testing.assert_array_equal(again, Z)


def test_components_are_symmetric_in_units_of_the_must_links_scatter():
    X, must, cannot = random_problem(0)
    X = X * [1.0, 100.0, 0.01]
    metric = MMC().fit(X, must_link=must, cannot_link=cannot)
    scatter = np.sqrt(sum((X[i] - X[j]) ** 2 for i, j in must))
    root = metric.components_ * scatter
    np.testing.assert_allclose(root, root.T, atol=1e-12)
    assert np.linalg.eigvalsh(root)[0] > -1e-12


def test_pipeline_output_names_clone_and_pickle():
    X, y, *_ = load("wine")
    frame = pd.DataFrame(X).add_prefix("f")
    model = make_pipeline(StandardScaler().set_output(transform="pandas"), MMC(diagonal=True))
    model.set_output(transform="pandas")
    named = model.fit(frame, mmc__must_link=pairs_of(y, True)[:90], mmc__cannot_link=[[0, 70]])
    assert list(named.transform(frame).columns) == [f"mmc{k}" for k in range(13)]
    assert list(model[-1].feature_names_in_) == list(frame.columns)
    again = pickle.loads(pickle.dumps(model[-1]))
    np.testing.assert_array_equal(again.components_, model[-1].components_)
    assert not hasattr(clone(model[-1]), "components_")
    with pytest.raises(NotFittedError):
        MMC().transform(X)
    with pytest.raises(NotFittedError):
        MMC().get_mahalanobis_matrix()


@pytest.mark.parametrize("diagonal", [False, True])
def test_a_tolerance_below_rounding_is_not_met_and_the_gap_is_told(diagonal):
    rng = np.random.default_rng(int(diagonal))
    X, y = rng.normal(size=(12, 3)), rng.integers(0, 2, 12)
    told = r"rounding hides any gain; the maximum may be a fraction of \d\.\de-1[1-5] above"
    with pytest.warns(ConvergenceWarning, match=told):
        exact = MMC(diagonal, tol=0.0, max_iter=3000).fit(X, y)
    # It is the maximum all the same.
    assert exact.objective_ == pytest.approx(MMC(diagonal).fit(X, y).objective_, rel=1e-5)
