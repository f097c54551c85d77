"""Store the points that a teacher gives by hand in a file that grading never overwrites.

``marks.json`` contains a mark for each (student, assignment, task, answer). Its key is a word that
spreadsheets do not change. A teacher types marks of answers into ``open_questions.csv``, and marks
that replace those of checks into ``overrides.csv``, with a reason. Both sheets are merged into
marks.json; an empty cell changes nothing. A line that cannot be entered is reported and stored.
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
    """A line of a sheet that could not be entered, with the reason."""

    line: int
    why: str
    row: dict


def key_of(row: Row | dict) -> str:
    """Return the key of an answer, or of a check and the code that it tests.

    The key stays the same when a spreadsheet saves the sheet, and changes with the answer or code.
    """
    given = row if isinstance(row, dict) else row._asdict()
    written = given["answer"] or given.get("code", "")
    words = " ".join(unicodedata.normalize("NFC", str(written)).split())
    text = "\0".join([*(str(given[name]) for name in ("student", "assignment", "task")), words])
    # Without a letter at its start, a spreadsheet might read the key as a number.
    return "k" + hashlib.sha256(text.encode()).hexdigest()[:20]


def load_marks(out: Path) -> dict[str, dict]:
    """Return the stored marks as {key: mark}."""
    return read_json(out / "marks.json", {})


def enter_sheet(out: Path, rows: Iterable[Row], sheet: Path) -> tuple[list[str], list[Problem]]:
    """Enter the points of a sheet into the marks; return changes and lines with problems.

    ``rows`` are all answers and checks. A line is identified by its key, even if the student,
    assignment or answer is spelled differently, or by these three if it has no key.
    """
    marks, answers = load_marks(out), {key_of(row): row for row in rows}
    changes, problems = [], []
    for line, given in read_sheet(sheet):
        if not given["points"] and not given["comment"]:
            continue
        key = given["key"] if given["key"] in answers | marks else key_of(given)
        try:
            change = _enter_line(marks, key, answers.get(key), given)
        except ValueError as error:
            problems.append(Problem(line, str(error), given))
        else:
            changes += [change] if change else []
    if changes:
        back_up(out, "marks.json")
        write_json(out / "marks.json", marks)
    return changes, problems


def _enter_line(marks: dict, key: str, row: Row | None, given: dict) -> str:
    """Enter a line of a sheet into the marks; return a text on the change, or ""."""
    if row is None and key not in marks:
        raise ValueError(
            "no answer has this key; it was marked on another sheet, or key and answer were changed"
        )
    old = marks.get(key, {})
    where = row or Row(**{name: old.get(name, "") for name in Row._fields[:3]},
                       points=0, max=old["max"], state="")  # fmt: skip
    points = _parse_points(given["points"], where.max) if given["points"] else old.get("points")
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


def _parse_points(text: str, most: float) -> float:
    try:
        points = float(text.replace(",", "."))
    except ValueError:
        raise ValueError(f"points are {text!r}, which is no number") from None
    if not 0 <= points <= most:
        raise ValueError(f"{points:g} points, but there are 0 to {most:g}")
    return points


def apply_mark(row: Row, marks: dict[str, dict]) -> Row:
    """Return the row of an answer or check with the points that were entered by hand."""
    mark = marks.get(key_of(row), {})
    if mark.get("points") is None or (row.answer and row.state.startswith("not graded")):
        return row
    message = row.message if row.answer else f"{BY_HAND}: {mark['comment']}"
    return row._replace(points=mark["points"], state="graded", message=message)


def waiting_overrides(rows: Iterable[Row], marks: dict[str, dict]) -> list[str]:
    """Return a note for each check with points given by hand for an earlier version of the code."""
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
    """Return the (number, line) of a sheet, where each line has all COLUMNS."""
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
    """Read a table saved by Excel or LibreOffice; column names become lower case."""
    csv.field_size_limit(2**30)
    text = _decode(path.read_bytes())
    if text.startswith("sep="):
        text = text.partition("\n")[2]
    header = text.partition("\n")[0]
    delimiter = max(";\t,", key=header.count)
    return [
        {
            str(name).strip().strip('"').lower(): _undo_escape(cell or "")
            for name, cell in row.items()
        }
        for row in csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
    ]


def _decode(content: bytes) -> str:
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return content.decode("utf-16")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", errors="replace")


def _undo_escape(cell: str) -> str:
    """Undo ``escape_formula``."""
    cell = cell.strip() if isinstance(cell, str) else ""
    return cell[1:] if cell.startswith("'") and cell[1:2] in FORMULA else cell


def escape_formula(cell):
    """Return the content of a cell so that no spreadsheet reads it as a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA) else cell


def write_sheets(out: Path, rows: Iterable[Row], problems: Iterable[Problem] = ()) -> None:
    """Write the sheets of all answers and checks, with the points entered so far."""
    marks = load_marks(out)
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
            # The mark was given for an earlier version of the student's answer or code.
            old = "; ".join(by_question[row[:3]])
            line["before"] = old if row.answer else f"{line['before']} (for other code: {old})"
        lines[SHEETS[0] if row.answer else SHEETS[1]].append(line)
    for name, table in lines.items():
        back_up(out, name)
        write_table(out / name, COLUMNS, table)


def keep_unmatched(out: Path, problems: list[Problem]) -> Path:
    """Append lines that could not be entered to unmatched.csv, without duplicates."""
    path = out / "unmatched.csv"
    lines = [row for _, row in read_sheet(path)] if path.exists() else []
    lines += [{**problem.row, "before": problem.why} for problem in problems]
    texts = {json.dumps([line[name] for name in COLUMNS]): line for line in lines}
    write_table(path, COLUMNS, texts.values())
    return path


def write_table(path: Path, columns: list[str], rows: Iterable[dict]) -> None:
    """Write a table as CSV in UTF-8 with the byte-order mark that Excel needs."""
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, columns, extrasaction="ignore", restval="")
    writer.writeheader()
    writer.writerows({name: escape_formula(cell) for name, cell in row.items()} for row in rows)
    write_whole(path, file.getvalue(), "utf-8-sig")


def read_json(path: Path, default):
    """Read a JSON file; return the default if the file does not exist."""
    return json.loads(path.read_text(encoding="utf8")) if path.exists() else default


def write_json(path: Path, value) -> None:
    """Write a value as indented JSON."""
    write_whole(path, json.dumps(value, indent=1, ensure_ascii=False))


def write_whole(path: Path, text: str, encoding: str = "utf8") -> None:
    """Replace a file in one step, so that an interruption cannot leave half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    with part.open("w", encoding=encoding, errors="replace", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def back_up(out: Path, name: str) -> None:
    """Copy a file to backups/, unless a backup with the same content exists."""
    path = out / name
    if path.exists():
        digest = hashlib.sha256(path.read_bytes()).hexdigest()[:8]
        (out / "backups").mkdir(exist_ok=True)
        if not list((out / "backups").glob(f"*-{digest}-{name}")):
            time = datetime.datetime.now().strftime("%Y-%m-%d-%H%M%S")
            shutil.copy2(path, out / "backups" / f"{time}-{digest}-{name}")


def _now() -> str:
    return datetime.datetime.now().astimezone().isoformat(timespec="seconds")
