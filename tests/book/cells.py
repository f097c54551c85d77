"""What stands in the chapters; which cells make a name, want it, or are needed by other code."""

import ast
import dis
import json
import symtable
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import NamedTuple

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


def imported(source: str) -> set[str]:
    """Global names of modules and of what comes from them."""
    symbols = symtable.symtable(source, "", "exec").get_symbols()
    return {one.get_name() for one in symbols if one.is_imported()}


class Names(NamedTuple):
    """Global names of a cell."""

    made: set[str]
    wanted: set[str]
    """Before they are made, if they are."""
    when_called: set[str]
    """Wanted by functions."""


def names(source: str) -> Names:
    found = Names(set(), set(), set())
    for one in dis.get_instructions(compile(source, "", "exec")):
        if one.opname == "STORE_NAME":
            found.made.add(one.argval)
        elif one.opname == "LOAD_NAME":
            found.wanted.update({one.argval} - found.made)
        elif isinstance(one.argval, CodeType):
            # Comprehensions, of which Python 3.11 makes functions, are called at once.
            at_once = one.argval.co_name in {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}
            inner = global_names(one.argval)
            found.wanted.update(inner - found.made if at_once else ())
            found.when_called.update(() if at_once else inner)
    return found


def global_names(function: CodeType) -> set[str]:
    """Those that a function wants, and the functions in it."""
    own = {one.argval for one in dis.get_instructions(function) if one.opname == "LOAD_GLOBAL"}
    inner = (one for one in function.co_consts if isinstance(one, CodeType))
    return own.union(*map(global_names, inner))


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
    makes = [names(source).made for _, source in cells]
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
        _, wanted, when_called = names(source)
        found = {i for name in wanted for i in origins(name, at, 1)}
        # A function finds a name as it is when it is called: any cell may have made it.
        found |= {i for name in when_called for i in origins(name, len(cells), len(cells))}
        open_ += [(i, cells[i][1]) for i in found - kept]
        kept |= found
    return [cells[i] for i in sorted(kept)]
