"""Explorers: a figure with sliders that lives twice, with a kernel and in a page that has none.

An explorer draws the figure for every combination of its controls' values. With a kernel, Jupyter
shows sliders that call the drawing function. Without one (the rendered book, a saved notebook) the
same figures are frames inside the page, moved by native sliders and a few lines of script; without
script the page still shows the first frame and the sentence that describes it.

======  ===================================================================
choice  one index a control: which of its values is shown
frame   the picture for one choice, and the sentence that says what it shows
======  ===================================================================
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterator, Mapping
from html import escape
from typing import Any

from matplotlib.figure import Figure

from cgmm.explore.controls import Control, check_controls, control_widget
from cgmm.explore.frames import Frame, check_bytes, data_uri, render_frame
from cgmm.explore.page import PAGE, PAGE_SCRIPT, PAGE_STYLE, control_html, image_html

# ---------------------------------------------------------------------------- the explorer


class Explorer:
    """A figure with sliders, for a notebook and for the page made from it.

    All frames are drawn when the explorer is made, so that a mistake fails the cell.

    Parameters
    ----------
    draw : callable
        ``draw(**values)`` returns a matplotlib Figure, or the Axes of one; it is called once for
        every combination of values, in the style of ``cgmm.plot`` whatever the notebook has set.
        All figures need the same size.
    controls : mapping from str to Slider or Choice
        Which control sets which argument of ``draw``, in the order of the page.
    title : str
        What the explorer is about.
    describe : callable
        ``describe(**values)`` returns a sentence that says what the frame shows, with its numbers.
        It is the picture's alternative text, and stands below it.
    max_frames : int, default=240
        More combinations than this are refused.
    max_bytes : int, default=3_000_000
        A larger page is refused.
    dpi : float, default=144
        Resolution of the frames, in pixels an inch.

    Attributes
    ----------
    n_frames : int
        Number of combinations.

    Raises
    ------
    ValueError
        If the controls do not fit the functions, there are too many frames or bytes, a frame
        differs in size, or a description is empty.
    ImportError
        If Pillow is missing or cannot write WebP.

    Examples
    --------
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
    ) -> None:
        self.draw, self.describe = draw, describe
        self.controls, self.title, self.dpi = dict(controls), title, dpi
        check_controls(self.controls, draw, describe)
        self.n_frames = math.prod(len(control.values) for control in self.controls.values())
        _check_count(self.controls, self.n_frames, max_frames)
        # Keyed by the values' names, which the coarse and the fine list of a slider share.
        self._frames: dict[tuple[str, ...], Frame] = {}
        for names in self._choices():
            self._frames[names] = self._frame(names)
        _check_sizes(self._frames)
        check_bytes(len(self.html().encode()), self.n_frames, max_bytes)

    def __repr__(self) -> str:
        labels = " × ".join(control.label for control in self.controls.values())
        return f"Explorer({self.title!r}, {self.n_frames} frames: {labels})"

    def _choices(self) -> Iterator[tuple[str, ...]]:
        """Names of every combination of values; the last control runs fastest."""
        return itertools.product(*(control.names for control in self.controls.values()))

    @property
    def _start(self) -> tuple[str, ...]:
        """Names of the combination that is shown first."""
        return tuple(control.names[control.start] for control in self.controls.values())

    def _frame(self, names: tuple[str, ...]) -> Frame:
        """Draw and describe one combination, or recall it."""
        if names in self._frames:
            return self._frames[names]
        values = {
            argument: {**control.live_options, **control.options}[name]
            for (argument, control), name in zip(self.controls.items(), names, strict=True)
        }
        text = self.describe(**values)
        if not isinstance(text, str) or not text.strip():
            raise ValueError(
                f"describe returned {text!r} for {values}: it must say in a sentence what the "
                "figure shows"
            )
        return Frame(*render_frame(self.draw, values, self.dpi), text)

    # ------------------------------------------------------------------ its two lives

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        """All lives at once; Jupyter and the book each take the one that they can show."""
        bundle = {"text/plain": repr(self), "text/html": self.html()}
        try:
            widget = self.widget()
        except ImportError:
            return bundle
        return {**widget._repr_mimebundle_(), **bundle}

    def html(self) -> str:
        """The life without a kernel: one element that brings its frames, style and script.

        Returns
        -------
        str
            The same bytes for the same frames, wherever and however often it is made.
        """
        shown = self._frames[self._start]
        rows = [control_html(name, control) for name, control in self.controls.items()]
        position = 1 + list(self._frames).index(self._start)
        return PAGE.format(
            style=PAGE_STYLE,
            title=escape(self.title),
            image=image_html(shown),
            text=escape(shown.text),
            controls="\n".join(rows),
            still=f"Frame {position} of {self.n_frames}: moving on needs scripts.",
            data=self._data(),
            script=PAGE_SCRIPT,
        )

    def _data(self) -> str:
        """What the script needs, as JSON; a picture that occurs twice is stored once."""
        frames = [self._frames[names] for names in self._choices()]
        pictures = {image: i for i, image in enumerate(dict.fromkeys(f.image for f in frames))}
        shown = self._frames[self._start].image
        data = {
            "names": [control.names for control in self.controls.values()],
            "text": [frame.text for frame in frames],
            "frame": [pictures[frame.image] for frame in frames],
            # The picture on the page is not repeated here.
            "pictures": [None if picture == shown else data_uri(picture) for picture in pictures],
        }
        # Nothing in it may end the script element that holds it.
        return json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")

    def widget(self) -> Any:
        """The life with a kernel: widgets that draw the figure anew.

        Returns
        -------
        ipywidgets.VBox
            Title, picture, controls and description.

        Raises
        ------
        ImportError
            If ipywidgets is missing.
        """
        try:
            import ipywidgets
        except ImportError as error:
            raise ImportError(
                "a live explorer needs ipywidgets: install it with pip install 'cgmm[widgets]'"
            ) from error
        image, status = ipywidgets.HTML(), ipywidgets.HTML()
        pickers, rows = [], []
        for control in self.controls.values():
            row = control_widget(ipywidgets, control)
            rows.append(row)
            pickers.append(row.children[0])

        def show(_: object = None) -> None:
            frame = self._frame(tuple(picker.label for picker in pickers))
            # The image widget has no alternative text; this element has.
            image.value = image_html(frame)
            status.value = escape(frame.text)

        for picker in pickers:
            picker.observe(show, "index")
        show()
        title = ipywidgets.HTML(f"<b>{escape(self.title)}</b>")
        return ipywidgets.VBox([title, image, *rows, status]).add_class("cgmm-explorer-live")


def _check_count(controls: Mapping[str, Control], n_frames: int, max_frames: int) -> None:
    """The frames can be drawn in a bearable time."""
    if n_frames > max_frames:
        product = " × ".join(str(len(control.values)) for control in controls.values())
        raise ValueError(
            f"{product} = {n_frames} frames are more than max_frames={max_frames}: give fewer "
            "values (a slider's live=... may keep the fine list for readers with a kernel)"
        )


def _check_sizes(frames: Mapping[tuple[str, ...], Frame]) -> None:
    """No frame makes the page jump."""
    first, size = next((names, frame.size) for names, frame in frames.items())
    for names, frame in frames.items():
        if frame.size != size:
            raise ValueError(
                f"the frame for {names} has {frame.size[0]} × {frame.size[1]} pixels, the one for "
                f"{first} {size[0]} × {size[1]}: give draw one fixed figsize"
            )
