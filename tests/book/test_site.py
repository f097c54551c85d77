"""Test the site as a whole: no warnings, unique ids, dark figures and sharp explorers."""

import io
import os
import re
from pathlib import Path

import numpy as np
from built_book import GENERATED, pages_to_visit
from PIL import Image

from cgmm.datasets import vertical_classes

CHAPTERS = [name for name in pages_to_visit() if name not in GENERATED]
WITH_EXPLORERS = [name for name in CHAPTERS if re.match(r"book/\d\d_", name)]


def test_the_book_builds_without_a_warning(built):
    assert not built[1], built[1]


def test_the_build_makes_no_network_request(built):
    # The folder beside a build made before the tests (CGMM_BOOK) holds its log.
    log = Path(os.environ.get("CGMM_NETWORK_LOG", built[0].parents[1] / "network.log"))
    assert log.read_text(encoding="utf8") == ""


def test_no_id_occurs_twice_on_a_page(site):
    """A link to an id that occurs twice would lead to the first of them."""
    twice = {}
    for name in CHAPTERS:
        ids = re.findall(r' id="([^"]+)"', (site / f"{name}.html").read_text(encoding="utf8"))
        if found := {one for one in ids if ids.count(one) > 1}:
            twice[name] = found
    assert twice == {}


def test_figures_have_dark_versions(visit):
    """Line figures have their own dark colours on the page's background, without a CSS filter."""
    page = visit("book/02_em", color_scheme="dark").page
    shown = page.locator("figure img.only-dark:visible")
    style = "image => [getComputedStyle(image).filter, getComputedStyle(image).backgroundColor]"
    assert shown.count() > 2
    for figure in shown.all():
        assert figure.get_attribute("src").endswith(".svg#dark")
        assert figure.evaluate(style) == ["none", "rgba(0, 0, 0, 0)"]
    # Text is light in the dark theme.
    shown.first.scroll_into_view_if_needed()
    page.wait_for_timeout(300)
    pixels = np.asarray(Image.open(io.BytesIO(shown.first.screenshot())).convert("L"))
    assert np.median(pixels) < 40
    assert pixels.max() > 170


# ----------------------------------------------------------------------------- explorers


def test_every_chapter_has_an_explorer_whose_frames_are_sharp_files(site):
    """Frames have at least 1.5 times as many pixels as their width on the page.

    It is 704 at most, or 480 if the frame has one panel.
    """
    for name in WITH_EXPLORERS:
        text = (site / f"{name}.html").read_text(encoding="utf8")
        assert re.search(r'class="[^"]*cgmm-(explorer|live)\b', text), name
        frames = re.findall(
            r'<img class="cgmm-explorer-frame( cgmm-narrow)?"[^>]* width="(\d+)"', text
        )
        for narrow, width in frames:
            assert int(width) >= 1.5 * (480 if narrow else 704), name
        assert "data:image/webp" not in text
        assert all((site / one).exists() for one in re.findall(r"_images/frames/[\w.]+", text))


def test_live_figures_of_one_mode_share_a_script(site):
    modes = set()
    for name in CHAPTERS:
        text = (site / f"{name}.html").read_text(encoding="utf8")
        assert "function liveFigure" not in text, name
        modes |= (here := set(re.findall(r'class="cgmm-live"[^>]* data-mode="(\w+)"', text)))
        for mode in here:
            (source,) = set(re.findall(rf'<script src="([^"]*/live/{mode}\.js)"', text))
            assert "function liveFigure" in (site / name).parent.joinpath(source).read_text("utf8")
    assert {"rivals", "em", "cut"} <= modes


def test_live_figure_of_the_home_page_is_visible_without_scrolling(visit):
    """With two links the cut keeps its direction, and with three it turns."""
    page = visit("book/index").page
    live = page.locator(".cgmm-live")
    box = live.locator(".cgmm-live-main").bounding_box()
    assert box["y"] + box["height"] < 900
    status = live.locator("[role=status]")
    assert status.inner_text().startswith("0 relations: level by 24.0 nats")
    X, y = vertical_classes(16)[:2]
    clumps = [[np.flatnonzero((y == k) & ((X[:, 1] > 0) == top)) for top in (1, 0)] for k in (0, 1)]
    for n, (above, below) in enumerate([clumps[0], clumps[1], clumps[0]]):
        assert "level" in status.inner_text()
        for i in (above[n // 2], below[n // 2]):
            live.locator("[role=button]").nth(i).dispatch_event("pointerdown")
    assert status.inner_text().endswith("3 relations: upright by 3.5 nats.")


def test_no_image_has_two_loading_attributes(site):
    for name in pages_to_visit():
        text = (site / f"{name}.html").read_text(encoding="utf8")
        assert not re.search(r"<img [^>]*loading=[^>]*loading=", text), name
        # Without scripts a page has the colours of the light theme.
        assert re.search(r'<html [^>]*data-theme="light"', text), name


def test_numbers_in_tables_use_the_minus_sign_and_zero_has_none(site):
    n_numbers, wrong = 0, {}
    for name in CHAPTERS:
        text = (site / f"{name}.html").read_text(encoding="utf8")
        for table in re.findall(r'<table class="cgmm-table.*?</table>', text, re.DOTALL):
            words = re.sub(r"<[^>]+>", " ", table).split()
            n_numbers += sum(bool(re.match(r"−?\d", word)) for word in words)
            bad = [word for word in words if re.match(r"-\d|[-−]0(\.0+)?$", word)]
            wrong |= {name: bad} if bad else {}
    assert n_numbers > 500
    assert wrong == {}
