"""Define the style of all figures (colours, markers, widths, fonts), and write SVG and PNG files.

Each component has the same colour, marker and line style in every figure of the book. The first
cell of every chapter calls :func:`~cgmm.plot.use_style`. Explorers draw their frames in ``STYLE``,
regardless of the settings of the notebook.

====  ======================================================================
k     index of a component or class, from 0; -1 means unlabelled
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
# This is the colour of unlabelled points, and of all other marks that belong to no component.
NEUTRAL = "#7d7d78"

# The first four colours differ in lightness: blue, orange, green and wine. The others are crimson,
# periwinkle, umber and mauve.
COLOURS = ("#414c8b", "#db7223", "#1d7e5f", "#550018", "#c11f3e", "#6a7dc6", "#624802", "#ab819f")
# These colours have the same hues as those above, but are dark enough for text, which needs a
# contrast of 4.5 to 1.
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
    """Return the colour of component k from ``COLOURS``; component 8 has the colour of component 0.

    Parameters
    ----------
    k : int
        Index of the component or class; -1 gives the grey of unlabelled points.
    text : bool, default=False
        True: return the darker shade for text.

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
    """Return the marker of component k, one of nine; -1 (unlabelled) gives a circle.

    Examples
    --------
    >>> [marker(k) for k in (-1, 0, 1, 2)]
    ['o', 'o', 's', '^']
    """
    return MARKERS[k % len(MARKERS)] if k >= 0 else "o"


def line_style(k: int) -> LineStyle:
    """Return the line style of component k, one of five; -1 (unlabelled) gives a solid line.

    Examples
    --------
    >>> line_style(0)
    '-'
    """
    return LINE_STYLES[k % len(LINE_STYLES)] if k >= 0 else "-"


def tint(shade: str, strength: float = 0.15) -> tuple[float, float, float]:
    """Return a light, opaque shade of a colour for areas, by mixing it with the background.

    Examples
    --------
    >>> tint(INK, 0.0) == to_rgb(BACKGROUND)
    True
    """
    return tuple(strength * np.array(to_rgb(shade)) + (1 - strength) * np.array(to_rgb(BACKGROUND)))


def blend(responsibilities: FloatArray) -> FloatArray:
    """Return (N, 3) colours: the mean of the components' colours, weighted by r_ik."""
    palette = np.array([to_rgb(colour(k)) for k in range(responsibilities.shape[1])])
    return np.clip(responsibilities @ palette, 0, 1)


# ------------------------------------------------------------ settings and output


# Figures are 7.2 inches wide, and pages show them at 720 CSS pixels, so 1 pt is 1.4 pixels.
PAGE_WIDTH = 7.2

STYLE: dict[str, Any] = {
    "figure.figsize": (PAGE_WIDTH, 3.6),
    "figure.dpi": 160,
    "figure.facecolor": BACKGROUND,
    "figure.constrained_layout.use": True,
    "savefig.dpi": "figure",
    "savefig.facecolor": BACKGROUND,
    "savefig.transparent": False,
    # The first font has no ∞, Ĉ and ₁, so matplotlib takes them from the second one.
    "font.family": ["cgmm Sans", "DejaVu Sans"],
    # Formulas in figures have the same font as formulas in the text.
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

# Files do not contain the version of matplotlib, so all installations write the same bytes.
PNG_METADATA = {"Software": None}
SVG_METADATA = dict.fromkeys(["Creator", "Date", "Format", "Type"])
# Above this number of characters, an SVG file is larger than a PNG file of the same figure.
LARGEST_SVG = 400_000


def use_style() -> None:
    """Set the book's style for all figures that follow; call it in the first cell of a notebook.

    In a notebook, figures also keep their full width and contain no metadata, so two runs write the
    same bytes. Figures are SVG on a transparent background, or PNG if they contain images or very
    many marks.

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
    """Set the format in which Jupyter shows the figures of a cell."""
    from matplotlib_inline.config import InlineBackend

    # Clear the formats of Jupyter's inline backend; otherwise it sets its own when it becomes
    # active.
    InlineBackend.instance(parent=shell).figure_formats = set()
    formatters = shell.display_formatter.formatters
    formatters["image/svg+xml"].for_type(Figure, svg)
    formatters["image/png"].for_type(Figure, lambda figure: None if svg(figure) else png(figure))


def svg(figure: Figure) -> str | None:
    """Write a figure as SVG on a transparent background, with the same bytes in every run.

    Parameters
    ----------
    figure : matplotlib Figure
        The figure, whose size is kept.

    Returns
    -------
    str or None
        Content of the SVG file; None for figures that contain an image or very many marks, because
        a PNG file is smaller.

    Examples
    --------
    >>> svg(Figure()).startswith("<svg")
    True
    """
    if figure.findobj(lambda artist: isinstance(artist, AxesImage | QuadMesh)):
        return None
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata=SVG_METADATA, transparent=True)
    text = buffer.getvalue()
    # Round coordinates to two decimals: further digits are invisible, and the last digits depend on
    # the processor, so files from different machines would differ.
    text = COORDINATE.sub(
        lambda match: LONG_DECIMAL.sub(_round_decimals, match[0]), text[text.index("<svg") :]
    )
    text = _rename_ids(text)
    return text if len(text) < LARGEST_SVG else None


COORDINATE = re.compile(r' (?:d|x|y)="[^"]*"|translate\([^)]*\)')
LONG_DECIMAL = re.compile(r"\d+\.\d{3,}")
HASH_IN_ID = re.compile(r"(?<=[pm_])[0-9a-f]{10}\b")


def _rename_ids(text: str) -> str:
    """Replace matplotlib's ids, which depend on all decimals, by a hash of the rounded SVG."""
    digest = hashlib.sha256(HASH_IN_ID.sub("", text).encode()).hexdigest()[:8]
    hashes = dict.fromkeys(HASH_IN_ID.findall(text))
    new_ids = {old: f"{digest}{n}" for n, old in enumerate(hashes)}
    return HASH_IN_ID.sub(lambda match: new_ids[match[0]], text)


def _round_decimals(number: re.Match[str]) -> str:
    """Return a number with at most two decimals."""
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def png(figure: Figure) -> bytes:
    """Write a figure as PNG, without metadata that differs between installations.

    Parameters
    ----------
    figure : matplotlib Figure
        The figure, whose size and resolution are kept.

    Returns
    -------
    bytes
        Content of the PNG file.

    Examples
    --------
    >>> png(Figure())[:4]
    b'\\x89PNG'
    """
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata=PNG_METADATA)
    return buffer.getvalue()
