"""Test the graded assignments: every check catches its mistake, and no solution is given away."""

import copy
import re
from pathlib import Path

import nbformat
import pytest
from docutils import nodes
from handed_in import at, changed, checks_of, right, solutions
from markapart import grading, sources, trial
from ungraded import drop_cells, run_here

ROOT = Path(__file__).resolve().parents[2]
NAMES = sources.names()
RELEASED = ROOT / "book" / "_static" / "assignments"


def pytest_generate_tests(metafunc):
    if "mistake" in metafunc.fixturenames:
        known = sources.mistakes(metafunc.cls.name)
        metafunc.parametrize("mistake", known, ids=[mistake.name for mistake in known])


@pytest.fixture(scope="class")
def rows_by_student(request):
    """Grade the right, the untouched and each mistaken submission; return their rows."""
    name = request.cls.name
    found = trial.trial_submissions(name).items()
    return grading.by_student(row for who, one in found for row in run_here(who, name, one))


class Assignment:
    """Tests of one assignment, with a subclass for each, so that several workers can share them."""

    name: str

    def test_right_solution_earns_all_points_except_open_questions(self, rows_by_student):
        assert trial.faults_of_the_right(rows_by_student["right"]) == []

    def test_mistake_fails_the_expected_checks_with_the_expected_message(
        self, rows_by_student, mistake
    ):
        assert trial.faults_of_the_mistake(mistake, rows_by_student[mistake.name]) == []

    def test_untouched_notebook_earns_nothing_and_explains_why(self, rows_by_student):
        assert trial.faults_of_the_untouched(rows_by_student["untouched"]) == []

    def test_the_solution_earns_all_points_with_other_seeds(self):
        right = trial.right_submission(self.name, "spring")
        rows = run_here("right", self.name, right, "spring")
        assert trial.faults_of_the_right(rows) == []

    @pytest.mark.slow  # The tests above are quicker, because they run submissions in this process.
    def test_grading_in_the_sandbox_gives_the_same_points(self, boxes, rows_by_student):
        some = ["right", sources.mistakes(self.name)[0].name]
        handed_in = trial.trial_submissions(self.name)
        found = trial.grade_notebooks({(who, self.name): handed_in[who] for who in some})
        # Outside a sandbox, messages name no line and rows contain no code, so both are removed.
        in_boxes = {
            row._replace(message=row.message.partition(" [line")[0], code="") for row in found
        }
        assert in_boxes == {row for who in some for row in rows_by_student[who]}

    def test_each_hidden_check_catches_a_mistake(self):
        cells = sources.source(self.name).cells
        hiding = {sources.grade_id(cell) for cell in cells if "BEGIN HIDDEN TESTS" in cell.source}
        caught = {check for mistake in sources.mistakes(self.name) for check in mistake.caught_by}
        assert hiding <= caught

    def test_source_notebook_is_clean(self):
        path = ROOT / "assignments" / "source" / self.name / f"{self.name}.ipynb"
        assert path.read_bytes() == sources.clean_bytes(sources.source(self.name))
        ids = [cell.id for cell in sources.source(self.name).cells]
        assert all(re.fullmatch(r"[a-z][a-z0-9-]*", name) for name in ids)

    def test_student_version_has_no_solution_and_no_hidden_check(self):
        released = nbformat.read(RELEASED / f"{self.name}.ipynb", as_version=4)
        text = "\n".join(cell.source for cell in released.cells)
        secrets = list(_find_hidden_lines(sources.source(self.name)))
        assert len(secrets) > 10
        assert [line for line in secrets if line in text] == []
        assert "HIDDEN TESTS" not in text
        assert "SOLUTION" not in text


def _find_hidden_lines(notebook):
    """Yield lines of solutions and hidden checks that no visible part of the notebook has."""
    region = re.compile(r"### BEGIN (SOLUTION|HIDDEN TESTS)\n(.*?)### END \1", re.DOTALL)
    shown = "\n".join(region.sub("", cell.source) for cell in notebook.cells)
    for cell in notebook.cells:
        for match in region.finditer(cell.source):
            lines = [line.strip() for line in match[2].splitlines()]
            yield from (line for line in lines if len(line) > 12 and line not in shown)


