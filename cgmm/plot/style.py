"""The style of every figure: its width, its resolution, its letters; and its file. All chapters.

The first cell of a chapter calls :func:`~cgmm.plot.use_style`. An explorer draws its frames in
``STYLE`` whatever the notebook has set.
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

PAGE_WIDTH = 7.2  # inches: 720 CSS pixels, so that 1 pt is 1.4 pixels

STYLE: dict[str, Any] = {
    "figure.figsize": (PAGE_WIDTH, 3.6),
    "figure.dpi": 160,
    "figure.facecolor": BACKGROUND,
    "figure.constrained_layout.use": True,
    "savefig.dpi": "figure",
    "savefig.facecolor": BACKGROUND,
    "savefig.transparent": False,
    # The second one writes what the first has not: ∞, Ĉ, ₁.
    "font.family": ["cgmm Sans", "DejaVu Sans"],
    # The letters of the book's captions, and its formulas' own.
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

# Without the name and version of matplotlib, two installations write the same bytes.
PNG_METADATA = {"Software": None}
SVG_METADATA = dict.fromkeys(["Creator", "Date", "Format", "Type"])
# What is drawn of more marks weighs less as pixels.
LARGEST_SVG = 400_000


def use_style() -> None:
    """Set the book's style for every figure that follows; call it in a notebook's first cell.

    In a notebook figures also keep their full width and carry no metadata, so that two runs write
    the same bytes. Lines and points are SVG on a transparent ground, images and crowds PNG.

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
    """The same for the figures that a notebook shows at the end of a cell."""
    from matplotlib_inline.config import InlineBackend

    # The backend that is not yet active would else set formats of its own.
    InlineBackend.instance(parent=shell).figure_formats = set()
    formatters = shell.display_formatter.formatters
    formatters["image/svg+xml"].for_type(Figure, svg)
    formatters["image/png"].for_type(Figure, lambda figure: None if svg(figure) else png(figure))


def svg(figure: Figure) -> str | None:
    """Write a figure as SVG on a transparent ground, without what differs between two runs.

    Parameters
    ----------
    figure : matplotlib Figure
        It keeps its size.

    Returns
    -------
    str or None
        The SVG file; None for a figure with an image in it or of very many marks, which is better
        kept as PNG.

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
    # Six decimals of a place are four more than are seen, and the last are a processor's own.
    text = PLACE.sub(lambda found: DECIMALS.sub(_rounded, found[0]), text[text.index("<svg") :])
    text = _renamed(text)
    return text if len(text) < LARGEST_SVG else None


PLACE = re.compile(r' (?:d|x|y)="[^"]*"|translate\([^)]*\)')
DECIMALS = re.compile(r"\d+\.\d{3,}")
NAME = re.compile(r"(?<=[pm_])[0-9a-f]{10}\b")


def _renamed(text: str) -> str:
    """Parts of a picture have names that are hashes of all decimals: these are of what is seen."""
    seen = hashlib.sha256(NAME.sub("", text).encode()).hexdigest()[:8]
    names = {name: f"{seen}{n}" for n, name in enumerate(dict.fromkeys(NAME.findall(text)))}
    return NAME.sub(lambda found: names[found[0]], text)


def _rounded(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


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
    >>> png(Figure())[:4]
    b'\\x89PNG'
    """
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata=PNG_METADATA)
    return buffer.getvalue()
