"""Figures in one style: the same colours, markers and lines for the same things in all chapters."""

from cgmm.plot.contours import boundary, density, ellipses
from cgmm.plot.curves import density_1d, dots, trace
from cgmm.plot.panels import compare, label
from cgmm.plot.points import scatter
from cgmm.plot.style import (
    BACKGROUND,
    COLOURS,
    INK,
    LINE_STYLES,
    MARKERS,
    MUTED,
    NEUTRAL,
    STYLE,
    TEXT_COLOURS,
    colour,
    line_style,
    marker,
    png,
    tint,
    use_style,
)

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
