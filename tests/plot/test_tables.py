"""Test tables: the place of each cell, as HTML and as text."""

from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st

from cgmm import plot

WORD = st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1, max_size=8)
ROWS = st.integers(2, 4).flatmap(
    lambda n: st.lists(st.lists(WORD, min_size=n, max_size=n), min_size=2, max_size=5)
)


@given(ROWS)
def test_every_cell_is_in_its_row_and_column_and_columns_of_the_text_end_at_one_place(rows):
    table = plot.table(rows[0], rows[1:])
    page = BeautifulSoup(table._repr_html_(), "html.parser")
    shown = [[cell.get_text() for cell in row.select("th, td")] for row in page.select("tr")]
    assert shown == rows
    assert [one["scope"] for one in page.select("tbody th")] == ["row"] * (len(rows) - 1)
    lines = repr(table).split("\n")
    assert len(lines) == len(rows)
    assert len({len(line) for line in lines}) == 1
