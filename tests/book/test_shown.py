"""Test that pages show all code that a visible cell needs, and every table that a cell makes.

A folded cell (`hide-input`) is on the page, and a removed one is not. So visible cells must not use
names that a removed cell assigns.
"""

import dis
import json
from collections.abc import Iterator
from types import CodeType

import pytest
from cells import CHAPTERS, read_cells

WITHOUT_CODE = {"remove-cell", "remove-input"}
WITHOUT_OUTPUT = {"remove-cell", "remove-output"}


def is_tagged(cell: dict, tags: set[str]) -> bool:
    """Return whether a cell has one of the tags."""
    return bool(tags & set(cell["metadata"].get("tags", ())))


def find_names(source: str) -> tuple[set[str], set[str]]:
    """Return the names that a cell assigns, and those that it uses before it assigns them.

    A name inside a function counts as used unless the function binds it.
    """
    assigned: set[str] = set()
    used: set[str] = set()
    for code, instruction in list_instructions(compile(source, "cell", "exec")):
        if instruction.opname == "STORE_NAME" and code.co_name == "<module>":
            assigned.add(instruction.argval)
        elif instruction.opname in {"LOAD_NAME", "LOAD_GLOBAL"}:
            used |= {instruction.argval} - assigned
    return assigned, used


def list_instructions(code: CodeType) -> Iterator[tuple[CodeType, dis.Instruction]]:
    """Yield the bytecode of a cell; that of a function follows where the function is defined."""
    for instruction in dis.get_instructions(code):
        yield code, instruction
        if isinstance(instruction.argval, CodeType):
            yield from list_instructions(instruction.argval)


def find_names_from_removed_cells(chapter: list[dict]) -> dict[str, list[str]]:
    """Map each visible cell to the names that it takes from cells that are not on the page."""
    on_page: dict[str, bool] = {}
    found = {}
    for cell in (cell for cell in chapter if cell["cell_type"] == "code"):
        assigned, used = find_names("".join(cell["source"]))
        is_removed = is_tagged(cell, WITHOUT_CODE)
        missing = sorted(name for name in used if not on_page.get(name, True))
        if missing and not is_removed:
            found[cell["id"]] = missing
        on_page |= dict.fromkeys(assigned, not is_removed)
    return found


def find_hidden_tables(chapter: list[dict]) -> list[str]:
    """Return the ids of the cells whose table is not on the page."""
    return [
        cell["id"] for cell in chapter
        if cell["cell_type"] == "code" and is_tagged(cell, WITHOUT_OUTPUT) and makes_table(cell)
    ]  # fmt: skip


def makes_table(cell: dict) -> bool:
    """Return whether a cell calls ``plot.table`` or has a table among its outputs."""
    return "plot.table(" in "".join(cell["source"]) or "cgmm-table" in json.dumps(cell["outputs"])


def test_names_from_removed_cells_are_found():
    removed = {"cell_type": "code", "id": "a", "metadata": {"tags": ["remove-cell"]}}
    shown = {"cell_type": "code", "id": "b", "metadata": {}}
    helper = removed | {"source": ["def trial(n):\n    m = n\n    return m\n"]}
    calls = shown | {"source": ["total = sum(trial(n) for n in range(3))\n"]}
    assert find_names_from_removed_cells([helper, calls]) == {"b": ["trial"]}
    again = shown | {"id": "c", "source": ["def trial(n):\n    return n\n"]}
    assert find_names_from_removed_cells([helper, again, calls]) == {}
    its_own = shown | {"source": ["m = [trial for trial in range(3)]\n"]}
    assert find_names_from_removed_cells([helper, its_own]) == {}


def test_hidden_tables_are_found():
    folded = {"cell_type": "code", "id": "a", "metadata": {"tags": ["hide-input"]}}
    table = folded | {"source": ["plot.table([], [])"], "outputs": []}
    removed = table | {"metadata": {"tags": ["remove-cell"]}}
    assert find_hidden_tables([table]) == []
    assert find_hidden_tables([removed]) == ["a"]
    assert find_hidden_tables([removed | {"source": ["1 + 1"]}]) == []


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_visible_code_uses_no_name_from_removed_cells(path):
    found = find_names_from_removed_cells(read_cells(path))
    assert not found, "fold these cells (hide-input) instead of removing them"


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_every_table_is_shown(path):
    assert find_hidden_tables(read_cells(path)) == []
