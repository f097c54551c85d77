"""Find the project's equation tags, and the equations that nothing computes.

A tag is a comment or a part of a docstring, such as [shental2003, eq. 9]. How it is written stands
in tools/equation_grammar.py, and what it may name in book/_data/equations.toml.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from equation_grammar import Tag, TagError, load_table, parse, tags
from pages import BOOK, ROOT

# Where equations are computed, and where tags may stand.
COMPUTED = ("cgmm", "book/reruns")
TAGGED = (*COMPUTED, "tests", "benchmarks")
# These files are about tags, and some of those in them are wrong on purpose.
UNTAGGED = {
    f"tests/tools/test_{tool}.py"
    for tool in ("covered", "equation_grammar", "equation_tags", "equations")
}

Name = tuple[str, str, str]
"""Source, kind and identifier: ("lu2007", "eq", "2.15")."""


class Site(NamedTuple):
    """A tag in a file of the project."""

    path: str
    """From the root of the project, with slashes."""
    tag: Tag
    scope: tuple[str, ...]
    """Names of the class and function around it, outermost first."""


def sites(*folders: str, root: Path = ROOT) -> Iterator[Site]:
    """Every tag in the Python files of these folders; citations of other documents are left out."""
    for path in (path for folder in folders for path in sorted((root / folder).rglob("*.py"))):
        name = path.relative_to(root).as_posix()
        if name in UNTAGGED:
            continue
        text = path.read_text(encoding="utf8")
        found = [tag for tag in tags(text) if re.match(r"\[(\w+)", tag.text)[1] not in _cited()]
        scope_at = scopes(text) if found else None
        yield from (Site(name, tag, scope_at(tag.line)) for tag in found)


@cache
def _cited() -> set[str]:
    """Keys of the books and papers in the bibliography that are not among the five documents."""
    entries = (BOOK / "references.bib").read_text(encoding="utf8")
    return set(re.findall(r"^@\w+\{(\w+),", entries, re.MULTILINE)) - set(load_table())


def scopes(source: str) -> Callable[[int], tuple[str, ...]]:
    """From a line to the names of the class and function around it, outermost first."""
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


def tagged(found: Iterable[Site], table: dict) -> dict[Name, list[Site]]:
    """Return the places of each tag; tags of unknown equations are ignored."""
    where: dict[Name, list[Site]] = {}
    for site in found:
        try:
            references = parse(site.tag.text, table)
        except TagError:
            continue
        for source, kind, identifiers in references:
            for identifier in identifiers:
                where.setdefault((source, kind, identifier), []).append(site)
    return where


def equations(table: dict) -> Iterator[tuple[Name, dict]]:
    """Every numbered equation, and its entry in the table."""
    for source, entries in table.items():
        yield from (((source, "eq", n), entry) for n, entry in entries.get("eq", {}).items())


def faults(
    table: dict, computed: dict[Name, list[Site]], tested: dict[Name, list[Site]]
) -> list[str]:
    """Return the faults of the table, given the tags of the package and the tests."""
    found = []
    for name, entry in equations(table):
        source, _, number = name
        here = f"{source}, eq. {number}: "
        if name not in computed and "no_code" not in entry:
            found.append(f"{here}no tag in cgmm names it, and no_code gives no reason")
        if name in computed and "no_code" in entry:
            site = computed[name][0]
            found.append(f"{here}no_code is stale, {site.path}:{site.tag.line} is tagged with it")
        if name in computed and not (entry.get("held_by") or name in tested):
            found.append(f"{here}no test is tagged with it, and held_by names none")
        if entry["where"] not in table[source]["sect"] | table[source].get("app", {}):
            found.append(f"{here}there is no section or appendix {entry['where']!r}")
        found += [here + fault for fault in _holder_faults(entry, tested.get(name, []))]
    return found


@cache
def find_test(file: str) -> Path | None:
    """The test module of that name, in whichever folder of tests/ it lies."""
    return next((ROOT / "tests").rglob(file), None)


def _holder_faults(entry: dict, tagged_tests: list[Site]) -> Iterator[str]:
    """Tests named by the table that do not exist, or carry the tag themselves."""
    carriers = {f"{Path(s.path).name}::{name}" for s in tagged_tests for name in s.scope[-1:]}
    for holder in entry.get("held_by", []):
        file, _, function = holder.partition("::")
        path = find_test(file)
        text = path.read_text(encoding="utf8") if path else ""
        if not re.search(rf"^ *def {function}\(", text, re.MULTILINE):
            yield f"held_by names {holder}, which does not exist"
        if holder in carriers:
            yield f"held_by names {holder}, which carries the tag itself"
