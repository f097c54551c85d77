"""Points in the plane, coloured by their classes or by their responsibilities.

All chapters draw their points with ``scatter``.

====  ======================================================================
N, K  number of points x_i and of components
k     a component or class, counted from 0; -1 stands for the unlabelled
r_ik  responsibility of component k for point i
====  ======================================================================
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from cgmm.numerics import FloatArray, IntArray, check_labels
from cgmm.plot.arguments import check_points, check_responsibilities
from cgmm.plot.axes import axes_or_new, equal_scales, label
from cgmm.plot.looks import BACKGROUND, NEUTRAL, blend, colour, marker

# Points without a label are hollow. Points with a label are filled, and a light edge separates them
# from their neighbours.
HOLLOW: dict[str, Any] = {
    "facecolors": "none",
    "edgecolors": NEUTRAL,
    "linewidths": 0.9,
    "zorder": 2,
}
OUTLINED: dict[str, Any] = {"edgecolors": BACKGROUND, "linewidths": 0.5, "zorder": 2.1}


def scatter(
    X: FloatArray,
    labels: IntArray | None = None,
    responsibilities: FloatArray | None = None,
    ax: Axes | None = None,
    *,
    names: Sequence[str] = (),
    size: float | None = None,
) -> Axes:
    """Draw points in the plane, coloured and marked by their class or by their responsibilities.

    Parameters
    ----------
    X : (N, 2) array
        The points.
    labels : (N,) int array, optional
        The class of each point; -1 (unlabelled) is a small hollow circle. Without labels, all are.
    responsibilities : (N, K) array, optional
        r_ik. The colour is the mean of the components' colours under r_ik, and the marker is that
        of the most probable component.
    ax : Axes, optional
        Where to draw; a new figure by default.
    names : sequence of str, default=()
        Name of each class, written beside its points.
    size : float, optional
        Area of a marker in pt²; by default smaller for more points.

    Returns
    -------
    Axes
        With equal scales in both directions.

    Raises
    ------
    ValueError
        If a shape does not fit, a value is not finite, or both kinds of colour are given.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 1.0]])
    >>> ax = scatter(X, labels=np.array([0, -1, 1]))
    >>> len(ax.collections)
    3
    """
    X = check_points(X)
    if labels is not None and responsibilities is not None:
        raise ValueError("labels and responsibilities both say how to colour the points: give one")
    ax = axes_or_new(ax)
    size = float(np.clip(6000 / len(X), 18, 42)) if size is None else size
    for k, members, faces in _groups(len(X), labels, responsibilities):
        x, y = X[members].T
        if k < 0:
            ax.scatter(x, y, s=0.6 * size, **HOLLOW)
        else:
            ax.scatter(x, y, s=size, marker=marker(k), facecolors=faces, **OUTLINED)
        if 0 <= k < len(names):
            label(ax, names[k], (x.mean(), y.max()), k, offset=(0, 8))
    return equal_scales(ax)


def _groups(
    n_samples: int, labels: ArrayLike | None, responsibilities: ArrayLike | None
) -> Iterator[tuple[int, IntArray, Any]]:
    """Yield component, indices and face colours of the points with each marker."""
    faces = None
    if responsibilities is not None:
        r = check_responsibilities(responsibilities, n_samples)
        faces, labels = blend(r), r.argmax(axis=1)
    labels = np.full(n_samples, -1) if labels is None else check_labels("labels", labels, n_samples)
    for k in np.unique(labels):
        members = np.flatnonzero(labels == k)
        yield int(k), members, colour(k) if faces is None else faces[members]
