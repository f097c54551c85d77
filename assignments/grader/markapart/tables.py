"""Write tables: checks, totals with lateness, and files that Canvas and Moodle import."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable
from pathlib import Path

from markapart.examine import Row, tally
from markapart.feedback import page_of
from markapart.marks import write_table
from markapart.policy import days_late, deduct, entered_hours, load_policy, note_of, write_hours
from markapart.roster import load_roster, same_student

GRADES = ["student", "assignment", "task", "points", "max", "state", "message"]
SUBMISSIONS = ["student", "assignment", "points", "of", "state", "handed_in", "due", "days_late",
               "after_lateness", "counts", "says", "notes", "kept_apart", "file"]  # fmt: skip
CANVAS = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
# Moodle refuses a sheet without the column of the last modification.
MOODLE = ["Identifier", "Full name", "Grade", "Maximum Grade", "Last modified (grade)",
          "Feedback comments"]  # fmt: skip
ABSENT = "nothing was handed in"


def lines_of(out: Path, results: list[dict]) -> tuple[list[dict], list[str]]:
    """Return a line for each submission and absent student, and the errors in hours.csv."""
    policy, roster = load_policy(out), load_roster(out)
    hours, problems = entered_hours(out)
    lines = [_line(result, policy, hours, roster.get(result["assignment"], {}))
             for result in results]  # fmt: skip
    lines += _absent(lines, roster, hours)
    write_hours(out, lines)
    return lines, problems


def write_tables(
    out: Path, results: list[dict], lines: list[dict], others: Iterable[dict] = ()
) -> None:
    """Write all tables and archives."""
    rows = [row._asdict() for result in results for row in result["rows"]]
    write_table(out / "grades.csv", GRADES, rows)
    write_table(out / "submissions.csv", SUBMISSIONS, [*lines, *others])
    names = sorted({line["assignment"] for line in lines})
    people, best = people_of(lines), load_policy(out).get("best")
    most = {line["assignment"]: line["of"] for line in lines}
    totals = [_total(who, [line for line in lines if people[line["student"]] == who], most, best)
              for who in dict.fromkeys(people.values())]  # fmt: skip
    write_table(out / "totals.csv", ["student", *names, "total", "of", "open"], totals)
    _write_canvas(out, totals, {name: most[name] for name in names})
    for name in names:
        own = [line for line in lines if line["assignment"] == name]
        _write_moodle(out, own, name, load_roster(out).get(name, {}))
        _write_archives(out, [line for line in own if line["file"]], name)


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


def _line(result: dict, policy: dict, hours: dict, people: dict) -> dict:
    rows: list[Row] = result["rows"]
    student, name = result["student"], result["assignment"]
    entered = hours.get((student, name), {})
    known = people.get(same_student(student, people) or "", {})
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
    return line | {"says": note_of(line, entered)}


def _absent(lines: list[dict], roster: dict, hours: dict) -> list[dict]:
    """Return lines of 0 points for students of the roster who handed in nothing."""
    found = []
    for name, people in roster.items():
        own = [line for line in lines if line["assignment"] == name]
        there = {same_student(line["student"], people) for line in own}
        for student, one in people.items():
            if own and student not in there:
                found.append(dict.fromkeys(own[0], "") | {
                    "student": student, "assignment": name, "points": 0.0, "of": own[0]["of"],
                    "state": ABSENT, "after_lateness": 0.0, "counts": 0.0,
                    "excused": bool(hours.get((student, name), {}).get("excused")),
                    "platform": one["platform"], "known_hour": True,
                })  # fmt: skip
    return found


def _total(who: str, own: list[dict], most: dict[str, float], best: int | None) -> dict:
    """Return a student's points; of the assignments that are not excused, the ``best`` count."""
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
    """Write a gradebook for Canvas: a row for each student, a column for each assignment."""
    lines = [most | {"Student": "    Points Possible"}]
    for total in totals:
        match = re.fullmatch(r"(.+)_(\d+)", total["student"])
        student, number = match.groups() if match else (total["student"], "")
        lines.append(total | {"Student": student, "ID": number})
    write_table(out / "canvas.csv", [*CANVAS, *most], lines)


def _write_moodle(out: Path, lines: list[dict], name: str, people: dict) -> None:
    """Write a grading worksheet for one assignment of Moodle: participants by their number."""
    sheet = []
    for line in lines:
        full, _, number = line["student"].rpartition("_") if line["platform"] == "moodle" else (
            line["student"], "", "")  # fmt: skip
        sheet.append({
            "Identifier": f"Participant {number}" if number else "", "Full name": full,
            "Grade": "" if line["excused"] else line["counts"], "Maximum Grade": line["of"],
            "Last modified (grade)": people.get(
                same_student(line["student"], people) or "", {}).get("modified", ""),
            "Feedback comments": " ".join(filter(None, [
                line["says"], "" if line["state"] == "graded" else line["state"]])),
        })  # fmt: skip
    write_table(out / f"moodle_{name}.csv", MOODLE, sheet)


def _write_archives(out: Path, lines: list[dict], name: str) -> None:
    """Write archives of feedback pages, named as Moodle and Canvas expect."""
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
