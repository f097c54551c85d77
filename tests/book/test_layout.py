"""How a page looks: rings, formulas, letters, head and foot."""

from __future__ import annotations

import re
import sys
from types import SimpleNamespace

import pytest
from bs4 import BeautifulSoup
from built_book import ROOT, visited, visiting

sys.path.insert(0, str(ROOT / "book/_ext"))
import cgmm_head

CHAPTERS = [name for name in visited() if re.match(r"book/\d\d_", name)]
FADED = """() => [...document.querySelectorAll("mjx-container:not([display])")]
  .filter(one => one.matches(".cgmm-more-left, .cgmm-more-right, .cgmm-scrolls")).length"""
LETTERS = """() => [...document.fonts].filter(one => one.status === "loaded")
  .map(one => one.family.replaceAll('"', ""))"""
# The letters of each line but the last of paragraphs that are long enough.
LINES = """() => [...document.querySelectorAll(".bd-article section > p")].flatMap(p => {
  const range = document.createRange(), lines = [];
  let top = null, letters = 0;
  if (p.querySelector("mjx-container") || p.textContent.length < 250) return [];
  const walk = document.createTreeWalker(p, NodeFilter.SHOW_TEXT);
  for (let text = walk.nextNode(); text; text = walk.nextNode())
    for (let i = 0; i < text.length; i++) {
      range.setStart(text, i);
      range.setEnd(text, i + 1);
      const box = range.getBoundingClientRect();
      if (top !== null && box.top > top + 12) { lines.push(letters); letters = 0; }
      top = top === null || box.top > top + 12 ? box.top : top;
      letters++;
    }
  return lines;
})"""


@pytest.fixture(scope="module")
def reader(browser, site):
    with visiting(browser, site, "book/02_em") as one:
        yield one


def test_formulas_are_clear_after_the_window_was_tiny(reader):
    page = reader.page
    for width in (1280, 30, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_timeout(300)
    assert page.evaluate(FADED) == 0


FOCUSED = ["button.primary-toggle", ".dropdown-download-buttons > button", "main summary",
           "button.theme-switch-button", ".bd-article p a"]  # fmt: skip


def test_what_has_the_focus_has_a_ring(reader):
    page = reader.page
    page.keyboard.press("Tab")
    for what in FOCUSED:
        ring = page.locator(what).first.evaluate(
            "one => { one.focus({focusVisible: true}); const style = getComputedStyle(one);"
            " return [style.outlineStyle, parseFloat(style.outlineWidth)]; }"
        )
        assert ring[0] == "solid", what
        assert ring[1] >= 2, what


def test_letters_come_with_the_book(reader):
    """The same on every system: no text asks for a family that is not bundled."""
    page = reader.show()
    page.evaluate("document.fonts.ready.then(() => null)")
    assert {"Source Serif 4", "Source Sans 3", "Source Code Pro"} <= set(page.evaluate(LETTERS))
    families = page.evaluate(
        """() => [...new Set([...document.querySelectorAll("body *")]
             .filter(one => !one.closest("mjx-container"))
             .map(one => getComputedStyle(one).fontFamily.split(",")[0].replaceAll('"', "")))]"""
    )
    # The last has the signs of boxes.
    bundled = {"Source Serif 4", "Source Sans 3", "Source Code Pro", "Font Awesome 6 Free"}
    assert set(families) <= bundled
    fonts = list((ROOT / "book/_static/fonts").iterdir())
    assert "LICENSE.txt" in [path.name for path in fonts]
    assert sum(path.stat().st_size for path in fonts) < 250_000


def test_a_line_has_about_66_letters(reader):
    for width in (1280, 1600):
        lines = reader.show(width=width).evaluate(LINES)
        assert len(lines) > 20
        assert 60 < sorted(lines)[len(lines) // 2] < 72


@pytest.mark.parametrize(
    "name", ["book/index", "book/02_em", "book/api/mixture/ConstrainedGaussianMixture"]
)
def test_the_head_describes_the_page(site, name):
    text = (site / f"{name}.html").read_text(encoding="utf8")
    head = text[: text.index("</head>")]
    assert head.count('name="viewport"') == 1
    description = re.search(r'<meta name="description" content="([^"]+)"', head)[1]
    assert 30 < len(description) <= 203
    for name in ("og:title", "og:description", "og:type", "og:site_name"):
        assert re.search(f'<meta property="{name}" content="[^"]+"', head), name
    assert 'property="og:site_name" content="Gaussian Mixtures with Side Information"' in head


def test_the_foot_says_version_date_and_how_to_cite(reader):
    page = reader.page
    foot = page.locator(".cgmm-foot")
    assert re.match(
        r"Version \d+\.\d+\.\d+, built on \d+ \w+ 20\d\d\.$", foot.locator("p").first.inner_text()
    )
    foot.locator("summary").click()
    entry = foot.locator("pre").inner_text()
    assert "title     = {2. EM as a lower bound}" in entry
    assert "booktitle = {Gaussian Mixtures with Side Information}" in entry
    assert foot.locator("button.copybtn").count() == 1
    # Where errors are reported is a setting, which is empty here.
    assert page.locator(".cgmm-report").count() == 0


@pytest.mark.parametrize(("address", "n"), [("", 0), ("https://example.org/cgmm", 1)])
def test_a_repository_brings_buttons_and_an_address_a_link(address, n):
    config = SimpleNamespace(html_theme_options={"repository_url": address})
    cgmm_head.offer_runners(None, config)
    runners = config.html_theme_options.get("launch_buttons", {})
    assert [name in runners for name in ("binderhub_url", "colab_url")] == 2 * [n == 1]
    link = cgmm_head.report(address and f"{address}/new?title={{page}}", "book/02_em")
    assert link.count('href="https://example.org/cgmm/new?title=book/02_em"') == n


@pytest.mark.parametrize("name", CHAPTERS)
def test_folds_of_code_are_few_with_results_and_proofs_say_once_that_they_are(site, name):
    page = BeautifulSoup((site / f"{name}.html").read_text(encoding="utf8"), "html.parser")
    folds = page.select("div.cell:has(details.above-input)")
    assert len(folds) <= 12
    for one in folds:
        # Imports alone have none.
        assert one.select_one(".cell_output") or one.pre.text.startswith(("import", "from"))
    for proof in page.select("details .sd-card-body > div.proof:only-child"):
        assert not proof.get_text().strip().startswith("Proof.")
    # Works are named beside text alone.
    assert not page.select(":is(table, .admonition, figure) .cgmm-work, .bibtex-citation a[title]")
