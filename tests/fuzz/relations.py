"""Draw random side information that agrees with the groups z, or contradicts them."""

from collections.abc import Callable
from typing import Any

import numpy as np

from .points import Rng, one_of, put


def _links(rng: Rng, z: np.ndarray) -> dict[str, np.ndarray]:
    """Draw must-links and cannot-links, some of them wrong."""
    pairs = STRUCTURES[one_of(rng, STRUCTURES)](rng, len(z))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    together = z[pairs[:, 0]] == z[pairs[:, 1]]
    lie = one_of(rng, [0.0] * 6 + [0.1, 0.5])
    together ^= rng.random(len(pairs)) < lie
    keep = one_of(rng, ["both", "both", "must", "cannot"])
    return {
        "must_link": pairs[together] if keep != "cannot" else pairs[:0],
        "cannot_link": pairs[~together] if keep != "must" else pairs[:0],
    }


def _some_pairs(rng: Rng, n: int, share: float) -> np.ndarray:
    return rng.integers(n, size=(int(rng.integers(1, 2 + int(share * n))), 2))


def _path(rng: Rng, n: int) -> np.ndarray:
    order = rng.permutation(n)
    return np.column_stack([order[:-1], order[1:]])


def _clique(rng: Rng, n: int) -> np.ndarray:
    members = rng.permutation(n)[: rng.integers(2, 8)]
    return members[np.column_stack(np.triu_indices(len(members), 1))]


def _cliques(rng: Rng, n: int) -> np.ndarray:
    """Draw relations from teachers, each of whom relates all points of a small batch."""
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


STRUCTURES: dict[str, Callable] = {
    "nothing": lambda rng, n: np.empty((0, 2), dtype=int),
    "a few pairs": lambda rng, n: _some_pairs(rng, n, 0.2),
    "pairs": lambda rng, n: _some_pairs(rng, n, 0.7),
    "many pairs": lambda rng, n: _some_pairs(rng, min(n, 25), 3.0),
    "all pairs": lambda rng, n: np.column_stack(np.triu_indices(min(n, 40), 1)),
    "a pair many times": lambda rng, n: np.repeat(rng.integers(n, size=(1, 2)), 5, axis=0),
    "disjoint pairs": lambda rng, n: rng.permutation(n)[: n - n % 2].reshape(-1, 2),
    "a path": _path,
    "a star": lambda rng, n: np.column_stack([np.full(n, rng.integers(n)), np.arange(n)]),
    "a clique": _clique,
    "cliques": _cliques,
    "a grid": _grid,
}


def _preferences(rng: Rng, z: np.ndarray) -> np.ndarray:
    """Draw rows i, j, log-odds: faint, strong, or absurd."""
    pairs = _some_pairs(rng, len(z), 0.8)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    sizes = one_of(rng, [[0.0, 0.1], [1.0, 3.0], [30.0, 700.0], [1e5, 1e9, 1e300], [1.0, np.inf]])
    odds = rng.choice(sizes, len(pairs)) * np.where(z[pairs[:, 0]] == z[pairs[:, 1]], 1.0, -1.0)
    odds *= np.where(rng.random(len(pairs)) < 0.1, -1, 1)
    return np.column_stack([pairs, odds])


def _labels(rng: Rng, z: np.ndarray, n_components: int) -> np.ndarray:
    """Draw classes of some points: true, renamed, or out of range."""
    known = rng.random(len(z)) < one_of(rng, [0.0, 0.2, 0.5, 1.0])
    classes = one_of(rng, [z % n_components] * 4 + [rng.integers(n_components, size=len(z)), z])
    return np.where(known, classes, -1)


def _mask(rng: Rng, z: np.ndarray, n_components: int) -> np.ndarray:
    """Draw a mask of allowed classes."""
    allowed = rng.random((len(z), n_components)) < one_of(rng, [0.5, 0.8, 1.0])
    if rng.random() < 0.9:
        allowed[np.arange(len(z)), z % n_components] = True
    return allowed


def draw_side(rng: Rng, z: np.ndarray, n_components: int, *, accepts) -> dict[str, Any]:
    """Draw those arguments of ``fit`` that the estimator accepts."""
    arguments: dict[str, Any] = _links(rng, z)
    if rng.random() < 0.3:
        arguments["preferences"] = _preferences(rng, z)
    if rng.random() < 0.35:
        make_labels = one_of(rng, [_labels, _mask])
        arguments["labels"] = make_labels(rng, z, n_components)
    arguments = {name: value for name, value in arguments.items() if name in accepts}
    if rng.random() < 0.1 and arguments:
        name, spoilt = one_of(rng, arguments), one_of(rng, SPOILERS)
        arguments[name] = SPOILERS[spoilt](rng, np.asarray(arguments[name], dtype=float))
    if rng.random() < 0.2:
        arguments = {name: value.tolist() for name, value in arguments.items()}
    return arguments


SPOILERS: dict[str, Callable] = {
    "as floats": lambda rng, array: array,
    "with a huge index": put(10**6),
    "with -1": put(-1),
    "with -5": put(-5),
    "with a half": put(0.5),
    "with NaN": put(np.nan),
    "with infinity": put(np.inf),
    "with 1e300": put(1e300),
    "flattened": lambda rng, array: array.ravel(),
    "transposed": lambda rng, array: array.T,
    "a row short": lambda rng, array: array[1:],
    "with a column more": lambda rng, array: np.column_stack([array, array]),
    "one number": lambda rng, array: np.array(3.0),
    "twice": lambda rng, array: np.concatenate([array, array]),
}
