"""Grade submissions: examine new ones, keep their results, and write tables and pages for teachers.

``results/`` has a file for each submission, written when it has been examined. A submission that
has not changed since is not run again, so grading can be interrupted and continued, and week 2
leaves week 1 as it is. Tables and pages are made from results and marks, without running anything.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from markapart import box
from markapart.collect import LARGEST, content_of, read_loose_path
from markapart.examine import Row, examine, not_graded
from markapart.feedback import write_pages
from markapart.marks import (
    Problem,
    apply_mark,
    enter,
    keep_unmatched,
    load,
    read_json,
    waiting_overrides,
    write_json,
    write_sheets,
)
from markapart.notes import notes_on
from markapart.policy import load_policy
from markapart.similar import write_similar
from markapart.sources import (
    answered_elsewhere,
    clean_bytes,
    grade_id,
    name_pictures,
    names_of_student,
    owner_of,
    read_released,
    repair,
    require_same_seed,
    same_person,
    source,
    word_in,
)  # fmt: skip
from markapart.tables import lines_of, write_tables
from markapart.wire import die_with_parent

LONGEST_CELL, LONGEST_ANSWER = 50_000, 30_000  # characters; a spreadsheet's cell holds 32,767


def grade(
    submissions: dict[tuple[str, str], Path],
    out: Path,
    *,
    seed: str | None = None,
    timeout: float = 30,
    jobs: int = 1,
    again: bool = False,
    students: Iterable[str] = (),
    remarks: dict[tuple[str, str], str] | None = None,
    kinds: Iterable[str] | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> list[dict]:
    """Examine submissions whose result is not known yet, and keep the results.

    Parameters
    ----------
    submissions : dict
        Path of the notebook for each (student, assignment).
    out : Path
        Gets results/STUDENT/ASSIGNMENT.json.
    seed : str, default=None
        The word that the student versions were released with.
    timeout : float, default=30
        Seconds that a cell or a check may take.
    jobs : int, default=1
        How many are examined at the same time.
    again : bool, default=False
        Examine also what has not changed.
    students : iterable of str, default=()
        For whom copies with numbers of their own were released.
    remarks : dict, default=None
        What is to be noted of a submission beside its result, by (student, assignment).
    kinds : iterable of str, default=None
        The kinds of boxes that may be used, see box.py; None: any that keeps apart.
    say : callable, default: nothing
        Hears of each submission when it is done.

    Returns
    -------
    list of dict
        The results, in the order of the submissions.
    """
    found, waiting, boxes = {}, {}, None
    for key, path in sorted(submissions.items()):
        order = _order(*key, path, seed, timeout, list(students))
        known = read_json(_result_path(out, *key), None)
        if not again and known and known["digest"] == order["digest"]:
            found[key] = known
        else:
            waiting[key] = order
    if found:
        say(f"{len(found)} submissions have not changed since they were graded")
    if waiting:
        boxes = box.find_boxes({path.resolve().parent for path in submissions.values()}, kinds)
    for number, (key, result) in enumerate(_examined(waiting, jobs, boxes), start=1):
        write_json(_result_path(out, *key), result)
        found[key] = result
        say(f"{number} of {len(waiting)}: {' '.join(key)}")
    for key, result in found.items():
        remark = (remarks or {}).get(key, "")
        if result.get("remark", "") != remark:
            result["remark"] = remark
            write_json(_result_path(out, *key), result)
    return [found[key] for key in sorted(submissions)]


def _order(
    student: str, name: str, path: Path, seed: str | None, timeout: float, students: list[str]
) -> dict:
    """Return what a worker needs to know to examine a submission, and a digest of it."""
    content = content_of(path)
    word = word_in(content, seed)
    people = [*names_of_student(student), *students]
    owner = owner_of(word, seed, people) if word != seed else student
    parts = [content, clean_bytes(source(name, word)), repr((student, timeout, owner)).encode()]
    digest = hashlib.sha256(b"\0".join(parts)).hexdigest()
    return {
        "student": student, "assignment": name, "file": str(path), "seed": word, "owner": owner,
        "timeout": timeout, "digest": digest, "handed_in": hour_of_submission(path),
        "late": read_loose_path(path).late, "platform": read_loose_path(path).platform,
    }  # fmt: skip


def hour_of_submission(path: Path) -> str:
    """Return the hour that nbgrader noted beside a file; its date may be the download's."""
    with contextlib.suppress(OSError, ValueError):
        note = path.with_name("timestamp.txt").read_text().strip().removesuffix(" UTC")
        noted = datetime.datetime.fromisoformat(note)
        noted = noted.replace(tzinfo=noted.tzinfo or datetime.UTC)
        return noted.astimezone().isoformat(timespec="minutes")
    return ""


