"""Find the equation tags of the project, and the equations that no function computes.

A tag, such as [shental2003, eq. 9], is a comment or a part of a docstring. Its grammar is described
in tools/equation_grammar.py; the equations that it may name are listed in
book/_data/equations.toml.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from equation_grammar import Tag, TagError, find_tags, load_table, parse_tag
from pages import BOOK, ROOT

# Folders with functions that compute equations, and all folders that may have tags.
COMPUTED = ("cgmm", "book/reruns")
TAGGED = (*COMPUTED, "tests", "benchmarks")
# These files test the tools for tags, and contain wrong tags on purpose.
UNTAGGED = {
    f"tests/tools/test_{tool}.py"
    for tool in ("covered", "equation_grammar", "equation_tags", "equations")
}

Name = tuple[str, str, str]
"""Source, kind and identifier: ("lu2007", "eq", "2.15")."""


class Site(NamedTuple):
    """A tag in a file of the project."""

    path: str
    """Path relative to the root of the project, with slashes."""
    tag: Tag
    scope: tuple[str, ...]
    """Names of the classes and functions around the tag, outermost first."""


def find_sites(*folders: str, root: Path = ROOT) -> Iterator[Site]:
    """Yield all tags in the Python files of some folders, except citations of other documents."""
    for path in (path for folder in folders for path in sorted((root / folder).rglob("*.py"))):
        name = path.relative_to(root).as_posix()
        if name in UNTAGGED:
            continue
        text = path.read_text(encoding="utf8")
        others = _other_citations()
        found = [tag for tag in find_tags(text) if re.match(r"\[(\w+)", tag.text)[1] not in others]
        scope_at = scope_finder(text) if found else None
        yield from (Site(name, tag, scope_at(tag.line)) for tag in found)


@cache
def _other_citations() -> set[str]:
    """Return the keys of the bibliography that do not belong to the five documents."""
    entries = (BOOK / "references.bib").read_text(encoding="utf8")
    return set(re.findall(r"^@\w+\{(\w+),", entries, re.MULTILINE)) - set(load_table())


def scope_finder(source: str) -> Callable[[int], tuple[str, ...]]:
    """Return a function from a line number to the names of the classes and functions around it."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    spans: list[tuple[int, int, tuple[str, ...]]] = []

    def visit(node: ast.AST, outside: tuple[str, ...]) -> None:
        for child in ast.iter_child_nodes(node):
            inside = outside
            if isinstance(child, kinds):
                inside = (*outside, child.name)
                spans.append((child.lineno, child.end_lineno, inside))
            visit(child, inside)

    visit(ast.parse(source), ())
    return lambda line: max((s for a, b, s in spans if a <= line <= b), key=len, default=())


def group_by_equation(found: Iterable[Site], table: dict) -> dict[Name, list[Site]]:
    """Return {(source, kind, identifier): sites that name it}; invalid tags are ignored."""
    where: dict[Name, list[Site]] = {}
    for site in found:
        try:
            references = parse_tag(site.tag.text, table)
        except TagError:
            continue
        for source, kind, identifiers in references:
            for identifier in identifiers:
                where.setdefault((source, kind, identifier), []).append(site)
    return where


def numbered_equations(table: dict) -> Iterator[tuple[Name, dict]]:
    """Yield every numbered equation with its entry in the table."""
    for source, entries in table.items():
        yield from (((source, "eq", n), entry) for n, entry in entries.get("eq", {}).items())


def find_faults(
    table: dict, computed: dict[Name, list[Site]], tested: dict[Name, list[Site]]
) -> list[str]:
    """Return a message for each equation that lacks code or tests, or whose entry is outdated."""
    found = []
    for name, entry in numbered_equations(table):
        source, _, number = name
        here = f"{source}, eq. {number}: "
        if name not in computed and "no_code" not in entry:
            found.append(f"{here}no tag in cgmm names it, and no_code gives no reason")
        if name in computed and "no_code" in entry:
            site = computed[name][0]
            found.append(f"{here}no_code is wrong, {site.path}:{site.tag.line} is tagged with it")
        if name in computed and not (entry.get("held_by") or name in tested):
            found.append(f"{here}no test is tagged with it, and held_by names none")
        if entry["where"] not in table[source]["sect"] | table[source].get("app", {}):
            found.append(f"{here}there is no section or appendix {entry['where']!r}")
        found += [here + fault for fault in _check_held_by(entry, tested.get(name, []))]
    return found


@cache
def find_test(file: str) -> Path | None:
    """Return the path of a test module of this name in any folder of tests/, or None."""
    return next((ROOT / "tests").rglob(file), None)


def _check_held_by(entry: dict, tagged_tests: list[Site]) -> Iterator[str]:
    """Yield a message for each test in ``held_by`` that does not exist or already has the tag."""
    tagged_names = {f"{Path(s.path).name}::{name}" for s in tagged_tests for name in s.scope[-1:]}
    for holder in entry.get("held_by", []):
        file, _, function = holder.partition("::")
        path = find_test(file)
        text = path.read_text(encoding="utf8") if path else ""
        if not re.search(rf"^ *def {function}\(", text, re.MULTILINE):
            yield f"held_by names {holder}, which does not exist"
        if holder in tagged_names:
            yield f"held_by names {holder}, which has the tag itself: remove it from held_by"
