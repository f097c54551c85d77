"""Test that chapters cite equations which exist, and list those that they cover."""

import json

import covered
import pytest
from equation_grammar import TagError, load_table
from pages import BOOK

TABLE = load_table()
CHAPTERS = sorted(BOOK.glob("[0-9][0-9]_*.ipynb"))


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_all_citations_of_a_chapter_exist_and_it_lists_what_it_covers(path):
    covered.covered_equations(path, TABLE)
    cells = json.loads(path.read_text(encoding="utf8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    (line,) = [text for text in texts if "**Covers**" in text]
    # A chapter about no equation of the documents states so.
    assert (
        covered.find_covered(line, TABLE) or "**Covers** no equation of the five documents" in line
    )


def test_a_missing_equation_is_reported_with_its_chapter(tmp_path):
    path = tmp_path / "05_wrong.ipynb"
    cells = [{"cell_type": "markdown", "source": ["by {cite:t}`lu2007`, eq. 3.6"]}]
    path.write_text(json.dumps({"cells": cells}), encoding="utf8")
    with pytest.raises(TagError, match=r"05_wrong\.ipynb: .*has no eq '3\.6'"):
        covered.covered_equations(path, TABLE)
