"""Draw random side information, most of which agrees with the groups z of the points."""

from collections.abc import Callable
from typing import Any

import numpy as np

from cgmm.scenarios import grid_neighbours

from .points import Rng, make_random_cell_writer, one_of


def draw_links(rng: Rng, z: np.ndarray) -> dict[str, np.ndarray]:
    """Draw must-links and cannot-links between points, some of them wrong."""
    pairs = STRUCTURES[one_of(rng, STRUCTURES)](rng, len(z))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    together = z[pairs[:, 0]] == z[pairs[:, 1]]
    p_wrong = one_of(rng, [0.0] * 6 + [0.1, 0.5])
    together ^= rng.random(len(pairs)) < p_wrong
    keep = one_of(rng, ["both", "both", "must", "cannot"])
    return {
        "must_link": pairs[together] if keep != "cannot" else pairs[:0],
        "cannot_link": pairs[~together] if keep != "must" else pairs[:0],
    }


def draw_pairs(rng: Rng, n: int, share: float) -> np.ndarray:
    """Draw pairs of n points, at most 1 + share * n of them."""
    return rng.integers(n, size=(int(rng.integers(1, 2 + int(share * n))), 2))


def draw_path(rng: Rng, n: int) -> np.ndarray:
    """Return the pairs along a path through all points in random order."""
    order = rng.permutation(n)
    return np.column_stack([order[:-1], order[1:]])


def draw_clique(rng: Rng, n: int) -> np.ndarray:
    """Return all pairs among at most seven random points."""
    members = rng.permutation(n)[: rng.integers(2, 8)]
    return members[np.column_stack(np.triu_indices(len(members), 1))]


def draw_cliques(rng: Rng, n: int) -> np.ndarray:
    """Return all pairs within each of several random batches, as if from several annotators."""
    batches = np.array_split(rng.permutation(n), max(1, n // 4))
    return np.concatenate([b[np.column_stack(np.triu_indices(len(b), 1))] for b in batches])


def make_grid(rng: Rng, n: int) -> np.ndarray:
    """Return the pairs of neighbours if the first points are the cells of a grid."""
    width = int(np.sqrt(n))
    return grid_neighbours((n // width, width))


STRUCTURES: dict[str, Callable] = {
    "nothing": lambda rng, n: np.empty((0, 2), dtype=int),
    "a few pairs": lambda rng, n: draw_pairs(rng, n, 0.2),
    "pairs": lambda rng, n: draw_pairs(rng, n, 0.7),
    "many pairs": lambda rng, n: draw_pairs(rng, min(n, 25), 3.0),
    "all pairs": lambda rng, n: np.column_stack(np.triu_indices(min(n, 40), 1)),
    "a pair many times": lambda rng, n: np.repeat(rng.integers(n, size=(1, 2)), 5, axis=0),
    "disjoint pairs": lambda rng, n: rng.permutation(n)[: n - n % 2].reshape(-1, 2),
    "a path": draw_path,
    "a star": lambda rng, n: np.column_stack([np.full(n, rng.integers(n)), np.arange(n)]),
    "a clique": draw_clique,
    "cliques": draw_cliques,
    "a grid": make_grid,
}


def draw_preferences(rng: Rng, z: np.ndarray) -> np.ndarray:
    """Draw rows i, j, log-odds: weak, strong, extreme or infinite."""
    pairs = draw_pairs(rng, len(z), 0.8)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    sizes = one_of(rng, [[0.0, 0.1], [1.0, 3.0], [30.0, 700.0], [1e5, 1e9, 1e300], [1.0, np.inf]])
    odds = rng.choice(sizes, len(pairs)) * np.where(z[pairs[:, 0]] == z[pairs[:, 1]], 1.0, -1.0)
    odds *= np.where(rng.random(len(pairs)) < 0.1, -1, 1)
    return np.column_stack([pairs, odds])


def draw_labels(rng: Rng, z: np.ndarray, n_components: int) -> np.ndarray:
    """Draw labels of some points: their groups, random classes, or classes out of range."""
    known = rng.random(len(z)) < one_of(rng, [0.0, 0.2, 0.5, 1.0])
    classes = one_of(rng, [z % n_components] * 4 + [rng.integers(n_components, size=len(z)), z])
    return np.where(known, classes, -1)


def draw_mask(rng: Rng, z: np.ndarray, n_components: int) -> np.ndarray:
    """Draw a mask of allowed classes, which usually allows the group of each point."""
    allowed = rng.random((len(z), n_components)) < one_of(rng, [0.5, 0.8, 1.0])
    if rng.random() < 0.9:
        allowed[np.arange(len(z)), z % n_components] = True
    return allowed


def draw_relations(rng: Rng, z: np.ndarray, n_components: int, *, accepts) -> dict[str, Any]:
    """Draw the relations and labels that an estimator accepts as arguments of ``fit``."""
    arguments: dict[str, Any] = draw_links(rng, z)
    if rng.random() < 0.3:
        arguments["preferences"] = draw_preferences(rng, z)
    if rng.random() < 0.35:
        make_labels = one_of(rng, [draw_labels, draw_mask])
        arguments["labels"] = make_labels(rng, z, n_components)
    arguments = {name: value for name, value in arguments.items() if name in accepts}
    if rng.random() < 0.1 and arguments:
        name, spoiler = one_of(rng, arguments), one_of(rng, SPOILERS)
        arguments[name] = SPOILERS[spoiler](rng, np.asarray(arguments[name], dtype=float))
    if rng.random() < 0.2:
        arguments = {name: value.tolist() for name, value in arguments.items()}
    return arguments


SPOILERS: dict[str, Callable] = {
    "as floats": lambda rng, array: array,
    "with a huge index": make_random_cell_writer(10**6),
    "with -1": make_random_cell_writer(-1),
    "with -5": make_random_cell_writer(-5),
    "with a half": make_random_cell_writer(0.5),
    "with NaN": make_random_cell_writer(np.nan),
    "with infinity": make_random_cell_writer(np.inf),
    "with 1e300": make_random_cell_writer(1e300),
    "flattened": lambda rng, array: array.ravel(),
    "transposed": lambda rng, array: array.T,
    "a row short": lambda rng, array: array[1:],
    "with a column more": lambda rng, array: np.column_stack([array, array]),
    "one number": lambda rng, array: np.array(3.0),
    "twice": lambda rng, array: np.concatenate([array, array]),
}
