"""The life without a kernel: an explorer as one element of a static page. All chapters.

The element's parts are files: ``explorer.html`` with gaps, ``explorer.css`` and ``explorer.js``.
It has no ids, so that two copies of one explorer may stand on a page; its form keeps their radio
buttons apart. The colours are those of the book's theme, else of JupyterLab, else of a white page.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files

from cgmm.explore.controls import Control, Slider
from cgmm.explore.frames import Frame, Names

FILES = {
    kind: files("cgmm.explore").joinpath(f"explorer.{kind}").read_text(encoding="utf8")
    for kind in ("html", "css", "js")
}
# JupyterLab's notebook takes the arrow keys from everything that does not carry this.
OWN_KEYS = "data-lm-suppress-shortcuts"


def page_html(
    title: str, controls: Mapping[str, Control], frames: Mapping[Names, Frame], start: Names
) -> str:
    """One element that brings its frames, style and script, and shows the frame ``start`` first."""
    shown = frames[start]
    position = 1 + list(frames).index(start)
    return (
        FILES["html"]
        .rstrip()
        .format(
            style=FILES["css"],
            title=escape(title),
            image=image_html(shown),
            text=escape(shown.text),
            controls="\n".join(_control_html(name, control) for name, control in controls.items()),
            still=f"Frame {position} of {len(frames)}: moving on needs scripts.",
            data=_data(controls, list(frames.values()), shown),
            script=FILES["js"],
        )
    )


def image_html(frame: Frame) -> str:
    """The picture with its text; decoded before it is shown, so that no blank one flashes up."""
    width, height = frame.size
    return (
        f'<img class="cgmm-explorer-frame" src="{frame.picture}" alt="{escape(frame.text)}" '
        f'width="{width}" height="{height}" decoding="sync" '
        'style="max-width: min(100%, 46rem); height: auto">'
    )


def _control_html(name: str, control: Control) -> str:
    """A control in native elements, disabled until the script takes it over."""
    return _slider_html(control) if isinstance(control, Slider) else _choice_html(name, control)


def _slider_html(slider: Slider) -> str:
    # The value stands outside the label: the slider's name must not change as it moves.
    shown = escape(slider.names[slider.start])
    button = f'<button type="button">{escape(slider.button)}</button>' if slider.button else ""
    return (
        '<div class="cgmm-explorer-slider" data-control>'
        f"<label><span>{escape(slider.label)}</span>"
        f'<input type="range" min="0" max="{len(slider.values) - 1}" value="{slider.start}" '
        f'aria-valuetext="{shown}" {OWN_KEYS}></label>'
        f'<output aria-live="off">{shown}</output>{button}</div>'
    )


def _choice_html(name: str, choice: Control) -> str:
    buttons = [
        f'<label><input type="radio" name="{escape(name)}" value="{i}" {OWN_KEYS}'
        f"{' checked' if i == choice.start else ''}> {escape(option)}</label>"
        for i, option in enumerate(choice.names)
    ]
    return (
        '<fieldset class="cgmm-explorer-choice" data-control>'
        f"<legend>{escape(choice.label)}</legend>{''.join(buttons)}</fieldset>"
    )


def _data(controls: Mapping[str, Control], frames: Sequence[Frame], shown: Frame) -> str:
    """What the script needs, as JSON; a picture that occurs twice is stored once."""
    pictures = list(dict.fromkeys(frame.picture for frame in frames))
    index = {picture: i for i, picture in enumerate(pictures)}
    data = {
        "names": [control.names for control in controls.values()],
        "text": [frame.text for frame in frames],
        "frame": [index[frame.picture] for frame in frames],
        # The picture that the element shows is not repeated here.
        "pictures": [None if picture == shown.picture else picture for picture in pictures],
    }
    # Without "<", nothing in it can end the script element that holds it.
    return json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
