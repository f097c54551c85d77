"""Drawings for the tests of plots, and functions that read the axes afterwards."""

import numpy as np

from cgmm.mixture import Parameters

TILTED = np.array([[2.0, 0.9], [0.9, 0.8]])
ONE = Parameters(np.ones(1), np.array([[1.0, -2.0]]), TILTED[None])
TWO = Parameters(
    np.array([0.3, 0.7]),
    np.array([[-2.0, 0.0], [2.0, 1.0]]),
    np.array([TILTED, [[0.5, -0.2], [-0.2, 1.0]]]),
)
THREE = Parameters(
    np.array([0.3, 0.3, 0.4]),
    np.array([[-2.0, 0.0], [2.0, 0.0], [0.0, 3.0]]),
    np.repeat(np.eye(2)[None], 3, axis=0),
)


def points(n: int = 30) -> np.ndarray:
    return np.random.default_rng(1).normal(0, 2, (n, 2))


def mahalanobis(x: np.ndarray, parameters: Parameters, k: int = 0) -> np.ndarray:
    apart = x - parameters.means[k]
    return np.sqrt((apart @ np.linalg.inv(parameters.covariances[k]) * apart).sum(axis=1))


def vertices(collection) -> np.ndarray:
    return np.concatenate([path.vertices for path in collection.get_paths() if len(path.vertices)])


def contour_lines(ax) -> list:
    return [c for c in ax.collections if hasattr(c, "levels") and not c.filled]


def filled_areas(ax) -> list:
    return [c for c in ax.collections if hasattr(c, "levels") and c.filled]
