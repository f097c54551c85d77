"""Decide which points count: lateness, grace, a cap, excuses and adjustments.

The price of lateness holds for everybody and is kept in policy.json. What holds for one submission
is in hours.csv, which a teacher edits: when it came, when it is due, whether it is excused, and
points to add or take away, with a reason that the student reads.
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
    """Return when assignments are due, the price of lateness and how many count, as far as set."""
    return read_json(out / "policy.json", {})


def set_policy(
    out: Path,
    names: list[str],
    due: str | None,
    late: str | None,
    best: int | None = None,
    book: str | None = None,
) -> None:
    """Remember when assignments are due, the price of lateness, how many count, and the book."""
    policy = load_policy(out)
    if due is not None:
        policy["due"] = policy.get("due", {}) | dict.fromkeys(names, moment(due))
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


def moment(text: str) -> str:
    """Return an hour with its zone; a date alone means the end of that day."""
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
    """Return the days begun after the due hour and the grace; one if only "late" is known."""
    if not came or not due:
        return int(reported_late)
    late = datetime.datetime.fromisoformat(came) - datetime.datetime.fromisoformat(due)
    price = LATE.fullmatch(policy.get("late", ""))
    if price and price["grace"] and late <= datetime.timedelta(hours=_number(price["grace"])):
        return 0
    return max(0, math.ceil(late.total_seconds() / 86400))


def deduct(points: float, days: int, policy: dict) -> float:
    """Return points less the price of the days, never below 0 and never more than the cap takes."""
    price = LATE.fullmatch(policy.get("late", ""))
    if not days or not price:
        return points
    cost = _number(price["cost"]) * days
    if price["most"]:
        cost = min(cost, _number(price["most"]))
    left = points * (1 - cost / 100) if price["unit"] == "%" else points - cost
    return round(max(0.0, left), 2)


def _number(text: str) -> float:
    return float(text.replace(",", "."))


def note_of(line: dict, entered: dict) -> str:
    """Return what a student reads about lateness, an excuse or an adjustment."""
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
    """Return what the teacher has written, by student and assignment."""
    lines = read_table(out / "hours.csv") if (out / "hours.csv").exists() else []
    lines = [dict.fromkeys(HOURS, "") | line for line in lines]
    return {(line["student"], line["assignment"]): line for line in lines}


def entered_hours(out: Path) -> tuple[dict[tuple[str, str], dict], list[str]]:
    """Return what hours.csv says of each submission, and a message for each wrong entry."""
    found, problems = {}, []
    for (student, name), line in _read_hours(out).items():
        entry, where = {"reason": line["reason"]}, f"hours.csv: {student}, {name}"
        for column in ("handed_in", "due"):
            with contextlib.suppress(ValueError):
                entry[column] = moment(line[column]) if line[column] else ""
            if column not in entry:
                problems.append(f"{where}: {column} is {line[column]!r}; write 2026-11-05 or "
                                "2026-11-05T18:00")  # fmt: skip
        entry["excused"] = bool(line["excused"])
        with contextlib.suppress(ValueError):
            entry["adjust"] = _number(line["adjust"] or "0")
        if "adjust" not in entry:
            problems.append(f"{where}: adjust is {line['adjust']!r}, which is no number")
        elif entry["adjust"] and not line["reason"]:
            del entry["adjust"]
            problems.append(f"{where}: points are adjusted without a reason; write one beside them")
        found[student, name] = entry
    return found, problems


def write_hours(out: Path, lines: list[dict]) -> None:
    """Write a line for each submission, with what was entered for it."""
    entered, by_key = _read_hours(out), {(line["student"], line["assignment"]): line
                                         for line in lines}  # fmt: skip
    table = [
        entered.get(key, {}) | {"student": key[0], "assignment": key[1],
                                "platform_says": by_key.get(key, {}).get("platform_says", "")}
        for key in dict.fromkeys([*by_key, *entered])
    ]  # fmt: skip
    back_up(out, "hours.csv")
    write_table(out / "hours.csv", HOURS, table)
