"""A chapter stands alone: it needs no file beside it, and the book is built without a network.

That its cells need each other downward alone, each test of the chapters shows that runs them.
"""

from __future__ import annotations

import copy
import os
from pathlib import Path

import nbformat
import notebooks
from nbformat.v4 import new_notebook

CHAPTERS = sorted(notebooks.BOOK.glob("*.ipynb"))


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
