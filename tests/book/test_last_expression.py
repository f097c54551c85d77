"""Test that tables and explorers are the last expression of their cell, so that they are shown."""

import ast

import pytest
from cells import CHAPTERS, read_code_cells

SHOWN = {"table", "source", "Explorer", "LiveFigure"}


def find_lost_outputs(source: str) -> list[str]:
    """Return calls whose results are not shown, because another statement follows in the cell."""
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
    lost = {key: find_lost_outputs(source) for key, source in read_code_cells(path)}
    assert not any(lost.values()), f"put these calls last in their cells: {lost}"
