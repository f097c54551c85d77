"""What a teacher does with a course: hand out, collect, grade, mark by hand, grade again."""

from __future__ import annotations

import contextlib
import csv
import subprocess
import sys
import time
from pathlib import Path

import course
import grading
import nbformat
import psutil
import pytest
import sources
import trial
from handed_in import changed, right, solutions, text_of

NAMES = sources.names()
RELEASED = Path(__file__).resolve().parents[2] / "book" / "_static" / "assignments"


@pytest.fixture(scope="module")
def classroom(tmp_path_factory):
    """Five students, two ways to name the file, one notebook that kills its kernel."""
    folder, name = tmp_path_factory.mktemp("classroom") / "submitted", NAMES[0]
    wrong = trial.wrong_submission(name, sources.mistakes(name)[0])
    fatal = changed(name, solutions(name)[0], "import os\nos._exit(1)")
    for path, notebook in {
        f"ada/{name}.ipynb": right(name),
        f"ben/{name}/{name}.ipynb": wrong,
        f"cyd/{name}.ipynb": fatal,
        "ada/diary.ipynb": right(name),
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(sources.clean_bytes(notebook))
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
        assert sources.mistakes(name)[0].says in page
        assert "HIDDEN" not in page

        # The teacher writes points into the table and grades again.
        questions[0] |= {"points": str(open_points), "comment": "Well argued."}
        grading.write_csv(out / "open_questions.csv", grading.OPEN, questions)
        assert course.main(command) == 0
        assert _total(_read(out / "grades.csv"), "ada") == 20
        assert _read(out / "open_questions.csv")[0]["comment"] == "Well argued."
        page = (out / "feedback" / "ada" / name / f"{name}.html").read_text(encoding="utf8")
        assert "Well argued." in page

        questions[0] |= {"points": "99"}
        grading.write_csv(out / "open_questions.csv", grading.OPEN, questions)
        assert course.main(command) == 2
        assert "line 2: 99 points" in capsys.readouterr().err

    def test_release_changes_one_line_with_the_seed(self, tmp_path):
        name = NAMES[0]
        assert course.main(["release", name, "--out", str(tmp_path), "--seed", "spring"]) == 0
        before, after = (
            text_of(nbformat.read(path / f"{name}.ipynb", as_version=4)).splitlines()
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
        rows = trial.grade_notebooks({("eve", name): trial.right_submission(name, "spring")})
        assert {row.state for row in rows} == {
            'not graded: made with the seed "spring", graded with "autumn"; see --seed'
        }
