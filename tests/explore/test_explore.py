"""The two lives of an explorer: the widgets, and the page in a real browser."""

from __future__ import annotations

import base64
import importlib.util
import io
import json
import os
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from matplotlib.backends.backend_agg import FigureCanvasAgg
from nbclient import NotebookClient
from PIL import Image

from cgmm import plot
from cgmm.explore import Choice, Explorer, Slider, source
from cgmm.explore.frames import _webp
from cgmm.mixture import POOLINGS, gaussian, pooling

pytestmark = pytest.mark.filterwarnings("error")


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


@pytest.fixture(scope="module")
def explorer() -> Explorer:
    return make()


@pytest.fixture(autouse=True)
def _no_figure_is_left_over():
    plt.close("all")
    yield
    assert not plt.get_fignums()


# ---------------------------------------------------------------------------- reading the page


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


def data_of(html: str) -> dict:
    ((_, text),) = Elements(html)("script", type="application/json")
    return json.loads(text)


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


# ---------------------------------------------------------------------------- without a kernel


def test_the_page_shows_the_first_frame_without_script(explorer):
    elements = Elements(explorer.html())
    ((image, _),) = elements("img")
    assert image["class"] == "cgmm-explorer-frame"
    assert (image["width"], image["height"]) == ("288", "144")
    assert image["alt"] == "A dot at -1, for n = 1."
    np.testing.assert_array_equal(pixels(image["src"]), drawn(n=1, side=-1))
    ((_, status),) = elements("p", role="status")
    assert status == image["alt"]
    ((_, still),) = elements("p", class_="cgmm-explorer-still")
    assert still == "Frame 3 of 8: moving on needs scripts."
    (outer, _), *_ = elements("fieldset")
    assert "disabled" in outer


def test_every_frame_shows_what_was_drawn(explorer):
    html = explorer.html()
    data = data_of(html)
    ((image, _),) = Elements(html)("img")
    assert data["names"] == [["0", "1", "2", "4"], ["left", "right"]]
    choices = [(n, side) for n in [0, 1, 2, 4] for side in [-1, 1]]
    assert len(data["frame"]) == len(data["text"]) == explorer.n_frames == len(choices)
    for (n, side), frame, text in zip(choices, data["frame"], data["text"], strict=True):
        picture = data["pictures"][frame] or image["src"]
        np.testing.assert_array_equal(pixels(picture), drawn(n=n, side=side))
        assert text == describe(n, side)


def test_equal_pictures_are_stored_once(explorer):
    html = explorer.html()
    data = data_of(html)
    # n = 0 and n = 1 look alike, and the picture on the page is not stored again.
    assert len(data["pictures"]) == 6
    assert data["pictures"].count(None) == 1
    assert html.count("data:image/webp") == 6
    assert data["frame"][:4] == [0, 1, 0, 1]
    assert data["text"][0] != data["text"][2]


def test_controls_are_native_and_named(explorer):
    elements = Elements(explorer.html())
    ((slider, _),) = elements("input", type="range")
    assert (slider["min"], slider["max"], slider["value"]) == ("0", "3", "1")
    assert slider["aria-valuetext"] == "1"
    # Without it, JupyterLab takes the arrow keys away.
    assert all("data-lm-suppress-shortcuts" in found for found, _ in elements("input"))
    left, right = elements("input", type="radio")
    assert "checked" in left[0]
    assert "checked" not in right[0]
    assert [text for _, text in elements("legend")] == ["to the"]
    assert [text for _, text in elements("button")] == ["Next step"]
    assert [text for _, text in elements("output")] == ["1"]
    ((group, _),) = elements("div", role="group")
    assert group["aria-label"] == "Explorer: A dot that moves"
    assert group["class"] == "cgmm-explorer"


def test_the_page_has_no_ids_and_asks_for_nothing(explorer):
    html = explorer.html()
    assert not [attributes for _, attributes, _ in Elements(html).all if "id" in attributes]
    assert "http" not in html
    assert "url(" not in html


def test_nothing_escapes_its_place():
    evil = '</script><img src=x onerror="alert(1)"> & "quoted"'
    explorer = make(
        title=evil,
        controls={
            "n": Slider(evil, {evil: 0, "plain": 1}, button=evil),
            "side": Choice(evil, {evil: 1}),
        },
        describe=lambda n, side: evil,
    )
    elements = Elements(explorer.html())
    ((image, _),) = elements("img")
    assert image["alt"] == evil
    assert "onerror" not in image
    assert len(elements("script")) == 2
    data = data_of(explorer.html())
    assert data["text"] == [evil, evil]
    assert data["names"] == [[evil, "plain"], [evil]]
    assert elements("legend")[0][1] == elements("button")[0][1] == evil


