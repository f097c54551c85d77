"""Find the names of the package that a chapter imports or reads from an imported module."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType


def imported(path: Path) -> set[str]:
    """Names that the code of a notebook takes from ``cgmm``, as ``cgmm.mixture.em``."""
    cells = json.loads(path.read_text(encoding="utf8"))["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    return names_from_package(ast.parse(code))


def names_from_package(code: ast.AST) -> set[str]:
    """The same of parsed code: what ``from`` imports name, and attributes of imported modules."""
    bound = dict(_bound(code))
    modules = {name: what for name, what in bound.items() if _is_module(what)}
    read = {_full_name(node, modules) for node in ast.walk(code) if isinstance(node, ast.Attribute)}
    return {name for name in {*bound.values(), *read} if name and not _is_module(name)}


def find(name: str) -> object:
    """Return the module, or the member of a module, of a full name."""
    try:
        return import_module(name)
    except ModuleNotFoundError:
        holder, _, last = name.rpartition(".")
        return getattr(find(holder), last)


def _bound(code: ast.AST) -> Iterator[tuple[str, str]]:
    """Return the package's object that a name in the notebook refers to."""
    for node in ast.walk(code):
        if isinstance(node, ast.ImportFrom) and _is_of_package(node.module or ""):
            yield from ((one.asname or one.name, f"{node.module}.{one.name}") for one in node.names)
        elif isinstance(node, ast.Import):
            for one in node.names:
                if _is_of_package(one.name):
                    name = one.asname or "cgmm"
                    yield name, one.name if one.asname else "cgmm"


def _is_of_package(module: str) -> bool:
    return module.partition(".")[0] == "cgmm"


def _is_module(name: str) -> bool:
    return isinstance(find(name), ModuleType)


def _full_name(node: ast.expr, modules: dict[str, str]) -> str:
    """``plot.points`` as ``cgmm.plot.points``; nothing if it is no attribute of a module."""
    if isinstance(node, ast.Name):
        return modules.get(node.id, "")
    if not isinstance(node, ast.Attribute):
        return ""
    holder = _full_name(node.value, modules)
    return f"{holder}.{node.attr}" if holder and _is_module(holder) else ""
