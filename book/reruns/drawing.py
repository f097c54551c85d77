"""Result files as figures: curves over the amount of something, ladders of methods. Chapter 13.

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

__all__ = ["BARS", "LOOKS", "Look", "curves", "ladder"]


class Look(NamedTuple):
    """How a method is drawn, in every figure."""

    name: str
    """Beside its mark."""
    colour: int
    """Number of a colour of ``cgmm.plot.COLOURS``; -1 is neutral."""
    marker: str


def ladder(
    ax: Axes,
    values: Mapping[str, Sequence[FloatArray]],
    bars: str = "quartiles",
    *,
    names: bool = True,
) -> Axes:
    """One rung a method, one mark a level of side information: the mean, with a bar.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    values : mapping from str to sequence of (R,) arrays
        Of each method in ``LOOKS``, from top to bottom, its realisations at each level. The last
        level is drawn as a full mark, those before it as hollow ones.
    bars : {"quartiles", "standard error", "deviation"}, default="quartiles"
        What a bar shows.
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
            ax.plot(BARS[bars](v), [y, y], "-", color=shade, lw=1.6)
            face = shade if full else plot.BACKGROUND
            ax.plot(np.nanmean(v), y, look.marker, mec=shade, mfc=face, ms=7, mew=1.4)
    labels = [LOOKS[method].name for method in values] if names else []
    ax.set_yticks(range(len(values)), labels or [""] * len(values), color=plot.INK)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(values) - 0.4, -0.6)
    ax.spines["left"].set_visible(False)
    return ax


def curves(
    ax: Axes,
    x: Sequence[float],
    values: Mapping[str, Sequence[FloatArray]],
    bars: str = "standard error",
    **style: object,
) -> Axes:
    """One curve a method over the amount of something: means with bars.

    Parameters
    ----------
    ax : Axes
        Where to draw.
    x : sequence of float
        Abscissae, M of them.
    values : mapping from str to sequence of M (R,) arrays
        Of each method in ``LOOKS`` its realisations at each abscissa.
    bars : {"standard error", "quartiles", "deviation"}, default="standard error"
        What a bar shows.
    **style
        For the line, such as ``ls``. Its label is the method's name: ``ax.legend()`` shows it.

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
        ends = np.array([BARS[bars](v) for v in column])
        shade = plot.colour(look.colour)
        line: dict[str, Any] = {"marker": look.marker, "ms": 6, "lw": 1.6, "label": look.name}
        ax.plot(x, means, color=shade, **line | style)
        ax.vlines(x, *ends.T, color=shade, lw=1.6)
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
    "hard PPC, told start": Look("hard PPC, led", 1, "P"),
    "soft PPC": Look("soft PPC", 4, "D"),
    "soft PPC, mean field": Look("soft, mean field", 4, "D"),
    "soft PPC, Gibbs": Look("soft, Gibbs", 4, "P"),
    "constrained EM": Look("constrained EM", 2, "v"),
    "original": Look("as given", -1, "o"),
    "PCA": Look("PCA", -1, "o"),
    "Xing": Look("Xing et al.", 7, "X"),
    "RCA": Look("RCA", 2, "P"),
    "cFLD": Look("cFLD", 6, "v"),
    "cFLD + RCA": Look("cFLD + RCA", 3, "*"),
    "FLD": Look("FLD", 6, "v"),
    "FLD + RCA": Look("FLD + RCA", 3, "*"),
    "a K-means": Look("K-means", 0, "o"),
    "b constrained K-means": Look("COP", 0, "^"),
    "c constrained K-means + Xing": Look("COP, Xing", 7, "X"),
    "c constrained K-means + diagonal Xing": Look("COP, Xing diag.", 7, "p"),
    "d constrained K-means + RCA": Look("COP, RCA", 2, "P"),
    "e EM": Look("EM", 1, "o"),
    "f constrained EM + RCA": Look("EM + RCA", 3, "*"),
}
"""Every method of the result files, as the book draws it. One hue is one family."""

BARS = {
    "standard error": lambda v: np.nanmean(v) + spread(v).standard_error * np.array([-1, 1]),
    "deviation": lambda v: np.nanmean(v) + np.nanstd(v, ddof=1) * np.array([-1, 1]),
    "quartiles": lambda v: np.nanquantile(v, [0.25, 0.75]),
}
"""Lower and upper end of a bar: how well a mean is known, or how much realisations differ."""
