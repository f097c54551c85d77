"""What a teacher does with a course: hand out, collect, grade, mark by hand, grade again."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import time

import collect
import course
import duplicates
import grading
import marks
import nbformat
import psutil
import pytest
import sources
import tables
import trial
from handed_in import changed, right, solutions, text_of

NAMES = sources.names()
RELEASED = sources.HERE.parent / "book" / "_static" / "assignments"


@pytest.fixture(scope="module")
def classroom(tmp_path_factory):
    """Five submissions, two ways to name the file, one that ends Python, one that is none."""
    folder, name = tmp_path_factory.mktemp("classroom") / "submitted", NAMES[0]
    wrong = trial.wrong_submission(name, sources.mistakes(name)[0])
    fatal = changed(name, solutions(name)[0], "import os\nos._exit(1)")
    for path, notebook in {
        f"ada/{name}.ipynb": right(name),
        f"ben/{name}/{name}.ipynb": wrong,
        f"cyd/{name}.ipynb": fatal,
        f"eve/{name}.ipynb": nbformat.reads(
            sources.clean_bytes(trial.right_submission(name, "spring")), as_version=4
        ),
        "ada/diary.ipynb": right(name),
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(sources.clean_bytes(notebook))
    (folder / "dan").mkdir()
    (folder / "dan" / f"{name}.ipynb").write_text("no notebook at all")
    return folder


def _read(path):
    with path.open(newline="", encoding="utf-8-sig") as file:
        return list(csv.DictReader(file))


def _total(rows, student):
    return sum(float(row["points"]) for row in rows if row["student"] == student)


class TestCommands:
    def test_grade_then_mark_then_grade_again(self, classroom, tmp_path, capsys):
        out, name = tmp_path / "graded", NAMES[0]
        command = ["grade", str(classroom), "--out", str(out), "--timeout", "60"]
        assert course.main(command) == 0
        printed, grades = capsys.readouterr(), _read(out / "grades.csv")
        questions = _read(out / "open_questions.csv")
        most = float(questions[0]["max"])
        assert [row["student"] for row in questions] == ["ada", "ben", "cyd"]
        assert _total(grades, "ada") == 20 - most
        assert 0 < _total(grades, "ben") < 20 - most
        assert 0 < _total(grades, "cyd") < 20 - most
        assert "diary.ipynb" in printed.out
        assert "5 of 5" in printed.err
        states = {row["student"]: row["state"] for row in grades if row["task"] != "task-5"}
        assert "NotJSONError: the file is no notebook" in states["dan"]
        assert 'made with the seed "spring", graded with "autumn"; see --seed' in states["eve"]
        page = (out / "feedback" / "ben" / name / f"{name}.html").read_text(encoding="utf8")
        assert sources.mistakes(name)[0].says in page

        # The teacher writes points into the table; nothing is run again.
        questions[0] |= {"points": str(most), "comment": "Well <b>argued</b>."}
        marks.write_table(out / "open_questions.csv", marks.COLUMNS, questions)
        before = {path: path.stat().st_mtime_ns for path in out.glob("results/*/*")}
        assert course.main(["mark", "--out", str(out)]) == 0
        assert "1 marks entered; 2 answers wait." in capsys.readouterr().out
        assert _total(_read(out / "grades.csv"), "ada") == 20
        page = (out / "feedback" / "ada" / name / f"{name}.html").read_text(encoding="utf8")
        assert "Well &lt;b&gt;argued&lt;/b&gt;." in page

        # A second grading runs nothing that has not changed, and enters what was written since.
        questions[1] |= {"points": "1"}
        marks.write_table(out / "open_questions.csv", marks.COLUMNS, questions)
        assert course.main(command) == 0
        assert "5 submissions have not changed" in capsys.readouterr().err
        assert {path: path.stat().st_mtime_ns for path in out.glob("results/*/*")} == before
        assert _total(_read(out / "grades.csv"), "ada") == 20
        (total,) = [row for row in _read(out / "totals.csv") if row["student"] == "ada"]
        assert (total[name], total["total"], total["of"]) == ("20.0", "20.0", "20.0")

        questions[0] |= {"points": "99"}
        marks.write_table(out / "open_questions.csv", marks.COLUMNS, questions)
        assert course.main(["mark", "--out", str(out)]) == 1
        assert "99 points, but there are 0 to" in capsys.readouterr().err
        assert _total(_read(out / "grades.csv"), "ada") == 20

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
        for arguments, said in {
            ("release", "99_nothing", "--out", str(tmp_path)): "there is no assignment",
            ("grade", str(tmp_path / "nowhere")): "there is no folder",
            ("grade", str(tmp_path)): "holds no student/assignment.ipynb",
            ("mark", "--out", str(tmp_path)): "there is no sheet",
            ("release", NAMES[0], "--out", str(tmp_path), "--seed", '"'): "the seed is",
        }.items():
            assert course.main(list(arguments)) == 2
            assert said in capsys.readouterr().err

    @pytest.mark.slow  # grade, mark, grade again: without a kill, above
    def test_grading_that_is_killed_leaves_no_process_and_is_taken_up(self, tmp_path):
        name = NAMES[0]
        slow = changed(name, solutions(name)[0], "while True:\n    pass")
        for who, notebook in {"ada": right(name), "ben": slow}.items():
            (tmp_path / "in" / who).mkdir(parents=True)
            nbformat.write(notebook, tmp_path / "in" / who / f"{name}.ipynb")
        out = tmp_path / "out"
        command = [sys.executable, course.__file__, "grade", tmp_path / "in", "--out", out]
        grader = subprocess.Popen([*command, "--timeout", "300", "--jobs", "1"])
        done = out / "results" / "ada" / f"{name}.json"
        assert _within(120, done.exists)
        us = psutil.Process(grader.pid)
        assert _within(60, lambda: len(us.children(recursive=True)) >= 4)
        family = us.children(recursive=True)  # a worker, its helper, a box's two processes
        grader.kill()
        grader.wait()
        assert psutil.wait_procs(family, timeout=30)[1] == []
        assert grading.rows_in(grading.results(out))[0].student == "ada"


def _within(seconds, condition):
    """Whether a condition comes true in that time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.1)
    return False


