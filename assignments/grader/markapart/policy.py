"""Decide how many points of a submission count: late penalties, excuses and adjustments.

The late penalty is the same for everybody and is stored in policy.json. A teacher edits hours.csv
to set for one submission when it arrived, when it is due, whether it is excused, and points to add
or subtract, with a reason that the student reads.
"""

from __future__ import annotations

import contextlib
import datetime
import math
import re
from pathlib import Path

from markapart.marks import back_up, read_json, read_table, write_json, write_table

HOURS = ["student", "assignment", "platform_says", "handed_in", "due", "excused", "adjust",
         "reason"]  # fmt: skip
LATE = re.compile(
    r"\s*(?P<cost>\d+(?:[.,]\d+)?)\s*(?P<unit>%|points?)\s*(?:a|per)\s*day"
    r"(?:\s*,\s*at most\s*(?P<most>\d+(?:[.,]\d+)?)\s*(?:%|points?))?"
    r"(?:\s*,\s*after\s*(?P<grace>\d+(?:[.,]\d+)?)\s*hours?)?\s*"
)


def load_policy(out: Path) -> dict:
    """Return the stored policy: due times, late penalty, and how many assignments count."""
    return read_json(out / "policy.json", {})


def set_policy(
    out: Path,
    names: list[str],
    due: str | None,
    late: str | None,
    best: int | None = None,
    book: str | None = None,
) -> None:
    """Store due times, the late penalty, how many assignments count, and the book's address."""
    policy = load_policy(out)
    if due is not None:
        policy["due"] = policy.get("due", {}) | dict.fromkeys(names, parse_hour(due))
    if late is not None:
        if not LATE.fullmatch(late):
            raise ValueError(
                f'late is {late!r}; say --late "10 % a day" or --late "2 points a day, at most '
                '10 points, after 2 hours".'
            )
        policy["late"] = late
    if best is not None:
        if best < 1:
            raise ValueError(f"best is {best}; say how many assignments count, 1 or more.")
        policy["best"] = best
    if book is not None:
        if not re.match(r"https?://", book):
            raise ValueError(f"book is {book!r}; give the address of its folder, with https://.")
        policy["book"] = book.rstrip("/")
    if any(one is not None for one in (due, late, best, book)):
        write_json(out / "policy.json", policy)


def parse_hour(text: str) -> str:
    """Return a time in ISO format with its time zone; a date alone means the end of that day."""
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"due is {text!r}; say --due 2026-11-05 or --due 2026-11-05T18:00."
        ) from None
    if "T" not in text and " " not in text:
        moment += datetime.timedelta(days=1)
    return moment.astimezone().isoformat(timespec="minutes")


def days_late(came: str, due: str, reported_late: bool, policy: dict) -> int:
    """Return the number of days begun after the due time and the grace period.

    It is 1 if the platform reported the submission as late without a time.
    """
    if not came or not due:
        return int(reported_late)
    late = datetime.datetime.fromisoformat(came) - datetime.datetime.fromisoformat(due)
    price = LATE.fullmatch(policy.get("late", ""))
    if price and price["grace"] and late <= datetime.timedelta(hours=_parse_number(price["grace"])):
        return 0
    return max(0, math.ceil(late.total_seconds() / 86400))


def deduct(points: float, days: int, policy: dict) -> float:
    """Return the points after the late penalty, which has a cap and never gives less than 0."""
    price = LATE.fullmatch(policy.get("late", ""))
    if not days or not price:
        return points
    cost = _parse_number(price["cost"]) * days
    if price["most"]:
        cost = min(cost, _parse_number(price["most"]))
    left = points * (1 - cost / 100) if price["unit"] == "%" else points - cost
    return round(max(0.0, left), 2)


def _parse_number(text: str) -> float:
    return float(text.replace(",", "."))


def describe_lateness(line: dict, entered: dict) -> str:
    """Return the text for the student about lateness, an excuse or an adjustment."""
    if line["excused"]:
        return "Excused: this assignment does not count for you."
    found = []
    if line["after_lateness"] != line["points"]:
        days = f"{line['days_late']} day{'s' * (line['days_late'] > 1)} late"
        found.append(f"{days}: {line['after_lateness']:g} of your {line['points']:g} points count.")
    if entered.get("adjust"):
        found.append(f"Changed by {entered['adjust']:+g} to {line['counts']:g} points: "
                     f"{entered['reason']}")  # fmt: skip
    return " ".join(found)


# ------------------------------------------------------------------------------ hours.csv


def _read_hours(out: Path) -> dict[tuple[str, str], dict]:
    """Read the lines of hours.csv, keyed by (student, assignment)."""
    lines = read_table(out / "hours.csv") if (out / "hours.csv").exists() else []
    lines = [dict.fromkeys(HOURS, "") | line for line in lines]
    return {(line["student"], line["assignment"]): line for line in lines}


def entered_hours(out: Path) -> tuple[dict[tuple[str, str], dict], list[str]]:
    """Return the entries of hours.csv, keyed by submission, and a message per wrong entry."""
    found, problems = {}, []
    for (student, name), line in _read_hours(out).items():
        entry, where = {"reason": line["reason"]}, f"hours.csv: {student}, {name}"
        for column in ("handed_in", "due"):
            with contextlib.suppress(ValueError):
                entry[column] = parse_hour(line[column]) if line[column] else ""
            if column not in entry:
                problems.append(f"{where}: {column} is {line[column]!r}; write 2026-11-05 or "
                                "2026-11-05T18:00")  # fmt: skip
        entry["excused"] = bool(line["excused"])
        with contextlib.suppress(ValueError):
            entry["adjust"] = _parse_number(line["adjust"] or "0")
        if "adjust" not in entry:
            problems.append(f"{where}: adjust is {line['adjust']!r}, which is no number")
        elif entry["adjust"] and not line["reason"]:
            del entry["adjust"]
            problems.append(f"{where}: points are adjusted without a reason; write one beside them")
        found[student, name] = entry
    return found, problems


def write_hours(out: Path, lines: list[dict]) -> None:
    """Write hours.csv with a line per submission, and keep what the teacher entered."""
    entered, by_key = _read_hours(out), {(line["student"], line["assignment"]): line
                                         for line in lines}  # fmt: skip
    table = [
        entered.get(key, {}) | {"student": key[0], "assignment": key[1],
                                "platform_says": by_key.get(key, {}).get("platform_says", "")}
        for key in dict.fromkeys([*by_key, *entered])
    ]  # fmt: skip
    back_up(out, "hours.csv")
    write_table(out / "hours.csv", HOURS, table)
