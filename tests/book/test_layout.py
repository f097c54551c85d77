"""Test the look of a page: focus rings, formulas, fonts, header and footer."""

import re

import pytest
from built_book import ROOT, open_for_module

LOADED_FONTS = """() => [...document.fonts].filter(one => one.status === "loaded")
  .map(one => one.family.replaceAll('"', ""))"""


@pytest.fixture(scope="module")
def reader(browser, site):
    with open_for_module(browser, site, "book/02_em") as one:
        yield one


FOCUSED = ["button.primary-toggle", ".dropdown-download-buttons > button", "main summary",
           "button.theme-switch-button", ".bd-article p a"]  # fmt: skip


def test_focused_elements_have_a_visible_outline(reader):
    page = reader.page
    page.keyboard.press("Tab")
    for what in FOCUSED:
        ring = page.locator(what).first.evaluate(
            "one => { one.focus({focusVisible: true}); const style = getComputedStyle(one);"
            " return [style.outlineStyle, parseFloat(style.outlineWidth)]; }"
        )
        assert ring[0] == "solid", what
        assert ring[1] >= 2, what


def test_all_fonts_are_bundled_with_the_book(reader):
    """Every font family is bundled, so that pages look the same on every system."""
    page = reader.show()
    page.evaluate("document.fonts.ready.then(() => null)")
    used = {"Source Serif 4", "Source Sans 3", "Source Code Pro"}
    assert used <= set(page.evaluate(LOADED_FONTS))
    families = page.evaluate(
        """() => [...new Set([...document.querySelectorAll("body *")]
             .filter(one => !one.closest("mjx-container"))
             .map(one => getComputedStyle(one).fontFamily.split(",")[0].replaceAll('"', "")))]"""
    )
    # Font Awesome draws the icons of boxes on this page.
    assert set(families) <= used | {"Font Awesome 6 Free"}
    fonts = list((ROOT / "book/_static/fonts").iterdir())
    assert "LICENSE.txt" in [path.name for path in fonts]
    assert sum(path.stat().st_size for path in fonts) < 250_000


def test_the_footer_has_version_date_and_citation(reader):
    foot = reader.page.locator(".cgmm-foot")
    version = r"Version \d+\.\d+\.\d+, built on \d+ \w+ 20\d\d\."
    assert re.fullmatch(version, foot.locator("p").first.inner_text())
    foot.locator("summary").click()
    entry = foot.locator("pre").inner_text()
    assert "title     = {2. EM as a lower bound}" in entry
    assert "booktitle = {Gaussian Mixtures with Side Information}" in entry
    assert foot.locator("button.copybtn").count() == 1
    # The button for error reports is left out, because their address is not set in this build.
    assert reader.page.locator(".cgmm-report").count() == 0


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


# ---------------------------------------------------------------------------- the column

# Return the right edges of the elements in the text column by kind.
RIGHT_ENDS = """() => {
  const inside = `.admonition, details, li, dd, td, th, .cgmm-live, .cgmm-explorer, figure,
    .cgmm-foot, .cgmm-work`;
  const kinds = ["p:not(.cgmm-work)", "div.admonition", "details.sd-dropdown", "div.cell_input",
    ".cgmm-live"];
  return Object.fromEntries(kinds.map(kind => {
    const all = [...document.querySelectorAll(`.bd-article section ${kind}`)]
      .filter(one => one.offsetWidth && !one.parentElement.closest(inside));
    return [kind, [...new Set(all.map(one => Math.round(one.getBoundingClientRect().right)))]];
  }));
}"""


def test_paragraphs_boxes_code_and_figures_have_the_same_right_edge(reader):
    ends = reader.show(width=1280).evaluate(RIGHT_ENDS)
    assert all(ends.values()), ends
    assert len({edge for some in ends.values() for edge in some}) == 1, ends


def test_code_column_has_room_for_eighty_characters(reader):
    room, letter = reader.show(width=1280).evaluate(
        """() => { const pre = document.querySelector(".cell_input pre");
             const style = getComputedStyle(pre), canvas = document.createElement("canvas");
             const ink = canvas.getContext("2d");
             ink.font = `${style.fontSize} ${style.fontFamily}`;
             const padding = parseFloat(style.paddingLeft) + parseFloat(style.paddingRight);
             return [pre.clientWidth - padding, ink.measureText("m").width]; }"""
    )
    assert 5 < letter <= room / 80


def test_text_column_is_centred_on_pages_without_contents(reader):
    box = reader.show(width=820).locator(".bd-article").bounding_box()
    assert abs(box["x"] - (820 - box["x"] - box["width"])) <= 1


# Proofs are left out: the fold around them has the border and the title.
COLOURS_OF_BOXES = """() => [...document.querySelectorAll("div.admonition")]
.filter(one => parseFloat(getComputedStyle(one).borderLeftWidth)).map(one => {
  const title = one.querySelector(".admonition-title");
  return [one.className, getComputedStyle(one).borderLeftColor,
    getComputedStyle(title, "::after").content, getComputedStyle(title).backgroundColor];
})"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_boxes_and_inline_code_have_the_colours_of_the_book(visit, theme):
    """Check colours of borders and inline code, and that titles have neither bar nor icon."""
    page = visit("book/07_cannot_links").show(theme=theme)
    names = ["info", "primary", "warning", "danger", "text-muted", "border"]
    known = page.evaluate(
        """names => names.map(name => { const one = document.createElement("i");
             one.style.color = `var(--pst-color-${name})`;
             document.body.append(one);
             return getComputedStyle(one).color; })""",
        names,
    )
    boxes = page.evaluate(COLOURS_OF_BOXES)
    assert {"tip", "proof", "exercise"} <= {name for box in boxes for name in box[0].split()}
    for name, rule, icon, bar in boxes:
        assert rule in known, (name, rule)
        assert icon == "none", name
        assert bar == "rgba(0, 0, 0, 0)", name
    colour = "one => getComputedStyle(one).color"
    code = page.locator(".bd-article p > code:not(a code)").first
    assert code.evaluate(colour) == page.locator(".bd-article p").first.evaluate(colour)
