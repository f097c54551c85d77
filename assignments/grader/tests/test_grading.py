"""Test a teacher's round: release, collect, grade, mark by hand, and grade again."""

import csv
import datetime
import io
import json
import os
import shutil
import subprocess
import sys
import time
import zipfile

import nbformat
import psutil
import pytest
from handed_in import as_kept, at, changed, right, solutions, written
from markapart import (
    cli,
    collect,
    examine,
    feedback,
    grading,
    marks,
    policy,
    roster,
    similar,
    sources,
    tables,
    trial,
)

NAMES = sources.names()


@pytest.fixture(scope="module")
def classroom(boxes, tmp_path_factory):
    """Write five submissions, with two forms of file names, a crash and an invalid notebook."""
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
        "ada/diary.ipynb": nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("I")]),
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
        assert cli.main(command) == 0
        printed, grades = capsys.readouterr(), _read(out / "grades.csv")
        questions = _read(out / "open_questions.csv")
        hers = [row for row in questions if row["student"] == "ada"]
        most = sum(float(row["max"]) for row in hers)
        assert [row["student"] for row in questions] == ["ada", "ada", "ben", "ben", "cyd", "cyd"]
        assert _total(grades, "ada") == 20 - most
        assert 0 < _total(grades, "ben") < 20 - most
        assert 0 < _total(grades, "cyd") < 20 - most
        assert "diary.ipynb" in printed.out
        assert "5 of 5" in printed.err
        lines = {line["file"]: line for line in _read(out / "submissions.csv")}
        diary = lines[str(classroom / "ada" / "diary.ipynb")]
        assert (diary["student"], diary["state"][:14]) == ("ada", "not recognised")
        states = {row["student"]: row["state"] for row in grades if row["task"].startswith("check")}
        assert "NotJSONError: the file is no notebook" in states["dan"]
        assert 'made with the seed "spring", graded with "autumn"; see --seed' in states["eve"]
        page = (out / "feedback" / "ben" / name / f"{name}.html").read_text(encoding="utf8")
        assert sources.mistakes(name)[0].says in page

        # The teacher types points into the sheet; no notebook runs again.
        for row in hers:
            row |= {"points": row["max"], "comment": "Well <b>argued</b>."}
        marks.write_table(out / "open_questions.csv", marks.COLUMNS, questions)
        before = {path: path.stat().st_mtime_ns for path in out.glob("results/*/*")}
        assert cli.main(["mark", "--out", str(out)]) == 0
        assert "2 marks entered; 4 answers wait." in capsys.readouterr().out
        assert _total(_read(out / "grades.csv"), "ada") == 20
        page = (out / "feedback" / "ada" / name / f"{name}.html").read_text(encoding="utf8")
        assert "Well &lt;b&gt;argued&lt;/b&gt;." in page

        # Grading again runs only changed notebooks, and enters points typed since then.
        questions[2] |= {"points": "1"}
        marks.write_table(out / "open_questions.csv", marks.COLUMNS, questions)
        assert cli.main(command) == 0
        assert "5 submissions have not changed" in capsys.readouterr().err
        assert {path: path.stat().st_mtime_ns for path in out.glob("results/*/*")} == before
        assert _total(_read(out / "grades.csv"), "ada") == 20
        (total,) = [row for row in _read(out / "totals.csv") if row["student"] == "ada"]
        assert (total[name], total["total"], total["of"]) == ("20.0", "20.0", "20.0")

        questions[0] |= {"points": "99"}
        marks.write_table(out / "open_questions.csv", marks.COLUMNS, questions)
        assert cli.main(["mark", "--out", str(out)]) == 1
        assert "99 points, but there are 0 to" in capsys.readouterr().err
        assert _total(_read(out / "grades.csv"), "ada") == 20

    def test_requested_files_must_exist(self, tmp_path, capsys):
        for arguments, expected in {
            ("release", "99_nothing", "--out", str(tmp_path)): "there is no assignment",
            ("grade", str(tmp_path / "nowhere")): "there is no folder",
            ("grade", str(tmp_path)): "holds no student/assignment.ipynb",
            ("mark", "--out", str(tmp_path)): "there is no sheet",
            ("release", NAMES[0], "--out", str(tmp_path), "--seed", '"'): "the seed is",
        }.items():
            assert cli.main(list(arguments)) == 2
            assert expected in capsys.readouterr().err

    @pytest.mark.slow  # The test above covers grading twice without a kill.
    def test_grading_that_is_killed_leaves_no_process_and_is_taken_up(self, boxes, tmp_path):
        name = NAMES[0]
        slow = changed(name, solutions(name)[0], "while True:\n    pass")
        written(tmp_path, name, {"ada": right(name), "ben": slow})
        out = tmp_path / "out"
        command = [sys.executable, "-m", "markapart.cli", "grade", tmp_path / "in", "--out", out]
        grader = subprocess.Popen([*command, "--timeout", "300", "--jobs", "1"])
        done = out / "results" / "ada" / f"{name}.json"
        assert _within(300, lambda: done.exists() or grader.poll() is not None)
        assert done.exists()
        us = psutil.Process(grader.pid)
        assert _within(60, lambda: len(us.children(recursive=True)) >= 4)
        family = us.children(recursive=True)  # A worker, a box, and the processes in it.
        grader.kill()
        grader.wait()
        assert psutil.wait_procs(family, timeout=30)[1] == []
        assert grading.rows_in(grading.read_results(out))[0].student == "ada"


