"""Points in the plane. All chapters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from cgmm.numerics import FloatArray, IntArray
from cgmm.plot.arrays import check_labels, check_points, check_responsibilities, get_axes
from cgmm.plot.panels import label
from cgmm.plot.style import BACKGROUND, NEUTRAL, blend, colour, marker

# ---------------------------------------------------------------------------- in the plane


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
        The class of each; -1 (unlabelled) is a small hollow circle. Without labels all are.
    responsibilities : (N, K) array, optional
        r_ik. The colour is the components' mean under r_ik, the marker the most probable one's.
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
    ax = get_axes(ax)
    size = np.clip(6000 / len(X), 18, 42) if size is None else size
    marks: dict[str, Any]
    for k, members, faces in _groups(len(X), labels, responsibilities):
        if k < 0:
            marks = {
                "s": 0.6 * size,
                "facecolors": "none",
                "edgecolors": NEUTRAL,
                "linewidths": 0.9,
            }
        else:
            marks = {"s": size, "facecolors": faces, "edgecolors": BACKGROUND, "linewidths": 0.5}
        ax.scatter(*X[members].T, marker=marker(k), zorder=2 + 0.1 * (k >= 0), **marks)
        if k < len(names) and k >= 0:
            place = X[members].mean(axis=0)[0], X[members].max(axis=0)[1]
            label(ax, names[k], place, k, offset=(0, 8))
    return require_plane(ax)


def _groups(
    n_samples: int, labels: ArrayLike | None, responsibilities: ArrayLike | None
) -> Iterator[tuple[int, IntArray, Any]]:
    """The points of one marker at a time: component, indices, face colours."""
    if responsibilities is not None:
        r = check_responsibilities(responsibilities, n_samples)
        faces, labels = blend(r), r.argmax(axis=1)
    else:
        labels = np.full(n_samples, -1) if labels is None else check_labels(labels, n_samples)
        faces = None
    for k in np.unique(labels):
        members = np.flatnonzero(labels == k)
        yield int(k), members, colour(k) if faces is None else faces[members]


def require_plane(ax: Axes) -> Axes:
    """Equal scales, few ticks."""
    ax.set_aspect("equal", adjustable="box")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(5, integer=False, steps=[1, 2, 5, 10]))
    return ax
