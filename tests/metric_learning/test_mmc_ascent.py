"""The search for Xing's metric: its certificate, its two kinds of step, and how it may end."""

import io
import warnings
from contextlib import redirect_stdout
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mmc_problems import BOTH, pairs_between, random_problem
from sklearn.exceptions import ConvergenceWarning

from cgmm.datasets import load
from cgmm.metric_learning import MMC, objective
from cgmm.metric_learning.mmc_ascent import Ascent, _mixed, _vertex
from cgmm.metric_learning.mmc_distances import Distances


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


def test_search_keeps_the_best_metric_and_the_lowest_bound_it_has_seen():
    V = np.array([[0.0, 0], [1, 0], [0, 5]])
    far = pairs_between([[0, 1], [0, 2]])
    ascent = Ascent(Distances(V, far, identity_of=V), 500, 1e-7, verbose=0)
    seen = [ascent._look(np.array(factor)) for factor in ([1.0, 5.0], [5.0, 1.0], [1.0, 4.0])]
    assert ascent.best is seen[0]
    assert ascent.upper == seen[0].upper < min(seen[1].upper, seen[2].upper)


# ------------------------------------------------------------------ steps to a vertex


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


# ------------------------------------------------------------------ the end


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


@pytest.mark.parametrize("diagonal", [False, True])
def test_a_tolerance_below_rounding_is_not_met_and_the_gap_is_told(diagonal):
    rng = np.random.default_rng(int(diagonal))
    X, y = rng.normal(size=(12, 3)), rng.integers(0, 2, 12)
    told = r"rounding hides any gain; the maximum may be a fraction of \d\.\de-1[1-5] above"
    with pytest.warns(ConvergenceWarning, match=told):
        exact = MMC(diagonal, tol=0.0, max_iter=3000).fit(X, y)
    # It is the maximum all the same.
    assert exact.objective_ == pytest.approx(MMC(diagonal).fit(X, y).objective_, rel=1e-5)


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
