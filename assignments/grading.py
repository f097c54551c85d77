"""Grade submissions with nbgrader: points, open questions for the teacher, and feedback.

A submission is repaired, executed by nbgrader beside all others of its assignment, and read as a
:class:`Row` for each check and open question. What cannot be graded says why, and holds up nobody.
"""

from __future__ import annotations

import csv
import logging
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import nbformat
from nbconvert.preprocessors import CSSHTMLHeaderPreprocessor
from nbformat import NotebookNode
from nbgrader.converters import Autograde, GenerateFeedback
from nbgrader.converters.base import NbGraderException
from nbgrader.preprocessors import ClearHiddenTests, GetGrades, NbGraderPreprocessor
from nbgrader.utils import is_grade
from sources import (
    Course,
    clean_bytes,
    grade_id,
    open_course,
    released,
    repair,
    require_same_seed,
    source,
)
from warm_kernels import warm_kernels

GRADES = ["student", "assignment", "task", "points", "max", "state"]
OPEN = ["student", "assignment", "task", "max", "answer", "points", "comment"]


class Row(NamedTuple):
    """What one check or open question of one submission earned."""

    student: str
    assignment: str
    task: str
    points: float
    max: float
    state: str
    """``graded``, ``awaits manual grading``, or why the notebook could not be graded."""
    message: str = ""
    """What the failed check said."""
    answer: str = ""
    """The text of an open question's answer."""


def grade(
    submissions: dict[tuple[str, str], Path],
    out: Path,
    *,
    seed: str | None = None,
    timeout: int | None = None,
    feedback: bool = True,
) -> list[Row]:
    """Grade submissions and write grades, open questions and feedback into a folder.

    Parameters
    ----------
    submissions : dict
        Path of the notebook for each (student, assignment).
    out : Path
        Gets grades.csv, open_questions.csv, feedback/ and nbgrader's own course/, each made anew.
        Points that a teacher wrote into an earlier open_questions.csv are kept and counted.
    seed : str, default=None
        The word that the student versions were released with.
    timeout : int, default=None
        Seconds after which a cell is interrupted; None: as nbgrader_config.py says.
    feedback : bool, default=True
        Whether to write feedback/.

    Returns
    -------
    list of Row
        By student, then assignment, then in the order of the notebook.
    """
    marks = _read_marks(out / "open_questions.csv")
    for folder in ("course", "feedback"):
        shutil.rmtree(out / folder, ignore_errors=True)
    assignments = sorted({assignment for _, assignment in submissions})
    course = open_course(out / "course", assignments, seed, timeout)
    unreadable = _collect(course, submissions)
    with warm_kernels():
        for name in assignments:
            _convert(course, Autograde, name)
    rows = [row for key in sorted(submissions) for row in _rows(course, *key, unreadable)]
    rows = [_mark(course, row, marks) for row in rows]
    if feedback:
        _write_feedback(course, assignments, out)
    write_csv(out / "grades.csv", GRADES, rows)
    _write_open(out / "open_questions.csv", rows, marks)
    return rows


def _convert(course: Course, converter: type, assignment: str, **options) -> None:
    """Run a converter on all submissions; what fails is seen from what is missing afterwards."""
    try:
        course.run(converter, assignment, **options)
    except NbGraderException as error:
        logging.getLogger("nbgrader").error("%s", error)


def _collect(course: Course, submissions: dict[tuple[str, str], Path]) -> dict:
    """Copy the submissions, repaired, to where nbgrader expects them; return those it cannot."""
    unreadable = {}
    for (student, assignment), path in submissions.items():
        target = course.root / "submitted" / student / assignment / f"{assignment}.ipynb"
        target.parent.mkdir(parents=True)
        try:
            notebook, ours = nbformat.read(path, as_version=4), released(course, assignment)
            require_same_seed(notebook, ours)
            target.write_bytes(clean_bytes(repair(notebook, ours)))
        except Exception as error:  # whatever a student's file holds, the others are graded
            unreadable[student, assignment] = f"not graded: {_in_one_line(error)}"
            shutil.rmtree(target.parent)
    return unreadable


def _in_one_line(error: Exception) -> str:
    kind = "" if type(error) is ValueError else f"{type(error).__name__}: "
    return (kind + " ".join(str(error).split()))[:200]


