"""Data of the book: toy problems, real data that scikit-learn carries, and tables to be fetched.

The papers print figures, not numbers. Each toy problem is therefore built so that *the paper's
statements about its figure* hold: which partition maximises the likelihood, which classifier can
succeed, where EM from a given start ends. Tests check these statements; positions and sizes are
ours. All chapters use these data.
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
