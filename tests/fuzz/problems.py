"""Draw random problems from a seed: data, side information, and parameters of an estimator.

Most problems are sensible, but some have equal points, columns of very different units, relations
that contradict each other, or classes that do not exist. ``contract`` states what must result.

=====  ==================================================================
N, D   numbers of points x_i and of dimensions; K components or clusters
z_i    group that point i was drawn from, with which most relations agree
=====  ==================================================================
"""

from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
from sklearn.base import BaseEstimator

import cgmm
from cgmm.inference import ENGINES
from cgmm.inference.auto import auto
from cgmm.mixture import UPDATES

from .points import Rng, draw_points, draw_sizes, make_random_cell_writer, one_of
from .relations import draw_relations

# Limit in bytes for tables of exact engines, used if there are more than twelve points.
MAX_BYTES = 2**20


class Problem(NamedTuple):
    """One call of ``fit``."""

    estimator: BaseEstimator
    X: Any
    arguments: dict[str, Any]
    """Arguments of ``fit`` other than X."""


def make_problem(kind: str, seed: int) -> Problem:
    """Return a random problem for an estimator; the same seed gives the same problem.

    Examples
    --------
    >>> str(make_problem("MMC", 7)) == str(make_problem("MMC", 7))
    True
    """
    rng = np.random.default_rng([seed, 9])
    estimator, X, z, K, arguments = MAKERS[kind](rng)
    relations = draw_relations(rng, z, K, accepts=signature(estimator.fit).parameters)
    return Problem(estimator, X, relations | arguments)


# Each ``make_`` function below draws an estimator, X, z, K, and arguments of ``fit`` other than
# relations.


def draw_n_components(rng: Rng, z: np.ndarray) -> int:
    """Draw the number of components: usually that of the groups, sometimes too large."""
    if rng.random() < 0.8:
        return int(z.max()) + 1
    return int(rng.integers(1, len(z) + 3) if rng.random() < 0.3 else rng.integers(1, 8))


def draw_engine(rng: Rng, n_points: int, n_components: int):
    """Draw an engine; for large networks it is limited to small tables, to save time."""
    name = one_of(rng, ["auto"] * 4 + [*ENGINES, "spanning_tree"])
    is_small = n_components**n_points <= 4096
    is_slow = not is_small and n_components**n_points <= 2e6
    if name == "enumerate" and (is_slow or (not is_small and rng.random() < 0.8)):
        name = "auto"  # Enumeration of this size is slow or refused, so it is drawn rarely.
    if name in ("auto", "junction_tree") and n_points > 12:
        return partial(one_of(rng, [auto, ENGINES["junction_tree"]]), max_bytes=MAX_BYTES)
    return name


def draw_weights_update(rng: Rng, n_components: int) -> str:
    """Draw a method of updating weights; for K = 4, the grid would take minutes."""
    name = one_of(rng, ["exact", "exact", *UPDATES])
    return "exact" if name == "grid" and n_components == 4 else name


def draw_mixture_options(rng: Rng, n_points: int, n_components: int) -> dict[str, Any]:
    """Draw options that all families of mixtures have."""
    return {
        "n_components": n_components,
        "sampling": one_of(rng, ["points", "chunklets"]),
        "inference": draw_engine(rng, n_points, n_components),
        "weights": draw_weights_update(rng, n_components),
        "tol": one_of(rng, [1e-3, 1e-3, 0.0, 1e-8]),
        "max_iter": one_of(rng, [1, 5, 30]),
        "n_init": one_of(rng, [1, 1, 1, 2]),
        "random_state": int(rng.integers(100)),
    }


def make_gaussian_mixture(rng: Rng):
    """Draw a problem for ConstrainedGaussianMixture."""
    X, z = draw_points(rng)
    K = draw_n_components(rng, z)
    options = draw_mixture_options(rng, len(z), K) | {
        "covariance_type": one_of(rng, ["full", "tied", "diag", "spherical"]),
        "reg_covar": one_of(rng, [1e-6] * 6 + [0.0] * 4 + [1e-2, 1e3]) * draw_variance_unit(rng, X),
        "init_params": one_of(
            rng, ["auto"] * 8 + ["k-means++", "random", "random_from_data", "labels", "chunklets"]
        ),
    }
    if rng.random() < 0.15 and np.ndim(X) == 2:
        options |= draw_initial_values(rng, np.asarray(X, dtype=float), K)
    return cgmm.ConstrainedGaussianMixture(**options), X, z, K, {}


