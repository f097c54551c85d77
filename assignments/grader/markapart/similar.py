"""Write the code of students into files for plagiarism detectors such as Dolos and JPlag.

``similar/NAME/students/STUDENT/NAME.py`` contains the code of a student. ``similar/NAME/model`` is
the solution, and ``similar/NAME/base`` the code that all students were given. The teacher decides
what a similarity means.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from markapart.marks import write_whole
from markapart.sources import grade_id, read_released, source


def write_similar(out: Path, results: list[dict]) -> None:
    """Write a file for each submission, for the solution and for the given code."""
    for name in sorted({result["assignment"] for result in results}):
        for who, notebook in {"model": source(name), "base": read_released(name)}.items():
            cells = [(grade_id(cell), cell.cell_type, cell.source) for cell in notebook.cells]
            _write_code(out, name, who, cells)
    for result in results:
        cells = [(cell["task"], cell["kind"], cell["source"]) for cell in result["cells"]]
        _write_code(out, result["assignment"], f"students/{result['student']}", cells)


def _write_code(out: Path, name: str, who: str, cells: Iterable[tuple]) -> None:
    """Write the code of all tasks of one submission; answers in words are left out."""
    codes = [text for task, kind, text in cells
             if kind == "code" and (task is None or re.fullmatch(r"task-\d+", task))]  # fmt: skip
    if codes:
        write_whole(out / "similar" / name / who / f"{name}.py", "\n\n".join(codes) + "\n")
