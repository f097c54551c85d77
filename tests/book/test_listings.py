"""Listings fit the page, at most 78 characters a line.

The primer, of which chapters show pieces, has a test of its own.
"""

import json
import re
from collections.abc import Iterator

import pytest
from built_book import ROOT

MOST = 78
SOURCES = sorted([*(ROOT / "book").glob("*.ipynb"), *(ROOT / "book").glob("*.md")])
UNSHOWN = {"remove-cell", "remove-input"}
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


def test_no_table_shares_a_cell_with_a_figure():
    """It would be a second figure, with the caption of the first."""
    cells = [
        cell for path in SOURCES if path.suffix == ".ipynb"
        for cell in json.loads(path.read_text(encoding="utf8"))["cells"]
        if "figure" in cell["metadata"].get("mystnb", {})
    ]  # fmt: skip
    assert len(cells) > 100
    assert [cell["id"] for cell in cells if "cgmm-table" in json.dumps(cell["outputs"])] == []
