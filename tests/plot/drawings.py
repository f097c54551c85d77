"""Mixtures to draw, and functions that read shapes from the axes afterwards."""

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


def draw_points(n: int = 30) -> np.ndarray:
    """Draw n points in the plane."""
    return np.random.default_rng(1).normal(0, 2, (n, 2))


def mahalanobis(x: np.ndarray, parameters: Parameters, k: int = 0) -> np.ndarray:
    """Return the Mahalanobis distances of points from component k."""
    difference = x - parameters.means[k]
    precision = np.linalg.inv(parameters.covariances[k])
    return np.sqrt((difference @ precision * difference).sum(axis=1))


def outline_points(patch) -> np.ndarray:
    """Return points on the outline of an ellipse, in coordinates of the data.

    The outline is a Bézier curve, on which every third of its control points lies.
    """
    control_points = patch.get_patch_transform().transform(patch.get_path().vertices)
    return control_points[:-1:3] if len(control_points) % 3 == 2 else control_points[::3]


def vertices(collection) -> np.ndarray:
    """Return the vertices of all paths of a collection."""
    return np.concatenate([path.vertices for path in collection.get_paths() if len(path.vertices)])


def contour_lines(ax) -> list:
    """Return the collections of contour lines in a figure."""
    return [c for c in ax.collections if hasattr(c, "levels") and not c.filled]


def filled_areas(ax) -> list:
    """Return the collections of filled contours in a figure."""
    return [c for c in ax.collections if hasattr(c, "levels") and c.filled]
