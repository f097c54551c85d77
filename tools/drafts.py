"""Explorers in draft: every sentence, and a picture for each value of each control.

An explorer draws a picture for each combination of its controls, six hundred in the book. Drawing
is a fifth of the time in which the chapters run, and of the pictures nothing is compared: the quick
tests draw as many as show each value once. What is said of each combination is said.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cgmm.explore import explorer
from cgmm.explore.controls import Frame


def draw_in_draft() -> None:
    """From here on, in this process."""
    whole = explorer.draw_frame
    shown: dict[Callable[..., Any], set[tuple[str, int]]] = {}
    last: dict[Callable[..., Any], Frame] = {}

    def draft(
        draw: Callable[..., Any], describe: Callable[..., str], values: Mapping[str, Any],
        *how: Any,
    ) -> Frame:  # fmt: skip
        new = {(name, id(value)) for name, value in values.items()}
        if new <= shown.setdefault(draw, set()):
            return last[draw]._replace(text=describe(**values))
        shown[draw] |= new
        last[draw] = whole(draw, describe, values, *how)
        return last[draw]

    explorer.draw_frame = draft
