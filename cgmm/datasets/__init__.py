"""Data sets of the book: toy problems, tables of scikit-learn, and tables to be downloaded.

The papers show figures of their data without listing the numbers. The toy problems are therefore
our own, but built so that *the paper's statements about its figure* are true: which partition
maximises the likelihood, which classifier can succeed, or where EM ends from a given start. Tests
check these statements. All chapters use these data.
"""

from cgmm.datasets.catalogue import DATASETS, load
from cgmm.datasets.dataset import Dataset
from cgmm.datasets.tables import FETCHED, breast_cancer, digits, fetch, iris, wine
from cgmm.datasets.toys import (
    lu_set_1, lu_set_2, lu_set_3, overlapping_classes, shared_axis, three_classes, two_clusters,
    two_models, vertical_classes, waveform,
)  # fmt: skip

__all__ = [
    "DATASETS", "FETCHED", "Dataset", "breast_cancer", "digits", "fetch", "iris", "load",
    "lu_set_1", "lu_set_2", "lu_set_3", "overlapping_classes", "shared_axis", "three_classes",
    "two_clusters", "two_models", "vertical_classes", "waveform", "wine",
]  # fmt: skip
