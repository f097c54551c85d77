"""Find what students handed in, in a folder of the teacher's own or unpacked from Canvas or Moodle.

Any of these below one folder:

    ada/02_em.ipynb    ada/02_em/02_em.ipynb
    lovelaceada_123_456_02_em.ipynb    lovelaceada_LATE_123_456_02_em.ipynb    Canvas
    anon_aB3xZ_456_02_em.ipynb         Canvas, anonymous
    Ada Lovelace_123_assignsubmission_file/02_em.ipynb    Moodle (also with a _ at the end)
    Ada Lovelace_123_assignsubmission_file_02_em.ipynb    Moodle, without folders

each also as ``02_em (1).ipynb``, ``02_em-1.ipynb`` or ``02_em copy.ipynb``, or under another name:
then the notebook is known by its first cell. A student is a name with the platform's number.
"""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import NamedTuple

from sources import names, released

CANVAS = re.compile(
    r"(?:(?P<name>.+?)_)??(?P<late>LATE_)?(?P<number>\d+|anon_[^_]+)_(?P<upload>\d+)_(?P<file>.+)"
)
MOODLE = re.compile(r"(?P<name>.+)_(?P<number>\d+)_assignsubmission_file(?:$|_$|_(?P<file>.+))")
NBGRADERS = ("timestamp.txt", "submission_secret.txt")  # what its collect puts beside a notebook
COPY = re.compile(r"(?:[ _-]*\(\d+\)|-\d+|[ _-]copy)+$", re.IGNORECASE)
LARGEST = 20 * 2**20  # bytes of a notebook


class Found(NamedTuple):
    """What a path says: who, the file's own name, whose platform, and whether it came late."""

    student: str
    file: str
    platform: str = ""
    late: bool = False


def find_submissions(folder: Path) -> tuple[dict[tuple[str, str], Path], list[str], list[dict]]:
    """Find notebooks that are submissions; remarks; and a row for each file that is none."""
    if not folder.is_dir():
        raise ValueError(f"there is no folder {folder}.")
    found: dict[tuple[str, str], list[Path]] = {}
    others = []
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if any(part.startswith((".", "__MACOSX")) for part in parts) or path.name in NBGRADERS:
            continue
        if not (path.is_symlink() or path.is_file()):
            continue
        student, stem, *_ = read_path(parts)
        name = _assignment(stem, path) if student and not path.is_symlink() else None
        if name:
            found.setdefault((student, name), []).append(path)
        else:
            why = "is a link" if path.is_symlink() else "no assignment has its name or first cell"
            state = f"not recognised: {why}"
            others.append({"student": student, "file": str(path), "state": state})
    if not found:
        raise ValueError(f"{folder} holds no student/assignment.ipynb with a known name.")
    newest = {key: max(paths, key=_age) for key, paths in found.items()}
    left = {key: {*paths} - {newest[key]} for key, paths in found.items()}
    remarks = [f"{key[0]} handed in {key[1]} more than once: graded {newest[key]}, not "
               + ", ".join(map(str, sorted(left[key]))) for key in found if left[key]]  # fmt: skip
    return newest, remarks, others


def read_path(parts: tuple[str, ...]) -> Found:
    """What the names of a file and its folders tell."""
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


def told_by(path: Path) -> Found:
    """The same of a path of which we do not know in which folder everything lies."""
    found = read_path((path.name,))
    return found if found.platform else read_path(path.parts[-2:])


def _age(path: Path) -> tuple[int, float]:
    """Canvas counts its uploads; elsewhere the date of the file is all there is."""
    match = CANVAS.fullmatch(path.stem)
    return int(match["upload"]) if match else 0, path.stat().st_mtime


def _assignment(stem: str, path: Path) -> str | None:
    """The assignment that a notebook is of, by its name or else by what it begins with."""
    known = [name for name in (stem, COPY.sub("", stem)) if name in names()]
    if path.suffix != ".ipynb" or known:
        return known[0] if path.suffix == ".ipynb" else None
    try:
        content = path.read_bytes() if path.stat().st_size <= LARGEST else b""
        cells = json.loads(content)["cells"]
        sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    return next((_titles()[line] for line in map(_first_line, sources) if line in _titles()), None)


@functools.cache
def _titles() -> dict[str, str]:
    return {_first_line(released(name).cells[0].source): name for name in names()}


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]
