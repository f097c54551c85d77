"""RCA and its steps: covariances, whitening, the discriminant; what ranks do; conventions."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import eigh, fractional_matrix_power
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

import cgmm.numerics
from cgmm.metric_learning import (
    RCA,
    OnlineRCA,
    cfld,
    principal_axes,
    total_covariance,
    within_chunklet_covariance,
)
from cgmm.metric_learning.whiten import whitening
from cgmm.metrics import cumulative_neighbour_purity
from cgmm.scenarios import equal_chunklets, links_of_chunklets

IRIS = load_iris(return_X_y=True)
WINE = load_wine(return_X_y=True)
DIGITS = load_digits(return_X_y=True)


@parametrize_with_checks(
    [RCA(), RCA(1), RCA(shrinkage=0.1), OnlineRCA(), OnlineRCA("constant", eta=0.01)]
)
def test_scikit_learn_estimator_checks(estimator, check):
    # Their labels are chunklets here, and not made for it: ranks are deficient in places.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        check(estimator)


def scatter_by_hand(X, chunklet_of):
    """Scatter, points and chunklets by the definition."""
    scatter, n_points, n_chunklets = np.zeros((X.shape[1],) * 2), 0, 0
    for j in np.unique(chunklet_of[chunklet_of >= 0]):
        rows = X[chunklet_of == j]
        if len(rows) > 1:
            scatter += sum(np.outer(h, h) for h in rows - rows.mean(axis=0))
            n_points, n_chunklets = n_points + len(rows), n_chunklets + 1
    return scatter, n_points, n_chunklets


def correlated(n, d, seed=0):
    """Points and chunklets of every size, of full rank."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + 3
    return X, rng.integers(-1, max(1, n // 4), size=n)


def quiet_fit(model, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return model.fit(*args, **kwargs)


# ------------------------------------------------------------------ covariances


@pytest.mark.parametrize("cells", [1, 7, 16, 60, 131_072])
@pytest.mark.parametrize("seed", range(8))
def test_covariances_are_their_definitions_however_the_blocks_fall(monkeypatch, cells, seed):
    monkeypatch.setattr(cgmm.numerics, "BLOCK_CELLS", cells)
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(41, 3)) + 5
    y = rng.integers(-1, rng.integers(1, 20), size=41)
    scatter, n_points, n_chunklets = scatter_by_hand(X, y)
    np.testing.assert_allclose(within_chunklet_covariance(X, y), scatter / n_points, rtol=1e-10)
    np.testing.assert_allclose(
        within_chunklet_covariance(X, y, unbiased=True),
        scatter / (n_points - n_chunklets),
        rtol=1e-10,
    )
    np.testing.assert_allclose(total_covariance(X), np.cov(X.T, bias=True), rtol=1e-10)


def test_a_chunklet_of_one_point_counts_neither_as_point_nor_as_chunklet():
    X, y = np.array([[0.0], [2.0], [7.0], [8.0]]), np.array([0, 0, 1, -1])
    for unbiased in (False, True):
        whole = within_chunklet_covariance(X, y, unbiased=unbiased)
        np.testing.assert_array_equal(
            whole, within_chunklet_covariance(X[:2], y[:2], unbiased=unbiased)
        )


def test_names_of_chunklets_and_order_of_points_do_not_matter():
    X, y = correlated(60, 3)
    shuffled = np.random.default_rng(1).permutation(60)
    names = np.where(y >= 0, 10**15 - 7 * y, -1)
    reference = within_chunklet_covariance(X, y)
    np.testing.assert_allclose(
        within_chunklet_covariance(X[shuffled], names[shuffled]), reference, rtol=1e-12
    )
    # Neighbours at 2**60 are one and the same as floating-point numbers.
    np.testing.assert_array_equal(
        within_chunklet_covariance(X, np.where(y >= 0, 2**60 + y, -1)), reference
    )


def test_offsets_cost_no_digits():
    X, y = correlated(50, 3)
    X = np.round(X * 2**12) / 2**12  # so that adding 2**40 is exact
    np.testing.assert_allclose(
        within_chunklet_covariance(X + 2.0**40, y), within_chunklet_covariance(X, y), rtol=1e-12
    )


def test_points_that_coincide_leave_exact_zeros():
    X = np.repeat(np.random.default_rng(0).normal(size=(200, 2)) + 1e6 / 3, 7, axis=0)
    y = np.repeat(np.arange(200), 7)
    assert any(
        np.ptp(X[y == j] - X[y == j].mean(axis=0)) or (X[7 * j] != X[y == j].mean(axis=0)).any()
        for j in range(200)
    )
    assert (within_chunklet_covariance(X, y) == 0).all()


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 1, 2], "no two points share a chunklet"),
        ([-1, -1, -1], "no two points share a chunklet"),
        ([0, 0], r"y has shape \(2,\); it must be \(3,\)"),
        ([[0], [0], [1]], r"it must be \(3,\)"),
        ([0, 0, -2], r"y\[2\] is -2; a chunklet must be an integer from 0"),
        ([0, 0.5, 0], r"y\[1\] is 0.5"),
        ([0, 0, np.nan], r"y\[2\] is nan"),
        (["a", "a", "b"], "Unknown label type of y.*Encode names"),
    ],
)
def test_chunklets_that_are_none(y, message):
    X = np.arange(6.0).reshape(3, 2)
    with pytest.raises(ValueError, match=message):
        within_chunklet_covariance(X, y)


