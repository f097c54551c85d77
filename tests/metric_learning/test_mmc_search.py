"""The search for Xing's metric: its sums, its certificate, its two kinds of step, and its end."""

import warnings
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mmc_problems import BOTH, pairs_between, pairs_of, random_problem
from sklearn.exceptions import ConvergenceWarning

from cgmm.datasets import load
from cgmm.metric_learning import MMC, objective
from cgmm.metric_learning.mmc_ascent import Ascent
from cgmm.metric_learning.mmc_distances import Distances

# ------------------------------------------------------------------ sums and their bound


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
    rng = np.random.default_rng(0)
    V = rng.normal(size=(40, 3))
    V[7] = V[3]
    groups = rng.integers(-1, 4, size=40)
    groups[[3, 7]] = 1, 2
    listed = np.array([(0, 1), (3, 7), *combinations(range(20, 30), 2)])
    far = pairs_between(listed, groups)
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
    distances = Distances(V, pairs_between(listed, groups), identity_of=V)
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


# ------------------------------------------------------------------ the certificate


@BOTH
@pytest.mark.parametrize("max_iter", [1, 4, 1000])
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


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), diagonal=st.booleans())
def test_no_competitor_beats_the_certificate(seed, diagonal):
    X, must, cannot = random_problem(seed)
    metric = MMC(diagonal).fit(X, must_link=must, cannot_link=cannot)
    rng = np.random.default_rng(seed)
    for _ in range(10):
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


@BOTH
def test_a_factor_that_lost_a_direction_finds_it_again(diagonal):
    rng = np.random.default_rng(0)
    V = rng.normal(size=(12, 3))
    far = pairs_between(list(combinations(range(12), 2)))
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
    far = pairs_between([[0, 1], [0, 2]])
    ascent = Ascent(Distances(V, far, identity_of=V), 500, 1e-7, verbose=0)
    ascent.run(np.array([0.0, 1]) if diagonal else np.diag([0.0, 1]))
    assert ascent.certain
    assert ascent.best.objective == pytest.approx(np.sqrt(26), rel=1e-7)


# ------------------------------------------------------------------ the end


def test_too_few_iterations_warn_and_say_how_far_it_may_be():
    X, y, *_ = load("wine")
    with pytest.warns(ConvergenceWarning, match=r"did not converge in 3 .* fraction of \d\.\de-"):
        metric = MMC(max_iter=3).fit(X, y)
    assert not metric.converged_
    assert metric.n_iter_ == 3
    assert metric.gap_ > 1e-6 * metric.objective_


@BOTH
def test_a_tolerance_below_rounding_is_not_met_and_the_gap_is_told(diagonal):
    rng = np.random.default_rng(int(diagonal))
    X, y = rng.normal(size=(12, 3)), rng.integers(0, 2, 12)
    told = r"rounding hides any gain; the maximum may be a fraction of \d\.\de-1[1-5] above"
    with pytest.warns(ConvergenceWarning, match=told):
        exact = MMC(diagonal, tol=0.0, max_iter=3000).fit(X, y)
    # It is the maximum all the same.
    assert exact.objective_ == pytest.approx(MMC(diagonal).fit(X, y).objective_, rel=1e-5)