class TestOwnNumbers:
    def test_each_student_has_other_numbers_and_is_graded_with_them(self, tmp_path, capsys):
        name = NAMES[0]
        (tmp_path / "class.txt").write_text("Ada Lovelace\nben_12\n\n")
        roster = ["--students", str(tmp_path / "class.txt"), "--seed", "autumn26"]
        assert course.main(["release", name, "--out", str(tmp_path / "out"), *roster]) == 0
        made = [(tmp_path / "out" / who / f"{name}.ipynb").read_text() for who in
                ("Ada Lovelace", "ben_12")]  # fmt: skip
        words = [sources.word_in(text.encode(), "autumn26") for text in made]
        assert words == ["autumn26--Ada-Lovelace", "autumn26--ben_12"]
        assert sources.word_in(made[0].encode(), "autumn27") == "autumn27"
        hers, his = (trial.right_submission(name, word) for word in words)
        (tmp_path / "in").mkdir()
        paths = {}
        for who, notebook in {"Ada Lovelace": hers, "ben_12": his, "cyd": hers}.items():
            paths[who, name] = tmp_path / "in" / f"{who}.ipynb"
            nbformat.write(notebook, paths[who, name])
        found = grading.grade(paths, tmp_path / "graded", seed="autumn26")
        assert [trial.lost(grading.rows_in([result])) for result in found] == [[], [], []]
        assert [result["notes"] for result in found] == [
            [], [], ["this is the copy that was made for Ada-Lovelace"]]  # fmt: skip


class TestAlike:
    CODE = "def f(a, b):\n    " + "\n    ".join(f"a{n} = a + {n} * b" for n in range(9))

    def _result(self, student, code, answer):
        row = grading.Row(student, "02_em", "task-5", 0.0, 4.0, "awaits manual grading", "", answer)
        cell = {"kind": "code", "task": "task-1", "source": code}
        return {"student": student, "assignment": "02_em", "rows": [row], "cells": [cell]}

    def test_renamed_code_and_copied_passages_are_named_in_pairs(self):
        renamed = self.CODE.replace("a", "x") + "  # mine"
        words = "one two three four five six seven eight nine"
        found = duplicates.alike([
            self._result("ada", self.CODE, words),
            self._result("ben", renamed, f"I say: {words}!"),
            self._result("cyd", self.CODE.replace("+", "-"), "something else"),
            self._result("dan", "def (", words.replace("five", "5")),
        ])  # fmt: skip
        assert found == [{"assignment": "02_em", "student": "ada", "other": "ben",
                          "same_code": "task-1", "same_words": 2}]  # fmt: skip

    def test_what_many_hand_in_counts_for_nothing(self):
        class_ = [self._result(f"s{n}", self.CODE, "") for n in range(duplicates.COMMON + 1)]
        assert duplicates.alike(class_) == []
        assert len(duplicates.alike(class_[:2])) == 1


