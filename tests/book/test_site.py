"""Test the site as a whole: no warnings, unique ids, dark figures and sharp explorers."""

import io
import os
import re
from pathlib import Path

import numpy as np
import pytest
from built_book import pages_to_visit
from PIL import Image

from cgmm.datasets import vertical_classes


@pytest.fixture(scope="module")
def texts(site):
    """Return the HTML of each page by its name."""
    return {name: (site / f"{name}.html").read_text("utf8") for name in pages_to_visit()}


def test_the_book_builds_without_a_warning(built):
    assert not built[1], built[1]


def test_the_build_makes_no_network_request(built):
    # For a build made before the tests (CGMM_BOOK), CGMM_NETWORK_LOG names its log.
    log = Path(os.environ.get("CGMM_NETWORK_LOG", built[0].parents[1] / "network.log"))
    assert log.read_text(encoding="utf8") == ""


def test_no_id_occurs_twice_on_a_page(texts):
    """A browser follows a link to the first element with an id, so a second one is not reached."""
    for name, text in texts.items():
        ids = re.findall(r' id="([^"]+)"', text)
        assert sorted(ids) == sorted(set(ids)), name


def test_figures_have_dark_versions(visit):
    """Line figures have a second file with dark colours, so no CSS filter inverts them."""
    page = visit("book/02_em", color_scheme="dark").page
    shown = page.locator("figure img.only-dark:visible")
    style = "image => [getComputedStyle(image).filter, getComputedStyle(image).backgroundColor]"
    assert shown.count() > 2
    for figure in shown.all():
        assert figure.get_attribute("src").endswith(".svg#dark")
        assert figure.evaluate(style) == ["none", "rgba(0, 0, 0, 0)"]
    # The background is dark, and the text is light.
    shown.first.scroll_into_view_if_needed()
    page.wait_for_timeout(300)
    pixels = np.asarray(Image.open(io.BytesIO(shown.first.screenshot())).convert("L"))
    assert np.median(pixels) < 40
    assert pixels.max() > 170


# ----------------------------------------------------------------------------- explorers


def test_every_chapter_has_an_explorer_whose_frames_are_sharp_files(site, texts):
    """Frames have at least 1.5 times as many pixels as their width on the page.

    It is 704 at most, or 480 if the frame has one panel.
    """
    for name, text in texts.items():
        is_chapter = re.match(r"book/\d\d_", name)
        assert not is_chapter or re.search(r'class="[^"]*cgmm-(explorer|live)\b', text), name
        frames = re.findall(
            r'<img class="cgmm-explorer-frame( cgmm-narrow)?"[^>]* width="(\d+)"', text
        )
        for narrow, width in frames:
            assert int(width) >= 1.5 * (480 if narrow else 704), name
        assert "data:image/webp" not in text
        assert all((site / one).exists() for one in re.findall(r"_images/frames/[\w.]+", text))


def test_live_figures_with_the_same_mode_share_a_script(site, texts):
    modes = set()
    for name, text in texts.items():
        assert "function liveFigure" not in text, name
        modes |= (here := set(re.findall(r'class="cgmm-live"[^>]* data-mode="(\w+)"', text)))
        for mode in here:
            (source,) = set(re.findall(rf'<script src="([^"]*/live/{mode}\.js)"', text))
            assert "function liveFigure" in (site / name).parent.joinpath(source).read_text("utf8")
    assert {"rivals", "em", "cut"} <= modes


def test_live_figure_of_the_home_page_is_visible_without_scrolling(visit):
    """With two must-links the components stay level, and with three they are upright."""
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


def test_no_image_has_two_loading_attributes_and_the_default_theme_is_light(texts):
    for name, text in texts.items():
        assert not re.search(r"<img [^>]*loading=[^>]*loading=", text), name
        # Without scripts a page has the colours of the light theme.
        assert re.search(r'<html [^>]*data-theme="light"', text), name


def test_negative_numbers_in_tables_have_a_minus_sign_and_zeros_have_none(texts):
    n_numbers, wrong = 0, {}
    for name, text in texts.items():
        for table in re.findall(r'<table class="cgmm-table.*?</table>', text, re.DOTALL):
            words = re.sub(r"<[^>]+>", " ", table).split()
            n_numbers += sum(bool(re.match(r"−?\d", word)) for word in words)
            bad = [word for word in words if re.match(r"-\d|[-−]0(\.0+)?$", word)]
            wrong |= {name: bad} if bad else {}
    assert n_numbers > 500
    assert wrong == {}