def draw_variance_unit(rng: Rng, X) -> float:
    """Return the squared range of the points as unit of reg_covar, or sometimes one."""
    if rng.random() < 0.2 or np.size(X) == 0:
        return 1.0
    with np.errstate(all="ignore"):
        unit = float(np.square(np.ptp(np.asarray(X, dtype=float))))
    return unit if 0 < unit < np.inf else 1.0


def draw_initial_values(rng: Rng, X: np.ndarray, K: int) -> dict[str, Any]:
    """Draw some of the arguments that set initial values, which are sometimes invalid."""
    D = X.shape[1]
    size = one_of(rng, [0.0, 1.0, 1e5])
    start = {
        "weights_init": one_of(rng, [np.full(K, 1 / K), np.eye(K)[0], np.ones(K + 1)]),
        "means_init": rng.normal(size=(K, D)) * size,
        "covariances_init": one_of(rng, [np.tile(np.eye(D), (K, 1, 1)), np.zeros((K, D, D))]),
        "init_params": rng.dirichlet(np.ones(K), len(X)) * one_of(rng, [1, 1, 2]),
    }
    return {name: value for name, value in start.items() if rng.random() < 0.5}


def make_categorical_mixture(rng: Rng):
    """Draw a problem for ConstrainedCategoricalMixture; categories depend on the group."""
    n_points, n_dims, n_groups = draw_sizes(rng)
    z = rng.integers(n_groups, size=n_points)
    sizes = rng.integers(1, 5, size=n_dims)
    X = np.where(rng.random((n_points, n_dims)) < 0.5, z[:, None], rng.integers(9, size=n_dims))
    X = X % sizes
    if rng.random() < 0.15:
        trouble = one_of(rng, [-1, 0.5, np.nan, np.inf, 50, 1e7, 1e12, 1e300])
        X = make_random_cell_writer(trouble)(rng, X.astype(float))
    K = draw_n_components(rng, z)
    options = draw_mixture_options(rng, n_points, K) | {
        "pseudo_count": one_of(rng, [1.0, 1.0, 0.0, 0.0, 1e-300, 1e300]),
        "init_params": one_of(rng, ["random_from_data", "random"]),
        "n_categories": one_of(rng, [None] * 6 + [sizes, sizes + 2, sizes[1:], sizes * 0]),
    }
    return cgmm.ConstrainedCategoricalMixture(**options), X, z, K, {}


def make_mixed_mixture(rng: Rng):
    """Draw numbers, categories and empty cells in a list, array or table for MixedMixture."""
    X, z = draw_points(rng)
    numbers = np.asarray(X, dtype=float)
    columns = {f"x{d}": list(column) for d, column in enumerate(numbers.T)}
    for d in range(rng.integers(4)):
        names = one_of(rng, [list("abcdef"), [f"no. {k}" for k in range(6)], [True, False] * 3])
        noisy = np.where(rng.random(len(z)) < 0.7, z, rng.integers(6, size=len(z)))
        columns[f"c{d}"] = [names[code] for code in noisy[: len(numbers)]]
    p_empty = one_of(rng, [0.0, 0.0, 0.1, 0.3])
    columns = {
        name: [None if rng.random() < p_empty else entry for entry in column]
        for name, column in columns.items()
    }
    rows = [list(row) for row in zip(*columns.values(), strict=True)]
    table = one_of(
        rng, [rows, np.array(rows, dtype=object), pd.DataFrame(columns), pl.DataFrame(columns)]
    )
    K = draw_n_components(rng, z)
    options = draw_mixture_options(rng, len(z), K) | {
        "covariance_type": one_of(rng, ["full", "tied", "diag", "spherical"]),
        "categorical_features": one_of(rng, ["from_dtype"] * 6 + [None, [0], [99]]),
        "handle_unknown": one_of(rng, ["error", "missing"]),
        "pseudo_count": one_of(rng, [1.0, 1.0, 0.0, 0.0, 1e-300]),
        "reg_covar": one_of(rng, [1e-6] * 4 + [0.0] * 4 + [1e-2])
        * draw_variance_unit(rng, numbers),
    }
    return cgmm.MixedMixture(**options), table, z, K, {}


