"""Print exams and their keys from the bank in exam/, keys of assignments, and projects.

The key of a question contains placeholders such as ``<<name:.2f>>`` instead of numbers. The code in
the entry ``compute`` of the question computes them with the primer, and checks them in a second
way.
"""

from __future__ import annotations

import contextlib
import hashlib
import html
import io
import itertools
import re
import sys
import tomllib
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
from markapart import sources
from markapart.settings import COURSE as HERE
from markapart.sources import grade_id
from markapart.trial import right_submission
from nbgrader.utils import is_grade, is_solution

from cgmm import primer

FILLED = re.compile(r"<<(.+?)(?::([-+.\d]*[a-z]))?>>")
STYLE = (HERE / "papers.css").read_text(encoding="utf8")


class Question(NamedTuple):
    """A question of the exam bank, with its numbers filled in. Its texts are Markdown."""

    id: str
    title: str
    minutes: int
    points: int
    text: str
    key: str
    rubric: list[dict]
    misconceptions: list[dict]


def bank(seed: str | None = None) -> list[Question]:
    """Return all questions in the order of the chapters, with the numbers of a seed."""
    paths = sorted(HERE.glob("exam/*.toml"))
    return [
        _fill_question(entry, seed)
        for path in paths
        for entry in tomllib.loads(path.read_text(encoding="utf8"))["question"]
    ]


def make_pick(seed: str | None, question: str) -> Callable:
    """Return a function that picks the first of its arguments, or with a seed a random one."""
    digest = hashlib.sha256(f"{seed}--{question}".encode()).digest()
    rng = np.random.default_rng(int.from_bytes(digest[:8], "big"))

    def pick(*choices):
        return choices[0] if seed is None else choices[rng.integers(len(choices))]

    return pick


def tex(value: float | Fraction) -> str:
    """Return a number as a fraction in LaTeX."""
    number = Fraction(value).limit_denominator(1000)
    if number.denominator == 1:
        return str(number.numerator)
    return rf"\tfrac{{{number.numerator}}}{{{number.denominator}}}"


def _fill_question(entry: dict, seed: str | None) -> Question:
    space = {"np": np, "primer": primer, "itertools": itertools, "Fraction": Fraction, "tex": tex,
             "pick": make_pick(seed, entry["id"])}  # fmt: skip
    code = entry.pop("compute")
    try:
        exec(compile(code, entry["id"], "exec"), space)
        wrong = [one | {"answer": fill(one["answer"], space)} for one in entry["misconceptions"]]
        own = {name: fill(entry[name], space) for name in ("text", "key")}
        return Question(**entry | own | {"misconceptions": wrong})
    except Exception as error:
        error.add_note(f"in the question {entry['id']} of the exam bank")
        raise


def fill(text: str, space: dict) -> str:
    """Replace each ``<<expression:format>>`` in a text by its formatted value."""
    return FILLED.sub(lambda match: _format_value(eval(match[1], space), match[2] or ""), text)


def _format_value(value: object, form: str) -> str:
    return format(value, form).replace("-", "−") if form else str(value)


def choose_questions(ids: list[str], seed: str | None = None) -> list[Question]:
    """Return the questions with the given ids or numbers of chapters, or all without any."""
    everything = bank(seed)
    found = [q for one in ids for q in everything if one in (q.id, q.id[:2])]
    for one in ids:
        if not any(one in (q.id, q.id[:2]) for q in found):
            known = ", ".join(q.id for q in everything)
            raise ValueError(f"the exam bank has no question {one!r}; there are {known}.")
    return found if ids else everything


def exam(questions: list[Question], *, key: bool) -> str:
    """Return HTML of an exam, with keys and rubrics or with space for answers."""
    minutes, points = (sum(q[field] for q in questions) for field in (2, 3))
    head = "Key and rubrics" if key else "Name: ______________________________"
    parts = [f"<h1>Examination</h1><p>{len(questions)} questions, {minutes} minutes, "
             f"{points} points. {head}</p>"]  # fmt: skip
    for number, question in enumerate(questions, start=1):
        title = f"{number}. {question.title} ({question.points} points, {question.minutes} minutes)"
        after = _answer_html(question) if key else '<div class="room"></div>'
        parts.append(_section_html(title, _markdown_to_html(question.text) + after))
    return "\n".join(parts)


def _answer_html(question: Question) -> str:
    rubric = [f"| {line['points']} | {line['what']} |" for line in question.rubric]
    errors = [f"| {line['answer']} | {line['is']} | {line['points']} |"
              for line in question.misconceptions]  # fmt: skip
    table = "\n".join(["| points | for |", "|---|---|", *rubric])
    wrong = "\n".join(["| answer | misconception | points of its part |", "|---|---|---|", *errors])
    shown = _markdown_to_html(f"{question.key}\n\n{table}\n\n{wrong}")
    return f'<p>({question.id})</p><div class="key">{shown}</div>'


