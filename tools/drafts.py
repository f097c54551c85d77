"""Make explorers draw fewer pictures, which saves time in the quick tests of the chapters.

An explorer draws a picture for each combination of its controls, six hundred in the book. This
takes a fifth of the time in which the chapters run, although no test compares the pictures. In
draft mode an explorer draws enough pictures to show each value of each control once. It still
writes the description of every combination.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cgmm.explore import explorer
from cgmm.explore.controls import Frame


def draw_in_draft() -> None:
    """Switch all explorers of this process to draft mode."""
    draw_frame = explorer.draw_frame
    drawn_values: dict[Callable[..., Any], set[tuple[str, int]]] = {}
    last_frames: dict[Callable[..., Any], Frame] = {}

    def draw_if_new(
        draw: Callable[..., Any], describe: Callable[..., str], values: Mapping[str, Any],
        *options: Any,
    ) -> Frame:  # fmt: skip
        shown_now = {(name, id(value)) for name, value in values.items()}
        if shown_now <= drawn_values.setdefault(draw, set()):
            return last_frames[draw]._replace(text=describe(**values))
        drawn_values[draw] |= shown_now
        last_frames[draw] = draw_frame(draw, describe, values, *options)
        return last_frames[draw]

    explorer.draw_frame = draw_if_new
