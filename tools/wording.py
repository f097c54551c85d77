"""Check the wording of docstrings, names and the subject of the last commit, for ``make lint``.

The first line of a docstring must be a sentence or a noun phrase, not a clause ("What a fit ..."),
and names must not contain some everyday words for which the field has a term.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Folders whose docstrings and names are checked.
CHECKED = ("cgmm", "tools", "tests", "benchmarks", "assignments", "book")
# Files of cgmm/primer that are not checked, because chapters show their code and use its names.
UNCHECKED = {"fitting.py", "mirrors.py", "variational.py", "error_rates.py"}
CLAUSES = {"What", "Who", "Whom", "Whether", "How", "Which", "Where", "By", "Of", "As"}
# Words that names must not contain, with the words to write instead.
WORDS = {
    "told": "relations or known", "said": "found or message", "seen": "visited or known",
    "tried": "attempted", "few": "subsample", "dear": "expensive", "heed": "respect",
    "lay": "place", "whom": "annotator",
}  # fmt: skip
LONGEST_SUBJECT = 72


def list_files() -> Iterator[Path]:
    """Yield the Python files of the project that are checked."""
    for folder in CHECKED:
        paths = sorted((ROOT / folder).rglob("*.py"))
        yield from (p for p in paths if not (p.parent.name == "primer" and p.name in UNCHECKED))


def find_faults(path: Path) -> Iterator[str]:
    """Yield a message for each docstring and name of a file that breaks a rule."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
        place = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}"
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
            first = (ast.get_docstring(node) or "").partition(" ")[0]
            if first in CLAUSES:
                yield f"{place}: a docstring begins with {first!r}; begin with a verb or a noun"
        for word in set(defined_name(node).lower().split("_")) & WORDS.keys():
            yield f"{place}: {defined_name(node)!r} has the word {word!r}; write {WORDS[word]}"


def defined_name(node: ast.AST) -> str:
    """Return the name that a node defines, or "" if it defines none."""
    if isinstance(node, ast.Name):
        return node.id if isinstance(node.ctx, ast.Store) else ""
    if isinstance(node, ast.arg):
        return node.arg
    is_named = isinstance(node, ast.FunctionDef | ast.ClassDef)
    # Names of tests are sentences, so they may contain any word.
    return node.name if is_named and not node.name.startswith("test_") else ""


def main() -> None:
    """Print all faults, and exit with an error if there are any."""
    found = [fault for path in list_files() for fault in find_faults(path)]
    git = ["git", "-C", str(ROOT), "log", "-1", "--format=%s"]
    subject = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    if len(subject) > LONGEST_SUBJECT:
        found.append(f"the last commit's subject has {len(subject)} letters: {subject}")
    sys.exit("\n".join(found) or None)


if __name__ == "__main__":
    main()