def _examined(orders: dict, jobs: int, boxes: box.Boxes | None) -> Iterator[tuple]:
    """Examine in several processes; repeat alone a submission that ends its process."""
    left = {}
    for key, result in _in_processes(orders, jobs, boxes):
        if result is None:
            left[key] = orders[key]
        else:
            yield key, result
    for key, order in left.items():
        ((_, result),) = _in_processes({key: order}, 1, boxes)
        reason = "the grader ended; grade again"
        yield key, result or _result(order | {"digest": ""}, not_graded(*key, reason))


def _in_processes(orders: dict, jobs: int, boxes: box.Boxes | None) -> Iterator[tuple]:
    if not orders:
        return
    context = multiprocessing.get_context("fork" if os.name == "posix" else None)
    with ProcessPoolExecutor(min(jobs, len(orders)), context, die_with_parent) as pool:
        running = {pool.submit(_examine, order, boxes): key for key, order in orders.items()}
        for done in as_completed(running):
            try:
                yield running[done], done.result()
            except BrokenProcessPool:
                yield running[done], None


def _examine(order: dict, boxes: box.Boxes) -> dict:
    """Examine a submission; an error in it does not stop the grading of others."""
    student, name, seed = order["student"], order["assignment"], order["seed"]
    try:
        notebook, notes = _read(Path(order["file"]), name, order)
    except Exception as error:
        return _result(order, not_graded(student, name, _in_one_line(error)))
    try:
        done = examine(student, name, notebook, boxes, seed, order["timeout"])
    except Exception as error:
        reason = f"{_in_one_line(error)}; this is the grader's fault, grade again"
        return _result(order | {"digest": ""}, not_graded(student, name, reason))
    cells = [
        {"kind": cell.cell_type, "task": grade_id(cell), "source": cell.source,
         "attachments": cell.get("attachments", {})}
        | done.outputs.get(place, {})
        for place, cell in enumerate(notebook.cells)
    ]  # fmt: skip
    return _result(order, done.rows) | {
        "cells": cells, "notes": [*_copied(order), *notes, *notes_on(notebook, name)],
        "kept_apart": done.kept_apart,
    }  # fmt: skip


def _copied(order: dict) -> list[str]:
    """Return a note if a student handed in a copy that was made for somebody else."""
    owner = order["owner"]
    return [] if same_person(owner, order["student"]) else [f"this copy was made for {owner}"]


def _read(path: Path, name: str, order: dict) -> tuple[NotebookNode, list[str]]:
    if path.stat().st_size > LARGEST:
        raise ValueError("the file has more than 20 MB; clear all outputs and hand in again")
    if order["owner"] is None:
        raise ValueError(f'"{order["seed"]}" is the seed of no student\'s copy; see --students')
    try:
        notebook = nbformat.reads(content_of(path).decode("utf-8-sig"), as_version=4)
    except Exception as error:
        kind = type(error).__name__
        raise ValueError(f"{kind}: the file is no notebook; save it as .ipynb again") from None
    ours = read_released(name, order["seed"])
    for cell in notebook.cells:
        cell.source = cell.source.encode(errors="replace").decode()  # replaces lone surrogates
        if cell.cell_type == "markdown":
            name_pictures(cell)
    require_same_seed(notebook, ours)
    notebook = repair(notebook, ours)
    lost = ", ".join(notebook.metadata["put_back"])
    notes = [f"put back, because missing: {lost}"] if lost else []
    return notebook, [*notes, *_shortened(notebook), *answered_elsewhere(notebook, ours)]


