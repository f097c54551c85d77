"""Test explorers with a kernel: widgets that redraw the figure."""

import numpy as np
import pytest
from moving_dot import draw, drawn_frames, make, pixels, read

from cgmm.explore import Choice, Explorer, Slider

pytestmark = pytest.mark.filterwarnings("error")


def parts(explorer: Explorer):
    title, image, slider, choice, status = explorer.widget().children
    return title, image, slider.children, choice.children[0], status


def shown(image) -> np.ndarray:
    return pixels(read(image.value).img["src"])


def test_widgets_redraw_when_they_move(explorer):
    title, image, (slider, button), choice, status = parts(explorer)
    assert "A dot that moves" in title.value
    np.testing.assert_array_equal(shown(image), drawn_frames(n=1, side=-1))
    slider.index = 3
    np.testing.assert_array_equal(shown(image), drawn_frames(n=4, side=-1))
    choice.label = "right"
    np.testing.assert_array_equal(shown(image), drawn_frames(n=4, side=1))
    assert status.value == read(image.value).img["alt"] == "A dot at 4, for n = 4."
    button.click()
    assert slider.label == "0"
    np.testing.assert_array_equal(shown(image), drawn_frames(n=0, side=1))


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
    np.testing.assert_array_equal(shown(image), drawn_frames(n=3, side=1))
    assert status.value == "A dot at 3, for n = 3."
