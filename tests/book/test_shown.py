"""Test that pages show all code that a visible cell needs, and every table that a cell makes.

A folded cell (`hide-input`) is on the page, and a removed one is not. So a removed cell may only
assert something: no visible cell may use a name that it assigns.
"""

import ast
import json

import pytest
from cells import CHAPTERS, cells

# Chapters whose visible code is complete.
WHOLE = CHAPTERS
WITHOUT_CODE = {"remove-cell", "remove-input"}
WITHOUT_OUTPUT = {"remove-cell", "remove-output"}


def is_tagged(cell: dict, tags: set[str]) -> bool:
    return bool(tags & set(cell["metadata"].get("tags", ())))


def names_in(source: str) -> tuple[set[str], set[str]]:
    """Return the names that a cell assigns, and those that it uses before it assigns them.

    A name inside a function counts as used unless the function binds it.
    """
    assigned: set[str] = set()
    used: set[str] = set()
    for statement in ast.parse(source).body:
        loaded, stored = names_of_statement(statement)
        used |= loaded - assigned
        assigned |= stored
    return assigned, used


def names_of_statement(statement: ast.stmt) -> tuple[set[str], set[str]]:
    """Return the names that a statement uses, and those that it assigns."""
    loaded: set[str] = set()
    stored: set[str] = set()
    inner: set[str] = set()
    for node in ast.walk(statement):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                loaded.add(name)
            case ast.Name(id=name):
                stored.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                stored.add(name)
            case ast.arg(arg=name) | ast.ExceptHandler(name=str(name)):
                inner.add(name)
            case ast.Import() | ast.ImportFrom():
                stored |= {one.asname or one.name.split(".")[0] for one in node.names}
    for node in ast.walk(statement):
        if isinstance(node, ast.comprehension):
            inner |= {name.id for name in ast.walk(node.target) if isinstance(name, ast.Name)}
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        inner |= stored - {statement.name}
    if isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr | ast.Assert):
        # The right-hand side is evaluated before the target is assigned.
        return loaded - inner, stored - inner
    return loaded - inner - stored, stored - inner


def names_from_removed_cells(chapter: list[dict]) -> dict[str, list[str]]:
    """Map each visible cell to the names that it takes from cells that are not on the page."""
    on_page: dict[str, bool] = {}
    found = {}
    for cell in (cell for cell in chapter if cell["cell_type"] == "code"):
        assigned, used = names_in("".join(cell["source"]))
        is_removed = is_tagged(cell, WITHOUT_CODE)
        missing = sorted(name for name in used if not on_page.get(name, True))
        if missing and not is_removed:
            found[cell["id"]] = missing
        on_page |= dict.fromkeys(assigned, not is_removed)
    return found


def hidden_tables(chapter: list[dict]) -> list[str]:
    """Return the cells that make a table which the page does not show."""
    return [
        cell["id"] for cell in chapter
        if cell["cell_type"] == "code" and is_tagged(cell, WITHOUT_OUTPUT) and makes_table(cell)
    ]  # fmt: skip


def makes_table(cell: dict) -> bool:
    return "plot.table(" in "".join(cell["source"]) or "cgmm-table" in json.dumps(cell["outputs"])


def test_names_from_removed_cells_are_found():
    removed = {"cell_type": "code", "id": "a", "metadata": {"tags": ["remove-cell"]}}
    shown = {"cell_type": "code", "id": "b", "metadata": {}}
    helper = removed | {"source": ["def trial(n):\n    m = n\n    return m\n"]}
    calls = shown | {"source": ["total = sum(trial(n) for n in range(3))\n"]}
    assert names_from_removed_cells([helper, calls]) == {"b": ["trial"]}
    again = shown | {"id": "c", "source": ["def trial(n):\n    return n\n"]}
    assert names_from_removed_cells([helper, again, calls]) == {}
    its_own = shown | {"source": ["m = [trial for trial in range(3)]\n"]}
    assert names_from_removed_cells([helper, its_own]) == {}


def test_hidden_tables_are_found():
    folded = {"cell_type": "code", "id": "a", "metadata": {"tags": ["hide-input"]}}
    table = folded | {"source": ["plot.table([], [])"], "outputs": []}
    removed = table | {"metadata": {"tags": ["remove-cell"]}}
    assert hidden_tables([table]) == []
    assert hidden_tables([removed]) == ["a"]
    assert hidden_tables([removed | {"source": ["1 + 1"]}]) == []


@pytest.mark.parametrize("path", WHOLE, ids=lambda path: path.stem)
def test_visible_code_uses_no_name_from_removed_cells(path):
    found = names_from_removed_cells(cells(path))
    assert not found, "fold these cells (hide-input) instead of removing them"


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_every_table_is_shown(path):
    assert hidden_tables(cells(path)) == []
