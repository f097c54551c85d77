"""Real tables that scikit-learn contains.

Chapters throughout the book use them. Each table names its record in the UCI Machine Learning
Repository, which gives the authors, the measurements and the licence.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from cgmm.datasets.dataset import UCI, Dataset


def iris() -> Dataset:
    """Return Fisher's irises: 150 flowers of three species, four lengths in cm.

    Returns
    -------
    Dataset
        50 flowers per species. The values are those of Fisher's paper; UCI's copy differs in two.

    Examples
    --------
    >>> iris()
    Dataset('iris': 150 points, 4 features, 3 classes)
    """
    return _build_dataset(
        load_iris(),
        "iris",
        "Irises",
        "R. A. Fisher (1936), The use of multiple measurements in taxonomic problems",
        "C56C76",
    )


def wine() -> Dataset:
    """Return analyses of 178 wines of three cultivars, 13 features of very different scales.

    Returns
    -------
    Dataset
        59, 71 and 48 wines of the three cultivars.

    Examples
    --------
    >>> wine()
    Dataset('wine': 178 points, 13 features, 3 classes)
    """
    return _build_dataset(
        load_wine(), "wine", "Wines", "S. Aeberhard and M. Forina (1992), Wine", "C5PC7J"
    )


def breast_cancer() -> Dataset:
    """Return 30 features of cell nuclei in 569 breast samples, malignant (0) or benign (1).

    Returns
    -------
    Dataset
        212 malignant and 357 benign samples.

    Examples
    --------
    >>> breast_cancer()
    Dataset('breast_cancer': 569 points, 30 features, 2 classes)
    """
    return _build_dataset(
        load_breast_cancer(),
        "breast_cancer",
        "Breast cancer, Wisconsin (diagnostic)",
        "W. Wolberg, O. Mangasarian, N. Street and W. Street (1993), "
        "Breast Cancer Wisconsin (Diagnostic)",
        "C5DW2B",
    )


def digits() -> Dataset:
    """Return handwritten digits: 1797 images of 8 x 8 pixels, grey levels 0 to 16.

    Returns
    -------
    Dataset
        The test part of the original collection. Some border pixels are blank in every image, so a
        full covariance of the 64 features is singular.

    Examples
    --------
    >>> digits()
    Dataset('digits': 1797 points, 64 features, 10 classes)
    """
    return _build_dataset(
        load_digits(),
        "digits",
        "Handwritten digits",
        "E. Alpaydin and C. Kaynak (1998), Optical Recognition of Handwritten Digits",
        "C50P49",
    )


def _build_dataset(bunch: Any, name: str, title: str, source: str, record: str) -> Dataset:
    """Build a Dataset from the result of one of scikit-learn's loaders."""
    return Dataset(
        X=bunch.data.astype(np.float64),
        y=bunch.target.astype(np.int64),
        name=name,
        title=title,
        source=f"{source}; {UCI}{record}; the copy of scikit-learn",
        # The copies in scikit-learn carry no licence of their own; UCI states one for each.
        licence="CC BY 4.0, as the UCI Machine Learning Repository lists it",
        feature_names=tuple(map(str, bunch.feature_names)),
        target_names=tuple(map(str, bunch.target_names)),
    )
