"""Hand out, grade, mark and print the assignments, exams, projects and quizzes of this folder.

    python course.py release [NAME ...] [--seed WORD] [--students FILE] [--out DIR]
        write the student versions, without solutions and hidden checks
    python course.py grade SUBMISSIONS [--seed WORD] [--out DIR] [--due DATE] [--late PRICE]
        run new or changed notebooks below SUBMISSIONS; write tables and feedback
    python course.py mark [SHEET ...] [--out DIR]
        enter points given by hand, for answers or in place of a check; nothing is run
    python course.py try [NAME ...] [--seed WORD]
        grade the right solution and every named mistake, and print which checks failed
    python course.py exam [QUESTION ...] [--seed WORD] [--out DIR]
        print questions of the exam bank and their keys (a number means a whole chapter)
    python course.py key [NAME ...] [--seed WORD] [--out DIR]
        print solutions, numbers, points and rubrics of assignments
    python course.py projects [NAME ...] [--out DIR]
        print briefs of projects, for students and for teachers
    python course.py quiz [CHAPTER ...] [--out DIR]
        write the "guess first" boxes of chapters as a quiz that Moodle imports (GIFT)

``--seed`` is a word, for example the name of the term. All random numbers of the assignments depend
on it, so each term can have its own numbers.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
os.environ.setdefault("MARKAPART_COURSE", str(HERE))
sys.path.insert(0, str(HERE / "grader"))

import papers  # noqa: E402 (after the grader is on the path)
import quiz  # noqa: E402
from markapart import cli  # noqa: E402
from markapart.sources import names  # noqa: E402


def main(arguments: list[str] | None = None) -> int:
    """Run the command that the arguments name; return the exit status."""
    return cli.main(arguments, _parser())


def _parser() -> argparse.ArgumentParser:
    """Return the parser with the commands of the grader and those that print papers."""
    parser, commands = cli.build_parser(__doc__)
    for name, (run, metavar, what) in {
        "exam": (_exam, "QUESTION", "print an exam and its key; 06-votes, or 06"),
        "key": (_key, "NAME", "print the key of assignments"),
        "projects": (_projects, "NAME", "print briefs of projects"),
        "quiz": (_quiz, "CHAPTER", "write quizzes of chapters, 06"),
    }.items():
        command = commands.add_parser(name, help=what)
        command.set_defaults(run=run)
        command.add_argument("names", nargs="*", metavar=metavar, help="default: all")
        command.add_argument("--out", type=Path, default=Path("papers"), help="default: papers")
        if name in ("exam", "key"):
            command.add_argument("--seed", metavar="WORD", help="other numbers")
    return parser


def _exam(options: argparse.Namespace) -> int:
    questions = papers.choose_questions(options.names, options.seed)
    sheets = {name: papers.exam(questions, key=name == "exam_key") for name in ("exam", "exam_key")}
    return _print_papers(sheets, options.out)


def _key(options: argparse.Namespace) -> int:
    wanted = options.names or names()
    sheets = {f"key_{name}": papers.assignment_key(name, options.seed) for name in wanted}
    return _print_papers(sheets, options.out)


def _projects(options: argparse.Namespace) -> int:
    wanted = options.names or papers.projects()
    sheets = {name: papers.project(name, teacher=False) for name in wanted}
    sheets |= {f"{name}_teacher": papers.project(name, teacher=True) for name in wanted}
    return _print_papers(sheets, options.out)


def _quiz(options: argparse.Namespace) -> int:
    for path in quiz.write_quizzes(options.names, options.out):
        print(path)
    return 0


def _print_papers(sheets: dict[str, str], out: Path) -> int:
    for path in papers.write_papers(sheets, out):
        print(path)
    return 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
