"""Figures in one style: points, components, densities, boundaries, traces and comparisons.

Letters, as in the book:

=====  ====================================================================
N, D   number of points x_i and of their dimensions
K      number of components, counted from 0 as in the code
θ      weights π_k, means μ_k and covariances Σ_k of a Gaussian mixture
r_ik   responsibility of component k for point i
=====  ====================================================================

Component or class k has one colour, one marker and one line style in the whole book: colour alone
never carries a meaning. The eight colours keep their distance for every kind of colour vision, and
when a page inverts its figures for the dark; the first four also step in lightness, for grey print.

Every function draws on the axes that it is given, or on new ones, and returns the axes.
"""

from __future__ import annotations

import io
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, cast

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse
from matplotlib.patheffects import withStroke
from matplotlib.textpath import TextPath
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from cgmm.gaussian import Parameters, log_joint
from cgmm.numerics import FloatArray, IntArray

__all__ = [
    "BACKGROUND",
    "COLOURS",
    "INK",
    "LINE_STYLES",
    "MARKERS",
    "MUTED",
    "NEUTRAL",
    "STYLE",
    "TEXT_COLOURS",
    "boundary",
    "colour",
    "compare",
    "density",
    "density_1d",
    "dots",
    "ellipses",
    "label",
    "line_style",
    "marker",
    "png",
    "scatter",
    "tint",
    "trace",
    "use_style",
]

BACKGROUND = "#fcfcfb"
INK = "#1d2129"
MUTED = "#5c6370"
# Points without a label, and everything else that belongs to no component.
NEUTRAL = "#7d7d78"
# Blue, orange, green, wine (four steps in lightness); crimson, periwinkle, umber, mauve.
COLOURS = (
    "#414c8b",
    "#db7223",
    "#1d7e5f",
    "#550018",
    "#c11f3e",
    "#6a7dc6",
    "#624802",
    "#ab819f",
)
# The same hues where they are read as text, dark enough for a contrast of 4.5 to 1.
TEXT_COLOURS = (
    "#414c8b",
    "#a54c05",
    "#1d7e5f",
    "#550018",
    "#c11f3e",
    "#4a5fb4",
    "#624802",
    "#87597a",
)
# Nine markers and eight colours: the pair stays unique for 72 components.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p", "*")
LineStyle = str | tuple[float, tuple[float, ...]]
LINE_STYLES: tuple[LineStyle, ...] = (
    "-",
    (0, (5, 2)),
    (0, (1.5, 1.2)),
    (0, (6, 1.5, 1.5, 1.5)),
    (0, (9, 3)),
)

PAGE_WIDTH = 7.2  # inches: 720 CSS pixels, so that 1 pt is 1.4 pixels

STYLE: dict[str, Any] = {
    "figure.figsize": (PAGE_WIDTH, 3.6),
    "figure.dpi": 160,
    "figure.facecolor": BACKGROUND,
    "figure.constrained_layout.use": True,
    "savefig.dpi": "figure",
    "savefig.facecolor": BACKGROUND,
    "savefig.transparent": False,
    "svg.hashsalt": "cgmm",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "mathtext.fontset": "stix",
    "font.size": 12,
    "axes.titlesize": 12,
    "axes.labelsize": 12,
    "xtick.labelsize": 11,
    "ytick.labelsize": 11,
    "text.color": INK,
    "axes.labelcolor": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "axes.edgecolor": MUTED,
    "axes.facecolor": "none",
    "axes.titlelocation": "left",
    "axes.titlepad": 8,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.prop_cycle": cycler(color=COLOURS),
    "grid.color": "#e3e3df",
    "grid.linewidth": 0.8,
    "lines.linewidth": 2.0,
    "lines.markersize": 6,
    "legend.frameon": False,
    "image.cmap": "cividis",
}
PNG_METADATA = {"Software": None}


def use_style() -> None:
    """Set the book's style for every figure that follows; call it in a notebook's first cell.

    In a notebook the inline figures also keep their full width and carry no metadata, so that two
    runs write the same bytes.

    Examples
    --------
    >>> use_style()
    >>> plt.rcParams["figure.figsize"]
    [7.2, 3.6]
    """
    mpl.rcParams.update(cast("Any", STYLE))
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is not None and hasattr(shell, "kernel"):
        _use_style_inline(shell)


