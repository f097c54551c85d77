"""Test the layout of printed chapters, also if they are printed in dark mode."""

import pytest

PRINT_LAYOUT = """() => {
  const article = document.querySelector(".bd-article");
  const all = selector => [...article.querySelectorAll(selector)];
  const light = colour => {
    const [red, green, blue, opacity = 1] = colour.match(/[\\d.]+/g).map(Number);
    return 255 - opacity * (255 - (red + green + blue) / 3) > 200;
  };
  const grounds = [document.body, ...all("pre, .admonition, td, details")];
  return {
    options: all(".cgmm-question li").filter(one => !one.innerText.trim()).length,
    theme: document.documentElement.dataset.theme,
    closed: article.querySelectorAll("details:not([open], .above-input), .toggle-hidden").length,
    dark: grounds.filter(one => !light(getComputedStyle(one).backgroundColor)).length,
    title: [...document.querySelectorAll("h1")].filter(one => one.offsetHeight)
                                               .map(one => one.textContent),
    last: all("section > h2").at(-1).textContent,
    solutions: article.querySelectorAll(".cgmm-solutions .solution").length,
    elsewhere: article.querySelectorAll(":not(.cgmm-solutions) > .solution").length,
    drawing: all("details.above-input").filter(one => one.offsetHeight).length,
  };
}"""

# Width and height of the text on a printed page in pixels: A4 less the margins of the style sheet.
TEXT_WIDTH, TEXT_HEIGHT = 650, 979
CHAPTERS = ["06_chunklet_em", "09_soft_preferences", "15_the_next_question"]
# Return the height of each element that must not be broken across pages, and 0 for others.
KEPT_WHOLE = """() => [...document.querySelectorAll(".bd-article *")].map(one => {
  const style = getComputedStyle(one);
  const breaks = style.breakInside === "auto" && !["flex", "grid"].includes(style.display);
  const name = `${one.tagName} ${one.className} ${one.id}`;
  return [breaks ? 0 : one.getBoundingClientRect().height, name];
})"""


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_boxes_higher_than_half_a_page_break_across_printed_pages(visit, chapter):
    """A higher box or figure could leave more than half of the preceding page empty."""
    page = visit(f"book/{chapter}", viewport={"width": TEXT_WIDTH, "height": TEXT_HEIGHT}).page
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.locator(".bd-article img:visible").evaluate_all(
        "images => Promise.all(images.map(one => one.decode())).then(() => null)"
    )
    heights = page.evaluate(KEPT_WHOLE)
    assert sum(height > 0 for height, _ in heights) > 20
    assert [one for one in heights if one[0] > TEXT_HEIGHT / 2] == []


def test_printed_pages_are_light_and_unfolded_and_end_with_solutions(visit):
    page = visit("book/02_em", color_scheme="dark").page
    article = "document.querySelector('.bd-article').innerHTML.replaceAll(' class=\"\"', '')"
    before = page.evaluate(article)
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    laid = page.evaluate(PRINT_LAYOUT)
    solutions = laid.pop("solutions")
    assert solutions > 3
    assert laid == {
        "options": 0, "theme": "light", "closed": 0, "dark": 0, "drawing": 0, "elsewhere": 0,
        "last": "Solutions", "title": ["2. EM as a lower bound#"],
    }  # fmt: skip
    page.emulate_media(media="screen")
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.evaluate(article) == before
