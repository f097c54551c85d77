"""Frames of an explorer as lossless WebP images."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from cgmm.numerics import IntArray
from cgmm.plot import STYLE


class Frame(NamedTuple):
    """What an explorer shows for one choice."""

    image: bytes
    """The picture, as lossless WebP."""
    size: tuple[int, int]
    """Its width and height in pixels."""
    text: str
    """The sentence that says what it shows."""


def check_bytes(n_bytes: int, n_frames: int, max_bytes: int) -> None:
    """The page stays light."""
    if n_bytes > max_bytes:
        raise ValueError(
            f"the explorer takes {n_bytes} bytes, more than max_bytes={max_bytes}: its {n_frames} "
            f"frames have {n_bytes / n_frames / 1e3:.0f} kB on average. Give fewer values, fewer "
            "points, or lower the dpi"
        )


# ---------------------------------------------------------------------------- pictures


def render_frame(
    draw: Callable[..., Any], values: Mapping[str, Any], dpi: float
) -> tuple[bytes, tuple[int, int]]:
    """Draw one figure in the book's style, and encode it; nothing else may show it."""
    with mpl.style.context(["default", STYLE]):
        drawn = draw(**values)
        figure = drawn if isinstance(drawn, Figure) else getattr(drawn, "figure", None)
        if not isinstance(figure, Figure):
            raise ValueError(f"draw returned {drawn!r} for {values}: it must return its Figure")
        figure.set_dpi(dpi)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        pixels = np.array(canvas.buffer_rgba())
    plt.close(figure)
    return _webp(pixels), (pixels.shape[1], pixels.shape[0])


def _webp(pixels: IntArray) -> bytes:
    """Encode (height, width, 4) bytes without loss."""
    try:
        from PIL import Image, features
    except ImportError as error:
        raise ImportError(
            "an explorer needs Pillow: install it with pip install 'cgmm[widgets]'"
        ) from error
    if not features.check("webp"):
        raise ImportError(
            "this build of Pillow cannot write WebP: install its wheel with pip install "
            "--force-reinstall 'cgmm[widgets]'"
        )
    image = Image.fromarray(pixels)
    if (pixels[..., 3] == 255).all():
        image = image.convert("RGB")
    buffer = io.BytesIO()
    image.save(buffer, "WEBP", lossless=True, exact=True, quality=75, method=4)
    return buffer.getvalue()


def data_uri(image: bytes) -> str:
    """A picture as an address that contains it."""
    return "data:image/webp;base64," + base64.b64encode(image).decode()
