"""Test a chapter on a telephone: formulas break, figures enlarge, and a finger on a live figure
moves points there and scrolls the page elsewhere. Other pages are tested in test_pages.
"""

import io
import json
import math
import re
from itertools import combinations
from pathlib import Path
from urllib.parse import unquote, urlparse
from xml.etree import ElementTree

import cgmm_cut
import cgmm_phone
import matplotlib as mpl
import numpy as np
import pytest
from built_book import ROOT, open_for_module
from matplotlib.figure import Figure
from PIL import Image

from cgmm.plot import svg

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


@pytest.fixture(scope="module")
def phone(browser, site):
    with open_for_module(browser, site, "book/02_em", **PHONE) as one:
        yield one


def test_formulas_broken_for_a_telephone_are_whole_on_a_wide_screen(phone):
    broken = "document.querySelectorAll('mjx-piece').length"
    phone.unfold()
    assert phone.page.evaluate(broken) > 10
    phone.show(width=1600)
    phone.page.wait_for_function(f"{broken} < 10")
    phone.show(width=390)


def test_a_figure_enlarges_and_the_focus_comes_back(phone):
    page = phone.page
    button = page.locator(".cgmm-enlarge").first
    small = page.locator(".cgmm-figure img").first
    button.focus()
    page.keyboard.press("Enter")
    large = page.locator("dialog.cgmm-large img")
    assert large.bounding_box()["width"] > 1.5 * small.bounding_box()["width"]
    assert large.get_attribute("alt") == small.get_attribute("alt")
    page.keyboard.press("Escape")
    page.locator("dialog.cgmm-large").wait_for(state="detached")
    assert button.evaluate("button => button === document.activeElement")
    small.tap()
    page.locator("dialog.cgmm-large button").tap()
    page.locator("dialog.cgmm-large").wait_for(state="detached")
    assert not phone.complaints, "\n".join(phone.complaints)


# ---------------------------------------------------------------------------- live figures


PLACES = """points => [...points.children].map(one => {
  const at = new DOMPoint(0, 0).matrixTransform(one.getScreenCTM());
  return [at.x, at.y];
})"""


class Finger:
    """A page on a telephone with its first live figure."""

    def __init__(self, page):
        self.page, self.main = page, page.locator(".cgmm-live-main").first
        self.main.evaluate("main => main.scrollIntoView({block: 'center'})")
        self.touch = page.context.new_cdp_session(page)

    def places(self):
        """Return the positions of the points on the screen."""
        return self.main.locator(".points").evaluate(PLACES)

    def free_place(self):
        """Return a position on the figure that is far from all points."""
        box = self.main.bounding_box()
        spots = [(box["x"] + 20 * i, box["y"] + 20 * j) for i in range(1, 15) for j in range(1, 12)]
        return max(spots, key=lambda at: min(math.dist(at, one) for one in self.places()))

    def swipe(self, start, by, steps=8):
        """Press at a position, move, and release."""
        self._send("touchStart", start)
        for n in range(1, steps + 1):
            self._send("touchMove", [a + n * b / steps for a, b in zip(start, by, strict=True)])
        self._send("touchEnd")
        self.page.wait_for_timeout(200)

    def _send(self, kind, place=()):
        points = [dict(zip("xy", place, strict=True))] if place else []
        self.touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})


def require_following(one):
    """Check that the fourth point follows the finger and that nothing else moves."""
    before, scrolled = one.places(), one.page.evaluate("scrollY")
    one.swipe(before[3], (36, 48))
    after = one.places()
    assert math.dist(after[3], (before[3][0] + 36, before[3][1] + 48)) < 5
    assert one.page.evaluate("scrollY") == scrolled
    assert [n for n, place in enumerate(after) if math.dist(place, before[n]) > 1] == [3]


def test_a_point_follows_the_finger_and_beside_the_points_a_swipe_scrolls(visit):
    one = Finger(visit("book/02_em", **PHONE).page)
    require_following(one)
    before, scrolled = one.places(), one.page.evaluate("scrollY")
    one.swipe(one.free_place(), (0, -150))
    assert one.page.evaluate("scrollY") > scrolled + 60
    moved = [b[1] - a[1] for a, b in zip(one.places(), before, strict=True)]
    assert max(moved) - min(moved) < 1


