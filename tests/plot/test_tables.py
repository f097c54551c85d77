"""Test that tables show each cell in its row and column, as HTML and as text."""

from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st

from cgmm import plot

WORD = st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1, max_size=8)
ROWS = st.integers(2, 4).flatmap(
    lambda n: st.lists(st.lists(WORD, min_size=n, max_size=n), min_size=2, max_size=5)
)


@given(ROWS)
def test_tables_keep_their_cells_in_order_and_align_the_columns_of_the_text(rows):
    table = plot.table(rows[0], rows[1:])
    page = BeautifulSoup(table._repr_html_(), "html.parser")
    shown = [[cell.get_text() for cell in row.select("th, td")] for row in page.select("tr")]
    assert shown == rows
    assert [cell["scope"] for cell in page.select("tbody th")] == ["row"] * (len(rows) - 1)
