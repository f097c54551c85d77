"""Figures of result files: curves over an amount, and ladders of methods. Chapter 13.

A method looks the same in every figure: ``LOOKS`` gives each its name, colour and mark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes

from cgmm import plot
from cgmm.numerics import FloatArray
from reruns.reading import spread

__all__ = ["LOOKS", "Look", "curves", "ladder"]

N_DOTS = 30  # number of realisations up to which each is drawn

Values = Mapping[str, Sequence[FloatArray]]


class Look(NamedTuple):
    """Name, colour and mark of a method, in every figure."""

    name: str
    """Name beside its mark."""
    colour: int
    """Number of a colour of ``cgmm.plot.COLOURS``; -1 is neutral."""
    marker: str


def ladder(ax: Axes, values: Values, *, names: bool = True) -> Axes:
    """Draw a rung for each method, with a mark at the mean of each level and a bar of quartiles.

    Where realisations are few, each is a faint dot: one far away can pull the mean out of the bar.

    Parameters
    ----------
    ax : Axes
        Axes to draw on.
    values : mapping from str to sequence of (R,) arrays
        Realisations at each level of side information, for each method in ``LOOKS`` from top to
        bottom. The last level has a full mark, those before it have hollow ones.
    names : bool, default=True
        Whether the methods are named at the left.

    Returns
    -------
    Axes
        The same.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> ax = ladder(plt.subplots()[1], {"EM": [np.array([0.1, 0.3]), np.array([0.5, 0.7])]})
    >>> [float(line.get_xdata()[0]) for line in ax.lines if line.get_marker() == "o"]
    [0.2, 0.6]
    """
    for rung, (method, levels) in enumerate(values.items()):
        look = LOOKS[method]
        shade = plot.colour(look.colour)
        ax.axhline(rung, color=plot.tint(plot.NEUTRAL, 0.3), lw=0.8, zorder=0)
        for level, v in enumerate(levels):
            y = rung + 0.32 * (level - (len(levels) - 1) / 2)
            full = level == len(levels) - 1
            if len(v) <= N_DOTS:
                ax.plot(v, np.full(len(v), y), ".", color=shade, alpha=0.35, ms=4, mew=0)
            ax.plot(np.nanquantile(v, [0.25, 0.75]), [y, y], "-", color=shade, lw=1.6)
            face = shade if full else plot.BACKGROUND
            ax.plot(np.nanmean(v), y, look.marker, mec=shade, mfc=face, ms=7, mew=1.4)
    labels = [LOOKS[method].name for method in values] if names else []
    ax.set_yticks(range(len(values)), labels or [""] * len(values), color=plot.INK)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(values) - 0.4, -0.6)
    ax.spines["left"].set_visible(False)
    return ax


def curves(ax: Axes, x: Sequence[float], values: Values, **style: object) -> Axes:
    """Draw a curve for each method: means with bars of one standard error to either side.

    Parameters
    ----------
    ax : Axes
        Axes to draw on.
    x : sequence of float
        The M abscissae.
    values : mapping from str to sequence of M (R,) arrays
        Realisations at each abscissa, for each method in ``LOOKS``.
    **style
        Properties of the line, such as ``ls``. ``ax.legend()`` shows the methods' names.

    Returns
    -------
    Axes
        The same.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> ax = curves(plt.subplots()[1], [1, 2], {"RCA": [np.zeros(3), np.ones(3)]})
    >>> ax.lines[0].get_ydata().tolist()
    [0.0, 1.0]
    """
    for method, column in values.items():
        look = LOOKS[method]
        means = np.array([np.nanmean(v) for v in column])
        errors = np.array([spread(v).standard_error for v in column])
        shade = plot.colour(look.colour)
        line: dict[str, Any] = {"marker": look.marker, "ms": 6, "lw": 1.6, "label": look.name}
        ax.plot(x, means, color=shade, **line | style)
        ax.vlines(x, means - errors, means + errors, color=shade, lw=1.6)
    return ax


LOOKS: dict[str, Look] = {
    "K-means": Look("K-means", 0, "o"),
    "K-means positive": Look("COP, must-links", 0, "^"),
    "K-means both": Look("COP, both", 0, "s"),
    "hard CKmeans": Look("COP-KMeans", 0, "s"),
    "soft CKmeans": Look("soft K-means", 5, "D"),
    "EM": Look("EM", 1, "o"),
    "GMM": Look("EM", 1, "o"),
    "EM positive": Look("EM, must-links", 1, "^"),
    "EM both": Look("EM, both", 1, "s"),
    "hard PPC": Look("hard PPC", 1, "s"),
    "soft PPC": Look("soft PPC", 4, "D"),
    "original": Look("as given", -1, "o"),
    "PCA": Look("PCA", -1, "o"),
    "Xing": Look("Xing et al.", 7, "X"),
    "RCA": Look("RCA", 2, "P"),
    "cFLD": Look("cFLD", 6, "v"),
    "cFLD + RCA": Look("cFLD + RCA", 3, "*"),
    "FLD": Look("FLD", 6, "v"),
    "FLD + RCA": Look("FLD + RCA", 3, "*"),
}
"""The methods of the figures in chapter 13. One hue is one family of methods."""
