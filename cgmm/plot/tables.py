"""Show results as tables, which are HTML in notebooks and in the book, and plain text elsewhere.

All chapters call ``table``. Its cells are strings that are already formatted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from cgmm.summary import Table

# This matches only hyphens before numbers, not those in "1e-06", "k-2" or "2003-2007".
HYPHEN = r"(?<![\w.])-(?=\.?\d)"
NEGATIVE_ZERO = HYPHEN + r"(?=0*\.?0*(?![\d.]))"


def table(head: Sequence[object], rows: Iterable[Sequence[object]]) -> Table:
    """Show results as a table with names in the first column and right-aligned numbers.

    Parameters
    ----------
    head : sequence
        Titles of the columns.
    rows : iterable of sequences
        Rows, each with one entry per column. Entries are converted by ``str``, so format numbers
        first. A hyphen before a number becomes a minus sign; zero gets no sign.

    Returns
    -------
    Table
        The table, which a notebook shows as HTML.

    Raises
    ------
    ValueError
        If a row does not have one entry per column.

    Examples
    --------
    >>> table(["data", "right"], [["iris", "0.96"], ["wine", "0.9"]])
    data  right
    iris   0.96
    wine    0.9

    >>> table(["gain", ""], [["k-means", "-0.02 ± 0.01"], ["EM", f"{-0.001:.2f}"]])
    gain
    k-means  −0.02 ± 0.01
    EM               0.00
    """
    rows = [[typeset(cell) for cell in row] for row in rows]
    for row in rows:
        if len(row) != len(head):
            raise ValueError(f"the row {row} has {len(row)} entries, the head {len(head)}")
    return Table(head, rows)


def typeset(cell: object) -> str:
    """Return a cell as text, with minus signs instead of hyphens, and no sign before zero.

    Examples
    --------
    >>> typeset("-1.5 to -0.0"), typeset("lu2007-fig10"), typeset(1e-06)
    ('−1.5 to 0.0', 'lu2007-fig10', '1e-06')
    """
    return re.sub(HYPHEN, "−", re.sub(NEGATIVE_ZERO, "", str(cell)))
