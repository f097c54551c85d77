"""An explorer with a kernel, as widgets that redraw the figure.

``Explorer.widget`` calls ``live_widget`` in notebooks with a kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from typing import Any

from cgmm.explore.controls import Control, Slider
from cgmm.explore.frames import Frame, Names
from cgmm.explore.page import image_html


def live_widget(
    title: str, controls: Mapping[str, Control], frame_of: Callable[[Names], Frame]
) -> Any:
    """Build widgets for title, picture, controls and description that redraw on each change."""
    try:
        import ipywidgets
    except ImportError as error:
        raise ImportError(
            "a live explorer needs ipywidgets: install it with pip install "
            "'constrained-mixtures[widgets]'"
        ) from error
    image, status = ipywidgets.HTML(), ipywidgets.HTML()
    rows = [_row(ipywidgets, control) for control in controls.values()]
    pickers = [row.children[0] for row in rows]

    def show(_: object = None) -> None:
        frame = frame_of(tuple(picker.label for picker in pickers))
        # An HTML element has an alternative text, which the image widget lacks.
        image.value = image_html(frame)
        status.value = escape(frame.text)

    for picker in pickers:
        picker.observe(show, "index")
    show()
    heading = ipywidgets.HTML(f"<b>{escape(title)}</b>")
    return ipywidgets.VBox([heading, image, *rows, status]).add_class("cgmm-explorer-live")


def _row(ipywidgets: Any, control: Control) -> Any:
    """Build a row whose first child has the control's names as options."""
    options = list(control.live_options)
    look = {
        "options": options,
        "index": options.index(control.names[control.start]),
        "description": control.label,
        "style": {"description_width": "initial"},
    }
    if not isinstance(control, Slider):
        return ipywidgets.HBox([ipywidgets.RadioButtons(**look)])
    slider = ipywidgets.SelectionSlider(layout={"width": "30rem", "max_width": "100%"}, **look)
    if not control.button:
        return ipywidgets.HBox([slider])
    button = ipywidgets.Button(description=control.button)

    def advance(_: object) -> None:
        slider.index = (slider.index + 1) % len(options)

    button.on_click(advance)
    return ipywidgets.HBox([slider, button])
