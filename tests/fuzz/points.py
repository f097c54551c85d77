"""Draw random points in groups, sometimes with difficult values or in an unusual container.

Difficult values are, for example, equal points, extreme sizes, or NaN.

=====  ==================================================================
N, D   numbers of points x_i, which are rows of X, and of dimensions
z_i    group that point i was drawn from
=====  ==================================================================
"""

from collections.abc import Callable

import numpy as np
import pandas as pd
import polars as pl

Rng = np.random.Generator


def one_of(rng: Rng, options):
    """Return a random element of options as a Python object, not as a NumPy scalar."""
    options = list(options)
    return options[rng.integers(len(options))]


def make_random_cell_writer(value: float) -> Callable:
    """Return a function that writes the value into a random cell of an array."""

    def write(rng: Rng, array: np.ndarray) -> np.ndarray:
        if array.size:
            array.flat[rng.integers(array.size)] = value
        return array

    return write


def draw_sizes(rng: Rng) -> tuple[int, int, int]:
    """Draw numbers of points, dimensions and groups: usually small, sometimes extreme."""
    n_groups = int(rng.integers(1, 6))
    n_points = int(rng.integers(2 * n_groups, 26))
    kind = rng.random()
    if kind < 0.015:
        n_points = 1
    elif kind < 0.05:
        n_points = int(rng.integers(1, n_groups + 1))
    elif kind < 0.1:
        n_points = int(rng.integers(100, 300))
    n_dims = int(rng.integers(1, 5)) if rng.random() < 0.93 else int(rng.integers(5, 40))
    return n_points, n_dims, n_groups


def draw_points(rng: Rng) -> tuple[np.ndarray, np.ndarray]:
    """Draw points X (N, D) or a table of them, and their groups z (N,)."""
    n_points, n_dims, n_groups = draw_sizes(rng)
    z = rng.integers(n_groups, size=n_points)
    centres = rng.normal(size=(n_groups, n_dims)) * one_of(rng, [0.0, 1.0, 5.0, 50.0])
    X = centres[z] + rng.normal(size=(n_points, n_dims))
    if rng.random() < 0.45:
        X = TROUBLES[one_of(rng, TROUBLES)](rng, X, z)
    if rng.random() < 0.3:
        X = LAYOUTS[one_of(rng, LAYOUTS)](X)
    return X, z


def make_column_constant(rng: Rng, X, z):
    """Make one column constant."""
    X[:, rng.integers(X.shape[1])] = one_of(rng, [0.0, 1.0, 1e8, -1e-3])
    return X


def put_on_line(rng: Rng, X, z):
    """Return points on one line."""
    return X[:, :1] * rng.normal(size=X.shape[1]) + rng.normal(size=X.shape[1])


def put_group_on_line(rng: Rng, X, z):
    """Let the points of one group vary in the first column only."""
    X[z == z[0], 1:] = 1.0
    return X


def move_point_far_away(rng: Rng, X, z):
    """Multiply one point by a large number."""
    X[rng.integers(len(X))] *= one_of(rng, [1e6, 1e15, 1e100, 1e153])
    return X


def empty_random_cells(rng: Rng, X, z):
    """Replace random cells by NaN."""
    return np.where(rng.random(X.shape) < one_of(rng, [0.02, 0.1, 0.3]), np.nan, X)


def write_nonfinite_value(rng: Rng, X, z):
    """Replace one cell by NaN or infinity."""
    return make_random_cell_writer(one_of(rng, [np.nan, np.inf, -np.inf]))(rng, X)


TROUBLES: dict[str, Callable] = {
    "few distinct": lambda rng, X, z: X[rng.integers(min(3, len(X)), size=len(X))],
    "all equal": lambda rng, X, z: np.repeat(X[:1], len(X), axis=0),
    "pairs of equals": lambda rng, X, z: X[np.arange(len(X)) // 2],
    "integers": lambda rng, X, z: np.round(X),
    "constant column": make_column_constant,
    "collinear": put_on_line,
    "a group on a line": put_group_on_line,
    "almost collinear": lambda rng, X, z: put_on_line(rng, X, z) + 1e-9 * rng.normal(size=X.shape),
    "heavy tails": lambda rng, X, z: X + rng.standard_cauchy(X.shape) ** 3,
    "wild units": lambda rng, X, z: X * 10.0 ** rng.integers(-12, 13, size=X.shape[1]),
    "one far point": move_point_far_away,
    "offset": lambda rng, X, z: X + one_of(rng, [1e4, -1e8, 1e12, 1e16]),
    "large": lambda rng, X, z: X * one_of(rng, [1e50, 1e140, 1e150]),
    "small": lambda rng, X, z: X * one_of(rng, [1e-50, 1e-140, 1e-150]),
    "enormous": lambda rng, X, z: X * one_of(rng, [1e160, 1e200, 1e300]),
    "vanishing": lambda rng, X, z: X * one_of(rng, [1e-160, 1e-200, 1e-310]),
    "empty cells": empty_random_cells,
    "not finite": write_nonfinite_value,
    "no points": lambda rng, X, z: X[:0],
    "no columns": lambda rng, X, z: X[:, :0],
}


def make_read_only(X: np.ndarray) -> np.ndarray:
    """Return the array after making it read-only."""
    X.setflags(write=False)
    return X


def to_float32(X: np.ndarray) -> np.ndarray:
    """Convert to single precision, in which large numbers become infinite."""
    with np.errstate(over="ignore"):
        return X.astype(np.float32)


def name_columns(X: np.ndarray) -> dict[str, np.ndarray]:
    """Return the columns by name, as constructors of tables expect them."""
    return {f"x{d}": column for d, column in enumerate(X.T)}


LAYOUTS: dict[str, Callable] = {
    "float32": to_float32,
    "big-endian": lambda X: X.astype(">f8"),
    "Fortran": np.asfortranarray,
    "read-only": make_read_only,
    "every other row of a larger array": lambda X: np.repeat(X, 2, axis=0)[::2],
    "columns of a wider table": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "reversed": lambda X: X[::-1].copy()[::-1],
    "lists": lambda X: X.tolist(),
    # scikit-learn refuses tables without columns with an unclear message of numpy.
    "pandas": lambda X: pd.DataFrame(name_columns(X)) if X.shape[1] else X,
    "polars": lambda X: pl.DataFrame(name_columns(X)) if X.shape[1] else X,
}
