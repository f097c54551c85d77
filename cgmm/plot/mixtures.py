"""Draw points and mixtures in the plane: scatter plots, ellipses, densities and boundaries.

All chapters draw their points with ``scatter``, coloured by classes or by responsibilities, and
their mixtures with ``ellipses``, ``density`` and ``boundary``. ``cgmm.plot.fit`` combines these
functions for a fitted model.

========  ==================================================================
N, K      number of points x_i and of components
k         index of a component or class, from 0; -1 means unlabelled
r_ik      responsibility of component k for point i
θ         weights π_k, means μ_k and covariances Σ_k of K components
n, n_std  distance from a mean in standard deviations (Mahalanobis distance)
M         number of points of the grid on which a density is evaluated
========  ==================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Ellipse
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from cgmm.mixture import Parameters, log_joint
from cgmm.numerics import FloatArray, IntArray, check_labels
from cgmm.plot.axes import (
    check_parameters,
    check_points,
    check_responsibilities,
    get_axes,
    get_parameters,
    label,
    list_names,
    set_equal_scales,
    sort_distances,
    unwrap_estimator,
)
from cgmm.plot.style import BACKGROUND, INK, MUTED, NEUTRAL, blend, colour, line_style, marker, tint

# ------------------------------------------------------------ points


# Unlabelled points are hollow. Labelled points are filled, with a light edge that separates
# overlapping points.
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
    """Draw points in the plane, with colours and markers by class or by responsibilities.

    Parameters
    ----------
    X : (N, 2) array
        The points.
    labels : (N,) int array, optional
        The class of each point. Unlabelled points (-1), and all points if ``labels`` is None, are
        small hollow circles.
    responsibilities : (N, K) array, optional
        r_ik. The colour of a point is the mean of the components' colours, weighted by r_ik; its
        marker is that of the most probable component.
    ax : Axes, optional
        Axes to draw on; by default those of a new figure.
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
        If a shape does not fit, a value is not finite, or both labels and responsibilities are
        given.

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
    size = float(np.clip(6000 / len(X), 18, 42)) if size is None else size
    for k, members, faces in _group_by_marker(len(X), labels, responsibilities):
        x, y = X[members].T
        if k < 0:
            ax.scatter(x, y, s=0.6 * size, **HOLLOW)
        else:
            ax.scatter(x, y, s=size, marker=marker(k), facecolors=faces, **OUTLINED)
        if 0 <= k < len(names):
            label(ax, names[k], (x.mean(), y.max()), k, offset=(0, 8))
    return set_equal_scales(ax)


def _group_by_marker(
    n_samples: int, labels: ArrayLike | None, responsibilities: ArrayLike | None
) -> Iterator[tuple[int, IntArray, Any]]:
    """Yield (component, point indices, face colours) for each group of points with one marker."""
    faces = None
    if responsibilities is not None:
        r = check_responsibilities(responsibilities, n_samples)
        faces, labels = blend(r), r.argmax(axis=1)
    labels = np.full(n_samples, -1) if labels is None else check_labels("labels", labels, n_samples)
    for k in np.unique(labels):
        members = np.flatnonzero(labels == k)
        yield int(k), members, colour(k) if faces is None else faces[members]


# ------------------------------------------------------------ mixtures


