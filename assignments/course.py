"""Hand out, collect and grade the assignments of this folder with nbgrader.

    python course.py release [NAME ...] [--seed WORD] [--out DIR]
        write the student versions, without solutions and hidden checks
    python course.py grade SUBMISSIONS [--seed WORD] [--out DIR] [--timeout SECONDS]
        grade every notebook below SUBMISSIONS; write grades.csv, open_questions.csv, feedback/
    python course.py try [NAME ...] [--seed WORD]
        grade the right solution and every named mistake, and print which check caught what

``--seed`` is a word, for example the name of the term: it makes all random numbers of the
assignments, so another word gives another course with other numbers.
"""

from __future__ import annotations

import argparse
import copy
import csv
import functools
import logging
import os
import re
import shutil
import sys
import tempfile
import textwrap
import tomllib
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import nbformat
from nbconvert.preprocessors import CSSHTMLHeaderPreprocessor
from nbformat import NotebookNode
from nbgrader import api
from nbgrader.api import Gradebook
from nbgrader.converters import Autograde, GenerateAssignment, GenerateFeedback
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import ClearHiddenTests, GetGrades, NbGraderPreprocessor
from nbgrader.utils import is_grade
from sqlalchemy.exc import SAWarning
from traitlets.config import Config
from traitlets.config.loader import PyFileConfigLoader
from warm_kernels import warm_kernels

HERE = Path(__file__).resolve().parent
SEED_LINE = re.compile(r'^COURSE = "(.*)"$', re.MULTILINE)
SOLUTION = re.compile(r"^( *)### BEGIN SOLUTION\n(.*?)^ *### END SOLUTION\n?", re.M | re.S)
MARKERS = re.compile(r"^ *### (BEGIN|END) SOLUTION\n?", re.M)
GRADES = ["student", "assignment", "task", "points", "max", "state"]
OPEN = ["student", "assignment", "task", "max", "answer", "points", "comment"]
# nbgrader calls alembic by name, which a virtual environment that is not activated does not find.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
# For each new database it asks alembic for the same version again, in a process that takes seconds.
api.get_alembic_version = functools.cache(api.get_alembic_version)


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


class Mistake(NamedTuple):
    """A wrong submission: one typical error in one cell, everything else right."""

    name: str
    error: str
    cell: str
    code: str
    caught_by: list[str]
    says: str
    must_not_say: str = ""


