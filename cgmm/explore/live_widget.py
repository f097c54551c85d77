"""The live figure as a widget that reports changes to Python.

``LiveFigure.widget`` calls ``live_widget`` in notebooks with a kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def live_widget(
    html: str, style: str, module: str, preset: dict[str, Any], fit: Callable[[], object]
) -> Any:
    """Build a widget with traits points, links (i, j, sign) and fitted, whose button calls fit."""
    try:
        import anywidget
        import traitlets
    except ImportError as error:
        raise ImportError(
            "a live figure with a kernel needs anywidget: install it with pip install "
            "'constrained-mixtures[widgets]'"
        ) from error

    def trait(kind: type, **options: Any) -> Any:
        return kind(**options).tag(sync=True)

    class LiveWidget(anywidget.AnyWidget):
        _esm = module
        _css = style
        html = trait(traitlets.Unicode)
        points = trait(traitlets.List)
        links = trait(traitlets.List)
        fitted = trait(traitlets.Dict, allow_none=True, default_value=None)

    def handle_message(_: object, content: object, buffers: object) -> None:
        if content == {"fit": True}:
            fit()

    widget = LiveWidget(html=html, points=preset["X"], links=preset["links"])
    widget.on_msg(handle_message)
    return widget
