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

import ast
import base64
import inspect
import io
import itertools
import json
import math
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple, cast

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from cgmm.numerics import IntArray
from cgmm.plot import STYLE

__all__ = ["Choice", "Control", "Explorer", "Slider", "Source", "source"]

# Fields that the theme's script sets on every page.
TAKEN_NAMES = ("q",)


class Frame(NamedTuple):
    """What an explorer shows for one choice."""

    image: bytes
    """The picture, as lossless WebP."""
    size: tuple[int, int]
    """Its width and height in pixels."""
    text: str
    """The sentence that says what it shows."""


# ---------------------------------------------------------------------------- controls


@dataclass(frozen=True)
class Control:
    """What ``Slider`` and ``Choice`` have in common.

    Parameters
    ----------
    label : str
        What the values are, in the reader's words.
    values : sequence, or mapping from name to value
        A finite list: the page without a kernel holds one frame for each.
    format : callable, default=str
        Writes a value as its name, where the names are not given.
    start : int, default=0
        Position of the value that is shown first.

    Raises
    ------
    ValueError
        If there are no values, two share a name, or ``start`` is not a position.
    """

    label: str
    values: Sequence[Any] | Mapping[str, Any]
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
    def options(self) -> dict[str, Any]:
        """Name and value of each frame's choice."""
        return dict(zip(self.names, _values(self.values), strict=True))

    @property
    def live_options(self) -> dict[str, Any]:
        """Name and value of what a reader with a kernel can choose."""
        return self.options

    @property
    def names(self) -> list[str]:
        """How the page writes each value."""
        return self._named(self.values)

    def _named(self, values: Sequence[Any] | Mapping[str, Any]) -> list[str]:
        """The names given, or those that the format makes."""
        return list(values) if isinstance(values, Mapping) else [self.format(v) for v in values]


def _values(values: Sequence[Any] | Mapping[str, Any]) -> list[Any]:
    """The values of a list or of a mapping from names."""
    return list(values.values() if isinstance(values, Mapping) else values)


@dataclass(frozen=True)
class Slider(Control):
    """A control whose values have an order.

    Parameters
    ----------
    label, values, format, start
        As for every ``Control``.
    live : sequence or mapping, optional
        A finer list, for readers with a kernel; it must contain the value that is shown first.
    button : str, optional
        Text of a button that goes to the next value, and from the last one to the first.

    Raises
    ------
    ValueError
        As for every ``Control``, or if ``live`` lacks the first value shown.

    Examples
    --------
    >>> Slider("noise", [0.0, 0.15, 0.3], format="{:.2f}".format).names
    ['0.00', '0.15', '0.30']
    """

    live: Sequence[Any] | Mapping[str, Any] | None = None
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
        """Name and value of what a reader with a kernel can choose."""
        if self.live is None:
            return self.options
        return dict(zip(self._named(self.live), _values(self.live), strict=True))


