"""Keep the points that a teacher gave by hand in a file that no grading overwrites.

``marks.json`` has a mark for each (student, assignment, task, answer), under a key that no
spreadsheet changes. A teacher enters marks in ``open_questions.csv``, or, for checks, with a reason
in ``overrides.csv``. Sheets are merged into the file; an empty cell changes nothing. A line that
cannot be entered is reported and kept.
"""

from __future__ import annotations

import csv
import datetime
import hashlib
import io
import json
import os
import shutil
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from markapart.examine import Row

COLUMNS = ["key", "student", "assignment", "task", "max", "answer", "points", "comment", "before"]
BY_HAND = "points given by your teacher"
SHEETS = ["open_questions.csv", "overrides.csv"]
FORMULA = ("=", "+", "-", "@", "\t", "\r")


class Problem(NamedTuple):
    """A line of a sheet that could not be entered, and the reason."""

    line: int
    why: str
    row: dict


def key_of(row: Row | dict) -> str:
    """Return the name of an answer, or of a check and the code that it is about.

    It is the same after a spreadsheet has saved the sheet, and another one if the answer changed.
    """
    given = row if isinstance(row, dict) else row._asdict()
    written = given["answer"] or given.get("code", "")
    words = " ".join(unicodedata.normalize("NFC", str(written)).split())
    text = "\0".join([*(str(given[name]) for name in ("student", "assignment", "task")), words])
    # The letter at the start keeps spreadsheets from reading the key as a number.
    return "k" + hashlib.sha256(text.encode()).hexdigest()[:20]


def load(out: Path) -> dict[str, dict]:
    """Read the marks, by key."""
    return read_json(out / "marks.json", {})


def enter(out: Path, rows: Iterable[Row], sheet: Path) -> tuple[list[str], list[Problem]]:
    """Merge a sheet into the marks; return the changes and the lines that could not be entered.

    ``rows`` are all answers and checks that there are. Lines with another spelling of student,
    assignment or answer are known by their key; lines without a key by these.
    """
    marks, answers = load(out), {key_of(row): row for row in rows}
    changes, problems = [], []
    for line, given in read_sheet(sheet):
        if not given["points"] and not given["comment"]:
            continue
        key = given["key"] if given["key"] in answers | marks else key_of(given)
        try:
            change = _merge(marks, key, answers.get(key), given)
        except ValueError as error:
            problems.append(Problem(line, str(error), given))
        else:
            changes += [change] if change else []
    if changes:
        back_up(out, "marks.json")
        write_json(out / "marks.json", marks)
    return changes, problems


def _merge(marks: dict, key: str, row: Row | None, given: dict) -> str:
    """Enter a line; return what it changed."""
    if row is None and key not in marks:
        raise ValueError(
            "no answer has this key; it was marked on another sheet, or key and answer were changed"
        )
    old = marks.get(key, {})
    where = row or Row(**{name: old.get(name, "") for name in Row._fields[:3]},
                       points=0, max=old["max"], state="")  # fmt: skip
    points = _points(given["points"], where.max) if given["points"] else old.get("points")
    comment = given["comment"] or old.get("comment", "")
    if row is not None and not row.answer and not comment:
        raise ValueError("points of a check are given with a reason, in the column comment")
    if (points, comment) == (old.get("points"), old.get("comment", "")):
        return ""
    marks[key] = {
        "student": where.student, "assignment": where.assignment, "task": where.task,
        "max": where.max, "points": points, "comment": comment, "entered": _now(),
    }  # fmt: skip
    before = "" if old.get("points") in (None, points) else f" (before: {old['points']:g})"
    shown = "a comment" if points is None else f"{points:g} of {where.max:g}"
    return f"{where.student}, {where.assignment}, {where.task}: {shown}{before}"


def _points(text: str, most: float) -> float:
    try:
        points = float(text.replace(",", "."))
    except ValueError:
        raise ValueError(f"points are {text!r}, which is no number") from None
    if not 0 <= points <= most:
        raise ValueError(f"{points:g} points, but there are 0 to {most:g}")
    return points


def apply_mark(row: Row, marks: dict[str, dict]) -> Row:
    """Give an answer or a check the points that were entered for it."""
    mark = marks.get(key_of(row), {})
    if mark.get("points") is None or (row.answer and row.state.startswith("not graded")):
        return row
    message = row.message if row.answer else f"{BY_HAND}: {mark['comment']}"
    return row._replace(points=mark["points"], state="graded", message=message)


def waiting_overrides(rows: Iterable[Row], marks: dict[str, dict]) -> list[str]:
    """Return a note for each check whose points were given by hand, but for other code."""
    given = {(mark["student"], mark["assignment"], mark["task"]): mark for mark in marks.values()}
    return [
        f"{row.task}: {given[row[:3]]['points']:g} points were given for other code; enter them "
        "again in overrides.csv if they still hold"
        for row in rows
        if not row.answer and key_of(row) not in marks
        and given.get(row[:3], {}).get("points") is not None
    ]  # fmt: skip


# -------------------------------------------------------------------------------- sheets