def _shortened(notebook: NotebookNode) -> list[str]:
    """Cut cells and answers that are too long to be somebody's own work; return a note for each."""
    notes = []
    for cell in notebook.cells:
        most = LONGEST_CELL if cell.cell_type == "code" else LONGEST_ANSWER
        if len(cell.source) > most:
            note = f"{grade_id(cell) or 'a cell of their own'} has more than {most:,} characters"
            cut = f"{cell.source[:most]}\n\n[...] {note}"
            cell.source = f"raise ValueError({note!r})" if cell.cell_type == "code" else cut
            notes.append(note)
    return notes


def _result(order: dict, rows: list[Row]) -> dict:
    empty = {"cells": [], "notes": [], "kept_apart": ""}
    return order | empty | {"rows": [row._asdict() for row in rows]}


def _in_one_line(error: Exception) -> str:
    kind = "" if type(error) is ValueError else f"{type(error).__name__}: "
    return (kind + " ".join(str(error).split()))[:300].encode(errors="replace").decode()


# ------------------------------------------------------------------------------- results


def _result_path(out: Path, student: str, name: str) -> Path:
    return out / "results" / student / f"{name}.json"


def results(out: Path) -> list[dict]:
    """Read all results in a folder, of this week and of earlier ones."""
    return [read_json(path, None) for path in sorted((out / "results").glob("*/*.json"))]


def rows_in(found: Iterable[dict]) -> list[Row]:
    """Return the rows of results."""
    return [Row(**row) for result in found for row in result["rows"]]


def enter_marks(out: Path, sheets: Iterable[Path]) -> tuple[list[str], list[Problem]]:
    """Merge the points on sheets into the marks; keep and return lines that do not fit."""
    changes, problems = [], []
    rows = rows_in(results(out))
    for sheet in sheets:
        new, wrong = enter(out, rows, sheet)
        changes, problems = changes + new, problems + wrong
    if problems:
        keep_unmatched(out, problems)
    return changes, problems


def write_reports(out: Path, problems: Iterable[Problem] = ()) -> list[Row]:
    """Write all tables and pages again from results and marks, without running anything."""
    found, marks = results(out), load(out)
    write_sheets(out, rows_in(found), problems)
    for result in found:
        result["notes"] = [*result["notes"], *waiting_overrides(rows_in([result]), marks)]
        result["rows"] = [apply_mark(Row(**row), marks) for row in result["rows"]]
    rows = [row for result in found for row in result["rows"]]
    lines, wrong = lines_of(out, found)
    write_pages(out, found, marks, lines, load_policy(out).get("book", ""))
    write_tables(out, found, lines, unrecognised(out))
    unknown = sum(not line["known_hour"] for line in lines)
    if unknown and "late" in load_policy(out):
        wrong.append(f"the hour of {unknown} submissions is unknown, so nothing is deducted from "
                     "them for lateness; give --worksheet, or fill in hours.csv")  # fmt: skip
    print("\n".join(wrong), end="\n" * bool(wrong), file=sys.stderr)
    write_similar(out, found)
    return rows


def remember_unrecognised(out: Path, others: list[dict]) -> None:
    """Remember the files that are no known submission, until they are gone."""
    kept = {line["file"]: line for line in unrecognised(out) if Path(line["file"]).exists()}
    graded = {result["file"] for result in results(out)}
    kept = {file: line for file, line in kept.items() if file not in graded}
    kept |= {line["file"]: line for line in others}
    write_json(out / "unrecognised.json", [*kept.values()])


def unrecognised(out: Path) -> list[dict]:
    """Return a row for each file that is no known submission."""
    return read_json(out / "unrecognised.json", [])


def by_student(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Group rows by student and keep their order."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.student, []).append(row)
    return groups


def cores() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
