"""Equation tags: comments and docstrings that say which formula of a source they compute.

    [shental2003, eq. 9]                     [lu2007, Fig. 5, data set 1]
    [lu2007, eqs. C.16 to C.18]              [barhillel2005, Alg. 2, step 3 and eq. 14]
    [lu2007, sect. 2.4.1 and Fig. 2]         [green, "Maximisation step"]

What a tag may name stands in book/_data/equations.toml. Run as a script, this lists the equations that
no statement of the package computes, and why.

    python tools/equation_tags.py

    tag        := [source, group, group, ...]            the last comma may be an "and"
    group      := word identifiers                       word in the plural for several
    identifiers:= 9 | 2.15 and 5.2 | 3 to 5 | C.5, C.8, C.14
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
TAGGED = ("cgmm", "tests", "benchmarks")
# In these, tags are the matter itself, some of them wrong on purpose.
UNTAGGED = {
    "tools/equation_tags.py",
    "tests/tools/test_equation_tags.py",
    "tests/book/test_equations.py",
}

KINDS = {
    **{"eq.": "eq", "sect.": "sect", "App.": "app", "Fig.": "fig", "Alg.": "alg"},
    **{"assumption": "assumption", "note": "note", "footnote": "note"},
}
PARTS = ("step", "data set")
PLURALS = {word: f"{word.removesuffix('.')}s" for word in (*KINDS, *PARTS)}
PLURALS |= {word: f"{plural}." for word, plural in PLURALS.items() if word.endswith(".")}
SINGULARS = {plural: word for word, plural in PLURALS.items()}

TAG = re.compile(r"\[(green|[a-z]+\d{4}[a-z]?)([^\[\]]+)\]")
IDENTIFIER = r"(?:\*+|(?:[A-Z]\.)?\d+(?:\.\d+)*[a-z]?(?!\w)|[A-Z](?!\w))"
IDENTIFIERS = rf"{IDENTIFIER}(?:(?:, and |, | and | to ){IDENTIFIER})*"
WORD = "|".join(re.escape(form) for word in KINDS for form in (PLURALS[word], word))
PART = rf"(?:{'|'.join(f'{part}s?' for part in PARTS)}) {IDENTIFIERS}|left|right"
GROUP = re.compile(rf"(?P<word>{WORD}) (?P<ids>{IDENTIFIERS})(?:, (?P<part>{PART}))?")
TITLES = re.compile(r'"[^"]+"(?:(?:, and |, | and )"[^"]+")*')
SEPARATOR = re.compile(r", and |, | and |; ")


Name = tuple[str, str, str]
"""Source, kind and identifier: ("lu2007", "eq", "2.15")."""


class TagError(ValueError):
    """A tag that does not parse, or names nothing."""


class Tag(NamedTuple):
    """A tag as it stands in a text."""

    text: str
    line: int
    """Of its first character, from 1."""


class Reference(NamedTuple):
    """What a tag, or one group of it, names."""

    source: str
    kind: str
    identifiers: tuple[str, ...]


class Site(NamedTuple):
    """A tag in a file of the project."""

    path: str
    """From the root of the project, with slashes."""
    tag: Tag
    scope: tuple[str, ...]
    """Names of the class and function around it, outermost first."""


def load_table() -> dict:
    """What tags may name: {source: {kind: {identifier: ...}}}."""
    return tomllib.loads((ROOT / "book/_data/equations.toml").read_text(encoding="utf8"))


# ---------------------------------------------------------------------------- text to tags


def tags(text: str) -> list[Tag]:
    """Every tag of a text, those broken over two lines too; ``[lu2007]`` alone is a citation."""
    return [
        Tag(f"[{match[1]}{_on_one_line(match[2])}]", text.count("\n", 0, match.start()) + 1)
        for match in TAG.finditer(text)
    ]


def _on_one_line(body: str) -> str:
    return re.sub(r"\s*\n\s*(?:#\s*)?", " ", body)


# ---------------------------------------------------------------------------- tags to references


def parse(tag: str, table: dict) -> list[Reference]:
    """What a tag names, one reference a group; ranges are expanded in the order of the table.

    Raises TagError for a tag that does not follow the grammar or names nothing in the table.
    """
    source, body = TAG.fullmatch(tag).groups() if TAG.fullmatch(tag) else ("", "")
    if not body.startswith(", "):
        raise TagError(f"{tag} is no tag: write [source, eq. 1]")
    if source not in table:
        raise TagError(f"{tag}: no source {source!r}; {nearest(source, table)}")
    rest, found = body[2:], []
    while rest:
        reference, end = _first_group(tag, source, rest, table)
        found.append(reference)
        gap = SEPARATOR.match(rest, end)
        if end < len(rest) and (not gap or gap.end() == len(rest)):
            raise TagError(f"{tag}: {rest[end:]!r} is not understood")
        rest = rest[gap.end() :] if gap else ""
    return found


def _first_group(tag: str, source: str, rest: str, table: dict) -> tuple[Reference, int]:
    """The reference at the beginning of the rest, and where it ends."""
    if titles := TITLES.match(rest):
        named = tuple(re.findall('"([^"]+)"', titles[0]))
        return _existing(tag, Reference(source, "slide", named), table), titles.end()
    group = GROUP.match(rest)
    if not group:
        raise TagError(f"{tag}: {rest!r} does not begin like 'eq. 1' or 'sects. 2 and 3'")
    word = SINGULARS.get(group["word"], group["word"])
    known = list(table[source].get(KINDS[word], {}))
    ids = _expand(tag, group["word"], group["ids"], known)
    if group["part"]:
        ids = _parts(tag, ids, group["part"])
    return _existing(tag, Reference(source, KINDS[word], ids), table), group.end()


def _expand(tag: str, word: str, listed: str, known: list[str]) -> tuple[str, ...]:
    """The identifiers of a list, which a plural announces; "3 to 5" with all between."""
    found: list[str] = []
    for piece in re.split(", and |, | and ", listed):
        first, *more = piece.split(" to ")
        found += _between(tag, first, more[0], known) if more else [first]
    if (word in SINGULARS) != (len(found) > 1):
        right = PLURALS.get(word, word) if len(found) > 1 else SINGULARS[word]
        raise TagError(f"{tag}: '{word}' for {len(found)} of them; write '{right}'")
    return tuple(found)


def _between(tag: str, first: str, last: str, known: list[str]) -> list[str]:
    for end in (first, last):
        if end not in known:
            raise TagError(f"{tag}: there is no {end}; {nearest(end, known)}")
    a, b = known.index(first), known.index(last)
    if a >= b:
        raise TagError(f"{tag}: {last} does not come after {first}")
    return known[a : b + 1]


def _parts(tag: str, ids: tuple[str, ...], part: str) -> tuple[str, ...]:
    """Steps, data sets or sides of one algorithm or figure: "2, step 3"."""
    if len(ids) > 1:
        raise TagError(f"{tag}: '{part}' of which of {', '.join(ids)}?")
    if part in ("left", "right"):
        return (f"{ids[0]}, {part}",)
    word, numbers = re.fullmatch(rf"(.+?) ({IDENTIFIERS})", part).groups()
    one = SINGULARS.get(word, word)
    counted = [str(n) for n in range(1, 100)]
    return tuple(f"{ids[0]}, {one} {number}" for number in _expand(tag, word, numbers, counted))


def _existing(tag: str, reference: Reference, table: dict) -> Reference:
    known = table[reference.source].get(reference.kind, {})
    for identifier in reference.identifiers:
        if identifier not in known:
            raise TagError(
                f"{tag}: {reference.source} has no {reference.kind} {identifier!r}; "
                f"{nearest(identifier, known)}"
            )
    return reference


def nearest(name: str, known) -> str:
    """The real names that look most like a wrong one."""
    close = get_close_matches(name, known, n=3, cutoff=0)
    return f"nearest: {', '.join(close)}" if close else "there is none"


# ---------------------------------------------------------------------------- the project's tags


def sites(*folders: str, root: Path = ROOT) -> Iterator[Site]:
    """Every tag in the Python files of these folders; citations of other documents are left out."""
    for path in sorted(path for folder in folders for path in (root / folder).rglob("*.py")):
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
    entries = (ROOT / "book/references.bib").read_text(encoding="utf8")
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
    """Where each thing is tagged; tags that name nothing are passed over."""
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
    """What is wrong with the table, given what the package and the tests carry tags of."""
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


def main() -> int:
    """Print the equations that no statement computes; 1 if one of them has no reason."""
    table = load_table()
    computed = tagged(sites("cgmm"), table)
    missing = {name: entry for name, entry in equations(table) if name not in computed}
    for (source, _, number), entry in missing.items():
        reason = entry.get("no_code", "NEITHER A TAG NOR A REASON")
        print(f"{source:14} {f'({number})':7} {reason}")
    total = sum(1 for _ in equations(table))
    print(f"{total - len(missing)} of {total} equations carry a tag in the package.")
    return int(any("no_code" not in entry for entry in missing.values()))


if __name__ == "__main__":
    sys.exit(main())
