"""The graded assignments, handed out, collected and graded by nbgrader as it is installed."""

from __future__ import annotations

import contextlib
import copy
import csv
import re
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import psutil
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "assignments"))

import course  # noqa: E402 (a program in a folder of its own, not a package)

NAMES = course.names()
RELEASED = ROOT / "book" / "_static" / "assignments"
# A check takes milliseconds; long enough for a busy machine all the same.
SECONDS = 6


def pytest_generate_tests(metafunc):
    if "mistake" in metafunc.fixturenames:
        known = course.mistakes(metafunc.cls.name)
        metafunc.parametrize("mistake", known, ids=[mistake.name for mistake in known])


@pytest.fixture(scope="class")
def rows(request):
    """By student: the right submission, each mistake, and the untouched notebook."""
    return course.by_student(course.try_out(request.cls.name))


class Assignment:
    """What holds for each assignment; a class of tests each, so that workers share them out."""

    name: str

    def test_the_right_solution_gets_all_points_and_its_open_question_waits(self, rows):
        assert course.faults_of_the_right(rows["right"]) == []

    def test_a_mistake_is_caught_where_it_is_named(self, rows, mistake):
        assert course.faults_of_the_mistake(mistake, rows[mistake.name]) == []

    def test_the_untouched_notebook_earns_nothing_and_says_what_to_do(self, rows):
        assert course.faults_of_the_untouched(rows["untouched"]) == []

    def test_the_right_solution_is_right_with_other_numbers(self):
        right = {("right", self.name): course.right_submission(self.name, "spring")}
        rows = course.grade_notebooks(right, "spring")
        assert course.faults_of_the_right(rows) == []

    def test_mistakes_are_three_or_more_and_name_checks_that_exist(self):
        known = course.mistakes(self.name)
        assert len(known) >= 3
        assert len({mistake.name for mistake in known}) == len(known)
        cells = {course.grade_id(cell): cell for cell in course.source(self.name).cells}
        for mistake in known:
            assert mistake.error.endswith(".")
            assert mistake.caught_by
            assert all(course.is_grade(cells[check]) for check in mistake.caught_by)

    def test_each_check_that_hides_something_catches_a_mistake(self):
        cells = course.source(self.name).cells
        hiding = {course.grade_id(cell) for cell in cells if "BEGIN HIDDEN TESTS" in cell.source}
        caught = {check for mistake in course.mistakes(self.name) for check in mistake.caught_by}
        assert hiding <= caught

    def test_the_source_is_clean(self):
        path = ROOT / "assignments" / "source" / self.name / f"{self.name}.ipynb"
        assert path.read_bytes() == course.clean_bytes(course.source(self.name))
        ids = [cell.id for cell in course.source(self.name).cells]
        assert all(re.fullmatch(r"[a-z][a-z0-9-]*", name) for name in ids)

    def test_the_student_version_is_the_one_that_the_source_makes(self):
        made = course.student_versions([self.name])[self.name]
        assert (RELEASED / f"{self.name}.ipynb").read_bytes() == made

    def test_the_student_version_holds_no_solution_and_no_hidden_check(self):
        text = _text(nbformat.read(RELEASED / f"{self.name}.ipynb", as_version=4))
        secrets = list(_secrets(course.source(self.name)))
        assert len(secrets) > 10
        assert [line for line in secrets if line in text] == []
        assert "HIDDEN TESTS" not in text
        assert "SOLUTION" not in text


def _text(notebook):
    return "\n".join(cell.source for cell in notebook.cells)


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


def right(name):
    return nbformat.reads(course.clean_bytes(course.right_submission(name)), as_version=4)


def solutions(name):
    """Solution cells that hold code, in order."""
    cells = course.source(name).cells
    return [course.grade_id(cell) for cell in cells if "BEGIN SOLUTION" in cell.source][:-1]


def checks_of(name, solution):
    """Checks between a solution and the next one."""
    ids = [course.grade_id(c) for c in course.source(name).cells if course.grade_id(c)]
    after = ids[ids.index(solution) + 1 :]
    stops = [i for i, other in enumerate(after) if not other.startswith("check")]
    return after[: stops[0]]


def at(notebook, name):
    (found,) = [i for i, cell in enumerate(notebook.cells) if course.grade_id(cell) == name]
    return found


def changed(name, cell, source):
    notebook = right(name)
    notebook.cells[at(notebook, cell)].source = source
    return notebook


def without(name, *cells):
    notebook = right(name)
    notebook.cells = [cell for cell in notebook.cells if course.grade_id(cell) not in cells]
    return notebook


WARNS_IN_EVERY_CELL = """
import sys
get_ipython().events.register("post_run_cell", lambda _: print("a warning", file=sys.stderr))
"""


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
    noisy = right(name)
    noisy.cells[at(noisy, first)].source += WARNS_IN_EVERY_CELL
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
        "warns": (noisy, []),
    }


@pytest.mark.parametrize("name", sorted({NAMES[0], NAMES[-1]}))
def test_a_disturbance_costs_only_its_own_task(name):
    submissions = disturbed(name)
    rows = course.grade_notebooks(
        {(who, name): notebook for who, (notebook, _) in submissions.items()}, timeout=SECONDS
    )
    lost = {
        who: {row.task for row in course.lost(own)} for who, own in course.by_student(rows).items()
    }
    assert lost == {who: set(expected) for who, (_, expected) in submissions.items()}


# ------------------------------------------------------------------------ a teacher's course


