"""Draw charts: one-dimensional densities, traces of EM, comparisons of methods, calibration.

All chapters use these functions; ``cgmm.plot.compare`` arranges charts in panels. Chapter 14 checks
the calibration of a model by reliability diagrams, which compare predicted probabilities with
observed frequencies.

===============  ============================================================
π_k, μ_k, σ_k²   weight, mean and variance of component k in one dimension
t                iteration, e.g. 3; entry t of a history is the value before iteration t
===============  ============================================================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from cgmm.metrics import Reliability
from cgmm.mixture import Parameters, log_joint
from cgmm.numerics import FloatArray
from cgmm.plot.axes import check_parameters, get_axes, label, list_names, set_equal_scales
from cgmm.plot.style import (
    BACKGROUND,
    INK,
    MUTED,
    NEUTRAL,
    PAGE_WIDTH,
    colour,
    line_style,
    marker,
    tint,
)

# ------------------------------------------------------------ densities, traces, dots


def density_1d(
    parameters: Parameters | BaseEstimator,
    ax: Axes | None = None,
    X: FloatArray | None = None,
    *,
    names: Sequence[str] | None = None,
    resolution: int = 500,
) -> Axes:
    """Draw the density of a one-dimensional mixture, and π_k N(x | μ_k, σ_k²) of each component.

    Parameters
    ----------
    parameters : Parameters or fitted mixture
        θ in one dimension: weights (K,), means (K, 1), covariances (K, 1, 1).
    ax : Axes, optional
        Axes to draw on; by default those of a new figure.
    X : (N,) or (N, 1) array, optional
        Points, drawn as a histogram with area one behind the curves; NaN is ignored. Without
        points, the area below each component is tinted.
    names : sequence of str, optional
        Labels at the peaks of the components; "component 0", ... by default, ``()`` for none.
    resolution : int, default=500
        Number of points on each curve.

    Returns
    -------
    Axes
        The first line is the density of the mixture, the others are the components.

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
    theta = check_parameters(parameters, 1)
    names = list_names(names, len(theta.weights))
    ax = get_axes(ax)
    if X is not None:
        X = np.ravel(X)
        X = X[~np.isnan(X)]
    x = _build_grid(theta, X, resolution)
    if X is not None:
        ax.hist(X, bins="auto", density=True, color=tint(NEUTRAL, 0.25), zorder=1)
    parts = np.exp(log_joint(x[:, None], theta))
    total = parts.sum(axis=1)
    ax.plot(x, total, color=INK, lw=2.4, zorder=3)
    if any(names) and len(names) > 1:
        # Put the label of the mixture to the right of the last peak, where there is no other label.
        last = x >= theta.means.max()
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


def _build_grid(parameters: Parameters, X: ArrayLike | None, resolution: int) -> FloatArray:
    """Return x values that cover all points, and four standard deviations around each mean."""
    means = parameters.means[:, 0]
    reach = 4 * np.sqrt(parameters.variances[:, 0])
    ends = np.concatenate([means - reach, means + reach, np.ravel(X) if X is not None else []])
    # Include the means; otherwise the peak of a narrow component may lie between two grid points.
    return np.union1d(np.linspace(ends.min(), ends.max(), resolution), means)


