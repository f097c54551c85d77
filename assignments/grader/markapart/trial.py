"""Try the checks of an assignment: grade the right solution, every named mistake, and nothing done.

Each mistake of mistakes/ must lose the points of the checks that it names, and no others; the right
solution must lose none, and the untouched notebook must earn none.
"""

from __future__ import annotations

import re
import tempfile
import textwrap
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from markapart.examine import Row, tally
from markapart.grading import by_student, cores, grade, rows_in
from markapart.sources import Mistake, grade_id, mistakes, source, student_versions

SOLUTION = re.compile(r"^( *)### BEGIN SOLUTION\n(.*?)^ *### END SOLUTION\n?", re.M | re.S)
MARKERS = re.compile(r"^ *### (BEGIN|END) SOLUTION\n?", re.M)


def right_submission(name: str, seed: str | None = None) -> NotebookNode:
    """Return the student version with every solution filled in."""
    solved = source(name, seed)
    for cell in solved.cells:
        cell.source = MARKERS.sub("", cell.source)
    return solved


def wrong_submission(name: str, mistake: Mistake, seed: str | None = None) -> NotebookNode:
    """Return the right submission with one mistake, or a variant, in place of one solution."""
    (original,) = [cell for cell in source(name, seed).cells if grade_id(cell) == mistake.cell]
    submission = right_submission(name, seed)

    def mistaken(match: re.Match) -> str:
        return textwrap.indent(textwrap.dedent(mistake.code).strip("\n"), match[1]) + "\n"

    # Only the right submission runs the closing cells, which take most of the time.
    submission.cells = [cell for cell in submission.cells if _matters(cell)]
    wrong, count = SOLUTION.subn(mistaken, original.source)
    if count != 1:
        raise ValueError(f"{name}: cell {mistake.cell} has {count} solution regions, not one.")
    (target,) = [cell for cell in submission.cells if grade_id(cell) == mistake.cell]
    target.source = wrong
    return submission


def _matters(cell: NotebookNode) -> bool:
    return cell.cell_type == "markdown" or grade_id(cell) is not None


def submissions(name: str, seed: str | None = None) -> dict[str, NotebookNode]:
    """Return the ``right`` submission, each mistake, and a notebook that nobody has touched."""
    untouched = nbformat.reads(student_versions([name], seed)[name].decode(), as_version=4)
    found = {"right": right_submission(name, seed), "untouched": untouched}
    for mistake in mistakes(name):
        found[mistake.name] = wrong_submission(name, mistake, seed)
    return found


def try_out(name: str, seed: str | None = None) -> list[Row]:
    """Grade all :func:`submissions` as a teacher does."""
    found = {(who, name): notebook for who, notebook in submissions(name, seed).items()}
    return grade_notebooks(found, seed)


def grade_notebooks(
    notebooks: dict[tuple[str, str], NotebookNode], seed: str | None = None, **options
) -> list[Row]:
    """Grade notebooks that are in no file yet; nothing is kept but the rows."""
    with tempfile.TemporaryDirectory() as scratch:
        paths = {}
        for number, (key, notebook) in enumerate(notebooks.items()):
            paths[key] = Path(scratch) / f"{number}.ipynb"
            nbformat.write(notebook, paths[key])
        found = grade(paths, Path(scratch) / "out", seed=seed, jobs=cores(), **options)
        return rows_in(found)


def faults(name: str, rows: list[Row]) -> list[str]:
    """Return what is wrong with an assignment, given the rows of :func:`try_out`."""
    groups = by_student(rows)
    found = faults_of_the_right(groups["right"]) + faults_of_the_untouched(groups["untouched"])
    for mistake in mistakes(name):
        found += faults_of_the_mistake(mistake, groups[mistake.name])
    return found


def faults_of_the_right(rows: list[Row]) -> list[str]:
    """Return where the right solution loses points, and whether its points add up to 20."""
    found = [f"right: loses at {row.task}: {row.message or row.state}" for row in lost_rows(rows)]
    if not any(row.state == "awaits manual grading" for row in rows):
        found.append("right: no open question awaits manual grading")
    if sum(row.max for row in rows) != 20:
        found.append("the points do not add up to 20")
    return found


def faults_of_the_untouched(rows: list[Row]) -> list[str]:
    """Return what an untouched notebook earns, and whether no message says what to do."""
    found = [f"untouched: earns points at {row.task}" for row in rows if row.points > 0]
    if not any("This task is still yours" in row.message for row in rows):
        found.append("untouched: no check meets the line that says what to do")
    return found


def faults_of_the_mistake(mistake: Mistake, rows: list[Row]) -> list[str]:
    """Return where a mistake loses other points than it should, or meets another message."""
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
    """Return the rows that lost points, without those that await manual grading."""
    return [row for row in rows if row.state != "awaits manual grading" and row.points < row.max]


def report(rows: list[Row]) -> str:
    """Return a report: where each submission lost points, and with which messages."""
    lines = []
    for student, own in by_student(rows).items():
        lines.append(f"  {student}: {tally(own).earned:g} of {tally(own).most:g}")
        lines += [f"      {row.task}: {row.message}" for row in own if row.message]
        lines += sorted({f"      {row.state}" for row in own if "not graded" in row.state})
    return "\n".join(lines)