@pytest.mark.parametrize("fit", [RCA().fit, OnlineRCA().fit, OnlineRCA().partial_fit])
def test_without_side_information_there_is_nothing_to_learn(fit):
    X = np.random.default_rng(0).normal(size=(5, 2))
    for kwargs in ({}, {"y": np.arange(5)}, {"must_link": np.empty((0, 2))}):
        with pytest.raises(ValueError, match=r"no two of the 5 points.*Give must_link.*PCA"):
            fit(X, **kwargs)
    with pytest.raises(ValueError, match="points of every chunklet coincide"):
        fit(np.repeat(X, 2, axis=0), np.repeat(np.arange(5), 2))
    with pytest.raises(ValueError, match=r"must_link\[0\] is \[0, 9\]"):
        fit(X, must_link=[[0, 9]])


# ------------------------------------------------------------------ whitening and discriminant


@given(st.integers(1, 6), st.integers(0, 10_000))
@settings(max_examples=40)
def test_whitening_is_the_symmetric_inverse_root(d, seed):
    A = np.random.default_rng(seed).normal(size=(d, d + 3))
    C = A @ A.T
    W = whitening(C)
    np.testing.assert_allclose(W @ C @ W.T, np.eye(d), atol=1e-9)
    np.testing.assert_allclose(W, W.T, atol=1e-9 * abs(W).max())
    assert np.linalg.eigvalsh(W)[0] > 0
    root = fractional_matrix_power(C, -0.5)
    np.testing.assert_allclose(W, root, atol=1e-7 * abs(root).max())


@pytest.mark.parametrize("spread", [1e-2, 1e-5, 3e-6, 3e-7, 1e-8])
def test_both_ways_to_the_root_agree_where_they_meet(spread):
    # One decomposition serves up to a condition number of 10⁶, two beyond.
    Q = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    values = np.array([1.0, 0.5, 0.1, spread])
    np.testing.assert_allclose(
        whitening((Q.T * values) @ Q), (Q.T / np.sqrt(values)) @ Q, rtol=1e-5, atol=1e-5
    )


def test_whitening_of_a_deficient_matrix_is_a_pseudo_inverse():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(5, 3))
    C = A @ A.T
    W = whitening(C)
    assert W.shape == (3, 5)
    np.testing.assert_allclose(W @ C @ W.T, np.eye(3), atol=1e-10)
    scale = np.sqrt(np.diag(C))
    expected = np.linalg.pinv(C / np.outer(scale, scale), rcond=1e-10) / np.outer(scale, scale)
    np.testing.assert_allclose(W.T @ W, expected, atol=1e-9)
    # and in units that are 10¹² apart
    units = np.array([1e-6, 1, 1e6, 1, 1e3])
    V = whitening(C * np.outer(units, units))
    np.testing.assert_allclose(V.T @ V * np.outer(units, units), W.T @ W, rtol=1e-6, atol=1e-9)
    assert whitening(np.zeros((2, 2))).shape == (0, 2)


