"""Test the exam bank: every number in a key is computed, and papers give no solution away."""

import re
import tomllib

import papers
import pytest
import quiz
from markapart import sources

PATHS = sorted((sources.COURSE / "exam").glob("*.toml"))
ENTRIES = {entry["id"]: entry for path in PATHS
           for entry in tomllib.loads(path.read_text(encoding="utf8"))["question"]}  # fmt: skip
DECIMAL = re.compile(r"\d+\.\d+")


@pytest.fixture(scope="module")
def bank():
    return {question.id: question for question in papers.bank()}


@pytest.mark.parametrize("name", ENTRIES)
class TestQuestion:
    def test_the_answer_key_is_computed_and_asserted(self, name, bank):
        entry, question = ENTRIES[name], bank[name]
        assert entry["compute"].count("assert ") >= 1
        typed = papers.FILLED.sub("", entry["key"])
        # A decimal number in a key is either computed or given in the question.
        assert set(DECIMAL.findall(typed)) <= set(DECIMAL.findall(entry["text"]))
        assert "<<" not in question.key + str(question.misconceptions)
        assert papers.FILLED.search(entry["key"])

    def test_points_add_up_and_the_stated_time_is_5_to_15_minutes(self, name, bank):
        question = bank[name]
        assert sum(line["points"] for line in question.rubric) == question.points
        assert 5 <= question.minutes <= 15
        assert len(question.misconceptions) >= 2
        assert all(line["is"].endswith((".", ")")) for line in question.misconceptions)
        assert all(0 <= line["points"] < question.points for line in question.misconceptions)


def test_a_seed_varies_every_question_and_its_key(bank):
    versions = [{one.id: one for one in papers.bank(seed)} for seed in "ABCD"]
    assert "<<" not in str(versions)
    for name in ENTRIES:
        for part in ("text", "key"):
            assert len({getattr(version[name], part) for version in [bank, *versions]}) > 1, name
    again = {one.id: one for one in papers.bank("A")}
    assert again == versions[0] != bank


@pytest.mark.parametrize("path", sorted(quiz.BOOK.glob("[0-9][0-9]_*.ipynb")), ids=lambda p: p.stem)
def test_predictions_of_a_chapter_become_a_quiz(path, tmp_path):
    asked = path.read_text(encoding="utf8").count("{admonition} Guess first")
    questions = quiz.read_guess_boxes(path)
    assert len(questions) == asked
    assert all(question and answer for question, answer in questions)
    text = quiz.write_gift(path.stem, questions)
    assert text.count("::[markdown]") == asked
    bare = re.sub(r"\\[~=#{}:]", "", text)
    assert bare.count("{") == bare.count("}") == asked
    assert not re.search(r"\{[a-z:]+\}`|:::", bare)
    with pytest.raises(ValueError, match="no chapter '99'"):
        quiz.write_quizzes(["99"], tmp_path)


def test_student_papers_contain_no_answer_key(bank):
    sheet = papers.exam(list(bank.values()), key=False)
    assert "misconception" not in sheet
    assert 'class="key"' not in sheet
    assert papers.exam(list(bank.values()), key=True).count('class="key"') == len(bank)


@pytest.mark.parametrize("name", sources.names())
def test_the_key_of_an_assignment_has_numbers_solutions_points_and_rubric(name):
    page, other = papers.assignment_key(name), papers.assignment_key(name, "spring")
    assert page != other
    for part in ("<b>Given</b>", "0 points", "<pre>", "<b>check-1-"):
        assert part in page
    assert "SOLUTION" not in page
    points = [float(n) for n in re.findall(r"<b>check-[^<]+</b>, ([\d.]+):", page)]
    asked = [cell.metadata.nbgrader.points for cell in sources.source(name).cells
             if cell.cell_type == "markdown" and sources.grade_id(cell)]  # fmt: skip
    assert sum(points) + sum(asked) == 20
    assert 3 <= sum(asked) <= 6


def test_printed_papers_need_no_other_file(chromium_path, tmp_path):
    sheets = {"exam": papers.exam(papers.choose_questions(["06"]), key=True)}
    (path,) = papers.write_papers(sheets, tmp_path)
    assert path.read_bytes().startswith(b"%PDF")
    text = path.with_suffix(".html").read_text(encoding="utf8")
    assert "<script" not in text
    assert re.findall(r"(?:src|href)=\"(?!#)|url\((?!#)", text) == []
    assert text.count("<mjx-container") > 10
    assert not re.search(r"\\[(\[]|\$", re.sub(r"<[^>]*>", "", text.partition("</head>")[2]))
