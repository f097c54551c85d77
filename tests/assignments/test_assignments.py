"""The graded assignments: every check does what it is there for, and nothing is given away."""

from __future__ import annotations

import copy
import re
from pathlib import Path

import grading
import nbformat
import pytest
import sources
import trial
from handed_in import (
    at,
    changed,
    checks_of,
    right,
    run_here,
    solutions,
    text_of,
    try_here,
    without,
)
from nbgrader.utils import is_grade

ROOT = Path(__file__).resolve().parents[2]
NAMES = sources.names()
RELEASED = ROOT / "book" / "_static" / "assignments"
# A check takes milliseconds; long enough for a busy machine all the same.
SECONDS = 6


def pytest_generate_tests(metafunc):
    if "mistake" in metafunc.fixturenames:
        known = sources.mistakes(metafunc.cls.name)
        metafunc.parametrize("mistake", known, ids=[mistake.name for mistake in known])


@pytest.fixture(scope="class")
def rows(request):
    """By student: the right submission, each mistake, and the untouched notebook."""
    return grading.by_student(try_here(request.cls.name))


class Assignment:
    """What holds for each assignment; a class of tests each, so that workers share them out."""

    name: str

    def test_the_right_solution_gets_all_points_and_its_open_question_waits(self, rows):
        assert trial.faults_of_the_right(rows["right"]) == []

    def test_a_mistake_is_caught_where_it_is_named(self, rows, mistake):
        assert trial.faults_of_the_mistake(mistake, rows[mistake.name]) == []

    def test_the_untouched_notebook_earns_nothing_and_says_what_to_do(self, rows):
        assert trial.faults_of_the_untouched(rows["untouched"]) == []

    def test_the_right_solution_is_right_with_other_numbers(self):
        right = trial.right_submission(self.name, "spring")
        rows = run_here("right", self.name, right, "spring")
        assert trial.faults_of_the_right(rows) == []

    @pytest.mark.slow  # the tests above, each submission in a box of its own
    def test_a_box_says_the_same(self, boxes, rows):
        some = ["right", "untouched", *(mistake.name for mistake in sources.mistakes(self.name))]
        handed_in = trial.submissions(self.name)
        found = trial.grade_notebooks({(who, self.name): handed_in[who] for who in some[:6]})
        in_boxes = {row._replace(message=row.message.partition(" [line")[0]) for row in found}
        assert in_boxes == {row for who in some[:6] for row in rows[who]}

    def test_mistakes_are_three_or_more_and_name_checks_that_exist(self):
        known = sources.mistakes(self.name)
        assert len(known) >= 3
        assert len({mistake.name for mistake in known}) == len(known)
        cells = {sources.grade_id(cell): cell for cell in sources.source(self.name).cells}
        for mistake in known:
            assert mistake.error.endswith(".")
            assert mistake.caught_by
            assert all(is_grade(cells[check]) for check in mistake.caught_by)

    def test_each_check_that_hides_something_catches_a_mistake(self):
        cells = sources.source(self.name).cells
        hiding = {sources.grade_id(cell) for cell in cells if "BEGIN HIDDEN TESTS" in cell.source}
        caught = {check for mistake in sources.mistakes(self.name) for check in mistake.caught_by}
        assert hiding <= caught

    def test_the_source_is_clean(self):
        path = ROOT / "assignments" / "source" / self.name / f"{self.name}.ipynb"
        assert path.read_bytes() == sources.clean_bytes(sources.source(self.name))
        ids = [cell.id for cell in sources.source(self.name).cells]
        assert all(re.fullmatch(r"[a-z][a-z0-9-]*", name) for name in ids)

    def test_the_student_version_holds_no_solution_and_no_hidden_check(self):
        text = text_of(nbformat.read(RELEASED / f"{self.name}.ipynb", as_version=4))
        secrets = list(_secrets(sources.source(self.name)))
        assert len(secrets) > 10
        assert [line for line in secrets if line in text] == []
        assert "HIDDEN TESTS" not in text
        assert "SOLUTION" not in text


