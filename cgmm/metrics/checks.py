"""Checks that all metrics share."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cgmm.numerics import IntArray

# ---------------------------------------------------------------------------- checks


def check_labels(y_true: ArrayLike, y_pred: ArrayLike) -> tuple[IntArray, IntArray]:
    """Both label vectors as arrays, or a ValueError that says what is wrong with which."""
    classes, clusters = check_integers(y_true, "y_true"), check_integers(y_pred, "y_pred")
    if len(classes) != len(clusters):
        raise ValueError(
            f"y_true has {len(classes)} labels and y_pred {len(clusters)}; "
            "give one label of each for every point."
        )
    return classes, clusters


def check_integers(labels: ArrayLike, name: str) -> IntArray:
    labels = np.asarray(labels)
    if labels.ndim != 1 or labels.size == 0:
        raise ValueError(
            f"{name} has shape {labels.shape}; it must be one-dimensional and not empty."
        )
    if labels.dtype.kind not in "iub":
        raise ValueError(
            f"{name} is of type {labels.dtype}; labels must be integers. "
            "np.unique(labels, return_inverse=True)[1] numbers labels of any type."
        )
    return labels


def require_that(count: int, complaint: str) -> None:
    if count == 0:
        raise ValueError(f"{complaint}. Score more points, or use matched_accuracy.")
