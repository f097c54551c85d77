"""What stands in the chapters; which cells make a name, want it, or are needed by other code."""

from __future__ import annotations

import ast
import json
import symtable
from collections.abc import Iterator
from pathlib import Path

from built_book import ROOT

CHAPTERS = sorted((ROOT / "book").glob("[0-9][0-9]_*.ipynb"))


def prose(path: Path) -> str:
    """All cells of text."""
    cells = json.loads(path.read_text(encoding="utf8"))["cells"]
    return "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")


def sources(path: Path) -> list[tuple[str, str]]:
    """Id and source of each cell of code."""
    cells = json.loads(path.read_text(encoding="utf8"))["cells"]
    return [(c["id"], "".join(c["source"])) for c in cells if c["cell_type"] == "code"]


def made(source: str) -> set[str]:
    """Global names that a cell makes."""
    symbols = symtable.symtable(source, "", "exec").get_symbols()
    return {one.get_name() for one in symbols if one.is_assigned() or one.is_imported()}


def imported(source: str) -> set[str]:
    """Global names of modules and of what comes from them."""
    symbols = symtable.symtable(source, "", "exec").get_symbols()
    return {one.get_name() for one in symbols if one.is_imported()}


def wanted(table: symtable.SymbolTable) -> tuple[set[str], set[str]]:
    """Global names that are wanted at once, and those that functions want when they are called."""
    at_top = table.get_type() == "module"
    symbols = [one for one in table.get_symbols() if one.is_referenced()]
    # Python 3.11 takes what is bound in a function called "top" for global as well as local.
    of_all = (one for one in symbols if at_top or (one.is_global() and not one.is_local()))
    now = {one.get_name() for one in of_all}
    later: set[str] = set()
    for child in table.get_children():
        inner = wanted(child)
        later |= inner[1]
        if child.get_name() in {"listcomp", "setcomp", "dictcomp", "genexpr"}:
            now |= inner[0]
        else:
            later |= inner[0]
    return now, later


def borrowed(source: str) -> set[str]:
    """Global names that a cell wants at once and does not make before."""
    own: set[str] = set()
    lent: set[str] = set()
    for statement in ast.parse(source).body:
        names = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
        stores = {node.id for node in names if isinstance(node.ctx, ast.Store)}
        loads = {node.id for node in names} - stores
        # A loop makes its variables before its body wants them, an assignment wants first.
        if isinstance(statement, ast.Assign):
            loads |= {node.id for node in names if isinstance(node.ctx, ast.Load)}
        elif isinstance(statement, ast.AugAssign):
            loads |= stores
        lent |= loads - own
        own |= stores
    now, _ = wanted(symtable.symtable(source, "", "exec"))
    return lent & (now | made(source))


def changed(source: str) -> set[str]:
    """Names whose objects a cell changes: an item, an attribute, a method for its own sake."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(_owner(node))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            found |= {_owner(node.value.func)} - {getattr(node.value.func, "id", "")}
    return found - {""}


def _owner(node: ast.expr) -> str:
    """The name at the left of dots and brackets."""
    while isinstance(node, ast.Subscript | ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def needed(cells: list[tuple[str, str]], code: str) -> list[tuple[str, str]]:
    """The cells without which the code lacks a name, or finds it as it was before a change."""
    modules = set().union(*(imported(source) for _, source in cells))
    makes = [made(source) for _, source in cells]
    touches = [makes[i] | (changed(source) - modules) for i, (_, source) in enumerate(cells)]

    def origins(name: str, last: int, makers: int) -> Iterator[int]:
        """Cells before the last that make or change a name, down to so many that make it."""
        for i in reversed(range(last)):
            if makers and name in touches[i]:
                makers -= name in makes[i]
                yield i

    kept, open_ = set(), [(len(cells), code)]
    while open_:
        at, source = open_.pop()
        _, when_called = wanted(symtable.symtable(source, "", "exec"))
        found = {i for name in borrowed(source) for i in origins(name, at, 1)}
        # A function finds a name as it is when it is called: any cell may have made it.
        found |= {i for name in when_called for i in origins(name, len(cells), len(cells))}
        open_ += [(i, cells[i][1]) for i in found - kept]
        kept |= found
    return [cells[i] for i in sorted(kept)]
