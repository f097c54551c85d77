"""The style of figures: legible letters, the width of the page, the same bytes twice."""

from __future__ import annotations

import base64
import io

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from nbclient import NotebookClient

from cgmm import plot


def test_letters_are_legible_on_the_page_and_on_a_telephone():
    points = min(
        plt.rcParams[f"{part}.labelsize"] if "tick" in part else plt.rcParams["font.size"]
        for part in ("xtick", "ytick", "font")
    )
    inches = points / 72 / plot.PAGE_WIDTH
    assert inches * 720 > 14
    assert inches * 358 > 7.5


def test_png_is_the_same_twice_and_says_nothing_of_its_maker():
    def draw():
        return plot.scatter(np.eye(2), [0, 1]).figure

    first, second = plot.png(draw()), plot.png(draw())
    assert first == second
    assert b"Software" not in first
    assert b"tEXt" not in first


def test_figures_are_as_wide_as_the_page():
    pixels = plt.imread(io.BytesIO(plot.png(plt.figure())))
    assert pixels.shape[:2] == (576, 1152)
    np.testing.assert_allclose(pixels[0, 0, :3], to_rgb(plot.BACKGROUND), atol=1 / 255)


INLINE = """
from cgmm import plot
plot.use_style()
import matplotlib.pyplot as plt
%s
plt.show()
"""


def inline(code):
    """What a notebook stores of the figure that a cell draws."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(INLINE % code)])
    NotebookClient(notebook, kernel_name="python3", timeout=60).execute()
    (output,) = notebook.cells[0].outputs
    return output.data


def test_lines_are_svg_whole_transparent_and_without_metadata():
    data = inline("plt.plot([1, 2])")
    assert "image/png" not in data
    text = data["image/svg+xml"]
    assert 'width="518.4pt"' in text
    assert "metadata" not in text
    assert "#fcfcfb" not in text
    assert text == inline("plt.plot([1, 2])")["image/svg+xml"]


@pytest.mark.parametrize("code", ["plt.imshow([[1, 2]])", "plt.scatter(range(9999), range(9999))"])
def test_images_and_crowds_are_png_whole_and_without_metadata(code):
    data = inline(code)
    assert "image/svg+xml" not in data
    png = base64.b64decode(data["image/png"])
    assert b"Software" not in png
    assert tuple(np.frombuffer(png[16:24], ">u4")) == (1152, 576)
