"""Test that captions name only numbers that a run computes, and no colours that dark mode changes.

Each number in a caption or text alternative must occur in the source or the output of a cell in the
same section of the chapter. Tests of the chapters run these cells again, and fail if a number has
changed. A number that occurs in no cell fails here.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from built_book import ROOT
from cells import read_cells

CHAPTERS = sorted((ROOT / "book").glob("*.ipynb"))
EVERY = [cell for path in CHAPTERS for cell in read_cells(path)]
NUMBER = re.compile(r"(?<![\w.])\d[\d,_]*(?:\.\d+)?(?:e-?\d+)?(?: ?%)?")
# Numbers that name parts of a paper: Figure 5, eq. (3.2), data sets 1 and 2.
NAMES = re.compile(
    r"\b(?:Figures?|Appendix|eq\.|Chapters?|(?:[Dd]ata )?[Ss]ets?) \(?\d[\d.]*[a-z]?\)?"
    r"(?:(?:,| and| to| or) \d[\d.]*[a-z]?)*|\b[a-z]+\d{4}\b|Ĉ"
)
# Dark mode inverts the lightness of a figure, so black lines become white.
LIGHTNESS = re.compile(r"\b(?:black|white|dark|darker|light|lighter|pale|paler)\b")
# Figures whose captions use "light" for lamps, not for a colour.
OF_LAMPS = {"fig-lamps"}


class FigureText(NamedTuple):
    """Caption and text alternative of a figure, and the numbers in the cells of its section."""

    cell: str
    text: str
    known: set[float]
    keeps_colours: bool


def read_figures(path: Path) -> Iterator[FigureText]:
    """Yield the texts of the figures of a chapter."""
    for section in group_cells_by_section(read_cells(path)):
        known = parse_numbers("\n".join(map(source_and_output, section)))
        for cell in section:
            about = cell["metadata"].get("mystnb", {})
            alt, figure = about.get("image", {}).get("alt", ""), about.get("figure", {})
            if alt or figure:
                text = f"{alt} {figure.get('caption', '')}"
                tags = cell["metadata"].get("tags", ())
                yield FigureText(cell["id"], text, known, "keep-colours" in tags)


def group_cells_by_section(chapter: list[dict]) -> Iterator[list[dict]]:
    """Yield the code cells of each section of a chapter."""
    section: list[dict] = []
    for cell in chapter:
        if cell["cell_type"] == "code":
            section.append(cell)
        elif re.search(r"^##? ", "".join(cell["source"]), re.MULTILINE):
            yield section
            section = []
    yield section


def source_and_output(cell: dict) -> str:
    """Return the source of a cell and its printed output."""
    lines = list(cell["source"])
    for output in cell["outputs"]:
        lines += ["\n", *output.get("text", ()), *output.get("data", {}).get("text/plain", ())]
    return "".join(lines)


def parse_numbers(text: str) -> set[float]:
    """Return the numbers in a text; "25 %" gives both 25 and 0.25."""
    found = set()
    for one in NUMBER.findall(text):
        value = float(re.sub(r"[,_% ]", "", one))
        found |= {value, round(value / 100, 9)} if "%" in one else {value}
    return found


def find_unsourced_numbers(figure: FigureText) -> list[str]:
    """Return the numbers in a figure's texts that occur in no cell of its section."""
    numbers = NUMBER.findall(NAMES.sub("", figure.text))
    return [one.strip(", ") for one in numbers if not parse_numbers(one) & figure.known]


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_numbers_in_captions_occur_in_cells_of_the_section(path):
    found = [(figure.cell, find_unsourced_numbers(figure)) for figure in read_figures(path)]
    missing = {cell: numbers for cell, numbers in found if numbers}
    assert missing == {}, "assert these numbers in a cell of the figure's section"


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_captions_name_no_colours_that_dark_mode_changes(path):
    for drawn in read_figures(path):
        if not drawn.keeps_colours and drawn.cell not in OF_LAMPS:
            assert not LIGHTNESS.search(drawn.text), (drawn.cell, drawn.text)


def test_no_cell_makes_both_a_table_and_a_figure():
    """Otherwise the table would become a second figure with the caption of the first."""
    shown = [cell for cell in EVERY if "figure" in cell["metadata"].get("mystnb", {})]
    assert len(shown) > 100
    assert [cell["id"] for cell in shown if "cgmm-table" in json.dumps(cell["outputs"])] == []


def test_lines_of_visible_code_fit_the_page_width():
    shown = [
        "".join(cell["source"]) for cell in EVERY if cell["cell_type"] == "code"
        and not {"remove-cell", "remove-input"} & set(cell["metadata"].get("tags", ()))
    ]  # fmt: skip
    assert len(shown) > 500
    assert [line for source in shown for line in source.splitlines() if len(line) > 78] == []
