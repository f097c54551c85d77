"""The explorer of these tests, a dot that moves, and the means to read its page."""

from __future__ import annotations

import base64
import io
from html.parser import HTMLParser

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

from cgmm import plot
from cgmm.explore import Choice, Explorer, Slider


def draw(n, side):
    """A dot on a line; left of the middle it does not move."""
    figure, ax = plt.subplots(figsize=(2, 1))
    ax.set(xlim=(-5, 5), ylim=(-1, 1))
    ax.plot([max(n, 1) * side], [0], "o")
    return figure


def describe(n, side):
    return f"A dot at {max(n, 1) * side}, for n = {n}."


def make(**changes) -> Explorer:
    arguments = {
        "draw": draw,
        "controls": {
            "n": Slider("steps", [0, 1, 2, 4], start=1, button="Next step"),
            "side": Choice("to the", {"left": -1, "right": 1}),
        },
        "title": "A dot that moves",
        "describe": describe,
        **changes,
    }
    return Explorer(**arguments)


class Elements(HTMLParser):
    """All elements of a page: tag, attributes, text."""

    def __init__(self, html: str):
        super().__init__()
        self.all: list[tuple[str, dict, list[str]]] = []
        self.open: list[tuple[str, dict, list[str]]] = []
        self.feed(html)
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag, attributes):
        element = (tag, dict(attributes), [])
        self.all.append(element)
        if tag not in {"img", "input"}:
            self.open.append(element)

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        self.open and self.open[-1][2].append(data)

    def __call__(self, tag: str, **attributes) -> list[tuple[dict, str]]:
        wanted = {name.rstrip("_"): value for name, value in attributes.items()}
        return [
            (found, "".join(text))
            for name, found, text in self.all
            if name == tag and wanted.items() <= found.items()
        ]


def pixels(address: str) -> np.ndarray:
    kind, encoded = address.split(",")
    assert kind == "data:image/webp;base64"
    image = Image.open(io.BytesIO(base64.b64decode(encoded)))
    assert image.format == "WEBP"
    return np.asarray(image)


def drawn(**values) -> np.ndarray:
    """What the drawing function shows in the book's style at 144 dots an inch."""
    with plt.style.context(["default", plot.STYLE]):
        figure = draw(**values)
        figure.set_dpi(144)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        plt.close(figure)
        return np.array(canvas.buffer_rgba())[..., :3]