def test_frames_ignore_the_notebooks_own_style():
    with plt.rc_context({"figure.facecolor": "red", "font.size": 30, "savefig.dpi": 30}):
        assert make().html() == make().html()
        inside = make().html()
    assert inside == make().html()


def test_axes_will_do_for_a_figure():
    def on_axes(n, side):
        return draw(n, side).axes[0]

    assert make(draw=on_axes).html() == make().html()


PROCESS = """
import sys; sys.path.insert(0, {tests!r})
from test_explore import make
bundle = make()._repr_mimebundle_()
print(bundle["text/plain"], bundle["text/html"])
"""


def test_two_processes_write_the_same_bytes():
    code = PROCESS.format(tests=str(Path(__file__).parent))
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "MPLBACKEND": "agg"},
            stdout=subprocess.PIPE,
        )
        for seed in ("1", "2")
    ]
    first, second = (run.communicate()[0].decode() for run in runs)
    assert first == second
    assert first.strip() == f"{make()!r} {make().html()}"


# ---------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_frames": 7}, "4 × 2 = 8 frames are more than max_frames=7: give fewer values"),
        ({"max_bytes": 9000}, r"more than max_bytes=9000: its 8 frames have \d+ kB on average"),
        ({"controls": {}}, "at least one control"),
        ({"controls": {"n": [1, 2]}}, "give a Slider or a Choice"),
        ({"controls": {"n": Slider("n", [1])}}, "draw does not take the controls"),
        ({"describe": lambda n: ""}, "does not take the controls"),
        ({"describe": lambda n, side: " "}, "describe returned ' ' for {'n': 0, 'side': -1}"),
        ({"describe": lambda n, side: None}, "describe returned None"),
        ({"draw": lambda n, side: 3}, "draw returned 3 for {'n': 0, 'side': -1}"),
    ],
)
def test_an_explorer_that_cannot_work_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        make(**changes)


def test_frames_of_different_size_are_refused():
    def grow(n, side):
        return plt.figure(figsize=(1 + n, 1))

    with pytest.raises(ValueError, match=r"\('1', 'left'\) has 288 × 144 pixels, .* 144 × 144"):
        make(draw=grow)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"values": []}, "'steps' has no values"),
        ({"values": [0.14, 0.11], "format": "{:.1f}".format}, "two values .* called '0.1'"),
        ({"values": [1, 2], "start": 2}, "start=2 is no position among the 2 values"),
        ({"values": [1, 2], "start": -1}, "start=-1 is no position"),
        ({"values": [1, 2], "live": [2, 3]}, "live values .* lack '1'"),
    ],
)
def test_a_slider_that_cannot_work_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Slider("steps", **arguments)


def test_missing_libraries_are_named(monkeypatch, explorer):
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    with pytest.raises(ImportError, match=r"ipywidgets.*cgmm\[widgets\]"):
        explorer.widget()
    assert set(explorer._repr_mimebundle_()) == {"text/plain", "text/html"}
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match=r"Pillow.*cgmm\[widgets\]"):
        make()
    plt.close("all")


# ---------------------------------------------------------------------------- with a kernel


def parts(explorer: Explorer):
    title, image, slider, choice, status = explorer.widget().children
    return title, image, slider.children, choice.children[0], status


def shown(image) -> np.ndarray:
    return pixels(picture_of(image)["src"])


def picture_of(widget) -> dict:
    ((image, _),) = Elements(widget.value)("img")
    return image


def test_jupyter_is_offered_every_life(explorer):
    bundle = explorer._repr_mimebundle_()
    assert set(bundle) == {
        "application/vnd.jupyter.widget-view+json",
        "text/html",
        "text/plain",
    }
    assert bundle["text/html"] == explorer.html()
    assert bundle["text/plain"] == "Explorer('A dot that moves', 8 frames: steps × to the)"


def test_widgets_redraw_when_they_move(explorer):
    title, image, (slider, button), choice, status = parts(explorer)
    assert "A dot that moves" in title.value
    np.testing.assert_array_equal(shown(image), drawn(n=1, side=-1))
    slider.index = 3
    np.testing.assert_array_equal(shown(image), drawn(n=4, side=-1))
    choice.label = "right"
    np.testing.assert_array_equal(shown(image), drawn(n=4, side=1))
    assert status.value == picture_of(image)["alt"] == "A dot at 4, for n = 4."
    button.click()
    assert slider.label == "0"
    np.testing.assert_array_equal(shown(image), drawn(n=0, side=1))


CELL = """
import sys; sys.path.insert(0, {tests!r})
from cgmm import plot
plot.use_style()
from test_explore import make
make()
"""


