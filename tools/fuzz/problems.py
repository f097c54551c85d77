"""Random problems: data, side information, an estimator and its parameters, all from one seed.

Most are sensible, many are not: points that coincide, columns in wild units, relations that
contradict each other, classes that do not exist. What may come of one is said in ``contract``.

=====  ==================================================================
N, D   points x_i and dimensions; K components or clusters
z_i    the group that point i was drawn from: relations agree with it, or not
=====  ==================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from cgmm import (
    MMC,
    RCA,
    ConstrainedCategoricalMixture,
    ConstrainedGaussianMixture,
    COPKMeans,
    OnlineRCA,
    PCKMeans,
    SemiSupervisedGaussianClassifier,
)
from cgmm.inference import ENGINES
from cgmm.inference.auto import auto
from cgmm.mixture import UPDATES

Rng = np.random.Generator

# Largest tables that exact engines may make in problems of more than a dozen points.
MAX_BYTES = 2**20


class Problem(NamedTuple):
    """One call of ``fit``."""

    seed: int
    estimator: BaseEstimator
    X: Any
    arguments: dict[str, Any]
    """What ``fit`` gets beside X."""
    story: str
    """What was chosen, for a human reader."""


def make(seed: int) -> Problem:
    """The problem of that number; the same on every machine.

    Examples
    --------
    >>> make(7).story == make(7).story
    True
    """
    rng = np.random.default_rng([seed, 9])
    names, makers, shares = zip(*MAKERS, strict=True)
    which = rng.choice(len(names), p=np.array(shares) / sum(shares))
    estimator, X, arguments, story = makers[which](rng)
    return Problem(seed, estimator, X, arguments, f"{names[which]}: {story}")


def _one_of(rng: Rng, options):
    """A plain Python object, not numpy's idea of it."""
    options = list(options)
    return options[rng.integers(len(options))]


# ---------------------------------------------------------------------------- points


class _Sizes(NamedTuple):
    n_points: int
    n_dims: int
    n_groups: int


def _sizes(rng: Rng) -> _Sizes:
    """Small as a rule, absurd at times."""
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
    return _Sizes(n_points, n_dims, n_groups)


def _points(rng: Rng) -> tuple[np.ndarray, np.ndarray, str]:
    """X (N, D), z (N,), and what was done to the points."""
    n_points, n_dims, n_groups = _sizes(rng)
    z = rng.integers(n_groups, size=n_points)
    centres = rng.normal(size=(n_groups, n_dims)) * _one_of(rng, [0.0, 1.0, 5.0, 50.0])
    X = centres[z] + rng.normal(size=(n_points, n_dims))
    name = "blobs"
    if rng.random() < 0.45:
        name = _one_of(rng, TROUBLES)
        X = TROUBLES[name](rng, X, z)
    layout = "as made"
    if rng.random() < 0.3:
        layout = _one_of(rng, LAYOUTS)
        X = LAYOUTS[layout](X)
    return X, z, f"N={n_points} D={n_dims} groups={n_groups}, {name}, {layout}"


def _few_distinct(rng: Rng, X, z):
    return X[rng.integers(min(3, len(X)), size=len(X))]


def _constant_column(rng: Rng, X, z):
    X[:, rng.integers(X.shape[1])] = _one_of(rng, [0.0, 1.0, 1e8, -1e-3])
    return X


def _collinear(rng: Rng, X, z):
    return X[:, :1] * rng.normal(size=X.shape[1]) + rng.normal(size=X.shape[1])


def _group_on_a_line(rng: Rng, X, z):
    X[z == z[0], 1:] = 1.0
    return X


def _heavy_tails(rng: Rng, X, z):
    return X + rng.standard_cauchy(X.shape) ** 3


def _wild_units(rng: Rng, X, z):
    return X * 10.0 ** rng.integers(-12, 13, size=X.shape[1])


def _one_far_point(rng: Rng, X, z):
    X[rng.integers(len(X))] *= _one_of(rng, [1e6, 1e15, 1e100, 1e153])
    return X


def _not_finite(rng: Rng, X, z):
    X[rng.integers(len(X)), rng.integers(X.shape[1])] = _one_of(rng, [np.nan, np.inf, -np.inf])
    return X


