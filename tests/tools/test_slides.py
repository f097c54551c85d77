"""Test that the slides of each chapter are readable and are one self-contained file."""

import re

import chapter_pieces as chapters
import pytest

import slides

NAMES = chapters.chapter_names()


@pytest.fixture(scope="module")
def page(browser):
    """Open a browser window of the size of a slide."""
    return browser.new_page(viewport={"width": 1280, "height": 720})


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name != NAMES[1])) for name in NAMES]
)
def test_slides_of_a_chapter_are_8_to_12_fit_and_need_no_other_file(name, page, tmp_path):
    assert slides.write_slides(page, name, tmp_path) == []
    assert 8 <= page.locator("section").count() <= 12
    text = (tmp_path / f"{name}.html").read_text(encoding="utf8")
    page.reload()
    loaded = page.evaluate("performance.getEntriesByType('resource').map(entry => entry.name)")
    assert [url for url in loaded if not url.startswith("data:")] == []
    assert re.findall(r"(?:src|href)=\"(?!data:|#)[^\"]*|url\((?!data:|#)", text) == []
    assert text.count("<script") == 1  # The only script changes slides.
    loaded = "[...document.fonts].filter(one => one.status === 'loaded').map(one => one.family)"
    assert "Source Sans 3" in page.evaluate(loaded)
    assert page.locator("h2").first.evaluate("one => getComputedStyle(one).fontFamily") == (
        '"Source Sans 3", sans-serif'
    )
    assert page.locator("img:not([alt]), img[alt='']").count() == 0
    words = page.locator("body").inner_text()
    assert re.findall(r"\{[a-z:]+\}`|\]\(|\$|:label:|\bth[mx]-\d|\bfig-\d|\beq-\d", words) == []
    n_pages = (tmp_path / f"{name}.pdf").read_bytes().count(b"/Type /Page\n")
    assert n_pages == len(slides.build_slides(name))


def test_unreadable_slides_are_reported_by_title(page, tmp_path, monkeypatch):

    long = "A word and another. " * 200
    wide = "$$ " + " + ".join(f"x_{{{n}}}" for n in range(60)) + " $$"
    plan = [("Long", long), ("Wide", wide), ("Tall", "{{ fig-9-noise }}")]
    monkeypatch.setattr(slides, "read_plan", lambda name: plan)
    faults = slides.write_slides(page, "09_soft_preferences", tmp_path)
    assert "Long: too much on it" in faults
    assert "Wide: wider than the slide" in faults
    assert [fault for fault in faults if fault.startswith("Tall: a figure at 0.")]