@pytest.mark.parametrize("decades", [3, 6, 9, 60, 140])
def test_columns_in_units_far_apart_are_whitened_all_the_same(decades):
    rng = np.random.default_rng(1)
    A = rng.normal(size=(4, 9))
    C = A @ A.T
    units = np.array([10.0**-decades, 1.0, 10.0**decades, 1.0])
    W = whitening(C * units * units[:, None])
    error = abs((W * units) @ C @ (W * units).T - np.eye(4)).max()
    assert error < 1e-8


def test_rounding_is_not_variance():
    C = np.diag([1.0, 1e-20])
    assert whitening(C).shape == (2, 2)
    assert whitening(C, noise=np.array([0.0, 1e-9])).shape == (1, 2)
    close = np.array([[1, 1 - 1e-9], [1 - 1e-9, 1]])
    assert whitening(close).shape == (2, 2)
    assert whitening(close, noise=1e-4).shape == (1, 2)
    # also where one decomposition would do
    assert whitening(np.diag([1.0, 1e-4]), noise=np.array([0.0, 0.1])).shape == (1, 2)
    assert whitening(np.array([[1, 1 - 1e-4], [1 - 1e-4, 1]]), tol=1e-3).shape == (1, 2)
    near = np.array([[1, 1 - 1e-11], [1 - 1e-11, 1]])
    assert whitening(near).shape == (1, 2)
    assert whitening(near, tol=1e-12).shape == (2, 2)


@pytest.mark.parametrize("data", [IRIS, WINE])
def test_discriminant_is_the_generalised_eigenproblem_and_with_labels_fishers(data):
    X, y = data
    within, total = within_chunklet_covariance(X, y), total_covariance(X)
    A, ratios = cfld(within, total)
    values, vectors = eigh(total, within)
    np.testing.assert_allclose(ratios, values[::-1], rtol=1e-8)
    np.testing.assert_allclose(A @ within @ A.T, np.eye(len(A)), atol=1e-8)
    np.testing.assert_allclose(A @ total @ A.T, np.diag(ratios), atol=1e-8 * ratios[0])
    np.testing.assert_allclose(abs(A[:2]), abs(vectors.T[::-1][:2]), rtol=1e-5, atol=1e-8)
    # [barhillel2005, sect. 8.1.3]: with all labels, Fisher's discriminant
    lda = LinearDiscriminantAnalysis(solver="eigen", n_components=2).fit(X, y)
    between = ratios[:2] - 1
    np.testing.assert_allclose(between / between.sum(), lda.explained_variance_ratio_, rtol=1e-6)
    scalings = lda.scalings_[:, :2] / np.linalg.norm(lda.scalings_[:, :2], axis=0)
    ours = A[:2].T / np.linalg.norm(A[:2], axis=1)
    np.testing.assert_allclose(abs(np.sum(ours * scalings, axis=0)), 1, rtol=1e-6)


def test_discriminant_keeps_the_first_rows_and_does_not_invent_any():
    X, y = WINE
    within, total = within_chunklet_covariance(X, y), total_covariance(X)
    A, ratios = cfld(within, total, 3)
    assert A.shape == (3, 13)
    np.testing.assert_allclose(A, cfld(within, total).rows[:3])
    assert (np.diff(ratios) <= 0).all()
    assert cfld(np.diag([1.0, 0.0]), np.eye(2), 2).rows.shape == (1, 2)


def test_principal_axes_are_those_of_a_singular_value_decomposition():
    X, _ = IRIS
    axes = principal_axes(total_covariance(X), 2)
    right = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:2]
    np.testing.assert_allclose(abs(np.sum(axes * right, axis=1)), 1, rtol=1e-10)
    assert (axes[np.arange(2), abs(axes).argmax(axis=1)] > 0).all()


# ------------------------------------------------------------------ the estimator


