"""Test the static page of an explorer: its contents, and how a browser parses it."""

import json

import numpy as np
import pytest
from moving_dot import describe, drawn_frames, make, pixels, read

from cgmm.explore import Choice, Slider

pytestmark = pytest.mark.filterwarnings("error")


def data_of(html: str) -> dict:
    return json.loads(read(html).select_one("script[type='application/json']").string)


def test_the_page_shows_the_first_frame_without_script_and_names_what_it_is(explorer):
    page = read(explorer.html())
    (image,) = page.select("img")
    assert image["class"] == ["cgmm-explorer-frame"]
    assert (image["width"], image["height"]) == ("288", "144")
    assert image["alt"] == "A dot at -1, for n = 1."
    np.testing.assert_array_equal(pixels(image["src"]), drawn_frames(n=1, side=-1))
    assert page.select_one("p[role=status]").string == image["alt"]
    still = page.select_one("p.cgmm-explorer-still").string
    assert still == "Frame 3 of 8: moving on needs scripts."
    assert page.select_one("fieldset").has_attr("disabled")
    assert page.select_one("div[role=group]")["aria-label"] == "Explorer: A dot that moves"
    # Without this, JupyterLab would handle the arrow keys.
    assert all(one.has_attr("data-lm-suppress-shortcuts") for one in page.select("input"))


def test_every_frame_shows_what_was_drawn_and_equal_pictures_are_stored_once(explorer):
    html = explorer.html()
    data = data_of(html)
    image = read(html).select_one("img")
    assert data["names"] == [["0", "1", "2", "4"], ["left", "right"]]
    choices = [(n, side) for n in [0, 1, 2, 4] for side in [-1, 1]]
    for (n, side), frame, text in zip(choices, data["frame"], data["text"], strict=True):
        picture = data["pictures"][frame] or image["src"]
        np.testing.assert_array_equal(pixels(picture), drawn_frames(n=n, side=side))
        assert text == describe(n, side)
    # n = 0 and n = 1 look alike, and the picture on the page is not stored again.
    assert len(data["pictures"]) == html.count("data:image/webp") == 6
    assert explorer.n_frames == 8


def test_html_and_scripts_in_arguments_are_escaped():
    evil = '</script><img src=x onerror="alert(1)"> & "quoted"'
    explorer = make(
        title=evil,
        controls={
            "n": Slider(evil, {evil: 0, "plain": 1}, button=evil),
            "side": Choice(evil, {evil: 1}),
        },
        describe=lambda n, side: evil,
    )
    page = read(explorer.html())
    (image,) = page.select("img")
    assert image["alt"] == evil
    assert not image.has_attr("onerror")
    assert len(page.select("script")) == 2
    data = data_of(explorer.html())
    assert data["text"] == [evil, evil]
    assert data["names"] == [[evil, "plain"], [evil]]
    assert page.select_one("legend").string == page.select_one("button").string == evil
