"""Checks that all scenarios share."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cgmm.numerics import IntArray

# ---------------------------------------------------------------------------- checks

NAMES = ("must_link", "cannot_link")


def check_classes(y: ArrayLike, name: str = "y") -> IntArray:
    y = np.asarray(y)
    if y.ndim != 1 or y.size == 0 or y.dtype.kind not in "iub":
        raise ValueError(
            f"{name} has shape {y.shape} and type {y.dtype}; it must be one-dimensional, of "
            "integers, and not empty."
        )
    return y


def require_between(value: int, low: int, high: int | None, name: str) -> None:
    if value < low or (high is not None and value > high):
        limits = f"at least {low}" if high is None else f"from {low} to {high}"
        raise ValueError(f"{name} is {value}; it must be {limits}.")


def require_entries(array: IntArray, low: int, high: int | None, name: str) -> None:
    """Check every entry, and name the first one that is out of range by its place."""
    wrong = np.argwhere((array < low) | (False if high is None else array > high))
    if len(wrong):
        place = tuple(wrong[0].tolist())
        require_between(array[place], low, high, f"{name}[{', '.join(map(str, place))}]")
