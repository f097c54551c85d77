"""Controls that cannot work are refused when they are made."""

from __future__ import annotations

import pytest

from cgmm.explore import Choice, Explorer, Slider

pytestmark = pytest.mark.filterwarnings("error")


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


def test_the_name_of_the_search_field_is_refused():
    with pytest.raises(ValueError, match="search field"):
        Explorer(
            lambda q: None,
            {"q": Choice("noise", [0, 1])},
            title="Noise",
            describe=lambda q: "noise",
        )
