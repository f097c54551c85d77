"""Make a small explorer, whose figure is a dot that moves, and decode its pages."""

import base64
import io

import matplotlib.pyplot as plt
import numpy as np
from bs4 import BeautifulSoup
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

from cgmm import plot
from cgmm.explore import Choice, Explorer, Slider


def draw_dot(n, side):
    """Draw a dot on a line, at the same place for n = 0 and n = 1."""
    figure, ax = plt.subplots(figsize=(2, 1))
    ax.set(xlim=(-5, 5), ylim=(-1, 1))
    ax.plot([max(n, 1) * side], [0], "o")
    return figure


def describe_dot(n, side):
    return f"A dot at {max(n, 1) * side}, for n = {n}."


def make_explorer(**changes) -> Explorer:
    slider = Slider("steps", [0, 1, 2, 4], start=1, button="Next step")
    controls = {"n": slider, "side": Choice("to the", {"left": -1, "right": 1})}
    arguments = {"draw": draw_dot, "controls": controls, "describe": describe_dot}
    return Explorer(**{"title": "A dot that moves", **arguments, **changes})


def parse_html(html: str) -> BeautifulSoup:
    return BeautifulSoup(html, "html.parser")


def decode_webp(address: str) -> np.ndarray:
    kind, encoded = address.split(",")
    assert kind == "data:image/webp;base64"
    image = Image.open(io.BytesIO(base64.b64decode(encoded)))
    assert image.format == "WEBP"
    return np.asarray(image)


def render_frame(**values) -> np.ndarray:
    """Return the pixels of the drawing function in the book's style at 144 dots per inch."""
    with plt.style.context(["default", plot.STYLE]):
        figure = draw_dot(**values)
        figure.set_dpi(144)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        plt.close(figure)
        return np.array(canvas.buffer_rgba())[..., :3]