def test_a_notebook_shows_the_explorer_and_no_loose_figure(explorer):
    cell = nbformat.v4.new_code_cell(CELL.format(tests=str(Path(__file__).parent)))
    notebook = nbformat.v4.new_notebook(cells=[cell])
    NotebookClient(notebook, kernel_name="python3", timeout=60).execute()
    (output,) = notebook.cells[0].outputs
    assert output.output_type == "execute_result"
    assert output.data["text/html"] == explorer.html()
    assert "application/vnd.jupyter.widget-view+json" in output.data


def test_a_finer_grid_is_drawn_live():
    calls = []

    def watched(n, side):
        calls.append(n)
        return draw(n, side)

    slider = Slider("steps", [0, 4], start=1, live=range(5))
    explorer = make(draw=watched, controls={"n": slider, "side": Choice("to the", [1])})
    assert explorer.n_frames == 2
    assert calls == [0, 4]
    _, image, (picker,), _, status = parts(explorer)
    assert picker.options == ("0", "1", "2", "3", "4")
    assert picker.label == "4"
    picker.label = "3"
    assert calls == [0, 4, 3]
    np.testing.assert_array_equal(shown(image), drawn(n=3, side=1))
    assert status.value == "A dot at 3, for n = 3."


def test_html_in_words_stays_text(explorer):
    wicked = make(title="<i>t</i>", describe=lambda n, side: "<b>n</b>")
    title, image, _, _, status = parts(wicked)
    assert picture_of(image)["alt"] == "<b>n</b>"
    assert "&lt;i&gt;" in title.value
    assert status.value == "&lt;b&gt;n&lt;/b&gt;"


# ---------------------------------------------------------------------------- in a browser

PAGE = """<!doctype html>
<html lang="en" data-theme="{theme}"><head><meta charset="utf-8"><title>Explorers</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
{styles}
</head><body><main class="bd-content" style="display: block"><h1>Explorers</h1>
{explorers}
</main></body></html>"""


def style_sheets(folder: Path) -> str:
    """The theme of the book, from the installed packages, where a built page would have it."""
    links = []
    for name in ("pydata_sphinx_theme", "sphinx_book_theme"):
        package = Path(importlib.util.find_spec(name).origin).parent
        source = package / "theme" / name / "static" / "styles"
        shutil.copytree(source, folder / "_static" / "styles", dirs_exist_ok=True)
    # Sphinx writes this one itself.
    (folder / "_static" / "basic.css").touch()
    for name in ("theme", "pydata-sphinx-theme", "sphinx-book-theme"):
        assert (folder / "_static" / "styles" / f"{name}.css").exists()
        links.append(f'<link rel="stylesheet" href="_static/styles/{name}.css">')
    return "\n".join(links)