TROUBLES: dict[str, Callable] = {
    "few distinct": _few_distinct,
    "all equal": lambda rng, X, z: np.repeat(X[:1], len(X), axis=0),
    "pairs of equals": lambda rng, X, z: X[np.arange(len(X)) // 2],
    "integers": lambda rng, X, z: np.round(X),
    "constant column": _constant_column,
    "collinear": _collinear,
    "a group on a line": _group_on_a_line,
    "almost collinear": lambda rng, X, z: _collinear(rng, X, z) + 1e-9 * rng.normal(size=X.shape),
    "heavy tails": _heavy_tails,
    "wild units": _wild_units,
    "one far point": _one_far_point,
    "offset": lambda rng, X, z: X + _one_of(rng, [1e4, -1e8, 1e12, 1e16]),
    "large": lambda rng, X, z: X * _one_of(rng, [1e50, 1e140, 1e150]),
    "small": lambda rng, X, z: X * _one_of(rng, [1e-50, 1e-140, 1e-150]),
    "enormous": lambda rng, X, z: X * _one_of(rng, [1e160, 1e200, 1e300]),
    "vanishing": lambda rng, X, z: X * _one_of(rng, [1e-160, 1e-200, 1e-310]),
    "not finite": _not_finite,
    "no points": lambda rng, X, z: X[:0],
    "no columns": lambda rng, X, z: X[:, :0],
}


def _read_only(X: np.ndarray) -> np.ndarray:
    X.setflags(write=False)
    return X


def _as_float32(X: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return X.astype(np.float32)


LAYOUTS: dict[str, Callable] = {
    "float32": _as_float32,
    "Fortran": np.asfortranarray,
    "read-only": _read_only,
    "every other row of a larger array": lambda X: np.repeat(X, 2, axis=0)[::2],
    "reversed": lambda X: X[::-1].copy()[::-1],
    "lists": lambda X: X.tolist(),
}


# ---------------------------------------------------------------------------- relations


def _links(rng: Rng, z: np.ndarray) -> tuple[np.ndarray, np.ndarray, str]:
    """Must-links, cannot-links, and their story."""
    name = _one_of(rng, STRUCTURES)
    pairs = STRUCTURES[name](rng, len(z))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    together = z[pairs[:, 0]] == z[pairs[:, 1]]
    lie = _one_of(rng, [0.0] * 6 + [0.1, 0.5])
    together ^= rng.random(len(pairs)) < lie
    keep = _one_of(rng, ["both", "both", "must", "cannot"])
    must = pairs[together] if keep != "cannot" else pairs[:0]
    cannot = pairs[~together] if keep != "must" else pairs[:0]
    return must, cannot, f"{name} ({keep}), {lie:.0%} lies"


def _some_pairs(rng: Rng, n: int, share: float) -> np.ndarray:
    return rng.integers(n, size=(int(rng.integers(1, 2 + int(share * n))), 2))


def _path(rng: Rng, n: int) -> np.ndarray:
    order = rng.permutation(n)
    return np.column_stack([order[:-1], order[1:]])


def _star(rng: Rng, n: int) -> np.ndarray:
    return np.column_stack([np.full(n, rng.integers(n)), np.arange(n)])


def _clique(rng: Rng, n: int) -> np.ndarray:
    members = rng.permutation(n)[: rng.integers(2, 8)]
    return members[np.column_stack(np.triu_indices(len(members), 1))]


def _cliques(rng: Rng, n: int) -> np.ndarray:
    """Teachers: each relates all points of its own small batch."""
    batches = np.array_split(rng.permutation(n), max(1, n // 4))
    return np.concatenate([b[np.column_stack(np.triu_indices(len(b), 1))] for b in batches])


def _grid(rng: Rng, n: int) -> np.ndarray:
    width = max(1, int(np.sqrt(n)))
    cells = np.arange(n)
    right = cells[(cells % width < width - 1) & (cells + 1 < n)]
    down = cells[cells + width < n]
    return np.concatenate(
        [np.column_stack([right, right + 1]), np.column_stack([down, down + width])]
    )


def _disjoint(rng: Rng, n: int) -> np.ndarray:
    return rng.permutation(n)[: n - n % 2].reshape(-1, 2)


STRUCTURES: dict[str, Callable] = {
    "nothing": lambda rng, n: np.empty((0, 2), dtype=int),
    "a few pairs": lambda rng, n: _some_pairs(rng, n, 0.2),
    "pairs": lambda rng, n: _some_pairs(rng, n, 0.7),
    "many pairs": lambda rng, n: _some_pairs(rng, min(n, 25), 3.0),
    "all pairs": lambda rng, n: np.column_stack(np.triu_indices(min(n, 40), 1)),
    "a pair many times": lambda rng, n: np.repeat(rng.integers(n, size=(1, 2)), 5, axis=0),
    "disjoint pairs": _disjoint,
    "a path": _path,
    "a star": _star,
    "a clique": _clique,
    "cliques": _cliques,
    "a grid": _grid,
}


def _preferences(rng: Rng, z: np.ndarray) -> np.ndarray:
    """Rows i, j, log-odds: faint, strong, or absurd."""
    pairs = _some_pairs(rng, len(z), 0.8)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    sizes = _one_of(rng, [[0.0, 0.1], [1.0, 3.0], [30.0, 700.0], [1e5, 1e9, 1e300], [1.0, np.inf]])
    odds = rng.choice(sizes, len(pairs)) * np.where(z[pairs[:, 0]] == z[pairs[:, 1]], 1.0, -1.0)
    odds *= np.where(rng.random(len(pairs)) < 0.1, -1, 1)
    return np.column_stack([pairs, odds])


def _labels(rng: Rng, z: np.ndarray, n_components: int) -> np.ndarray:
    """Classes of some points: those of z, other names for them, or none that exists."""
    known = rng.random(len(z)) < _one_of(rng, [0.0, 0.2, 0.5, 1.0])
    classes = _one_of(rng, [z % n_components] * 4 + [rng.integers(n_components, size=len(z)), z])
    return np.where(known, classes, -1)


def _mask(rng: Rng, z: np.ndarray, n_components: int) -> np.ndarray:
    """Classes still allowed."""
    allowed = rng.random((len(z), n_components)) < _one_of(rng, [0.5, 0.8, 1.0])
    if rng.random() < 0.9:
        allowed[np.arange(len(z)), z % n_components] = True
    return allowed


def _side(rng: Rng, z: np.ndarray, n_components: int, *, accepts) -> tuple[dict[str, Any], str]:
    """Arguments of fit, as far as the estimator accepts them."""
    must, cannot, story = _links(rng, z)
    arguments: dict[str, Any] = {"must_link": must, "cannot_link": cannot}
    if rng.random() < 0.3:
        arguments["preferences"] = _preferences(rng, z)
    if rng.random() < 0.35:
        make_labels = _one_of(rng, [_labels, _mask])
        arguments["labels"] = make_labels(rng, z, n_components)
    arguments = {name: value for name, value in arguments.items() if name in accepts}
    if rng.random() < 0.1 and arguments:
        name, spoilt = _one_of(rng, arguments), _one_of(rng, SPOILERS)
        arguments[name] = SPOILERS[spoilt](rng, np.asarray(arguments[name], dtype=float))
        story += f", {name} {spoilt}"
    if rng.random() < 0.2:
        arguments = {name: value.tolist() for name, value in arguments.items()}
    return arguments, f"{story}, {'+'.join(arguments)}"


def _put(value: float) -> Callable:
    """Write the value into a random cell."""

    def spoil(rng: Rng, array: np.ndarray) -> np.ndarray:
        if array.size:
            array.flat[rng.integers(array.size)] = value
        return array

    return spoil


SPOILERS: dict[str, Callable] = {
    "as floats": lambda rng, array: array,
    "with a huge index": _put(10**6),
    "with -1": _put(-1),
    "with -5": _put(-5),
    "with a half": _put(0.5),
    "with NaN": _put(np.nan),
    "with infinity": _put(np.inf),
    "with 1e300": _put(1e300),
    "flattened": lambda rng, array: array.ravel(),
    "transposed": lambda rng, array: array.T,
    "a row short": lambda rng, array: array[1:],
    "with a column more": lambda rng, array: np.column_stack([array, array]),
    "one number": lambda rng, array: np.array(3.0),
    "twice": lambda rng, array: np.concatenate([array, array]),
}


# ---------------------------------------------------------------------------- estimators


def _n_components(rng: Rng, z: np.ndarray) -> int:
    if rng.random() < 0.8:
        return int(z.max()) + 1
    return int(rng.integers(1, len(z) + 3) if rng.random() < 0.3 else rng.integers(1, 8))


def _inference(rng: Rng, n_points: int, n_components: int):
    """An engine; where the network may be large, one that refuses early."""
    name = _one_of(rng, ["auto"] * 4 + [*ENGINES, "spanning_tree"])
    few = n_components**n_points <= 4096
    if name == "enumerate" and not few and (n_components**n_points <= 2e6 or rng.random() < 0.8):
        name = "auto"  # within its limits, but slow; or refused, as is seen often enough
    if name in ("auto", "junction_tree") and n_points > 12:
        return partial(_one_of(rng, [auto, ENGINES["junction_tree"]]), max_bytes=MAX_BYTES)
    return name


def _weights(rng: Rng, n_components: int) -> str:
    """An update; no grid of 156,849 points, which is legal and takes minutes."""
    name = _one_of(rng, ["exact", "exact", *UPDATES])
    return "exact" if name == "grid" and n_components == 4 else name


def _mixture_options(rng: Rng, n_points: int, n_components: int) -> dict[str, Any]:
    """What both families of mixtures take."""
    return {
        "n_components": n_components,
        "sampling": _one_of(rng, ["points", "chunklets"]),
        "inference": _inference(rng, n_points, n_components),
        "weights": _weights(rng, n_components),
        "tol": _one_of(rng, [1e-3, 1e-3, 0.0, 1e-8]),
        "max_iter": _one_of(rng, [1, 5, 30]),
        "n_init": _one_of(rng, [1, 1, 1, 2]),
        "random_state": int(rng.integers(100)),
    }


def _gaussian(rng: Rng):
    X, z, story = _points(rng)
    K = _n_components(rng, z)
    options = _mixture_options(rng, len(z), K) | {
        "covariance_type": _one_of(rng, ["full", "tied", "diag", "spherical"]),
        "reg_covar": _one_of(rng, [1e-6] * 6 + [0.0] * 4 + [1e-2, 1e3]) * _unit(rng, X),
        "init_params": _one_of(
            rng, ["auto"] * 8 + ["k-means++", "random", "random_from_data", "labels", "chunklets"]
        ),
    }
    if rng.random() < 0.15 and np.ndim(X) == 2:
        options |= _given_start(rng, np.asarray(X, dtype=float), K)
    arguments, told = _side(rng, z, K, accepts=EVERYTHING)
    return ConstrainedGaussianMixture(**options), X, arguments, f"{story}; {told}"


def _unit(rng: Rng, X) -> float:
    """The squared range of the points, the unit of reg_covar; at times one, as for a default."""
    if rng.random() < 0.2 or np.size(X) == 0:
        return 1.0
    with np.errstate(all="ignore"):
        unit = float(np.square(np.ptp(np.asarray(X, dtype=float))))
    return unit if 0 < unit < np.inf else 1.0


def _given_start(rng: Rng, X: np.ndarray, K: int) -> dict[str, Any]:
    """Some part of the start, sometimes impossible."""
    D = X.shape[1]
    size = _one_of(rng, [0.0, 1.0, 1e5])
    start = {
        "weights_init": _one_of(rng, [np.full(K, 1 / K), np.eye(K)[0], np.ones(K + 1)]),
        "means_init": rng.normal(size=(K, D)) * size,
        "covariances_init": _one_of(rng, [np.tile(np.eye(D), (K, 1, 1)), np.zeros((K, D, D))]),
        "init_params": rng.dirichlet(np.ones(K), len(X)) * _one_of(rng, [1, 1, 2]),
    }
    return {name: value for name, value in start.items() if rng.random() < 0.5}


def _categorical(rng: Rng):
    n_points, n_dims, n_groups = _sizes(rng)
    z = rng.integers(n_groups, size=n_points)
    sizes = rng.integers(1, 5, size=n_dims)
    X = np.where(rng.random((n_points, n_dims)) < 0.5, z[:, None], rng.integers(9, size=n_dims))
    X, story = X % sizes, f"N={n_points} D={n_dims} groups={n_groups}"
    if rng.random() < 0.15:
        trouble = _one_of(rng, [-1, 0.5, np.nan, np.inf, 50, 1e7, 1e12, 1e300])
        X = _put(trouble)(rng, X.astype(float))
        story += f", X with {trouble}"
    K = _n_components(rng, z)
    options = _mixture_options(rng, n_points, K) | {
        "pseudo_count": _one_of(rng, [1.0, 1.0, 0.0, 0.0, 1e-300, 1e300]),
        "init_params": _one_of(rng, ["random_from_data", "random"]),
        "n_categories": _one_of(rng, [None] * 6 + [sizes, sizes + 2, sizes[1:], sizes * 0]),
    }
    arguments, told = _side(rng, z, K, accepts=EVERYTHING)
    return ConstrainedCategoricalMixture(**options), X, arguments, f"{story}; {told}"


def _classifier(rng: Rng):
    X, z, story = _points(rng)
    names = _one_of(rng, [np.arange(9), np.array([5, 2, 0, 7, 9, 4]), np.array(list("fedcba"))])
    y = names[z].astype(object)
    y[rng.random(len(z)) < _one_of(rng, [0.0, 0.3, 0.5, 0.8, 1.0])] = -1
    if names.dtype.kind == "i":
        y = y.astype(int)
    K = max(1, len(set(y.tolist()) - {-1}))
    arguments, told = _side(rng, z, K, accepts={"must_link", "cannot_link", "preferences"})
    options = _mixture_options(rng, len(z), K)
    kept = {name: options[name] for name in ("inference", "weights", "tol", "max_iter")}
    estimator = SemiSupervisedGaussianClassifier(
        covariance_type=_one_of(rng, ["full", "tied", "diag", "spherical"]),
        reg_covar=_one_of(rng, [1e-6, 0.0, 1e-2]),
        **kept,
    )
    return estimator, X, arguments | {"y": y}, f"{story}; {told}"


def _k_means(kind, accepts):
    def maker(rng: Rng):
        X, z, story = _points(rng)
        K = _n_components(rng, z)
        options = {
            "n_clusters": K,
            "init": _one_of(rng, ["chunklets", "k-means++", "random"]),
            "n_init": _one_of(rng, [1, 1, 3]),
            "max_iter": _one_of(rng, [1, 5, 300]),
            "tol": _one_of(rng, [1e-4, 0.0]),
            "inference": _one_of(rng, [None, None, partial(auto, max_bytes=MAX_BYTES)]),
            "max_search": _one_of(rng, [10**4, 10**4, 3]),
            "random_state": int(rng.integers(100)),
        }
        if kind is PCKMeans:
            options["w"] = _one_of(rng, [0.0, 1.0, 1e-300, 1e6, 1e300, np.inf])
        arguments, told = _side(rng, z, K, accepts=accepts)
        return kind(**options), X, arguments, f"{story}; {told}"

    return maker


def _chunklets(rng: Rng, z: np.ndarray) -> np.ndarray:
    return np.where(rng.random(len(z)) < _one_of(rng, [0.3, 0.8, 1.0]), z, -1)


def _linear_map(kind, accepts):
    def maker(rng: Rng):
        X, z, story = _points(rng)
        arguments, told = _side(rng, z, 3, accepts=accepts)
        if rng.random() < 0.6:
            arguments["y"] = _chunklets(rng, z)
        estimator = kind(**OPTIONS_OF[kind](rng))
        return estimator, X, arguments, f"{story}; {told}"

    return maker


OPTIONS_OF: dict[type, Callable[[Rng], dict[str, Any]]] = {
    RCA: lambda rng: {
        "n_components": _one_of(rng, [None] * 6 + [1, 2, 5]),
        "unbiased": bool(rng.random() < 0.5),
        "alpha": _one_of(rng, [0.5, 1.0, 1e-3]),
        "shrinkage": _one_of(rng, [0.0, 0.0, 0.1, 1.0]),
    },
    OnlineRCA: lambda rng: {
        "schedule": _one_of(rng, ["decreasing", "constant"]),
        "eta": _one_of(rng, [None, None, 1e-3, 1.0, 100.0]),
        "n_epochs": _one_of(rng, [1, 5]),
        "random_state": int(rng.integers(100)),
    },
    MMC: lambda rng: {
        "diagonal": bool(rng.random() < 0.5),
        "tol": _one_of(rng, [1e-6, 0.0, 1e-2]),
        "max_iter": _one_of(rng, [3, 100]),
        "max_cannot_links": _one_of(rng, [None, None, 5]),
        "random_state": int(rng.integers(100)),
    },
}

EVERYTHING = {"must_link", "cannot_link", "preferences", "labels"}
LINKS = {"must_link", "cannot_link"}

# Name, maker, share of all problems.
MAKERS = [
    ("ConstrainedGaussianMixture", _gaussian, 40),
    ("ConstrainedCategoricalMixture", _categorical, 12),
    ("SemiSupervisedGaussianClassifier", _classifier, 10),
    ("COPKMeans", _k_means(COPKMeans, LINKS), 10),
    ("PCKMeans", _k_means(PCKMeans, LINKS | {"preferences"}), 10),
    ("RCA", _linear_map(RCA, {"must_link"}), 8),
    ("OnlineRCA", _linear_map(OnlineRCA, {"must_link"}), 4),
    ("MMC", _linear_map(MMC, LINKS), 6),
]
