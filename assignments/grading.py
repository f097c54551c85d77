"""Grade submissions: examine what is new, keep what came out, and write what teachers read.

``results/`` has a file for each submission, written when it has been examined. What has not
changed since is not run again, so that grading may be broken off and taken up, and week 2 leaves
week 1 as it is. All tables and pages are made from results and marks, without running anything.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import json
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import nbformat
from box import Boxes, die_with_parent
from examine import Row, examine, not_graded
from feedback import write_pages
from marks import Problem, enter, keep_unmatched, load, marked, write_sheet, write_whole
from nbformat import NotebookNode
from notes import notes_on
from sources import (
    clean_bytes,
    grade_id,
    released,
    repair,
    require_same_seed,
    source,
    whose_copy,
    word_for,
    word_in,
)  # fmt: skip
from tables import write_tables

SECONDS = 30
LARGEST = 20 * 2**20  # bytes of a notebook


def grade(
    submissions: dict[tuple[str, str], Path],
    out: Path,
    *,
    seed: str | None = None,
    timeout: float | None = None,
    jobs: int = 1,
    again: bool = False,
    namespaces: bool = True,
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
    timeout : float, default=None
        Seconds that a cell or a check may take; None: 30.
    jobs : int, default=1
        How many are examined at the same time.
    again : bool, default=False
        Examine also what has not changed.
    namespaces : bool, default=True
        Whether to use namespaces of Linux where there are any.
    say : callable, default: nothing
        Hears of each submission when it is done.

    Returns
    -------
    list of dict
        The results, in the order of the submissions.
    """
    found, waiting = {}, {}
    for key, path in sorted(submissions.items()):
        order = _order(*key, path, seed, timeout or SECONDS)
        known = _known(out, *key)
        if not again and known and known["digest"] == order["digest"]:
            found[key] = known
        else:
            waiting[key] = order
    if found:
        say(f"{len(found)} submissions have not changed since they were graded")
    for number, (key, result) in enumerate(_examined(waiting, jobs, namespaces), start=1):
        if result["digest"]:
            text = json.dumps(result, indent=1, ensure_ascii=False)
            write_whole(_result_path(out, *key), text)
        found[key] = result
        say(f"{number} of {len(waiting)}: {' '.join(key)}")
    return [found[key] for key in sorted(submissions)]


def _order(student: str, name: str, path: Path, seed: str | None, timeout: float) -> dict:
    """What a process has to know to examine a submission, and a digest of it."""
    content = path.read_bytes()
    seed = word_in(content, seed)
    parts = [content, clean_bytes(source(name, seed)), repr((student, timeout)).encode()]
    digest = hashlib.sha256(b"\0".join(parts)).hexdigest()
    return {
        "student": student, "assignment": name, "file": str(path), "seed": seed,
        "timeout": timeout, "digest": digest, "handed_in": _time(handed_in(path)),
    }  # fmt: skip


def handed_in(path: Path) -> float:
    """When a file came: its date, or the hour that nbgrader noted beside it, whichever is later."""
    saved, note = path.stat().st_mtime, path.with_name("timestamp.txt")
    with contextlib.suppress(OSError, ValueError):
        noted = datetime.datetime.fromisoformat(note.read_text().strip().removesuffix(" UTC"))
        return max(saved, noted.replace(tzinfo=noted.tzinfo or datetime.UTC).timestamp())
    return saved


def _time(seconds: float) -> str:
    time = datetime.datetime.fromtimestamp(seconds).astimezone()
    return time.isoformat(timespec="minutes")


def _examined(orders: dict, jobs: int, namespaces: bool) -> Iterator[tuple]:
    """Examine in several processes, each with a helper of its own; yield what is done."""
    if not orders:
        return
    hide = [str(Path(order["file"]).resolve().parent) for order in orders.values()]
    context = multiprocessing.get_context("fork" if os.name == "posix" else None)
    with ProcessPoolExecutor(
        min(jobs, len(orders)), context, _prepare, (sorted(set(hide)), namespaces)
    ) as pool:
        running = {pool.submit(_examine, order): key for key, order in orders.items()}
        for done in as_completed(running):
            key = running[done]
            try:
                yield key, done.result()
            except BrokenProcessPool:
                order = orders[key] | {"digest": ""}  # so that the next run takes it up
                yield key, _result(order, not_graded(*key, "the grader ended; grade again"))


