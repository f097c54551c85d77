"""The real data are the published ones, and say where they come from."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from cgmm.datasets import DATASETS, load

REAL = [name for name, make in DATASETS.items() if not inspect.signature(make).parameters]


@pytest.mark.parametrize(
    ("name", "class_sizes"),
    [
        ("iris", [50, 50, 50]),
        ("wine", [59, 71, 48]),
        ("breast_cancer", [212, 357]),
        ("digits", [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]),
    ],
)
def test_real_data_have_their_published_class_sizes(name, class_sizes):
    assert np.bincount(load(name).y).tolist() == class_sizes


def test_every_real_data_set_cites_its_record_and_licence():
    assert set(REAL) == {"iris", "wine", "breast_cancer", "digits"}
    for name in REAL:
        data = load(name)
        assert "doi:10.24432/" in data.source
        assert data.licence.startswith("CC BY 4.0")


def test_iris_has_fishers_values_where_the_copy_at_uci_differs():
    X = load("iris").X
    assert X[34].tolist() == [4.9, 3.1, 1.5, 0.2]  # UCI: 4.9, 3.1, 1.5, 0.1
    assert X[37].tolist() == [4.9, 3.6, 1.4, 0.1]  # UCI: 4.9, 3.1, 1.5, 0.1


def test_breast_cancer_counts_malignant_as_zero():
    assert load("breast_cancer").target_names == ("malignant", "benign")


def test_digits_are_grey_levels_with_blank_pixels():
    X = load("digits").X
    assert (X.min(), X.max()) == (0, 16)
    assert (X.std(axis=0) == 0).any()
    assert np.linalg.matrix_rank(np.cov(X.T)) < 64
