"""What stands in the chapters: text and code."""

import json
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