@pytest.fixture(scope="module")
def classroom(tmp_path_factory):
    """Five students, two ways to name the file, one notebook that kills its kernel."""
    folder, name = tmp_path_factory.mktemp("classroom") / "submitted", NAMES[0]
    wrong = course.wrong_submission(name, course.mistakes(name)[0])
    fatal = changed(name, solutions(name)[0], "import os\nos._exit(1)")
    for path, notebook in {
        f"ada/{name}.ipynb": right(name),
        f"ben/{name}/{name}.ipynb": wrong,
        f"cyd/{name}.ipynb": fatal,
        "ada/diary.ipynb": right(name),
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(course.clean_bytes(notebook))
    (folder / "dan").mkdir()
    (folder / "dan" / f"{name}.ipynb").write_text("no notebook at all")
    return folder


def _read(path):
    with path.open(newline="", encoding="utf8") as file:
        return list(csv.DictReader(file))


def _within(seconds, condition):
    """Whether a condition comes true in that time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.1)
    return False


def _total(rows, student):
    return sum(float(row["points"]) for row in rows if row["student"] == student)


class TestCommands:
    def test_grade_writes_grades_feedback_and_open_questions(self, classroom, tmp_path, capsys):
        out, name = tmp_path / "graded", NAMES[0]
        command = ["grade", str(classroom), "--out", str(out), "--timeout", "60"]
        assert course.main(command) == 0
        printed, grades = capsys.readouterr().out, _read(out / "grades.csv")
        questions = _read(out / "open_questions.csv")
        open_points = float(questions[0]["max"])
        assert [row["student"] for row in questions] == ["ada", "ben"]
        assert _total(grades, "ada") == 20 - open_points
        assert _total(grades, "ben") < 20 - open_points
        assert "diary.ipynb" in printed
        for student, reason in {"cyd": "kernel died", "dan": "not graded: NotJSONError"}.items():
            states = {row["state"] for row in grades if row["student"] == student}
            assert all(reason in state for state in states)
            assert _total(grades, student) == 0
            assert not (out / "feedback" / student).exists()
        page = (out / "feedback" / "ben" / name / f"{name}.html").read_text(encoding="utf8")
        assert course.mistakes(name)[0].says in page
        assert "HIDDEN" not in page

        # The teacher writes points into the table and grades again.
        questions[0] |= {"points": str(open_points), "comment": "Well argued."}
        course._write_csv(out / "open_questions.csv", course.OPEN, questions)
        assert course.main(command) == 0
        assert _total(_read(out / "grades.csv"), "ada") == 20
        assert _read(out / "open_questions.csv")[0]["comment"] == "Well argued."
        page = (out / "feedback" / "ada" / name / f"{name}.html").read_text(encoding="utf8")
        assert "Well argued." in page

        questions[0] |= {"points": "99"}
        course._write_csv(out / "open_questions.csv", course.OPEN, questions)
        assert course.main(command) == 2
        assert "line 2: 99 points" in capsys.readouterr().err

    def test_release_changes_one_line_with_the_seed(self, tmp_path):
        name = NAMES[0]
        assert course.main(["release", name, "--out", str(tmp_path), "--seed", "spring"]) == 0
        before, after = (
            _text(nbformat.read(path / f"{name}.ipynb", as_version=4)).splitlines()
            for path in (RELEASED, tmp_path)
        )
        changes = [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]]
        assert changes == [('COURSE = "autumn"', 'COURSE = "spring"')]

    def test_what_is_asked_for_has_to_exist(self, tmp_path, capsys):
        assert course.main(["release", "99_nothing", "--out", str(tmp_path)]) == 2
        assert "there is no assignment '99_nothing'" in capsys.readouterr().err
        assert course.main(["grade", str(tmp_path / "nowhere")]) == 2
        assert "there is no folder" in capsys.readouterr().err
        assert course.main(["grade", str(tmp_path)]) == 2
        assert "holds no student/assignment.ipynb" in capsys.readouterr().err
        assert course.main(["release", NAMES[0], "--out", str(tmp_path), "--seed", '"']) == 2
        assert "the seed is" in capsys.readouterr().err

    def test_a_notebook_handed_in_twice_is_refused(self, tmp_path, capsys):
        name = NAMES[0]
        for path in (tmp_path / "ada" / name, tmp_path / "ada"):
            path.mkdir(parents=True, exist_ok=True)
            (path / f"{name}.ipynb").write_bytes(b"{}")
        assert course.main(["grade", str(tmp_path)]) == 2
        assert "ada handed in twice" in capsys.readouterr().err

    def test_a_kernel_does_not_outlive_a_grader_that_is_killed(self, tmp_path):
        name, number = NAMES[0], tmp_path / "number"
        tell = f"import os\nopen({str(number)!r}, 'w').write(str(os.getpid()) + ' ')"
        loop = f"{tell}\nwhile True:\n    pass"
        (tmp_path / "in" / "ada").mkdir(parents=True)
        nbformat.write(
            changed(name, solutions(name)[0], loop), tmp_path / "in" / "ada" / f"{name}.ipynb"
        )
        command = [sys.executable, course.__file__, "grade", str(tmp_path / "in")]
        grader = subprocess.Popen([*command, "--out", str(tmp_path / "out"), "--timeout", "300"])
        assert _within(120, lambda: number.exists() and number.read_text().endswith(" "))
        kernel = psutil.Process(int(number.read_text()))
        grader.kill()
        grader.wait()
        try:
            assert _within(30, lambda: not kernel.is_running())
        finally:
            with contextlib.suppress(psutil.NoSuchProcess):
                kernel.kill()

    def test_a_notebook_of_another_term_is_named(self):
        name = NAMES[0]
        rows = course.grade_notebooks({("eve", name): course.right_submission(name, "spring")})
        assert {row.state for row in rows} == {
            'not graded: made with the seed "spring", graded with "autumn"; see --seed'
        }
