"""Compare `cfld` and `principal_axes` with scipy, scikit-learn and numpy."""

import numpy as np
import pytest
from metric_problems import IRIS, WINE
from scipy.linalg import eigh
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from cgmm.metric_learning import cfld, principal_axes, total_covariance, within_chunklet_covariance


@pytest.mark.parametrize("data", [IRIS, WINE])
def test_cfld_solves_the_eigenproblem_and_equals_fisher_if_all_points_are_labelled(data):
    X, y = data
    within, total = within_chunklet_covariance(X, y), total_covariance(X)
    A, ratios = cfld(within, total)
    values, vectors = eigh(total, within)
    np.testing.assert_allclose(ratios, values[::-1], rtol=1e-8)
    np.testing.assert_allclose(A @ within @ A.T, np.eye(len(A)), atol=1e-8)
    np.testing.assert_allclose(A @ total @ A.T, np.diag(ratios), atol=1e-8 * ratios[0])
    np.testing.assert_allclose(abs(A[:2]), abs(vectors.T[::-1][:2]), rtol=1e-5, atol=1e-8)
    # With all labels, the map is Fisher's discriminant [barhillel2005, sect. 8.1.3].
    lda = LinearDiscriminantAnalysis(solver="eigen", n_components=2).fit(X, y)
    between = ratios[:2] - 1
    np.testing.assert_allclose(between / between.sum(), lda.explained_variance_ratio_, rtol=1e-6)
    scalings = lda.scalings_[:, :2] / np.linalg.norm(lda.scalings_[:, :2], axis=0)
    ours = A[:2].T / np.linalg.norm(A[:2], axis=1)
    np.testing.assert_allclose(abs(np.sum(ours * scalings, axis=0)), 1, rtol=1e-6)


def test_principal_axes_equal_the_right_singular_vectors():
    X, _ = IRIS
    axes = principal_axes(total_covariance(X), 2)
    right = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:2]
    np.testing.assert_allclose(abs(np.sum(axes * right, axis=1)), 1, rtol=1e-10)
    assert (axes[np.arange(2), abs(axes).argmax(axis=1)] > 0).all()
