"""Colour, marker and line style of each component, the same in every figure.

All figures of the book take them from here.

====  ======================================================================
k     a component or class, counted from 0; -1 stands for the unlabelled
r_ik  responsibility of component k for point i
====  ======================================================================
"""

from __future__ import annotations

import numpy as np
from matplotlib.colors import to_rgb

from cgmm.numerics import FloatArray

BACKGROUND = "#fcfcfb"
INK = "#1d2129"
MUTED = "#5c6370"
# This is the colour of points without a label, and of everything else without a component.
NEUTRAL = "#7d7d78"

# The first four differ in lightness: blue, orange, green and wine. The others are crimson,
# periwinkle, umber and mauve.
COLOURS = ("#414c8b", "#db7223", "#1d7e5f", "#550018", "#c11f3e", "#6a7dc6", "#624802", "#ab819f")
# Text has the same hues, but is dark enough for a contrast of 4.5 to 1.
TEXT_COLOURS = (
    "#414c8b", "#a54c05", "#1d7e5f", "#550018", "#c11f3e", "#4a5fb4", "#624802", "#87597a",
)  # fmt: skip
# With nine markers and eight colours, 72 components have distinct pairs of marker and colour.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p", "*")

LineStyle = str | tuple[float, tuple[float, ...]]
# Each tuple is an offset and the lengths of dash, gap, dash, gap in units of the line width.
LINE_STYLES: tuple[LineStyle, ...] = (
    "-",
    (0, (5, 2)),
    (0, (1.5, 1.2)),
    (0, (6, 1.5, 1.5, 1.5)),
    (0, (9, 3)),
)


def colour(k: int, *, text: bool = False) -> str:
    """Return the colour of component k from ``COLOURS``, which repeat after the eighth.

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
    """Return the marker of component k, one of nine; unlabelled points (-1) have a circle.

    Examples
    --------
    >>> [marker(k) for k in (-1, 0, 1, 2)]
    ['o', 'o', 's', '^']
    """
    return MARKERS[k % len(MARKERS)] if k >= 0 else "o"


def line_style(k: int) -> LineStyle:
    """Return the line style of component k, one of five; -1 gives a solid line.

    Examples
    --------
    >>> line_style(0)
    '-'
    """
    return LINE_STYLES[k % len(LINE_STYLES)] if k >= 0 else "-"


def tint(shade: str, strength: float = 0.15) -> tuple[float, float, float]:
    """Mix a colour with the background to a light, opaque colour for areas.

    Examples
    --------
    >>> tint(INK, 0.0) == to_rgb(BACKGROUND)
    True
    """
    return tuple(strength * np.array(to_rgb(shade)) + (1 - strength) * np.array(to_rgb(BACKGROUND)))


def blend(responsibilities: FloatArray) -> FloatArray:
    """Return (N, 3) colours: the mean of the components' colours under r_ik."""
    palette = np.array([to_rgb(colour(k)) for k in range(responsibilities.shape[1])])
    return np.clip(responsibilities @ palette, 0, 1)
