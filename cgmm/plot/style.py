"""The style of every figure: its width, its resolution, its letters; and its file. All chapters.

The first cell of a chapter calls :func:`~cgmm.plot.use_style`. An explorer draws its frames in
``STYLE`` whatever the notebook has set.
"""

from __future__ import annotations

import io
import sys
from typing import Any, cast

import matplotlib as mpl
from cycler import cycler
from matplotlib.figure import Figure

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

# Without the name and version of matplotlib, two installations write the same bytes.
PNG_METADATA = {"Software": None}


def use_style() -> None:
    """Set the book's style for every figure that follows; call it in a notebook's first cell.

    In a notebook the inline figures also keep their full width and carry no metadata, so that two
    runs write the same bytes.

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
    >>> png(Figure())[:4]
    b'\\x89PNG'
    """
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata=PNG_METADATA)
    return buffer.getvalue()
