"""Test the experiments of barhillel2005 on artificial faces, for which theory is known."""

import numpy as np
import pytest
from numpy.random import default_rng
from toy_experiments import group_by_method, make_dataset

from cgmm.datasets import Dataset
from cgmm.metric_learning import RCA, total_covariance, variance_ratio, within_chunklet_covariance
from reruns import retrieval
from reruns.barhillel2005 import taught, within_over_between
from reruns.retrieval import purity


def test_within_over_between_is_a_ratio_of_variances_and_ignores_rotations():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 30)
    X = rng.normal(size=(90, 3)) + np.array([[0, 0, 0], [3, 0, 0], [0, 5, 0]])[y]
    means = np.array([X[y == k].mean(axis=0) for k in range(3)])
    within = np.square(X - means[y]).sum() / 90
    between = np.square(means - X.mean(axis=0)).sum() / 3
    for rotation in (np.eye(3), np.linalg.qr(rng.normal(size=(3, 3)))[0]):
        assert within_over_between(X @ rotation, y) == pytest.approx(within / between)


N_CLASSES, N_PER_CLASS, D = 16, 24, 36


@pytest.fixture(scope="module")
def faces() -> Dataset:
    """Draw classes that differ in all directions, and light of far larger variance in four."""
    rng = default_rng(0)
    y = np.repeat(np.arange(N_CLASSES), N_PER_CLASS)
    X = 1.2 * rng.normal(size=(N_CLASSES, D))[y] + rng.normal(size=(len(y), D))
    X[:, :4] += 12 * rng.normal(size=(len(y), 4))
    return make_dataset(X, y)


def average(values: dict[str, float]) -> float:
    """Return the mean of the values of all quantities."""
    return float(np.mean(list(values.values())))


def test_figure_4_with_all_labels_ranks_pca_below_fld_and_fld_with_rca(faces):
    values = group_by_method(retrieval.figure_4(faces, 1, N_CLASSES - 1, default_rng(0)))
    assert values["PCA"] == purity(faces.X, faces.y)
    pca, fld, both = (average(values[name]) for name in ("PCA", "FLD", "FLD + RCA"))
    assert pca + 0.2 < fld <= both + 0.05


def test_figure_4_with_half_of_the_labels_ranks_rca_between_pca_and_fld(faces):
    ends = group_by_method(retrieval.figure_4(faces, 1, 30, default_rng(0)))
    values = group_by_method(retrieval.figure_4(faces, 0.5, 30, default_rng(0)))["RCA"]
    # [barhillel2005, sect. 8.1] reduces the images to thirty dimensions.
    must_link = taught(faces.y, 0.5, default_rng(0)).must_link
    reduced = RCA(30).fit(faces.X, must_link=must_link).transform(faces.X)
    # The quantity "way" is 0 at the purity of PCA and 1 at the purity of the discriminant.
    of_pca, of_fld = (ends[name]["purity_63"] for name in ("PCA", "FLD"))
    assert values.pop("way") == pytest.approx((values["purity_63"] - of_pca) / (of_fld - of_pca))
    assert values == purity(reduced, faces.y)
    ends = group_by_method(retrieval.figure_4(faces, 1, N_CLASSES - 1, default_rng(0)))
    assert average(ends["PCA"]) < average(values) <= average(ends["FLD + RCA"])


def test_the_discriminant_has_eigenvectors_of_unit_length(faces):
    """[barhillel2005, sect. 6]: rows of A are eigenvectors of S_w⁻¹ S_t, the largest first."""
    Y = retrieval._unwhitened(faces.X, faces.y, 5)
    rows = np.linalg.lstsq(faces.X, Y)[0].T
    ratio = np.linalg.solve(within_chunklet_covariance(faces.X, faces.y), total_covariance(faces.X))
    values = np.sort(np.linalg.eigvals(ratio).real)[::-1][:5]
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-8)
    np.testing.assert_allclose(ratio @ rows.T, rows.T * values, rtol=1e-6, atol=1e-8)


def test_figure_5_reports_the_ratio_of_variances_after_and_before_rca():
    y = np.repeat(np.arange(4), 16)
    persons = default_rng(0).normal(size=(4, 5))
    lights = 5 * default_rng(1).normal(size=(64, 5)) * [1, 1, 1, 0, 0]
    X = persons[y] + lights + 0.1 * default_rng(2).normal(size=(64, 5))
    values = group_by_method(retrieval.figure_5(make_dataset(X, y), 0.5, 5, default_rng(3)))
    before, after = (values[m]["within_over_between"] for m in ("PCA", "RCA"))
    assert before == pytest.approx(within_over_between(X, y))
    assert values["RCA"]["remaining"] == pytest.approx(after / before)
    assert after < 0.1 * before
    # Draw the relations of the experiment again, with the same seed.
    must_link = taught(y, 0.5, default_rng(3)).must_link
    Y = RCA(5).fit(X, must_link=must_link).transform(X)
    assert after == pytest.approx(within_over_between(Y, y))


@pytest.mark.parametrize("n_dims", [D, 30])
def test_figure_7_compares_rca_and_xing_with_the_original_or_reduced_data(faces, n_dims):
    values = group_by_method(retrieval.figure_7(faces, n_dims, default_rng(0)))
    assert values.keys() == {"original", "RCA", "Xing"}
    assert average(values["RCA"]) > average(values["original"]) - 0.05
    assert (values["original"] == purity(faces.X, faces.y)) == (n_dims == D)


def test_figure_8_reports_the_variance_ratio_and_its_bound(faces):
    values = group_by_method(retrieval.figure_8(faces, 3, default_rng(0)))
    # [barhillel2005, eq. 12]
    assert values["bound"] == {"variance_ratio": 1.5}
    n_chunklets = round(0.3 * N_CLASSES * N_PER_CLASS) // 3
    exact = values["exact"]["variance_ratio"]
    assert exact == pytest.approx(variance_ratio(3, n_chunklets), rel=0.02)
    assert 0 < values["RCA"]["error"] < 1 - purity(faces.X, faces.y)["purity_63"]


def test_cut_puts_the_remaining_points_of_a_class_into_a_smaller_chunklet(faces):
    """A single remaining point forms no chunklet and is left out [barhillel2005, footnote 7]."""
    drawn = default_rng(1).permutation(len(faces.y))[:150]
    chunklets = retrieval.cut(faces.y, drawn, 4)
    used = np.flatnonzero(chunklets >= 0)
    assert set(used) <= set(drawn)
    assert set(np.bincount(chunklets[used])) == {2, 3, 4}
    counts = np.bincount(faces.y[drawn], minlength=N_CLASSES)
    assert len(drawn) - len(used) == np.sum(counts % 4 == 1)
    # Each chunklet has points of one class only.
    assert len(set(zip(chunklets[used], faces.y[used], strict=True))) == chunklets.max() + 1
