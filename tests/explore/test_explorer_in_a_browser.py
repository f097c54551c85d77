"""The life without a kernel, in a real browser: keys, buttons, the dark, a telephone."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from moving_dot import drawn, make, pixels

from cgmm.explore import Slider

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture
def visit(open_page, explorer):
    """Open a page with two copies of one explorer and another one."""
    other = make(title="Another", controls={"n": Slider("n", [0, 3]), "side": Slider("s", [1, 2])})
    explorers = "\n".join([explorer.html(), explorer.html(), other.html()])
    return partial(open_page, explorers)


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


def test_frames_are_shown_at_most_704_wide(visit):
    """tests/book/test_site.py holds their own width against it."""
    assert visit(width=1400).locator("img").first.bounding_box()["width"] <= 704


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
