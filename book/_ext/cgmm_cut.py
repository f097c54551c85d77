"""Cut the frames of explorers between their panels, so that a telephone can stack the panels.

A frame is a picture, so its panels are found in its pixels: a strip of columns that are empty in
all frames of an explorer lies between two panels. ``cgmm_light.py`` calls this module before it
writes the frames into files. The page describes how each panel is shown, and ``figures.js`` shows
the same picture once for each of them.
"""

from __future__ import annotations

import io
import re
from base64 import b64decode
from collections.abc import Iterable

import numpy as np
from PIL import Image

# An explorer up to the end of its data.
EXPLORER = re.compile(r'<div class="cgmm-explorer".*?</script>', re.DOTALL)
FRAME = re.compile(r"data:image/webp;base64,([A-Za-z0-9+/=]{200,})")
IMAGE = '<img class="cgmm-explorer-frame'
# A frame with fewer pixels than this in a row has one panel. It is shown smaller than the column of
# the page, so that letters are about as large in all explorers.
FULL_WIDTH = 1000
# Least width of the strip between two panels, in pixels, and of a panel, as a share of the frame.
LEAST_GAP = 10
LEAST_PANEL = 0.2
# Largest and smallest part of a frame that fills a telephone's width. Letters of 11 points in a
# frame 7.2 inches wide then have 11 to 15 pixels.
WIDEST_ROW = 0.68
NARROWEST_ROW = 0.5
# Largest difference between a pixel and the ground that compression causes, of 255 levels.
TOLERANCE = 12

Panel = tuple[float, float]
"""Left and right end of a panel, as shares of the frame's width."""


def mark_panels(body: str) -> str:
    """Return the HTML of a page in which the first frame of each explorer describes its panels."""
    return EXPLORER.sub(lambda found: _mark(found[0]), body)


def _mark(explorer: str) -> str:
    pictures = dict.fromkeys(FRAME.findall(explorer))
    if not pictures:
        return explorer
    frames = [read_pixels(one) for one in pictures]
    height, width = frames[0].shape[:2]
    panels = split(np.logical_and.reduce([empty_columns(one) for one in frames]))
    narrow = " cgmm-narrow" if width < FULL_WIDTH else ""
    shown = f' data-panels="{describe(panels, width / height)}"' if len(panels) > 1 else ""
    return explorer.replace(f'{IMAGE}"', f'{IMAGE}{narrow}"{shown}', 1)


def read_pixels(picture: str) -> np.ndarray:
    """Return (height, width, 3) levels of red, green and blue."""
    with Image.open(io.BytesIO(b64decode(picture))) as image:
        return np.asarray(image.convert("RGB"), dtype=np.int16)


def empty_columns(pixels: np.ndarray) -> np.ndarray:
    """Return (width,) True for the columns whose pixels all have the colour of the corner."""
    return (np.abs(pixels - pixels[0, 0]) <= TOLERANCE).all(axis=(0, 2))


def split(is_empty: np.ndarray) -> list[Panel]:
    """Return the panels of a frame from left to right, without the empty columns around them."""
    width = len(is_empty)
    panels: list[tuple[int, int]] = []
    for start, end in _runs(~is_empty):
        if panels and (start - panels[-1][1] < LEAST_GAP or _is_label(panels[-1], width)):
            start = panels.pop()[0]
        panels.append((start, end))
    if len(panels) > 1 and _is_label(panels[-1], width):
        end = panels.pop()[1]
        panels[-1] = panels[-1][0], end
    pad = LEAST_GAP // 2
    return [(max(a - pad, 0) / width, min(b + pad, width) / width) for a, b in panels]


def _is_label(columns: tuple[int, int], width: int) -> bool:
    """Return True for columns too few for a panel, such as the name of its axis."""
    return columns[1] - columns[0] < LEAST_PANEL * width


def _runs(is_true: np.ndarray) -> Iterable[tuple[int, int]]:
    """Return the start and end of each run of True."""
    changes = np.flatnonzero(np.diff(np.concatenate([[False], is_true, [False]])))
    return zip(changes[::2], changes[1::2], strict=True)


def describe(panels: list[Panel], ratio: float) -> str:
    """Return how a telephone shows the panels of a frame with this ratio of width to height.

    Each panel has its share of the row, the position of the picture behind it, and its own ratio.
    """
    row = row_width(panels)
    shares = [(end - start, start) for start, end in panels]
    return ", ".join(
        f"{share / row:.3f} {start / (1 - share):.3f} {share * ratio:.3f}"
        for share, start in shares
    )


def row_width(panels: list[Panel]) -> float:
    """Return the part of a frame that fills the width of a telephone: its widest row of panels."""
    rows = [0.0]
    for start, end in panels:
        if rows[-1] + end - start > WIDEST_ROW:
            rows.append(0.0)
        rows[-1] += end - start
    return max(*rows, NARROWEST_ROW)
