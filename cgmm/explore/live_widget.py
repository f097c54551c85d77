"""The life with a kernel: the live figure as a widget that tells Python what the hand does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def live_widget(
    html: str, style: str, module: str, preset: dict[str, Any], fit: Callable[[], object]
) -> Any:
    """A widget with the traits points, links (i, j and a sign) and fitted; a button calls fit."""
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

    def answer(_: object, content: object, buffers: object) -> None:
        if content == {"fit": True}:
            fit()

    widget = LiveWidget(html=html, points=preset["X"], links=preset["links"])
    widget.on_msg(answer)
    return widget