@pytest.mark.parametrize("unbiased", [False, True])
def test_full_rank_gives_the_symmetric_root_of_equation_1(unbiased):
    X, y = IRIS
    model = RCA(unbiased=unbiased).fit(X, y)
    scatter, n_points, n_chunklets = scatter_by_hand(X, y)
    C = scatter / (n_points - unbiased * n_chunklets)
    np.testing.assert_allclose(model.within_covariance_, C, rtol=1e-10)
    np.testing.assert_allclose(model.components_, fractional_matrix_power(C, -0.5), rtol=1e-8)
    np.testing.assert_allclose(model.get_mahalanobis_matrix(), np.linalg.inv(C), rtol=1e-8)
    assert model.n_chunklets_ == 3
    Y = model.transform(X)
    np.testing.assert_allclose(Y, X @ model.components_.T)
    np.testing.assert_allclose(
        within_chunklet_covariance(Y, y, unbiased=unbiased), np.eye(4), atol=1e-10
    )
    np.testing.assert_allclose(model.inverse_transform(Y), X, rtol=1e-10)


def test_must_links_chunklets_and_both_together():
    X, _ = IRIS
    y = np.full(150, -1)
    y[[3, 8, 40, 60, 61, 62, 77, 90]] = [0, 0, 0, 5, 5, 5, 2, 2]
    by_y = RCA().fit(X, y)
    by_links = RCA().fit(X, must_link=links_of_chunklets(y))
    np.testing.assert_allclose(by_y.components_, by_links.components_, rtol=1e-10)
    joined = np.where(np.isin(y, [0, 2]), 2, y)
    joined[[100, 101]] = 9
    both = RCA().fit(X, y, must_link=[[8, 90], [100, 101], [7, 7]])
    np.testing.assert_allclose(both.components_, RCA().fit(X, joined).components_, rtol=1e-10)
    assert both.n_chunklets_ == 3


def test_n_components_are_the_discriminant_whitened():
    X, y = WINE
    model = RCA(2).fit(X, y)
    expected = cfld(within_chunklet_covariance(X, y), total_covariance(X), 2).rows
    np.testing.assert_allclose(model.components_, expected)
    Y = model.transform(X)
    np.testing.assert_allclose(within_chunklet_covariance(Y, y), np.eye(2), atol=1e-9)
    # As many rows as columns: another rotation, the same metric
    np.testing.assert_allclose(
        RCA(13).fit(X, y).get_mahalanobis_matrix(),
        RCA().fit(X, y).get_mahalanobis_matrix(),
        rtol=1e-6,
        atol=1e-10,
    )


def test_inverse_of_a_map_that_loses_dimensions_is_the_regression():
    X, y = WINE
    model = RCA(3).fit(X, y)
    Y = model.transform(X)
    design = np.column_stack([np.ones(len(Y)), Y])
    fitted = design @ np.linalg.lstsq(design, X, rcond=None)[0]
    np.testing.assert_allclose(model.inverse_transform(Y), fitted, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(model.transform(model.inverse_transform(Y)), Y, rtol=1e-8)
    with pytest.raises(ValueError, match=r"\(N, 3\)"):
        model.inverse_transform(X)


@given(st.integers(0, 1000))
@settings(max_examples=25)
def test_the_metric_is_that_of_the_points_in_whatever_coordinates(seed):
    X, y = correlated(60, 3)
    rng = np.random.default_rng(seed)
    G, shift = rng.normal(size=(3, 3)) + 2 * np.eye(3), 10 * rng.normal(size=3)
    if np.linalg.cond(G) > 50:
        return
    first, second = RCA().fit(X, y), RCA().fit(X @ G.T + shift, y)
    apart = first.transform(X[:5]) - first.transform(X[5:10])
    moved = second.transform(X[:5] @ G.T) - second.transform(X[5:10] @ G.T)
    np.testing.assert_allclose((apart**2).sum(1), (moved**2).sum(1), rtol=1e-8)


@pytest.mark.parametrize("unit", [1e-150, 1e-100, 1e-5, 1e7, 1e100, 1e150])
@pytest.mark.parametrize("data", [IRIS, DIGITS], ids=["iris", "digits"])
def test_units_of_the_data_do_not_matter(data, unit):
    X, y = data
    reference, scaled = quiet_fit(RCA(), X, y), quiet_fit(RCA(), X * unit, y)
    # Distances: with all labels many ratios are one, and their rows any rotation of each other.
    ours, theirs = (
        np.diff(m.transform(Z), axis=0) for m, Z in ((scaled, X * unit), (reference, X))
    )
    np.testing.assert_allclose((ours**2).sum(axis=1), (theirs**2).sum(axis=1), rtol=1e-6)
    assert np.isfinite(scaled.get_mahalanobis_matrix()).all()


@pytest.mark.parametrize(("unit", "word"), [(1e160, "overflow"), (1e-160, "vanish")])
def test_squares_that_cannot_be_held(unit, word):
    X, y = IRIS
    for call in (RCA().fit, OnlineRCA().fit, within_chunklet_covariance):
        with pytest.raises(ValueError, match=f"column . spans .*squares {word}"):
            call(X * unit, y)
    with pytest.raises(ValueError, match=word):
        total_covariance(X * unit)


def test_a_constant_too_large_for_sums():
    X, y = IRIS
    with pytest.raises(ValueError, match=r"column 4 spans 1e\+308 to 1e\+308.*overflow"):
        RCA().fit(np.column_stack([X, np.full(150, 1e308)]), y)


def test_chunklets_that_vary_by_rounding_alone():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(30, 3)), 2, axis=0) * (1 + rng.integers(-1, 2, (60, 1)) * 2e-16)
    assert (X[0::2] != X[1::2]).any()
    for fit in (RCA().fit, RCA(2).fit, OnlineRCA().fit):
        with pytest.raises(ValueError, match="by no more than rounding"):
            fit(X, np.repeat(np.arange(30), 2))


