"""Test the experiments of barhillel2005 on artificial faces, where theory gives the result."""

import numpy as np
import pytest
from toy_experiments import by_method, dataset

from cgmm.datasets import Dataset
from cgmm.metric_learning import RCA, total_covariance, variance_ratio, within_chunklet_covariance
from reruns import retrieval
from reruns.barhillel2005 import taught, within_over_between
from reruns.retrieval import purity


def test_variance_within_classes_over_variance_between_them():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 30)
    X = rng.normal(size=(90, 3)) + np.array([[0, 0, 0], [3, 0, 0], [0, 5, 0]])[y]
    means = np.array([X[y == k].mean(axis=0) for k in range(3)])
    within = np.square(X - means[y]).sum() / 90
    between = np.square(means - X.mean(axis=0)).sum() / 3
    for turn in (np.eye(3), np.linalg.qr(rng.normal(size=(3, 3)))[0]):
        assert within_over_between(X @ turn, y) == pytest.approx(within / between)


N_CLASSES, N_A_CLASS, D = 16, 24, 36


def seeded(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.fixture(scope="module")
def faces() -> Dataset:
    """Return classes that differ in all directions, and a light with far larger variance."""
    rng = seeded(0)
    y = np.repeat(np.arange(N_CLASSES), N_A_CLASS)
    X = 1.2 * rng.normal(size=(N_CLASSES, D))[y] + rng.normal(size=(len(y), D))
    X[:, :4] += 12 * rng.normal(size=(len(y), 4))
    return dataset(X, y)


def mean(values: dict[str, float]) -> float:
    return float(np.mean(list(values.values())))


def test_with_all_labels_whitening_and_the_discriminant_find_the_persons(faces):
    found = by_method(retrieval.figure_4(faces, 1, N_CLASSES - 1, seeded(0)))
    assert found["PCA"] == purity(faces.X, faces.y)
    assert mean(found["PCA"]) + 0.2 < mean(found["FLD"]) <= mean(found["FLD + RCA"]) + 0.05


def test_taught_relations_lie_between_none_and_all(faces):
    ends = by_method(retrieval.figure_4(faces, 1, 30, seeded(0)))
    found = by_method(retrieval.figure_4(faces, 0.5, 30, seeded(0)))["RCA"]
    # [barhillel2005, sect. 8.1]: thirty dimensions
    must_link = taught(faces.y, 0.5, seeded(0)).must_link
    reduced = RCA(30).fit(faces.X, must_link=must_link).transform(faces.X)
    # The path is 0 at PCA and 1 at the discriminant.
    none, all_ = (ends[name]["purity_63"] for name in ("PCA", "FLD"))
    assert found.pop("way") == pytest.approx((found["purity_63"] - none) / (all_ - none))
    assert found == purity(reduced, faces.y)
    ends = by_method(retrieval.figure_4(faces, 1, N_CLASSES - 1, seeded(0)))
    assert mean(ends["PCA"]) < mean(found) <= mean(ends["FLD + RCA"])


def test_the_discriminant_has_eigenvectors_of_length_one(faces):
    """[barhillel2005, sect. 6]: rows of A are eigenvectors of S_w⁻¹ S_t, the largest first."""
    Y = retrieval._unwhitened(faces.X, faces.y, 5)
    rows = np.linalg.lstsq(faces.X, Y)[0].T
    ratio = np.linalg.solve(within_chunklet_covariance(faces.X, faces.y), total_covariance(faces.X))
    values = np.sort(np.linalg.eigvals(ratio).real)[::-1][:5]
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-8)
    np.testing.assert_allclose(ratio @ rows.T, rows.T * values, rtol=1e-6, atol=1e-8)


def test_what_remains_of_the_lights_is_a_ratio_of_ratios():
    y = np.repeat(np.arange(4), 16)
    persons = seeded(0).normal(size=(4, 5))
    lights = 5 * seeded(1).normal(size=(64, 5)) * [1, 1, 1, 0, 0]
    X = persons[y] + lights + 0.1 * seeded(2).normal(size=(64, 5))
    found = by_method(retrieval.figure_5(dataset(X, y), 0.5, 5, seeded(3)))
    before, after = (found[m]["within_over_between"] for m in ("PCA", "RCA"))
    assert before == pytest.approx(within_over_between(X, y))
    assert found["RCA"]["remaining"] == pytest.approx(after / before)
    assert after < 0.1 * before
    # the same teachers, simulated here
    must_link = taught(y, 0.5, seeded(3)).must_link
    Y = RCA(5).fit(X, must_link=must_link).transform(X)
    assert after == pytest.approx(within_over_between(Y, y))


@pytest.mark.parametrize("n_dims", [D, 30])
def test_rca_beside_xing_in_all_dimensions_or_fewer(faces, n_dims):
    found = by_method(retrieval.figure_7(faces, n_dims, seeded(0)))
    assert found.keys() == {"original", "RCA", "Xing"}
    assert mean(found["RCA"]) > mean(found["original"]) - 0.05
    assert (found["original"] == purity(faces.X, faces.y)) == (n_dims == D)


def test_chunklets_of_one_size_and_their_bound(faces):
    found = by_method(retrieval.figure_8(faces, 3, seeded(0)))
    # [barhillel2005, eq. 12]
    assert found["bound"] == {"variance_ratio": 1.5}
    n_chunklets = round(0.3 * N_CLASSES * N_A_CLASS) // 3
    exact = found["exact"]["variance_ratio"]
    assert exact == pytest.approx(variance_ratio(3, n_chunklets), rel=0.02)
    assert 0 < found["RCA"]["error"] < 1 - purity(faces.X, faces.y)["purity_63"]


def test_chunklets_leave_out_single_points_only(faces):
    """[barhillel2005, footnote 7]: what remains makes a smaller chunklet."""
    drawn = seeded(1).permutation(len(faces.y))[:150]
    chunklets = retrieval.cut(faces.y, drawn, 4)
    used = np.flatnonzero(chunklets >= 0)
    assert set(used) <= set(drawn)
    assert set(np.bincount(chunklets[used])) == {2, 3, 4}
    counts = np.bincount(faces.y[drawn], minlength=N_CLASSES)
    assert len(drawn) - len(used) == np.sum(counts % 4 == 1)
    # No chunklet has points of two classes.
    assert len(set(zip(chunklets[used], faces.y[used], strict=True))) == chunklets.max() + 1
