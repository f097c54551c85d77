"""Show results as tables: HTML in a notebook and in the book, text elsewhere.

All chapters call ``table``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from cgmm.summary import Table

# Only hyphens before numbers match, not those in "1e-06", "k-2" or "2003-2007".
HYPHEN = r"(?<![\w.])-(?=\.?\d)"
NEGATIVE_ZERO = HYPHEN + r"(?=0*\.?0*(?![\d.]))"


def table(head: Sequence[object], rows: Iterable[Sequence[object]]) -> Table:
    """Show results as a table with names in the first column and right-aligned numbers.

    Parameters
    ----------
    head : sequence
        Titles of the columns.
    rows : iterable of sequences
        Entries of the rows, each as long as the head. They are shown as ``str`` writes them, so
        format numbers before. A hyphen before a number becomes a minus sign, and the sign of a
        number that was rounded to zero is dropped.

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
    """Return a cell with minus signs for hyphens, and no sign before zero.

    Examples
    --------
    >>> typeset("-1.5 to -0.0"), typeset("lu2007-fig10"), typeset(1e-06)
    ('−1.5 to 0.0', 'lu2007-fig10', '1e-06')
    """
    return re.sub(HYPHEN, "−", re.sub(NEGATIVE_ZERO, "", str(cell)))
