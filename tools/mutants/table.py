"""Mutants as edits of one source file, and the tables in which known ones are written down."""

from __future__ import annotations

import ast
import difflib
import hashlib
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
# The rooms whose files compute something: each file has mutants.
MATHEMATICS = (
    "numerics", "given", "network", "inference", "mixture", "kmeans", "metric_learning", "metrics",
    "scenarios", "diagnose", "decide", "primer",
)  # fmt: skip
# Reasons: why some generated mutants survive, and why some modules have none made by hand.
SURVIVORS, WITHOUT = "survivors.toml", "without.toml"


class Mutant(NamedTuple):
    """A module with one mistake."""

    module: str
    """Below cgmm, as ``inference.pairs``."""
    name: str
    mutated: str
    """The whole source, mistake included."""
    made: str
    """``hand`` or ``generated``."""
    error: str = ""
    """The mistake that it stands for."""
    quick: str = ""
    """A test that is known to kill it fast."""
    explained: str = ""
    """Why no test can kill it."""

    @property
    def key(self) -> str:
        """Names the mistake, not its place in the file: results stay valid when lines move."""
        before, after = (_functions(text) for text in (source(self.module), self.mutated))
        changed = [part for part in after if part not in before]
        gone = [part for part in before if part not in after]
        text = "\n".join([self.module, *changed, "", *gone])
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def diff(self) -> str:
        """The changed lines, with their numbers."""
        old, new = source(self.module).splitlines(), self.mutated.splitlines()
        said = []
        for tag, i, end, j, stop in difflib.SequenceMatcher(None, old, new, False).get_opcodes():
            if tag != "equal":
                said += [f"{i + 1}: - {line.strip()}" for line in old[i:end]]
                said += [f"{i + 1}: + {line.strip()}" for line in new[j:stop]]
        return "\n".join(said)


class Verdict(NamedTuple):
    """What became of a mutant."""

    mutant: Mutant
    outcome: str
    """killed, survived, timeout (a hang is noticed as well), or unknown."""
    seconds: float
    killer: str
    """The first test that failed, or why nothing is known."""


def modules() -> list[str]:
    """Every file of the mathematics: "numerics", "mixture.loop"; doors compute nothing."""
    package = ROOT / "cgmm"
    paths = [path for room in MATHEMATICS for path in (package / room).glob("*.py")]
    paths += [path for room in MATHEMATICS if (path := package / f"{room}.py").exists()]
    names = [".".join(path.relative_to(package).with_suffix("").parts) for path in paths]
    return sorted(name for name in names if not name.endswith("__init__"))


def path_of(module: str) -> Path:
    """The file of a module."""
    return ROOT / "cgmm" / (module.replace(".", "/") + ".py")


@cache
def source(module: str) -> str:
    """The text of a module, as it stood when first asked for."""
    return path_of(module).read_text(encoding="utf-8")


@cache
def _functions(text: str) -> tuple[str, ...]:
    """Each top-level statement without what is not run: docstrings, annotations and comments."""
    tree = _Unannotated().visit(ast.parse(text))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.returns = None
            for argument in [*node.args.args, *node.args.kwonlyargs]:
                argument.annotation = None
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node, False):
            node.body = node.body[1:] or [ast.Pass()]
    return tuple(map(ast.unparse, tree.body))


class _Unannotated(ast.NodeTransformer):
    """Turns ``x: T = value`` into ``x = value``."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        if node.value is None:
            return node
        return ast.copy_location(ast.Assign([node.target], node.value), node)


# ---------------------------------------------------------------------------- the tables


class Entry(NamedTuple):
    """A row of a table: a text that stands once in a module, or in one function of it."""

    module: str
    name: str
    find: str
    replace: str
    error: str = ""
    within: str = ""
    """The function or class where ``find`` stands once; the whole module if empty."""
    quick: str = ""
    equivalent: str = ""
    """Why it changes nothing that is returned."""

    @property
    def mutated(self) -> str:
        """The module's source with the mistake."""
        text = source(self.module)
        start, stop = _span(text, self.within)
        n_found = text.count(self.find, start, stop)
        if n_found != 1 or self.find == self.replace:
            where = f"{self.module}.{self.within}" if self.within else self.module
            raise ValueError(
                f"mutant {self.name!r}: {self.find!r} stands {n_found} times in {where}; it must "
                "stand there once, and differ from what replaces it. Correct the table."
            )
        place = text.index(self.find, start, stop)
        return text[:place] + self.replace + text[place + len(self.find) :]

    def mutant(self) -> Mutant:
        """The mutant that the row describes."""
        return Mutant(
            self.module, self.name, self.mutated, "hand", self.error, self.quick, self.equivalent
        )


def _span(text: str, within: str) -> tuple[int, int]:
    """First and last place of a function or class."""
    if not within:
        return 0, len(text)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == within:
            lines = text.splitlines(keepends=True)
            return sum(map(len, lines[: node.lineno - 1])), sum(map(len, lines[: node.end_lineno]))
    raise ValueError(f"there is no function or class {within!r} any more. Correct the table.")


def entries(paths: Iterable[Path] | None = None) -> list[Entry]:
    """The rows of all tables of hand-made mutants, in reading order."""
    paths = sorted(HERE.glob("*.toml")) if paths is None else paths
    return [
        Entry(module=module, **row)
        for path in paths
        if path.name not in (SURVIVORS, WITHOUT)
        for module, rows in tomllib.loads(path.read_text(encoding="utf-8")).items()
        for row in rows
    ]


def survivors() -> list[Entry]:
    """The generated mutants that survive for a reason."""
    tables = tomllib.loads((HERE / SURVIVORS).read_text(encoding="utf-8"))
    return [
        Entry(module=module, name=f"{module}: {row['find']}", **row)
        for module, rows in tables.items()
        for row in rows
    ]


def without() -> dict[str, str]:
    """The modules that have no hand-made mutant, and why."""
    return tomllib.loads((HERE / WITHOUT).read_text(encoding="utf-8"))
