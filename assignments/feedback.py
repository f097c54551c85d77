"""A page for each submission: what was handed in, what it earned, and what the checks said.

Whatever comes from a student is text on the page, never HTML; the page allows no script at all.
A check appears by its name and its message, its code does not.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

from examine import Row
from marks import key_of, write_whole

HEAD = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title><style>
body {{ max-width: 60rem; margin: 2rem auto; padding: 0 1rem; font-family: sans-serif; }}
pre {{ background: #f4f4f4; padding: .6rem; white-space: pre-wrap; overflow-wrap: anywhere; }}
pre.text {{ background: none; font-family: inherit; }}
.lost {{ border-left: .4rem solid #b00020; padding-left: .6rem; }}
.won {{ border-left: .4rem solid #1b6e3c; padding-left: .6rem; }}
.open {{ border-left: .4rem solid #777; padding-left: .6rem; }}
table {{ border-collapse: collapse; }} td, th {{ padding: .2rem .8rem; text-align: left; }}
</style></head><body>
"""


def write_pages(folder: Path, results: list[dict], marks: dict) -> None:
    """Write STUDENT/ASSIGNMENT/ASSIGNMENT.html for each result."""
    for result in results:
        name = result["assignment"]
        path = folder / result["student"] / name / f"{name}.html"
        text = page(result, marks)
        if not path.exists() or path.read_text(encoding="utf8") != text:
            write_whole(path, text)


def page(result: dict, marks: dict) -> str:
    """The page of one submission; the rows carry the points given by hand."""
    rows: list[Row] = result["rows"]
    title = escape(f"{result['assignment']}, {result['student']}")
    parts = [HEAD.format(title=title), f"<h1>{title}</h1>", _summary(rows)]
    by_task = {row.task: row for row in rows}
    for cell in result["cells"]:
        row = by_task.get(cell["task"])
        parts.append(_graded(row, marks) if row else _cell(cell))
    return "\n".join([*parts, "</body></html>\n"])


def _summary(rows: list[Row]) -> str:
    earned, most = sum(row.points for row in rows), sum(row.max for row in rows)
    states = sorted({row.state for row in rows} - {"graded"})
    lines = [f"<p><strong>{earned:g} of {most:g} points</strong></p>"]
    lines += [f"<p>{escape(state)}</p>" for state in states]
    lines += ["<table><tr><th>check</th><th>points</th><th>of</th></tr>"]
    lines += [
        f"<tr><td>{escape(row.task)}</td><td>{row.points:g}</td><td>{row.max:g}</td></tr>"
        for row in rows
    ]
    return "\n".join([*lines, "</table>"])


def _graded(row: Row, marks: dict) -> str:
    waits = row.state == "awaits manual grading"
    kind = "open" if waits else "lost" if row.points < row.max else "won"
    points = "is read by your teacher" if waits else f"{row.points:g} of {row.max:g}"
    parts = [f'<div class="{kind}"><p><strong>{escape(row.task)}</strong>: {points}</p>']
    if row.answer:
        parts.append(f'<pre class="text">{escape(row.answer)}</pre>')
        comment = marks.get(key_of(row), {}).get("comment")
        parts += [f"<p><em>{escape(comment)}</em></p>"] if comment else []
    elif row.message:
        parts.append(f"<p>{escape(row.message)}</p>")
    return "\n".join([*parts, "</div>"])


def _cell(cell: dict) -> str:
    kind = ' class="text"' if cell["kind"] != "code" else ""
    parts = [f"<pre{kind}>{escape(cell['source'])}</pre>"]
    if cell.get("printed"):
        parts.append(f"<pre>{escape(cell['printed'])}</pre>")
    if cell.get("error"):
        parts.append(f'<p class="lost">{escape(cell["error"])}</p>')
    return "\n".join(parts)