# ------------------------------------------------------------------------- command line


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line; return the exit status."""
    options = _parser().parse_args(arguments)
    try:
        return options.run(options)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True, metavar="release | grade | try")
    release = commands.add_parser("release", help="write the student versions")
    release.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    release.add_argument("--out", type=Path, default=Path("release"), help="default: release")
    release.set_defaults(run=_release)
    grade = commands.add_parser("grade", help="grade a folder of submissions")
    grade.add_argument("submissions", type=Path, metavar="SUBMISSIONS")
    grade.add_argument("--out", type=Path, default=Path("graded"), help="default: graded")
    grade.add_argument("--timeout", type=int, help="seconds a cell may run (default: 30)")
    grade.set_defaults(run=_grade)
    attempt = commands.add_parser("try", help="grade the right solution and the named mistakes")
    attempt.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    attempt.set_defaults(run=_try)
    for command in (release, grade, attempt):
        command.add_argument("--seed", metavar="WORD", help="default: as the sources have it")
    return parser


def _release(options: argparse.Namespace) -> int:
    for name, content in student_versions(options.names or names(), options.seed).items():
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / f"{name}.ipynb").write_bytes(content)
        print(options.out / f"{name}.ipynb")
    return 0


def _grade(options: argparse.Namespace) -> int:
    submissions, ignored = find_submissions(options.submissions)
    rows = grade(submissions, options.out, seed=options.seed, timeout=options.timeout)
    print(table(rows))
    for path in ignored:
        print(f"ignored, since no assignment has this name: {path}")
    print(f"\n{options.out / 'grades.csv'}, {options.out / 'feedback'}")
    if any(row.state == "awaits manual grading" for row in rows):
        print(f"Fill in points in {options.out / 'open_questions.csv'} and run grade again.")
    return 0


def _try(options: argparse.Namespace) -> int:
    complaints = []
    for name in options.names or names():
        rows = try_out(name, options.seed)
        print(f"{name}\n{_report(rows)}\n")
        complaints += [f"{name}: {fault}" for fault in faults(name, rows)]
    print("\n".join(complaints) or "Every check does what it is there for.")
    return 1 if complaints else 0


def _report(rows: list[Row]) -> str:
    """Which submission lost points where, and what it was told."""
    lines = []
    for student, own in by_student(rows).items():
        earned, most = sum(row.points for row in own), sum(row.max for row in own)
        lines.append(f"  {student}: {earned:g} of {most:g}")
        lines += [f"      {row.task}: {row.message}" for row in own if row.message]
        lines += sorted({f"      {row.state}" for row in own if "not graded" in row.state})
    return "\n".join(lines)


# ------------------------------------------------------------------------------ sources


def names() -> list[str]:
    """Return the names of all assignments, in order."""
    return sorted(path.stem for path in HERE.glob("source/*/*.ipynb"))


def source(name: str, seed: str | None = None) -> NotebookNode:
    """Read an assignment as its author wrote it, with another word for the seed if given."""
    path = HERE / "source" / name / f"{name}.ipynb"
    if not path.exists():
        raise ValueError(f"there is no assignment {name!r}; there are {', '.join(names())}.")
    notebook = nbformat.read(path, as_version=4)
    if seed is not None:
        (setup,) = [cell for cell in notebook.cells if SEED_LINE.search(cell.source)]
        if not re.fullmatch(r"[\w .-]+", seed):
            raise ValueError(f"the seed is {seed!r}; use a word of letters and digits.")
        setup.source = SEED_LINE.sub(f'COURSE = "{seed}"', setup.source)
    return notebook


def clean_bytes(notebook: NotebookNode) -> bytes:
    """Return a notebook as the bytes of a file that are the same at every writing."""
    notebook = copy.deepcopy(notebook)
    notebook.metadata = nbformat.from_dict({"kernelspec": KERNELSPEC})
    notebook.nbformat_minor = 5
    for cell in notebook.cells:
        cell.id = grade_id(cell) or cell.id
        if cell.cell_type == "code":
            cell.update(outputs=[], execution_count=None)
    return (nbformat.writes(notebook).rstrip("\n") + "\n").encode()


def grade_id(cell: NotebookNode) -> str | None:
    """Return the name by which nbgrader knows a cell, if it does."""
    return cell.metadata.get("nbgrader", {}).get("grade_id")


def mistakes(name: str) -> list[Mistake]:
    """Read the named wrong submissions of an assignment."""
    text = (HERE / "mistakes" / f"{name}.toml").read_text(encoding="utf8")
    return [Mistake(**entry) for entry in tomllib.loads(text)["mistake"]]


# ------------------------------------------------------------------------------ release


class Course(NamedTuple):
    """A course directory of nbgrader in which the assignments have been generated."""

    directory: CourseDirectory
    config: Config

    @property
    def root(self) -> Path:
        """Where it lies."""
        return Path(self.directory.root)

    def gradebook(self) -> Gradebook:
        """Open the database of grades; use it in a ``with`` statement."""
        return Gradebook(self.directory.db_url, self.directory.course_id)

    def run(self, converter: type, assignment: str, **options) -> None:
        """Run one of nbgrader's converters on an assignment."""
        self.directory.assignment_id = assignment
        log = logging.getLogger("nbgrader")
        with warnings.catch_warnings():
            # nbgrader 0.9 meets SQLAlchemy 2; what it loses track of, it adds again.
            warnings.simplefilter("ignore", SAWarning)
            converter(coursedir=self.directory, config=self.config, log=log, **options).start()


def open_course(
    root: Path, assignments: Iterable[str], seed: str | None = None, timeout: int | None = None
) -> Course:
    """Generate the assignments in a new folder, with a fresh database."""
    config = PyFileConfigLoader("nbgrader_config.py", path=str(HERE)).load_config()
    config.CourseDirectory.root = str(root.resolve())
    if timeout is not None:
        config.Execute.timeout = timeout
    root.mkdir(parents=True)
    _log_into(root / "nbgrader.log")
    shutil.copy(HERE / "nbgrader_config.py", root)
    course = Course(CourseDirectory(config=config), config)
    for name in assignments:
        path = root / "source" / name / f"{name}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_bytes(clean_bytes(source(name, seed)))
        _generate(course, name)
    return course


def _log_into(path: Path) -> None:
    """Send what nbgrader reports to a file, and nothing to the terminal."""
    log = logging.getLogger("nbgrader")
    for handler in log.handlers[:]:
        log.removeHandler(handler)
        handler.close()
    log.addHandler(logging.FileHandler(path, encoding="utf8", delay=True))
    log.setLevel(logging.WARNING)
    log.propagate = False


def _generate(course: Course, name: str) -> None:
    """Make the student version and enter the assignment into the database."""
    try:
        course.run(GenerateAssignment, name)
    except NbGraderException:
        report = (course.root / "nbgrader.log").read_text(encoding="utf8")
        raise ValueError(f"nbgrader cannot generate {name}; it reports:\n{report}") from None


def student_versions(assignments: Iterable[str], seed: str | None = None) -> dict[str, bytes]:
    """Return the files that students get: no solution, no hidden check, always the same bytes."""
    return {name: _student_version(name, seed) for name in assignments}


