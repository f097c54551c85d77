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
from typing import Any, cast

import matplotlib as mpl
import numpy as np
from cycler import cycler
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from cgmm.numerics import FloatArray

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


def blend(responsibilities: FloatArray) -> FloatArray:
    """(N, 3) colours: the mean of the components' colours under r_ik."""
    palette = np.array([to_rgb(colour(k)) for k in range(responsibilities.shape[1])])
    return np.clip(responsibilities @ palette, 0, 1)


def halo_of(width: float = 3) -> list[withStroke]:
    """An outline in the background's colour, so that text stays legible above marks."""
    return [withStroke(linewidth=width, foreground=BACKGROUND)]


def text_colour(k: int) -> str:
    """Colour of text about component k (``label`` has a parameter of the function's name)."""
    return colour(k, text=True)
