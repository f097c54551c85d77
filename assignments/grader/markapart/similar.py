"""Write the students' code for tools that look for copies, such as Dolos and JPlag.

``similar/NAME/students/STUDENT/NAME.py`` has what a student wrote; ``similar/NAME/model`` is the
solution and ``similar/NAME/base`` what everybody was given. No student's name can take the place of
these two. What such a tool finds is for the teacher to judge.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from markapart.marks import write_whole
from markapart.sources import grade_id, read_released, source


def write_similar(out: Path, results: list[dict]) -> None:
    """Write a file for each submission, and the two that it is compared with."""
    for name in sorted({result["assignment"] for result in results}):
        for who, notebook in {"model": source(name), "base": read_released(name)}.items():
            cells = [(grade_id(cell), cell.cell_type, cell.source) for cell in notebook.cells]
            _write(out, name, who, cells)
    for result in results:
        cells = [(cell["task"], cell["kind"], cell["source"]) for cell in result["cells"]]
        _write(out, result["assignment"], f"students/{result['student']}", cells)


def _write(out: Path, name: str, who: str, cells: Iterable[tuple]) -> None:
    """Write the tasks' code; answers, as text, are for another tool."""
    codes = [text for task, kind, text in cells
             if kind == "code" and (task is None or re.fullmatch(r"task-\d+", task))]  # fmt: skip
    if codes:
        write_whole(out / "similar" / name / who / f"{name}.py", "\n\n".join(codes) + "\n")