def _use_style_inline(shell: Any) -> None:
    """The same for the figures that a notebook shows at the end of a cell."""
    from matplotlib_inline.backend_inline import set_matplotlib_formats
    from matplotlib_inline.config import InlineBackend

    options: dict[str, Any] = {"bbox_inches": None, "metadata": PNG_METADATA}
    # The configuration serves a backend that is not yet active, the formats one that is.
    InlineBackend.instance(parent=shell).print_figure_kwargs = options
    set_matplotlib_formats("png", **options)


def png(figure: Figure) -> bytes:
    """Encode a figure as PNG, without the metadata that differs between two installations.

    Parameters
    ----------
    figure : matplotlib Figure
        It keeps its size and resolution.

    Returns
    -------
    bytes
        The PNG file.

    Examples
    --------
    >>> png(plt.figure())[:4]
    b'\\x89PNG'
    """
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata=PNG_METADATA)
    return buffer.getvalue()


# ---------------------------------------------------------------------------- colours


def colour(k: int, *, text: bool = False) -> str:
    """Colour of component k, from ``COLOURS``; beyond the eighth they come round again.

    Parameters
    ----------
    k : int
        The component or class; -1 is the neutral of the unlabelled.
    text : bool, default=False
        The darker shade for text.

    Examples
    --------
    >>> colour(1), colour(1, text=True), colour(-1)
    ('#db7223', '#a54c05', '#7d7d78')
    """
    if k < 0:
        return MUTED if text else NEUTRAL
    palette = TEXT_COLOURS if text else COLOURS
    return palette[k % len(palette)]


def marker(k: int) -> str:
    """Marker of component k, from ``MARKERS``; the unlabelled (-1) have a circle.

    Examples
    --------
    >>> [marker(k) for k in (-1, 0, 1, 2)]
    ['o', 'o', 's', '^']
    """
    return MARKERS[k % len(MARKERS)] if k >= 0 else "o"


def line_style(k: int) -> LineStyle:
    """Line style of component k, from ``LINE_STYLES``; the unlabelled (-1) have a full line.

    Examples
    --------
    >>> line_style(0)
    '-'
    """
    return LINE_STYLES[k % len(LINE_STYLES)] if k >= 0 else "-"


def tint(shade: str, strength: float = 0.15) -> tuple[float, float, float]:
    """A light, opaque version of a colour for areas: that share of it, the rest background.

    Examples
    --------
    >>> tint(INK, 0.0) == to_rgb(BACKGROUND)
    True
    """
    return tuple(strength * np.array(to_rgb(shade)) + (1 - strength) * np.array(to_rgb(BACKGROUND)))


def _blend(responsibilities: FloatArray) -> FloatArray:
    """(N, 3) colours: the mean of the components' colours under r_ik."""
    palette = np.array([to_rgb(colour(k)) for k in range(responsibilities.shape[1])])
    return np.clip(responsibilities @ palette, 0, 1)


def _halo(width: float = 3) -> list[withStroke]:
    """An outline in the background's colour, so that text stays legible above marks."""
    return [withStroke(linewidth=width, foreground=BACKGROUND)]


# ---------------------------------------------------------------------------- checks


def _axes(ax: Axes | None) -> Axes:
    """The axes given, or those of a new figure."""
    return plt.subplots()[1] if ax is None else ax


def _points(X: FloatArray) -> FloatArray:
    """X as (N, 2) floats."""
    X = np.asarray(X, dtype=float)
    if X.ndim != 2 or X.shape[1] != 2 or not len(X):
        raise ValueError(
            f"X has the shape {X.shape}, but points are drawn in the plane: give an (N, 2) array, "
            "for example two columns or two principal components of your data"
        )
    if not np.isfinite(X).all():
        row = np.flatnonzero(~np.isfinite(X).all(axis=1))[0]
        raise ValueError(f"X[{row}] is not finite: drop or impute that point before drawing it")
    return X


