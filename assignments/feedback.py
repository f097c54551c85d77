"""Pages made from results: feedback for each submission, and all answers to read and mark.

What a student wrote is rendered by nbconvert's filters, which leave no HTML in it that could do
anything; formulas and attached pictures become drawings in the page. No script runs but ours. A
check appears by its name and its message, its code does not.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import io
import re
from html import escape
from pathlib import Path

import bleach
from examine import Row, TimeUp, at_most
from marks import key_of, write_whole
from matplotlib import mathtext
from matplotlib.font_manager import FontProperties
from nbconvert.filters import markdown2html
from sources import HERE, grade_id, released

HEAD = (HERE / "page.html").read_text(encoding="utf8")
PICTURE = re.compile(r"!\[[^\]\n]{0,200}\]\(attachment:([^)\n]{1,200})\)")
FORMULA = re.compile(r"\$\$([^$]{1,500})\$\$|(?<![\\$`])\$([^$\n`]{1,300})\$")
TAGS = {*bleach.ALLOWED_TAGS, "p", "br", "hr", "pre", "div", "span", "sub", "sup", "del", "table",
        "thead", "tbody", "tr", "th", "td", *(f"h{n}" for n in range(1, 7))}  # fmt: skip
SECONDS = 5  # that the answer of one student may take to be rendered
SAVE = (HERE / "answers.js").read_text(encoding="utf8")


def write_pages(out: Path, results: list[dict], marks: dict) -> None:
    """Write a page for each result, and answers.html."""
    for result in results:
        path = page_of(out / "feedback", result["student"], result["assignment"])
        _write(path, page(result, marks))
    _write(out / "answers.html", answers_page(results, marks))


def page_of(folder: Path, student: str, name: str) -> Path:
    """Where the feedback for a submission lies."""
    return folder / student / name / f"{name}.html"


def _write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text(encoding="utf8") != text:
        write_whole(path, text)


# ------------------------------------------------------------------------------ feedback


def page(result: dict, marks: dict) -> str:
    """The page of one submission; the rows carry the points given by hand."""
    rows: list[Row] = result["rows"]
    title = escape(f"{result['assignment']}, {result['student']}")
    lost = [_graded(row, marks, {}) for row in rows if row.points < row.max and not row.answer]
    parts = [HEAD.format(title=title, script="'none'"), f"<h1>{title}</h1>", _summary(rows), *lost]
    by_task = {row.task: row for row in rows}
    parts.append("<hr><h2>What you handed in</h2>" if result["cells"] else "")
    for cell in result["cells"]:
        row = by_task.get(cell["task"])
        parts.append(_graded(row, marks, cell.get("attachments", {})) if row else _cell(cell))
    return "\n".join([*parts, "</body></html>\n"])


def _summary(rows: list[Row]) -> str:
    earned, most = sum(row.points for row in rows), sum(row.max for row in rows)
    states = sorted({row.state for row in rows} - {"graded"})
    lines = [f"<p><strong>{earned:g} of {most:g} points</strong></p>"]
    return "\n".join([*lines, *(f"<p>{escape(state)}</p>" for state in states)])


def _graded(row: Row, marks: dict, attachments: dict) -> str:
    waits = row.state == "awaits manual grading"
    kind = "open" if waits else "lost" if row.points < row.max else "won"
    points = "is read by your teacher" if waits else f"{row.points:g} of {row.max:g}"
    parts = [f'<div class="{kind}"><p><strong>{escape(row.task)}</strong>: {points}</p>']
    comment = marks.get(key_of(row), {}).get("comment") if row.answer else ""
    parts.append(rich(row.answer, attachments) if row.answer else "")
    parts += [f"<p><em>{escape(text)}</em></p>" for text in (comment, row.message) if text]
    return "\n".join([*filter(None, parts), "</div>"])


def _cell(cell: dict) -> str:
    if cell["kind"] != "code":
        return rich(cell["source"], cell.get("attachments", {}))
    parts = [f"<pre>{escape(cell['source'])}</pre>"]
    if cell.get("printed"):
        parts.append(f"<pre>{escape(cell['printed'])}</pre>")
    if cell.get("error"):
        parts.append(f'<p class="lost">{escape(cell["error"])}</p>')
    return "\n".join(parts)


# ------------------------------------------------------------------------------- answers


def answers_page(results: list[dict], marks: dict) -> str:
    """All answers, question after question, without names and in no order; boxes for points."""
    digest = base64.b64encode(hashlib.sha256(SAVE.encode()).digest()).decode()
    parts = [HEAD.format(title="Answers", script=f"'sha256-{digest}'"), "<h1>Answers</h1>"]
    parts.append("<p>Save what you have filled in, then: course.py mark marks.csv</p>")
    by_question: dict[tuple[str, str], list[tuple]] = {}
    for result in results:
        pictures = {cell["task"]: cell.get("attachments", {}) for cell in result["cells"]}
        for row in result["rows"]:
            if row.answer and row.state != f"not graded: {row.message}":
                question = by_question.setdefault((row.assignment, row.task), [])
                question.append((key_of(row), row, pictures.get(row.task, {})))
    for (name, task), answers in sorted(by_question.items()):
        parts.append(f"<h2>{name}, {task}</h2>{_question(name, task)}")
        parts += [_answer(*answer, marks) for answer in sorted(answers, key=lambda one: one[0])]
    parts.append("<p><button>Save as marks.csv</button></p>")
    return "\n".join([*parts, f"<script>{SAVE}</script></body></html>\n"])


@functools.cache
def _question(name: str, task: str) -> str:
    cells = released(name).cells
    (place,) = [n for n, cell in enumerate(cells) if grade_id(cell) == task]
    return rich(cells[place - 1].source)


def _answer(key: str, row: Row, pictures: dict, marks: dict) -> str:
    mark = {"points": None, "comment": ""} | marks.get(key, {})
    points = "" if mark["points"] is None else f"{mark['points']:g}"
    return (
        f'<div class="open" data-key="{key}">{rich(row.answer, pictures)}\n'
        f'<p><label>Points, 0 to {row.max:g}: <input inputmode="decimal" value="{points}"></label>'
        f"</p><label>Comment <textarea>{escape(mark['comment'])}</textarea></label></div>"
    )


# ------------------------------------------------------------------------------ rendering


def rich(text: str, attachments: dict | None = None) -> str:
    """HTML of a student's Markdown, with its pictures and formulas, and nothing that acts."""
    try:
        with at_most(SECONDS, "this takes too long"):
            return _rendered(text, attachments or {})
    except (TimeUp, Exception):
        return f"<pre>{escape(text)}</pre>"


