"""The style of all figures: colours, markers, widths, fonts, and the output as SVG and PNG.

Each component has the same colour, marker and line style in every figure of the book. The first
cell of every chapter calls :func:`~cgmm.plot.use_style`. Explorers draw their frames in ``STYLE``,
regardless of the settings of the notebook.

====  ======================================================================
k     a component or class, counted from 0; -1 stands for the unlabelled
r_ik  responsibility of component k for point i
====  ======================================================================
"""

from __future__ import annotations

import hashlib
import io
import re
import sys
from importlib.resources import as_file, files
from typing import Any, cast

import matplotlib as mpl
import numpy as np
from cycler import cycler
from matplotlib.collections import QuadMesh
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager
from matplotlib.image import AxesImage

from cgmm.numerics import FloatArray

# ------------------------------------------------------------ colours, markers and lines


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


# ------------------------------------------------------------ settings and output


# Figures are 7.2 inches wide and shown at 720 CSS pixels, so 1 pt is 1.4 pixels.
PAGE_WIDTH = 7.2

STYLE: dict[str, Any] = {
    "figure.figsize": (PAGE_WIDTH, 3.6),
    "figure.dpi": 160,
    "figure.facecolor": BACKGROUND,
    "figure.constrained_layout.use": True,
    "savefig.dpi": "figure",
    "savefig.facecolor": BACKGROUND,
    "savefig.transparent": False,
    # The second font has the characters that the first lacks: ∞, Ĉ, ₁.
    "font.family": ["cgmm Sans", "DejaVu Sans"],
    # Formulas have the same font as those of the book.
    "mathtext.fontset": "cm",
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

with as_file(files("cgmm.plot").joinpath("fonts/cgmm-sans.ttf")) as font:
    fontManager.addfont(font)

# The name and version of matplotlib are left out, so all installations write the same bytes.
PNG_METADATA = {"Software": None}
SVG_METADATA = dict.fromkeys(["Creator", "Date", "Format", "Type"])
# Above this number of characters a PNG is smaller than an SVG.
LARGEST_SVG = 400_000


def use_style() -> None:
    """Set the book's style for all later figures; call it in the first cell of a notebook.

    In a notebook, figures also keep their full width and have no metadata, so two runs write the
    same bytes. Figures of lines and points are SVG on a transparent background; figures with images
    or very many marks are PNG.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
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
    """Set the formats of figures that a notebook shows at the end of a cell."""
    from matplotlib_inline.config import InlineBackend

    # Otherwise the backend would set its own formats when it becomes active.
    InlineBackend.instance(parent=shell).figure_formats = set()
    formatters = shell.display_formatter.formatters
    formatters["image/svg+xml"].for_type(Figure, svg)
    formatters["image/png"].for_type(Figure, lambda figure: None if svg(figure) else png(figure))


def svg(figure: Figure) -> str | None:
    """Write a figure as SVG on a transparent background, with the same bytes in every run.

    Parameters
    ----------
    figure : matplotlib Figure
        The figure; it keeps its size.

    Returns
    -------
    str or None
        The SVG file; None for figures with an image or very many marks, for which PNG is smaller.

    Examples
    --------
    >>> svg(Figure()).startswith("<svg")
    True
    """
    if figure.findobj(lambda one: isinstance(one, AxesImage | QuadMesh)):
        return None
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata=SVG_METADATA, transparent=True)
    text = buffer.getvalue()
    # Round coordinates to two decimals: further digits are invisible, and the last ones depend on
    # the processor, so files would differ.
    text = COORDINATE.sub(
        lambda found: LONG_DECIMAL.sub(_round_decimals, found[0]), text[text.index("<svg") :]
    )
    text = _rename_parts(text)
    return text if len(text) < LARGEST_SVG else None


COORDINATE = re.compile(r' (?:d|x|y)="[^"]*"|translate\([^)]*\)')
LONG_DECIMAL = re.compile(r"\d+\.\d{3,}")
PART_NAME = re.compile(r"(?<=[pm_])[0-9a-f]{10}\b")


def _rename_parts(text: str) -> str:
    """Rename the parts of a picture by a hash of its rounded text instead of all decimals."""
    digest = hashlib.sha256(PART_NAME.sub("", text).encode()).hexdigest()[:8]
    names = {name: f"{digest}{n}" for n, name in enumerate(dict.fromkeys(PART_NAME.findall(text)))}
    return PART_NAME.sub(lambda found: names[found[0]], text)


def _round_decimals(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def png(figure: Figure) -> bytes:
    """Encode a figure as PNG, without metadata that differs between installations.

    Parameters
    ----------
    figure : matplotlib Figure
        The figure; it keeps its size and resolution.

    Returns
    -------
    bytes
        The PNG file.

    Examples
    --------
    >>> png(Figure())[:4]
    b'\\x89PNG'
    """
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata=PNG_METADATA)
    return buffer.getvalue()
