"""Test RCA as an estimator: its map, reduced dimensions, and deficient ranks."""

import numpy as np
import pytest
from metric_problems import DIGITS, IRIS, WINE
from scipy.linalg import fractional_matrix_power

from cgmm import primer
from cgmm.metric_learning import (
    RCA,
    cfld,
    principal_axes,
    total_covariance,
    within_chunklet_covariance,
)
from cgmm.scenarios import links_of_chunklets

# ------------------------------------------------------------------ the map


@pytest.mark.parametrize("unbiased", [False, True])
def test_rca_map_is_the_symmetric_inverse_root_of_the_within_covariance(unbiased):
    X, y = IRIS
    model = RCA(unbiased=unbiased).fit(X, y)
    C = primer.within_covariance(X, y) * 150 / (150 - 3 * unbiased)
    np.testing.assert_allclose(model.within_covariance_, C, rtol=1e-10)
    np.testing.assert_allclose(model.components_, fractional_matrix_power(C, -0.5), rtol=1e-8)
    assert model.n_chunklets_ == 3
    Y = model.transform(X)
    np.testing.assert_allclose(Y, X @ model.components_.T)
    np.testing.assert_allclose(model.inverse_transform(Y), X, rtol=1e-10)


def test_rca_learns_the_same_from_must_links_chunklets_and_both_together():
    X, _ = IRIS
    y = np.full(150, -1)
    y[[3, 8, 40, 60, 61, 62, 77, 90]] = [0, 0, 0, 5, 5, 5, 2, 2]
    joined = np.where(np.isin(y, [0, 2]), 2, y)
    joined[[100, 101]] = 9
    extra = [[8, 90], [100, 101], [7, 7]]
    for relations, chunklets in (
        ({"must_link": links_of_chunklets(y)}, y),
        ({"y": y, "must_link": extra}, joined),
    ):
        model, expected = RCA().fit(X, **relations), RCA().fit(X, chunklets)
        np.testing.assert_allclose(model.components_, expected.components_, rtol=1e-10)
        assert model.n_chunklets_ == 3


def test_reduced_rca_is_the_whitened_discriminant_and_inverts_by_regression():
    X, y = WINE
    model = RCA(3).fit(X, y)
    expected = cfld(within_chunklet_covariance(X, y), total_covariance(X), 3).rows
    np.testing.assert_allclose(model.components_, expected)
    Y = model.transform(X)
    design = np.column_stack([np.ones(len(Y)), Y])
    fitted = design @ np.linalg.lstsq(design, X, rcond=None)[0]
    np.testing.assert_allclose(model.inverse_transform(Y), fitted, rtol=1e-7, atol=1e-7)
    with pytest.raises(ValueError, match=r"\(N, 3\)"):
        model.inverse_transform(X)


# ------------------------------------------------------------------ deficient ranks


ROUNDED = 0.1 + np.random.default_rng(0).integers(-1, 2, size=150) * 2**-56


@pytest.mark.parametrize("extra", [IRIS[0].sum(axis=1) / 3, ROUNDED], ids=["sum", "rounding"])
def test_a_dependent_column_changes_no_distance_but_gives_a_warning(extra):
    X, y = IRIS
    Z = np.column_stack([X, extra])
    with pytest.warns(UserWarning, match="data span 4 of 5 dimensions"):
        model = RCA().fit(Z, y)
    np.testing.assert_allclose(model.inverse_transform(model.transform(Z)), Z, atol=1e-10)
    # Four pairs give four degrees of freedom, enough for the four dimensions of the data.
    pairs = np.column_stack([np.arange(4), np.arange(50, 54)])
    with pytest.warns(UserWarning, match="data span 4 of 5 dimensions") as caught:
        assert RCA().fit(Z, must_link=pairs).components_.shape == (4, 5)
    assert "PCA" not in str(caught[0].message)
    steps = np.diff([model.transform(Z), RCA().fit_transform(X, y)], axis=1)
    np.testing.assert_allclose(*np.linalg.norm(steps, axis=2), rtol=1e-7)


def test_rca_leaves_out_directions_in_which_chunklets_do_not_vary_with_a_warning():
    """Whitening would stretch such a direction infinitely; shrinkage is the other remedy."""
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


@pytest.mark.parametrize(("alpha", "n_axes"), [(0.9, 18), (0.01, 1)])
def test_rca_reduces_by_pca_if_there_are_too_few_must_links(alpha, n_axes):
    X, y = DIGITS
    chunklets = np.full(len(y), -1)
    for j in range(20):
        chunklets[np.flatnonzero(y == j % 10)[[j, j + 20]]] = j
    text = r"= 20 degrees of freedom and vary in 20 of the 61 .*too few .*PCA .* to {} dim"
    with pytest.warns(UserWarning, match=text.format(n_axes)):
        model = RCA(alpha=alpha).fit(X, chunklets)
    assert model.components_.shape == (n_axes, 64)
    axes = principal_axes(total_covariance(X), n_axes)
    expected = RCA().fit(X @ axes.T, chunklets).get_mahalanobis_matrix()
    np.testing.assert_allclose(
        model.get_mahalanobis_matrix(), axes.T @ expected @ axes, rtol=1e-5, atol=1e-7
    )


def test_rca_does_not_use_pca_if_chunklets_do_not_vary_in_most_directions():
    # Nearly all variance is between points that no must-link connects.
    X = np.array([[0.0, 1.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, 9.0], [5.0, 0.0, 0.0]])
    with pytest.warns(UserWarning, match="do not in 2 of 3 dimensions") as caught:
        model = RCA().fit(X, must_link=[[0, 1]])
    assert "PCA" not in str(caught[0].message)
    np.testing.assert_array_equal(model.components_, [[0, 1, 0]])


def test_algorithm_2_keeps_at_most_as_many_dimensions_as_its_rank():
    # The 40 pairs have 40 degrees of freedom, but they differ only along two directions.
    rng = np.random.default_rng(0)
    first = rng.normal(size=(40, 6))
    X = np.concatenate([first, first + rng.normal(size=(40, 2)) @ rng.normal(size=(2, 6))])
    pairs = np.arange(80).reshape(2, 40).T
    with pytest.warns(UserWarning, match="do not in 4 of 6 dimensions") as caught:
        assert RCA().fit(X, must_link=pairs).components_.shape == (2, 6)
    assert "PCA" not in str(caught[0].message)
    # Five pairs are fewer than the six dimensions, so PCA keeps α times the true rank.
    with pytest.warns(UserWarning, match=r"= 5 degrees of freedom .* in 2 of the 6.*to 1 dim"):
        RCA().fit(X, must_link=pairs[:5])


def test_n_components_beyond_the_rank_are_refused_or_reduced_by_pca():
    X, y = IRIS
    labels = np.full(150, -1)
    labels[[0, 1, 60, 61, 62]] = [0, 0, 1, 1, 1]
    for K, points, chunklets, message in (
        (5, X, y, "n_components=5, but the data have n_features = 4"),
        (5, np.column_stack([X, y]), y, r"=5, but only 4 directions.*do not in 1 of 5"),
        (4, X, labels, r"only 3 directions can be whitened.*do not in 1 of 4"),
    ):
        with pytest.raises(ValueError, match=message):
            RCA(K).fit(points, chunklets)
    for K, n_axes in ((3, 3), (None, 1)):
        with pytest.warns(UserWarning, match=f"reduced the data to {n_axes} dimensions"):
            assert RCA(K).fit(X, labels).components_.shape == (n_axes, 4)
