"""Test that captions name only numbers that a run computes, and no colours that dark mode changes.

A number in a caption or in a text alternative has to stand in the figure's own cell, where it is
drawn or asserted, or in what a cell of the same section computes or prints; those are run again by
every test of the chapters. So a number that drifts from its data fails in a cell, and one that was
only typed fails here, unless another number of the section is the same by chance.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from built_book import ROOT
from cells import cells

CHAPTERS = sorted((ROOT / "book").glob("*.ipynb"))
EVERY = [cell for path in CHAPTERS for cell in cells(path)]
NUMBER = re.compile(r"(?<![\w.])\d[\d,_]*(?:\.\d+)?(?:e-?\d+)?(?: ?%)?")
# Numbers that name parts of a paper: Figure 5, eq. (3.2), data sets 1 and 2.
NAMES = re.compile(
    r"\b(?:Figures?|Appendix|eq\.|Chapters?|(?:[Dd]ata )?[Ss]ets?) \(?\d[\d.]*[a-z]?\)?"
    r"(?:(?:,| and| to| or) \d[\d.]*[a-z]?)*|\b[a-z]+\d{4}\b|Ĉ"
)
# Dark mode inverts the lightness of a figure, so black lines become white.
LIGHTNESS = re.compile(r"\b(?:black|white|dark|darker|light|lighter|pale|paler)\b")
# Phrases in which light is not a colour.
OF_LAMPS = {("12_rca", "fig-lamps")}


class FigureText(NamedTuple):
    """Caption and text alternative of a figure, and the numbers that cells of its section show."""

    chapter: str
    cell: str
    text: str
    known: set[float]
    keeps_colours: bool


def read_figures(path: Path) -> Iterator[FigureText]:
    for section in cells_by_section(cells(path)):
        texts = [text for cell in section for text in computed_numbers(cell)]
        known = {number for text in texts for number in parse_numbers(text)}
        for cell in section:
            about = cell["metadata"].get("mystnb", {})
            alt, figure = about.get("image", {}).get("alt", ""), about.get("figure", {})
            if alt or figure:
                text = f"{alt} {figure.get('caption', '')}"
                tags = cell["metadata"].get("tags", ())
                yield FigureText(path.stem, cell["id"], text, known, "keep-colours" in tags)


def cells_by_section(cells: list[dict]) -> Iterator[list[dict]]:
    """Return, for each section of a chapter, its code cells."""
    section: list[dict] = []
    for cell in cells:
        if cell["cell_type"] == "code":
            section.append(cell)
        elif re.search(r"^##? ", "".join(cell["source"]), re.MULTILINE):
            yield section
            section = []
    yield section


def computed_numbers(cell: dict) -> Iterator[str]:
    """Return the source of a cell and its printed output."""
    yield "".join(cell["source"])
    for output in cell["outputs"]:
        yield "".join(output.get("text", ()))
        yield "".join(output.get("data", {}).get("text/plain", ()))


def parse_numbers(text: str) -> set[float]:
    """Return the numbers of a text; a percentage also as a share."""
    found = set()
    for one in NUMBER.findall(text):
        value = float(re.sub(r"[,_% ]", "", one))
        found |= {value, round(value / 100, 9)} if "%" in one else {value}
    return found


def unsourced_numbers(shown: FigureText) -> list[str]:
    """Return the numbers of a caption that no cell of the section shows."""
    text = NAMES.sub("", shown.text)
    return [one.strip(", ") for one in NUMBER.findall(text) if not parse_numbers(one) & shown.known]


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_numbers_in_captions_come_from_the_run(path):
    found = [(figure.cell, unsourced_numbers(figure)) for figure in read_figures(path)]
    missing = {cell: numbers for cell, numbers in found if numbers}
    assert missing == {}, "assert these numbers in a cell of the figure's section"


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_captions_name_no_colours_that_dark_mode_changes(path):
    for drawn in read_figures(path):
        if not drawn.keeps_colours and (drawn.chapter, drawn.cell) not in OF_LAMPS:
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
