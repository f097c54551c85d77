"""Test explorers with a kernel: widgets that redraw the figure."""

import numpy as np
import pytest
from moving_dot import decode_webp, draw_dot, make_explorer, parse_html, render_frame

from cgmm.explore import Choice, Explorer, Slider

pytestmark = pytest.mark.filterwarnings("error")


def children_of_widget(explorer: Explorer):
    title, image, slider, choice, status = explorer.widget().children
    return title, image, slider.children, choice.children[0], status


def displayed_pixels(image) -> np.ndarray:
    return decode_webp(parse_html(image.value).img["src"])


def test_figure_is_redrawn_when_a_control_moves(explorer):
    title, image, (slider, button), choice, status = children_of_widget(explorer)
    assert "A dot that moves" in title.value
    np.testing.assert_array_equal(displayed_pixels(image), render_frame(n=1, side=-1))
    slider.index = 3
    np.testing.assert_array_equal(displayed_pixels(image), render_frame(n=4, side=-1))
    choice.label = "right"
    np.testing.assert_array_equal(displayed_pixels(image), render_frame(n=4, side=1))
    assert status.value == parse_html(image.value).img["alt"] == "A dot at 4, for n = 4."
    button.click()
    assert slider.label == "0"
    np.testing.assert_array_equal(displayed_pixels(image), render_frame(n=0, side=1))


def test_values_between_the_stored_frames_are_drawn_live():
    calls = []

    def draw_and_record(n, side):
        calls.append(n)
        return draw_dot(n, side)

    slider = Slider("steps", [0, 4], start=1, live=range(5))
    controls = {"n": slider, "side": Choice("to the", [1])}
    explorer = make_explorer(draw=draw_and_record, controls=controls)
    assert explorer.n_frames == 2
    assert calls == [0, 4]
    _, image, (picker,), _, status = children_of_widget(explorer)
    assert picker.options == ("0", "1", "2", "3", "4")
    assert picker.label == "4"
    picker.label = "3"
    assert calls == [0, 4, 3]
    np.testing.assert_array_equal(displayed_pixels(image), render_frame(n=3, side=1))
    assert status.value == "A dot at 3, for n = 3."
