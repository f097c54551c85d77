"""Build explorers: figures with one picture for every combination of their controls' values.

All chapters with sliders create an :class:`Explorer`. With a kernel it is a set of widgets that
redraw the figure. Without one it is a single HTML element, composed from the template
``explorer.html``, the style ``explorer.css`` and the script ``explorer.js``. The element has no
ids, so a page may contain two copies of one explorer. Its radio buttons are inside a form, so that
a choice in one copy does not change the other. The style takes its colours from the theme of the
book if there is one, else from JupyterLab, else it uses dark text on white.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from matplotlib.figure import Figure

from cgmm.explore.controls import (
    Control,
    Frame,
    Names,
    Slider,
    check_controls,
    draw_frame,
    explain_missing_package,
)

# ------------------------------------------------------------ the explorer


class Explorer:
    """Figure with sliders or radio buttons, for notebooks and for static pages.

    All frames are drawn when the explorer is created, so errors appear in the cell that creates it.

    Parameters
    ----------
    draw : callable
        ``draw(**values)`` returns a matplotlib Figure, or Axes in a Figure. It is called once for
        every combination of values, in the style of ``cgmm.plot``, regardless of notebook settings.
        All figures must have the same size.
    controls : mapping from str to Slider or Choice
        Control of each argument of ``draw``, in the order in which the page shows them.
    title : str
        Title of the explorer.
    describe : callable
        ``describe(**values)`` returns a sentence that describes the frame, with its numbers. The
        sentence appears below the picture, and is its alternative text.
    max_frames : int, default=240
        Largest number of combinations; a larger number raises an error.
    max_bytes : int, default=3_000_000
        Largest size of the HTML element; a larger size raises an error.
    dpi : float, default=144
        Resolution of the frames, in pixels per inch. The page shows frames with a width of at most
        704 CSS pixels, which are twice as many device pixels on high-resolution screens.
    colours : int, optional
        Number of colours in the palette of each frame, from 2 to 256. With 64 colours a frame takes
        about half the bytes, and only antialiased edges change visibly. By default all colours are
        kept.

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
        # The keys are names of values, not positions: a slider may have a coarse and a fine list of
        # values, and a value has the same name in both.
        combinations = itertools.product(*(control.names for control in self.controls.values()))
        self._frames = {names: self._draw_frame(names) for names in combinations}
        _check_sizes(self._frames)
        _check_bytes(len(self.html().encode()), self.n_frames, max_bytes)

    def __repr__(self) -> str:
        labels = " × ".join(control.label for control in self.controls.values())
        return f"Explorer({self.title!r}, {self.n_frames} frames: {labels})"

    def _draw_frame(self, names: Names) -> Frame:
        """Draw and describe one combination of values."""
        values = {
            argument: {**control.live_options, **control.options}[name]
            for (argument, control), name in zip(self.controls.items(), names, strict=True)
        }
        return draw_frame(self.draw, self.describe, values, self.dpi, self.colours)

    def _get_frame(self, names: Names) -> Frame:
        """Return the stored frame of a combination, or draw it."""
        return self._frames.get(names) or self._draw_frame(names)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        """Return the explorer both as widgets and as HTML; a program shows what it supports."""
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
            The HTML. Equal frames give equal bytes, on all machines and at every call.
        """
        start = tuple(control.names[control.start] for control in self.controls.values())
        return build_html(self.title, self.controls, self._frames, start)

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
        return build_widget(self.title, self.controls, self._get_frame)


def _check_count(controls: Mapping[str, Control], n_frames: int, max_frames: int) -> None:
    """Raise an error if there are more frames than ``max_frames``."""
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
    """Raise an error if the HTML element is larger than ``max_bytes``."""
    if n_bytes > max_bytes:
        raise ValueError(
            f"the explorer takes {n_bytes} bytes, more than max_bytes={max_bytes}: its {n_frames} "
            f"frames have {n_bytes / n_frames / 1e3:.0f} kB on average. Give fewer values, fewer "
            "points, or lower the dpi"
        )


# ------------------------------------------------------------ HTML for static pages


FILES = {
    kind: files("cgmm.explore").joinpath(f"explorer.{kind}").read_text(encoding="utf8")
    for kind in ("html", "css", "js")
}
# JupyterLab intercepts arrow keys, except on elements with this attribute.
KEEP_ARROW_KEYS = "data-lm-suppress-shortcuts"


def build_html(
    title: str, controls: Mapping[str, Control], frames: Mapping[Names, Frame], start: Names
) -> str:
    """Return an HTML element with all frames, style and script; ``start`` is shown first."""
    shown = frames[start]
    position = 1 + list(frames).index(start)
    return (
        FILES["html"]
        .rstrip()
        .format(
            style=FILES["css"],
            title=escape(title),
            image=build_image(shown),
            text=escape(shown.text),
            controls="\n".join(_build_control(name, control) for name, control in controls.items()),
            still=f"Frame {position} of {len(frames)}: moving on needs scripts.",
            data=_encode_data(controls, list(frames.values()), shown),
            script=FILES["js"],
        )
    )


def build_image(frame: Frame) -> str:
    """Return the HTML image of a frame, with its description as alternative text."""
    width, height = frame.size
    # Decode synchronously; otherwise the image is blank for a moment whenever it changes.
    return (
        f'<img class="cgmm-explorer-frame" src="{frame.picture}" alt="{escape(frame.text)}" '
        f'width="{width}" height="{height}" decoding="sync" '
        'style="max-width: min(100%, 46rem); height: auto">'
    )


def _build_control(name: str, control: Control) -> str:
    """Return the HTML of a slider or of a set of radio buttons."""
    return _build_slider(control) if isinstance(control, Slider) else _build_choice(name, control)


def _build_slider(slider: Slider) -> str:
    """Return the HTML of a slider, its current value, and its button if it has one."""
    # The current value is outside the label, because a label with a value would change the slider's
    # accessible name.
    shown = escape(slider.names[slider.start])
    button = f'<button type="button">{escape(slider.button)}</button>' if slider.button else ""
    return (
        '<div class="cgmm-explorer-slider" data-control>'
        f"<label><span>{escape(slider.label)}</span>"
        f'<input type="range" min="0" max="{len(slider.values) - 1}" value="{slider.start}" '
        f'aria-valuetext="{shown}" {KEEP_ARROW_KEYS}></label>'
        f'<output aria-live="off">{shown}</output>{button}</div>'
    )


def _build_choice(name: str, choice: Control) -> str:
    """Return the HTML of a set of radio buttons."""
    buttons = [
        f'<label><input type="radio" name="{escape(name)}" value="{i}" {KEEP_ARROW_KEYS}'
        f"{' checked' if i == choice.start else ''}> {escape(option)}</label>"
        for i, option in enumerate(choice.names)
    ]
    return (
        '<fieldset class="cgmm-explorer-choice" data-control>'
        f"<legend>{escape(choice.label)}</legend>{''.join(buttons)}</fieldset>"
    )


def _encode_data(controls: Mapping[str, Control], frames: Sequence[Frame], first: Frame) -> str:
    """Return names, descriptions and distinct pictures as JSON, without that of ``first``."""
    pictures = list(dict.fromkeys(frame.picture for frame in frames))
    index = {picture: i for i, picture in enumerate(pictures)}
    data = {
        "names": [control.names for control in controls.values()],
        "text": [frame.text for frame in frames],
        "frame": [index[frame.picture] for frame in frames],
        # The element already contains the picture that it shows first, so it is not repeated.
        "pictures": [None if picture == first.picture else picture for picture in pictures],
    }
    # Replace "<", so that nothing in the data can end the script element around it.
    return json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")


# ------------------------------------------------------------ widgets for notebooks with a kernel


def build_widget(
    title: str, controls: Mapping[str, Control], get_frame: Callable[[Names], Frame]
) -> Any:
    """Build widgets for title, picture, controls and description that redraw on each change."""
    with explain_missing_package("ipywidgets", "a live explorer", "widgets"):
        import ipywidgets
    image, status = ipywidgets.HTML(), ipywidgets.HTML()
    rows = [_build_control_widget(ipywidgets, control) for control in controls.values()]
    inputs = [row.children[0] for row in rows]

    def redraw(_: object = None) -> None:
        frame = get_frame(tuple(widget.label for widget in inputs))
        # Use HTML for the picture, because the image widget has no alternative text.
        image.value = build_image(frame)
        status.value = escape(frame.text)

    for widget in inputs:
        widget.observe(redraw, "index")
    redraw()
    heading = ipywidgets.HTML(f"<b>{escape(title)}</b>")
    return ipywidgets.VBox([heading, image, *rows, status]).add_class("cgmm-explorer-live")


def _build_control_widget(ipywidgets: Any, control: Control) -> Any:
    """Build a row of a slider or radio buttons, and a button that advances the slider."""
    options = list(control.live_options)
    settings = {
        "options": options,
        "index": options.index(control.names[control.start]),
        "description": control.label,
        "style": {"description_width": "initial"},
    }
    if not isinstance(control, Slider):
        return ipywidgets.HBox([ipywidgets.RadioButtons(**settings)])
    slider = ipywidgets.SelectionSlider(layout={"width": "30rem", "max_width": "100%"}, **settings)
    if not control.button:
        return ipywidgets.HBox([slider])
    button = ipywidgets.Button(description=control.button)

    def advance(_: object) -> None:
        slider.index = (slider.index + 1) % len(options)

    button.on_click(advance)
    return ipywidgets.HBox([slider, button])