def read_sheet(path: Path) -> list[tuple[int, dict]]:
    """Read a table of answers: lines by number, with all COLUMNS."""
    rows = read_table(path)
    names = set(rows[0]) if rows else {"points", "comment", "key"}
    missing = {"points", "comment"} - names
    if missing or not names & {"key", "answer"}:
        raise ValueError(
            f"{path} has no column {' or '.join(sorted(missing or {'key'}))}: its first line is "
            f"{', '.join(names)[:80]!r}. Keep the first line of the sheet as it was written."
        )
    return [
        (number, {name: row.get(name, "") for name in COLUMNS})
        for number, row in enumerate(rows, start=2)
    ]


def read_table(path: Path) -> list[dict[str, str]]:
    """Read a table as Excel and LibreOffice save it; convert column names to lower case."""
    csv.field_size_limit(2**30)
    text = _decoded(path.read_bytes())
    if text.startswith("sep="):
        text = text.partition("\n")[2]
    header = text.partition("\n")[0]
    delimiter = max(";\t,", key=header.count)
    return [
        {str(name).strip().strip('"').lower(): _plain(cell or "") for name, cell in row.items()}
        for row in csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
    ]


def _decoded(content: bytes) -> str:
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return content.decode("utf-16")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", errors="replace")


def _plain(cell: str) -> str:
    """Undo :func:`safe`."""
    cell = cell.strip() if isinstance(cell, str) else ""
    return cell[1:] if cell.startswith("'") and cell[1:2] in FORMULA else cell


def safe(cell):
    """Return a text that a spreadsheet does not take for a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA) else cell


def write_sheets(out: Path, rows: Iterable[Row], problems: Iterable[Problem] = ()) -> None:
    """Write the sheets of all answers and checks, with the points entered for them so far."""
    marks = load(out)
    wrong = {problem.row["key"]: problem.row for problem in problems}
    by_question: dict[tuple, list[str]] = {}
    for mark in marks.values():
        if mark["points"] is not None:
            question = mark["student"], mark["assignment"], mark["task"]
            by_question.setdefault(question, []).append(f"{mark['points']:g} {mark['comment']}")
    lines: dict[str, list[dict]] = {name: [] for name in SHEETS}
    for row in rows:
        key = key_of(row)
        mark = {"points": None, "comment": ""} | marks.get(key, {}) | wrong.get(key, {})
        line = row._asdict() | {"key": key, "points": mark["points"], "comment": mark["comment"]}
        if not row.answer:
            line["before"] = f"{row.points:g} {row.message or row.state}"
        if key not in marks and row[:3] in by_question:
            # The mark belongs to an earlier answer or to earlier code of this student.
            old = "; ".join(by_question[row[:3]])
            line["before"] = old if row.answer else f"{line['before']} (for other code: {old})"
        lines[SHEETS[0] if row.answer else SHEETS[1]].append(line)
    for name, table in lines.items():
        back_up(out, name)
        write_table(out / name, COLUMNS, table)


def keep_unmatched(out: Path, problems: list[Problem]) -> Path:
    """Append lines that could not be entered to unmatched.csv, each once."""
    path = out / "unmatched.csv"
    lines = [row for _, row in read_sheet(path)] if path.exists() else []
    lines += [{**problem.row, "before": problem.why} for problem in problems]
    texts = {json.dumps([line[name] for name in COLUMNS]): line for line in lines}
    write_table(path, COLUMNS, texts.values())
    return path


def write_table(path: Path, columns: list[str], rows: Iterable[dict]) -> None:
    """Write a table as CSV in UTF-8, with a byte-order mark, which Excel asks for."""
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, columns, extrasaction="ignore", restval="")
    writer.writeheader()
    writer.writerows({name: safe(cell) for name, cell in row.items()} for row in rows)
    write_whole(path, file.getvalue(), "utf-8-sig")


def read_json(path: Path, default):
    """Read what :func:`write_json` wrote; return the default if there is no such file."""
    return json.loads(path.read_text(encoding="utf8")) if path.exists() else default


def write_json(path: Path, value) -> None:
    """Write data as indented JSON."""
    write_whole(path, json.dumps(value, indent=1, ensure_ascii=False))


def write_whole(path: Path, text: str, encoding: str = "utf8") -> None:
    """Write a file in one step, so that an interruption leaves no half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    with part.open("w", encoding=encoding, errors="replace", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def back_up(out: Path, name: str) -> None:
    """Copy a file to backups/ under the time and its digest, unless this content is there."""
    path = out / name
    if path.exists():
        digest = hashlib.sha256(path.read_bytes()).hexdigest()[:8]
        (out / "backups").mkdir(exist_ok=True)
        if not list((out / "backups").glob(f"*-{digest}-{name}")):
            time = datetime.datetime.now().strftime("%Y-%m-%d-%H%M%S")
            shutil.copy2(path, out / "backups" / f"{time}-{digest}-{name}")


def _now() -> str:
    return datetime.datetime.now().astimezone().isoformat(timespec="seconds")
