"""Draw a fitted model in one call: points, components, and relations between points.

Users call ``cgmm.plot.fit`` after they have fitted a model; the first example on the howto page
uses it.

====  ======================================================================
N, D  number of points x_i, and number of columns
θ     weights π_k, means μ_k and covariances Σ_k of K components
====  ======================================================================
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from cgmm.diagnose import judge
from cgmm.given import as_points, read_rows
from cgmm.mixture import Parameters
from cgmm.numerics import BoolArray, FloatArray, IntArray, check_pairs
from cgmm.plot.axes import flatten_mixture, get_parameters, unwrap_estimator
from cgmm.plot.mixtures import ellipses, scatter
from cgmm.plot.style import BACKGROUND, INK, MUTED, colour, marker

SOLID, DASHED = "-", (0, (4, 2.5))


class Links(NamedTuple):
    """Relations between points, with the properties that determine how they are drawn."""

    pairs: IntArray
    """(P, 2) indices of the two points."""
    together: BoolArray
    """(P,) True for "together", False for "apart"."""
    broken: BoolArray
    """(P,) True if the model's labels contradict the relation."""
    doubtful: BoolArray
    """(P,) True if the labels satisfy the relation, although it is more likely wrong than right."""


def fit(
    model: Any,
    X: ArrayLike,
    ax: Axes | None = None,
    *,
    must_link: ArrayLike | None = None,
    cannot_link: ArrayLike | None = None,
    preferences: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    size: float | None = None,
) -> Axes:
    """Draw a fitted model: points by component, ellipses, and relations between points.

    Must-links and preferences for "together" are solid lines; cannot-links and preferences for
    "apart" are dashed lines. A relation that the labels contradict is thick and crossed out. A
    relation that the labels satisfy, but that is more likely wrong than right according to
    :func:`cgmm.diagnose.judge`, is thick and has a question mark.

    Parameters
    ----------
    model : estimator
        A fitted mixture, classifier or K-means of this package, or a fitted search.
    X : (N, D) array-like
        The points of the fit, with D ≥ 2. More than two columns are projected onto the two
        principal axes; their labels give the share of the variance along each.
    ax : Axes, optional
        Axes to draw on; by default those of a new figure.
    must_link, cannot_link : (P, 2) int array-like, optional
        Pairs of points.
    preferences : (P, 3) array-like, optional
        Rows ``i, j, log-odds``; rows with log-odds of zero are not drawn.
    names : sequence of str, optional
        Labels of the components; "component 0", ... by default, ``()`` for none.
    size : float, optional
        Area of a marker in pt²; by default smaller for more points.

    Returns
    -------
    Axes
        With equal scales in both directions.

    Raises
    ------
    ValueError
        If X is not (N, D) with D ≥ 2, or a relation does not name two of its points.

    Examples
    --------
    >>> from cgmm import ConstrainedGaussianMixture
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [6.0, 6.0], [6.0, 7.0], [7.0, 6.0]])
    >>> model = ConstrainedGaussianMixture(2, reg_covar=0.1, random_state=0)
    >>> model = model.fit(X, must_link=[[0, 1]])
    >>> ax = fit(model, X, must_link=[[0, 1]], cannot_link=[[1, 2], [2, 3]])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['must-link (1)', 'cannot-link (2)', 'broken (1)']
    """
    X = _check_table(X)
    model = unwrap_estimator(model)
    links = _judge_links(model, X, must_link, cannot_link, preferences)
    centre, axes, shares = principal_plane(X)
    points = (X - centre) @ axes.T
    ax = scatter(points, _get_labels(model, X), ax=ax, size=size)
    _draw_components(model, centre, axes, ax, names)
    _draw_links(points, links, ax)
    if X.shape[1] > 2:
        words = [f"principal axis {d + 1} ({share:.0%})" for d, share in enumerate(shares)]
        ax.set(xlabel=words[0], ylabel=words[1])
    return ax


def _check_table(X: ArrayLike) -> FloatArray:
    """Return X as (N, D) floats, or raise an error if its rows cannot be drawn as points."""
    try:
        X = np.asarray(as_points(X), dtype=float)
    except (TypeError, ValueError):
        raise ValueError(
            "X holds entries that are no numbers, which have no place in the plane. Draw columns "
            "of numbers: cgmm.plot.scatter(X[['a', 'b']], model.labels_)."
        ) from None
    if X.ndim != 2 or X.shape[1] < 2 or not len(X):
        raise ValueError(
            f"X has the shape {X.shape}, but a fit is drawn in the plane: give (N, D) with two "
            "columns or more. A mixture on the line is drawn by cgmm.plot.density_1d(model, X=X)."
        )
    if np.isnan(X).any():
        row, column = np.argwhere(np.isnan(X))[0]
        raise ValueError(
            f"X[{row}, {column}] is empty, and a point without a coordinate has no place in the "
            "plane. Fill cells in from the model: cgmm.plot.fit(model, model.impute(X))."
        )
    return X


