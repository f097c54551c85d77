"""Test questions with feedback, marks on chapters already read, and the decision chart's links."""

import re
from pathlib import Path

import pytest
from built_book import open_for_module
from cells import CHAPTERS, read_prose

QUESTION = re.compile(
    r"^::::\{admonition\} Question \d\n:class: cgmm-question\n\n"
    r"(?P<asked>.+?)\n\n(?P<options>.+?)\n\n"
    r":::\{dropdown\} What each answer says\n(?P<said>.+?)\n:::\n::::$",
    re.MULTILINE | re.DOTALL,
)
ITEM = re.compile(r"^\d\. (.+)$", re.MULTILINE)


def read_questions(path: Path) -> list[tuple[str, list[str], list[str]]]:
    """Return for each question its text, its options, and the feedback on each option."""
    found = QUESTION.finditer(read_prose(path))
    return [(q["asked"], ITEM.findall(q["options"]), ITEM.findall(q["said"])) for q in found]


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_chapters_have_three_questions_before_the_exercises(path):
    headings = re.findall(r"^## (.+)$", read_prose(path), re.MULTILINE)
    assert headings.index("Three questions") + 1 == headings.index("Exercises")
    found = read_questions(path)
    assert len(found) == 3
    for _, options, comments in found:
        assert len(options) == len(set(options)) == len(comments) == 3
        assert [s.startswith("**Right.**") for s in comments].count(True) == 1
        assert all(len(s) > 20 for s in comments)


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_every_answer_is_folded(path):
    """Solutions, proofs and answers to guesses are folded on the page and in JupyterLab."""
    text = read_prose(path)
    solutions = re.findall(r"^:{3,}\{solution\} .+\n(.*)$", text, re.MULTILINE)
    assert solutions
    assert set(solutions) == {":class: dropdown"}
    after_guesses = text.split("{admonition} Guess first")[1:]
    assert all("{dropdown}" in after for after in after_guesses)
    proofs = re.findall(r"^(.*)\n:{3,}\{prf:proof\}", text, re.MULTILINE)
    assert all("dropdown" in line for line in proofs), proofs


@pytest.fixture(scope="module")
def chapter(browser, site):
    with open_for_module(browser, site, "book/09_soft_preferences") as one:
        yield one


def test_choosing_an_option_shows_its_feedback(chapter):
    page = chapter.page
    box = page.locator(".cgmm-question").first
    assert box.locator("details").get_attribute("open") is None
    status = box.get_by_role("status")
    options = box.locator("button[aria-pressed]")
    options.nth(0).focus()
    page.keyboard.press("Enter")
    assert status.inner_text().startswith("No. That would be an annotator")
    assert box.get_attribute("data-answer") == "wrong"
    options.nth(2).click()
    assert status.inner_text().startswith("Right. The log-odds")
    pressed = options.evaluate_all("all => all.map(one => one.getAttribute('aria-pressed'))")
    assert pressed == ["false", "false", "true"]
    assert options.nth(2).locator("mjx-container").count() == 1


def test_chapters_marked_as_read_have_a_tick_in_the_contents(chapter):
    """The mark also appears on another open page, and after a reload."""
    page, index = chapter.page, chapter.page.context.new_page()
    index.goto((chapter.site / "book/index.html").as_uri())
    button = page.get_by_role("button", name="I have read this chapter")
    ticked, there = (one.locator(".bd-links a:has(.cgmm-tick)") for one in (page, index))
    assert ticked.count() == there.count() == 0
    button.click()
    assert ticked.inner_text().startswith("9.")
    assert there.inner_text().startswith("9.")
    index.reload()
    assert there.inner_text().startswith("9.")
    chapter.open("book/09_soft_preferences")
    assert button.get_attribute("aria-pressed") == "true"
    button.click()
    assert ticked.count() == 0
    assert not chapter.complaints, "\n".join(chapter.complaints)


@pytest.mark.parametrize("width", [1280, 390])
def test_answers_in_the_decision_chart_are_links(visit, site, width):
    page = visit("book/14_choosing_a_method", viewport={"width": width, "height": 900}).page
    links = page.locator(".cgmm-chart > a")
    assert links.count() == 5
    box = page.locator(".cgmm-chart img:visible").bounding_box()
    for link in links.all():
        assert (site / "book" / link.get_attribute("href").split("/")[-1]).exists()
        assert link.get_attribute("aria-label").strip()
        place = link.bounding_box()
        assert box["x"] < place["x"] < place["x"] + place["width"] < box["x"] + box["width"]
        assert box["y"] <= place["y"] < place["y"] + place["height"] <= box["y"] + box["height"]


@pytest.mark.parametrize("name", ["book/01_mixtures", "book/09_soft_preferences"])
def test_options_have_accessible_names(visit, name):
    """A button needs words besides a formula, which MathJax hides from screen readers."""
    options = visit(name).page.locator(".cgmm-question > ol button")
    assert options.count() == 9
    for option in options.all():
        words = re.sub(r"\\[()]", "", option.get_attribute("aria-label") or "")
        words = words or option.evaluate(
            "one => { const copy = one.cloneNode(true);"
            " copy.querySelectorAll('mjx-container').forEach(x => x.remove());"
            " return copy.textContent; }"
        )
        assert re.search(r"\w", words), option.inner_text()
