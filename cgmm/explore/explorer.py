"""The explorer: a figure for every combination of its controls' values.

``page.py`` shows it to readers without a kernel, ``widget.py`` to readers with one. All chapters
with sliders create an :class:`Explorer`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any

from matplotlib.figure import Figure

from cgmm.explore.controls import Control, check_controls
from cgmm.explore.frames import Frame, Names, draw_frame
from cgmm.explore.page import page_html
from cgmm.explore.widget import live_widget


class Explorer:
    """A figure with sliders, for a notebook and for the page made from it.

    All frames are drawn when the explorer is created, so errors appear in that cell.

    Parameters
    ----------
    draw : callable
        ``draw(**values)`` returns a matplotlib Figure, or the Axes of one; it is called once for
        every combination of values, in the style of ``cgmm.plot``, regardless of notebook settings.
        All figures need the same size.
    controls : mapping from str to Slider or Choice
        Control of each argument of ``draw``, in the order in which the page shows them.
    title : str
        Title of the explorer.
    describe : callable
        ``describe(**values)`` returns a sentence that says what the frame shows, with its numbers.
        It is the picture's alternative text, and appears below it.
    max_frames : int, default=240
        Largest number of combinations; more raise an error.
    max_bytes : int, default=3_000_000
        Largest size of the page; more raises an error.
    dpi : float, default=144
        Resolution of the frames, in pixels per inch. The page shows them at most 704 CSS pixels
        wide, which are twice as many device pixels on high-resolution screens.
    colours : int, optional
        Number of colours in the palette of each frame, from 2 to 256. With 64 colours a frame takes
        half the bytes, which permits twice the pixels, and only shades of edges change. By default
        all colours are kept.

    Attributes
    ----------
    n_frames : int
        Number of combinations.

    Raises
    ------
    ValueError
        If the controls do not fit the functions, there are too many frames or bytes, a frame
        differs in size, a description is empty, or ``colours`` is out of range.
    ImportError
        If Pillow is missing or cannot write WebP.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from cgmm.explore import Slider
    >>> def draw(n):
    ...     figure, ax = plt.subplots(figsize=(2, 1))
    ...     ax.plot(range(n + 1))
    ...     return figure
    >>> Explorer(
    ...     draw,
    ...     {"n": Slider("points", [1, 2, 3])},
    ...     title="A line that grows",
    ...     describe=lambda n: f"A line from 0 to {n}.",
    ... )
    Explorer('A line that grows', 3 frames: points)
    """

    def __init__(
        self,
        draw: Callable[..., Figure],
        controls: Mapping[str, Control],
        *,
        title: str,
        describe: Callable[..., str],
        max_frames: int = 240,
        max_bytes: int = 3_000_000,
        dpi: float = 144,
        colours: int | None = None,
    ) -> None:
        self.draw, self.describe = draw, describe
        self.controls, self.title = dict(controls), title
        self.dpi, self.colours = dpi, colours
        check_controls(self.controls, draw, describe)
        if colours is not None and not 2 <= colours <= 256:
            raise ValueError(f"colours is {colours!r}: a palette has 2 to 256, None keeps all")
        self.n_frames = math.prod(len(control.values) for control in self.controls.values())
        _check_count(self.controls, self.n_frames, max_frames)
        # Keys are tuples of value names, last control varying fastest. Names, unlike values, are
        # shared by the coarse and the fine list of a slider.
        combinations = itertools.product(*(control.names for control in self.controls.values()))
        self._frames = {names: self._draw(names) for names in combinations}
        _check_sizes(self._frames)
        _check_bytes(len(self.html().encode()), self.n_frames, max_bytes)

    def __repr__(self) -> str:
        labels = " × ".join(control.label for control in self.controls.values())
        return f"Explorer({self.title!r}, {self.n_frames} frames: {labels})"

    def _draw(self, names: Names) -> Frame:
        """Draw and describe one combination."""
        values = {
            argument: {**control.live_options, **control.options}[name]
            for (argument, control), name in zip(self.controls.items(), names, strict=True)
        }
        return draw_frame(self.draw, self.describe, values, self.dpi, self.colours)

    def _frame(self, names: Names) -> Frame:
        """Return the stored frame of a combination, or draw it."""
        return self._frames.get(names) or self._draw(names)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        """Return widget and page together; Jupyter and the book show the one that they support."""
        bundle = {"text/plain": repr(self), "text/html": self.html()}
        try:
            widget = self.widget()
        except ImportError:
            return bundle
        return {**widget._repr_mimebundle_(), **bundle}

    def html(self) -> str:
        """Return the explorer for pages without a kernel, as one self-contained HTML element.

        Returns
        -------
        str
            Equal frames give equal bytes, on all machines and at every call.
        """
        start = tuple(control.names[control.start] for control in self.controls.values())
        return page_html(self.title, self.controls, self._frames, start)

    def widget(self) -> Any:
        """Return the explorer for notebooks with a kernel, as widgets that redraw the figure.

        Returns
        -------
        ipywidgets.VBox
            Title, picture, controls and description.

        Raises
        ------
        ImportError
            If ipywidgets is missing.
        """
        return live_widget(self.title, self.controls, self._frame)


def _check_count(controls: Mapping[str, Control], n_frames: int, max_frames: int) -> None:
    """Raise an error if there are too many frames."""
    if n_frames > max_frames:
        product = " × ".join(str(len(control.values)) for control in controls.values())
        raise ValueError(
            f"{product} = {n_frames} frames are more than max_frames={max_frames}: give fewer "
            "values (a slider's live=... may keep the fine list for readers with a kernel)"
        )


def _check_sizes(frames: Mapping[Names, Frame]) -> None:
    """Raise an error if frames differ in size, which would make the page jump."""
    first, size = next((names, frame.size) for names, frame in frames.items())
    for names, frame in frames.items():
        if frame.size != size:
            raise ValueError(
                f"the frame for {names} has {frame.size[0]} × {frame.size[1]} pixels, the one for "
                f"{first} {size[0]} × {size[1]}: give draw one fixed figsize"
            )


def _check_bytes(n_bytes: int, n_frames: int, max_bytes: int) -> None:
    """Raise an error if the page is too large."""
    if n_bytes > max_bytes:
        raise ValueError(
            f"the explorer takes {n_bytes} bytes, more than max_bytes={max_bytes}: its {n_frames} "
            f"frames have {n_bytes / n_frames / 1e3:.0f} kB on average. Give fewer values, fewer "
            "points, or lower the dpi"
        )
