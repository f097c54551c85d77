"""Show results as tables: HTML in a notebook and in the book, text elsewhere. All chapters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cgmm.summary import Table


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
