"""Find the submissions of students in a folder, also in one downloaded from Canvas or Moodle.

The folder may contain files with any of these paths:

    ada/02_em.ipynb    ada/02_em/02_em.ipynb
    lovelaceada_123_456_02_em.ipynb    lovelaceada_LATE_123_456_02_em.ipynb    Canvas
    anon_aB3xZ_456_02_em.ipynb         Canvas, anonymous
    Ada Lovelace_123_assignsubmission_file/02_em.ipynb    Moodle (also with a _ at the end)
    Ada Lovelace_123_assignsubmission_file_02_em.ipynb    Moodle, without folders

The file may also be named ``02_em (1).ipynb``, ``02_em-1.ipynb`` or ``02_em copy.ipynb``. A file
with any other name, which ends in ``.ipynb``, ``.ipynb.txt`` or ``.json``, or is a zip archive with
one notebook, is recognised by its first cell or by the names of its checks. A student is identified
by a name with the platform's number.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import io
import json
import re
import zipfile
import zlib
from pathlib import Path
from typing import NamedTuple

from markapart.sources import grade_id, names, read_released

CANVAS = re.compile(
    r"(?:(?P<name>.+?)_)??(?P<late>LATE_)?(?P<number>\d+|anon_[^_]+)_(?P<upload>\d+)_(?P<file>.+)"
)
MOODLE = re.compile(r"(?P<name>.+)_(?P<number>\d+)_assignsubmission_file(?:$|_$|_(?P<file>.+))")
NBGRADER_FILES = ("timestamp.txt", "submission_secret.txt")  # Files that `nbgrader collect` adds.
COPY = re.compile(r"(?:[ _-]*\(\d+\)|-\d+|[ _-]copy)+$", re.IGNORECASE)
MAX_NOTEBOOK_BYTES = 20 * 2**20  # Larger files are not read.
SUFFIXES = (".ipynb", ".txt", ".json", ".zip")
BROKEN_ARCHIVE = zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError, EOFError
MIN_KNOWN_CHECKS = 3  # This many names of checks identify a notebook without title.


class Found(NamedTuple):
    """Student, file name, platform and lateness, as the path of a file tells them."""

    student: str
    file: str
    platform: str = ""
    late: bool = False


Key = tuple[str, str]


def find_submissions(folder: Path) -> tuple[dict[Key, Path], dict[Key, str], list[dict]]:
    """Return the submissions in a folder, remarks about them, and a row for each other file.

    Submissions and remarks are keyed by (student, assignment). If a student handed in an assignment
    more than once, the newest file counts, and a remark names the others.
    """
    if not folder.is_dir():
        raise ValueError(f"there is no folder {folder}.")
    found: dict[tuple[str, str], list[Path]] = {}
    others = []
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if any(part.startswith((".", "__MACOSX")) for part in parts) or path.name in NBGRADER_FILES:
            continue
        if not (path.is_symlink() or path.is_file()):
            continue
        student, stem, *_ = read_path(parts)
        name = _identify_assignment(stem, path) if student and not path.is_symlink() else None
        if name:
            found.setdefault((student, name), []).append(path)
        else:
            why = "is a link" if path.is_symlink() else "no assignment has its name or first cell"
            state = f"not recognised: {why}"
            others.append({"student": student, "file": str(path), "state": state})
    if not found:
        raise ValueError(f"{folder} holds no student/assignment.ipynb with a known name.")
    newest = {key: max(paths, key=_submission_order) for key, paths in found.items()}
    left = {key: {*paths} - {newest[key]} for key, paths in found.items()}
    remarks = {key: f"handed in more than once: graded {newest[key]}, not "
               + ", ".join(map(str, sorted(left[key]))) for key in found if left[key]}  # fmt: skip
    return newest, remarks, others


def read_path(parts: tuple[str, ...]) -> Found:
    """Return what the names of a file and its folders say about the submission."""
    for part in (*parts[:-1], Path(parts[-1]).stem):
        match = MOODLE.fullmatch(part)
        if match:
            student, file = f"{match['name']}_{match['number']}", match["file"]
            return Found(student, file or Path(parts[-1]).stem, "moodle")
    match = CANVAS.fullmatch(Path(parts[-1]).stem)
    if match and len(parts) == 1:
        student = "_".join(filter(None, (match["name"], match["number"])))
        return Found(student, match["file"], "canvas", bool(match["late"]))
    return Found(parts[0] if len(parts) > 1 else "", Path(parts[-1]).stem)


def read_path_of_unknown_depth(path: Path) -> Found:
    """Return what a path says about a submission if the folder of submissions is unknown."""
    found = read_path((path.name,))
    return found if found.platform else read_path(path.parts[-2:])


def _submission_order(path: Path) -> tuple[int, float]:
    """Return a sort key that puts newer files last: the upload number of Canvas, and the date."""
    match = CANVAS.fullmatch(path.stem)
    return int(match["upload"]) if match else 0, path.stat().st_mtime


def read_notebook_bytes(path: Path) -> bytes:
    """Return the bytes of a notebook, or of the only one in a zip archive; b"" if unreadable."""
    if path.stat().st_size > MAX_NOTEBOOK_BYTES:
        return b""
    content = path.read_bytes()
    if not zipfile.is_zipfile(io.BytesIO(content)):
        return content
    with contextlib.suppress(*BROKEN_ARCHIVE), zipfile.ZipFile(io.BytesIO(content)) as archive:
        inside = [one for one in archive.infolist() if one.filename.endswith(".ipynb")
                  and "__MACOSX" not in one.filename]  # fmt: skip
        if len(inside) == 1 and inside[0].file_size <= MAX_NOTEBOOK_BYTES:
            return archive.read(inside[0])
    return b""


def _identify_assignment(stem: str, path: Path) -> str | None:
    """Return the assignment of a notebook, found by the file name, else by its cells, else None."""
    known = [name for name in (stem, COPY.sub("", stem)) if name in names()]
    if path.suffix == ".ipynb" and known:
        return known[0]
    if path.suffix not in SUFFIXES:
        return None
    try:
        cells = json.loads(read_notebook_bytes(path))["cells"]
        openings = [_first_line("".join(cell["source"])) for cell in cells]
        ids = {cell["metadata"].get("nbgrader", {}).get("grade_id") or cell.get("id")
               for cell in cells}  # fmt: skip
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    titled = next(
        (_assignments_by_title()[line] for line in openings if line in _assignments_by_title()),
        None,
    )
    if titled:
        return titled
    counts = collections.Counter(
        _assignments_by_cell_name()[one] for one in ids if one in _assignments_by_cell_name()
    )
    ((best, count),) = counts.most_common(1) or [(None, 0)]
    return best if count >= MIN_KNOWN_CHECKS else None


@functools.cache
def _assignments_by_title() -> dict[str, str]:
    return {_first_line(read_released(name).cells[0].source): name for name in names()}


@functools.cache
def _assignments_by_cell_name() -> dict[str | None, str]:
    """Return {name of a cell: assignment} for all names that only one assignment uses."""
    found: dict[str | None, list[str]] = {}
    for name in names():
        for cell in read_released(name).cells:
            found.setdefault(grade_id(cell), []).append(name)
    return {one: owners[0] for one, owners in found.items() if one and len(owners) == 1}


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]
