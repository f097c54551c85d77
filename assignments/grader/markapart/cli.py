"""Hand out, collect, grade and mark the assignments of a course.

    markapart release [NAME ...] [--seed WORD] [--students FILE] [--out DIR]
        write the student versions, without solutions and hidden checks
    markapart grade SUBMISSIONS [--seed WORD] [--out DIR] [--due DATE] [--late PRICE]
        run new or changed notebooks below SUBMISSIONS; write tables and feedback
    markapart mark [SHEET ...] [--out DIR]
        enter points given by hand, for answers or in place of a check; nothing is run
    markapart try [NAME ...] [--seed WORD]
        grade the right solution and every named mistake, and print which checks failed

``--seed`` is a word, for example the name of the term. All random numbers of the assignments depend
on it, so each term can have its own numbers.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import sys
from pathlib import Path

from markapart.collect import find_submissions
from markapart.examine import Row, tally
from markapart.grading import (
    count_processors,
    enter_marks,
    grade,
    remember_unrecognised,
    write_reports,
)  # fmt: skip
from markapart.marks import SHEETS, Problem
from markapart.policy import set_policy
from markapart.roster import remember_roster
from markapart.sources import names, seed_of_copy, student_versions
from markapart.trial import find_faults, format_report, try_out


def main(arguments: list[str] | None = None, parser: argparse.ArgumentParser | None = None) -> int:
    """Run the command that the arguments name; return the exit status."""
    options = (parser or build_parser()[0]).parse_args(arguments)
    try:
        return options.run(options)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def build_parser(
    description: str | None = __doc__,
) -> tuple[argparse.ArgumentParser, argparse._SubParsersAction]:
    """Return the parser and its group of commands, to which a course may add commands."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    release = commands.add_parser("release", help="write the student versions")
    release.set_defaults(run=_release)
    grade = commands.add_parser("grade", help="grade a folder of submissions")
    grade.add_argument("submissions", type=Path, metavar="SUBMISSIONS")
    grade.add_argument("--timeout", type=float, default=30, help="seconds a cell may run, 30")
    grade.add_argument(
        "--jobs", type=int, default=count_processors(), help="default: all processors"
    )
    grade.add_argument("--again", action="store_true", help="grade unchanged submissions again")
    grade.add_argument("--due", metavar="DATE", help="when they are due: 2026-11-05T18:00")
    grade.add_argument(
        "--late",
        metavar="PRICE",
        help='"10 %% a day, at most 50 %%, after 2 hours" or "2 points a day"',
    )
    grade.add_argument("--best", type=int, metavar="N", help="only the N best assignments count")
    grade.add_argument("--worksheet", action="append", default=[], metavar="[NAME=]FILE",
                       help="Moodle's grading worksheet or Canvas's gradebook export")  # fmt: skip
    grade.add_argument("--book", metavar="URL", help="where the book's chapters are, for links")
    grade.set_defaults(run=_grade)
    mark = commands.add_parser("mark", help="enter the points of open questions")
    mark.add_argument("sheets", nargs="*", type=Path, metavar="SHEET",
                      help="default: open_questions.csv and overrides.csv in DIR")  # fmt: skip
    mark.set_defaults(run=_mark)
    attempt = commands.add_parser("try", help="grade the right solution and the named mistakes")
    attempt.set_defaults(run=_try)
    for command in (release, attempt):
        command.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    for command, out in {release: "release", grade: "graded", mark: "graded"}.items():
        command.add_argument("--out", type=Path, default=Path(out), help=f"default: {out}")
    for command in (release, grade, attempt):
        command.add_argument("--seed", metavar="WORD", help="default: the seed in the sources")
    for command in (release, grade):
        command.add_argument("--students", type=Path, metavar="FILE",
                             help="one name per line; each gets other numbers")  # fmt: skip
    return parser, commands


def _release(options: argparse.Namespace) -> int:
    copies = {options.out: options.seed}
    if options.students:
        people = _read_student_names(options.students)
        copies = {options.out / who: seed_of_copy(options.seed, who) for who in people}
    for folder, seed in copies.items():
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in student_versions(options.names or names(), seed).items():
            (folder / f"{name}.ipynb").write_bytes(content)
            print(folder / f"{name}.ipynb")
    return 0


