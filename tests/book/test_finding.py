"""Test the first results of the search, and the previews of links."""

import re
import sys
import tomllib

import pytest
from built_book import ROOT, open_for_module, pages_to_visit

sys.path.append(str(ROOT / "book/_ext"))
import cgmm_find

QUESTIONS = tomllib.loads((ROOT / "tests/book/questions.toml").read_text(encoding="utf8"))
FOUND = "([query, n]) => search(query).slice(0, n).map(one => one.url)"


@pytest.fixture(scope="module")
def results(browser, site):
    """Return the result page of the search for all queries."""
    with open_for_module(browser, site, "search", "?q=cannot-link") as one:
        yield one


# Each query has the page that must come first.
EXACT = [
    ("cannot-link", "book/07_cannot_links.html"),
    ("normalizer", "book/08_the_normaliser.html"),
    ("(2.3)", "book/02_em.html#equation-eq-2-identity"),
    ("chapter 7", "book/07_cannot_links.html"),
    ("Fig 7.1", "book/07_cannot_links.html#fig-7-scenes"),
    ("equation (7.1)", "book/07_cannot_links.html#equation-eq-7-posterior"),
    ("ConstrainedGaussianMixture", "book/api/mixture/ConstrainedGaussianMixture.html"),
    ("paired_difference", "book/api/metrics.html#cgmm.metrics.paired_difference"),
]
# Queries of readers who do not know the book's words, each with the page of the answer.
ASKED = [
    ("pip install", "using"),
    ("requirements", "using"),
    ("bic", "howto#choose-the-number-of-components"),
    ("missing values", "howto#deal-with-missing-values"),
    ("inconsistent constraints", "howto#mend-relations-that-contradict-each-other"),
    ("dask", "large_data"),
    ("gaussian mixture model", "01_mixtures"),
    ("expectation maximization", "02_em"),
    ("jensen", "02_em"),
    ("random restarts", "03_practice"),
    ("semi-supervised", "04_some_labels"),
    ("pairwise constraints", "05_where_relations_come_from"),
    ("cannot link constraints", "07_cannot_links"),
    ("variable elimination", "07_cannot_links"),
    ("normalizing constant", "08_the_normaliser"),
    ("penalized probabilistic clustering", "09_soft_preferences"),
    ("mean field", "10_gibbs_and_mean_field"),
    ("k means clustering", "11_kmeans_limit"),
    ("metric learning", "12_rca"),
    ("dimension reduction", "12_rca"),
    ("which algorithm", "14_choosing_a_method"),
    ("crowdsourcing", "16_many_witnesses"),
    ("syllabus", "instructors"),
    ("references", "bibliography"),
]


def test_searching_a_name_or_question_finds_its_page_first(results, site):
    def first_result(query):
        return (results.page.evaluate(FOUND, [query, 1]) or [""])[0]

    assert [(query, first_result(query)) for query, _ in EXACT] == EXACT
    found = {query: first_result(query).replace(".html", "") for query, _ in ASKED}
    missed = {query: found[query] for query, place in ASKED if found[query] != f"book/{place}"}
    assert len(missed) <= 4, missed
    rare = results.page.evaluate(FOUND, ["baguette", 99])
    assert {url.partition("#")[0] for url in rare} == {"book/01_mixtures.html"}
    for name in (name for name in pages_to_visit() if name.startswith("book/")):
        text = re.search(r"<h1>(.*?)<", (site / f"{name}.html").read_text(encoding="utf8"))[1]
        words = sorted(re.findall(r"\w{4,}", text), key=len)[-3:]
        assert f"{name}.html" in results.page.evaluate(FOUND, [" ".join(words), 8])


def test_searching_a_number_of_an_equation_or_figure_finds_it(results):
    missed = results.page.evaluate(
        """() => ENTRIES.filter(one => {
          if (one.kind === "equation") return search(`eq. ${one.number}`)[0] !== one;
          if (one.kind === "term" || one.kind === "page" && one.number)
            return !search(one.title).slice(0, 6).includes(one);
          return one.number && search(one.title.split(" (")[0])[0] !== one;
        }).map(one => one.title)"""
    )
    assert missed == []


def test_a_search_result_shows_its_kind_and_its_context(results):
    page = results.page
    assert re.fullmatch(r"\d+ places for “cannot-link”\.", page.get_by_role("status").inner_text())
    hit = page.locator("#search-results li").nth(1)
    assert hit.locator(".cgmm-hit-kind").inner_text() == "Term · Glossary"
    assert "different assignments" in hit.locator(".cgmm-hit-text").inner_text()
    shown = page.locator("#search-results li").count()
    page.get_by_role("button", name="Show the other").click()
    assert page.locator("#search-results li").count() > shown
    assert not results.complaints, "\n".join(results.complaints)


def test_every_search_result_has_a_target(results, site):
    urls = results.page.evaluate("() => ENTRIES.map(one => one.url)")
    pages = {url.partition("#")[0] for url in urls}
    assert len(urls) > 1000
    assert {f"{name}.html" for name in pages_to_visit() if name.startswith("book/")} <= pages
    for page in pages:
        text = (site / page).read_text(encoding="utf8")
        anchors = set(re.findall(r'\bid="([^"]+)"', text))
        assert {a for url in urls for p, _, a in [url.partition("#")] if p == page and a} <= anchors


# ---------------------------------------------------------------------------- previews


