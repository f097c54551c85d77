"""The life without a kernel: what the page holds, and how a browser would read it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from moving_dot import Elements, describe, drawn, make, pixels

from cgmm.explore import Choice, Slider

pytestmark = pytest.mark.filterwarnings("error")


def data_of(html: str) -> dict:
    ((_, text),) = Elements(html)("script", type="application/json")
    return json.loads(text)


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


def test_every_frame_shows_what_was_drawn_and_equal_pictures_are_stored_once(explorer):
    html = explorer.html()
    data = data_of(html)
    ((image, _),) = Elements(html)("img")
    assert data["names"] == [["0", "1", "2", "4"], ["left", "right"]]
    choices = [(n, side) for n in [0, 1, 2, 4] for side in [-1, 1]]
    for (n, side), frame, text in zip(choices, data["frame"], data["text"], strict=True):
        picture = data["pictures"][frame] or image["src"]
        np.testing.assert_array_equal(pixels(picture), drawn(n=n, side=side))
        assert text == describe(n, side)
    # n = 0 and n = 1 look alike, and the picture on the page is not stored again.
    assert len(data["pictures"]) == html.count("data:image/webp") == 6
    assert explorer.n_frames == 8


def test_controls_are_native_and_named(explorer):
    elements = Elements(explorer.html())
    ((slider, _),) = elements("input", type="range")
    assert (slider["min"], slider["max"], slider["value"]) == ("0", "3", "1")
    assert slider["aria-valuetext"] == "1"
    # Without it, JupyterLab takes the arrow keys away.
    assert all("data-lm-suppress-shortcuts" in found for found, _ in elements("input"))
    assert ["checked" in found for found, _ in elements("input", type="radio")] == [True, False]
    words = {"legend": "to the", "button": "Next step", "output": "1"}
    assert {tag: elements(tag)[0][1] for tag in words} == words
    ((group, _),) = elements("div", role="group")
    assert group["aria-label"] == "Explorer: A dot that moves"


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
