"""What a teacher may want to look at: reports, not verdicts. Nothing here costs a point."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable

from nbformat import NotebookNode
from nbgrader.utils import is_solution
from sources import grade_id, released

# Modules that a solution of these assignments has no business with.
ODD = {"cgmm": "imports cgmm", "sklearn": "imports sklearn", "subprocess": "starts programs",
       "ctypes": "imports ctypes", "gc": "looks through memory", "inspect": "inspects frames",
       "socket": "uses the network", "requests": "uses the network"}  # fmt: skip
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


def fingerprint(cells: Iterable[dict]) -> str:
    """The same for two submissions whose code differs in names, comments and layout only."""
    code = [cell for cell in cells if cell["kind"] == "code" and cell["task"]]
    texts = [cell["source"] for cell in code if re.fullmatch(r"task-\d+", cell["task"])]
    shapes = []
    for text in texts:
        try:
            tree = ast.parse(text)
        except SyntaxError:
            return ""
        shapes.append(_shape(tree))
    code = "\n".join(shapes)
    return hashlib.sha256(code.encode()).hexdigest() if len(code) > 2000 else ""


def _shape(tree: ast.AST) -> str:
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = names.setdefault(node.id, f"n{len(names)}")
        elif isinstance(node, ast.arg):
            node.arg = names.setdefault(node.arg, f"n{len(names)}")
        elif isinstance(node, ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.dump(tree)


def alike(results: Iterable[dict]) -> dict[tuple[str, str], list[str]]:
    """For each submission the students whose code for the same assignment is the same."""
    groups: dict[tuple[str, str], list[str]] = {}
    for result in results:
        mark = fingerprint(result["cells"])
        if mark:
            groups.setdefault((result["assignment"], mark), []).append(result["student"])
    return {
        (student, name): [other for other in students if other != student]
        for (name, _), students in groups.items()
        for student in students
        if len(students) > 1
    }
