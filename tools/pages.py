"""Shared parts of the tools that write a page of the book."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BOOK = ROOT / "book"
# Chapters import the package reruns from the folder in which they stand; so do the tools.
sys.path.append(str(BOOK))


def table(rows: list[tuple[str, ...]]) -> str:
    """A table in Markdown; the first row is its head."""
    rows = [rows[0], ("---",) * len(rows[0]), *rows[1:]]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