class TestCollect:
    def test_files_are_known_by_the_names_that_learning_platforms_give(self, tmp_path):
        wanted = {
            "ada/02_em.ipynb": ("ada", "02_em"),
            "ben/02_em/02_em.ipynb": ("ben", "02_em"),
            "carol_123_456_02_em (1).ipynb": ("carol_123", "02_em"),
            "dora_LATE_124_457_02_em-2.ipynb": ("dora_124", "02_em"),
            "Eve Ng_77_assignsubmission_file_/02_em (2).ipynb": ("Eve Ng", "02_em"),
            "Fay_78_assignsubmission_file/12_rca.ipynb": ("Fay", "12_rca"),
        }
        for path in [*wanted, "notes.txt", "gus/essay.ipynb", ".hidden/02_em.ipynb"]:
            (tmp_path / path).parent.mkdir(exist_ok=True, parents=True)
            (tmp_path / path).write_text("{}")
        found, remarks = collect.find_submissions(tmp_path)
        assert found == {key: tmp_path / path for path, key in wanted.items()}
        assert [remark.rpartition("/")[2] for remark in remarks] == ["essay.ipynb", "notes.txt"]

    def test_the_newest_of_several_counts_and_this_is_said(self, tmp_path):
        for hours, name in enumerate(["02_em (1).ipynb", "02_em.ipynb"]):
            (tmp_path / "ada").mkdir(exist_ok=True)
            (tmp_path / "ada" / name).write_text("{}")
            os.utime(tmp_path / "ada" / name, (3600 * hours, 3600 * hours))
        found, (remark,) = collect.find_submissions(tmp_path)
        assert found["ada", "02_em"].name == "02_em.ipynb"
        assert "more than once" in remark

    def test_what_nbgrader_collects_came_when_it_was_submitted(self, tmp_path):
        (tmp_path / "ada/02_em").mkdir(parents=True)
        file, note = (tmp_path / "ada/02_em" / name for name in ("02_em.ipynb", "timestamp.txt"))
        file.write_text("{}")
        note.write_text("2026-11-22 23:49:58.500000 UTC\n")
        for saved, came in ((0, 1795391398.5), (2e9, 2e9)):  # setting a date back does not help
            os.utime(file, (saved, saved))
            assert grading.handed_in(file) == came
        note.write_text("yesterday")
        assert grading.handed_in(file) == 2e9
        found, remarks = collect.find_submissions(tmp_path)
        assert (found, remarks) == ({("ada", "02_em"): file}, [])


class TestTables:
    @pytest.fixture
    def out(self, tmp_path):
        tables.set_policy(tmp_path, ["02_em"], "2026-11-05T12:00+00:00", "10 % a day")
        found = [self._result("ada_11", "2026-11-05T11:00+00:00", "ada_11_9_02_em.ipynb"),
                 self._result("=cmd", "2026-11-07T11:00+00:00",
                              "in/Ben Ox_7_assignsubmission_file/02_em.ipynb")]  # fmt: skip
        tables.write_tables(tmp_path, found)
        return tmp_path

    def _result(self, student, when, file):
        row = grading.Row(student, "02_em", "check-1", 10.0, 12.0, "graded")
        return {"student": student, "assignment": "02_em", "rows": [row], "cells": [], "notes": [],
                "handed_in": when, "file": file, "kept_apart": ""}  # fmt: skip

    def test_a_row_a_student_with_what_being_late_costs(self, out):
        found = {row["student"]: row for row in _read(out / "totals.csv")}
        assert {who: row["total"] for who, row in found.items()} == {
            "ada_11": "10.0",
            "'=cmd": "8.0",
        }
        lines = _read(out / "submissions.csv")
        assert [line["days_late"] for line in lines] == ["0", "2"]

    def test_canvas_and_moodle_find_their_students(self, out):
        canvas = _read(out / "canvas.csv")[1]
        assert (canvas["Student"], canvas["ID"], canvas["02_em"]) == ("ada", "11", "10.0")
        moodle = _read(out / "moodle_02_em.csv")[1]
        assert moodle["Identifier"] == "Participant 7"
        assert (moodle["Full name"], moodle["Grade"], moodle["Maximum Grade"]) == (
            "Ben Ox", "8.0", "12.0")  # fmt: skip

    def test_prices_and_dates_have_to_be_understood(self, tmp_path):
        with pytest.raises(ValueError, match="say --late"):
            tables.set_policy(tmp_path, [], None, "a lot")
        with pytest.raises(ValueError, match="say --due"):
            tables.set_policy(tmp_path, [], "soon", None)
        policy = {"late": "2 points a day"}
        assert [tables.after_lateness(5.0, days, policy) for days in (0, 1, 9)] == [5, 3, 0]
