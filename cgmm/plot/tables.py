"""Tables of results: HTML in a notebook and in the book, aligned text elsewhere. All chapters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


class Table:
    """Rows below a head; the first column names the row, the others are numbers."""

    def __init__(self, head: Sequence[object], rows: Iterable[Sequence[object]]) -> None:
        self.head, *self.rows = [list(map(str, row)) for row in (head, *rows)]

    def _repr_html_(self) -> str:
        # A cell without a word heads nothing, and would be read out as an empty heading.
        head = "".join(
            f'<th scope="col">{escape(word)}</th>' if word else "<td></td>" for word in self.head
        )
        body = "\n".join(
            f'<tr><th scope="row">{escape(name)}</th>'
            + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
            + "</tr>"
            for name, *cells in self.rows
        )
        return (
            f'<table class="cgmm-table">\n<thead><tr>{head}</tr></thead>\n'
            f"<tbody>\n{body}\n</tbody>\n</table>"
        )

    def __repr__(self) -> str:
        lines = [self.head, *self.rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join([name.ljust(widths[0]), *map(str.rjust, cells, widths[1:])]).rstrip()
            for name, *cells in lines
        )


def table(head: Sequence[object], rows: Iterable[Sequence[object]]) -> Table:
    """Show results as a table: the first column names, the others numbers at the right.

    Parameters
    ----------
    head : sequence
        What stands above the columns.
    rows : iterable of sequences
        What stands below, each as long as the head; numbers are shown as ``str`` writes them, so
        that they come formatted.

    Returns
    -------
    Table
        A notebook shows it as HTML.

    Raises
    ------
    ValueError
        If a row is not as long as the head.

    Examples
    --------
    >>> table(["data", "right"], [["iris", "0.96"], ["wine", "0.9"]])
    data  right
    iris   0.96
    wine    0.9
    """
    rows = [list(row) for row in rows]
    for row in rows:
        if len(row) != len(head):
            raise ValueError(f"the row {row} has {len(row)} entries, the head {len(head)}")
    return Table(head, rows)