@dataclass(frozen=True)
class Choice(Control):
    """A control whose values have no order: one radio button each.

    Parameters
    ----------
    label, values, format, start
        As for every ``Control``.

    Examples
    --------
    >>> Choice("start", {"far left": -9.0, "in the middle": 0.0}).names
    ['far left', 'in the middle']
    """


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
        _check_controls(self.controls, draw, describe)
        self.n_frames = math.prod(len(control.values) for control in self.controls.values())
        _check_count(self.controls, self.n_frames, max_frames)
        # Keyed by the values' names, which the coarse and the fine list of a slider share.
        self._frames: dict[tuple[str, ...], Frame] = {}
        for names in self._choices():
            self._frames[names] = self._frame(names)
        _check_sizes(self._frames)
        _check_bytes(len(self.html().encode()), self.n_frames, max_bytes)

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
        return Frame(*_render(self.draw, values, self.dpi), text)

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
        rows = [_control_html(name, control) for name, control in self.controls.items()]
        position = 1 + list(self._frames).index(self._start)
        return _PAGE.format(
            style=_STYLE,
            title=escape(self.title),
            image=_image_html(shown),
            text=escape(shown.text),
            controls="\n".join(rows),
            still=f"Frame {position} of {self.n_frames}: moving on needs scripts.",
            data=self._data(),
            script=_SCRIPT,
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
            "pictures": [None if picture == shown else _data_uri(picture) for picture in pictures],
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
            row = _control_widget(ipywidgets, control)
            rows.append(row)
            pickers.append(row.children[0])

        def show(_: object = None) -> None:
            frame = self._frame(tuple(picker.label for picker in pickers))
            # The image widget has no alternative text; this element has.
            image.value = _image_html(frame)
            status.value = escape(frame.text)

        for picker in pickers:
            picker.observe(show, "index")
        show()
        title = ipywidgets.HTML(f"<b>{escape(self.title)}</b>")
        return ipywidgets.VBox([title, image, *rows, status]).add_class("cgmm-explorer-live")


def _control_widget(ipywidgets: Any, control: Control) -> Any:
    """A row whose first child has the control's names as options."""
    look = {"description": control.label, "style": {"description_width": "initial"}}
    options = list(control.live_options)
    index = options.index(control.names[control.start])
    if isinstance(control, Choice):
        return ipywidgets.HBox([ipywidgets.RadioButtons(options=options, index=index, **look)])
    layout = {"width": "30rem", "max_width": "100%"}
    slider = ipywidgets.SelectionSlider(options=options, index=index, layout=layout, **look)
    action = cast("Slider", control).button
    if not action:
        return ipywidgets.HBox([slider])
    button = ipywidgets.Button(description=action)

    def advance(_: object) -> None:
        slider.index = (slider.index + 1) % len(options)

    button.on_click(advance)
    return ipywidgets.HBox([slider, button])


# ---------------------------------------------------------------------------- checks


def _check_controls(controls: Mapping[str, Control], *functions: Callable[..., Any]) -> None:
    """Each control is one, and each function takes exactly these arguments."""
    for name, control in controls.items():
        if not isinstance(control, Control):
            raise ValueError(f"the control {name!r} is {control!r}: give a Slider or a Choice")
        if name in TAKEN_NAMES:
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


def _check_bytes(n_bytes: int, n_frames: int, max_bytes: int) -> None:
    """The page stays light."""
    if n_bytes > max_bytes:
        raise ValueError(
            f"the explorer takes {n_bytes} bytes, more than max_bytes={max_bytes}: its {n_frames} "
            f"frames have {n_bytes / n_frames / 1e3:.0f} kB on average. Give fewer values, fewer "
            "points, or lower the dpi"
        )


# ---------------------------------------------------------------------------- pictures


def _render(
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


def _data_uri(image: bytes) -> str:
    """A picture as an address that contains it."""
    return "data:image/webp;base64," + base64.b64encode(image).decode()


# ---------------------------------------------------------------------------- the page


def _image_html(frame: Frame) -> str:
    """The picture with its text; decoded before it is shown, so that no blank one flashes up."""
    source, (width, height) = _data_uri(frame.image), frame.size
    return (
        f'<img class="cgmm-explorer-frame" src="{source}" alt="{escape(frame.text)}" '
        f'width="{width}" height="{height}" decoding="sync" '
        'style="max-width: min(100%, 46rem); height: auto">'
    )


def _control_html(name: str, control: Control) -> str:
    """A control in native elements, disabled until the script takes it over."""
    return (
        _choice_html(name, control)
        if isinstance(control, Choice)
        else _slider_html(cast("Slider", control))
    )


def _slider_html(slider: Slider) -> str:
    # The value stands outside the label: the slider's name must not change as it moves.
    shown = escape(slider.names[slider.start])
    button = f'<button type="button">{escape(slider.button)}</button>' if slider.button else ""
    return (
        '<div class="cgmm-explorer-slider" data-control>'
        f"<label><span>{escape(slider.label)}</span>"
        f'<input type="range" min="0" max="{len(slider.values) - 1}" value="{slider.start}" '
        f'aria-valuetext="{shown}" {_OWN_KEYS}></label>'
        f'<output aria-live="off">{shown}</output>{button}</div>'
    )


def _choice_html(name: str, choice: Choice) -> str:
    buttons = [
        f'<label><input type="radio" name="{escape(name)}" value="{i}" {_OWN_KEYS}'
        f"{' checked' if i == choice.start else ''}> {escape(option)}</label>"
        for i, option in enumerate(choice.names)
    ]
    return (
        '<fieldset class="cgmm-explorer-choice" data-control>'
        f"<legend>{escape(choice.label)}</legend>{''.join(buttons)}</fieldset>"
    )


# JupyterLab's notebook takes the arrow keys from everything that does not carry this.
_OWN_KEYS = "data-lm-suppress-shortcuts"

# No ids: two copies of one explorer may stand on a page. The form keeps their radio buttons apart.
_PAGE = """\
<div class="cgmm-explorer" role="group" aria-label="Explorer: {title}">
<style>{style}</style>
<p class="cgmm-explorer-title">{title}</p>
{image}
<form class="cgmm-explorer-controls" autocomplete="off"><fieldset disabled>
{controls}
</fieldset></form>
<p class="cgmm-explorer-status" role="status">{text}</p>
<p class="cgmm-explorer-still">{still}</p>
<script type="application/json">{data}</script>
<script>{script}</script>
</div>"""

# Colours of the book's theme, else of JupyterLab, else of a white page.
_STYLE = """
.cgmm-explorer {
  --text: var(--pst-color-text-base, var(--jp-content-font-color1, #1d2129));
  --quiet: var(--pst-color-text-muted, var(--jp-content-font-color1, #48566b));
  --page: var(--pst-color-background, var(--jp-layout-color0, #fff));
  --raised: var(--pst-color-surface, var(--jp-layout-color2, #f3f4f5));
  --line: var(--pst-color-border, var(--jp-border-color1, #c9cfd6));
  --accent: var(--pst-color-primary, var(--jp-brand-color1, #0a7d91));
  box-sizing: border-box; max-width: 46rem; margin: 1rem 0; padding: 0.75rem 1rem;
  border: 1px solid var(--line); border-radius: 0.5rem;
  background: var(--page); color: var(--text); line-height: 1.5;
}
.cgmm-explorer p { margin: 0; }
.cgmm-explorer .cgmm-explorer-title { margin-bottom: 0.5rem; font-weight: 600; }
.cgmm-explorer img.cgmm-explorer-frame {
  display: block; box-sizing: border-box; width: 100%; max-width: 100%; height: auto;
  margin: 0; padding: 0 !important; border-radius: 0.25rem;
}
.cgmm-explorer fieldset { min-width: 0; margin: 0; padding: 0; border: 0; }
.cgmm-explorer-controls { margin: 0.75rem 0; }
.cgmm-explorer-controls > fieldset { display: grid; gap: 0.5rem; }
.cgmm-explorer-slider { display: flex; flex-wrap: wrap; align-items: center; gap: 0.25rem 0.75rem; }
.cgmm-explorer-slider label {
  display: flex; flex: 1 1 14rem; flex-wrap: wrap; align-items: center; gap: 0.25rem 0.75rem;
  margin: 0;
}
.cgmm-explorer input { margin: 0; accent-color: var(--accent); cursor: pointer; }
.cgmm-explorer input[type="range"] { flex: 1 1 9rem; min-width: 0; height: 1.75rem; }
.cgmm-explorer output { min-width: 3ch; font-variant-numeric: tabular-nums; }
.cgmm-explorer button {
  min-height: 2rem; padding: 0.1rem 0.9rem; border: 1px solid var(--quiet); border-radius: 0.3rem;
  background: var(--raised); color: var(--text); font: inherit; cursor: pointer;
}
.cgmm-explorer :disabled { cursor: default; opacity: 0.7; }
.cgmm-explorer fieldset:disabled { opacity: 1; }
.cgmm-explorer legend {
  float: left; width: auto; margin: 0 0.75rem 0 0; padding: 0; font-size: inherit;
  line-height: 1.75rem;
}
.cgmm-explorer-choice label {
  display: inline-flex; align-items: center; gap: 0.35rem; min-height: 1.75rem;
  margin: 0 1rem 0 0; cursor: pointer;
}
.cgmm-explorer :focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
.cgmm-explorer .cgmm-explorer-status { min-height: 3em; }
.cgmm-explorer .cgmm-explorer-still { color: var(--quiet); font-size: 0.9em; }
.cgmm-explorer[data-ready] .cgmm-explorer-still { display: none; }
html[data-theme="dark"] .cgmm-explorer img.cgmm-explorer-frame {
  background: none !important; filter: invert(0.93) hue-rotate(180deg);
}
@media print { .cgmm-explorer-controls, .cgmm-explorer-still { display: none; } }
"""

_SCRIPT = """
for (const root of document.querySelectorAll(".cgmm-explorer:not([data-ready])")) {
  const data = JSON.parse(root.querySelector("script[type='application/json']").textContent);
  const image = root.querySelector("img");
  const pictures = data.pictures.map((picture) => picture ?? image.src);
  const controls = [...root.querySelectorAll("[data-control]")];
  const position = (control) =>
    Number(control.querySelector("input[type='range'], input:checked").value);

  const show = () => {
    // The last control runs fastest.
    const at = controls.reduce((at, c, i) => at * data.names[i].length + position(c), 0);
    image.src = pictures[data.frame[at]];
    image.alt = root.querySelector("[role='status']").textContent = data.text[at];
    controls.forEach((control, i) => {
      const slider = control.querySelector("input[type='range']");
      if (!slider) return;
      const name = data.names[i][position(control)];
      slider.setAttribute("aria-valuetext", name);
      control.querySelector("output").textContent = name;
    });
  };

  controls.forEach((control, i) => {
    control.querySelector("button")?.addEventListener("click", () => {
      const slider = control.querySelector("input");
      slider.value = (position(control) + 1) % data.names[i].length;
      show();
    });
  });
  root.querySelector("form").addEventListener("input", show);
  root.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
  root.querySelector("fieldset").disabled = false;
  root.dataset.ready = "";
}
"""


# ------------------------------------------------------------------ code in a notebook


class Source(str):
    """Python code that a notebook shows as code."""

    def _repr_markdown_(self) -> str:
        return f"```python\n{self}\n```"

    def __repr__(self) -> str:
        return str(self)


def source(*functions: Callable[..., Any]) -> Source:
    """The code of functions as it stands in the package, without their docstrings.

    Parameters
    ----------
    *functions : callable
        Functions written in Python.

    Returns
    -------
    Source
        Their code, one after the other; a notebook shows it as code.

    Examples
    --------
    >>> from cgmm.gaussian import POOLINGS
    >>> source(POOLINGS["full"].combine)
    def _full(counts: FloatArray, scatter: FloatArray) -> FloatArray:
        return scatter / counts[:, None, None]
    """
    return Source("\n\n\n".join(map(_without_docstring, functions)))


def _without_docstring(function: Callable[..., Any]) -> str:
    text = textwrap.dedent(inspect.getsource(function))
    tree, lines = ast.parse(text), text.splitlines()
    definition = cast("ast.FunctionDef", tree.body[0])
    if ast.get_docstring(definition) is not None:
        docstring = definition.body[0]
        del lines[docstring.lineno - 1 : docstring.end_lineno]
    return "\n".join(lines).rstrip()
