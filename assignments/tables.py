"""Tables made from results: checks, totals with days late, and what Canvas and Moodle import."""

from __future__ import annotations

import contextlib
import datetime
import math
import re
import zipfile
from collections.abc import Iterable
from pathlib import Path

from examine import Row, tally
from feedback import page_of
from marks import back_up, read_json, read_table, write_json, write_table

GRADES = ["student", "assignment", "task", "points", "max", "state", "message"]
SUBMISSIONS = ["student", "assignment", "points", "of", "state", "handed_in", "due", "days_late",
               "after_lateness", "notes", "kept_apart", "file"]  # fmt: skip
# What a teacher may enter: when it came, and another date when it is due for this student.
HOURS = ["student", "assignment", "platform_says", "handed_in", "due"]
CANVAS = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
# Without the last modification Moodle refuses a sheet.
MOODLE = ["Identifier", "Full name", "Grade", "Maximum Grade", "Last modified (grade)",
          "Feedback comments"]  # fmt: skip
LATE = re.compile(r"\s*(\d+(?:[.,]\d+)?)\s*(%|points?)\s*(?:a|per)\s*day\s*")


def write_tables(out: Path, results: list[dict], others: Iterable[dict] = ()) -> list[str]:
    """Write all tables and archives; return what cannot be understood in hours.csv."""
    rows = [row._asdict() for result in results for row in result["rows"]]
    write_table(out / "grades.csv", GRADES, rows)
    policy, hours = load_policy(out), _load_hours(out)
    problems = _write_hours(out, results, hours)
    lines = [_line(result, policy, hours) for result in results]
    write_table(out / "submissions.csv", SUBMISSIONS, [*lines, *others])
    names = sorted({line["assignment"] for line in lines})
    people = people_of(lines)
    totals = [_total(who, [line for line in lines if people[line["student"]] == who], names, lines)
              for who in dict.fromkeys(people.values())]  # fmt: skip
    write_table(out / "totals.csv", ["student", *names, "total", "of", "open"], totals)
    most = {line["assignment"]: line["of"] for line in lines}
    _write_canvas(out, totals, {name: most[name] for name in names})
    for name in names:
        own = [line for line in lines if line["assignment"] == name]
        _write_moodle(out, own, name)
        _write_archives(out, own, name)
    return problems


def people_of(lines: Iterable[dict]) -> dict[str, str]:
    """Whose the submissions are. Moodle counts anew in each assignment, so there the name tells,
    unless two who handed in the same assignment have it."""
    owners: dict[tuple[str, str], set[str]] = {}
    names = {}
    for line in lines:
        student = line["student"]
        names[student] = student.rpartition("_")[0] if line["platform"] == "moodle" else student
        owners.setdefault((names[student], line["assignment"]), set()).add(student)
    shared = {name for (name, _), students in owners.items() if len(students) > 1}
    return {student: student if name in shared else name for student, name in names.items()}


def _line(result: dict, policy: dict, hours: dict) -> dict:
    rows: list[Row] = result["rows"]
    student, name = result["student"], result["assignment"]
    said = hours.get((student, name), {})
    entered = {column: _hour(said, column) for column in ("handed_in", "due")}
    came = entered["handed_in"] or result["handed_in"]
    due = entered["due"] or policy.get("due", {}).get(name, "")
    days = days_late(came, due, result.get("late", False) and not any(entered.values()))
    points, most, states = tally(rows)
    return {
        "student": student, "assignment": name, "points": points, "of": most,
        "state": states or "graded",
        "handed_in": came, "due": due, "days_late": days,
        "after_lateness": after_lateness(points, days, policy),
        "notes": "; ".join(filter(None, [result.get("remark", ""), *result["notes"]])),
        "kept_apart": result["kept_apart"],
        "file": result["file"], "platform": result.get("platform", ""),
    }  # fmt: skip


def _total(who: str, own: list[dict], names: list[str], lines: list[dict]) -> dict:
    by_name = {line["assignment"]: line for line in own}
    return {
        "student": who,
        **{name: by_name[name]["after_lateness"] for name in names if name in by_name},
        "total": sum(line["after_lateness"] for line in own),
        "of": sum(next(x["of"] for x in lines if x["assignment"] == name) for name in names),
        "open": "; ".join(line["assignment"] for line in own if line["state"] != "graded"),
    }


