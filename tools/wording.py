"""Check the wording of docstrings, names and the last commit; ``make lint`` calls it.

A docstring's first line is a sentence or a noun phrase, not a clause ("What a fit ..."), and names
avoid words that say something else than the field's terms do.
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
# Files whose functions stand in chapters, with the names that the text uses.
EXCEPT = {"fitting.py", "mirrors.py", "variational.py", "error_rates.py"}
CLAUSES = {"What", "Who", "Whom", "Whether", "How", "Which", "Where", "By", "Of", "As"}
# Words that names do not contain, with what to write.
WORDS = {
    "told": "relations or known", "said": "found or message", "seen": "visited or known",
    "tried": "attempted", "few": "subsample", "dear": "expensive", "heed": "respect",
    "lay": "place", "whom": "annotator",
}  # fmt: skip
LONGEST_SUBJECT = 72


def files() -> Iterator[Path]:
    """Yield the Python files of the project that are checked."""
    for folder in CHECKED:
        paths = sorted((ROOT / folder).rglob("*.py"))
        yield from (p for p in paths if not (p.parent.name == "primer" and p.name in EXCEPT))


def faults(path: Path) -> Iterator[str]:
    """Yield a message for each docstring and name of a file that breaks a rule."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
        at = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}"
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
            first = (ast.get_docstring(node) or "").partition(" ")[0]
            if first in CLAUSES:
                yield f"{at}: a docstring begins with {first!r}; begin with a verb or a noun"
        for word in set(name_of(node).lower().split("_")) & WORDS.keys():
            yield f"{at}: {name_of(node)!r} has the word {word!r}; write {WORDS[word]}"


def name_of(node: ast.AST) -> str:
    """Return the name that a node defines, or nothing."""
    if isinstance(node, ast.Name):
        return node.id if isinstance(node.ctx, ast.Store) else ""
    if isinstance(node, ast.arg):
        return node.arg
    is_named = isinstance(node, ast.FunctionDef | ast.ClassDef)
    # The name of a test is a sentence.
    return node.name if is_named and not node.name.startswith("test_") else ""


def main() -> None:
    """Print all faults; end with an error if there are any."""
    found = [fault for path in files() for fault in faults(path)]
    git = ["git", "-C", str(ROOT), "log", "-1", "--format=%s"]
    subject = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    if len(subject) > LONGEST_SUBJECT:
        found.append(f"the last commit's subject has {len(subject)} letters: {subject}")
    sys.exit("\n".join(found) or None)


if __name__ == "__main__":
    main()
