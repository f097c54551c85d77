"""Every page of the built book, opened from a plain file path with the network cut off."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from built_book import Visit, frame, pages

# Glyphs of formulas take the colour of the text around them, and there are thousands.
AXE_CONTEXT = {"exclude": [["mjx-container"]]}
# Without preloading: axe would ask for the style sheets, which browsers refuse on file paths.
AXE_OPTIONS = {"resultTypes": ["violations"], "preload": False}
# What a theme can change; the structure of a page is the same in both.
OF_COLOURS = {"runOnly": ["color-contrast", "link-in-text-block"]}

# Decorations: a picture that says nothing needs no text.
DECORATIVE = ".navbar-brand img"
ENDINGS = ("png", "jpg", "jpeg", "svg", "webp", "gif")


@pytest.fixture(scope="module", params=pages())
def opened(request, browser, site):
    """One page after the other; its tests share one visit, the last of them touch the page."""
    one = Visit(browser, site)
    one.open(request.param)
    yield one
    one.close()


def test_nothing_leaves_the_folder(opened):
    here = opened.site.as_uri()
    assert opened.requests
    assert [url for url in opened.requests if not url.startswith((here, "data:"))] == []


def test_nothing_complains(opened):
    assert not opened.complaints, "\n".join(opened.complaints)


def test_mathematics_is_typeset(opened):
    formulas = opened.page.locator(".math")
    typeset = opened.page.locator(".math mjx-container")
    assert typeset.count() >= formulas.count()
    assert opened.page.locator("mjx-merror, [data-mjx-error]").count() == 0
    prose = opened.page.locator("main").inner_text()
    assert r"\(" not in prose
    assert r"\[" not in prose


def test_pictures_speak(opened):
    images = opened.page.locator("img").evaluate_all(
        """(images, decorative) => images.filter(image => !image.matches(decorative))
              .map(image => [image.alt, image.complete && image.naturalWidth > 0])""",
        DECORATIVE,
    )
    for alt, loaded in images:
        assert loaded
        assert alt.strip()
        assert not alt.lower().endswith(ENDINGS)


@pytest.mark.parametrize(
    ("theme", "rules"), [("light", {}), ("dark", OF_COLOURS)], ids=["light", "dark"]
)
def test_accessible(opened, theme, rules):
    page = opened.show(theme=theme)
    violations = Axe().run(page, AXE_CONTEXT, AXE_OPTIONS | rules).response["violations"]
    found = [
        f"{violation['id']} at {node['target']}: {node.get('failureSummary')}"
        for violation in violations
        for node in violation["nodes"]
    ]
    assert not found, "\n".join(found)


def test_fits_a_telephone(opened):
    page = opened.show(width=390)
    overflow = page.evaluate(
        """() => {
          const article = document.querySelector(".bd-article-container");
          return [document.scrollingElement.scrollWidth - innerWidth,
                  article.scrollWidth - article.clientWidth];
        }"""
    )
    assert max(overflow) <= 0


def test_what_is_folded_unfolds_by_keyboard(opened):
    page = opened.show()
    for fold in page.locator("main details").all():
        summary = fold.locator("summary").first
        before = fold.get_attribute("open")
        summary.focus()
        page.keyboard.press("Enter")
        assert fold.get_attribute("open") != before
    for button in page.locator("main button.toggle-button").all():
        assert button.get_attribute("aria-expanded") == "false"
        button.focus()
        page.keyboard.press("Enter")
        assert button.get_attribute("aria-expanded") == "true"


def test_every_slider_moves_by_keyboard(opened):
    page = opened.show()
    for explorer in page.locator(".cgmm-explorer").all():
        for slider in explorer.locator("input[type=range]").all():
            before = frame(explorer)
            slider.focus()
            page.keyboard.press("ArrowRight")
            after = frame(explorer)
            assert after.keys() == before.keys()
            assert all(after[key] != before[key] for key in before)
    assert not opened.complaints, "\n".join(opened.complaints)
