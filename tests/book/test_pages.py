"""Test every page of the book, opened as a plain file without a network.

Only a sample of the pages about the package is opened; test_package_pages checks them all.
"""

import re
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest
from axe_playwright_python.sync_playwright import Axe
from built_book import FORMULAS, STRANDED, open_for_module, pages_to_visit, read_frame

# Preloading is off, because axe would request style sheets, which browsers refuse on file paths.
AXE_OPTIONS = {"resultTypes": ["violations"], "preload": False}
# Rules whose outcome depends on the theme; the structure of a page is the same in both themes.
COLOURS = ["color-contrast", "link-in-text-block"]
OF_COLOURS = {"runOnly": COLOURS}
OF_STRUCTURE = {"rules": {rule: {"enabled": False} for rule in COLOURS}}
# One element for each style suffices to check contrasts, so remove elements whose styles in both
# themes, including those of their children, have occurred before.
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
# Replace each formula by a word, because axe would check its thousands of elements; a second call
# restores the formulas.
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
# Return the folds that cannot have the focus, or do not open or close when clicked.
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

# Return the boxes whose toggle button is not visible within them.
HIDDEN = """() => [...document.querySelectorAll(".admonition.toggle")].filter(box => {
  const inside = box.getBoundingClientRect(), button = box.querySelector("button.toggle-button");
  const at = button.getBoundingClientRect();
  return !at.height || at.top < inside.top - 1 || at.bottom > inside.bottom + 1
    || at.right > inside.right + 1;
}).map(box => box.innerText.slice(0, 50))"""
# Return the positions of all elements in the margin and of the text beside each.
MARGIN = """() => [...document.querySelectorAll(".cgmm-work, figure.margin-caption figcaption")]
  .map(one => {
    const text = one.parentElement.querySelector(":scope > :is(p, ul, ol), img, svg");
    const mine = one.getBoundingClientRect(), its = text.getBoundingClientRect();
    return {left: mine.left, top: mine.top, bottom: mine.bottom,
            right_of_text: its.right, end_of_text: its.bottom};
  })"""

# Maximum bytes of a page and of what it loads when opened; frames of sliders load later.
MOST_OF_A_PAGE = 2.5e6
# Decorative pictures, which need no text alternative.
DECORATIVE = ".navbar-brand img, .cgmm-other-panel"
ENDINGS = ("png", "jpg", "jpeg", "svg", "webp", "gif")

# Without `-m slow` only these chapters are opened, which have the most elements of each kind.
QUICK = {"07_cannot_links", "12_rca"}


def is_slow(name: str) -> bool:
    """Return whether only `-m slow` opens this page."""
    return bool(re.match(r"book/\d\d_", name)) and Path(name).name not in QUICK


PAGES = [pytest.param(name, marks=[pytest.mark.slow] * is_slow(name)) for name in pages_to_visit()]


@pytest.fixture(scope="module", params=PAGES)
def open_page(request, browser, site):
    """Yield one page after the other; all tests of a page share one visit."""
    with open_for_module(browser, site, request.param) as one:
        yield one


def test_page_requests_only_files_of_the_site_and_logs_no_error(open_page):
    here = open_page.site.as_uri()
    assert open_page.requests
    assert [url for url in open_page.requests if not url.startswith((here, "data:"))] == []
    assert not open_page.complaints, "\n".join(open_page.complaints)


def test_mathematics_is_typeset(open_page):
    formulas = open_page.page.locator(".math")
    typeset = open_page.page.locator(".math mjx-container")
    assert typeset.count() >= formulas.count()
    assert open_page.page.locator("mjx-merror, [data-mjx-error]").count() == 0
    prose = open_page.page.locator("main").inner_text()
    assert r"\(" not in prose
    assert r"\[" not in prose


