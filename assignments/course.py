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
import os
import sys
from pathlib import Path

from grading import Row, by_student, grade
from sources import names, student_versions
from trial import faults, report, try_out


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
        print(f"{name}\n{report(rows)}\n")
        complaints += [f"{name}: {fault}" for fault in faults(name, rows)]
    print("\n".join(complaints) or "Every check does what it is there for.")
    return 1 if complaints else 0


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


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
