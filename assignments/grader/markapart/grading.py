"""Grade submissions: run new ones, store their results, and write tables and pages for teachers.

``results/`` contains a file for each submission that has been run. A submission that has not
changed since then is not run again, so that grading can be interrupted and continued, and grading
week 2 does not change week 1. Tables and pages are made from results and marks, without running
anything.
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
from markapart.collect import MAX_NOTEBOOK_BYTES, read_notebook_bytes, read_path_of_unknown_depth
from markapart.examine import Row, examine, rows_not_graded
from markapart.feedback import write_pages
from markapart.marks import (
    Problem,
    apply_mark,
    enter_sheet,
    keep_unmatched,
    load_marks,
    read_json,
    waiting_overrides,
    write_json,
    write_sheets,
)
from markapart.notes import notes_on
from markapart.policy import load_policy
from markapart.similar import write_similar
from markapart.sources import (
    clean_bytes,
    collect_misplaced_answers,
    grade_id,
    name_pictures,
    names_of_student,
    owner_of,
    read_released,
    repair,
    require_same_seed,
    same_person,
    seed_of_file,
    source,
)  # fmt: skip
from markapart.tables import build_lines, write_tables
from markapart.wire import die_with_parent

MAX_CELL_LETTERS, MAX_ANSWER_LETTERS = (
    50_000,
    30_000,
)  # A cell of a spreadsheet has at most 32,767.


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
    """Run the submissions that have no stored result yet, and store their results.

    Parameters
    ----------
    submissions : dict
        Path of the notebook for each (student, assignment).
    out : Path
        Folder in which results/STUDENT/ASSIGNMENT.json are written.
    seed : str, default=None
        Seed with which the student versions were released.
    timeout : float, default=30
        Seconds that a cell or a check may take.
    jobs : int, default=1
        Number of submissions that run at the same time.
    again : bool, default=False
        Whether to run unchanged submissions again.
    students : iterable of str, default=()
        Names of students who got copies with their own numbers.
    remarks : dict, default=None
        Remark that is stored with the result of a submission, keyed by (student, assignment).
    kinds : iterable of str, default=None
        Kinds of boxes that may be used, see box.py. None means any kind that hides the keys.
    say : callable, default: nothing
        Called with a line of text after each submission.

    Returns
    -------
    list of dict
        The results, in the order of the submissions.
    """
    found, waiting, boxes = {}, {}, None
    for key, path in sorted(submissions.items()):
        order = _build_order(*key, path, seed, timeout, list(students))
        known = read_json(_result_path(out, *key), None)
        if not again and known and known["digest"] == order["digest"]:
            found[key] = known
        else:
            waiting[key] = order
    if found:
        say(f"{len(found)} submissions have not changed since they were graded")
    if waiting:
        boxes = box.find_boxes({path.resolve().parent for path in submissions.values()}, kinds)
    for number, (key, result) in enumerate(_examine_all(waiting, jobs, boxes), start=1):
        write_json(_result_path(out, *key), result)
        found[key] = result
        say(f"{number} of {len(waiting)}: {' '.join(key)}")
    for key, result in found.items():
        remark = (remarks or {}).get(key, "")
        if result.get("remark", "") != remark:
            result["remark"] = remark
            write_json(_result_path(out, *key), result)
    return [found[key] for key in sorted(submissions)]


def _build_order(
    student: str, name: str, path: Path, seed: str | None, timeout: float, students: list[str]
) -> dict:
    """Return the data that a worker needs to run a submission, with a digest of them."""
    content, found = read_notebook_bytes(path), read_path_of_unknown_depth(path)
    word = seed_of_file(content, seed)
    people = [*names_of_student(student), *students]
    owner = owner_of(word, seed, people) if word != seed else student
    parts = [content, clean_bytes(source(name, word)), repr((student, timeout, owner)).encode()]
    digest = hashlib.sha256(b"\0".join(parts)).hexdigest()
    return {
        "student": student, "assignment": name, "file": str(path), "seed": word, "owner": owner,
        "timeout": timeout, "digest": digest, "handed_in": hour_of_submission(path),
        "late": found.late, "platform": found.platform,
    }  # fmt: skip


def hour_of_submission(path: Path) -> str:
    """Return the time of submission that nbgrader stored beside a file, or ""."""
    with contextlib.suppress(OSError, ValueError):
        note = path.with_name("timestamp.txt").read_text().strip().removesuffix(" UTC")
        noted = datetime.datetime.fromisoformat(note)
        noted = noted.replace(tzinfo=noted.tzinfo or datetime.UTC)
        return noted.astimezone().isoformat(timespec="minutes")
    return ""


def _examine_all(orders: dict, jobs: int, boxes: box.Boxes | None) -> Iterator[tuple]:
    """Yield (key, result) of all orders, run in ``jobs`` processes.

    A submission that ends its process is run a second time, alone.
    """
    left = {}
    for key, result in _examine_in_processes(orders, jobs, boxes):
        if result is None:
            left[key] = orders[key]
        else:
            yield key, result
    for key, order in left.items():
        ((_, result),) = _examine_in_processes({key: order}, 1, boxes)
        reason = "the grader ended; grade again"
        yield key, result or _build_result(order | {"digest": ""}, rows_not_graded(*key, reason))


def _examine_in_processes(orders: dict, jobs: int, boxes: box.Boxes | None) -> Iterator[tuple]:
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
    """Run a submission; an error in it does not stop the grading of others."""
    student, name, seed = order["student"], order["assignment"], order["seed"]
    try:
        notebook, notes = _read_and_repair(Path(order["file"]), name, order)
    except Exception as error:
        return _build_result(order, rows_not_graded(student, name, _in_one_line(error)))
    try:
        done = examine(student, name, notebook, boxes, seed, order["timeout"])
    except Exception as error:
        reason = f"{_in_one_line(error)}; this is the grader's fault, grade again"
        return _build_result(order | {"digest": ""}, rows_not_graded(student, name, reason))
    cells = [
        {"kind": cell.cell_type, "task": grade_id(cell), "source": cell.source,
         "attachments": cell.get("attachments", {})}
        | done.outputs.get(place, {})
        for place, cell in enumerate(notebook.cells)
    ]  # fmt: skip
    return _build_result(order, done.rows) | {
        "cells": cells, "notes": [*_note_on_owner(order), *notes, *notes_on(notebook, name)],
        "kept_apart": done.kept_apart,
    }  # fmt: skip


def _note_on_owner(order: dict) -> list[str]:
    """Return a list with a note if the student handed in a copy made for another student."""
    owner = order["owner"]
    return [] if same_person(owner, order["student"]) else [f"this copy was made for {owner}"]


def _read_and_repair(path: Path, name: str, order: dict) -> tuple[NotebookNode, list[str]]:
    if path.stat().st_size > MAX_NOTEBOOK_BYTES:
        raise ValueError("the file has more than 20 MB; clear all outputs and hand in again")
    if order["owner"] is None:
        raise ValueError(f'"{order["seed"]}" is the seed of no student\'s copy; see --students')
    try:
        notebook = nbformat.reads(read_notebook_bytes(path).decode("utf-8-sig"), as_version=4)
    except Exception as error:
        kind = type(error).__name__
        raise ValueError(f"{kind}: the file is no notebook; save it as .ipynb again") from None
    ours = read_released(name, order["seed"])
    for cell in notebook.cells:
        cell.source = cell.source.encode(errors="replace").decode()  # Removes lone surrogates.
        if cell.cell_type == "markdown":
            name_pictures(cell)
    require_same_seed(notebook, ours)
    notebook = repair(notebook, ours)
    lost = ", ".join(notebook.metadata["put_back"])
    notes = [f"put back, because missing: {lost}"] if lost else []
    return notebook, [
        *notes,
        *_shorten_long_cells(notebook),
        *collect_misplaced_answers(notebook, ours),
    ]


def _shorten_long_cells(notebook: NotebookNode) -> list[str]:
    """Cut cells and answers that are too long to be written by hand; return a note for each."""
    notes = []
    for cell in notebook.cells:
        most = MAX_CELL_LETTERS if cell.cell_type == "code" else MAX_ANSWER_LETTERS
        if len(cell.source) > most:
            note = f"{grade_id(cell) or 'a cell of their own'} has more than {most:,} characters"
            cut = f"{cell.source[:most]}\n\n[...] {note}"
            cell.source = f"raise ValueError({note!r})" if cell.cell_type == "code" else cut
            notes.append(note)
    return notes


def _build_result(order: dict, rows: list[Row]) -> dict:
    empty = {"cells": [], "notes": [], "kept_apart": ""}
    return order | empty | {"rows": [row._asdict() for row in rows]}


def _in_one_line(error: Exception) -> str:
    kind = "" if type(error) is ValueError else f"{type(error).__name__}: "
    return (kind + " ".join(str(error).split()))[:300].encode(errors="replace").decode()


# ------------------------------------------------------------------------------- results


def _result_path(out: Path, student: str, name: str) -> Path:
    return out / "results" / student / f"{name}.json"


def read_results(out: Path) -> list[dict]:
    """Read all results that are stored in a folder."""
    return [read_json(path, None) for path in sorted((out / "results").glob("*/*.json"))]


def rows_in(found: Iterable[dict]) -> list[Row]:
    """Return the rows of all results in one list."""
    return [Row(**row) for result in found for row in result["rows"]]


def enter_marks(out: Path, sheets: Iterable[Path]) -> tuple[list[str], list[Problem]]:
    """Enter the points of sheets into the marks; return changes and lines with problems."""
    changes, problems = [], []
    rows = rows_in(read_results(out))
    for sheet in sheets:
        new, wrong = enter_sheet(out, rows, sheet)
        changes, problems = changes + new, problems + wrong
    if problems:
        keep_unmatched(out, problems)
    return changes, problems


def write_reports(out: Path, problems: Iterable[Problem] = ()) -> list[Row]:
    """Write all tables and pages from the stored results and marks; return the rows."""
    found, marks = read_results(out), load_marks(out)
    write_sheets(out, rows_in(found), problems)
    for result in found:
        result["notes"] = [*result["notes"], *waiting_overrides(rows_in([result]), marks)]
        result["rows"] = [apply_mark(Row(**row), marks) for row in result["rows"]]
    rows = [row for result in found for row in result["rows"]]
    lines, wrong = build_lines(out, found)
    write_pages(out, found, marks, lines, load_policy(out).get("book", ""))
    write_tables(out, found, lines, read_unrecognised(out))
    unknown = sum(not line["known_hour"] for line in lines)
    if unknown and "late" in load_policy(out):
        wrong.append(f"the hour of {unknown} submissions is unknown, so nothing is deducted from "
                     "them for lateness; give --worksheet, or fill in hours.csv")  # fmt: skip
    print("\n".join(wrong), end="\n" * bool(wrong), file=sys.stderr)
    write_similar(out, found)
    return rows


def remember_unrecognised(out: Path, others: list[dict]) -> None:
    """Store which files are no known submission; forget files that no longer exist."""
    kept = {line["file"]: line for line in read_unrecognised(out) if Path(line["file"]).exists()}
    graded = {result["file"] for result in read_results(out)}
    kept = {file: line for file, line in kept.items() if file not in graded}
    kept |= {line["file"]: line for line in others}
    write_json(out / "unrecognised.json", [*kept.values()])


def read_unrecognised(out: Path) -> list[dict]:
    """Read the stored rows of files that are no known submission."""
    return read_json(out / "unrecognised.json", [])


def by_student(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Group rows by student, without changing their order."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.student, []).append(row)
    return groups


def count_processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
