"""Test that chapters cite equations which exist, and list those that they cover."""

import json

import covered
import pytest
from equation_grammar import TagError, load_table
from pages import BOOK

TABLE = load_table()
CHAPTERS = sorted(BOOK.glob("[0-9][0-9]_*.ipynb"))


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_cites_existing_equations_and_lists_those_that_it_covers(path):
    covered.covered_equations(path, TABLE)
    cells = json.loads(path.read_text(encoding="utf8"))["cells"]
    texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    (text,) = [text for text in texts if "**Covers**" in text]
    # A chapter that covers no equation must say so.
    assert covered.find_covered(text, TABLE) or "**Covers** no equation of the five docu" in text


def test_a_citation_of_a_missing_equation_raises_an_error_with_the_chapter(tmp_path):
    path = tmp_path / "05_wrong.ipynb"
    cells = [{"cell_type": "markdown", "source": ["by {cite:t}`lu2007`, eq. 3.6"]}]
    path.write_text(json.dumps({"cells": cells}), encoding="utf8")
    with pytest.raises(TagError, match=r"05_wrong\.ipynb: .*has no eq '3\.6'"):
        covered.covered_equations(path, TABLE)
