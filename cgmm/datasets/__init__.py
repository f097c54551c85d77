"""Data of the book: toy problems built to show what the papers say, bundled and fetched tables."""

from cgmm.datasets.catalogue import DATASETS, load
from cgmm.datasets.dataset import Dataset
from cgmm.datasets.fetched import FETCHED, fetch
from cgmm.datasets.penalised import lu_set_1, lu_set_2, lu_set_3
from cgmm.datasets.real import breast_cancer, digits, iris, wine
from cgmm.datasets.toys import (
    overlapping_classes,
    shared_axis,
    three_classes,
    two_clusters,
    two_models,
    vertical_classes,
    waveform,
)

__all__ = [
    "DATASETS",
    "Dataset",
    "FETCHED",
    "breast_cancer",
    "digits",
    "fetch",
    "iris",
    "load",
    "lu_set_1",
    "lu_set_2",
    "lu_set_3",
    "overlapping_classes",
    "shared_axis",
    "three_classes",
    "two_clusters",
    "two_models",
    "vertical_classes",
    "waveform",
    "wine",
]