def ellipses(
    parameters: Parameters | BaseEstimator,
    ax: Axes | None = None,
    n_std: Sequence[float] = (1, 2),
    *,
    names: Sequence[str] | None = None,
    looks: Sequence[int] | IntArray | None = None,
) -> Axes:
    """Draw each component by its mean, and by its ellipses at the given standard deviations.

    Parameters
    ----------
    parameters : Parameters or fitted mixture
        θ in two dimensions.
    ax : Axes, optional
        Axes to draw on; by default those of a new figure.
    n_std : sequence of float, default=(1, 2)
        Mahalanobis distances. The ellipse at n contains the share ``1 - exp(-n²/2)`` of its
        component: 39 % at n = 1, 86 % at n = 2.
    names : sequence of str, optional
        Labels of the components; "component 0", ... by default, ``()`` for none.
    looks : sequence of int, optional
        Class of each component, which determines its colour, marker and line style; by default
        its index.

    Returns
    -------
    Axes
        With equal scales in both directions.

    Raises
    ------
    ValueError
        If a shape does not fit, ``n_std`` is empty or not positive, or a covariance is not positive
        definite.

    Examples
    --------
    >>> theta = Parameters(np.ones(1), np.zeros((1, 2)), np.diag([4.0, 1.0])[None])
    >>> inner, outer = ellipses(theta).patches
    >>> float(outer.width), float(outer.height)
    (8.0, 4.0)
    """
    _, means, covariances = check_parameters(parameters, 2)
    names = list_names(names, len(means))
    n_std = sort_distances(n_std)
    ax = get_axes(ax)
    looks = range(len(means)) if looks is None else [int(k) for k in looks]
    for name, k, mean, covariance in zip(names, looks, means, covariances, strict=True):
        for n in n_std:
            ax.add_patch(_build_ellipse(k, mean, covariance, n, is_thick=n == n_std[0]))
        ax.plot(*mean, marker(k), ms=11, mfc=colour(k), mec=BACKGROUND, mew=2, zorder=4)
        if name:
            up = 1 if mean[1] >= means[:, 1].mean() else -1
            top = mean + up * n_std[-1] * covariance[:, 1] / np.sqrt(covariance[1, 1])
            label(ax, name, top, k, offset=(0, 5 * up))
    ax.autoscale_view()
    return set_equal_scales(ax)


def _build_ellipse(
    k: int, mean: FloatArray, covariance: FloatArray, n: float, *, is_thick: bool
) -> Ellipse:
    """Build the ellipse of component k at Mahalanobis distance n from its mean."""
    # If Σ_k = U diag(λ) Uᵀ, the half axes have the length n √λ, along the columns of U.
    variances, axes = np.linalg.eigh(covariance)
    if not variances[0] > 0:
        raise ValueError(
            f"the covariance of component {k} is not positive definite (smallest eigenvalue "
            f"{variances[0]:.3g}), so it has no ellipse: increase reg_covar in the fit"
        )
    height, width = 2 * n * np.sqrt(variances)
    angle = np.degrees(np.arctan2(axes[1, 1], axes[0, 1]))
    look: dict[str, Any] = {"ls": line_style(k), "lw": 2 if is_thick else 1.4, "zorder": 3}
    centre = cast("tuple[float, float]", mean)
    return Ellipse(centre, width, height, angle=angle, fill=False, edgecolor=colour(k), **look)


def density(
    parameters: Parameters | BaseEstimator,
    ax: Axes | None = None,
    n_std: Sequence[float] = (0.5, 1, 1.5, 2, 2.5, 3),
    *,
    fill: bool = True,
    resolution: int = 200,
) -> Axes:
    """Draw contours of a mixture's density within the current limits of the axes.

    Parameters
    ----------
    parameters : Parameters or fitted mixture
        θ in two dimensions.
    ax : Axes, optional
        Axes to draw on. Draw the points first, because the contours fill the current limits. On
        empty axes the contours extend over 3.5 standard deviations.
    n_std : sequence of float, default=(0.5, 1, 1.5, 2, 2.5, 3)
        For each n, draw the contour on which the density is ``exp(-n²/2)`` times its maximum. For a
        single component this is its ellipse at n standard deviations.
    fill : bool, default=True
        True: tint the areas between the contours.
    resolution : int, default=200
        Number of grid points along each axis.

    Returns
    -------
    Axes
        With equal scales in both directions.

    Raises
    ------
    ValueError
        If a shape does not fit, ``n_std`` is empty or not positive, or a covariance is not positive
        definite.

    Examples
    --------
    >>> theta = Parameters(np.ones(1), np.zeros((1, 2)), np.eye(2)[None])
    >>> len(density(theta, n_std=(1, 2), fill=False).collections[0].get_paths())
    2
    """
    theta = check_parameters(parameters, 2)
    ax = get_axes(ax)
    x, y, grid = _build_grid(ax, theta, resolution)
    values = np.exp(log_joint(grid, theta)).sum(axis=1).reshape(len(y), len(x))
    peak = np.exp(log_joint(theta.means, theta)).sum(axis=1).max()
    peak = max(peak, values.max())
    levels = peak * np.exp(-np.square(sort_distances(n_std)[::-1]) / 2)
    if fill:
        shades = [tint(MUTED, s) for s in np.linspace(0.06, 0.34, len(levels))]
        ax.contourf(x, y, values, [*levels, peak * (1 + 1e-9)], colors=shades, zorder=0.5)
    ax.contour(x, y, values, levels, colors=[tint(MUTED, 0.6)], linewidths=0.9, zorder=0.6)
    return set_equal_scales(ax)