def _within(seconds, condition):
    """Return whether a condition becomes true within the given time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.1)
    return False


class TestOwnNumbers:
    def test_each_student_has_other_numbers_and_is_graded_with_them(self, boxes, tmp_path):
        name = NAMES[0]
        (tmp_path / "class.txt").write_text("Ada Lovelace\nben_12\n\n")
        roster = ["--students", str(tmp_path / "class.txt"), "--seed", "autumn26"]
        assert cli.main(["release", name, "--out", str(tmp_path / "out"), *roster]) == 0
        made = [(tmp_path / "out" / who / f"{name}.ipynb").read_text() for who in
                ("Ada Lovelace", "ben_12")]  # fmt: skip
        words = [sources.seed_of_file(text.encode(), "autumn26") for text in made]
        assert words == [
            sources.seed_of_copy("autumn26", who) for who in ("Ada Lovelace", "ben_12")
        ]
        assert words[0].startswith("autumn26--Ada-Lovelace-")
        assert sources.seed_of_file(made[0].encode(), "autumn27") == "autumn27"
        hers, his, own = (trial.right_submission(name, word) for word in (*words, "autumn26--x"))
        handed_in = {"lovelaceada_7": hers, "Ben_12": his, "cyd": hers, "eve": own}
        paths = written(tmp_path, name, handed_in)
        found = grading.grade(paths, tmp_path / "graded", seed="autumn26",
                              students=["Ada Lovelace", "ben_12"])  # fmt: skip
        by_name = {result["student"]: result for result in found}
        eve = by_name.pop("eve")
        assert "the seed of no student's copy; see --students" in eve["rows"][0]["state"]
        assert [trial.lost_rows(grading.rows_in([one])) for one in by_name.values()] == [[], [], []]
        assert {who: result["notes"] for who, result in by_name.items()} == {
            "lovelaceada_7": [], "Ben_12": [], "cyd": ["this copy was made for Ada Lovelace"],
        }  # fmt: skip

    def test_names_that_look_alike_in_letters_without_accents_have_other_numbers(self):
        names = ["王伟", "李娜", "Иван Петров", "José", "Josè", "Jose", "-"]
        assert len({sources.seed_of_copy("autumn26", name) for name in names}) == len(names)
        composed, decomposed = "Jos\u00e9", "Jose\u0301"
        assert sources.seed_of_copy(None, composed) == sources.seed_of_copy(None, decomposed)
        for name in names:
            sources.source(
                NAMES[0], sources.seed_of_copy("autumn26", name)
            )  # Must be a valid seed.

    def test_a_name_stays_below_the_folder(self, tmp_path, capsys):
        (tmp_path / "class.txt").write_text("../../etc\n")
        roster = ["--students", str(tmp_path / "class.txt"), "--out", str(tmp_path / "out")]
        assert cli.main(["release", NAMES[0], *roster]) == 2
        assert "cannot be that of a folder" in capsys.readouterr().err


class TestLimits:
    """Test that no submission stops or slows the grading of others, or costs them points."""

    def test_a_broken_submission_does_not_stop_the_others(self, boxes, tmp_path):
        name = NAMES[0]
        task, question = solutions(name)[0], sources.grade_id(_question(name))
        handed_in = {
            "deep": changed(name, task, "x = " + "+".join(["1"] * 1_500) + "(" * 300 + ")" * 300),
            "long": changed(name, question, "half a pair: \ud800 " + "word " * 40_000),
            "prints": changed(name, task, "print('\\ud800')\nraise ValueError('\\ud800')"),
            "large": changed(name, task, "\n" * 40_000 + "# " + "x" * 60_000),
            "zoe": right(name),
        }
        paths, out = written(tmp_path, name, handed_in), tmp_path / "out"
        began = time.process_time()
        found = {one["student"]: one for one in grading.grade(paths, out, timeout=6, jobs=2)}
        grading.write_reports(out)
        assert grading.enter_marks(out, [out / "open_questions.csv"]) == ([], [])
        assert (
            time.process_time() - began < 60
        )  # Time of this process, which runs no code of students.
        assert {line["student"] for line in _read(out / "totals.csv")} == set(handed_in)
        for who in ("zoe", "long"):
            assert trial.lost_rows(grading.rows_in([found[who]])) == []
        assert "more than 30,000 characters" in " ".join(found["long"]["notes"])
        assert "more than 50,000 characters" in " ".join(found["large"]["notes"])

    def test_a_crashing_submission_fails_alone(self, boxes, tmp_path, monkeypatch):
        paths = written(tmp_path, NAMES[0], dict.fromkeys(["ada", "ben"], right(NAMES[0])))
        ours = grading.examine
        monkeypatch.setattr(grading, "examine", lambda student, *args, **options: (
            os._exit(1) if student == "ben" else ours(student, *args, **options)))  # fmt: skip
        found = {one["student"]: one for one in grading.grade(paths, tmp_path / "out", jobs=2)}
        assert "the grader ended" in found["ben"]["rows"][0]["state"]
        assert trial.lost_rows(grading.rows_in([found["ada"]])) == []


def _question(name):
    """Return the first open question of an assignment."""
    return next(cell for cell in sources.read_released(name).cells
                if sources.grade_id(cell) and cell.cell_type == "markdown")  # fmt: skip


class TestAnswers:
    """Test that answers are found in any cell, with their formulas and pictures."""

    PIXEL = ("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9"
             "awAAAABJRU5ErkJggg==")  # fmt: skip

    @pytest.mark.parametrize("place", ["own cell", "question", "code"])
    def test_a_misplaced_answer_is_found_and_noted(self, place):
        name, ours = NAMES[0], sources.read_released(NAMES[0])
        question = _question(name)
        notebook = changed(name, sources.grade_id(question), question.source)
        n = at(notebook, sources.grade_id(question))
        if place == "question":
            notebook.cells[n - 1].source += "\n\nBecause of *A*."
        else:
            new = nbformat.v4.new_code_cell if place == "code" else nbformat.v4.new_markdown_cell
            notebook.cells.insert(n + 1, new("Because of *A*."))
        repaired = sources.repair(notebook, ours)
        (note,) = sources.collect_misplaced_answers(repaired, ours)
        assert "answered in another cell" in note
        assert repaired.cells[at(repaired, sources.grade_id(question))].source == "Because of *A*."

    def test_formulas_and_pictures_are_drawn_and_html_does_nothing(self):
        text = (
            "**Since** $D^2 = 4$ and $\\nonsense{$, ![me](attachment:a.png)"
            '<script>alert(1)</script><img src=x onerror="alert(1)"> DRAWING99HERE'
        )
        shown = feedback.render(text, {"a.png": {"image/png": self.PIXEL}})
        assert "<strong>Since</strong>" in shown
        assert shown.count("data:image/svg+xml;base64,") == 1
        assert f"data:image/png;base64,{self.PIXEL}" in shown
        assert "<script" not in shown
        assert "<img src=x" not in shown
        assert "<p>" in shown

    @pytest.mark.parametrize("pasted", ["jupyter", "colab", "tag"])
    def test_a_picture_in_the_answers_own_cell_reaches_teacher_and_student(self, tmp_path, pasted):
        name, task = NAMES[0], sources.grade_id(_question(NAMES[0]))
        data = f"data:image/png;base64,{self.PIXEL * 400}"
        shown = {"jupyter": "![p.png](attachment:p.png)", "colab": f"![]({data})",
                 "tag": f'<img width="9" src="{data}">'}[pasted]  # fmt: skip
        notebook = changed(name, task, f"Look: {shown} so it is 1:9.")
        if pasted == "jupyter":
            cell = notebook.cells[at(notebook, task)]
            cell["attachments"] = {"p.png": {"image/png": self.PIXEL * 400}}
        (path,) = written(tmp_path, name, {"ada": notebook}).values()
        repaired, notes = grading._read_and_repair(path, name, {"seed": None, "owner": "ada"})
        cell = repaired.cells[at(repaired, task)]
        assert (notes, len(cell.source) < 100) == ([], True)
        row = examine.Row("ada", name, task, 0.0, 4.0, "awaits manual grading", "", cell.source)
        kept = [{"kind": "markdown", "task": task, "source": cell.source,
                 "attachments": cell.attachments}]  # fmt: skip
        result = as_kept("ada", name, [row], cells=kept)
        for page in (feedback.answers_page([result], {}), feedback.feedback_page(result, {})):
            assert page.count('src="data:image/png;base64,') == 1
            assert "so it is 1:9." in page

    def test_all_answers_stand_on_one_page_without_names(self, tmp_path):
        row = examine.Row("ada", NAMES[0], sources.grade_id(_question(NAMES[0])), 0.0, 4.0,
                          "awaits manual grading", "", "Because of *A*.")  # fmt: skip
        page = feedback.answers_page([as_kept("ada", NAMES[0], [row])], {})
        assert "<em>A</em>" in page
        assert "ada" not in page.partition("</style>")[2]
        assert f'data-key="{marks.key_of(row)}"' in page
        (tmp_path / "marks.csv").write_text(
            f'"key","points","comment"\n"{marks.key_of(row)}","3",""'
        )
        changes, problems = marks.enter_sheet(tmp_path, [row], tmp_path / "marks.csv")
        assert (len(changes), problems) == (1, [])


def test_code_is_written_for_tools_that_look_for_copies(tmp_path):
    cells = [{"task": "task-1", "kind": "code", "source": "x = 1"},
             {"task": "check-1", "kind": "code", "source": "assert x"},
             {"task": None, "kind": "markdown", "source": "words"}]  # fmt: skip
    handed_in = [
        {"student": who, "assignment": NAMES[0], "cells": cells} for who in ("ada", "model")
    ]
    similar.write_similar(tmp_path, handed_in)
    assert (tmp_path / "similar" / NAMES[0] / "students/model" / f"{NAMES[0]}.py").exists()
    shutil.rmtree(tmp_path / "similar" / NAMES[0] / "students/model")
    found = {path.parent.name: path.read_text() for path in tmp_path.rglob("*.py")}
    assert found["ada"] == "x = 1\n"
    assert "### BEGIN SOLUTION" in found["model"]
    assert "This task is still yours" in found["base"]


class TestCollect:
    def test_files_are_known_by_the_names_that_learning_platforms_give(self, tmp_path):
        wanted = {
            "ada/02_em.ipynb": ("ada", "02_em"),
            "ben/02_em/02_em.ipynb": ("ben", "02_em"),
            "carol_123_456_02_em (1).ipynb": ("carol_123", "02_em"),
            "dora_LATE_124_457_02_em-2.ipynb": ("dora_124", "02_em"),
            "LATE_anon_q9_459_02_em.ipynb": ("anon_q9", "02_em"),
            "Eve Ng_77_assignsubmission_file_/02_em (2).ipynb": ("Eve Ng_77", "02_em"),
            "Participant_555_assignsubmission_file/12_rca.ipynb": ("Participant_555", "12_rca"),
            "Fay_78_assignsubmission_file_12_rca.ipynb": ("Fay_78", "12_rca"),
            "gus/my homework.ipynb": ("gus", NAMES[0]),
        }
        for path in [*wanted, "notes.txt", "gus/essay.ipynb", ".hidden/02_em.ipynb"]:
            (tmp_path / path).parent.mkdir(exist_ok=True, parents=True)
            (tmp_path / path).write_text("{}")
        (tmp_path / "gus/my homework.ipynb").write_text(nbformat.writes(right(NAMES[0])))
        (tmp_path / "gus/02_em.ipynb").symlink_to(tmp_path / "notes.txt")
        found, remarks, others = collect.find_submissions(tmp_path)
        assert found == {key: tmp_path / path for path, key in wanted.items()}
        assert remarks == {}
        assert [(line["student"], line["file"].rpartition("/")[2]) for line in others] == [
            ("gus", "02_em.ipynb"), ("gus", "essay.ipynb"), ("", "notes.txt")]  # fmt: skip
        late = [path for path in wanted if collect.read_path_of_unknown_depth(tmp_path / path).late]
        assert late == ["dora_LATE_124_457_02_em-2.ipynb", "LATE_anon_q9_459_02_em.ipynb"]

    def test_a_notebook_is_known_by_its_checks_in_whatever_file_it_comes(self, tmp_path):
        untitled = right("12_rca")
        del untitled.cells[0]
        text = nbformat.writes(untitled)
        for who, file in {"ada": "mine.ipynb", "ben": "12_rca.ipynb.txt", "cyd": "x.json"}.items():
            (tmp_path / who).mkdir()
            (tmp_path / who / file).write_text(text, encoding="utf-8-sig")
        (tmp_path / "dan").mkdir()
        with zipfile.ZipFile(tmp_path / "dan" / "homework.zip", "w") as archive:
            archive.writestr("12_rca/12_rca.ipynb", text)
        (tmp_path / "eve").mkdir()
        for cell in untitled.cells[4:]:
            cell.metadata, cell["id"] = {}, "lost"
        (tmp_path / "eve" / "no.ipynb").write_text(json.dumps(untitled))
        found, _, others = collect.find_submissions(tmp_path)
        assert set(found) == {(who, "12_rca") for who in ("ada", "ben", "cyd", "dan")}
        assert [line["student"] for line in others] == ["eve"]
        for (who, name), path in found.items():
            notebook, notes = grading._read_and_repair(path, name, {"seed": None, "owner": who})
            assert notes == []
            assert len(notebook.cells) == len(untitled.cells)

    def test_a_broken_archive_stops_nobody(self, tmp_path):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("12_rca.ipynb", nbformat.writes(right("12_rca")))
        for who, broken in {"ada": packed.getvalue().replace(b"whiten", b"WHITEN"),
                            "ben": b"PK\x05\x06" + b"\0" * 18}.items():  # fmt: skip
            (tmp_path / who).mkdir()
            (tmp_path / who / "12_rca.ipynb").write_bytes(broken)
        found, _, _ = collect.find_submissions(tmp_path)
        assert len(found) == 2
        for path in found.values():
            assert collect.read_notebook_bytes(path) == b""
            with pytest.raises(ValueError, match="the file is no notebook"):
                grading._read_and_repair(path, "12_rca", {"seed": None, "owner": "ada"})

    def test_the_newest_of_several_submissions_counts(self, tmp_path):
        for hours, name in enumerate(["02_em (1).ipynb", "02_em.ipynb"]):
            (tmp_path / "ada").mkdir(exist_ok=True)
            (tmp_path / "ada" / name).write_text("{}")
            os.utime(tmp_path / "ada" / name, (3600 * hours, 3600 * hours))
        found, remarks, _ = collect.find_submissions(tmp_path)
        assert found["ada", "02_em"].name == "02_em.ipynb"
        assert "more than once" in remarks["ada", "02_em"]

    def test_the_time_of_submission_comes_from_the_platform(self, tmp_path):
        (tmp_path / "ada/02_em").mkdir(parents=True)
        file, note = (tmp_path / "ada/02_em" / name for name in ("02_em.ipynb", "timestamp.txt"))
        file.write_text("{}")
        assert grading.hour_of_submission(file) == ""
        note.write_text("yesterday")
        assert grading.hour_of_submission(file) == ""
        note.write_text("2026-11-22 23:49:58.500000 UTC\n")
        came = datetime.datetime.fromisoformat(grading.hour_of_submission(file))
        assert came == datetime.datetime(2026, 11, 22, 23, 49, tzinfo=datetime.UTC)
        found, remarks, others = collect.find_submissions(tmp_path)
        assert (found, remarks, others) == ({("ada", "02_em"): file}, {}, [])


class TestTables:
    DUE = "2026-11-05T12:00+00:00"

    @pytest.fixture
    def out(self, tmp_path):
        policy.set_policy(tmp_path, ["02_em"], self.DUE, "10 % a day")
        self.write(tmp_path, self.results(tmp_path))
        return tmp_path

    def write(self, out, results):
        lines, problems = tables.build_lines(out, results)
        tables.write_tables(out, results, lines)
        return problems

    def results(self, out):
        found = [
            self._result("ada_11", "2026-11-05T11:00+00:00", "ada_11_9_02_em.ipynb", "canvas"),
            self._result("eve_12", "", "eve_LATE_12_8_02_em.ipynb", "canvas", late=True),
            self._result("=cmd", "2026-11-07T11:00+00:00", "in/=cmd/02_em.ipynb"),
            self._result("Ben Ox_7", "", "in/Ben Ox_7_assignsubmission_file/02_em.ipynb", "moodle"),
        ]
        for result in found:
            marks.write_whole(
                feedback.feedback_path(out / "feedback", result["student"], "02_em"), "x"
            )
        return found

    def _result(self, student, when, file, platform="", name="02_em", late=False):
        row = grading.Row(student, name, "check-1", 10.0, 12.0, "graded")
        return as_kept(
            student, name, [row], handed_in=when, file=file, platform=platform, late=late
        )

    def test_the_table_has_a_row_per_student_with_lateness_penalty(self, out):
        found = {row["student"]: row for row in _read(out / "totals.csv")}
        assert {who: row["total"] for who, row in found.items()} == {
            "ada_11": "10.0", "eve_12": "9.0", "'=cmd": "8.0", "Ben Ox": "10.0",
        }  # fmt: skip
        lines = _read(out / "submissions.csv")
        assert [line["days_late"] for line in lines] == ["0", "1", "2", "0"]

    def test_a_teacher_enters_hours_and_extensions_and_they_stay(self, out, tmp_path):
        lines = _read(out / "hours.csv")
        assert [line["platform_says"][:10] for line in lines] == ["2026-11-05", "late",
                                                                  "2026-11-07", ""]  # fmt: skip
        lines[1]["handed_in"] = "2026-11-08T11:00+00:00"  # Three days late.
        lines[2]["due"] = "2026-11-06T12:00+00:00"  # Extended by one day.
        lines[3]["handed_in"] = "soon"
        marks.write_table(out / "hours.csv", policy.HOURS, lines)
        for _ in range(2):
            (problem,) = self.write(out, self.results(out))
            assert "Ben Ox_7, 02_em: handed_in is 'soon'" in problem
        days = [line["days_late"] for line in _read(out / "submissions.csv")]
        assert days == ["0", "3", "1", "0"]
        assert _read(out / "hours.csv")[3]["handed_in"] == "soon"

    # What the importers ask for, in their own code: Canvas' GradebookImporter wants these columns
    # in this order, and takes a row "Points Possible"; Moodle's assignfeedback_offline's
    # grade_importer returns false without any of its three.
    CANVAS_WANTS = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "02_em"]
    MOODLE_WANTS = {"Identifier", "Grade", "Last modified (grade)"}

    def test_canvas_and_moodle_find_their_students_and_their_feedback(self, out):
        most, canvas, *_ = _read(out / "canvas.csv")
        assert list(most) == self.CANVAS_WANTS
        assert (most["Student"].strip(), most["02_em"]) == ("Points Possible", "12.0")
        assert (canvas["Student"], canvas["ID"], canvas["02_em"]) == ("ada", "11", "10.0")
        moodle = _read(out / "moodle_02_em.csv")[3]
        assert set(moodle) >= self.MOODLE_WANTS
        assert moodle["Identifier"] == "Participant 7"
        assert (moodle["Full name"], moodle["Grade"], moodle["Maximum Grade"]) == (
            "Ben Ox", "10.0", "12.0")  # fmt: skip
        packed = {kind: zipfile.ZipFile(out / f"feedback_{kind}_02_em.zip").namelist()
                  for kind in ("moodle", "canvas")}  # fmt: skip
        assert packed == {
            "moodle": ["Ben Ox_7_assignsubmission_file/02_em.html"],
            "canvas": ["ada_11_9_02_em.html", "eve_LATE_12_8_02_em.html"],
        }

    def test_moodle_students_of_equal_name_stay_separate(self, tmp_path):
        def of(student, name):
            return self._result(student, "", "", "moodle", name)

        found = [of("Anna_111", "02_em"), of("Anna_222", "02_em"), of("Ben_1", "02_em"),
                 of("Ben_9", "12_rca"), of("Participant_5", "02_em"),
                 of("Participant_6", "02_em")]  # fmt: skip
        for result in found:
            page = feedback.feedback_path(
                tmp_path / "feedback", result["student"], result["assignment"]
            )
            marks.write_whole(page, "x")
        self.write(tmp_path, found)
        assert {row["student"]: row["total"] for row in _read(tmp_path / "totals.csv")} == {
            "Anna_111": "10.0", "Anna_222": "10.0", "Ben": "20.0", "Participant_5": "10.0",
            "Participant_6": "10.0",
        }  # fmt: skip

    def test_invalid_penalties_and_dates_are_refused(self, tmp_path):
        with pytest.raises(ValueError, match="say --late"):
            policy.set_policy(tmp_path, [], None, "a lot")
        with pytest.raises(ValueError, match="say --due"):
            policy.set_policy(tmp_path, [], "soon", None)
        with pytest.raises(ValueError, match="1 or more"):
            policy.set_policy(tmp_path, [], None, None, 0)
        late = {"late": "2 points a day"}
        assert [policy.deduct(5.0, days, late) for days in (0, 1, 9)] == [5, 3, 0]

    def test_the_lateness_penalty_has_grace_and_a_cap(self):
        late = {"late": "10 % a day, at most 30 %, after 2 hours"}
        assert [policy.deduct(10.0, days, late) for days in (1, 3, 9)] == [9, 7, 7]
        came = ["2026-11-05T13:59+00:00", "2026-11-05T14:01+00:00", "2026-11-06T14:01+00:00"]
        assert [policy.days_late(one, self.DUE, False, late) for one in came] == [0, 1, 2]

    def test_an_excuse_an_adjustment_and_lateness_are_on_the_students_page(self, out):
        lines = _read(out / "hours.csv")
        lines[0] |= {"adjust": "-4", "reason": "Copied from a neighbour."}
        lines[1]["excused"] = "x"
        lines[3]["adjust"] = "2"
        marks.write_table(out / "hours.csv", policy.HOURS, lines)
        results = self.results(out)
        found, (problem,) = tables.build_lines(out, results)
        assert "adjusted without a reason" in problem
        message = [line["says"] for line in found]
        assert message == [
            "Changed by -4 to 6 points: Copied from a neighbour.",
            "Excused: this assignment does not count for you.",
            "2 days late: 8 of your 10 points count.", "",
        ]  # fmt: skip
        assert message[2] in feedback.feedback_page(results[2], {}, message[2])
        tables.write_tables(out, results, found)
        totals = {row["student"]: row for row in _read(out / "totals.csv")}
        assert (totals["eve_12"]["02_em"], totals["eve_12"]["of"]) == ("excused", "0")
        assert totals["ada_11"]["total"] == "6.0"

    def test_checks_have_titles_and_a_link_to_the_section_of_the_book(self, out):
        assert feedback.check_title("12_rca", "check-3-rank") == (
            "directions in which no letter varies")  # fmt: skip
        titles = [feedback.check_title(name, sources.grade_id(cell)) for name in NAMES
                  for cell in sources.source(name).cells
                  if (sources.grade_id(cell) or "").startswith("check-")]  # fmt: skip
        assert [title for title in titles if title.startswith("check-")] == []
        policy.set_policy(out, [], None, None, book="https://example.org/book/")
        result = self.results(out)[0]
        result["rows"] = [result["rows"][0]._replace(task="check-2-sure")]
        feedback.write_pages(out, [result], {}, [], policy.load_policy(out)["book"])
        page = feedback.feedback_path(out / "feedback", "ada_11", "02_em").read_text(
            encoding="utf8"
        )
        assert 'href="https://example.org/book/02_em.html#the-m-step">The M-step</a>' in page
        assert "six coins of which we are sure" in page
        result["rows"] = [result["rows"][0]._replace(points=12.0)]
        assert "02_em.html" not in feedback.feedback_page(
            result, {}, "", "https://example.org/book"
        )

    def test_the_best_of_several_assignments_count(self, tmp_path):
        results = [self._result("ada", "", "", name=name) for name in NAMES[:4]]
        for n, result in enumerate(results):
            result["rows"] = [result["rows"][0]._replace(points=3.0 * n)]
        results.append(self._result("ben", "", "", name=NAMES[0]))
        policy.set_policy(tmp_path, [], None, None, 2)
        self.write(tmp_path, results)
        totals = {
            row["student"]: (row["total"], row["of"]) for row in _read(tmp_path / "totals.csv")
        }
        assert totals == {"ada": ("15.0", "24.0"), "ben": ("10.0", "24.0")}

    def test_moodles_worksheet_fills_hours_and_those_who_handed_in_nothing(self, out):
        (out / "sheet.csv").write_text(
            "Identifier,Full name,Status,Grade,Last modified (submission),Last modified (grade)\n"
            'Participant 7,Ben Ox,Submitted,,"Saturday, 7 November 2026, 11:00 AM",'
            '"Sunday, 8 November 2026"\nParticipant 8,Gus Fry,No submission,,-,-\n'
        )
        roster.remember_roster(out, ["02_em"], [str(out / "sheet.csv")])
        self.write(out, self.results(out))
        lines = {line["student"]: line for line in _read(out / "submissions.csv")}
        assert lines["Ben Ox_7"]["days_late"] == "2"
        assert (lines["Gus Fry_8"]["state"], lines["Gus Fry_8"]["points"]) == (tables.ABSENT, "0.0")
        moodle = {row["Identifier"]: row for row in _read(out / "moodle_02_em.csv")}
        assert moodle["Participant 7"]["Last modified (grade)"] == "Sunday, 8 November 2026"
        assert moodle["Participant 8"]["Grade"] == "0.0"
        assert {row["student"] for row in _read(out / "totals.csv")} >= {"Gus Fry", "Ben Ox"}

    def test_canvas_gradebook_fills_those_who_handed_in_nothing(self, out):
        (out / "gradebook.csv").write_text(
            "Student,ID,SIS User ID,SIS Login ID,Section,02_em (99)\n    Points Possible,,,,,20\n"
            '"Byron, Ada",11,,,,\n"Ng, Mei-Li",31,,,,\n'
        )
        roster.remember_roster(out, ["02_em"], [str(out / "gradebook.csv")])
        self.write(out, self.results(out))
        new = {row["ID"]: row for row in _read(out / "canvas.csv")}
        assert (new["31"]["Student"], new["31"]["02_em"]) == ("ngmeili", "0.0")
        assert new["11"]["02_em"] == "10.0"
        (out / "other.csv").write_text("a,b\n1,2\n")
        with pytest.raises(ValueError, match="neither Moodle's grading worksheet"):
            roster.read_worksheet(out / "other.csv")
        with pytest.raises(ValueError, match="graded here"):
            roster.remember_roster(out, ["02_em"], ["03_practice=x.csv"])