def _section_html(title: str, content: str, kind: str = "") -> str:
    mark = f' class="{kind}"' if kind else ""
    return f"<section{mark}><h2>{html.escape(title)}</h2>{content}</section>"


def _markdown_to_html(text: str) -> str:
    return _import_typeset().markdown(text)


def _import_typeset():
    """Import tools/typeset.py, which typesets formulas and prints pages with a browser."""
    tools = str(HERE.parent / "tools")
    if tools not in sys.path:
        sys.path.append(tools)
    try:
        import typeset
    except ImportError as error:
        raise ValueError(
            f"papers need the project's tools and its test requirements: {error}"
        ) from None
    return typeset


# -------------------------------------------------------------------------- assignments


def assignment_key(name: str, seed: str | None = None) -> str:
    """Return HTML with solutions, points and rubrics of an assignment, with a seed's numbers."""
    notebook, space = right_submission(name, seed), {"__name__": "__main__"}
    title = re.search(r"^# (.+)$", notebook.cells[0].source, re.MULTILINE)[1]
    parts = [f"<h1>{_markdown_to_html(title)}</h1><p>Key, with the numbers of the seed "
             f"“{html.escape(seed or 'autumn')}”.</p>"]  # fmt: skip
    heading = ""
    for cell in notebook.cells:
        task = grade_id(cell)
        if cell.cell_type == "markdown" and (found := re.match(r"## (.+)", cell.source)):
            heading = found[1]
        if cell.cell_type == "code" and task and not is_grade(cell):
            parts.append(_solution_html(cell, task, heading, space))
        elif is_grade(cell) and is_solution(cell):
            rubric = _markdown_to_html(_rubric_markdown(sources.rubric(name, task)))
            answer = _markdown_to_html(cell.source)
            parts.append(_section_html(heading, f'{answer}<div class="key">{rubric}</div>', "long"))
        elif is_grade(cell):
            what = cell.source.partition("\n")[0].lstrip("# ")
            parts.append(f"<p><b>{task}</b>, {cell.metadata.nbgrader.points:g}: "
                         f"{html.escape(what)}</p>")  # fmt: skip
    return "\n".join(parts)


def _solution_html(cell, task: str, heading: str, space: dict) -> str:
    """Return HTML of a solution with its results, or of the setup with its numbers."""
    known = set(space)
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(cell.source, space)
    code = html.escape(cell.source.strip())
    if task == "setup":
        return ""
    if task.endswith("numbers"):
        return f"<p><b>Given</b>: {html.escape(output.getvalue().strip())}</p>"
    values = {key: value for key, value in space.items() if key not in known and task == "task-1"}
    results = "".join(f"{key} = {value}\n" for key, value in values.items() if not callable(value))
    shown = f"<pre>{html.escape(results.strip())}</pre>" if results else ""
    return _section_html(heading, f"<pre>{code}</pre>{shown}")


def _rubric_markdown(rubric: dict) -> str:
    """Return Markdown of a rubric: what gives points, and sample answers with their points."""
    lines = ["| points | for |", "|---|---|"]
    lines += [f"| {item['points']:g} | {item['what']} |" for item in rubric["item"]]
    samples = [f"**{one['points']:g} points**: “{one['answer']}” ({one['why']})"
               for one in rubric["sample"]]  # fmt: skip
    return "\n\n".join(["\n".join(lines), *samples])


def project(name: str, *, teacher: bool) -> str:
    """Return HTML of a project's description; the teacher's version adds findings and traps."""
    path = HERE / "projects" / f"{name}.md"
    if not path.exists():
        known = ", ".join(projects())
        raise ValueError(f"there is no project {name!r}; there are {known}.")
    text = path.read_text(encoding="utf8")
    return _markdown_to_html(text if teacher else text.partition("## What can be found")[0])


def projects() -> list[str]:
    """Return the names of all projects."""
    return sorted(path.stem for path in HERE.glob("projects/*.md"))


# ------------------------------------------------------------------------------- printing


def write_papers(papers: dict[str, str], out: Path) -> list[Path]:
    """Write self-contained HTML pages, and print each to PDF."""
    typeset = _import_typeset()
    with typeset.browser_page() as page:
        for name, body in papers.items():
            typeset.typeset(page, name, STYLE, body, out / f"{name}.html")
            typeset.print_pdf(page, out / f"{name}.pdf")
    return [out / f"{name}.pdf" for name in papers]
