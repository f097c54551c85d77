"""Read the text and code cells of the chapters, for the tests of the book."""

import json
from pathlib import Path

from built_book import ROOT

CHAPTERS = sorted((ROOT / "book").glob("[0-9][0-9]_*.ipynb"))


def read_cells(path: Path) -> list[dict]:
    """Return the cells of a notebook."""
    return json.loads(path.read_text(encoding="utf8"))["cells"]


def read_prose(path: Path) -> str:
    """Return the text of all Markdown cells of a notebook."""
    texts = [c["source"] for c in read_cells(path) if c["cell_type"] == "markdown"]
    return "\n\n".join(map("".join, texts))


def read_code_cells(path: Path) -> list[tuple[str, str]]:
    """Return the id and the source of each code cell of a notebook."""
    return [(c["id"], "".join(c["source"])) for c in read_cells(path) if c["cell_type"] == "code"]
