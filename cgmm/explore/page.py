"""An explorer without a kernel, as one element of a static page.

``Explorer.html`` calls ``page_html``. The element is composed of the files ``explorer.html``, a
template, ``explorer.css`` and ``explorer.js``. It has no ids, so a page may contain two copies of
one explorer; each form separates its radio buttons. Colours come from the theme of the book if
there is one, else from JupyterLab, else from a white page.
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
# JupyterLab intercepts arrow keys, except on elements with this attribute.
OWN_KEYS = "data-lm-suppress-shortcuts"


def page_html(
    title: str, controls: Mapping[str, Control], frames: Mapping[Names, Frame], start: Names
) -> str:
    """Return an element with all frames, style and script that first shows the frame ``start``."""
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
    """Return the picture with its text; synchronous decoding avoids a blank flash."""
    width, height = frame.size
    return (
        f'<img class="cgmm-explorer-frame" src="{frame.picture}" alt="{escape(frame.text)}" '
        f'width="{width}" height="{height}" decoding="sync" '
        'style="max-width: min(100%, 46rem); height: auto">'
    )


def _control_html(name: str, control: Control) -> str:
    """Return a control as native elements, disabled until the script enables it."""
    return _slider_html(control) if isinstance(control, Slider) else _choice_html(name, control)


def _slider_html(slider: Slider) -> str:
    # The value is outside the label, because the slider's accessible name must stay constant.
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
    """Return the data of the script as JSON, with repeated pictures stored once."""
    pictures = list(dict.fromkeys(frame.picture for frame in frames))
    index = {picture: i for i, picture in enumerate(pictures)}
    data = {
        "names": [control.names for control in controls.values()],
        "text": [frame.text for frame in frames],
        "frame": [index[frame.picture] for frame in frames],
        # The element already contains the picture that it shows first, so it is not repeated.
        "pictures": [None if picture == shown.picture else picture for picture in pictures],
    }
    # Without "<", nothing in it can end the script element that holds it.
    return json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
