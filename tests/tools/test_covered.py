"""Which equations a chapter covers, by its line **Covers** and by what its text cites."""

from __future__ import annotations

import json

import covered
import pytest
from equation_grammar import TagError, load_table
from pages import BOOK

TABLE = load_table()
CHAPTERS = sorted(BOOK.glob("[0-9][0-9]_*.ipynb"))


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_the_line_covers_names_something_and_what_is_cited_exists(path):
    covered.covered(path, TABLE)
    cells = json.loads(path.read_text(encoding="utf8"))["cells"]
    line = "".join(cells[0]["source"])
    assert "**Covers**" in line
    # A chapter that goes beyond the documents says so.
    assert covered.covers(line, TABLE) or "**Covers** no equation of the five documents" in line


def numbers(found, source, kind="eq"):
    order = [*TABLE[source].get(kind, {}), *TABLE[source].get("app", {})]
    return sorted((n for s, k, n in found if (s, k) == (source, kind)), key=order.index)


@pytest.mark.parametrize(
    ("line", "source", "expected"),
    [
        ("{cite:t}`shental2003`, §2.1", "shental2003", "1 2 3 4 5 6 7"),
        ("{cite:t}`shental2003`, §§2.1.2 and 2.2", "shental2003", "6 7 8 9 10 11 12"),
        ("{cite:t}`shental2003`, §2.2 up to eq. (9), §2.3", "shental2003", "8 9"),
        (
            "{cite:t}`shental2003`, §2.1.2 and the update of §2.2 (eqs. 6, 7\nand 10 to 12, "
            "footnote 3)",
            "shental2003",
            "6 7 10 11 12",
        ),
        ("{cite:t}`schmidt2016`, eq. (\\*\\*\\*) and §3", "schmidt2016", "***"),
        ("{cite:t}`barhillel2005`, Algorithms 1 to 4, §5", "barhillel2005", "11 12"),
    ],
)
def test_what_a_line_covers(line, source, expected):
    found = covered.covers(f"**Time**: an hour.\n\n**Covers** {line}\n\n§3, eq. 2.1\n", TABLE)
    assert numbers(found, source) == expected.split()


def test_a_chapter_that_cites_what_is_not_there_is_named(tmp_path):
    path = tmp_path / "05_wrong.ipynb"
    cells = [{"cell_type": "markdown", "source": ["by {cite:t}`lu2007`, eq. 3.6"]}]
    path.write_text(json.dumps({"cells": cells}), encoding="utf8")
    with pytest.raises(TagError, match=r"05_wrong\.ipynb: .*has no eq '3\.6'"):
        covered.covered(path, TABLE)
