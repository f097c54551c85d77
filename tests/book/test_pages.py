"""Test every page of the book, opened as a plain file without a network.

Of those about the package a sample; test_package_pages looks at all of them.
"""

import re
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest
from axe_playwright_python.sync_playwright import Axe
from built_book import FORMULAS, STRANDED, frame, pages_to_visit, visiting

# Without preloading: axe would ask for the style sheets, which browsers refuse on file paths.
AXE_OPTIONS = {"resultTypes": ["violations"], "preload": False}
# What a theme can change; the structure of a page is the same in both.
COLOURS = ["color-contrast", "link-in-text-block"]
OF_COLOURS = {"runOnly": COLOURS}
OF_STRUCTURE = {"rules": {rule: {"enabled": False} for rule in COLOURS}}
# Of thousands of words one for each style suffices: remove elements whose style, including that of
# their children, has occurred before, in light or in dark.
KEEP_ONE_OF_EACH_LOOK = """() => {
  const looks = new Map(), seen = new Set();
  const look = (one, around, ground) => {
    const style = getComputedStyle(one);
    const under = ground + style.backgroundColor + style.backgroundImage;
    const own = [style.color, style.fontSize, style.fontWeight, style.opacity, style.textShadow,
                 style.textDecorationLine, style.display, one.localName, around, under].join();
    looks.set(one, (looks.get(one) ?? "") + own);
    for (const child of one.children) look(child, style.color, under);
  };
  for (const theme of ["light", "dark"]) {
    document.documentElement.dataset.theme = theme;
    look(document.body, "", "");
  }
  const isNew = one => !seen.has(looks.get(one)) || [...one.children].some(isNew);
  const keep = one => {
    if (!isNew(one)) return one.remove();
    seen.add(looks.get(one));
    [...one.children].forEach(keep);
  };
  keep(document.body);
}"""
# A formula has thousands of elements without faults that axe could find, so a word in its colours
# replaces it. A second call restores what was removed.
STAND_IN = """() => {
  if (window.formulas) {
    for (const [word, formula] of window.formulas) word.replaceWith(formula);
    window.formulas = null;
    return;
  }
  window.formulas = [...document.querySelectorAll("mjx-container")].map(formula => {
    const word = document.createElement("span");
    word.textContent = "x";
    formula.replaceWith(word);
    return [word, formula];
  });
}"""
# Focus each fold; report those that cannot have the focus or do not open when clicked.
TURN_EACH = """([folds, isOpen]) => {
  const open = new Function("fold", `return ${isOpen}`);
  return [...document.querySelectorAll(folds)].filter(fold => {
    const handle = fold.querySelector(":scope > summary") ?? fold, before = open(fold);
    handle.focus();
    const reached = document.activeElement === handle;
    handle.click();
    return !reached || open(fold) === before;
  }).map(fold => fold.outerHTML.slice(0, 200));
}"""
FOLDS = [
    ("main details", "fold.open"),
    ("main button.toggle-button", "fold.getAttribute('aria-expanded') === 'true'"),
]

# For each toggle, whether it lies within its visible box.
HIDDEN = """() => [...document.querySelectorAll(".admonition.toggle")].filter(box => {
  const inside = box.getBoundingClientRect(), button = box.querySelector("button.toggle-button");
  const at = button.getBoundingClientRect();
  return !at.height || at.top < inside.top - 1 || at.bottom > inside.bottom + 1
    || at.right > inside.right + 1;
}).map(box => box.innerText.slice(0, 50))"""
# Elements of the margin, with the end of the text that each belongs to.
MARGIN = """() => [...document.querySelectorAll(".cgmm-work, figure.margin-caption figcaption")]
  .map(one => {
    const text = one.parentElement.querySelector(":scope > :is(p, ul, ol), img, svg");
    const mine = one.getBoundingClientRect(), its = text.getBoundingClientRect();
    return {left: mine.left, top: mine.top, bottom: mine.bottom,
            right_of_text: its.right, end_of_text: its.bottom};
  })"""

# Maximum bytes of a page and all that it loads when opened; frames of sliders load later.
MOST_OF_A_PAGE = 2.5e6
# Decorations: a picture that says nothing needs no text.
DECORATIVE = ".navbar-brand img"
ENDINGS = ("png", "jpg", "jpeg", "svg", "webp", "gif")

# The quick run opens these chapters, which have the most elements of every kind.
QUICK = {"07_cannot_links", "12_rca"}


def is_slow(name: str) -> bool:
    return bool(re.match(r"book/\d\d_", name)) and Path(name).name not in QUICK


PAGES = [pytest.param(name, marks=[pytest.mark.slow] * is_slow(name)) for name in pages_to_visit()]


@pytest.fixture(scope="module", params=PAGES)
def opened(request, browser, site):
    """Yield one page after the other; the tests of a page share one visit."""
    with visiting(browser, site, request.param) as one:
        yield one


def test_nothing_leaves_the_folder_or_complains(opened):
    here = opened.site.as_uri()
    assert opened.requests
    assert [url for url in opened.requests if not url.startswith((here, "data:"))] == []
    assert not opened.complaints, "\n".join(opened.complaints)


