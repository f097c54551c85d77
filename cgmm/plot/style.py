"""The style of all figures (width, resolution, fonts) and their output as SVG and PNG.

The first cell of every chapter calls :func:`~cgmm.plot.use_style`. Explorers draw their frames in
``STYLE``, regardless of the settings of the notebook.
"""

from __future__ import annotations

import hashlib
import io
import re
import sys
from importlib.resources import as_file, files
from typing import Any, cast

import matplotlib as mpl
from cycler import cycler
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager
from matplotlib.image import AxesImage

from cgmm.plot.looks import BACKGROUND, COLOURS, INK, MUTED

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
    text = PLACE.sub(
        lambda found: DECIMALS.sub(_round_decimals, found[0]), text[text.index("<svg") :]
    )
    text = _rename_parts(text)
    return text if len(text) < LARGEST_SVG else None


PLACE = re.compile(r' (?:d|x|y)="[^"]*"|translate\([^)]*\)')
DECIMALS = re.compile(r"\d+\.\d{3,}")
NAME = re.compile(r"(?<=[pm_])[0-9a-f]{10}\b")


def _rename_parts(text: str) -> str:
    """Rename the parts of a picture by a hash of its rounded text instead of all decimals."""
    digest = hashlib.sha256(NAME.sub("", text).encode()).hexdigest()[:8]
    names = {name: f"{digest}{n}" for n, name in enumerate(dict.fromkeys(NAME.findall(text)))}
    return NAME.sub(lambda found: names[found[0]], text)


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
