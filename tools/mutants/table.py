"""A mutant: the source of one module with one mistake."""

from __future__ import annotations

import ast
import difflib
import hashlib
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
# The rooms whose files compute something: each file has mutants.
MATHEMATICS = (
    "numerics", "given", "network", "inference", "mixture", "kmeans", "metric_learning", "metrics",
    "scenarios", "diagnose", "decide", "primer",
)  # fmt: skip


class Mutant(NamedTuple):
    """A module with one mistake."""

    module: str
    """Below cgmm, as ``inference.pairs``."""
    name: str
    mutated: str
    """The whole source, mistake included."""

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
