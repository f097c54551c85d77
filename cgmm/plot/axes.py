"""Check the arguments of figures, set equal scales, and write labels.

All functions of ``cgmm.plot`` call these helpers. ``label`` is public, and used in all chapters.

====  ======================================================================
N, K  number of points, and number of components
θ     weights π_k, means μ_k and covariances Σ_k
r_ik  responsibility of component k for point i
====  ======================================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from cgmm.mixture import Parameters
from cgmm.numerics import FloatArray
from cgmm.plot.style import BACKGROUND, INK
from cgmm.plot.style import colour as colour_of

# ------------------------------------------------------------ checks


def check_points(X: ArrayLike) -> FloatArray:
    """Return X as (N, 2) floats, or raise an error if its shape or a value is wrong."""
    X = np.asarray(X, dtype=float)
    if X.ndim != 2 or X.shape[1] != 2 or not len(X):
        raise ValueError(
            f"X has the shape {X.shape}, but points are drawn in the plane: give an (N, 2) array, "
            "for example two columns or two principal components of your data"
        )
    if not np.isfinite(X).all():
        row = np.flatnonzero(~np.isfinite(X).all(axis=1))[0]
        raise ValueError(
            f"X[{row}] is not finite: drop that point, or fill in its cells by model.impute(X)"
        )
    return X


def check_responsibilities(responsibilities: ArrayLike, n_samples: int) -> FloatArray:
    """Return (N, K) responsibilities, or raise an error if a row is not a distribution."""
    r = np.asarray(responsibilities, dtype=float)
    if r.ndim != 2 or len(r) != n_samples:
        raise ValueError(
            f"responsibilities have the shape {r.shape}; {n_samples} points need ({n_samples}, K)"
        )
    wrong = ~(np.isclose(r.sum(axis=1), 1) & (r >= 0).all(axis=1))
    if wrong.any():
        row = np.flatnonzero(wrong)[0]
        raise ValueError(
            f"responsibilities[{row}] = {r[row]} is no distribution: each row must be non-negative "
            "and sum to one; normalise the joint probabilities over the components first"
        )
    return r


def unwrap_estimator(model: Any) -> Any:
    """Return the mixture that a search, a classifier or an ``AnnotatorMixture`` contains."""
    for name in ("best_estimator_", "estimator_", "mixture_"):
        model = getattr(model, name, model)
    return model


def get_parameters(model: Any) -> Any:
    """Return the parameters θ of a fitted mixture; return other objects unchanged."""
    model = unwrap_estimator(model)
    if isinstance(model, BaseEstimator):
        # Check the class, because a mixture that is not fitted does not have the attribute.
        if not hasattr(type(model), "parameters_"):
            raise ValueError(
                f"{type(model).__name__} has no densities to draw. Give a fitted mixture; "
                "cgmm.plot.fit(model, X) draws the points and centres of any model."
            )
        model = getattr(model, "parameters_")  # noqa: B009
    return model


def flatten_mixture(theta: Any) -> Parameters:
    """Return θ as one mixture of Gaussians, even if each class is a mixture itself.

    If the model has columns of numbers and of categories, return the Gaussians of the numbers.
    """
    if hasattr(theta, "parts"):
        theta = theta.parts[0].with_weights(theta.weights)
        if not hasattr(theta, "means"):
            raise ValueError(
                "the model has categories only, which have no place in the plane; draw their "
                "probabilities as bars, ax.bar(categories, model.probabilities_[0][k])."
            )
    if not hasattr(theta, "class_of"):
        return Parameters(*theta)
    components = theta.components
    return components.with_weights(theta.weights[theta.class_of] * components.weights)


def check_parameters(parameters: Any, n_dims: int) -> Parameters:
    """Return θ with (K, D, D) covariances, or raise an error if D is not ``n_dims``."""
    theta = flatten_mixture(get_parameters(parameters))
    theta = Parameters(*(np.asarray(part, dtype=float) for part in theta))
    weights, means, covariances = theta
    shape = (len(weights), n_dims)
    if means.shape != shape or covariances.shape not in (shape, (*shape, n_dims)):
        raise ValueError(
            f"weights, means and covariances have the shapes {weights.shape}, {means.shape} and "
            f"{covariances.shape}; this figure needs (K,), (K, {n_dims}), (K, {n_dims}, {n_dims}), "
            f"or (K, {n_dims}) variances. More columns are drawn by cgmm.plot.fit(model, X)."
        )
    return theta._replace(covariances=theta.full_covariances)


def list_names(names: Sequence[str] | None, n_components: int) -> list[str]:
    """Return a name per component: by default "component 0", or only "0" if K is above four."""
    if names is None:
        return [f"component {k}" if n_components <= 4 else f"{k}" for k in range(n_components)]
    if len(names) not in (0, n_components):
        raise ValueError(
            f"{len(names)} names for {n_components} components: give one each, or () for none"
        )
    return list(names) or [""] * n_components


def sort_distances(n_std: Sequence[float]) -> FloatArray:
    """Return Mahalanobis distances in increasing order; raise an error if one is not positive."""
    n_std = np.sort(n_std)
    if not len(n_std) or not n_std[0] > 0:
        raise ValueError(f"n_std = {n_std}: give at least one distance, all of them positive")
    return n_std


# ------------------------------------------------------------ axes and labels


def get_axes(ax: Axes | None) -> Axes:
    """Return the given axes, or the axes of a new figure."""
    return plt.subplots()[1] if ax is None else ax


def set_equal_scales(ax: Axes) -> Axes:
    """Set equal scales for x and y, so that circles are round, and at most five ticks."""
    ax.set_aspect("equal", adjustable="box")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(5, integer=False, steps=[1, 2, 5, 10]))
    return ax


def label(
    ax: Axes,
    text: str,
    xy: tuple[float, float],
    colour: int | str = INK,
    *,
    offset: tuple[float, float] = (0, 0),
    ha: str = "center",
) -> Axes:
    """Write a label next to the object that it names, instead of a legend.

    Parameters
    ----------
    ax : Axes
        Axes to write on.
    text : str
        The label.
    xy : (float, float)
        Position in data coordinates.
    colour : int or str, default=INK
        Index of a component, or a colour.
    offset : (float, float), default=(0, 0)
        Offset of the text from the position, in points. Text above the position is aligned at its
        bottom, text below at its top.
    ha : {"center", "left", "right"}, default="center"
        Horizontal alignment of the text at the position.

    Returns
    -------
    Axes
        The same axes.

    Examples
    --------
    >>> ax = label(plt.subplots()[1], "outlier", (0.5, 0.5), 1)
    >>> ax.texts[0].get_color() == colour_of(1, text=True)
    True
    """
    look: dict[str, Any] = {
        "color": colour if isinstance(colour, str) else colour_of(colour, text=True),
        "ha": ha,
        "va": "center" if offset[1] == 0 else "bottom" if offset[1] > 0 else "top",
        # An outline in the colour of the background keeps the label legible on top of marks.
        "path_effects": [withStroke(linewidth=3, foreground=BACKGROUND)],
        "zorder": 6,
    }
    ax.annotate(text, xy, offset, textcoords="offset points", annotation_clip=False, **look)
    return ax
