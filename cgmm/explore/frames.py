"""Frames: the pictures of an explorer, one for each combination of values.

Explorers draw each frame once and keep it as a lossless WebP image. This is the smallest format of
line drawings that every browser shows. Equal pixels give equal bytes, so the page can store
repeated pictures once.
"""

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

# A combination of values is given by one name per control.
Names = tuple[str, ...]


class Frame(NamedTuple):
    """Picture and description of one combination of values."""

    picture: str
    """The picture as a data URI."""
    size: tuple[int, int]
    """Width and height of the picture in pixels."""
    text: str
    """Sentence that says what the picture shows."""


def draw_frame(
    draw: Callable[..., Any],
    describe: Callable[..., str],
    values: Mapping[str, Any],
    dpi: float,
    colours: int | None = None,
) -> Frame:
    """Draw and describe one combination of values, and close the figure."""
    text = describe(**values)
    if not isinstance(text, str) or not text.strip():
        raise ValueError(
            f"describe returned {text!r} for {values}: it must say in a sentence what the "
            "figure shows"
        )
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
    picture = "data:image/webp;base64," + base64.b64encode(webp(pixels, colours)).decode()
    return Frame(picture, (pixels.shape[1], pixels.shape[0]), text)


def webp(pixels: IntArray, colours: int | None = None) -> bytes:
    """Encode (height, width, 4) bytes; reduce opaque pictures to a number of colours, if given."""
    try:
        from PIL import Image, features
    except ImportError as error:
        raise ImportError(
            "an explorer needs Pillow: install it with pip install 'constrained-mixtures[widgets]'"
        ) from error
    if not features.check("webp"):
        raise ImportError(
            "this build of Pillow cannot write WebP: install its wheel with pip install "
            "--force-reinstall 'constrained-mixtures[widgets]'"
        )
    image = Image.fromarray(pixels)
    if (pixels[..., 3] == 255).all():
        image = image.convert("RGB")
        if colours is not None:
            method, dither = Image.Quantize.MEDIANCUT, Image.Dither.NONE
            image = image.quantize(colours, method=method, dither=dither).convert("RGB")
    buffer = io.BytesIO()
    image.save(buffer, "WEBP", lossless=True, exact=True, quality=75, method=4)
    return buffer.getvalue()