def test_every_image_has_alternative_text(open_page):
    images = open_page.page.locator("img").evaluate_all(
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


def axe_violations(page, rules):
    """Return a message for each violation of these rules that axe finds."""
    violations = Axe().run(page, options=AXE_OPTIONS | rules).response["violations"]
    return [
        f"{violation['id']} at {node['target']}: {node.get('failureSummary')}"
        for violation in violations
        for node in violation["nodes"]
    ]


def test_axe_finds_no_violation(open_page):
    """This test opens all folds, and they stay open for the following tests."""
    open_page.show()
    page = open_page.unfold()
    page.evaluate(STAND_IN)
    found = axe_violations(page, OF_STRUCTURE)
    page.evaluate(STAND_IN)
    assert not found, "\n".join(found)


def test_page_fits_phones_and_200_percent_zoom(open_page):
    for width in (340, 640, 390):  # a small phone, a screen at 200 % zoom, a larger phone
        overflow = open_page.show(width=width).evaluate(
            """async () => {
              for (let n = 0; n < 2; n += 1) await new Promise(requestAnimationFrame);
              const article = document.querySelector(".bd-article-container");
              return [document.scrollingElement.scrollWidth - innerWidth,
                      article.scrollWidth - article.clientWidth];
            }"""
        )
        assert max(overflow) <= 0, width


def test_toggles_captions_and_references_are_visible(open_page):
    """Each cited work appears once a page, beside its text or below it, without overlap."""
    if not re.search(r"/book/\d\d_", open_page.page.url):
        pytest.skip("this page is no chapter")
    for width in (1280, 1000, 390):
        page, beside = open_page.show(width=width), width == 1280
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


def test_formulas_fit_a_phone_or_show_that_they_scroll(open_page):
    page = open_page.show(width=390)
    page.wait_for_function("innerWidth === widthSeen")
    found = page.evaluate(FORMULAS)
    assert found["cut"] == found["small"] == found["stops"] == []
    # A formula without a possible line break may scroll. Before lines were broken, 75 of 90 did.
    assert len(found["scroll"]) <= 1, found["scroll"]
    assert page.evaluate(STRANDED) == []


def test_the_size_of_a_chapter_is_bounded(open_page):
    """The size includes every file requested so far; figures count in one theme only."""
    asked = {Path(unquote(urlparse(url).path)) for url in open_page.requests if url[:5] == "file:"}
    assert sum(path.stat().st_size for path in asked) < MOST_OF_A_PAGE


def test_folds_open_by_keyboard(open_page):
    """Every fold can have the focus, and the first one of each kind opens by a key."""
    page = open_page.show()
    for kind, is_open in FOLDS:
        for fold in page.locator(kind).all()[:1]:
            before = fold.evaluate(f"fold => {is_open}")
            fold.evaluate("fold => (fold.querySelector(':scope > summary') ?? fold).focus()")
            page.keyboard.press("Enter")
            assert fold.evaluate(f"fold => {is_open}") != before
        assert page.evaluate(TURN_EACH, [kind, is_open]) == []
    # Colours that fade in would have too little contrast for a moment.
    assert page.evaluate("document.getAnimations().map(one => one.animationName)") == []


def test_every_slider_moves_by_keyboard(open_page):
    page = open_page.show()
    for explorer in page.locator(".cgmm-explorer").all():
        for slider in explorer.locator("input[type=range]").all():
            before = read_frame(explorer)
            slider.focus()
            page.keyboard.press("ArrowRight")
            after = read_frame(explorer)
            assert after.keys() == before.keys()
            assert all(after[key] != before[key] for key in before)
    assert not open_page.complaints, "\n".join(open_page.complaints)


def test_live_figures_respond_to_arrow_keys(open_page):
    """An arrow key moves a point and changes the status of the figure."""
    page = open_page.show()
    for live in page.locator(".cgmm-live").all():
        point = live.locator(".cgmm-live-main [role=button]").first
        before = live.locator("[role=status]").inner_text()
        point.focus()
        page.keyboard.press("Shift+ArrowDown")
        assert live.locator("[role=status]").inner_text() != before
    assert not open_page.complaints, "\n".join(open_page.complaints)


def test_contrasts_suffice_in_both_themes(open_page):
    """This test must be the last of a page, because it removes elements."""
    page, found = open_page.show(), []
    page.evaluate(STAND_IN)
    page.evaluate(KEEP_ONE_OF_EACH_LOOK)
    for theme in ("light", "dark"):
        page.evaluate("theme => document.documentElement.dataset.theme = theme", theme)
        found += axe_violations(page, OF_COLOURS)
    assert not found, "\n".join(found)
