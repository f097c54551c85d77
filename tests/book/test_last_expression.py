"""Test that tables and explorers are the last expression of their cell, so that they are shown."""

import ast

import pytest
from cells import CHAPTERS, sources

SHOWN = {"table", "source", "Explorer", "LiveFigure"}


def find_lost_outputs(source: str) -> list[str]:
    """Return calls that return something to show but are not the last statement of their cell."""
    return [
        ast.unparse(one.value.func)
        for one in ast.parse(source).body[:-1]
        if isinstance(one, ast.Expr)
        and isinstance(one.value, ast.Call)
        and ast.unparse(one.value.func).rpartition(".")[2] in SHOWN
    ]


def test_a_table_before_a_print_is_found():
    assert find_lost_outputs("plot.table([], [])\nprint(1)") == ["plot.table"]
    assert find_lost_outputs("print(1)\nplot.table([], [])") == []


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_no_cell_of_a_chapter_loses_an_output(path):
    found = {key: calls for key, source in sources(path) if (calls := find_lost_outputs(source))}
    assert not found, f"{path.stem}: put the call last in its cell"
