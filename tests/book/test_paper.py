"""Test how a chapter is printed from a dark screen."""

PRINT_LAYOUT = """() => {
  const article = document.querySelector(".bd-article");
  const light = colour => {
    const [red, green, blue, opacity = 1] = colour.match(/[\\d.]+/g).map(Number);
    return 255 - opacity * (255 - (red + green + blue) / 3) > 200;
  };
  const grounds = [document.body, ...article.querySelectorAll("pre, .admonition, td, details")];
  const sections = [...article.querySelectorAll("section > h2")];
  return {
    options: [...article.querySelectorAll(".cgmm-question li")].filter(one => !one.innerText.trim())
                                                               .length,
    theme: document.documentElement.dataset.theme,
    closed: article.querySelectorAll("details:not([open], .above-input), .toggle-hidden").length,
    dark: grounds.filter(one => !light(getComputedStyle(one).backgroundColor)).length,
    title: [...document.querySelectorAll("h1")].filter(one => one.offsetHeight)
                                               .map(one => one.textContent),
    last: sections.at(-1).textContent,
    solutions: article.querySelectorAll(".cgmm-solutions .solution").length,
    elsewhere: article.querySelectorAll(":not(.cgmm-solutions) > .solution").length,
    tall: [...article.querySelectorAll("*")].filter(
      one => getComputedStyle(one).breakInside === "avoid" && one.offsetHeight > 620).length,
    drawing: [...article.querySelectorAll("details.above-input")].filter(one => one.offsetHeight)
                                                                 .length,
  };
}"""


def test_printed_pages_are_light_unfolded_and_numbered(visit):
    """Print has one column, and a box is split if it would leave a third of a page empty."""
    page = visit("book/02_em", color_scheme="dark").page
    article = "document.querySelector('.bd-article').innerHTML.replaceAll(' class=\"\"', '')"
    before = page.evaluate(article)
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    laid = page.evaluate(PRINT_LAYOUT)
    solutions = laid.pop("solutions")
    assert solutions > 3
    assert laid == {
        "options": 0,
        "theme": "light", "closed": 0, "dark": 0, "tall": 0, "drawing": 0, "elsewhere": 0,
        "last": "Solutions",
        "title": ["2. EM as a lower bound#"],
    }  # fmt: skip
    page.emulate_media(media="screen")
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert page.evaluate(article) == before
