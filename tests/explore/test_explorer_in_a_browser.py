"""Test the static page in a real browser: keys, buttons, and a narrow screen."""

from functools import partial

import numpy as np
import pytest
from moving_dot import decode_webp, make_explorer, render_frame

from cgmm.explore import Slider

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture
def visit(open_page, explorer):
    """Return a function that opens a page with two copies of one explorer, and another explorer."""
    controls = {"n": Slider("n", [0, 3]), "side": Slider("s", [1, 2])}
    other = make_explorer(title="Another", controls=controls)
    explorers = "\n".join([explorer.html(), explorer.html(), other.html()])
    return partial(open_page, explorers)


def read_state(root) -> tuple[str, str, str]:
    image = root.locator("img")
    text = image.get_attribute("alt")
    assert root.locator("[role=status]").inner_text() == text
    return image.get_attribute("src"), text, root.locator("output").first.inner_text()


def test_keys_and_buttons_move_one_explorer_and_no_other(visit):
    page = visit()
    first, twin, other = (page.locator(".cgmm-explorer").nth(i) for i in range(3))
    before = read_state(twin), read_state(other)
    slider = first.get_by_role("slider", name="steps", exact=True)
    slider.focus()
    page.keyboard.press("ArrowRight")
    source, text, value = read_state(first)
    np.testing.assert_array_equal(decode_webp(source), render_frame(n=2, side=-1))
    assert (text, value) == ("A dot at -2, for n = 2.", "2")
    assert slider.get_attribute("aria-valuetext") == "2"
    page.keyboard.press("Home")
    assert read_state(first)[1] == "A dot at -1, for n = 0."
    first.get_by_role("radio", name="left").focus()
    page.keyboard.press("ArrowRight")
    assert read_state(first)[1] == "A dot at 1, for n = 0."
    # After the last state the button returns to the first.
    states = []
    for _ in range(4):
        first.get_by_role("button", name="Next step").press("Enter")
        states.append(read_state(first)[2])
    assert states == ["1", "2", "4", "0"]
    assert (read_state(twin), read_state(other)) == before
    other.get_by_role("slider", name="s").press("End")
    other.get_by_role("slider", name="n").press("End")
    assert read_state(other)[1] == "A dot at 6, for n = 3."


def test_a_slider_stays_in_place_on_a_telephone(visit):
    page = visit(width=320)
    slider = page.locator("input[type=range]").first
    before = slider.bounding_box()
    slider.press("ArrowRight")
    assert slider.bounding_box() == before
    assert not page.get_by_text("needs scripts").first.is_visible()
