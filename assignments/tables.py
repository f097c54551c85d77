"""Tables made from results: checks, totals with days late, and what Canvas and Moodle import."""

from __future__ import annotations

import datetime
import json
import math
import re
from pathlib import Path

from duplicates import ALIKE, alike
from examine import Row
from marks import write_table, write_whole

GRADES = ["student", "assignment", "task", "points", "max", "state", "message"]
SUBMISSIONS = ["student", "assignment", "points", "of", "state", "handed_in", "days_late",
               "after_lateness", "notes", "kept_apart", "file"]  # fmt: skip
CANVAS = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
# Without the last modification Moodle refuses a sheet.
MOODLE = ["Identifier", "Full name", "Grade", "Maximum Grade", "Last modified (grade)",
          "Feedback comments"]  # fmt: skip
LATE = re.compile(r"\s*(\d+(?:[.,]\d+)?)\s*(%|points?)\s*(?:a|per)\s*day\s*")


def write_tables(out: Path, results: list[dict]) -> None:
    """Write grades, submissions, totals, what is alike, and what Canvas and Moodle import."""
    rows = [row._asdict() for result in results for row in result["rows"]]
    write_table(out / "grades.csv", GRADES, rows)
    policy = load_policy(out)
    lines = [_line(result, policy) for result in results]
    write_table(out / "alike.csv", ALIKE, alike(results))
    write_table(out / "submissions.csv", SUBMISSIONS, lines)
    names = sorted({line["assignment"] for line in lines})
    totals = [_total(student, lines, names) for student in
              dict.fromkeys(line["student"] for line in lines)]  # fmt: skip
    write_table(out / "totals.csv", ["student", *names, "total", "of", "open"], totals)
    most = {line["assignment"]: line["of"] for line in lines}
    _write_canvas(out, totals, {name: most[name] for name in names})
    for name in names:
        _write_moodle(out, [line for line in lines if line["assignment"] == name], name)


def _line(result: dict, policy: dict) -> dict:
    rows: list[Row] = result["rows"]
    student, name = result["student"], result["assignment"]
    points, days = sum(row.points for row in rows), days_late(result, policy)
    return {
        "student": student, "assignment": name, "points": points,
        "of": sum(row.max for row in rows),
        "state": "; ".join(sorted({row.state for row in rows} - {"graded"})) or "graded",
        "handed_in": result["handed_in"], "days_late": days,
        "after_lateness": after_lateness(points, days, policy),
        "notes": "; ".join(result["notes"]), "kept_apart": result["kept_apart"],
        "file": result["file"],
    }  # fmt: skip


def _total(student: str, lines: list[dict], names: list[str]) -> dict:
    own = {line["assignment"]: line for line in lines if line["student"] == student}
    return {
        "student": student,
        **{name: own[name]["after_lateness"] for name in names if name in own},
        "total": sum(line["after_lateness"] for line in own.values()),
        "of": sum(next(x["of"] for x in lines if x["assignment"] == name) for name in names),
        "open": "; ".join(name for name, line in own.items() if line["state"] != "graded"),
    }


# ------------------------------------------------------------------------------ lateness


def load_policy(out: Path) -> dict:
    """When each assignment is due, and what a day costs; empty if nobody has said so."""
    path = out / "policy.json"
    return json.loads(path.read_text(encoding="utf8")) if path.exists() else {}


def set_policy(out: Path, names: list[str], due: str | None, late: str | None) -> None:
    """Remember when assignments are due, and what being late costs."""
    policy = load_policy(out)
    if due is not None:
        policy["due"] = policy.get("due", {}) | dict.fromkeys(names, _moment(due))
    if late is not None:
        if not LATE.fullmatch(late):
            raise ValueError(
                f'late is {late!r}; say --late "10 % a day" or --late "2 points a day".'
            )
        policy["late"] = late
    if due is not None or late is not None:
        write_whole(out / "policy.json", json.dumps(policy, indent=1))


def _moment(text: str) -> str:
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"due is {text!r}; say --due 2026-11-05 or --due 2026-11-05T18:00."
        ) from None
    if "T" not in text and " " not in text:  # a day lasts until it is over
        moment += datetime.timedelta(days=1)
    return moment.astimezone().isoformat(timespec="minutes")


def days_late(result: dict, policy: dict) -> int:
    """Days begun after the assignment was due."""
    due = policy.get("due", {}).get(result["assignment"])
    if due is None:
        return 0
    late = datetime.datetime.fromisoformat(result["handed_in"]) - datetime.datetime.fromisoformat(
        due
    )
    return max(0, math.ceil(late.total_seconds() / 86400))


def after_lateness(points: float, days: int, policy: dict) -> float:
    """Points less what the days cost, in percent of what was earned or in points; not below 0."""
    if not days or "late" not in policy:
        return points
    number, unit = LATE.fullmatch(policy["late"]).groups()
    cost = float(number.replace(",", "."))
    left = points * (1 - cost / 100 * days) if unit == "%" else points - cost * days
    return round(max(0.0, left), 2)


# ------------------------------------------------------------------------------- exports


def _write_canvas(out: Path, totals: list[dict], most: dict[str, float]) -> None:
    """A gradebook for Canvas: students by their number, an assignment a column."""
    lines = [most | {"Student": "    Points Possible"}]
    for total in totals:
        match = re.fullmatch(r"(.+)_(\d+)", total["student"])
        student, number = match.groups() if match else (total["student"], "")
        lines.append(total | {"Student": student, "ID": number})
    write_table(out / "canvas.csv", [*CANVAS, *most], lines)


def _write_moodle(out: Path, lines: list[dict], name: str) -> None:
    """A grading worksheet for one assignment of Moodle: participants by their number."""
    sheet = []
    for line in lines:
        match = re.search(r"([^/]+)_(\d+)_assignsubmission_file", line["file"])
        full, number = match.groups() if match else (line["student"], "")
        sheet.append({
            "Identifier": f"Participant {number}" if number else "", "Full name": full,
            "Grade": line["after_lateness"], "Maximum Grade": line["of"],
            "Last modified (grade)": "",
            "Feedback comments": "" if line["state"] == "graded" else line["state"],
        })  # fmt: skip
    write_table(out / f"moodle_{name}.csv", MOODLE, sheet)