def _parameters(parameters: Parameters, n_dims: int) -> Parameters:
    """θ as floats, of the dimension that can be drawn."""
    weights, means, covariances = (np.asarray(part, dtype=float) for part in parameters)
    shape = (len(weights), n_dims)
    if means.shape != shape or covariances.shape != (*shape, n_dims):
        raise ValueError(
            f"weights, means and covariances have the shapes {weights.shape}, {means.shape} and "
            f"{covariances.shape}; this figure needs (K,), (K, {n_dims}), (K, {n_dims}, {n_dims})"
        )
    return Parameters(weights, means, covariances)


def _labels(labels: ArrayLike, n_samples: int) -> IntArray:
    """Labels as (N,) ints from -1 (unlabelled) upwards."""
    labels = np.asarray(labels)
    whole = np.issubdtype(labels.dtype, np.integer)
    if labels.shape != (n_samples,) or not whole or labels.min() < -1:
        raise ValueError(
            f"labels have the shape {labels.shape} and the type {labels.dtype}; {n_samples} points "
            "need as many ints, -1 for a point without a label and 0, 1, ... for the classes"
        )
    return labels


def _responsibilities(responsibilities: ArrayLike, n_samples: int) -> FloatArray:
    """Responsibilities as an (N, K) array whose rows are distributions."""
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


def _names(names: Sequence[str] | None, n_components: int) -> list[str]:
    """One name a component; by default its number, with the word where there is room for it."""
    if names is None:
        return [f"component {k}" if n_components <= 4 else f"{k}" for k in range(n_components)]
    if len(names) not in (0, n_components):
        raise ValueError(
            f"{len(names)} names for {n_components} components: give one each, or () for none"
        )
    return list(names) or [""] * n_components


def _distances(n_std: Sequence[float]) -> IntArray:
    """Mahalanobis distances in increasing order."""
    n_std = np.sort(n_std)
    if not len(n_std) or not n_std[0] > 0:
        raise ValueError(f"n_std = {n_std}: give at least one distance, all of them positive")
    return n_std


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
    X = _points(X)
    if labels is not None and responsibilities is not None:
        raise ValueError("labels and responsibilities both say how to colour the points: give one")
    ax = _axes(ax)
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
    return _plane(ax)


def _groups(
    n_samples: int, labels: ArrayLike | None, responsibilities: ArrayLike | None
) -> Iterator[tuple[int, IntArray, Any]]:
    """The points of one marker at a time: component, indices, face colours."""
    if responsibilities is not None:
        r = _responsibilities(responsibilities, n_samples)
        faces, labels = _blend(r), r.argmax(axis=1)
    else:
        labels = np.full(n_samples, -1) if labels is None else _labels(labels, n_samples)
        faces = None
    for k in np.unique(labels):
        members = np.flatnonzero(labels == k)
        yield int(k), members, colour(k) if faces is None else faces[members]


def _plane(ax: Axes) -> Axes:
    """Equal scales, few ticks."""
    ax.set_aspect("equal", adjustable="box")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(5, integer=False, steps=[1, 2, 5, 10]))
    return ax


