"""Listings fit the page, at most 78 characters a line, and no cell prints what is a table.

The primer, of which chapters show pieces, has a test of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import groupby

import pytest
from built_book import ROOT

MOST = 78
SOURCES = sorted([*(ROOT / "book").glob("*.ipynb"), *(ROOT / "book").glob("*.md")])
UNSHOWN = {"remove-cell", "remove-input"}
NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*\.?\d*(?!\w)")
# Lines that are alike to this many make a table.
ROWS = 4
# Claims in words, of which each says in how many groups it holds.
SENTENCES = {"noise-claims"}
FENCE = re.compile(r"(?P<mark>`{3,})\w+")


def listings(path) -> Iterator[str]:
    """Each line of code of a page, those in boxes and folds included."""
    text = path.read_text(encoding="utf8")
    if path.suffix == ".md":
        yield from fenced(text)
        return
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            yield from fenced(source)
        elif not UNSHOWN & set(cell["metadata"].get("tags", ())):
            yield from source.splitlines()


def fenced(text: str) -> Iterator[str]:
    """Lines between fences that are no directive; a directive may hold such fences."""
    code = ""
    for line in text.splitlines():
        fence = FENCE.fullmatch(line.strip())
        if code and line.strip() == code:
            code = ""
        elif code:
            yield line
        elif fence:
            code = fence["mark"]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_no_line_of_code_is_longer_than_the_page(path):
    assert [line for line in listings(path) if len(line) > MOST] == []


def printed_tables(text: str) -> list[list[str]]:
    """Neighbouring lines that have two numbers or more, and as many each."""
    runs = groupby(text.splitlines(), lambda line: len(NUMBER.findall(line)))
    lines = [list(run) for n, run in runs if n > 1]
    return [run for run in lines if len(run) >= ROWS]


@pytest.mark.parametrize(
    "path", [path for path in SOURCES if path.suffix == ".ipynb"], ids=lambda path: path.stem
)
def test_what_is_a_table_is_shown_as_one(path):
    printed = {
        cell["id"]: printed_tables("".join(output["text"]))
        for cell in json.loads(path.read_text(encoding="utf8"))["cells"]
        for output in cell.get("outputs", ())
        if output["output_type"] == "stream" and cell["id"] not in SENTENCES
    }
    assert {name: found for name, found in printed.items() if found} == {}


def test_no_table_shares_a_cell_with_a_figure():
    """It would be a second figure, with the caption of the first."""
    cells = [
        cell for path in SOURCES if path.suffix == ".ipynb"
        for cell in json.loads(path.read_text(encoding="utf8"))["cells"]
        if "figure" in cell["metadata"].get("mystnb", {})
    ]  # fmt: skip
    assert len(cells) > 100
    assert [cell["id"] for cell in cells if "cgmm-table" in json.dumps(cell["outputs"])] == []