def _prepare(hide: list[str], namespaces: bool) -> None:
    """Start the helper of a process; it ends when the process does."""
    global boxes
    die_with_parent()
    boxes = Boxes(map(Path, hide), namespaces=namespaces).__enter__()


def _examine(order: dict) -> dict:
    """Examine a submission; whatever it holds, the others are graded."""
    student, name, seed = order["student"], order["assignment"], order["seed"]
    try:
        notebook = _read(Path(order["file"]), name, seed)
    except Exception as error:
        return _result(order, not_graded(student, name, _in_one_line(error)))
    try:
        done = examine(student, name, notebook, boxes, seed=seed, timeout=order["timeout"])
    except Exception as error:
        reason = f"the box cannot be used: {_in_one_line(error)}"
        return _result(order | {"digest": ""}, not_graded(student, name, reason))
    cells = [
        {"kind": cell.cell_type, "task": grade_id(cell), "source": cell.source}
        | done.outputs.get(place, {})
        for place, cell in enumerate(notebook.cells)
    ]
    return _result(order, done.rows) | {
        "cells": cells, "notes": [*_copied(student, seed), *notes_on(notebook, name)],
        "kept_apart": done.kept_apart,
    }  # fmt: skip


def _copied(student: str, seed: str | None) -> list[str]:
    """Say so where a student handed in a copy that was made for another."""
    owner = whose_copy(seed)
    if owner is None or word_for(None, owner) == word_for(None, student):
        return []
    return [f"this is the copy that was made for {owner}"]


def _read(path: Path, name: str, seed: str | None) -> NotebookNode:
    if path.stat().st_size > LARGEST:
        raise ValueError("the file has more than 20 MB; clear all outputs and hand in again")
    try:
        notebook = nbformat.read(path, as_version=4)
    except Exception as error:
        kind = type(error).__name__
        raise ValueError(f"{kind}: the file is no notebook; save it as .ipynb again") from None
    ours = released(name, seed)
    require_same_seed(notebook, ours)
    return repair(notebook, ours)


def _result(order: dict, rows: list[Row]) -> dict:
    empty = {"cells": [], "notes": [], "kept_apart": ""}
    return order | empty | {"rows": [row._asdict() for row in rows]}


def _in_one_line(error: Exception) -> str:
    kind = "" if type(error) is ValueError else f"{type(error).__name__}: "
    return (kind + " ".join(str(error).split()))[:300]


# ------------------------------------------------------------------------------- results


def _result_path(out: Path, student: str, name: str) -> Path:
    return out / "results" / student / f"{name}.json"


def _known(out: Path, student: str, name: str) -> dict | None:
    path = _result_path(out, student, name)
    with contextlib.suppress(OSError, ValueError):
        return json.loads(path.read_text(encoding="utf8"))
    return None


def results(out: Path) -> list[dict]:
    """All results that a folder holds, of this week and of those before."""
    paths = sorted((out / "results").glob("*/*.json"))
    return [json.loads(path.read_text(encoding="utf8")) for path in paths]


def rows_in(found: Iterable[dict]) -> list[Row]:
    """The rows of results."""
    return [Row(**row) for result in found for row in result["rows"]]


def enter_marks(out: Path, sheets: Iterable[Path]) -> tuple[list[str], list[Problem]]:
    """Merge the points on sheets into the marks; what cannot be entered is kept and returned."""
    changes, problems = [], []
    rows = rows_in(results(out))
    for sheet in sheets:
        new, wrong = enter(out, rows, sheet)
        changes, problems = changes + new, problems + wrong
    if problems:
        keep_unmatched(out, problems)
    return changes, problems


def write_reports(out: Path, problems: Iterable[Problem] = ()) -> list[Row]:
    """Write all tables and pages anew from results and marks; run nothing."""
    found, marks = results(out), load(out)
    for result in found:
        result["rows"] = [marked(Row(**row), marks) for row in result["rows"]]
    rows = [row for result in found for row in result["rows"]]
    write_sheet(out, rows, problems)
    write_tables(out, found)
    write_pages(out / "feedback", found, marks)
    return rows


def by_student(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Group rows, in order."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.student, []).append(row)
    return groups


def cores() -> int:
    """How many processors this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
