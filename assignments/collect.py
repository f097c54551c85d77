"""Find what students handed in, in a folder of the teacher's own or unpacked from Canvas or Moodle.

Any of these below one folder:

    ada/02_em.ipynb    ada/02_em/02_em.ipynb
    lovelaceada_123_456_02_em.ipynb          Canvas: all in one folder, with LATE after the name
    Ada Lovelace_123_assignsubmission_file/02_em.ipynb      Moodle (a final _ is dropped)

each also as ``02_em (1).ipynb``, ``02_em-1.ipynb`` or ``02_em copy.ipynb``.
"""

from __future__ import annotations

import re
from pathlib import Path

from sources import names

CANVAS = re.compile(r"(?P<student>.+?)_(?:LATE_)?(?P<number>\d+)_\d+_(?P<file>.+)", re.IGNORECASE)
MOODLE = re.compile(r"(?P<student>.+)_\d+_assignsubmission_file_?")
NBGRADERS = ("timestamp.txt", "submission_secret.txt")  # what its collect puts beside a notebook
COPY = re.compile(r"(?:[ _-]*\(\d+\)|-\d+|[ _-]copy)+$", re.IGNORECASE)


def find_submissions(folder: Path) -> tuple[dict[tuple[str, str], Path], list[str]]:
    """Find the notebooks of a folder that are submissions; say what else there is, and why."""
    if not folder.is_dir():
        raise ValueError(f"there is no folder {folder}.")
    found: dict[tuple[str, str], list[Path]] = {}
    remarks = []
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if not path.is_file() or path.is_symlink() or any(part.startswith(".") for part in parts):
            continue
        if path.name in NBGRADERS:
            continue
        key = _who_and_what(parts)
        if key is None:
            remarks.append(f"ignored, since no assignment has this name: {path}")
        else:
            found.setdefault(key, []).append(path)
    if not found:
        raise ValueError(f"{folder} holds no student/assignment.ipynb with a known name.")
    for (student, name), paths in found.items():
        if len(paths) > 1:
            newest = max(paths, key=lambda path: path.stat().st_mtime)
            others = ", ".join(str(path) for path in paths if path != newest)
            remarks.append(
                f"{student} handed in {name} more than once: graded {newest}, not {others}"
            )
            paths[:] = [newest]
    return {key: paths[0] for key, paths in found.items()}, remarks


def _who_and_what(parts: tuple[str, ...]) -> tuple[str, str] | None:
    """The student and the assignment that a path below the folder tells of."""
    *folders, file = parts
    if not file.endswith(".ipynb"):
        return None
    stem = file.removesuffix(".ipynb")
    if not folders:
        match = CANVAS.fullmatch(stem)
        name = _assignment(match["file"]) if match else None
        return (f"{match['student']}_{match['number']}", name) if name else None
    name, student = _assignment(stem), folders[0]
    if name is None or folders[1:] not in ([], [name]):
        return None
    match = MOODLE.fullmatch(student)
    return (match["student"] if match else student), name


def _assignment(stem: str) -> str | None:
    for name in (stem, COPY.sub("", stem)):
        if name in names():
            return name
    return None