def test_a_tap_picks_the_nearest_point_within_24_pixels_or_with_another_tool_moves_it(visit):
    one = Finger(visit("book/index", **PHONE).page)
    places = one.places()
    lonely = max(
        range(len(places)), key=lambda i: sorted(math.dist(places[i], p) for p in places)[1]
    )
    x, y = places[lonely]
    one.swipe((x + 10, y - 6), (0, 0), steps=0)
    assert f"Point {lonely + 1} picked" in one.page.locator(".cgmm-live-status").first.inner_text()
    one.page.locator(".cgmm-live input[value=move]").first.check()
    one.main.evaluate("main => main.scrollIntoView({block: 'center'})")
    require_following(one)


def test_the_cut_of_chapter_1_turns_by_its_handle(visit):
    one = Finger(visit("book/01_mixtures", **PHONE).page)
    box = one.main.locator(".handle").first.bounding_box()
    scrolled = one.page.evaluate("scrollY")
    one.swipe((box["x"] + box["width"] / 2, box["y"] + box["height"] / 2), (60, 30))
    assert "Cut at" in one.page.locator(".cgmm-live-status").first.inner_text()
    assert one.page.evaluate("scrollY") == scrolled


# ---------------------------------------------------------------------------- letters of figures

SMALLEST = 11
# For each visible figure: its file, its width, and the width of its column.
FIGURES = """() => [...document.querySelectorAll(".cgmm-pair img")]
  .filter(one => one.clientWidth)
  .map(one => [one.currentSrc, one.clientWidth, one.closest(".cgmm-pair").clientWidth])"""
# For each panel of a frame of an explorer: its pixels per inch of the figure that was drawn.
FRAMES = """() => [...document.querySelectorAll(".cgmm-frame img")].map(one => {
  const inches = one.naturalWidth > 1000 ? 7.2 : 4.8;
  return one.clientHeight / one.naturalHeight * one.naturalWidth / inches;
})"""
WITH_FIGURES = sorted(path.stem for path in (ROOT / "book").glob("*.ipynb"))


def letters_of(address, width):
    """Return the size in pixels of the smallest letters of a figure of this width."""
    file, _, view = address.partition("#")
    text = Path(unquote(urlparse(file).path)).read_text(encoding="utf8")
    if "phone" in view:
        text = text[text.index(f'id="{view}"') :]
    points = float(re.search(r'viewBox="0 0 ([\d.]+)', text)[1])
    # cgmm_light.py gives texts the scale of their glyphs, too: 1 / 64 of what matplotlib wrote.
    sizes = [6400 * float(one) for one in re.findall(r"scale\((0?\.\d+) -0?\.\d+\)", text)]
    return min(sizes, default=SMALLEST * points / width) * width / points