def make_classifier(rng: Rng):
    """Draw a problem for SemiSupervisedGaussianClassifier, with names of classes."""
    X, z = draw_points(rng)
    names = one_of(rng, [np.arange(9), np.array([5, 2, 0, 7, 9, 4]), np.array(list("fedcba"))])
    y = names[z].astype(object)
    y[rng.random(len(z)) < one_of(rng, [0.0, 0.3, 0.5, 0.8, 1.0])] = -1
    if names.dtype.kind == "i":
        y = y.astype(int)
    K = max(1, len(set(y.tolist()) - {-1}))
    options = draw_mixture_options(rng, len(z), K)
    kept = {name: options[name] for name in ("inference", "weights", "tol", "max_iter")}
    estimator = cgmm.SemiSupervisedGaussianClassifier(
        covariance_type=one_of(rng, ["full", "tied", "diag", "spherical"]),
        reg_covar=one_of(rng, [1e-6, 0.0, 1e-2]),
        **kept,
    )
    return estimator, X, z, K, {"y": y}


def make_k_means(kind, rng: Rng):
    """Draw a problem for COPKMeans or PCKMeans."""
    X, z = draw_points(rng)
    K = draw_n_components(rng, z)
    options = {
        "n_clusters": K,
        "init": one_of(rng, ["chunklets", "k-means++", "random"]),
        "n_init": one_of(rng, [1, 1, 3]),
        "max_iter": one_of(rng, [1, 5, 300]),
        "tol": one_of(rng, [1e-4, 0.0]),
        "inference": one_of(rng, [None, None, partial(auto, max_bytes=MAX_BYTES)]),
        "max_search": one_of(rng, [10**4, 10**4, 3]),
        "random_state": int(rng.integers(100)),
    }
    if kind is cgmm.PCKMeans:
        options["w"] = one_of(rng, [0.0, 1.0, 1e-300, 1e6, 1e300, np.inf])
    return kind(**options), X, z, K, {}


def make_linear_map(kind, rng: Rng):
    """Draw a problem for RCA, OnlineRCA or MMC."""
    X, z = draw_points(rng)
    arguments = {}
    if rng.random() < 0.6:
        arguments["y"] = np.where(rng.random(len(z)) < one_of(rng, [0.3, 0.8, 1.0]), z, -1)
    return kind(**LINEAR_MAP_OPTIONS[kind](rng)), X, z, 3, arguments


LINEAR_MAP_OPTIONS: dict[type, Callable[[Rng], dict[str, Any]]] = {
    cgmm.RCA: lambda rng: {
        "n_components": one_of(rng, [None] * 6 + [1, 2, 5]),
        "unbiased": bool(rng.random() < 0.5),
        "alpha": one_of(rng, [0.5, 1.0, 1e-3]),
        "shrinkage": one_of(rng, [0.0, 0.0, 0.1, 1.0]),
    },
    cgmm.OnlineRCA: lambda rng: {
        "schedule": one_of(rng, ["decreasing", "constant"]),
        "eta": one_of(rng, [None, None, 1e-3, 1.0, 100.0]),
        "n_epochs": one_of(rng, [1, 5]),
        "random_state": int(rng.integers(100)),
    },
    cgmm.MMC: lambda rng: {
        "diagonal": bool(rng.random() < 0.5),
        "tol": one_of(rng, [1e-6, 0.0, 1e-2]),
        "max_iter": one_of(rng, [3, 100]),
        "max_cannot_links": one_of(rng, [None, None, 5]),
        "random_state": int(rng.integers(100)),
    },
}

MAKERS: dict[str, Callable] = {
    "ConstrainedGaussianMixture": make_gaussian_mixture,
    "ConstrainedCategoricalMixture": make_categorical_mixture,
    "MixedMixture": make_mixed_mixture,
    "SemiSupervisedGaussianClassifier": make_classifier,
    "COPKMeans": partial(make_k_means, cgmm.COPKMeans),
    "PCKMeans": partial(make_k_means, cgmm.PCKMeans),
    "RCA": partial(make_linear_map, cgmm.RCA),
    "OnlineRCA": partial(make_linear_map, cgmm.OnlineRCA),
    "MMC": partial(make_linear_map, cgmm.MMC),
}