def _rendered(text: str, attachments: dict) -> str:
    drawn: list[str] = []

    def keep(drawing: str | None, match: re.Match) -> str:
        if drawing is None:
            return match[0]
        drawn.append(drawing)
        return f"DRAWING{len(drawn) - 1}HERE"

    text = PICTURE.sub(lambda match: keep(_picture(attachments.get(match[1])), match), text)
    text = FORMULA.sub(lambda match: keep(_formula(match[1] or match[2]), match), text)
    shown = bleach.clean(markdown2html(text), TAGS)
    return re.sub(r"DRAWING(\d{1,6})HERE",
                  lambda match: drawn[int(match[1])] if int(match[1]) < len(drawn) else match[0],
                  shown)  # fmt: skip


def _picture(kinds: dict | None) -> str | None:
    for kind, content in (kinds or {}).items():
        if kind in ("image/png", "image/jpeg", "image/gif", "image/webp"):
            content = base64.b64encode(base64.b64decode(content)).decode()
            return f'<img src="data:{kind};base64,{content}" alt="attached picture">'
    return None


@functools.lru_cache(maxsize=10_000)
def _formula(tex: str) -> str | None:
    """A drawing of a formula; nothing where Matplotlib does not know how to set it."""
    drawing = io.BytesIO()
    try:
        size = FontProperties(size=12)
        mathtext.math_to_image(f"${' '.join(tex.split())}$", drawing, prop=size, format="svg")
    except (ValueError, RuntimeError):
        return None
    content = base64.b64encode(drawing.getvalue()).decode()
    return f'<img class="formula" src="data:image/svg+xml;base64,{content}" alt="a formula">'
