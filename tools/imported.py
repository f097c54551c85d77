"""Find the names of the package that a chapter imports, or reads as attributes of its modules.

The API pages list the chapters of each name with it, and ``tools/api_names.py`` calls it.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType


def used_names(path: Path) -> set[str]:
    """Return the full names, such as ``cgmm.mixture.em``, that the code of a notebook uses."""
    cells = json.loads(path.read_text(encoding="utf8"))["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    return names_from_package(ast.parse(code))


def names_from_package(code: ast.AST) -> set[str]:
    """Return the full names that parsed code imports, or reads from imported modules."""
    bound = dict(_find_imports(code))
    modules = {name: full_name for name, full_name in bound.items() if _is_module(full_name)}
    read = {_full_name(node, modules) for node in ast.walk(code) if isinstance(node, ast.Attribute)}
    return {name for name in {*bound.values(), *read} if name and not _is_module(name)}


def resolve(name: str) -> object:
    """Return the module or the member of a module that has this full name."""
    try:
        return import_module(name)
    except ModuleNotFoundError:
        holder, _, last = name.rpartition(".")
        return getattr(resolve(holder), last)


def _find_imports(code: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield (name in the notebook, full name) for each import from the package."""
    for node in ast.walk(code):
        if isinstance(node, ast.ImportFrom) and _is_of_package(node.module or ""):
            yield from ((one.asname or one.name, f"{node.module}.{one.name}") for one in node.names)
        elif isinstance(node, ast.Import):
            for one in node.names:
                if _is_of_package(one.name):
                    name = one.asname or "cgmm"
                    yield name, one.name if one.asname else "cgmm"


def _is_of_package(module: str) -> bool:
    """Return whether a module belongs to ``cgmm``."""
    return module.partition(".")[0] == "cgmm"


def _is_module(name: str) -> bool:
    """Return whether a full name is that of a module."""
    return isinstance(resolve(name), ModuleType)


def _full_name(node: ast.expr, modules: dict[str, str]) -> str:
    """Return ``cgmm.plot.points`` for ``plot.points``, or "" if it is no attribute of a module."""
    if isinstance(node, ast.Name):
        return modules.get(node.id, "")
    if not isinstance(node, ast.Attribute):
        return ""
    holder = _full_name(node.value, modules)
    return f"{holder}.{node.attr}" if holder and _is_module(holder) else ""