@functools.cache
def _student_version(name: str, seed: str | None) -> bytes:
    with tempfile.TemporaryDirectory() as scratch:
        return clean_bytes(_released(open_course(Path(scratch) / "course", [name], seed), name))


def _released(course: Course, name: str) -> NotebookNode:
    path = course.root / "release" / name / f"{name}.ipynb"
    return nbformat.read(path, as_version=4)


# -------------------------------------------------------------------------------- grade


def find_submissions(folder: Path) -> tuple[dict[tuple[str, str], Path], list[Path]]:
    """Find the notebooks of a folder that are submissions, and those that are not.

    Both ``student/assignment.ipynb`` and ``student/assignment/assignment.ipynb`` will do.
    """
    if not folder.is_dir():
        raise ValueError(f"there is no folder {folder}.")
    found: dict[tuple[str, str], Path] = {}
    ignored = []
    for path in sorted([*folder.glob("*/*.ipynb"), *folder.glob("*/*/*.ipynb")]):
        student, *between = path.relative_to(folder).parts[:-1]
        key = (student, path.stem)
        if path.stem not in names() or between not in ([], [path.stem]):
            ignored.append(path)
        elif key in found:
            raise ValueError(f"{student} handed in twice: {found[key]} and {path}.")
        else:
            found[key] = path
    if not found:
        raise ValueError(f"{folder} holds no student/assignment.ipynb with a known name.")
    return found, ignored


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
    _write_csv(out / "grades.csv", GRADES, rows)
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
            notebook, released = nbformat.read(path, as_version=4), _released(course, assignment)
            _require_same_seed(notebook, released)
            target.write_bytes(clean_bytes(repair(notebook, released)))
        except Exception as error:  # whatever a student's file holds, the others are graded
            unreadable[student, assignment] = f"not graded: {_in_one_line(error)}"
            shutil.rmtree(target.parent)
    return unreadable


def _require_same_seed(notebook: NotebookNode, released: NotebookNode) -> None:
    """Refuse a notebook of another term, whose numbers are not those that are graded."""
    own, ours = _seed(notebook), _seed(released)
    if own not in (None, ours):
        raise ValueError(f'made with the seed "{own}", graded with "{ours}"; see --seed')


def _seed(notebook: NotebookNode) -> str | None:
    lines = [SEED_LINE.search(cell.source) for cell in notebook.cells]
    return next((line[1] for line in lines if line), None)


def _in_one_line(error: Exception) -> str:
    kind = "" if type(error) is ValueError else f"{type(error).__name__}: "
    return (kind + " ".join(str(error).split()))[:200]


def repair(notebook: NotebookNode, released: NotebookNode) -> NotebookNode:
    """Put back what a student deleted, as the student version has it, at its old place.

    nbgrader itself restores the source of checks and of locked cells, but stumbles where
    a check is missing together with the cell before it, and knows no cell without metadata;
    some editors drop these and keep the cell's id.
    """
    known = {grade_id(cell): cell for cell in released.cells if grade_id(cell)}
    repaired = copy.deepcopy(notebook)
    for cell in repaired.cells:
        if not grade_id(cell) and cell.get("id") in known:
            cell.metadata["nbgrader"] = copy.deepcopy(known[cell.id].metadata["nbgrader"])
    place = 0
    for name, cell in known.items():
        there = [i for i, other in enumerate(repaired.cells) if grade_id(other) == name]
        if not there:
            repaired.cells.insert(place, copy.deepcopy(cell))
        place = (there[-1] if there else place) + 1
    return _with_unique_ids(repaired)


def _with_unique_ids(notebook: NotebookNode) -> NotebookNode:
    """Give every cell that nbgrader knows its name as id; of copies, the last one counts."""
    taken = set()
    for n, cell in reversed(list(enumerate(notebook.cells))):
        name = grade_id(cell)
        if name is None or name in taken:
            cell.metadata.pop("nbgrader", None)
            cell["id"] = f"student-{n}"
        taken.add(name)
    return notebook


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
    _write_csv(path, OPEN, lines)


def _write_csv(path: Path, columns: list[str], rows: Iterable) -> None:
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