def boundary(
    model: Parameters | BaseEstimator | Callable[[FloatArray], IntArray | FloatArray],
    ax: Axes | None = None,
    *,
    regions: bool = True,
    resolution: int = 300,
) -> Axes:
    """Draw the boundaries between regions in which different components are the most probable.

    Parameters
    ----------
    model : Parameters, fitted model or callable
        θ in two dimensions; or a model that was fitted to two columns; or a function of (M, 2)
        points that returns (M,) classes 0, 1, ..., such as ``predict`` of an estimator, or (M, K)
        scores, such as ``predict_proba``. With scores, the regions are those of the highest score,
        and boundaries are smooth.
    ax : Axes, optional
        Axes to draw on. Draw the points first, because the regions fill the current limits.
    regions : bool, default=True
        True: tint each region with its component's colour.
    resolution : int, default=300
        Number of grid points along each axis.

    Returns
    -------
    Axes
        With equal scales in both directions.

    Raises
    ------
    ValueError
        If there are fewer than two components, or the model is a function and the axes are empty.

    Examples
    --------
    >>> means = np.array([[-1.0, 0.0], [1.0, 0.0]])
    >>> ax = boundary(Parameters(np.full(2, 0.5), means, np.array([np.eye(2)] * 2)), regions=False)
    >>> bool(np.allclose(ax.collections[0].get_paths()[0].vertices[:, 0], 0))
    True
    """
    compute_scores, theta = _get_score_function(model)
    ax = get_axes(ax)
    x, y, grid = _build_grid(ax, theta, resolution)
    scores = np.asarray(compute_scores(grid))
    if theta is None and scores.ndim != 2:
        classes = check_labels("model(points)", scores, len(grid))
        scores = np.eye(max(classes.max() + 1, 2))[classes]
    margins = _compute_margins(scores).T.reshape(-1, len(y), len(x))
    present = [k for k, margin in enumerate(margins) if margin.max() > 0]
    for k in present if regions else ():
        ax.contourf(x, y, margins[k], [0, np.inf], colors=[tint(colour(k))], zorder=0.3)
    # The last region needs no lines, because they are drawn with the regions on their other side.
    for k in present[:-1]:
        ax.contour(x, y, margins[k], [0], colors=[INK], linewidths=1.2, zorder=1.5)
    return set_equal_scales(ax)


def _get_score_function(model: Any) -> tuple[Callable[[FloatArray], FloatArray], Parameters | None]:
    """Return a function from points to scores or classes, and θ if the model has parameters."""
    if callable(model):
        return model, None
    model = unwrap_estimator(model)
    if hasattr(model, "cluster_centers_"):
        return model.predict, None
    theta = get_parameters(model)
    return partial(_compute_log_joint, theta), check_parameters(theta, 2)


def _compute_log_joint(theta: Any, X: FloatArray) -> FloatArray:
    """Return (N, K) log p(x_i, z_i = k); θ comes first, so that ``partial`` can fix it."""
    return log_joint(X, theta)


def _compute_margins(scores: FloatArray) -> FloatArray:
    """Return (N, K) differences between each component's score and the best other score."""
    if scores.shape[1] < 2:
        raise ValueError("one component has no boundary: it needs at least two")
    second, first = np.sort(scores, axis=1)[:, -2:, None].swapaxes(0, 1)
    # A component with weight zero has infinite margins, which contours cannot interpolate.
    return np.clip(scores - np.where(scores == first, second, first), -1e6, 1e6)


def _build_grid(
    ax: Axes, parameters: Parameters | None, resolution: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the x and y coordinates of a grid within the limits, and its (M, 2) points."""
    if ax.has_data() or not ax.get_autoscale_on():
        low, high = np.array([ax.get_xlim(), ax.get_ylim()]).T
    elif parameters is not None:
        reach = 3.5 * np.sqrt(parameters.variances)
        low = (parameters.means - reach).min(axis=0)
        high = (parameters.means + reach).max(axis=0)
    else:
        raise ValueError(
            "the axes are empty, so there is no area to classify: draw the points first, or set "
            "limits"
        )
    x, y = np.linspace(low, high, resolution).T
    return x, y, np.column_stack([part.ravel() for part in np.meshgrid(x, y)])
