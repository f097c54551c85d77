"""Units, axes and ranks: what Xing's metric does not depend on, and where it has no maximum."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mmc_problems import BOTH, pairs_of, random_problem
from scipy.stats import special_ortho_group
from sklearn.datasets import load_digits

from cgmm.metric_learning import MMC, objective


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


@pytest.mark.parametrize("scale", [1e-120, 1e120])
def test_extreme_units(scale):
    X, must, cannot = random_problem(0)
    relations = {"must_link": must, "cannot_link": cannot}
    metric, plain = (MMC().fit(points, **relations) for points in (scale * X, X))
    assert metric.objective_ == pytest.approx(plain.objective_, rel=3e-6)
    for impossible, word in ((1e-160, "vanish"), (1e160, "overflow")):
        with pytest.raises(ValueError, match=f"column . spans .*squares {word}"):
            MMC().fit(impossible * X, **relations)


def test_features_in_very_different_units_are_not_taken_for_missing_ones():
    X, must, cannot = random_problem(0)
    relations = {"must_link": must, "cannot_link": cannot}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        metric = MMC().fit(X * [1e-90, 1.0, 1e90], **relations)
    value = objective(metric.components_, X * [1e-90, 1.0, 1e90], **relations)
    assert value == pytest.approx(MMC().fit(X, **relations).objective_, rel=3e-6)


def test_a_large_offset_costs_only_its_own_digits():
    X, must, cannot = random_problem(0)
    relations = {"must_link": must, "cannot_link": cannot}
    # Rounding at 1e9 is 1e-7 of the spread.
    metric = MMC().fit(X + 1e9, **relations)
    assert metric.objective_ == pytest.approx(MMC().fit(X, **relations).objective_, rel=1e-5)


# ------------------------------------------------------------------ no maximum


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


# ------------------------------------------------------------------ no difference


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
def test_a_feature_that_is_constant_up_to_rounding_is_constant(diagonal):
    X, must, cannot = random_problem(0)
    relations = {"must_link": must, "cannot_link": cannot}
    plain = MMC(diagonal).fit(X, **relations)
    last_bit = np.random.default_rng(0).integers(0, 2, size=len(X)) * np.spacing(1e6)
    with pytest.warns(UserWarning, match="differ in 3 of 4 dimensions"):
        metric = MMC(diagonal).fit(np.insert(X, 1, 1e6 + last_bit, axis=1), **relations)
    assert metric.objective_ == pytest.approx(plain.objective_, rel=1e-9)
    assert (metric.components_[:, 1] == 0).all()


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
