"""Find unusual code that a teacher may want to look at; it does not change points."""

from __future__ import annotations

import ast

from nbformat import NotebookNode
from nbgrader.utils import is_solution

from markapart.sources import grade_id, read_released

# Modules that no solution needs, with the note about an import.
UNUSUAL_MODULES = {
    "sklearn": "imports sklearn", "subprocess": "starts programs", "multiprocessing": "forks",
    "ctypes": "imports ctypes", "gc": "looks through memory", "inspect": "inspects frames",
    "socket": "uses the network", "requests": "uses the network", "urllib": "uses the network",
}  # fmt: skip
UNUSUAL_NAMES = {
    "__import__": "imports by name", "import_module": "imports by name", "eval": "runs text",
    "exec": "runs text", "_exit": "ends Python", "exit": "ends Python", "quit": "ends Python",
    "kill": "ends processes", "fork": "forks", "get_ipython": "looks at history",
    "_getframe": "looks at frames", "__globals__": "looks at frames",
}  # fmt: skip
MODULES = {"np", "numpy", "scipy", "builtins"}


def notes_on(notebook: NotebookNode, name: str) -> list[str]:
    """Return notes on unusual code in the cells that a student wrote."""
    ours = {cell.source for cell in read_released(name).cells}
    notes = []
    for cell in notebook.cells:
        if cell.cell_type == "code" and cell.source not in ours:
            where = grade_id(cell) or "a cell of their own"
            if grade_id(cell) is None or is_solution(cell):
                notes += [f"{where}: {what}" for what in find_unusual(cell.source)]
    return list(dict.fromkeys(notes))


def find_unusual(text: str) -> list[str]:
    """Return notes on unusual code in one cell."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith(("!", "%"))]
    try:
        nodes = list(ast.walk(ast.parse("\n".join(lines))))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ["does not parse"]
    found = [what for node in nodes for what in _find_unusual_in_node(node)]
    return sorted(set(found))


def _find_unusual_in_node(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        modules = [f"{node.module}.{alias.name}" for alias in node.names]
    else:
        modules = [alias.name for alias in getattr(node, "names", []) if hasattr(alias, "name")]
    tops = [module.partition(".")[0] for module in modules]
    found = [UNUSUAL_MODULES[top] for top in tops if top in UNUSUAL_MODULES]
    name = node.id if isinstance(node, ast.Name) else getattr(node, "attr", None)
    found += [UNUSUAL_NAMES[name]] if name in UNUSUAL_NAMES else []
    if isinstance(node, ast.Assign | ast.AugAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        roots = {_root_name(one) for one in targets if isinstance(one, ast.Attribute)}
        found += ["changes numpy or a module"] * bool(roots & MODULES)
    return found


def _root_name(node: ast.AST) -> str | None:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None
