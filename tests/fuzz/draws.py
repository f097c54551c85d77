"""Random choices that all parts of a problem are made with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Rng = np.random.Generator


def one_of(rng: Rng, options):
    """A plain Python object, not numpy's idea of it."""
    options = list(options)
    return options[rng.integers(len(options))]


def put(value: float) -> Callable:
    """Write the value into a random cell."""

    def spoil(rng: Rng, array: np.ndarray) -> np.ndarray:
        if array.size:
            array.flat[rng.integers(array.size)] = value
        return array

    return spoil
