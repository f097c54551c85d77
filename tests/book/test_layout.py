"""Test the look of a page: focus rings, formulas, fonts, header and footer."""

import re

import pytest
from built_book import ROOT, visiting

LETTERS = """() => [...document.fonts].filter(one => one.status === "loaded")
  .map(one => one.family.replaceAll('"', ""))"""


@pytest.fixture(scope="module")
def reader(browser, site):
    with visiting(browser, site, "book/02_em") as one:
        yield one


FOCUSED = ["button.primary-toggle", ".dropdown-download-buttons > button", "main summary",
           "button.theme-switch-button", ".bd-article p a"]  # fmt: skip


def test_focused_elements_have_a_visible_ring(reader):
    page = reader.page
    page.keyboard.press("Tab")
    for what in FOCUSED:
        ring = page.locator(what).first.evaluate(
            "one => { one.focus({focusVisible: true}); const style = getComputedStyle(one);"
            " return [style.outlineStyle, parseFloat(style.outlineWidth)]; }"
        )
        assert ring[0] == "solid", what
        assert ring[1] >= 2, what


def test_fonts_are_files_of_the_book(reader):
    """Pages look the same on every system, because every font family is bundled."""
    page = reader.show()
    page.evaluate("document.fonts.ready.then(() => null)")
    assert {"Source Serif 4", "Source Sans 3", "Source Code Pro"} <= set(page.evaluate(LETTERS))
    families = page.evaluate(
        """() => [...new Set([...document.querySelectorAll("body *")]
             .filter(one => !one.closest("mjx-container"))
             .map(one => getComputedStyle(one).fontFamily.split(",")[0].replaceAll('"', "")))]"""
    )
    # The last page has the signs of boxes.
    bundled = {"Source Serif 4", "Source Sans 3", "Source Code Pro", "Font Awesome 6 Free"}
    assert set(families) <= bundled
    fonts = list((ROOT / "book/_static/fonts").iterdir())
    assert "LICENSE.txt" in [path.name for path in fonts]
    assert sum(path.stat().st_size for path in fonts) < 250_000


def test_the_footer_has_version_date_and_citation(reader):
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
    # The address for error reports is a setting, which is empty here.
    assert page.locator(".cgmm-report").count() == 0


@pytest.mark.parametrize(
    "name", ["book/index", "book/02_em", "book/api/mixture/ConstrainedGaussianMixture"]
)
def test_the_html_head_describes_the_page(site, name):
    text = (site / f"{name}.html").read_text(encoding="utf8")
    head = text[: text.index("</head>")]
    assert head.count('name="viewport"') == 1
    description = re.search(r'<meta name="description" content="([^"]+)"', head)[1]
    assert 30 < len(description) <= 203
    for name in ("og:title", "og:description", "og:type", "og:site_name"):
        assert re.search(f'<meta property="{name}" content="[^"]+"', head), name
    assert 'property="og:site_name" content="Gaussian Mixtures with Side Information"' in head
