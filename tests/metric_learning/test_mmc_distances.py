"""Sums over cannot-linked pairs, their gradient and the bound, against sums pair by pair."""

from itertools import combinations

import numpy as np
import pytest
from mmc_problems import BOTH, pairs_between, pairs_of

from cgmm.metric_learning import MMC
from cgmm.metric_learning.mmc_ascent import Ascent
from cgmm.metric_learning.mmc_distances import Distances


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


@pytest.mark.parametrize("floor", [1e-3, 0.5, 3.0])
def test_bound_holds_for_any_floor(floor):
    rng = np.random.default_rng(0)
    V, groups = rng.normal(size=(12, 3)), np.arange(12) % 3
    far = pairs_between([[0, 3], [1, 4]], groups)
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
