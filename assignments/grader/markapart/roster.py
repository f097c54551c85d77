"""Read the students of a course and the times of their submissions from Moodle or Canvas.

The grading worksheet of Moodle (*Download grading worksheet*) has a line for each participant of
one assignment, with the time of the submission. The gradebook export of Canvas has a line for each
student. Both include students who handed in nothing; they get a row with 0 points.
"""

from __future__ import annotations

import contextlib
import datetime
import re
from pathlib import Path

from markapart.marks import read_json, read_table, write_json

HOUR_FORMATS = ["%A, %d %B %Y, %I:%M %p", "%A, %d %B %Y, %H:%M", "%d %B %Y, %I:%M %p",
                "%d/%m/%Y, %H:%M", "%Y-%m-%d %H:%M"]  # fmt: skip


def read_worksheet(path: Path) -> dict[str, dict]:
    """Return the students of a table, keyed by the names that their submissions have.

    A student is a dictionary with the ``platform``. For Moodle it also has the time of the
    submission as ``handed_in`` (empty if missing or of unknown format), and ``modified``, a column
    that an imported worksheet must repeat.
    """
    rows = read_table(path)
    columns = set(rows[0]) if rows else set()
    if "identifier" in columns and "full name" in columns:
        return dict(_read_moodle_row(row) for row in rows)
    if {"student", "id"} <= columns:
        return {f"{_canvas_name(row['student'])}_{row['id']}": {"platform": "canvas"}
                for row in rows if row["id"].isdigit()}  # fmt: skip
    raise ValueError(
        f"{path} is neither Moodle's grading worksheet, with the columns Identifier and Full name, "
        "nor Canvas's gradebook export, with Student and ID; export one of these again."
    )


def _read_moodle_row(row: dict) -> tuple[str, dict]:
    number = re.sub(r"\D", "", row["identifier"])
    return f"{row['full name'] or 'Participant'}_{number}", {
        "platform": "moodle", "handed_in": _parse_hour(row.get("last modified (submission)", "")),
        "modified": row.get("last modified (grade)", ""),
    }  # fmt: skip


def _parse_hour(text: str) -> str:
    for form in HOUR_FORMATS:
        with contextlib.suppress(ValueError):
            moment = datetime.datetime.strptime(text.strip(), form)
            return moment.astimezone().isoformat(timespec="minutes")
    return ""


def _canvas_name(name: str) -> str:
    """Return a name as Canvas writes it in file names: "lovelaceada" for "Lovelace, Ada"."""
    return re.sub(r"[\W_]+", "", name).lower()


def load_roster(out: Path) -> dict[str, dict[str, dict]]:
    """Return the stored students of each assignment."""
    return read_json(out / "roster.json", {})


def remember_roster(out: Path, names: list[str], sheets: list[str]) -> None:
    """Read tables, given as FILE or ASSIGNMENT=FILE, and store their students.

    A table given as FILE belongs to all assignments that are graded now. A table of Moodle belongs
    to one assignment only.
    """
    roster = load_roster(out)
    for sheet in sheets:
        name, _, file = sheet.rpartition("=")
        if name and name not in names:
            raise ValueError(f"{sheet!r} names {name!r}, but {', '.join(names)} are graded here.")
        people = read_worksheet(Path(file))
        moodle = any(one["platform"] == "moodle" for one in people.values())
        if not name and moodle and len(names) > 1:
            raise ValueError(
                f"{file} is about one assignment, and {', '.join(names)} are graded here; say "
                f"--worksheet {names[0]}={file}."
            )
        for one in [name] if name else names:
            roster[one] = roster.get(one, {}) | people
    if sheets:
        write_json(out / "roster.json", roster)


def find_in_roster(student: str, people: dict[str, dict]) -> str | None:
    """Return the name in the roster that has the same number as a student, or None."""
    number = student.rpartition("_")[2]
    ending = f"_{number}" if number.isdigit() else "\0"
    return next((one for one in people if one == student or one.endswith(ending)), None)
