"""Each chapter stands alone: no state of another, no order of cells but downward, no network."""

from __future__ import annotations

import ast
import builtins
import copy
import os
import re
import symtable
from collections.abc import Iterator
from pathlib import Path

import nbformat
import notebooks
import pytest
from cells import made, sources, wanted
from nbformat.v4 import new_notebook

CHAPTERS = sorted(notebooks.BOOK.glob("*.ipynb"))
# What a notebook leaves behind for another, or takes from it; figures and printing are its output.
WRITES = {
    "dump", "open", "mkdir", "save", "savefig", "savetxt", "savez", "savez_compressed", "tofile",
    "to_csv", "to_pickle", "to_json", "unlink", "write", "write_bytes", "write_text",
}  # fmt: skip
# Magic commands and shell escapes; what IPython remembers of earlier cells.
MAGIC = re.compile(r"^\s*[%!]|\bget_ipython\b", re.MULTILINE)
REMEMBERED = {"_", "__", "___", "_i", "_ii", "_iii", "_ih", "_oh", "_dh", "In", "Out"}


def complaints(cells: list[tuple[str, str]]) -> Iterator[str]:
    """What makes a notebook depend on another, or on an order that is not downward."""
    known = set(dir(builtins)) | {"__name__"}
    in_the_end = set().union(*(made(s) for _, s in cells if not MAGIC.search(s)))
    for name, source in cells:
        if MAGIC.search(source):
            yield f"{name}: a command of IPython"
            continue
        yield from (f"{name}: {call} writes or opens a file" for call in _calls(source) & WRITES)
        now, when_called = wanted(symtable.symtable(source, name, "exec"))
        known |= made(source)
        remembered = (now | when_called) & REMEMBERED
        yield from (f"{name}: {one} is what IPython remembers" for one in remembered)
        # A function may be called later than it is made.
        missing = (now - known) | (when_called - known - in_the_end)
        for one in sorted(missing - REMEMBERED):
            yield f"{name}: {one} is made by no cell so far"


def _calls(source: str) -> set[str]:
    """Names of the functions and methods that are called."""
    functions = [node.func for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return {getattr(f, "attr", getattr(f, "id", "")) for f in functions}


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_depends_on_no_other_and_on_no_order(path):
    assert list(complaints(sources(path))) == []


# ---------------------------------------------------------------------------- run anywhere


def test_a_notebook_in_an_empty_folder_comes_out_as_in_the_book(tmp_path):
    """Byte for byte: it needs no file beside it. This is how `make notebooks` runs each."""
    first = CHAPTERS[0]
    cells = notebooks.load(first).cells
    # As far as the first picture: that is the beginning of any chapter, and takes seconds.
    stop = next(i for i, cell in enumerate(cells) if "image/svg+xml" in _pictures(cell)) + 1
    beginning = new_notebook(cells=copy.deepcopy(cells[:stop]))
    for cell in beginning.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    path = tmp_path / "alone" / first.name
    path.parent.mkdir()
    path.write_text(nbformat.writes(beginning), encoding="utf8")
    assert notebooks.refresh(path)
    assert [p.name for p in path.parent.iterdir()] == [first.name]
    for fresh, stored in zip(notebooks.load(path).cells, cells[:stop], strict=True):
        assert fresh == stored


def _pictures(cell) -> set[str]:
    return {kind for output in cell.get("outputs", []) for kind in output.get("data", {})}


# ---------------------------------------------------------------------------- no network


def test_the_book_was_built_without_asking_a_network(built):
    # Of a build before the tests, CGMM_BOOK, the log is named beside it.
    log = Path(os.environ.get("CGMM_NETWORK_LOG", built[0].parents[1] / "network.log"))
    assert log.exists()
    assert log.read_text(encoding="utf8") == ""