def ellipses(
    parameters: Parameters,
    ax: Axes | None = None,
    n_std: Sequence[float] = (1, 2),
    *,
    names: Sequence[str] | None = None,
) -> Axes:
    """Draw each component as its mean and the ellipses at so many standard deviations.

    Parameters
    ----------
    parameters : Parameters
        θ in two dimensions.
    ax : Axes, optional
        Where to draw; a new figure by default.
    n_std : sequence of float, default=(1, 2)
        Mahalanobis distances; the ellipse at n holds the share ``1 - exp(-n²/2)`` of its component:
        39 % at one, 86 % at two.
    names : sequence of str, optional
        Written beside each component; "component 0", ... by default, ``()`` for none.

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
    _, means, covariances = _parameters(parameters, 2)
    names = _names(names, len(means))
    n_std = _distances(n_std)
    ax = _axes(ax)
    for k, (mean, covariance) in enumerate(zip(means, covariances, strict=True)):
        for n in n_std:
            ax.add_patch(_ellipse(k, mean, covariance, n, strong=n == n_std[0]))
        ax.plot(*mean, marker(k), ms=11, mfc=colour(k), mec=BACKGROUND, mew=2, zorder=4)
        if names[k]:
            up = 1 if mean[1] >= means[:, 1].mean() else -1
            top = mean + up * n_std[-1] * covariance[:, 1] / np.sqrt(covariance[1, 1])
            label(ax, names[k], top, k, offset=(0, 5 * up))
    ax.autoscale_view()
    return _plane(ax)


def _ellipse(
    k: int, mean: FloatArray, covariance: FloatArray, n: float, *, strong: bool
) -> Ellipse:
    """The points at Mahalanobis distance n, from the eigenvectors of Σ_k."""
    # Σ_k = U diag(λ) Uᵀ: the half axes are n √λ along the columns of U.
    variances, axes = np.linalg.eigh(covariance)
    if not variances[0] > 0:
        raise ValueError(
            f"the covariance of component {k} is not positive definite (smallest eigenvalue "
            f"{variances[0]:.3g}), so it has no ellipse: increase reg_covar in the fit"
        )
    height, width = 2 * n * np.sqrt(variances)
    angle = np.degrees(np.arctan2(axes[1, 1], axes[0, 1]))
    look: dict[str, Any] = {"ls": line_style(k), "lw": 2 if strong else 1.4, "zorder": 3}
    centre = cast("tuple[float, float]", mean)
    return Ellipse(centre, width, height, angle=angle, fill=False, edgecolor=colour(k), **look)


def density(
    parameters: Parameters,
    ax: Axes | None = None,
    n_std: Sequence[float] = (0.5, 1, 1.5, 2, 2.5, 3),
    *,
    fill: bool = True,
    resolution: int = 200,
) -> Axes:
    """Draw the contours of the mixture's density over the axes' present limits.

    Parameters
    ----------
    parameters : Parameters
        θ in two dimensions.
    ax : Axes, optional
        Draw the points first: the contours fill the limits that they find. On empty axes they reach
        3.5 standard deviations.
    n_std : sequence of float, default=(0.5, 1, 1.5, 2, 2.5, 3)
        A contour lies where the density has fallen to ``exp(-n²/2)`` of its highest value; for a
        single component this is its ellipse at n standard deviations.
    fill : bool, default=True
        Tint the area between the contours.
    resolution : int, default=200
        Grid points along each axis.

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
    parameters = _parameters(parameters, 2)
    ax = _axes(ax)
    x, y, grid = _grid(ax, parameters, resolution)
    values = np.exp(log_joint(grid, parameters)).sum(axis=1).reshape(len(y), len(x))
    peak = np.exp(log_joint(parameters.means, parameters)).sum(axis=1).max()
    peak = max(peak, values.max())
    levels = peak * np.exp(-np.square(_distances(n_std)[::-1]) / 2)
    if fill:
        shades = [tint(MUTED, s) for s in np.linspace(0.06, 0.34, len(levels))]
        ax.contourf(x, y, values, [*levels, peak * (1 + 1e-9)], colors=shades, zorder=0.5)
    ax.contour(x, y, values, levels, colors=[tint(MUTED, 0.6)], linewidths=0.9, zorder=0.6)
    return _plane(ax)


