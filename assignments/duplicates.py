"""Which submissions resemble each other, task by task: a report, not a verdict.

Code is compared without names, comments and layout, answers to open questions by passages of eight
words. What many hand in, because there is one natural way to write it, counts for nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from itertools import combinations

ALIKE = ["assignment", "student", "other", "same_code", "same_words"]
# What more students share is nobody's in particular: so many, or one in so many.
COMMON, SHARE = 5, 10
SHORTEST = 400  # letters of a tree: below it there is little to choose
PASSAGE = 8


def alike(results: Iterable[dict]) -> list[dict]:
    """A line for each two submissions that share code or passages, those that share most first."""
    owners: dict[tuple[str, str, str], set[str]] = {}
    results = list(results)
    common = max(COMMON, len({result["student"] for result in results}) // SHARE)
    for result in results:
        for kind, mark in _marks(result):
            owners.setdefault((result["assignment"], kind, mark), set()).add(result["student"])
    shared: dict[tuple[str, str, str], dict[str, set]] = {}
    for (name, kind, mark), students in owners.items():
        if 2 <= len(students) <= common:
            for pair in combinations(sorted(students), 2):
                found = shared.setdefault((name, *pair), {"words": set(), "code": set()})
                if kind == "words":
                    found["words"].add(mark)
                else:
                    found["code"].add(kind)
    lines = [
        {"assignment": name, "student": one, "other": two,
         "same_code": " ".join(sorted(found["code"])), "same_words": len(found["words"])}
        for (name, one, two), found in shared.items()
    ]  # fmt: skip
    return sorted(lines, key=lambda line: (-len(line["same_code"]), -line["same_words"]))


def _marks(result: dict) -> Iterable[tuple[str, str]]:
    """Of each task its code's shape, and of the answers their passages."""
    for cell in result["cells"]:
        if cell["kind"] == "code" and re.fullmatch(r"task-\d+", cell["task"] or ""):
            shape = _shape(cell["source"])
            if len(shape) >= SHORTEST:
                yield cell["task"], shape
    for row in result["rows"]:
        words = re.findall(r"\w+", row.answer.lower())
        for n in range(len(words) - PASSAGE + 1):
            yield "words", " ".join(words[n : n + PASSAGE])


def _shape(text: str) -> str:
    """A tree in which names are numbers; nothing where the code does not parse."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return ""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = names.setdefault(node.id, f"n{len(names)}")
        elif isinstance(node, ast.arg):
            node.arg = names.setdefault(node.arg, f"n{len(names)}")
        elif isinstance(node, ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.dump(tree)
