"""What the tools that make a page of the book share: write it, or say whether it is stale."""

from __future__ import annotations

import argparse
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BOOK = ROOT / "book"


def is_check(about: str | None, arguments: list[str] | None) -> bool:
    """Read the command line of a tool: whether ``--check`` asks to change nothing."""
    parser = argparse.ArgumentParser(description=(about or "").split("\n")[0])
    parser.add_argument("--check", action="store_true", help="change nothing, report staleness")
    return parser.parse_args(arguments).check


def publish(text: str, path: Path, tool: str, *, check: bool) -> int:
    """Write a page; with ``check`` only compare, and return 1 if the file has another text."""
    if not check:
        path.write_text(text, encoding="utf8")
        print(f"{path}: written")
        return 0
    there = path.read_text(encoding="utf8") if path.exists() else ""
    is_stale = there != text
    print(f"{path} is stale: run {tool}" if is_stale else f"{path} is up to date.")
    return int(is_stale)


def table(rows: list[tuple[str, ...]]) -> str:
    """A table in Markdown; the first row is its head."""
    rows = [rows[0], ("---",) * len(rows[0]), *rows[1:]]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