def _secrets(notebook):
    """Lines of solutions, answers and hidden checks, unless the reader sees them elsewhere."""
    region = re.compile(r"### BEGIN (SOLUTION|HIDDEN TESTS)\n(.*?)### END \1", re.DOTALL)
    shown = "\n".join(region.sub("", cell.source) for cell in notebook.cells)
    for cell in notebook.cells:
        for match in region.finditer(cell.source):
            lines = [line.strip() for line in match[2].splitlines()]
            yield from (line for line in lines if len(line) > 12 and line not in shown)


for _name in NAMES:
    _title = "Test" + _name.title().replace("_", "")
    globals()[_title] = type(_title, (Assignment,), {"name": _name, "__module__": __name__})


# ------------------------------------------------------------------ what else is handed in


def disturbed(name):
    """Submissions that something happened to, and the checks that each may lose."""
    first, last = solutions(name)[0], solutions(name)[-1]
    its, others = checks_of(name, first), checks_of(name, last)
    forged = changed(name, its[0], "assert True")
    forged.cells[at(forged, first)].source = "pass"
    twice = right(name)
    copied = copy.deepcopy(twice.cells[at(twice, others[0])])
    copied["id"] = "a-copy"
    twice.cells.insert(0, copied)
    bare = right(name)
    for cell in bare.cells:
        cell.metadata.clear()
    without_ids = right(name)
    for n, cell in enumerate(without_ids.cells):
        cell.metadata.clear()
        cell["id"] = f"lost-{n}"
    edited = right(name)
    for cell in edited.cells:
        if "nbgrader" in cell.metadata:
            cell.metadata.nbgrader |= {"points": 99, "solution": True, "locked": False}
    edited.cells[at(edited, its[0])].metadata.nbgrader["grade_id"] = "mine"
    as_text = right(name)
    as_code = as_text.cells[at(as_text, first)]
    as_text.cells[at(as_text, first)] = nbformat.v4.new_markdown_cell(
        as_code.source, metadata=as_code.metadata, id=as_code.id
    )
    quits = right(name)
    quits.cells[at(quits, first)].source += "\nquit()"
    return {
        "runs-for-ever": (changed(name, first, "while True:\n    pass"), its),
        "prints-for-ever": (changed(name, last, "while True:\n    print('x' * 200)"), others),
        "raises": (changed(name, first, "1 / 0"), its),
        "does-not-parse": (changed(name, last, "def ("), others),
        "lost-a-solution": (without(name, last), others),
        "lost-a-solution-and-its-checks": (without(name, first, *its), its),
        "lost-the-checks": (without(name, *its, *others), []),
        "lost-the-first-cell": (without(name, "setup"), []),
        "forged-a-check": (forged, its),
        "copied-a-check": (twice, []),
        "lost-all-metadata": (bare, []),
        "lost-metadata-and-ids": (without_ids, []),
        "edited-metadata": (edited, []),
        "code-as-text": (as_text, []),
        "quits": (quits, []),
        "ends-python": (changed(name, first, "import os\nos._exit(1)"), its),
    }


@pytest.mark.parametrize("name", [NAMES[1], pytest.param(NAMES[-1], marks=pytest.mark.slow)])
def test_a_disturbance_costs_only_its_own_task(boxes, name):
    submissions = disturbed(name)
    rows = trial.grade_notebooks(
        {(who, name): notebook for who, (notebook, _) in submissions.items()}, timeout=SECONDS
    )
    groups = grading.by_student(rows)
    lost = {who: {row.task for row in trial.lost(own)} for who, own in groups.items()}
    assert lost == {who: set(expected) for who, (_, expected) in submissions.items()}
    told = {who: " ".join(row.message for row in own) for who, own in groups.items()}
    assert "not done after" in told["runs-for-ever"]
    assert "ended Python" in told["ends-python"]
