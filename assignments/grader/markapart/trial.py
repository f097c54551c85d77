"""Test the checks of an assignment with a right, an untouched and several wrong submissions.

Each submission in mistakes/ must lose exactly the points of the checks that it names. The right
submission must lose no points, and the untouched student version must earn none.
"""

from __future__ import annotations

import re
import tempfile
import textwrap
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from markapart.examine import Row, tally
from markapart.grading import by_student, count_processors, grade, rows_in
from markapart.sources import Mistake, grade_id, mistakes, source, student_versions

SOLUTION = re.compile(r"^( *)### BEGIN SOLUTION\n(.*?)^ *### END SOLUTION\n?", re.M | re.S)
MARKERS = re.compile(r"^ *### (BEGIN|END) SOLUTION\n?", re.M)


def right_submission(name: str, seed: str | None = None) -> NotebookNode:
    """Return the right submission: the notebook with all solutions."""
    solved = source(name, seed)
    for cell in solved.cells:
        cell.source = MARKERS.sub("", cell.source)
    return solved


def wrong_submission(name: str, mistake: Mistake, seed: str | None = None) -> NotebookNode:
    """Return the right submission with the code of a mistake in place of one solution."""
    (original,) = [cell for cell in source(name, seed).cells if grade_id(cell) == mistake.cell]
    submission = right_submission(name, seed)

    def insert_mistake(match: re.Match) -> str:
        return textwrap.indent(textwrap.dedent(mistake.code).strip("\n"), match[1]) + "\n"

    # Leave out cells without points, which take most of the time.
    submission.cells = [cell for cell in submission.cells if _can_change_points(cell)]
    wrong, count = SOLUTION.subn(insert_mistake, original.source)
    if count != 1:
        raise ValueError(f"{name}: cell {mistake.cell} has {count} solution regions, not one.")
    (target,) = [cell for cell in submission.cells if grade_id(cell) == mistake.cell]
    target.source = wrong
    return submission


def _can_change_points(cell: NotebookNode) -> bool:
    return cell.cell_type == "markdown" or grade_id(cell) is not None


def trial_submissions(name: str, seed: str | None = None) -> dict[str, NotebookNode]:
    """Return {name: notebook} of the right, the untouched and all wrong submissions."""
    untouched = nbformat.reads(student_versions([name], seed)[name].decode(), as_version=4)
    found = {"right": right_submission(name, seed), "untouched": untouched}
    for mistake in mistakes(name):
        found[mistake.name] = wrong_submission(name, mistake, seed)
    return found


def try_out(name: str, seed: str | None = None) -> list[Row]:
    """Grade all ``trial_submissions`` as a teacher does; return their rows."""
    found = {(who, name): notebook for who, notebook in trial_submissions(name, seed).items()}
    return grade_notebooks(found, seed)


def grade_notebooks(
    notebooks: dict[tuple[str, str], NotebookNode], seed: str | None = None, **options
) -> list[Row]:
    """Grade notebooks in a temporary folder; return their rows."""
    with tempfile.TemporaryDirectory() as scratch:
        paths = {}
        for number, (key, notebook) in enumerate(notebooks.items()):
            paths[key] = Path(scratch) / f"{number}.ipynb"
            nbformat.write(notebook, paths[key])
        found = grade(paths, Path(scratch) / "out", seed=seed, jobs=count_processors(), **options)
        return rows_in(found)


def find_faults(name: str, rows: list[Row]) -> list[str]:
    """Return what is wrong with the checks of an assignment, given the rows of ``try_out``."""
    groups = by_student(rows)
    found = faults_of_the_right(groups["right"]) + faults_of_the_untouched(groups["untouched"])
    for mistake in mistakes(name):
        found += faults_of_the_mistake(mistake, groups[mistake.name])
    return found


def faults_of_the_right(rows: list[Row]) -> list[str]:
    """Return a message for each lost point of the right solution, and if its total is not 20."""
    found = [f"right: loses at {row.task}: {row.message or row.state}" for row in lost_rows(rows)]
    if not any(row.state == "awaits manual grading" for row in rows):
        found.append("right: no open question awaits manual grading")
    if sum(row.max for row in rows) != 20:
        found.append("the points do not add up to 20")
    return found


def faults_of_the_untouched(rows: list[Row]) -> list[str]:
    """Return a message if an untouched notebook earns points, or gets no advice what to do."""
    found = [f"untouched: earns points at {row.task}" for row in rows if row.points > 0]
    if not any("This task is still yours" in row.message for row in rows):
        found.append("untouched: no check meets the line that says what to do")
    return found


def faults_of_the_mistake(mistake: Mistake, rows: list[Row]) -> list[str]:
    """Return messages if a mistake fails other checks than it names, or with another text."""
    messages = {row.task: row.message for row in lost_rows(rows)}
    where, expected = sorted(messages), sorted(mistake.caught_by)
    found = []
    if where != expected:
        found.append(f"{mistake.name}: loses points at {where} instead of {expected}")
    if not any(mistake.says in message for message in messages.values()):
        found.append(f"{mistake.name}: no message says {mistake.says!r}: {list(messages.values())}")
    if mistake.must_not_say and any(mistake.must_not_say in text for text in messages.values()):
        found.append(f"{mistake.name}: a message gives away {mistake.must_not_say!r}")
    return found


def lost_rows(rows: list[Row]) -> list[Row]:
    """Return the rows with lost points, without rows that await manual grading."""
    return [row for row in rows if row.state != "awaits manual grading" and row.points < row.max]


def format_report(rows: list[Row]) -> str:
    """Return a text with the points that each submission lost, and the messages."""
    lines = []
    for student, own in by_student(rows).items():
        lines.append(f"  {student}: {tally(own).earned:g} of {tally(own).most:g}")
        lines += [f"      {row.task}: {row.message}" for row in own if row.message]
        lines += sorted({f"      {row.state}" for row in own if "not graded" in row.state})
    return "\n".join(lines)