def _rows(course: Course, student: str, assignment: str, unreadable: dict) -> Iterator[Row]:
    """Read what each check and question of a submission earned."""
    path = course.root / "autograded" / student / assignment / f"{assignment}.ipynb"
    cells = {}
    if path.exists():
        notebook = nbformat.read(path, as_version=4)
        cells = {grade_id(cell): cell for cell in notebook.cells if grade_id(cell)}
    dead = "not graded: the kernel died; see course/nbgrader.log"
    for cell in source(assignment).cells:
        if not is_grade(cell):
            continue
        task, most = grade_id(cell), float(cell.metadata.nbgrader.points)
        if task not in cells:
            reason = unreadable.get((student, assignment), dead)
            yield Row(student, assignment, task, 0.0, most, reason)
            continue
        with course.gradebook() as book:
            mark = book.find_grade(task, assignment, assignment, student)
            waits = mark.needs_manual_grade
            state = "awaits manual grading" if waits else "graded"
            answer = cells[task].source if cell.metadata.nbgrader.solution else ""
            message = "" if answer else _error(cells[task])
            yield Row(student, assignment, task, mark.score, most, state, message, answer)


def _error(cell: NotebookNode) -> str:
    """Return what the first error of a cell said, in one line."""
    errors = [output for output in cell.outputs if output.output_type == "error"]
    return " ".join(f"{errors[0].ename}: {errors[0].evalue}".split()) if errors else ""


def by_student(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Group rows, in order."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.student, []).append(row)
    return groups


# ----------------------------------------------------------------------- open questions


def _read_marks(path: Path) -> dict[tuple[str, str, str], dict]:
    """Read the points that a teacher gave for the answers to open questions."""
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf8") as file:
        rows = list(csv.DictReader(file))
    marks = {}
    for number, row in enumerate(rows, start=2):
        if row["points"].strip():
            row["points"] = _points(row, f"{path}, line {number}")
            marks[row["student"], row["assignment"], row["task"]] = row
    return marks


def _points(row: dict, place: str) -> float:
    try:
        points = float(row["points"].replace(",", "."))
    except ValueError:
        raise ValueError(f"{place}: points are {row['points']!r}, which is no number.") from None
    if not 0 <= points <= float(row["max"]):
        raise ValueError(f"{place}: {points:g} points, but there are 0 to {row['max']}.")
    return points


def _mark(course: Course, row: Row, marks: dict[tuple[str, str, str], dict]) -> Row:
    """Give an open question the points that the teacher wrote down for this very answer."""
    mark = marks.get((row.student, row.assignment, row.task))
    if row.state != "awaits manual grading" or not mark or mark["answer"] != row.answer:
        return row
    with course.gradebook() as book:
        where = (row.task, row.assignment, row.assignment, row.student)
        grade, comment = book.find_grade(*where), book.find_comment(*where)
        grade.manual_score, grade.needs_manual_grade = mark["points"], False
        comment.manual_comment = mark["comment"] or None
        book.db.commit()
    return row._replace(points=mark["points"], state="graded")


def _write_open(path: Path, rows: list[Row], marks: dict[tuple[str, str, str], dict]) -> None:
    """Write the answers to open questions, with room for points and a comment."""
    lines = []
    for row in rows:
        if row.answer:
            done = row.state == "graded" and marks.get((row.student, row.assignment, row.task))
            given = {key: done[key] for key in ("points", "comment")} if done else {"points": ""}
            lines.append(row._asdict() | {"comment": ""} | given)
    write_csv(path, OPEN, lines)


def write_csv(path: Path, columns: list[str], rows: Iterable) -> None:
    """Write rows, named tuples or dictionaries, as a table of these columns."""
    with path.open("w", newline="", encoding="utf8") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(row if isinstance(row, dict) else row._asdict() for row in rows)


# ----------------------------------------------------------------------------- feedback


class BriefErrors(NbGraderPreprocessor):
    """Show what a failed check said, without the lines of the check itself."""

    def preprocess_cell(self, cell, resources, index):
        """Shorten the tracebacks of a graded cell to the message."""
        if cell.cell_type == "code" and is_grade(cell):
            for output in cell.outputs:
                if output.output_type == "error":
                    output.traceback = [f"{output.ename}: {output.evalue}"]
        return cell, resources


FEEDBACK = [GetGrades, ClearHiddenTests, BriefErrors, CSSHTMLHeaderPreprocessor]


def _write_feedback(course: Course, assignments: list[str], out: Path) -> None:
    """Write a page for each graded submission: feedback/student/assignment/assignment.html."""
    for name in assignments:
        _convert(course, GenerateFeedback, name, preprocessors=FEEDBACK)
    if (course.root / "feedback").exists():
        shutil.move(course.root / "feedback", out / "feedback")