def boundary(
    model: Parameters | Callable[[FloatArray], IntArray],
    ax: Axes | None = None,
    *,
    regions: bool = True,
    resolution: int = 300,
) -> Axes:
    """Draw where the most probable component changes, over the axes' present limits.

    Parameters
    ----------
    model : Parameters or callable
        θ in two dimensions; or a function from (M, 2) points to (M,) classes 0, 1, ..., such as an
        estimator's ``predict``.
    ax : Axes, optional
        Draw the points first: the regions fill the limits that they find.
    regions : bool, default=True
        Tint each region with its component's colour.
    resolution : int, default=300
        Grid points along each axis.

    Returns
    -------
    Axes
        With equal scales in both directions.

    Raises
    ------
    ValueError
        If there are fewer than two components, or axes without limits and a function to draw.

    Examples
    --------
    >>> means = np.array([[-1.0, 0.0], [1.0, 0.0]])
    >>> ax = boundary(Parameters(np.full(2, 0.5), means, np.array([np.eye(2)] * 2)), regions=False)
    >>> bool(np.allclose(ax.collections[0].get_paths()[0].vertices[:, 0], 0))
    True
    """
    parameters = None if callable(model) else _parameters(model, 2)
    ax = _axes(ax)
    x, y, grid = _grid(ax, parameters, resolution)
    if parameters is not None:
        scores = log_joint(grid, parameters)
    else:
        classify = cast("Callable[[FloatArray], IntArray]", model)
        classes = _labels(classify(grid), len(grid))
        scores = np.eye(max(classes.max() + 1, 2))[classes]
    margins = _margins(scores).T.reshape(-1, len(y), len(x))
    present = [k for k, margin in enumerate(margins) if margin.max() > 0]
    for k in present if regions else ():
        ax.contourf(x, y, margins[k], [0, np.inf], colors=[tint(colour(k))], zorder=0.3)
    # The last region's edges are those of its neighbours.
    for k in present[:-1]:
        ax.contour(x, y, margins[k], [0], colors=[INK], linewidths=1.2, zorder=1.5)
    return _plane(ax)


def _margins(scores: FloatArray) -> FloatArray:
    """(N, K) by how much each component's score beats the best other one."""
    if scores.shape[1] < 2:
        raise ValueError("one component has no boundary: it needs at least two")
    second, first = np.sort(scores, axis=1)[:, -2:, None].swapaxes(0, 1)
    # A weight of zero makes infinite margins, which no contour can pass.
    return np.clip(scores - np.where(scores == first, second, first), -1e6, 1e6)