for _name in NAMES:
    _title = "Test" + _name.title().replace("_", "")
    globals()[_title] = type(_title, (Assignment,), {"name": _name, "__module__": __name__})


# ------------------------------------------------------------------ damaged submissions


def make_damaged_submissions(name):
    """Return damaged submissions, each with the checks that it is expected to fail."""
    first, last = solutions(name)[0], solutions(name)[-1]
    its, others = checks_of(name, first), checks_of(name, last)
    forged = changed(name, its[0], "assert True")
    forged.cells[at(forged, first)].source = "pass"
    twice, bare, without_ids, edited, as_text = (right(name) for _ in range(5))
    twice.cells.insert(0, copy.deepcopy(twice.cells[at(twice, others[0])]))
    twice.cells[0]["id"] = "a-copy"
    for cell in edited.cells:
        if "nbgrader" in cell.metadata:
            cell.metadata.nbgrader |= {"points": 99, "solution": True, "locked": False}
    edited.cells[at(edited, its[0])].metadata.nbgrader["grade_id"] = "mine"
    as_text.cells[at(as_text, first)]["cell_type"] = "markdown"
    every_check = [check for task in solutions(name) for check in checks_of(name, task)]
    no_checks = drop_cells(name, *every_check)
    for notebook in (bare, without_ids, no_checks):
        for n, cell in enumerate(notebook.cells):
            cell.metadata.clear()
            cell["id"] = cell["id"] if notebook is bare else f"lost-{n}"
    return {
        "raises": (changed(name, first, "1 / 0"), its),
        "does not parse": (changed(name, last, "def ("), others),
        "lost a solution": (drop_cells(name, last), others),
        "lost a solution and its checks": (drop_cells(name, first, *its), its),
        "lost the checks": (drop_cells(name, *its, *others), []),
        "lost the first cell": (drop_cells(name, "setup"), []),
        "forged a check": (forged, its),
        "copied a check": (twice, []),
        "lost all metadata": (bare, []),
        "lost metadata and ids": (without_ids, []),
        "edited metadata": (edited, []),
        "code as text": (as_text, []),
        "lost metadata, ids and checks": (no_checks, []),
    }


@pytest.mark.parametrize("name", ["02_em", "12_rca", NAMES[-1]])
def test_a_mistake_in_one_task_costs_no_points_of_others(name):
    """Code that ends Python or never returns is tested in sandboxes, by the grader's tests."""
    for what, (notebook, expected) in make_damaged_submissions(name).items():
        repaired = sources.repair(notebook, sources.read_released(name))
        lost = {row.task for row in trial.lost_rows(run_here(what, name, repaired))}
        assert lost == set(expected), what


# --------------------------------------------------------------- rubrics, and links to sections


@pytest.mark.parametrize("name", NAMES)
def test_each_check_has_a_section_that_is_in_the_book(name):
    for check in (check for task in solutions(name) for check in checks_of(name, task)):
        page, title = sources.section_of(name, check)
        chapter, _, anchor = page.partition(".html#")
        text = (ROOT / "book" / f"{chapter}.ipynb").read_text(encoding="utf8")
        assert re.search(rf'"##+ {re.escape(title)}(\\n)?"', text), f"{check}: {title}"
        assert anchor == nodes.make_id(title)


OPEN = [(name, sources.grade_id(cell), cell.metadata.nbgrader.points)
        for name in sources.names() for cell in sources.source(name).cells
        if cell.cell_type == "markdown" and sources.grade_id(cell)]  # fmt: skip


@pytest.mark.parametrize(("name", "task", "points"), OPEN)
def test_a_rubric_has_items_for_all_points_and_marked_samples(name, task, points):
    rubric = sources.rubric(name, task)
    assert sum(item["points"] for item in rubric["item"]) == points
    marked = [sample["points"] for sample in rubric["sample"]]
    assert marked[0] == points
    assert marked[-1] == 0
    assert any(0 < one < points for one in marked)
    says = [item["says"] for item in rubric["item"]]
    reasons = [sample["why"] for sample in rubric["sample"]]
    assert all(text.endswith(".") for text in says + reasons)
    assert not any(one in other for one in says for other in says if one is not other)