def trace(
    history: Sequence[float] | Mapping[str, Sequence[float]],
    ax: Axes | None = None,
    *,
    ylabel: str = "log-likelihood",
) -> Axes:
    """Draw the log-likelihood of each iteration, for one run or for several named runs.

    Parameters
    ----------
    history : sequence of float, or mapping from name to sequence of float
        Value of the parameters before each iteration; entry 0 is the value of the start.
    ax : Axes, optional
        Axes to draw on; by default those of a new figure.
    ylabel : str, default="log-likelihood"
        Name of the quantity.

    Returns
    -------
    Axes
        The axes, with one line per run; its name and last value are at its end.

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
    ax = get_axes(ax)
    # Draw a single run in the colour of text, because other colours identify components.
    numbers = range(len(runs)) if len(runs) > 1 else [-1]
    for k, run in zip(numbers, runs.values(), strict=True):
        shade = colour(k) if k >= 0 else INK
        look: dict[str, Any] = {"color": shade, "ls": line_style(k), "marker": marker(k)}
        ax.plot(range(len(run)), run, ms=5 if len(run) <= 40 else 0, **look)
    ax.set(xlabel="iteration", ylabel=ylabel)
    ax.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    _label_ends(ax, runs, numbers)
    return ax


def _label_ends(ax: Axes, runs: Mapping[str, Sequence[float]], numbers: Sequence[int]) -> None:
    """Write name and last value of each run at the end of its line, without overlaps."""
    ends = [float(run[-1]) for run in runs.values()]
    low, high = ax.get_ylim()
    gap = 0.085 * (high - low)
    digits = 1 if max(map(abs, ends)) < 1e4 else 0
    last = max(len(run) for run in runs.values()) - 1
    for name, end, height, k in zip(runs, ends, _move_apart(ends, gap), numbers, strict=True):
        value = f"{end:.{digits}f}".replace("-", "\N{MINUS SIGN}")
        text = f"{name}: {value}" if name else value
        label(ax, text, (last, height), k if k >= 0 else INK, offset=(10, 0), ha="left")


def _move_apart(heights: Sequence[float], gap: float) -> list[float]:
    """Move heights apart until neighbours differ by at least the gap, and keep their order."""
    order = np.argsort(heights, kind="stable")
    moved = np.array(heights, dtype=float)
    for _ in range(len(moved)):
        for lower, upper in pairwise(order):
            overlap = gap - (moved[upper] - moved[lower])
            if overlap > 0:
                moved[lower] -= overlap / 2
                moved[upper] += overlap / 2
    return moved.tolist()


def dots(
    values: Mapping[str, float | Sequence[float]],
    ax: Axes | None = None,
    *,
    format: str = "{:.2f}",
    xlabel: str = "",
    highlight: str | None = None,
) -> Axes:
    """Compare methods by one number each, in a dot plot with one row per method.

    Parameters
    ----------
    values : mapping from str to float or sequence of float
        The number of each method, from top to bottom. If there are several numbers, they are
        repetitions: they are small dots around a large dot at their mean.
    ax : Axes, optional
        Axes to draw on; by default those of a new figure whose height depends on the number of
        rows.
    format : str, default="{:.2f}"
        Format of the numbers.
    xlabel : str, default=""
        Name of the quantity.
    highlight : str, optional
        Method to draw in colour; all other methods are then grey. By default all methods have the
        same colour.

    Returns
    -------
    Axes
        The axes, with one row per method.

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
    if not rows:
        raise ValueError("values is empty: give at least one method and its number")
    if highlight not in (None, *rows):
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


# ------------------------------------------------------------ calibration


# Lines of text in the upper left corner have this distance, as a fraction of the y axis.
LINE_SPACING = 0.075


def calibration(
    found: Reliability | Mapping[str, Reliability],
    ax: Axes | None = None,
    *,
    xlabel: str = "probability given",
    ylabel: str = "share that held",
) -> Axes:
    """Draw a reliability diagram: observed frequencies against predicted probabilities.

    Parameters
    ----------
    found : Reliability, or mapping from name to Reliability
        Results of :func:`cgmm.metrics.reliability`.
    ax : Axes, optional
        Axes to draw on; by default those of a new figure.
    xlabel, ylabel : str
        Labels of the axes.

    Returns
    -------
    Axes
        The first line is the diagonal, on which the dots of a calibrated model lie. The other lines
        have one dot per bin; the larger the dot, the more cases the bin has. The band around a dot
        has two standard errors of a calibrated bin with as many cases. A dot below the diagonal
        means overconfidence. The label of a line contains the expected calibration error.

    Raises
    ------
    ValueError
        If ``found`` is empty.

    Examples
    --------
    >>> from cgmm.metrics import reliability
    >>> ax = calibration({"too sure": reliability([0.9, 0.9, 0.2], [True, False, False])})
    >>> [text.get_text() for text in ax.texts]
    ['too sure: error 0.33']
    """
    named = {"": found} if isinstance(found, Reliability) else dict(found)
    if not named:
        raise ValueError("found is empty: give calibration(cgmm.metrics.reliability(p, held)).")
    ax = get_axes(ax)
    ax.plot([0, 1], [0, 1], color=MUTED, lw=1, zorder=1)
    for k, (name, bins) in enumerate(named.items()):
        _draw_bins(ax, k, bins)
        words = f"{name}: error {bins.error:.2f}" if name else f"error {bins.error:.2f}"
        label(ax, words, (0.02, 0.96 - k * LINE_SPACING), k, ha="left")
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel=xlabel, ylabel=ylabel)
    return set_equal_scales(ax)


def _draw_bins(ax: Axes, k: int, bins: Reliability) -> None:
    """Draw a dot per bin, and a band of two standard errors around it."""
    p, reach = bins.predicted, 2 * bins.standard_error
    low, high = np.clip([p - reach, p + reach], 0, 1)
    ax.vlines(p, low, high, color=tint(colour(k), 0.35), lw=4, zorder=2)
    ax.plot(p, bins.observed, color=colour(k), ls=line_style(k), lw=1.2, zorder=3)
    sizes = 20 + 100 * bins.counts / bins.counts.max()
    ax.scatter(
        p, bins.observed, s=sizes, color=colour(k), marker=marker(k), ec=BACKGROUND, zorder=4
    )