def _grid(
    ax: Axes, parameters: Parameters | None, resolution: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Coordinates of a grid over the limits of the axes, and its (M, 2) points."""
    if ax.has_data() or not ax.get_autoscale_on():
        low, high = np.array([ax.get_xlim(), ax.get_ylim()]).T
    elif parameters is not None:
        reach = 3.5 * np.sqrt(np.einsum("kdd->kd", parameters.covariances))
        low = (parameters.means - reach).min(axis=0)
        high = (parameters.means + reach).max(axis=0)
    else:
        raise ValueError(
            "the axes are empty, so there is no area to classify: draw the points first, or set "
            "limits"
        )
    x, y = np.linspace(low, high, resolution).T
    return x, y, np.column_stack([part.ravel() for part in np.meshgrid(x, y)])


# ---------------------------------------------------------------------------- curves


def density_1d(
    parameters: Parameters,
    ax: Axes | None = None,
    X: FloatArray | None = None,
    *,
    names: Sequence[str] | None = None,
    resolution: int = 500,
) -> Axes:
    """Draw a mixture on the line: every π_k N(x | μ_k, σ_k²), and their sum.

    Parameters
    ----------
    parameters : Parameters
        θ in one dimension: weights (K,), means (K, 1), covariances (K, 1, 1).
    ax : Axes, optional
        Where to draw; a new figure by default.
    X : (N,) or (N, 1) array, optional
        Points, drawn as a histogram of area one behind the curves. Without them the area below each
        component is tinted.
    names : sequence of str, optional
        Written at each component's peak; "component 0", ... by default, ``()`` for none.
    resolution : int, default=500
        Points on each curve.

    Returns
    -------
    Axes
        The first line is the mixture, the others its components.

    Raises
    ------
    ValueError
        If a shape does not fit or a variance is not positive.

    Examples
    --------
    >>> theta = Parameters(np.array([0.25, 0.75]), np.array([[0.0], [4.0]]), np.ones((2, 1, 1)))
    >>> total, *parts = density_1d(theta).lines
    >>> bool(np.allclose(total.get_ydata(), sum(part.get_ydata() for part in parts)))
    True
    """
    parameters = _parameters(parameters, 1)
    names = _names(names, len(parameters.weights))
    ax = _axes(ax)
    x = _line_grid(parameters, X, resolution)
    if X is not None:
        ax.hist(np.ravel(X), bins="auto", density=True, color=tint(NEUTRAL, 0.25), zorder=1)
    parts = np.exp(log_joint(x[:, None], parameters))
    total = parts.sum(axis=1)
    ax.plot(x, total, color=INK, lw=2.4, zorder=3)
    if any(names) and len(names) > 1:
        # On the flank beyond the last peak, where nothing else is written.
        last = x >= parameters.means.max()
        flank = x[last][total[last] >= 0.5 * total[last].max()].max()
        label(ax, "mixture", (flank, np.interp(flank, x, total)), offset=(8, 0), ha="left")
    for k, part in enumerate(parts.T):
        if X is None:
            ax.fill_between(x, part, color=colour(k), alpha=0.15, lw=0, zorder=2)
        ax.plot(x, part, color=colour(k), ls=line_style(k), zorder=4)
        if names[k]:
            label(ax, names[k], (x[part.argmax()], part.max()), k, offset=(0, 4))
    ax.set_ylim(bottom=0)
    ax.set_ylabel("density")
    ax.yaxis.set_major_locator(MaxNLocator(5))
    return ax


def _line_grid(parameters: Parameters, X: ArrayLike | None, resolution: int) -> FloatArray:
    """Abscissae that reach four standard deviations beyond the means, and all points."""
    means = parameters.means[:, 0]
    reach = 4 * np.sqrt(parameters.covariances[:, 0, 0])
    ends = np.concatenate([means - reach, means + reach, np.ravel(X) if X is not None else []])
    # The means themselves belong to the grid: a narrow component keeps its peak.
    return np.union1d(np.linspace(ends.min(), ends.max(), resolution), means)


def trace(
    history: Sequence[float] | Mapping[str, Sequence[float]],
    ax: Axes | None = None,
    *,
    ylabel: str = "log-likelihood",
) -> Axes:
    """Draw the log-likelihood over the iterations, of one run or of several named ones.

    Parameters
    ----------
    history : sequence of float, or mapping from name to one
        Entry t belongs to the parameters that enter iteration t, entry 0 to the start.
    ax : Axes, optional
        Where to draw; a new figure by default.
    ylabel : str, default="log-likelihood"
        What the numbers are.

    Returns
    -------
    Axes
        One line a run, its name and last value at its end.

    Raises
    ------
    ValueError
        If a run is empty or contains a value that is not finite.

    Examples
    --------
    >>> ax = trace({"left start": [-9.0, -5.0, -4.5], "right start": [-8.0, -7.0]})
    >>> [text.get_text() for text in ax.texts]
    ['left start: −4.5', 'right start: −7.0']
    """
    runs = dict(history) if isinstance(history, Mapping) else {"": history}
    for name, run in runs.items():
        if not len(run) or not np.isfinite(run).all():
            raise ValueError(
                f"the history {name!r} is empty or not finite: a trace needs at least one value, "
                "all of them finite"
            )
    ax = _axes(ax)
    shades = range(len(runs)) if len(runs) > 1 else [-1]
    for k, run in zip(shades, runs.values(), strict=True):
        shade = colour(k) if k >= 0 else INK
        look: dict[str, Any] = {"color": shade, "ls": line_style(k), "marker": marker(k)}
        ax.plot(range(len(run)), run, ms=5 if len(run) <= 40 else 0, **look)
    ax.set(xlabel="iteration", ylabel=ylabel)
    ax.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    _label_ends(ax, runs, shades)
    return ax


def _label_ends(ax: Axes, runs: Mapping[str, Sequence[float]], shades: Sequence[int]) -> None:
    """Write name and last value of each run to the right, apart even where the ends coincide."""
    ends = [float(run[-1]) for run in runs.values()]
    low, high = ax.get_ylim()
    gap = 0.085 * (high - low)
    digits = 1 if max(map(abs, ends)) < 1e4 else 0
    last = max(len(run) for run in runs.values()) - 1
    for name, end, height, k in zip(runs, ends, _spread(ends, gap), shades, strict=True):
        number = f"{end:.{digits}f}".replace("-", "\N{MINUS SIGN}")
        text = f"{name}: {number}" if name else number
        label(ax, text, (last, height), k if k >= 0 else INK, offset=(10, 0), ha="left")


def _spread(heights: Sequence[float], gap: float) -> list[float]:
    """Heights in the same order, moved apart until neighbours differ by at least the gap."""
    order = np.argsort(heights, kind="stable")
    placed = np.array(heights, dtype=float)
    for _ in range(len(placed)):
        for lower, upper in pairwise(order):
            short = gap - (placed[upper] - placed[lower])
            if short > 0:
                placed[lower] -= short / 2
                placed[upper] += short / 2
    return placed.tolist()


def dots(
    values: Mapping[str, float | Sequence[float]],
    ax: Axes | None = None,
    *,
    format: str = "{:.2f}",
    xlabel: str = "",
    highlight: str | None = None,
) -> Axes:
    """Compare methods by one number each: a row, a dot and the number written beside it.

    Parameters
    ----------
    values : mapping from str to float or sequence of float
        The number of each method, in the order from top to bottom; several are repetitions, drawn
        as small dots about their mean.
    ax : Axes, optional
        Where to draw; by default a new figure as high as the rows need.
    format : str, default="{:.2f}"
        How the number is written.
    xlabel : str, default=""
        What the numbers are.
    highlight : str, optional
        The method in colour; all others are grey. By default all have one colour.

    Returns
    -------
    Axes
        One row a method.

    Raises
    ------
    ValueError
        If there is no method, a number is not finite, or the method to highlight is unknown.

    Examples
    --------
    >>> ax = dots({"k-means": 0.58, "EM": [0.91, 0.93]}, xlabel="accuracy", highlight="EM")
    >>> [text.get_text() for text in ax.texts]
    ['0.58', '0.92']
    """
    rows = {name: np.atleast_1d(np.asarray(value, dtype=float)) for name, value in values.items()}
    for name, row in rows.items():
        if not row.size or not np.isfinite(row).all():
            raise ValueError(f"the value of {name!r} is {row}: give one or more finite numbers")
    if not rows or highlight not in (None, *rows):
        raise ValueError(f"highlight={highlight!r} is not among the methods {list(rows)}")
    if ax is None:
        ax = plt.subplots(figsize=(PAGE_WIDTH, 0.8 + 0.42 * len(rows)))[1]
    for y, (name, row) in enumerate(rows.items()):
        k = 0 if highlight in (None, name) else -1
        ax.axhline(y, color=tint(NEUTRAL, 0.3), lw=1, zorder=0)
        if len(row) > 1:
            ax.plot(row, np.full(len(row), y), "o", ms=4, mfc=tint(colour(k), 0.5), mec="none")
        ax.plot(row.mean(), y, "o", ms=9, color=colour(k), mec=BACKGROUND)
        label(ax, format.format(row.mean()), (row.max(), y), k, offset=(9, 0), ha="left")
    ax.set_yticks(range(len(rows)), rows, color=INK)
    ax.set(xlabel=xlabel, ylim=(len(rows) - 0.5, -0.5))
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    return ax


# ---------------------------------------------------------------------------- text and panels


def label(
    ax: Axes,
    text: str,
    xy: tuple[float, float],
    colour: int | str = INK,
    *,
    offset: tuple[float, float] = (0, 0),
    ha: str = "center",
) -> Axes:
    """Write a word beside the thing that it names, instead of a legend.

    Parameters
    ----------
    ax : Axes
        Where to write.
    text : str
        The word.
    xy : (float, float)
        The place, in data coordinates.
    colour : int or str, default=INK
        A component's number or a colour.
    offset : (float, float), default=(0, 0)
        Distance from the place in points; a text above it stands on it, a text below hangs from it.
    ha : {"center", "left", "right"}, default="center"
        Which part of the text is at the place.

    Returns
    -------
    Axes
        The same.

    Examples
    --------
    >>> ax = label(plt.subplots()[1], "outlier", (0.5, 0.5), 1)
    >>> ax.texts[0].get_color() == TEXT_COLOURS[1]
    True
    """
    shade = colour if isinstance(colour, str) else _text_colour(colour)
    va = "center" if offset[1] == 0 else "bottom" if offset[1] > 0 else "top"
    look: dict[str, Any] = {
        "color": shade,
        "ha": ha,
        "va": va,
        "path_effects": _halo(),
        "zorder": 6,
    }
    ax.annotate(text, xy, offset, textcoords="offset points", annotation_clip=False, **look)
    return ax


def _text_colour(k: int) -> str:
    """Colour of text about component k (``label`` has a parameter of the function's name)."""
    return colour(k, text=True)


def compare(
    panels: Mapping[str, Callable[[Axes], object]],
    *,
    n_columns: int | None = None,
    height: float | None = None,
) -> list[Axes]:
    """Draw small multiples that share their axes, each under a title that says what it shows.

    Parameters
    ----------
    panels : mapping from str to callable
        Title and a function that draws on the axes handed to it. Each function is called twice: the
        first time to find limits that hold all panels.
    n_columns : int, optional
        Panels in a row; up to three by default.
    height : float, optional
        Of the whole figure, in inches; by default what the panels' shape needs.

    Returns
    -------
    list of Axes
        In the order of the panels; their figure is ``axes[0].figure``.

    Raises
    ------
    ValueError
        If there is no panel, or one without a title.

    Examples
    --------
    >>> X = np.array([[0.0, 0.0], [4.0, 3.0]])
    >>> left, right = compare({
    ...     "Before": lambda ax: scatter(X, ax=ax),
    ...     "After, both are known": lambda ax: scatter(X, [0, 1], ax=ax),
    ... })
    >>> right.get_title(loc="left"), left.get_xlim() == right.get_xlim()
    ('After, both are known', True)
    """
    if not panels or not all(title.strip() for title in panels):
        raise ValueError(
            f"panels with the titles {list(panels)}: give at least one, each with a title that "
            "says what it shows"
        )
    limits, equal = _joint_limits(panels.values())
    columns = n_columns or min(len(panels), 3)
    rows = -(-len(panels) // columns)
    height = height or rows * _panel_height(limits, equal, PAGE_WIDTH / columns, panels)
    size: dict[str, Any] = {
        "figsize": (PAGE_WIDTH, height),
        "layout": "compressed" if equal else "constrained",
    }
    _, grid = plt.subplots(rows, columns, sharex=True, sharey=True, squeeze=False, **size)
    axes = list(grid.flat)
    axes[0].set(xlim=limits[0], ylim=limits[1])
    for ax, (title, draw) in zip(axes, panels.items(), strict=False):
        draw(ax)
        ax.set_title(_wrap(title, PAGE_WIDTH / columns), loc="left")
        ax.label_outer()
    for ax in axes[len(panels) :]:
        ax.remove()
    return axes[: len(panels)]


def _joint_limits(draws: Iterable[Callable[[Axes], object]]) -> tuple[FloatArray, bool]:
    """Limits of x and y that hold every panel, and whether the scales must be equal."""
    trials = []
    for draw in draws:
        trials.append(Figure().add_subplot())
        draw(trials[-1])
    limits = np.array([[ax.get_xlim(), ax.get_ylim()] for ax in trials])
    joint = np.stack([limits[..., 0].min(axis=0), limits[..., 1].max(axis=0)], axis=1)
    return joint, any(ax.get_aspect() == 1 for ax in trials)


def _panel_height(limits: FloatArray, equal: bool, width: float, titles: Iterable[str]) -> float:
    """Height of a row of panels in inches: the data's shape, the titles' lines, the tick labels."""
    lines = max(_wrap(title, width).count("\n") + 1 for title in titles)
    x, y = np.diff(limits, axis=1).ravel()
    panel = np.clip((width - 0.3) * y / x, 1.2, 5.5) if equal else 2.2
    return float(panel + 0.23 * lines + 0.4)


def _wrap(title: str, width: float) -> str:
    """A title in as few lines as fit a panel of that width in inches, of about the same length."""
    title = " ".join(title.split())
    size = STYLE["axes.titlesize"]
    letter = TextPath((0, 0), title, size=size).get_extents().width / 72 / len(title)
    most = max(int((width - 0.5) / letter), 10)
    n_lines = len(textwrap.wrap(title, most))
    widths = range(len(title) // n_lines, most + 1)
    wrapped = (textwrap.wrap(title, letters) for letters in widths)
    return "\n".join(next(lines for lines in wrapped if len(lines) <= n_lines))
