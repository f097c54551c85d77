"""Test the style of figures: size of text, reproducible files, and what notebooks store."""

import base64

import matplotlib.pyplot as plt
import nbformat
import numpy as np
from nbclient import NotebookClient

from cgmm import plot


def test_text_is_legible_on_a_page_and_on_a_telephone():
    """A page of the book is 720 pixels wide, a telephone 358."""
    points = min(
        plt.rcParams[f"{part}.labelsize"] if "tick" in part else plt.rcParams["font.size"]
        for part in ("xtick", "ytick", "font")
    )
    inches = points / 72 / plot.PAGE_WIDTH
    assert inches * 720 > 14
    assert inches * 358 > 7.5


def test_png_files_are_reproducible_and_have_no_metadata():
    def draw():
        return plot.scatter(np.eye(2), [0, 1]).figure

    first, second = plot.png(draw()), plot.png(draw())
    assert first == second
    assert b"Software" not in first
    assert b"tEXt" not in first


def test_svg_files_do_not_depend_on_rounding_of_coordinates():
    def draw(noise):
        figure, ax = plt.subplots(layout="none")
        ax.plot([0, 1], [0, 1 + noise], "o-")
        figure.subplots_adjust(left=0.1 + noise)
        return plot.svg(figure)

    assert draw(0) == draw(1e-12) != draw(0.1)


def test_notebooks_store_lines_as_svg_and_images_as_png():
    """Scatter plots of many points are stored as PNG, too, because PNG is smaller."""
    begin = "from cgmm import plot\nplot.use_style()\nimport matplotlib.pyplot as plt\n"
    large = ["plt.imshow([[1, 2]])", "plt.scatter(range(9999), range(9999))"]
    codes = [begin + "plt.plot([1, 2])", "plt.plot([1, 2])", *large]
    cells = [nbformat.v4.new_code_cell(f"{code}\nplt.show()") for code in codes]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, kernel_name="python3", timeout=60).execute()
    line, again, *stored = (cell.outputs[0].data for cell in notebook.cells)
    assert "image/png" not in line
    text = line["image/svg+xml"]
    assert 'width="518.4pt"' in text
    assert "metadata" not in text
    assert "#fcfcfb" not in text  # The background is transparent.
    assert text == again["image/svg+xml"]
    for data in stored:
        assert "image/svg+xml" not in data
        png = base64.b64decode(data["image/png"])
        assert b"Software" not in png
        assert tuple(np.frombuffer(png[16:24], ">u4")) == (1152, 576)
