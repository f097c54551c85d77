"""Write tables of checks, submissions and totals, and files that Canvas and Moodle import."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable
from pathlib import Path

from markapart.examine import Row, tally
from markapart.feedback import feedback_path
from markapart.marks import write_table
from markapart.policy import (
    days_late,
    deduct,
    describe_lateness,
    entered_hours,
    load_policy,
    write_hours,
)
from markapart.roster import find_in_roster, load_roster

GRADES = ["student", "assignment", "task", "points", "max", "state", "message"]
SUBMISSIONS = ["student", "assignment", "points", "of", "state", "handed_in", "due", "days_late",
               "after_lateness", "counts", "says", "notes", "kept_apart", "file"]  # fmt: skip
CANVAS = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
# Moodle does not import a sheet without the column "Last modified (grade)".
MOODLE = ["Identifier", "Full name", "Grade", "Maximum Grade", "Last modified (grade)",
          "Feedback comments"]  # fmt: skip
ABSENT = "nothing was handed in"


def build_lines(out: Path, results: list[dict]) -> tuple[list[dict], list[str]]:
    """Return a line per submission and per absent student, and messages on errors in hours.csv."""
    policy, roster = load_policy(out), load_roster(out)
    hours, problems = entered_hours(out)
    lines = [_submission_line(result, policy, hours, roster.get(result["assignment"], {}))
             for result in results]  # fmt: skip
    lines += _lines_of_absent_students(lines, roster, hours)
    write_hours(out, lines)
    return lines, problems


def write_tables(
    out: Path, results: list[dict], lines: list[dict], others: Iterable[dict] = ()
) -> None:
    """Write all tables and the archives of feedback pages."""
    rows = [row._asdict() for result in results for row in result["rows"]]
    write_table(out / "grades.csv", GRADES, rows)
    write_table(out / "submissions.csv", SUBMISSIONS, [*lines, *others])
    names = sorted({line["assignment"] for line in lines})
    people, best = match_students(lines), load_policy(out).get("best")
    most = {line["assignment"]: line["of"] for line in lines}
    totals = [_total_line(who, [one for one in lines if people[one["student"]] == who], most, best)
              for who in dict.fromkeys(people.values())]  # fmt: skip
    write_table(out / "totals.csv", ["student", *names, "total", "of", "open"], totals)
    _write_canvas(out, totals, {name: most[name] for name in names})
    for name in names:
        own = [line for line in lines if line["assignment"] == name]
        _write_moodle(out, own, name, load_roster(out).get(name, {}))
        _write_archives(out, [line for line in own if line["file"]], name)


def match_students(lines: Iterable[dict]) -> dict[str, str]:
    """Return {name of a submission: student}, so that totals add up all assignments of a student.

    Moodle gives a student another number in each assignment, so only the name identifies him. If
    two students with one name handed in the same assignment, the number is kept.
    """
    owners: dict[tuple[str, str], set[str]] = {}
    names = {}
    for line in lines:
        student = line["student"]
        names[student] = student.rpartition("_")[0] if line["platform"] == "moodle" else student
        owners.setdefault((names[student], line["assignment"]), set()).add(student)
    shared = {name for (name, _), students in owners.items() if len(students) > 1}
    return {student: student if name in shared else name for student, name in names.items()}


def _submission_line(result: dict, policy: dict, hours: dict, people: dict) -> dict:
    rows: list[Row] = result["rows"]
    student, name = result["student"], result["assignment"]
    entered = hours.get((student, name), {})
    known = people.get(find_in_roster(student, people) or "", {})
    platform_says = result["handed_in"] or known.get("handed_in", "")
    came = entered.get("handed_in") or platform_says
    due = entered.get("due") or policy.get("due", {}).get(name, "")
    reported_late = result.get("late", False) and not came and not entered.get("due")
    days = days_late(came, due, reported_late, policy)
    points, most, states = tally(rows)
    after = deduct(points, days, policy)
    line = {
        "student": student, "assignment": name, "points": points, "of": most,
        "state": states or "graded", "platform_says": platform_says or "late" * result["late"],
        "handed_in": came, "due": due, "days_late": days, "after_lateness": after,
        "counts": max(0.0, after + entered.get("adjust", 0.0)),
        "excused": bool(entered.get("excused")), "known_hour": bool(came) or result["late"],
        "notes": "; ".join(filter(None, [result.get("remark", ""), *result["notes"]])),
        "kept_apart": result["kept_apart"],
        "file": result["file"], "platform": result.get("platform", ""),
    }  # fmt: skip
    return line | {"says": describe_lateness(line, entered)}


def _lines_of_absent_students(lines: list[dict], roster: dict, hours: dict) -> list[dict]:
    """Return lines with 0 points for students of the roster who handed in nothing."""
    found = []
    for name, people in roster.items():
        own = [line for line in lines if line["assignment"] == name]
        there = {find_in_roster(line["student"], people) for line in own}
        for student, one in people.items():
            if own and student not in there:
                found.append(dict.fromkeys(own[0], "") | {
                    "student": student, "assignment": name, "points": 0.0, "of": own[0]["of"],
                    "state": ABSENT, "after_lateness": 0.0, "counts": 0.0,
                    "excused": bool(hours.get((student, name), {}).get("excused")),
                    "platform": one["platform"], "known_hour": True,
                })  # fmt: skip
    return found


def _total_line(who: str, own: list[dict], most: dict[str, float], best: int | None) -> dict:
    """Return the line of a student's total, to which only the ``best`` assignments count."""
    by_name = {line["assignment"]: line for line in own}
    excused = {name for name, line in by_name.items() if line["excused"]}
    counting = {name: by_name[name]["counts"] if name in by_name else 0.0
                for name in most if name not in excused}  # fmt: skip
    kept = sorted(counting, key=lambda name: counting[name] / most[name], reverse=True)[:best]
    return {
        "student": who,
        **{name: "excused" if name in excused else line["counts"]
           for name, line in by_name.items()},
        "total": sum(counting[name] for name in kept), "of": sum(most[name] for name in kept),
        "open": "; ".join(line["assignment"] for line in own
                          if line["state"] not in ("graded", ABSENT)),
    }  # fmt: skip


