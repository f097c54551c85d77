"""Test the optimiser of MMC: sums over pairs, upper bound, ascent, and stopping."""

from itertools import combinations

import numpy as np
import pytest
from metric_problems import BOTH_FORMS, WINE, list_pairs
from sklearn.exceptions import ConvergenceWarning

from cgmm.metric_learning import MMC
from cgmm.metric_learning.chunklets import group_points
from cgmm.metric_learning.mmc import Ascent
from cgmm.metric_learning.mmc_problem import Distances, Pairs, sample_far_pairs


def make_pairs(listed, groups=()):
    """Build `Pairs` from listed pairs together with all pairs between different groups."""
    listed = np.reshape(listed, (-1, 2)).astype(np.intp)
    return Pairs(listed, group_points(np.array(groups, dtype=np.intp), 1))


def test_sampled_cannot_links_are_distinct_and_all_equally_likely():
    y = np.array([0, 0, 1, -1, 2, 1, 2, 2])
    rng = np.random.RandomState(0)
    counts = dict.fromkeys(list_pairs(y, False), 0)
    for _ in range(500):
        pairs = sample_far_pairs(make_pairs([], y), 4, rng).listed
        drawn = {tuple(sorted(pair)) for pair in pairs.tolist()}
        assert len(drawn) == 4
        for pair in drawn:
            counts[pair] += 1
    # Each of the 16 pairs is drawn with probability 1/4; five standard deviations are 48.
    np.testing.assert_allclose(list(counts.values()), 125, atol=48)


# ------------------------------------------------------------------ sums over pairs


def sum_by_definition(L, V, pairs, floor=0.0):
    """Return f, the largest eigenvalue or diagonal entry of G, G or its diagonal, and Σ η."""
    U = np.array([V[i] - V[j] for i, j in pairs])
    d = np.linalg.norm(U * L if L.ndim == 1 else U @ L, axis=1)
    eta = np.maximum(d, floor)
    G = 0.5 * sum(np.outer(u, u) / x for u, x in zip(U, eta, strict=True))
    if L.ndim == 1:
        return d.sum(), np.diag(G).max(), np.diag(G), eta.sum()
    return d.sum(), np.linalg.eigvalsh(G)[-1], G, eta.sum()


@BOTH_FORMS
@pytest.mark.parametrize("block_cells", [None, 40])
@pytest.mark.parametrize("singular", [False, True])
def test_objective_gradient_and_bound_equal_sums_over_pairs(
    diagonal, block_cells, singular, monkeypatch
):
    """All listed pairs count; pairs between groups count unless their points coincide.

    In the singular case only the first feature is used, and some points differ only in the others:
    the bound must stay finite and valid.
    """
    if block_cells:
        monkeypatch.setattr("cgmm.numerics.BLOCK_CELLS", block_cells)
    rng = np.random.default_rng(0)
    V = rng.normal(size=(40, 3))
    V[7] = V[3]
    groups = rng.integers(-1, 4, size=40)
    groups[[3, 7]] = 1, 2
    listed = [(0, 1), *combinations(range(20, 30), 2)]
    pairs = [*listed, *(pair for pair in list_pairs(groups, False) if pair != (3, 7))]
    L = rng.normal(size=3 if diagonal else (3, 3))
    if singular:
        L = np.array([1.0, 0, 0]) if diagonal else np.diag([1.0, 0, 0])
        V[[0, 20], 0] = V[[1, 21], 0]
    L /= np.linalg.norm(L)
    distances = Distances(V, make_pairs([*listed, (3, 7)], groups), identity_of=V)
    value = distances.evaluate(L)
    f, largest, G, lengths = sum_by_definition(L, V, pairs, distances._min_distance)
    assert distances.n_pairs == len(pairs)
    assert value.objective == pytest.approx(f, rel=1e-13)
    # In the singular case weights reach 1 / floor, so only 8 of 16 digits are significant.
    np.testing.assert_allclose(value.gradient, G, rtol=1e-6 if singular else 1e-11)
    assert value.upper == pytest.approx(largest + lengths / 2, rel=1e-6 if singular else 1e-12)
    assert value.upper < 1e10 * f
    assert distances.compute_total() == pytest.approx(
        sum_by_definition(np.eye(3), V, pairs)[0], rel=1e-13
    )


# ------------------------------------------------------------------ upper bound and ascent


@BOTH_FORMS
@pytest.mark.parametrize("max_iter", [1, 4, 1000])
def test_the_gap_bounds_the_maximum_and_the_objective_never_decreases(diagonal, max_iter):
    X, y = WINE
    y = np.where(np.arange(len(y)) % 3, -1, y)
    best = MMC(diagonal, tol=1e-8).fit(X, y)
    metric = MMC(diagonal, max_iter=max_iter)
    if max_iter < 1000:
        message = rf"did not converge in {max_iter} .* fraction of \d"
        with pytest.warns(ConvergenceWarning, match=message):
            metric.fit(X, y)
    else:
        metric.fit(X, y)
    assert metric.objective_ <= best.objective_ + best.gap_
    assert best.objective_ <= metric.objective_ + metric.gap_ * (1 + 1e-12)
    assert metric.converged_ == (metric.gap_ <= 1e-6 * metric.objective_) == (max_iter == 1000)
    assert (np.diff(metric.history_) >= 0).all()
    assert metric.history_[-1] == metric.objective_
    assert len(metric.history_) == metric.n_iter_ <= max_iter


@BOTH_FORMS
def test_ascent_recovers_a_direction_that_the_start_ignores(diagonal):
    """A singular factor is a critical point: its gradient vanishes in the ignored direction."""

    def ascend(V, pairs, start):
        ascent = Ascent(Distances(V, make_pairs(pairs), identity_of=V), 500, 1e-7, verbose=0)
        ascent.maximise_from(np.array(start) if diagonal else np.diag(start))
        assert ascent.is_certain
        return ascent.best.objective

    V, pairs = np.random.default_rng(0).normal(size=(12, 3)), list(combinations(range(12), 2))
    expected = ascend(V, pairs, [1.0, 1, 1])
    assert ascend(V, pairs, [1.0, 0, 0]) == pytest.approx(expected, rel=1e-7)
    # For two orthogonal distances 1 and 5, the maximum is √(1² + 5²).
    V = np.array([[0.0, 0], [1, 0], [0, 5]])
    assert ascend(V, [[0, 1], [0, 2]], [0.0, 1]) == pytest.approx(np.sqrt(26), rel=1e-7)


# ------------------------------------------------------------------ stopping


@BOTH_FORMS
def test_mmc_warns_and_reports_the_gap_if_tol_is_below_rounding(diagonal):
    rng = np.random.default_rng(int(diagonal))
    X, y = rng.normal(size=(12, 3)), rng.integers(0, 2, 12)
    message = r"hide any further gain; the maximum may be a fraction of \d\.\de-1[1-5] above"
    with pytest.warns(ConvergenceWarning, match=message):
        metric = MMC(diagonal, tol=0.0, max_iter=3000).fit(X, y)
    assert metric.objective_ == pytest.approx(MMC(diagonal).fit(X, y).objective_, rel=1e-5)
