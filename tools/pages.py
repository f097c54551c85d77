"""Paths and helpers shared by the tools that write pages of the book."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BOOK = ROOT / "book"
# Make book/reruns importable as the package ``reruns``, as it is for chapters.
sys.path.append(str(BOOK))


def markdown_table(rows: list[tuple[str, ...]]) -> str:
    """Return a Markdown table; the first row is its header."""
    rows = [rows[0], ("---",) * len(rows[0]), *rows[1:]]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
