"""Test the page for marking answers in a browser, with the keyboard only."""

import csv

import pytest
from handed_in import as_kept
from markapart import examine, feedback, marks, sources

NAME = "12_rca"
STUDENTS = [f"student{n}" for n in range(120)]


def _rows(answers):
    return [
        examine.Row(who, NAME, "task-5", 0.0, 4.0, "awaits manual grading", "", answer)
        for who, answer in answers.items()
    ]


@pytest.fixture
def page(browser, tmp_path):
    """Open the page for marking with 120 answers in a browser."""
    rows = _rows({who: f"Answer of number {n}." for n, who in enumerate(STUDENTS)})
    text = feedback.answers_page([as_kept(row.student, NAME, [row]) for row in rows], {})
    (tmp_path / "answers.html").write_text(text, encoding="utf8")
    tab = browser.new_page()
    tab.goto((tmp_path / "answers.html").as_uri())
    yield tab
    tab.close()


def test_one_question_is_marked_by_the_keyboard_alone(page, tmp_path):
    rubric = sources.rubric(NAME, "task-5")
    assert page.locator("section > h2").first.inner_text() == f"{NAME}, task-5: 0 of 120"
    pressed = 0
    for n in range(120):
        for key in ("n", *(("1", "3") if n % 2 else (str(len(rubric["item"]) + 1),))):
            page.keyboard.press(key)
            pressed += 1
        if n == 36:
            assert page.locator("section > h2").first.inner_text() == f"{NAME}, task-5: 37 of 120"
    assert pressed <= 3 * 120
    page.keyboard.press("Tab")
    page.locator("button").focus()
    with page.expect_download() as download:
        page.keyboard.press("Enter")
    download.value.save_as(tmp_path / "marks.csv")
    rows = _rows({who: f"Answer of number {n}." for n, who in enumerate(STUDENTS)})
    changes, problems = marks.enter_sheet(tmp_path, rows, tmp_path / "marks.csv")
    assert (len(changes), problems) == (120, [])
    given = marks.load_marks(tmp_path).values()
    want = sum(rubric["item"][n]["points"] for n in (0, 2))
    assert sorted(mark["points"] for mark in given) == [0.0] * 60 + [want] * 60
    message = " ".join(rubric["item"][n]["says"] for n in (0, 2))
    assert {mark["comment"] for mark in given} == {"", message}


def test_ticks_fill_points_and_comment_and_leave_what_was_typed(page):
    answer, items = page.locator("[data-key]").first, sources.rubric(NAME, "task-5")["item"]
    comment, points = answer.locator("textarea"), answer.locator("[inputmode]")
    comment.fill("See me.")
    answer.get_by_label("1.", exact=False).first.check()
    answer.locator("[type=checkbox]").nth(1).check()
    assert comment.input_value() == f"See me. {items[0]['says']} {items[1]['says']}"
    assert points.input_value() == "2"
    answer.locator("[type=checkbox]").nth(0).uncheck()
    assert comment.input_value() == f"See me. {items[1]['says']}"
    comment.press("1")
    assert points.input_value() == "1"  # Typing a digit into the field must not tick a checkbox.
    comment.press("n")
    assert comment.evaluate("area => area === document.activeElement")


def test_the_model_answer_and_samples_are_folded_and_ticks_come_back(browser, tmp_path):
    (row,) = _rows({"ada": "The ratio is 1 to 9."})
    item = sources.rubric(NAME, "task-5")["item"][1]
    kept = {marks.key_of(row): {"points": 1.0, "comment": f"Yes. {item['says']}"}}
    (tmp_path / "answers.html").write_text(
        feedback.answers_page([as_kept("ada", NAME, [row])], kept), encoding="utf8"
    )
    tab = browser.new_page()
    tab.goto((tmp_path / "answers.html").as_uri())
    assert tab.locator("details[open]").count() == 0
    assert not tab.get_by_text("his ruler weighs both alike").is_visible()
    tab.get_by_text("Model answer").click()
    assert tab.get_by_text("his ruler weighs both alike").is_visible()
    ticked = tab.locator("[type=checkbox]").evaluate_all("boxes => boxes.map(box => box.checked)")
    assert ticked == [False, True, False, False, False]
    tab.close()


def test_a_csv_of_marks_holds_quotes_and_lines(page, tmp_path):
    text = 'He said "no",\nand left.'
    page.locator("textarea").first.fill(text)
    with page.expect_download() as download:
        page.get_by_role("button").click()
    download.value.save_as(tmp_path / "marks.csv")
    with (tmp_path / "marks.csv").open(newline="", encoding="utf8") as file:
        assert next(csv.DictReader(file))["comment"] == text
