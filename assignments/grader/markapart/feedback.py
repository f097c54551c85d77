"""Write pages from results: feedback for each submission, and a page for marking all answers.

The templates are written in Jinja, which escapes all texts. Markdown of students is rendered by
nbconvert and cleaned by bleach, so that no HTML of a student can run a script. Formulas and
attached pictures become images in the page. Only our script runs. Pages show the name and the
message of a check, but not its code.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import io
import itertools
import re
from pathlib import Path

import bleach
import jinja2
from markupsafe import Markup
from matplotlib import mathtext, rc_context
from matplotlib.font_manager import FontProperties
from nbconvert.filters import markdown2html

from markapart.examine import Row, TimeUp, limit_time, tally
from markapart.marks import key_of, write_whole
from markapart.settings import PROGRAM
from markapart.sources import (
    ATTACHED_PICTURE,
    grade_id,
    model_answer,
    read_released,
    rubric,
    section_of,
    source,
)

FORMULA = re.compile(r"\$\$([^$]{1,500})\$\$|(?<![\\$`])\$([^$\n`]{1,300})\$")
TAGS = {*bleach.ALLOWED_TAGS, "p", "br", "hr", "pre", "div", "span", "sub", "sup", "del", "table",
        "thead", "tbody", "tr", "th", "td", *(f"h{n}" for n in range(1, 7))}  # fmt: skip
MAX_SECONDS = 5  # Limit for rendering one answer.
ANSWERS_SCRIPT = (PROGRAM / "answers.js").read_text(encoding="utf8")
NOT_MARKED = {"points": None, "comment": ""}


def write_pages(out: Path, results: list[dict], marks: dict, lines: list[dict], book: str) -> None:
    """Write a page of feedback for each result, and answers.html for marking."""
    texts = {(line["student"], line["assignment"]): line["says"] for line in lines}
    for result in results:
        key = result["student"], result["assignment"]
        _write_if_changed(
            feedback_path(out / "feedback", *key),
            feedback_page(result, marks, texts.get(key, ""), book),
        )
    _write_if_changed(out / "answers.html", answers_page(results, marks))


def feedback_path(folder: Path, student: str, name: str) -> Path:
    """Return the path of the feedback page of a submission."""
    return folder / student / name / f"{name}.html"


def _write_if_changed(path: Path, text: str) -> None:
    if not path.exists() or path.read_text(encoding="utf8") != text:
        write_whole(path, text)


def feedback_page(result: dict, marks: dict, says: str = "", book: str = "") -> str:
    """Return the feedback page of a submission; its rows include points given by hand."""
    rows: list[Row] = result["rows"]
    comments = {
        row.task: marks.get(key_of(row), NOT_MARKED)["comment"] for row in rows if row.answer
    }
    return _templates().get_template("feedback.html").render(
        title=f"{result['assignment']}, {result['student']}", tally=tally(rows), comments=comments,
        rows={row.task: row for row in rows}, cells=result["cells"], says=says,
        check_title=check_title, section_of=section_of, name=result["assignment"], book=book,
    )  # fmt: skip


def answers_page(results: list[dict], marks: dict) -> str:
    """Return the page for marking: each question with its model answer, rubric and all answers.

    Answers have no names and are in random order. Each has checkboxes, points and a comment.
    """
    questions: dict[tuple[str, str], list[tuple]] = {}
    for result in results:
        pictures = {cell["task"]: cell.get("attachments", {}) for cell in result["cells"]}
        for row in result["rows"]:
            if row.answer and row.state != f"not graded: {row.message}":
                question = questions.setdefault((row.assignment, row.task), [])
                question.append((key_of(row), row, pictures.get(row.task, {})))
    keys = [key for answers in questions.values() for key, *_ in answers]
    digest = base64.b64encode(hashlib.sha256(ANSWERS_SCRIPT.encode()).digest()).decode()
    return _templates().get_template("answers.html").render(
        title="Answers", trusted=f"'sha256-{digest}'", script=ANSWERS_SCRIPT, asked=_question_text,
        model=model_answer, rubrics=rubric,
        marks={key: marks.get(key, NOT_MARKED) for key in keys},
        questions=[(which, sorted(questions[which])) for which in sorted(questions)],
    )  # fmt: skip


@functools.cache
def _templates() -> jinja2.Environment:
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(PROGRAM), autoescape=True, trim_blocks=True,
    )  # fmt: skip
    templates.filters["rich"] = render
    return templates


@functools.cache
def _question_text(name: str, task: str) -> str:
    cells = read_released(name).cells
    (place,) = [n for n, cell in enumerate(cells) if grade_id(cell) == task]
    return cells[place - 1].source


@functools.cache
def check_title(name: str, task: str) -> str:
    """Return the title of a check: the first sentence of its comment, or its name without one."""
    cell = next((cell for cell in source(name).cells if grade_id(cell) == task), None)
    lines = cell.source.splitlines() if cell else []
    comment = list(itertools.takewhile(lambda line: line.startswith("# "), lines))
    text = " ".join(line[2:] for line in comment).partition(": ")[2]
    return re.split(r"(?<=[.?]) ", text)[0].rstrip(".") or task


# ------------------------------------------------------------------------------ rendering


def render(text: str, attachments: dict | None = None) -> Markup:
    """Convert a student's Markdown, with pictures and formulas, to safe HTML."""
    try:
        with limit_time(MAX_SECONDS, "this takes too long"):
            return Markup(_render_with_drawings(text, attachments or {}))
    except (TimeUp, Exception):
        return Markup("<pre>{}</pre>").format(text)


def _render_with_drawings(text: str, attachments: dict) -> str:
    drawn: list[str] = []

    def insert_placeholder(drawing: str | None, match: re.Match) -> str:
        if drawing is None:
            return match[0]
        drawn.append(drawing)
        return f"DRAWING{len(drawn) - 1}HERE"

    text = ATTACHED_PICTURE.sub(
        lambda match: insert_placeholder(_image_tag(attachments.get(match[1])), match), text
    )
    text = FORMULA.sub(
        lambda match: insert_placeholder(_formula_image(match[1] or match[2]), match), text
    )
    shown = bleach.clean(markdown2html(text), TAGS)
    return re.sub(r"DRAWING(\d{1,6})HERE",
                  lambda match: drawn[int(match[1])] if int(match[1]) < len(drawn) else match[0],
                  shown)  # fmt: skip


def _image_tag(kinds: dict | None) -> str | None:
    for kind, content in (kinds or {}).items():
        if kind in ("image/png", "image/jpeg", "image/gif", "image/webp"):
            content = base64.b64encode(base64.b64decode(content)).decode()
            return f'<img src="data:{kind};base64,{content}" alt="attached picture">'
    return None


@functools.lru_cache(maxsize=10_000)
def _formula_image(tex: str) -> str | None:
    """Return an image of a formula, or None if Matplotlib cannot typeset it."""
    drawing = io.BytesIO()
    try:
        with rc_context({"savefig.transparent": True}):
            size = FontProperties(size=12)
            mathtext.math_to_image(f"${' '.join(tex.split())}$", drawing, prop=size, format="svg")
    except (ValueError, RuntimeError):
        return None
    content = base64.b64encode(drawing.getvalue()).decode()
    return f'<img class="formula" src="data:image/svg+xml;base64,{content}" alt="a formula">'