def _read_student_names(file: Path | None) -> list[str]:
    """Read a file with one name per line; each must be a valid name of a folder."""
    lines = file.read_text(encoding="utf-8-sig").splitlines() if file else []
    people = [line.strip() for line in lines if line.strip()]
    for one in people:
        if re.search(r"[/\\:\0]", one) or one.startswith("."):
            raise ValueError(f"{file} has the name {one!r}, which cannot be that of a folder.")
    return people


def _grade(options: argparse.Namespace) -> int:
    submissions, remarks, others = find_submissions(options.submissions)
    out = options.out
    # Read the points that the teacher has typed before the sheets are overwritten.
    changes, problems = enter_marks(out, _existing_sheets(out))
    graded_here = sorted({name for _, name in submissions})
    set_policy(out, graded_here, options.due, options.late, options.best, options.book)
    remember_roster(out, graded_here, options.worksheet)
    graded = grade(
        submissions, out, seed=options.seed, timeout=options.timeout, jobs=options.jobs,
        again=options.again, students=_read_student_names(options.students), remarks=remarks,
        say=lambda line: print(line, file=sys.stderr, flush=True),
    )  # fmt: skip
    remember_unrecognised(out, others)
    everything = write_reports(out, problems)
    new = {(result["student"], result["assignment"]) for result in graded}
    rows = [row for row in everything if row[:2] in new]
    print(format_table(rows))
    message = [f"{' '.join(key)} {remark}" for key, remark in remarks.items()]
    print("\n".join([*message, *(f"{line['state']}: {line['file']}" for line in others)]))
    print(f"\n{out / 'totals.csv'}, {out / 'submissions.csv'}, {out / 'feedback'}")
    if any(row.state == "awaits manual grading" for row in rows):
        print(f"Read and mark answers in {out / 'answers.html'} or {out / SHEETS[0]}, then: "
              f"course.py mark --out {out}")  # fmt: skip
    return _print_changes(changes, problems, out)


def _existing_sheets(out: Path) -> list[Path]:
    return [out / name for name in SHEETS if (out / name).exists()]


def _mark(options: argparse.Namespace) -> int:
    sheets = options.sheets or _existing_sheets(options.out) or [options.out / SHEETS[0]]
    for sheet in sheets:
        if not sheet.is_file():
            raise ValueError(f"there is no sheet {sheet}.")
    changes, problems = enter_marks(options.out, sheets)
    rows = write_reports(options.out, problems)
    waiting = sum(row.state == "awaits manual grading" for row in rows)
    print(f"{len(changes)} marks entered; {waiting} answers wait.")
    return _print_changes(changes, problems, options.out)


def _print_changes(changes: list[str], problems: list[Problem], out: Path) -> int:
    """Print which points were entered and which were not; return the exit status."""
    print("\n".join(changes))
    for problem in problems:
        given = problem.row
        what = f"{given['student']}, {given['assignment']}, {given['points']!r}"
        print(f"not entered: row {problem.line} ({what}): {problem.why}", file=sys.stderr)
    if problems:
        print(f"These rows are kept in {out / 'unmatched.csv'}.", file=sys.stderr)
    return 1 if problems else 0


def _try(options: argparse.Namespace) -> int:
    complaints = []
    for name in options.names or names():
        rows = try_out(name, options.seed)
        print(f"{name}\n{format_report(rows)}\n")
        complaints += [f"{name}: {fault}" for fault in find_faults(name, rows)]
    print("\n".join(complaints) or "Every check found exactly the mistakes that it should find.")
    return 1 if complaints else 0


def format_table(rows: list[Row]) -> str:
    """Return a text with the points and the state of each submission, one per line."""
    lines = [f"{'student':20} {'assignment':28} {'points':>6} {'of':>4}"]
    for (student, assignment), own in itertools.groupby(rows, key=lambda row: row[:2]):
        points, most, states = tally(own)
        lines.append(f"{student:20} {assignment:28} {points:6g} {most:4g}  {states}".rstrip())
    return "\n".join(lines)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