def by_student(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Group rows, in order."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.student, []).append(row)
    return groups


def table(rows: list[Row]) -> str:
    """Return one line a submission: points, and what is still open."""
    lines = [f"{'student':20} {'assignment':28} {'points':>6} {'of':>4}"]
    for student, own in by_student(rows).items():
        for assignment in sorted({row.assignment for row in own}):
            part = [row for row in own if row.assignment == assignment]
            states = sorted({row.state for row in part} - {"graded"})
            points, most = sum(row.points for row in part), sum(row.max for row in part)
            lines.append(
                f"{student:20} {assignment:28} {points:6g} {most:4g}  {'; '.join(states)}".rstrip()
            )
    return "\n".join(lines)


# ---------------------------------------------------------------------------------- try


def right_submission(name: str, seed: str | None = None) -> NotebookNode:
    """Return the student version with every solution filled in."""
    solved = source(name, seed)
    for cell in solved.cells:
        cell.source = MARKERS.sub("", cell.source)
    return solved


def wrong_submission(name: str, mistake: Mistake, seed: str | None = None) -> NotebookNode:
    """Return the right submission with one mistake in place of one solution."""
    (original,) = [cell for cell in source(name, seed).cells if grade_id(cell) == mistake.cell]
    submission = right_submission(name, seed)

    def mistaken(match: re.Match) -> str:
        return textwrap.indent(textwrap.dedent(mistake.code).strip("\n"), match[1]) + "\n"

    # Cells without points are for the reader: the right submission runs them, the wrong ones not.
    submission.cells = [cell for cell in submission.cells if _matters(cell)]
    wrong, count = SOLUTION.subn(mistaken, original.source)
    if count != 1:
        raise ValueError(f"{name}: cell {mistake.cell} has {count} solution regions, not one.")
    (target,) = [cell for cell in submission.cells if grade_id(cell) == mistake.cell]
    target.source = wrong
    return submission


def _matters(cell: NotebookNode) -> bool:
    return cell.cell_type == "markdown" or grade_id(cell) is not None


def try_out(name: str, seed: str | None = None) -> list[Row]:
    """Grade the ``right`` submission, each mistake, and a notebook that nobody has touched."""
    untouched = nbformat.reads(student_versions([name], seed)[name].decode(), as_version=4)
    submissions = {"right": right_submission(name, seed), "untouched": untouched}
    for mistake in mistakes(name):
        submissions[mistake.name] = wrong_submission(name, mistake, seed)
    return grade_notebooks({(who, name): notebook for who, notebook in submissions.items()}, seed)


def grade_notebooks(
    notebooks: dict[tuple[str, str], NotebookNode],
    seed: str | None = None,
    timeout: int | None = None,
) -> list[Row]:
    """Grade notebooks that are in no file yet; nothing is kept but the rows."""
    with tempfile.TemporaryDirectory() as scratch:
        paths = {}
        for number, (key, notebook) in enumerate(notebooks.items()):
            paths[key] = Path(scratch) / f"{number}.ipynb"
            nbformat.write(notebook, paths[key])
        return grade(paths, Path(scratch) / "out", seed=seed, timeout=timeout, feedback=False)


def faults(name: str, rows: list[Row]) -> list[str]:
    """Say what is wrong with an assignment, from the rows of :func:`try_out`."""
    groups = by_student(rows)
    found = faults_of_the_right(groups["right"]) + faults_of_the_untouched(groups["untouched"])
    for mistake in mistakes(name):
        found += faults_of_the_mistake(mistake, groups[mistake.name])
    return found


def faults_of_the_right(rows: list[Row]) -> list[str]:
    """Say where the right solution falls short of 20 points of which some await a teacher."""
    found = [f"right: loses at {row.task}: {row.message or row.state}" for row in lost(rows)]
    if not any(row.state == "awaits manual grading" for row in rows):
        found.append("right: no open question awaits manual grading")
    if sum(row.max for row in rows) != 20:
        found.append("the points do not add up to 20")
    return found


def faults_of_the_untouched(rows: list[Row]) -> list[str]:
    """Say what a notebook earns in which nothing was done, and whether it says what to do."""
    found = [f"untouched: earns points at {row.task}" for row in rows if row.points > 0]
    if not any("This task is still yours" in row.message for row in rows):
        found.append("untouched: no check meets the line that says what to do")
    return found


def faults_of_the_mistake(mistake: Mistake, rows: list[Row]) -> list[str]:
    """Say where a mistake loses other points than it should, or hears something else."""
    heard = {row.task: row.message for row in lost(rows)}
    where, expected = sorted(heard), sorted(mistake.caught_by)
    found = []
    if where != expected:
        found.append(f"{mistake.name}: loses points at {where} instead of {expected}")
    if not any(mistake.says in message for message in heard.values()):
        found.append(f"{mistake.name}: no message says {mistake.says!r}: {list(heard.values())}")
    if mistake.must_not_say and any(mistake.must_not_say in text for text in heard.values()):
        found.append(f"{mistake.name}: a message gives away {mistake.must_not_say!r}")
    return found


def lost(rows: list[Row]) -> list[Row]:
    """Rows that earned less than they could, except those that no one has looked at yet."""
    return [row for row in rows if row.state != "awaits manual grading" and row.points < row.max]


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
