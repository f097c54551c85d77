"""Axes with equal scales, and labels on them.

The functions of this subpackage, which all chapters use, draw on these axes.
"""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator

from cgmm.plot.style import BACKGROUND, INK
from cgmm.plot.style import colour as colour_of


def axes_or_new(ax: Axes | None) -> Axes:
    """Return the given axes, or those of a new figure."""
    return plt.subplots()[1] if ax is None else ax


def equal_scales(ax: Axes) -> Axes:
    """Set equal scales in both directions, so that circles are round, and at most five ticks."""
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
    """Write a label beside the object that it names, instead of a legend.

    Parameters
    ----------
    ax : Axes
        Where to write.
    text : str
        The label.
    xy : (float, float)
        Position in data coordinates.
    colour : int or str, default=INK
        A component's number or a colour.
    offset : (float, float), default=(0, 0)
        Offset from the position in points. A text above it is aligned at its bottom, a text below
        at its top.
    ha : {"center", "left", "right"}, default="center"
        Part of the text that is at the position.

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
        # An outline in the background's colour keeps the label legible above marks.
        "path_effects": [withStroke(linewidth=3, foreground=BACKGROUND)],
        "zorder": 6,
    }
    ax.annotate(text, xy, offset, textcoords="offset points", annotation_clip=False, **look)
    return ax
