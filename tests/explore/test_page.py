"""Test the static page of an explorer: its contents, and how a browser parses it."""

import json

import numpy as np
import pytest
from moving_dot import decode_webp, describe_dot, make_explorer, parse_html, render_frame

from cgmm.explore import Choice, Slider

pytestmark = pytest.mark.filterwarnings("error")


def read_json_of_page(html: str) -> dict:
    return json.loads(parse_html(html).select_one("script[type='application/json']").string)


def test_page_without_script_shows_the_first_frame_with_accessible_names(explorer):
    page = parse_html(explorer.html())
    (image,) = page.select("img")
    assert image["class"] == ["cgmm-explorer-frame"]
    assert (image["width"], image["height"]) == ("288", "144")
    assert image["alt"] == "A dot at -1, for n = 1."
    np.testing.assert_array_equal(decode_webp(image["src"]), render_frame(n=1, side=-1))
    assert page.select_one("p[role=status]").string == image["alt"]
    still = page.select_one("p.cgmm-explorer-still").string
    assert still == "Frame 3 of 8: moving on needs scripts."
    assert page.select_one("fieldset").has_attr("disabled")
    assert page.select_one("div[role=group]")["aria-label"] == "Explorer: A dot that moves"
    # Without this, JupyterLab would handle the arrow keys.
    assert all(one.has_attr("data-lm-suppress-shortcuts") for one in page.select("input"))


def test_frames_equal_the_drawings_and_equal_frames_are_stored_once(explorer):
    html = explorer.html()
    data = read_json_of_page(html)
    image = parse_html(html).select_one("img")
    assert data["names"] == [["0", "1", "2", "4"], ["left", "right"]]
    choices = [(n, side) for n in [0, 1, 2, 4] for side in [-1, 1]]
    for (n, side), frame, text in zip(choices, data["frame"], data["text"], strict=True):
        picture = data["pictures"][frame] or image["src"]
        np.testing.assert_array_equal(decode_webp(picture), render_frame(n=n, side=side))
        assert text == describe_dot(n, side)
    # Six of the eight pictures differ, since n = 0 and n = 1 look alike. The one in <img> is not
    # repeated in the data.
    assert len(data["pictures"]) == html.count("data:image/webp") == 6
    assert explorer.n_frames == 8


def test_html_and_scripts_in_arguments_are_escaped():
    evil = '</script><img src=x onerror="alert(1)"> & "quoted"'
    slider = Slider(evil, {evil: 0, "plain": 1}, button=evil)
    controls = {"n": slider, "side": Choice(evil, {evil: 1})}
    explorer = make_explorer(title=evil, controls=controls, describe=lambda n, side: evil)
    page = parse_html(explorer.html())
    (image,) = page.select("img")
    assert image["alt"] == evil
    assert not image.has_attr("onerror")
    assert len(page.select("script")) == 2
    data = read_json_of_page(explorer.html())
    assert data["text"] == [evil, evil]
    assert data["names"] == [[evil, "plain"], [evil]]
    assert page.select_one("legend").string == page.select_one("button").string == evil