# ------------------------------------------------------------------------------ hours


def _load_hours(out: Path) -> dict[tuple[str, str], dict]:
    """What the teacher has written, by student and assignment."""
    lines = read_table(out / "hours.csv") if (out / "hours.csv").exists() else []
    lines = [dict.fromkeys(HOURS, "") | line for line in lines]
    return {(line["student"], line["assignment"]): line for line in lines}


def _hour(said: dict, name: str) -> str:
    """An hour that was entered; nothing if it cannot be understood."""
    with contextlib.suppress(ValueError):
        return moment(said[name]) if said.get(name) else ""
    return ""


def _write_hours(out: Path, results: list[dict], hours: dict) -> list[str]:
    """Write a line for each submission, with what was entered for it; return what is no hour."""
    keys = {(result["student"], result["assignment"]): result for result in results}
    lines, problems = [], []
    for key in dict.fromkeys([*keys, *hours]):
        result, said = keys.get(key, {}), hours.get(key, {})
        says = result.get("handed_in") or ("late" if result.get("late") else "")
        lines.append(said | {"student": key[0], "assignment": key[1], "platform_says": says})
        problems += [f"hours.csv: {key[0]}, {key[1]}: {name} is {said[name]!r}; write "
                     "2026-11-05 or 2026-11-05T18:00" for name in ("handed_in", "due")
                     if said.get(name) and not _hour(said, name)]  # fmt: skip
    back_up(out, "hours.csv")
    write_table(out / "hours.csv", HOURS, lines)
    return problems


# ------------------------------------------------------------------------------ lateness


def load_policy(out: Path) -> dict:
    """When each assignment is due, and what a day costs; empty if nobody has said so."""
    return read_json(out / "policy.json", {})


def set_policy(out: Path, names: list[str], due: str | None, late: str | None) -> None:
    """Remember when assignments are due, and what being late costs."""
    policy = load_policy(out)
    if due is not None:
        policy["due"] = policy.get("due", {}) | dict.fromkeys(names, moment(due))
    if late is not None:
        if not LATE.fullmatch(late):
            raise ValueError(
                f'late is {late!r}; say --late "10 % a day" or --late "2 points a day".'
            )
        policy["late"] = late
    if due is not None or late is not None:
        write_json(out / "policy.json", policy)


def moment(text: str) -> str:
    """An hour with its zone; a day is over at its end."""
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"due is {text!r}; say --due 2026-11-05 or --due 2026-11-05T18:00."
        ) from None
    if "T" not in text and " " not in text:  # a day lasts until it is over
        moment += datetime.timedelta(days=1)
    return moment.astimezone().isoformat(timespec="minutes")


def days_late(came: str, due: str, said: bool) -> int:
    """Days begun after it was due; one where the platform says no more than late."""
    if not came or not due:
        return int(said)
    late = datetime.datetime.fromisoformat(came) - datetime.datetime.fromisoformat(due)
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
        full, _, number = line["student"].rpartition("_") if line["platform"] == "moodle" else (
            line["student"], "", "")  # fmt: skip
        sheet.append({
            "Identifier": f"Participant {number}" if number else "", "Full name": full,
            "Grade": line["after_lateness"], "Maximum Grade": line["of"],
            "Last modified (grade)": "",
            "Feedback comments": "" if line["state"] == "graded" else line["state"],
        })  # fmt: skip
    write_table(out / f"moodle_{name}.csv", MOODLE, sheet)


def _write_archives(out: Path, lines: list[dict], name: str) -> None:
    """Pages of feedback under the names by which Moodle and Canvas know the submissions."""
    pages: dict[str, dict[str, Path]] = {"moodle": {}, "canvas": {}}
    for line in lines:
        page = page_of(out / "feedback", line["student"], name)
        if line["platform"] == "moodle":
            pages["moodle"][f"{line['student']}_assignsubmission_file/{name}.html"] = page
        elif line["platform"] == "canvas":
            pages["canvas"][f"{Path(line['file']).stem}.html"] = page
    for platform, named in pages.items():
        if named:
            with zipfile.ZipFile(out / f"feedback_{platform}_{name}.zip", "w") as archive:
                for path, page in sorted(named.items()):
                    archive.write(page, path, zipfile.ZIP_DEFLATED)
