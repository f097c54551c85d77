"""What a teacher may want to look at: reports, not verdicts. Nothing here costs a point."""

from __future__ import annotations

import re

from nbformat import NotebookNode
from nbgrader.utils import is_solution
from sources import grade_id, released

# Modules that a solution of these assignments has no business with; the primer is to build on.
ODD = {r"cgmm(?!\.primer\b| import primer\b)": "imports cgmm", "sklearn": "imports sklearn",
       "subprocess": "starts programs", "ctypes": "imports ctypes", "gc": "looks through memory",
       "inspect": "inspects frames", "socket": "uses the network",
       "requests": "uses the network"}  # fmt: skip
# Names whose mention anywhere is worth a look.
LOOKS = {
    "changes numpy or a module": re.compile(r"(?m)^\s*(np|numpy|scipy|builtins)(\.\w+)+\s*=[^=]"),
    "looks for other files": re.compile(r"source/|gradebook|\.\./|open_questions|/etc/"),
    "ends Python": re.compile(r"os\._exit|sys\.exit|\b(quit|exit)\(\)|os\.kill"),
    "forks": re.compile(r"os\.fork|multiprocessing"),
    "looks at frames or history": re.compile(r"_getframe|get_ipython|\b_ih\b|__globals__"),
    "writes over a check's tools": re.compile(
        r"(?m)^\s*(def )?(allclose|isclose|abs|sum|min|max)\s*[=(].*(lambda|True|:$)"
    ),
}


def notes_on(notebook: NotebookNode, name: str) -> list[str]:
    """What is unusual in the cells that a student wrote, by cell."""
    ours = {cell.source for cell in released(name).cells}
    notes = []
    for cell in notebook.cells:
        if cell.cell_type == "code" and cell.source not in ours:
            where = grade_id(cell) or "a cell of their own"
            if grade_id(cell) is None or is_solution(cell):
                notes += [f"{where}: {what}" for what in _odd(cell.source)]
    return list(dict.fromkeys(notes))


def _odd(text: str) -> list[str]:
    found = [what for what, pattern in LOOKS.items() if pattern.search(text)]
    for module, what in ODD.items():
        if re.search(rf"\b(import|from)\s+{module}\b|__import__\(.{module}", text):
            found.append(what)
    return found
