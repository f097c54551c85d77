"""Define the controls of an explorer (sliders and radio buttons), and draw its frames.

Chapters create the controls for :class:`~cgmm.explore.Explorer`; every value of a control has a
name. A frame is the picture of one combination of values. Explorers draw each frame once and keep
it as a lossless WebP image, which is the smallest format for line drawings that all browsers
support. Equal pixels give equal bytes, so the page can store repeated pictures once.
"""

from __future__ import annotations

import base64
import inspect
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from cgmm.numerics import IntArray
from cgmm.plot import STYLE

# ------------------------------------------------------------ controls


# A mapping goes from name to value. For a sequence, ``Control.format`` creates the names.
Values = Sequence[Any] | Mapping[str, Any]
# The script of the book's theme resets all inputs with this name, so controls cannot have it.
SEARCH_FIELD = "q"


@dataclass(frozen=True)
class Control:
    """Base class of ``Slider`` and ``Choice``.

    Parameters
    ----------
    label : str
        Description of the values for readers.
    values : sequence, or mapping from name to value
        A finite list, because a page without a kernel contains one frame for each value.
    format : callable, default=str
        Function that converts a value to its name, if ``values`` is a sequence.
    start : int, default=0
        Position of the value that is shown first.

    Raises
    ------
    ValueError
        If there are no values, two share a name, or ``start`` is not a position.
    """

    label: str
    values: Values
    format: Callable[[Any], str] = str
    start: int = 0

    def __post_init__(self) -> None:
        names = self.names
        if not names:
            raise ValueError(f"the control {self.label!r} has no values: give it at least one")
        twins = [name for name in names if names.count(name) > 1]
        if twins:
            raise ValueError(
                f"two values of the control {self.label!r} are called {twins[0]!r}: a format with "
                "more digits, or a mapping from names to values, tells them apart"
            )
        if not 0 <= self.start < len(names):
            raise ValueError(
                f"start={self.start} is no position among the {len(names)} values of the control "
                f"{self.label!r}: the first is 0"
            )

    @property
    def names(self) -> list[str]:
        """Names of the values, as the page shows them."""
        return [name for name, _ in self._name_values(self.values)]

    @property
    def options(self) -> dict[str, Any]:
        """Values with a frame on the page, by name."""
        return dict(self._name_values(self.values))

    @property
    def live_options(self) -> dict[str, Any]:
        """Values that readers with a kernel can choose, by name."""
        return self.options

    def _name_values(self, values: Values) -> list[tuple[str, Any]]:
        """Return (name, value) tuples, with names from the mapping or from ``format``."""
        if isinstance(values, Mapping):
            return list(values.items())
        return [(self.format(value), value) for value in values]


@dataclass(frozen=True)
class Slider(Control):
    """Control whose values have an order.

    Parameters
    ----------
    label, values, format, start
        As in ``Control``.
    live : sequence or mapping, optional
        A finer list for readers with a kernel; it must contain the value that is shown first.
    button : str, optional
        Text of a button that selects the next value, and after the last one the first.

    Raises
    ------
    ValueError
        As in ``Control``, or if ``live`` lacks the first value shown.

    Examples
    --------
    >>> Slider("noise", [0.0, 0.15, 0.3], format="{:.2f}".format).names
    ['0.00', '0.15', '0.30']
    """

    live: Values | None = None
    button: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.names[self.start] not in self.live_options:
            raise ValueError(
                f"the live values of the slider {self.label!r} lack {self.names[self.start]!r}, "
                "which is shown first: add it to them, or change start"
            )

    @property
    def live_options(self) -> dict[str, Any]:
        """Values that readers with a kernel can choose, by name."""
        return self.options if self.live is None else dict(self._name_values(self.live))


@dataclass(frozen=True)
class Choice(Control):
    """Control whose values have no order, shown as radio buttons.

    Parameters
    ----------
    label, values, format, start
        As in ``Control``.

    Examples
    --------
    >>> Choice("start", {"far left": -9.0, "in the middle": 0.0}).names
    ['far left', 'in the middle']
    """


def check_controls(controls: Mapping[str, Control], *functions: Callable[..., Any]) -> None:
    """Raise an error unless the names are allowed and the functions take exactly these controls."""
    for name, control in controls.items():
        if not isinstance(control, Control):
            raise ValueError(f"the control {name!r} is {control!r}: give a Slider or a Choice")
        if name == SEARCH_FIELD:
            raise ValueError(
                f"a control cannot be called {name!r}: the page's search field has that name, and "
                "would empty it. Give it a longer one."
            )
    if not controls:
        raise ValueError("an explorer without controls is a figure: give at least one control")
    for function in functions:
        try:
            inspect.signature(function).bind(**controls)
        except TypeError as error:
            raise ValueError(
                f"{getattr(function, '__name__', function)} does not take the controls "
                f"{list(controls)} ({error}): name the controls like its arguments"
            ) from error


# ------------------------------------------------------------ frames


# A combination of values is identified by this tuple, which has one name per control.
Names = tuple[str, ...]


class Frame(NamedTuple):
    """Picture and description of one combination of values."""

    picture: str
    """The picture as a data URI."""
    size: tuple[int, int]
    """Width and height of the picture in pixels."""
    text: str
    """Sentence that describes the picture."""


def draw_frame(
    draw: Callable[..., Any],
    describe: Callable[..., str],
    values: Mapping[str, Any],
    dpi: float,
    colours: int | None = None,
) -> Frame:
    """Return picture and description of one combination of values."""
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
    picture = "data:image/webp;base64," + base64.b64encode(encode_webp(pixels, colours)).decode()
    return Frame(picture, (pixels.shape[1], pixels.shape[0]), text)


def encode_webp(pixels: IntArray, colours: int | None = None) -> bytes:
    """Encode (height, width, 4) pixels as WebP; if they are opaque, limit the number of colours."""
    with explain_missing_package("Pillow", "an explorer", "widgets"):
        from PIL import Image, features
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


# ------------------------------------------------------------ packages that are not installed


@contextmanager
def explain_missing_package(package: str, purpose: str, extra: str) -> Iterator[None]:
    """Replace an ImportError in the block by one that says how to install the package.

    Parameters
    ----------
    package : str
        Name of the package that the block imports.
    purpose : str
        Subject of the error message, for example "a live figure".
    extra : str
        Name of the optional dependencies (the extra) of cgmm that install this package.
    """
    try:
        yield
    except ImportError as error:
        raise ImportError(
            f"{purpose} needs {package}: install it with pip install "
            f"'constrained-mixtures[{extra}]'"
        ) from error