def test_mathematics_is_typeset(opened):
    formulas = opened.page.locator(".math")
    typeset = opened.page.locator(".math mjx-container")
    assert typeset.count() >= formulas.count()
    assert opened.page.locator("mjx-merror, [data-mjx-error]").count() == 0
    prose = opened.page.locator("main").inner_text()
    assert r"\(" not in prose
    assert r"\[" not in prose


def test_every_image_has_alternative_text(opened):
    images = opened.page.locator("img").evaluate_all(
        """async (images, decorative) => {
          for (const image of images) image.loading = "eager";
          await Promise.all(images.map(image => image.decode().catch(() => null)));
          return images.filter(image => !image.matches(decorative))
                       .map(image => [image.alt, image.naturalWidth > 0]);
        }""",
        DECORATIVE,
    )
    for alt, loaded in images:
        assert loaded
        assert alt.strip()
        assert not alt.lower().endswith(ENDINGS)


def complaints(page, rules):
    """Return the violations of these rules that axe finds."""
    violations = Axe().run(page, options=AXE_OPTIONS | rules).response["violations"]
    return [
        f"{violation['id']} at {node['target']}: {node.get('failureSummary')}"
        for violation in violations
        for node in violation["nodes"]
    ]


def test_accessible(opened):
    """From this test on, everything is unfolded."""
    opened.show()
    page = opened.unfold()
    page.evaluate(STAND_IN)
    found = complaints(page, OF_STRUCTURE)
    page.evaluate(STAND_IN)
    assert not found, "\n".join(found)


# Widths of a small telephone, of a screen enlarged twice, and of a larger telephone.
WIDTHS = [340, 640, 390]


def test_a_page_fits_a_telephone_and_200_percent_zoom(opened):
    for width in WIDTHS:
        overflow = opened.show(width=width).evaluate(
            """async () => {
              for (let n = 0; n < 2; n += 1) await new Promise(requestAnimationFrame);
              const article = document.querySelector(".bd-article-container");
              return [document.scrollingElement.scrollWidth - innerWidth,
                      article.scrollWidth - article.clientWidth];
            }"""
        )
        assert max(overflow) <= 0, width


def test_toggles_captions_and_references_are_visible(opened):
    """Each cited work appears once a page, beside its text or below it, and overlaps no other."""
    if not re.search(r"/book/\d\d_", opened.page.url):
        pytest.skip("this page is no chapter")
    for width in (1280, 1000, 390):
        page, beside = opened.show(width=width), width == 1280
        assert page.evaluate(HIDDEN) == []
        texts = page.locator(".cgmm-work").all_inner_texts()
        assert len(set(texts)) == len(texts) > 3
        boxes = page.evaluate(MARGIN)
        for box in boxes:
            assert (box["left"] >= box["right_of_text"]) == beside, box
            assert beside or box["top"] >= box["end_of_text"], box
        if beside:
            assert len({round(box["left"]) for box in boxes}) == 1
            ends = sorted((box["top"], box["bottom"]) for box in boxes)
            assert all(a[1] <= b[0] + 1 for a, b in pairwise(ends))


def test_formulas_fit_a_telephone_or_show_that_they_scroll(opened):
    page = opened.show(width=390)
    page.wait_for_function("innerWidth === widthSeen")
    found = page.evaluate(FORMULAS)
    assert found["cut"] == found["small"] == found["stops"] == []
    # The book had 75 of 90 such formulas. One that cannot be broken may scroll.
    assert len(found["scroll"]) <= 1, found["scroll"]
    assert page.evaluate(STRANDED) == []


def test_the_size_of_a_chapter_is_bounded(opened):
    """The weight counts figures in one of their two colours, and everything loaded so far."""
    asked = {Path(unquote(urlparse(url).path)) for url in opened.requests if url[:5] == "file:"}
    assert sum(path.stat().st_size for path in asked) < MOST_OF_A_PAGE


def test_folds_open_by_keyboard(opened):
    """Open the first fold of each kind by a key; each can have the focus. Motion is switched off,
    because colours that fade in are pale for a while.
    """
    page = opened.show()
    for kind, is_open in FOLDS:
        for fold in page.locator(kind).all()[:1]:
            before = fold.evaluate(f"fold => {is_open}")
            fold.evaluate("fold => (fold.querySelector(':scope > summary') ?? fold).focus()")
            page.keyboard.press("Enter")
            assert fold.evaluate(f"fold => {is_open}") != before
        assert page.evaluate(TURN_EACH, [kind, is_open]) == []
    assert page.evaluate("document.getAnimations().map(one => one.animationName)") == []


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


def test_every_live_figure_computes(opened):
    """The arrow key moves a point, and the status of the figure changes."""
    page = opened.show()
    for live in page.locator(".cgmm-live").all():
        point = live.locator(".cgmm-live-main [role=button]").first
        before = live.locator("[role=status]").inner_text()
        point.focus()
        page.keyboard.press("Shift+ArrowDown")
        assert live.locator("[role=status]").inner_text() != before
    assert not opened.complaints, "\n".join(opened.complaints)


def test_contrasts(opened):
    """Contrasts suffice in light and in dark. This test comes last because it changes the page."""
    page, found = opened.show(), []
    page.evaluate(STAND_IN)
    page.evaluate(KEEP_ONE_OF_EACH_LOOK)
    for theme in ("light", "dark"):
        page.evaluate("theme => document.documentElement.dataset.theme = theme", theme)
        found += complaints(page, OF_COLOURS)
    assert not found, "\n".join(found)