# ------------------------------------------------------------------------------- exports


def _write_canvas(out: Path, totals: list[dict], most: dict[str, float]) -> None:
    """Write a gradebook for Canvas with a row per student and a column per assignment."""
    lines = [most | {"Student": "    Points Possible"}]
    for total in totals:
        match = re.fullmatch(r"(.+)_(\d+)", total["student"])
        student, number = match.groups() if match else (total["student"], "")
        lines.append(total | {"Student": student, "ID": number})
    write_table(out / "canvas.csv", [*CANVAS, *most], lines)


def _write_moodle(out: Path, lines: list[dict], name: str, people: dict) -> None:
    """Write a grading worksheet for Moodle with the points of one assignment."""
    sheet = []
    for line in lines:
        full, _, number = line["student"].rpartition("_") if line["platform"] == "moodle" else (
            line["student"], "", "")  # fmt: skip
        sheet.append({
            "Identifier": f"Participant {number}" if number else "", "Full name": full,
            "Grade": "" if line["excused"] else line["counts"], "Maximum Grade": line["of"],
            "Last modified (grade)": people.get(
                find_in_roster(line["student"], people) or "", {}).get("modified", ""),
            "Feedback comments": " ".join(filter(None, [
                line["says"], "" if line["state"] == "graded" else line["state"]])),
        })  # fmt: skip
    write_table(out / f"moodle_{name}.csv", MOODLE, sheet)


def _write_archives(out: Path, lines: list[dict], name: str) -> None:
    """Write zip archives of feedback pages with the file names that Moodle and Canvas expect."""
    pages: dict[str, dict[str, Path]] = {"moodle": {}, "canvas": {}}
    for line in lines:
        page = feedback_path(out / "feedback", line["student"], name)
        if line["platform"] == "moodle":
            pages["moodle"][f"{line['student']}_assignsubmission_file/{name}.html"] = page
        elif line["platform"] == "canvas":
            pages["canvas"][f"{Path(line['file']).stem}.html"] = page
    for platform, named in pages.items():
        if named:
            with zipfile.ZipFile(out / f"feedback_{platform}_{name}.zip", "w") as archive:
                for path, page in sorted(named.items()):
                    archive.write(page, path, zipfile.ZIP_DEFLATED)