def points_of_explorer(name):
    """Return the size in points of the smallest letters in the explorer of a chapter."""
    cells = json.loads((ROOT / f"book/{name}.ipynb").read_text(encoding="utf8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if "explore" in cell["id"]]
    sizes = re.findall(r"font_?size=(\d+)", "\n".join(sources))
    # The style of the book has numbers of 11 points.
    return min(map(int, sizes), default=11)


@pytest.mark.parametrize(
    ("name", "colours"),
    [*((name, "light") for name in WITH_FIGURES), ("02_em", "dark"), ("07_cannot_links", "dark")],
)
def test_letters_of_figures_can_be_read_on_a_telephone(visit, name, colours):
    """Panels are stacked, and no figure or frame scrolls sideways."""
    page = visit(f"book/{name}", **PHONE, color_scheme=colours).page
    page.evaluate("for (const one of document.images) one.loading = 'eager'")
    page.wait_for_load_state("networkidle")
    page.wait_for_function("innerWidth === widthSeen")
    figures, frames = page.evaluate(FIGURES), page.evaluate(FRAMES)
    assert figures
    assert [one for one in figures if letters_of(*one[:2]) < SMALLEST - 0.1] == []
    assert all(width <= column for _, width, column in figures)
    stacked = [address for address, *_ in figures if "#phone" in address]
    assert all(one.endswith("-dark") == (colours == "dark") for one in stacked)
    assert all(one / 72 * points_of_explorer(name) >= SMALLEST - 0.1 for one in frames), frames
    assert page.locator(":is(.cgmm-pair, .cgmm-frame).cgmm-scrolls").count() == 0
    explorers = page.locator(".cgmm-explorer")
    assert explorers.locator(".cgmm-enlarge").count() == explorers.count()


def test_a_telephone_shows_each_panel_of_an_explorer_below_the_other(visit):
    """The pieces of the picture are those of the file, and follow the controls."""
    page = visit("book/07_cannot_links", **PHONE).page
    explorer = page.locator(".cgmm-explorer").first
    explorer.scroll_into_view_if_needed()
    first, other = explorer.locator(".cgmm-frame img").all()
    above, below = first.bounding_box(), other.bounding_box()
    assert above["y"] + above["height"] <= below["y"]
    file = Path(unquote(urlparse(other.evaluate("one => one.src")).path))
    with Image.open(file) as image:
        whole = np.asarray(image.convert("L"), dtype=float)
    shown = Image.open(io.BytesIO(other.screenshot())).convert("L")
    shown = np.asarray(shown.resize((shown.width * 540 // shown.height, 540)), dtype=float)
    # The second panel reaches to the right end of the frame.
    both = [Image.fromarray(one).reduce(4) for one in (whole[:, -shown.shape[1] :], shown)]
    assert np.corrcoef(*(np.ravel(one) for one in both))[0, 1] > 0.95
    explorer.locator("button:not(.cgmm-enlarge)").first.click()
    page.wait_for_function(
        "old => document.querySelector('.cgmm-other-panel').src !== old", arg=file.as_uri()
    )
    assert other.get_attribute("alt") == ""
    sources = explorer.locator(".cgmm-frame img").evaluate_all("all => all.map(one => one.src)")
    assert sources[0] == sources[1] != file.as_uri()


def test_panels_of_a_frame_are_found_between_columns_that_are_empty():
    names, plane, gap = [False] * 30, [False] * 300, [True] * 20
    label = [*names, *gap[:12]]
    is_empty = np.array([*gap, *label, *plane, *gap, *label, *plane, *gap])
    left, right = cgmm_cut.split(is_empty)
    width = len(is_empty)
    assert np.allclose(np.multiply(left, width), [15, 367])
    assert np.allclose(np.multiply(right, width), [377, 729])
    assert len(cgmm_cut.split(np.array([*gap, *label, *plane, *gap, *names]))) == 1
    assert cgmm_cut.row_width([(0, 0.3), (0.3, 0.6), (0.6, 1)]) == pytest.approx(0.6)
    assert cgmm_cut.row_width([(0, 0.2), (0.7, 1)]) == cgmm_cut.NARROWEST_ROW
    shown = "0.667 0.000 0.800, 1.000 1.000 1.200"
    assert cgmm_cut.describe([(0.0, 0.4), (0.4, 1.0)], 2.0) == shown


def stored_figures():
    for path in sorted((ROOT / "book").glob("*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf8"))["cells"]:
            for output in cell.get("outputs", ()):
                if text := "".join(output.get("data", {}).get("image/svg+xml", ())):
                    yield f"{path.stem} {cell['id']}", text


def test_panels_of_every_stacked_figure_stand_apart():
    """Each part lies within the view, none over another, and the widest row fits the letters."""
    n_stacked = 0
    for name, text in stored_figures():
        stack = cgmm_phone.stack(text)
        if stack is None or stack.narrowed:
            continue
        n_stacked += 1
        assert stack.width <= 358 * cgmm_phone.smallest_text(text) / SMALLEST, name
        parts = {one.name: one.box for one in cgmm_phone.find_parts(ElementTree.fromstring(text))}
        moved = [
            (box.left + dx, box.top + dy, box.right + dx, box.bottom + dy)
            for box, (dx, dy) in ((parts[one], move) for one, move in stack.moves.items())
        ]
        assert parts.keys() == stack.moves.keys(), name
        assert min(one[0] for one in moved) >= 0, name
        assert max(one[2] for one in moved) <= stack.width, name
        assert max(one[3] for one in moved) <= stack.height, name
        lapping = [
            (a, b)
            for a, b in combinations(moved, 2)
            if min(a[2], b[2]) - max(a[0], b[0]) > 1 and min(a[3], b[3]) - max(a[1], b[1]) > 1
        ]
        assert lapping == [] or stays_together(parts, stack), name
    assert n_stacked > 40


def stays_together(parts, stack):
    """Parts that overlap in the whole figure, such as a legend on its panel, are moved alike."""
    return all(
        stack.moves[a] == stack.moves[b]
        for a, b in combinations(parts, 2)
        if min(parts[a].right, parts[b].right) - max(parts[a].left, parts[b].left) > 1
        and min(parts[a].bottom, parts[b].bottom) - max(parts[a].top, parts[b].top) > 1
    )


@pytest.fixture
def default_settings():
    """Draw with matplotlib's own settings, which other tests in this process may have changed."""
    with mpl.rc_context():
        mpl.rcdefaults()
        yield


@pytest.mark.usefixtures("default_settings")
def test_a_panel_that_begins_a_row_has_the_numbers_of_its_neighbour():
    # Two panels of 4 inches never fit beside each other, whatever the size of the letters.
    figure = Figure(figsize=(12, 2.4), layout="constrained")
    for ax in figure.subplots(1, 3, sharey=True):
        ax.plot([0, 1], [0, 20])
    text = svg(figure)
    stack = cgmm_phone.stack(text)
    assert [panel for panel, _, _ in stack.axes] == ["axes_2", "axes_3"]
    written = cgmm_phone.with_stack(text)
    for _, axis, shift in stack.axes:
        assert (
            f'<use xlink:href="#{axis}" transform="translate({shift:.2f} 0)" class="y"/>' in written
        )
    assert cgmm_phone.with_stack(written) == written


@pytest.mark.usefixtures("default_settings")
def test_four_panels_are_stacked_in_two_rows_of_two_even_if_three_fit():
    figure = Figure(figsize=(7.2, 1.5))
    for ax in figure.subplots(1, 4):
        ax.set_axis_off()
        box = {"boxstyle": "round"}
        for y, words in enumerate(["words of a flow", "chart"]):
            ax.text(0.5, y, words, size=11, ha="center", bbox=box)
    stack = cgmm_phone.stack(svg(figure))
    (first, second, third, fourth) = (stack.moves[f"axes_{n}"] for n in (1, 2, 3, 4))
    assert first[1] == second[1] < third[1] == fourth[1]
    # The columns are narrow, so more space is put around them, and the letters stay small.
    assert stack.width == pytest.approx(0.75 * 358, abs=0.1)


@pytest.mark.usefixtures("default_settings")
def test_a_legend_below_all_panels_does_not_keep_them_from_being_stacked():
    figure = Figure(figsize=(7.2, 3), layout="constrained")
    for ax in figure.subplots(1, 2):
        ax.plot([0, 1], [0, 20], label="a line")
    figure.legend(*ax.get_legend_handles_labels(), loc="outside lower center")
    stack = cgmm_phone.stack(svg(figure))
    left, right, legend = (stack.moves[one][1] for one in ("axes_1", "axes_2", "legend_1"))
    assert left < right < legend + 200


# For each text and each mark of a figure: left, top, right and bottom end, in points.
DRAWN = """() => {
  const box = one => (at => [at.left, at.top, at.right, at.bottom])(one.getBoundingClientRect());
  const shown = [...document.querySelectorAll("[id^=text_], [id^=legend_]")]
    .filter(one => !one.parentElement.closest("[id^=legend_]"))
    .filter(one => one.getBoundingClientRect().width);
  const isMark = one => one.hasAttribute("x") && !one.closest("[id^=text_], [id^=matplotlib]");
  const marks = [...document.querySelectorAll("use")].filter(isMark).map(box);
  return {texts: Object.fromEntries(shown.map(one => [one.id, box(one)])), marks};
}"""


@pytest.fixture
def measure_figure(browser, tmp_path):
    """Return a function that measures the texts and marks of a figure, or of its view."""
    page = browser.new_page(viewport={"width": 700, "height": 900})

    def measure(text, view=""):
        # Of a second address with the same file the browser would only look for the fragment.
        path = tmp_path / f"figure{len(text)}.svg"
        # A point is a pixel, in the view too.
        pattern = (
            r'<view id="phone" viewBox="0 0 (\S+) (\S+)"' if view else 'viewBox="0 0 (.+?) (.+?)"'
        )
        width, height = re.search(pattern, text).groups()
        text = re.sub(
            r'width="[^"]*" height="[^"]*"', f'width="{width}" height="{height}"', text, count=1
        )
        path.write_text(text, encoding="utf8")
        page.goto(path.as_uri() + view)
        return page.evaluate(DRAWN)

    yield measure
    page.close()


def gap_between(one, other):
    """Return the gap between two boxes; negative where they overlap."""
    (a, b, c, d), (e, f, g, h) = one, other
    return max(e - c, a - g, f - d, b - h)


def test_texts_of_every_narrowed_figure_have_room(measure_figure):
    """The browser measures that no text leaves the view or covers another, and marks keep shape."""
    wide, n_narrowed = [], 0
    for name, text in stored_figures():
        if "least" in cgmm_phone.css_variables(text):
            wide.append(name)
        stack = cgmm_phone.stack(text)
        if stack is None or not stack.narrowed:
            continue
        n_narrowed += 1
        before, after = measure_figure(text), measure_figure(cgmm_phone.with_stack(text), "#phone")
        texts = after["texts"]
        assert len(texts) > 0.6 * len(before["texts"]), name
        assert min(min(box[:2]) for box in texts.values()) > -2, name
        assert max(box[2] for box in texts.values()) < stack.width + 2, name
        for one, other in combinations(texts, 2):
            gap = gap_between(before["texts"][one], before["texts"][other])
            assert gap_between(texts[one], texts[other]) > min(gap, 0) - 1, (name, one, other)
        sizes = [[box[2] - box[0] for box in which["marks"]] for which in (before, after)]
        assert len(sizes[0]) == len(sizes[1])
        # Wider shapes are areas under curves, which are narrowed.
        assert all(a > 30 or abs(a - b) < 1.5 for a, b in zip(*sizes, strict=True)), name
    assert n_narrowed > 50
    assert wide == []


def make_chart(**looks):
    """Return a chart 7.2 inches wide, whose letters a telephone shows too small."""
    figure = Figure(figsize=(7.2, 2.4))
    ax = figure.subplots()
    ax.plot([0, 1, 2], [0, 10, 30], "o-")
    ax.set(**looks)
    return figure, ax


def test_a_chart_is_narrowed_sideways_unless_a_circle_has_to_stay_round():
    figure, ax = make_chart()
    across, up = cgmm_phone.stack(svg(figure)).narrowed["axes_1"].scales
    assert 0.4 < across < 0.8
    assert up == 1
    assert cgmm_phone.css_variables(svg(figure)).startswith("--cgmm-stack: ")
    ax.set(aspect="equal", ylim=(0, 0.5))
    scales = cgmm_phone.stack(svg(figure)).narrowed["axes_1"].scales
    assert scales[0] == scales[1] < 0.8


def test_numbers_below_a_narrow_axis_are_thinned_out():
    figure, _ = make_chart(xticks=range(0, 3), xlim=(0, 2))
    every = cgmm_phone.stack(svg(figure)).narrowed["axes_1"].moves
    assert None not in every.values()
    figure, ax = make_chart(xticks=[n / 8 for n in range(17)])
    ax.set_xticklabels([f"{n / 8:.3f}" for n in range(17)])
    moves = list(cgmm_phone.stack(svg(figure)).narrowed["axes_1"].moves.values())[:17]
    assert moves[0] is not None
    assert moves[1] is None


@pytest.mark.parametrize("what", ["flow chart", "long text"])
def test_what_cannot_be_narrowed_keeps_its_width_and_scrolls(what):
    figure, ax = make_chart()
    if what == "flow chart":
        ax.set_axis_off()
        ax.text(0, 0, "start", bbox={"boxstyle": "round"})
    else:
        ax.set_title("a title that is wider than a telephone " * 2)
    assert cgmm_phone.stack(svg(figure)) is None
    assert re.fullmatch(r"--cgmm-least: \d{3}px", cgmm_phone.css_variables(svg(figure)))