def test_learnt_metric_finds_better_neighbours():
    # The claim of [barhillel2005, Fig. 4] on wine, whose columns differ in units.
    X, y = WINE
    chunklets = equal_chunklets(y, 3, 90, random_state=0)
    plain = cumulative_neighbour_purity(X, y, 10)[-1]
    learnt = cumulative_neighbour_purity(RCA().fit(X, chunklets).transform(X), y, 10)[-1]
    reduced = cumulative_neighbour_purity(RCA(2).fit(X, chunklets).transform(X), y, 10)[-1]
    assert plain < 0.7
    assert learnt > 0.85
    assert reduced > 0.9


def test_names_pandas_pickle_clone_and_before_fitting():
    X, y = IRIS
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = RCA(2).set_output(transform="pandas").fit(frame, y)
    assert list(model.transform(frame).columns) == ["rca0", "rca1"]
    assert list(model.feature_names_in_) == list("abcd")
    assert list(OnlineRCA().fit(X, y).get_feature_names_out())[-1] == "onlinerca3"
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.components_, model.components_)
    assert not hasattr(clone(model), "components_")
    for method in ("transform", "inverse_transform"):
        with pytest.raises(NotFittedError):
            getattr(RCA(), method)(X)
    with pytest.raises(NotFittedError):
        RCA().get_mahalanobis_matrix()


# ------------------------------------------------------------------ deficient ranks


def test_digits_with_constant_pixels_are_mapped_in_their_span():
    X, y = DIGITS
    with pytest.warns(UserWarning, match="data span 61 of 64 dimensions.*gives 61 columns"):
        model = RCA().fit(X, y)
    Y = model.transform(X)
    assert Y.shape == (1797, 61)
    np.testing.assert_allclose(within_chunklet_covariance(Y, y), np.eye(61), atol=1e-8)
    np.testing.assert_allclose(model.inverse_transform(Y), X, atol=1e-8)
    blank = X.max(axis=0) == X.min(axis=0)
    assert blank.sum() == 3
    assert (model.components_[:, blank] == 0).all()
    # The same metric as without the blank pixels
    full = RCA().fit(X[:, ~blank], y)
    np.testing.assert_allclose(
        model.get_mahalanobis_matrix()[np.ix_(~blank, ~blank)],
        full.get_mahalanobis_matrix(),
        rtol=1e-6,
        atol=1e-8,
    )


@pytest.mark.parametrize("copy", ["column", "sum", "points"])
def test_dependent_columns_and_doubled_points(copy):
    X, y = IRIS
    reference = RCA().fit(X, y)
    if copy == "points":
        model, Z = RCA().fit(np.repeat(X, 2, axis=0), np.repeat(y, 2)), X
    else:
        extra = X[:, 0] if copy == "column" else X.sum(axis=1) / 3
        Z = np.column_stack([X, extra])
        with pytest.warns(UserWarning, match="data span 4 of 5 dimensions"):
            model = RCA().fit(Z, y)
        np.testing.assert_allclose(model.inverse_transform(model.transform(Z)), Z, atol=1e-10)
    np.testing.assert_allclose(
        np.linalg.norm(np.diff(model.transform(Z), axis=0), axis=1),
        np.linalg.norm(np.diff(reference.transform(X), axis=0), axis=1),
        rtol=1e-7,
    )