def principal_plane(X: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return centre (D,), principal axes (2, D) and their shares (2,) of the variance.

    If there are two columns, nothing is projected: return the origin, the unit vectors, and
    shares of one.
    """
    if X.shape[1] == 2:
        return np.zeros(2), np.eye(2), np.ones(2)
    variances, axes = np.linalg.eigh(np.cov(X.T))
    axes = axes[:, :-3:-1].T
    # The sign of an axis is arbitrary, so make its largest entry positive.
    largest = np.take_along_axis(axes, abs(axes).argmax(axis=1)[:, None], axis=1)
    total = max(variances.sum(), np.finfo(float).tiny)
    return X.mean(axis=0), axes * np.sign(largest), variances[:-3:-1] / total


def _get_labels(model: Any, X: FloatArray) -> IntArray:
    """Return the labels of the fit if they belong to these points, otherwise predicted labels."""
    labels = getattr(model, "labels_", None)
    return labels if labels is not None and len(labels) == len(X) else model.predict(X)


def _draw_components(
    model: Any, centre: FloatArray, axes: FloatArray, ax: Axes, names: Sequence[str] | None
) -> None:
    """Draw the ellipses of a mixture, or the centres of K-means, projected onto two axes."""
    if hasattr(model, "cluster_centers_"):
        for k, (x, y) in enumerate((model.cluster_centers_ - centre) @ axes.T):
            ax.plot(x, y, marker(k), ms=11, mfc=colour(k), mec=BACKGROUND, mew=2, zorder=4)
        return
    theta = get_parameters(model)
    gaussians = flatten_mixture(theta)
    means = (gaussians.means - centre) @ axes.T
    covariances = axes @ gaussians.full_covariances @ axes.T
    looks = getattr(theta, "class_of", None)
    names = () if looks is not None and names is None else names
    ellipses(Parameters(gaussians.weights, means, covariances), ax, names=names, looks=looks)


# ------------------------------------------------------------ relations


def _judge_links(
    model: Any,
    X: FloatArray,
    must_link: ArrayLike | None,
    cannot_link: ArrayLike | None,
    preferences: ArrayLike | None,
) -> Links:
    """Return all relations, and which of them contradict the labels or the points."""
    must, cannot = (
        check_pairs(name, pairs, len(X))
        for name, pairs in (("must_link", must_link), ("cannot_link", cannot_link))
    )
    soft = read_rows("preferences", preferences, 3).astype(float)
    soft = soft[soft[:, 2] != 0]
    pairs = np.concatenate([must, cannot, check_pairs("preferences", soft[:, :2], len(X))])
    together = np.repeat([True, False], [len(must), len(cannot)])
    together = np.concatenate([together, soft[:, 2] > 0])
    labels = _get_labels(model, X)
    broken = (labels[pairs[:, 0]] == labels[pairs[:, 1]]) != together
    doubtful = np.zeros(len(pairs), dtype=bool)
    if len(pairs) and hasattr(model, "weights_"):
        judgement = judge(model, X, must_link=must, cannot_link=cannot, preferences=soft)
        doubtful = (judgement.support < 0) & ~broken
    return Links(pairs, together, broken, doubtful)


def _draw_links(points: FloatArray, links: Links, ax: Axes) -> None:
    """Draw a line for each relation, marks on broken and doubtful relations, and a legend."""
    is_marked = links.broken | links.doubtful
    middles = points[links.pairs].mean(axis=1)
    for is_thick in (False, True):
        for together, style in ((True, SOLID), (False, DASHED)):
            lines = points[links.pairs[(links.together == together) & (is_marked == is_thick)]]
            look: dict[str, Any] = {"colors": INK if is_thick else MUTED, "linestyles": [style]}
            ax.add_collection(LineCollection(lines, lw=1.9 if is_thick else 1, zorder=1.8, **look))
    for is_shown, mark in ((links.broken, "x"), (links.doubtful, "$?$")):
        look = {"s": 80, "color": INK, "zorder": 5}
        ax.scatter(*middles[is_shown].T, marker=mark, **look)
    handles = list(_build_legend(links))
    if handles:
        place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.02, 1)}
        ax.legend(handles=handles, borderaxespad=0, handlelength=2.2, **place)


def _build_legend(links: Links) -> Iterator[Line2D]:
    """Yield a legend entry with a count for each kind of line and mark in the figure."""
    for is_counted, words, look in (
        (links.together, "must-link", {"ls": SOLID}),
        (~links.together, "cannot-link", {"ls": DASHED}),
        (links.broken, "broken", {"ls": "", "marker": "x"}),
        (links.doubtful, "doubtful", {"ls": "", "marker": "$?$"}),
    ):
        if is_counted.any():
            shade = INK if "marker" in look else MUTED
            yield Line2D([], [], color=shade, lw=1.2, label=f"{words} ({is_counted.sum()})", **look)