PREVIEW = "#cgmm-preview:not([hidden])"
LEADS = {
    "#thm-7-width": "Theorem 7.2",
    "#equation-eq-7-posterior": "(7.1)",
    "#fig-7-tree": "Fig. 7.5 The ring of four",
    "glossary.html#term-must-link": "must-link",
    "bibliography.html#": "Computing Gaussian mixture models",
}


@pytest.fixture(scope="module")
def chapter(browser, site):
    with open_for_module(browser, site, "book/07_cannot_links") as one:
        yield one


def locate_link(page, address):
    return page.locator(f".bd-article a[href^='{address}']:not(.headerlink):visible").first


@pytest.mark.parametrize("address", LEADS)
def test_hovering_a_link_shows_a_preview(chapter, address):
    page = chapter.page
    page.mouse.move(0, 0)
    locate_link(page, address).hover()
    shown = page.locator(PREVIEW)
    shown.wait_for()
    assert LEADS[address] in " ".join(shown.inner_text().split())
    assert "\\" not in shown.inner_text()
    assert shown.locator("mjx-merror, a, button, [id]").count() == 0
    if address.startswith("#equation"):
        assert shown.locator("mjx-container").count() == 1
    # The image for the other colours is hidden, and a hidden image is never loaded.
    images = shown.locator("img:visible")
    assert images.count() == address.startswith("#fig")
    for image in images.all():
        assert image.evaluate("one => one.decode().then(() => one.naturalWidth)") > 100
    inside = shown.evaluate(
        """one => { const box = one.getBoundingClientRect();
             const column = one.parentElement.getBoundingClientRect();
             return box.left >= column.left - 1 && box.right <= column.right + 1; }"""
    )
    assert inside
    # The mouse may enter the preview, and Escape removes it (WCAG 1.4.13).
    shown.hover()
    page.wait_for_timeout(500)
    assert shown.is_visible()
    page.keyboard.press("Escape")
    assert page.locator(PREVIEW).count() == 0
    assert not chapter.complaints, "\n".join(chapter.complaints)


def test_the_keyboard_shows_the_preview_of_a_link(chapter):
    page = chapter.page
    page.mouse.move(0, 0)
    one = locate_link(page, "#thm-7-width")
    # A key was pressed, as with Tab, so the focus is visible.
    page.keyboard.press("Tab")
    one.focus()
    page.locator(PREVIEW).wait_for()
    assert one.get_attribute("aria-describedby") == "cgmm-preview"
    page.keyboard.press("Tab")
    page.locator(PREVIEW).wait_for(state="detached")
    assert one.get_attribute("aria-describedby") is None


def test_a_tap_follows_the_link(visit):
    page = visit(
        "book/07_cannot_links", has_touch=True, viewport={"width": 390, "height": 800}
    ).page
    locate_link(page, "#thm-7-width").tap()
    page.wait_for_function("location.hash === '#thm-7-width'")
    page.wait_for_timeout(400)
    assert page.locator(PREVIEW).count() == 0


# ---------------------------------------------------------------------------- in readers' words


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_in_plain_words_finds_its_page_first(results, name):
    def is_right(query, places):
        found = results.page.evaluate(FOUND, [query, 1])
        right = {f"book/{place}.html" for place in places.split()}
        return bool(found) and found[0].partition("#")[0] in right

    questions = QUESTIONS[name]["questions"]
    missed = {query for query, places in questions.items() if not is_right(query, places)}
    assert len(questions) in {20, 50, 100}
    assert len(missed) <= QUESTIONS[name]["most"], missed
    assert not {"gpu", "speed vs scikit-learn", "handle missing data"} & missed


def test_every_place_with_questions_of_readers_is_in_the_index(results):
    asked = tomllib.loads((ROOT / "book/_data/asked.toml").read_text(encoding="utf8"))
    known = set(results.page.evaluate("() => ENTRIES.map(one => one.url.replace('.html', ''))"))
    assert {f"book/{place}" for place in asked if place != "alike"} <= known
    one = results.page.evaluate("() => ENTRIES.find(one => one.url === 'book/howto.html').asked")
    assert one == asked["howto"].strip()


def test_the_search_icon_does_not_cover_typed_text(visit):
    page = visit("search").page
    text_begins = page.locator(".bd-search-container input[type=search]").evaluate(
        "one => one.getBoundingClientRect().left + parseFloat(getComputedStyle(one).paddingLeft)"
    )
    sign = page.locator(".bd-search-container .bd-search i").first.bounding_box()
    assert text_begins >= sign["x"] + sign["width"] + 2


def test_search_results_appear_while_typing(visit):
    one = visit("book/02_em")
    one.page.keyboard.press("Control+k")
    one.page.keyboard.type("chunkl")
    hits = one.page.locator(".cgmm-instant li")
    hits.first.wait_for()
    assert 1 <= hits.count() <= 6
    assert "unklet" in hits.first.inner_text()
    results = visit("search")
    results.page.locator(".bd-search-container input[type=search]").type("gibbs")
    results.page.locator("#search-results li").first.wait_for()
    assert results.page.url.endswith("?q=gibbs")
    assert not one.complaints + results.complaints


def test_fractions_are_readable_in_search_snippets():
    assert cgmm_find.plain(r"\frac{e^{u_{jk}}}{\sum_l e^{u_{jl}}}") == "(e^u_jk)/(∑_l e^u_jl)"
    assert cgmm_find.plain(r"\frac{a}{\mathcal{Z}}").replace(" ", "") == "a/Z"