@pytest.fixture
def visit(browser, tmp_path, explorer):
    """Open a page with two copies of one explorer and another one; no error may occur on it."""
    errors, contexts = [], []
    other = make(title="Another", controls={"n": Slider("n", [0, 3]), "side": Slider("s", [1, 2])})
    explorers = "\n".join([explorer.html(), explorer.html(), other.html()])

    def open_page(theme="light", width=900, **options):
        path = tmp_path / f"{theme}.html"
        path.write_text(
            PAGE.format(theme=theme, styles=style_sheets(tmp_path), explorers=explorers)
        )
        context = browser.new_context(viewport={"width": width, "height": 800}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(f"{message.text} {message.location}"))
        page.goto(path.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not errors


def state(root) -> tuple[str, str, str]:
    image = root.locator("img")
    words = image.get_attribute("alt")
    assert root.locator("[role=status]").inner_text() == words
    return image.get_attribute("src"), words, root.locator("output").first.inner_text()


def test_arrow_keys_move_one_explorer_and_no_other(visit):
    page = visit()
    first, twin, other = (page.locator(".cgmm-explorer").nth(i) for i in range(3))
    before = state(twin), state(other)
    slider = first.get_by_role("slider", name="steps", exact=True)
    slider.focus()
    page.keyboard.press("ArrowRight")
    source, words, value = state(first)
    np.testing.assert_array_equal(pixels(source), drawn(n=2, side=-1))
    assert (words, value) == ("A dot at -2, for n = 2.", "2")
    assert slider.get_attribute("aria-valuetext") == "2"
    page.keyboard.press("Home")
    assert state(first)[1] == "A dot at -1, for n = 0."
    assert (state(twin), state(other)) == before


def test_radio_buttons_of_twins_are_apart(visit):
    page = visit()
    first, twin = (page.locator(".cgmm-explorer").nth(i) for i in range(2))
    first.get_by_role("radio", name="left").focus()
    page.keyboard.press("ArrowRight")
    assert first.get_by_role("radio", name="right").is_checked()
    assert twin.get_by_role("radio", name="left").is_checked()
    np.testing.assert_array_equal(pixels(state(first)[0]), drawn(n=1, side=1))
    twin.get_by_role("radio", name="right").click()
    assert state(twin)[1] == "A dot at 1, for n = 1."


def test_the_button_goes_round(visit):
    page = visit()
    first = page.locator(".cgmm-explorer").first
    seen = []
    for _ in range(4):
        first.get_by_role("button", name="Next step").press("Enter")
        seen.append(state(first)[2])
    assert seen == ["2", "4", "0", "1"]


def test_two_sliders_reach_every_frame(visit):
    page = visit()
    other = page.locator(".cgmm-explorer").nth(2)
    other.get_by_role("slider", name="s").press("End")
    assert state(other)[1] == "A dot at 2, for n = 0."
    other.get_by_role("slider", name="n").press("End")
    assert state(other)[1] == "A dot at 6, for n = 3."


def test_a_form_that_is_sent_stays_on_the_page(visit):
    page = visit()
    address = page.url
    slider = page.locator("input[type=range]").first
    slider.press("End")
    # What some browsers do on Enter.
    slider.evaluate("e => e.form.requestSubmit()")
    page.wait_for_timeout(200)
    assert page.url == address
    assert slider.input_value() == "3"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(visit, theme):
    page = visit(theme)
    page.locator("input[type=range]").first.focus()
    results = Axe().run(page, options={"preload": False})
    assert results.violations_count == 0, results.generate_report()
    checked = [rule["id"] for rule in results.response["passes"]]
    assert {"color-contrast", "label", "image-alt"} <= set(checked)


def test_words_contrast_in_the_dark(visit):
    root = visit("dark").locator(".cgmm-explorer").first
    ink, paper = root.evaluate(
        "e => [getComputedStyle(e).color, getComputedStyle(e).backgroundColor]"
    )
    assert min(map(int, ink[4:-1].split(","))) > 180
    assert max(map(int, paper[4:-1].split(","))) < 60
    assert "invert" in root.locator("img").evaluate("e => getComputedStyle(e).filter")


@pytest.mark.parametrize("width", [320, 390])
def test_nothing_overflows_on_a_telephone(visit, width):
    page = visit(width=width)
    assert page.evaluate("document.scrollingElement.scrollWidth") <= width
    root = page.locator(".cgmm-explorer").first
    right = root.bounding_box()["x"] + root.bounding_box()["width"]
    for element in root.locator("img, input, button, output, p:visible").all():
        box = element.bounding_box()
        assert box["x"] + box["width"] <= right


def test_controls_stay_where_they_are_when_words_change(visit):
    page = visit(width=390)
    slider = page.locator("input[type=range]").first
    before = slider.bounding_box()
    slider.press("ArrowRight")
    assert slider.bounding_box() == before


def test_a_page_without_script_shows_the_first_frame(visit):
    page = visit(java_script_enabled=False)
    root = page.locator(".cgmm-explorer").first
    assert root.locator("img").is_visible()
    assert root.get_by_text("Frame 3 of 8: moving on needs scripts.").is_visible()
    assert root.locator("input").first.is_disabled()


def test_a_page_with_script_does_not_say_so(visit):
    root = visit().locator(".cgmm-explorer").first
    assert not root.get_by_text("needs scripts").is_visible()
    assert root.locator("input").first.is_enabled()


def test_source_of_a_method_stands_at_the_margin():
    assert repr(source(pooling.Pooling.maximise)).startswith("def maximise(")


def test_source_is_code_without_docstring_that_still_runs():
    shown = source(gaussian.sample, pool := POOLINGS["tied"].combine)
    assert '"""' not in shown
    assert shown._repr_markdown_().startswith("```python\ndef sample(")
    assert shown.count("\n\n\ndef _tied(") == 1
    namespace = {"np": np, "Parameters": object}
    exec("from __future__ import annotations\n" + shown, namespace)
    scatter = np.arange(8.0).reshape(2, 2, 2)
    counts = np.array([1.0, 3.0])
    np.testing.assert_array_equal(namespace["_tied"](counts, scatter), pool(counts, scatter))


def test_the_name_of_the_search_field_is_refused():
    with pytest.raises(ValueError, match="search field"):
        Explorer(
            lambda q: None,
            {"q": Choice("noise", [0, 1])},
            title="Noise",
            describe=lambda q: "noise",
        )


def test_a_picture_with_transparency_keeps_every_pixel():
    pixels = np.random.default_rng(0).integers(256, size=(5, 7, 4)).astype(np.uint8)
    decoded = Image.open(io.BytesIO(_webp(pixels)))
    assert decoded.mode == "RGBA"
    np.testing.assert_array_equal(np.asarray(decoded), pixels)


def test_a_pillow_without_webp_is_named(monkeypatch):
    monkeypatch.setattr("PIL.features.check", lambda feature: False)
    with pytest.raises(ImportError, match="cannot write WebP"):
        _webp(np.zeros((2, 2, 4), dtype=np.uint8))