def test_rounding_of_a_constant_column_is_not_stretched():
    X, y = IRIS
    jitter = 0.1 + np.random.default_rng(0).integers(-1, 2, size=150) * 2**-56
    assert len(np.unique(jitter)) > 1
    with pytest.warns(UserWarning, match="data span 4 of 5"):
        model = RCA().fit(np.column_stack([X, jitter]), y)
    np.testing.assert_allclose(
        model.get_mahalanobis_matrix()[:4, :4], RCA().fit(X, y).get_mahalanobis_matrix(), rtol=1e-6
    )


def test_a_direction_without_variance_in_chunklets_is_left_out_and_said_so():
    # What tells the classes apart entirely would be stretched infinitely.
    X, y = IRIS
    Z = np.column_stack([X, y])
    with pytest.warns(UserWarning, match="chunklets do not in 1 of 5 dimensions.*shrinkage > 0"):
        model = RCA().fit(Z, y)
    expected = np.zeros((5, 5))
    expected[:4, :4] = RCA().fit(X, y).get_mahalanobis_matrix()
    np.testing.assert_allclose(model.get_mahalanobis_matrix(), expected, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(
        RCA(shrinkage=0.01).fit(Z, y).get_mahalanobis_matrix(),
        np.linalg.inv(0.99 * within_chunklet_covariance(Z, y) + 0.01 * total_covariance(Z)),
        rtol=1e-6,
    )


@pytest.mark.parametrize(("alpha", "n_axes"), [(0.5, 10), (0.9, 18), (1.0, 20), (0.01, 1)])
def test_too_few_must_links_are_met_by_pca(alpha, n_axes):
    X, y = DIGITS
    chunklets = np.full(len(y), -1)
    for j in range(20):
        chunklets[np.flatnonzero(y == j % 10)[[j, j + 20]]] = j
    with pytest.warns(UserWarning, match="too few to measure") as caught:
        model = RCA(alpha=alpha).fit(X, chunklets)
    message = str(caught[0].message)
    assert len(caught) == 1
    assert "Σ(n_j - 1) = 20 degrees of freedom and vary in 20 of the 61" in message
    assert f"PCA has reduced the data to {n_axes} dimensions" in message
    assert model.components_.shape == (n_axes, 64)
    axes = principal_axes(total_covariance(X), n_axes)
    expected = RCA().fit(X @ axes.T, chunklets).get_mahalanobis_matrix()
    np.testing.assert_allclose(
        model.get_mahalanobis_matrix(), axes.T @ expected @ axes, rtol=1e-5, atol=1e-7
    )


@pytest.mark.parametrize("n_pairs", [4, 5])
def test_must_links_need_to_measure_the_span_of_the_data_only(n_pairs):
    # Four degrees of freedom: too few for seven columns, enough for the four that differ.
    X, _ = IRIS
    pairs = np.column_stack([np.arange(n_pairs), np.arange(50, 50 + n_pairs)])
    with pytest.warns(UserWarning, match="data span 4 of 7 dimensions") as caught:
        model = RCA().fit(np.column_stack([X, X[:, :3]]), must_link=pairs)
    assert "PCA" not in str(caught[0].message)
    assert model.components_.shape == (4, 7)


def test_pca_does_not_throw_away_all_that_chunklets_tell():
    # Nearly all variance is between the points of no pair.
    X = np.array([[0.0, 1.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, 9.0], [5.0, 0.0, 0.0]])
    with pytest.warns(UserWarning, match="do not in 2 of 3 dimensions") as caught:
        model = RCA().fit(X, must_link=[[0, 1]])
    assert "PCA" not in str(caught[0].message)
    np.testing.assert_array_equal(model.components_, [[0, 1, 0]])


def test_the_rank_of_algorithm_2_only_bounds_it_from_above():
    # 40 pairs have 40 degrees of freedom, but these differ along two directions alone.
    rng = np.random.default_rng(0)
    first = rng.normal(size=(40, 6))
    second = first + rng.normal(size=(40, 2)) @ rng.normal(size=(2, 6))
    X, pairs = np.concatenate([first, second]), np.column_stack([np.arange(40), np.arange(40, 80)])
    with pytest.warns(UserWarning, match="do not in 4 of 6 dimensions") as caught:
        model = RCA().fit(X, must_link=pairs)
    assert "PCA" not in str(caught[0].message)
    assert model.components_.shape == (2, 6)
    # and with fewer degrees of freedom than dimensions, α R is of the true R
    with pytest.warns(UserWarning, match="= 5 degrees of freedom and vary in 2 of the 6.*to 1 dim"):
        model = RCA().fit(X, must_link=pairs[:5])
    # nor can it exceed D, however many points are in chunklets
    assert RCA().fit(*IRIS).components_.shape == (4, 4)


def test_n_components_beyond_the_rank():
    X, y = IRIS
    with pytest.raises(ValueError, match="n_components=5, but the data have n_features = 4"):
        RCA(5).fit(X, y)
    with pytest.raises(ValueError, match=r"=5, but only 4 directions.*do not in 1 of 5"):
        RCA(5).fit(np.column_stack([X, y]), y)
    few = np.full(150, -1)
    few[[0, 1, 60, 61, 62]] = [0, 0, 1, 1, 1]
    with pytest.warns(UserWarning, match="reduced the data to 3 dimensions"):
        assert RCA(3).fit(X, few).components_.shape == (3, 4)
    with pytest.warns(UserWarning, match="reduced the data to 1 dimensions"):
        assert RCA().fit(X, few).components_.shape == (1, 4)
    with pytest.raises(ValueError, match=r"only 3 directions can be whitened.*do not in 1 of 4"):
        RCA(4).fit(X, few)


def test_one_pair_and_a_chunklet_of_all_points():
    X, _ = IRIS
    pair = quiet_fit(RCA(), X, must_link=[[0, 70]])
    assert pair.components_.shape == (1, 4)
    apart = pair.transform(X[[0]]) - pair.transform(X[[70]])
    np.testing.assert_allclose(apart, [[2 * np.sign(apart[0, 0])]], rtol=1e-10)
    whole = RCA().fit(X, np.zeros(150, dtype=int))
    np.testing.assert_allclose(np.cov(whole.transform(X).T, bias=True), np.eye(4), atol=1e-10)


def test_shrinkage_bounds_how_far_a_direction_is_stretched():
    X, y = WINE
    few = equal_chunklets(y, 2, 12, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = RCA(shrinkage=0.25).fit(X, few)
    # (1 - s) Ĉ + s S_t ⪰ s S_t: no direction of the data has more variance than 1 / s.
    variances = np.linalg.eigvalsh(np.cov(model.transform(X).T, bias=True))
    assert variances[-1] == pytest.approx(4, rel=1e-9)
    all_of_it = RCA(shrinkage=1.0).fit(X, few)
    np.testing.assert_allclose(np.cov(all_of_it.transform(X).T, bias=True), np.eye(13), atol=1e-8)


def adversarial_points():
    """Few points, whole numbers, constant and repeated columns."""
    return st.integers(2, 8).flatmap(
        lambda n: st.tuples(
            st.lists(
                st.lists(st.integers(-3, 3).map(float), min_size=3, max_size=3),
                min_size=n,
                max_size=n,
            ),
            st.lists(st.integers(-1, 2), min_size=n, max_size=n),
        )
    )


@given(adversarial_points())
@settings(max_examples=150)
def test_a_clear_error_or_a_whitening_never_nan(sample):
    X, y = np.array(sample[0]), np.array(sample[1])
    if scatter_by_hand(X, y)[0].any():
        model = quiet_fit(RCA(), X, y)
    else:
        with pytest.raises(ValueError, match=r"share a chunklet|of every chunklet coincide"):
            RCA().fit(X, y)
        return
    W = model.components_
    assert np.isfinite(W).all()
    np.testing.assert_allclose(
        W @ model.within_covariance_ @ W.T, np.eye(len(W)), atol=1e-7 * len(X)
    )
    assert np.isfinite(model.inverse_transform(model.transform(X))).all()
