"""The grammar of equation tags: comments and docstrings that say which formula they compute.

    [shental2003, eq. 9]                     [lu2007, Fig. 5, data set 1]
    [lu2007, eqs. C.16 to C.18]              [barhillel2005, Alg. 2, step 3 and eq. 14]
    [lu2007, sect. 2.4.1 and Fig. 2]         [green, "Maximisation step"]

    tag        := [source, group, group, ...]            the last comma may be an "and"
    group      := word identifiers                       word in the plural for several
    identifiers:= 9 | 2.15 and 5.2 | 3 to 5 | C.5, C.8, C.14

What a tag may name stands in book/_data/equations.toml, here called the table.
"""

from __future__ import annotations

import re
import tomllib
from difflib import get_close_matches
from typing import NamedTuple

from pages import BOOK

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


class TagError(ValueError):
    """A tag that does not parse, or names nothing."""


class Tag(NamedTuple):
    """A tag as it stands in a text."""

    text: str
    line: int
    """Of its first character, from 1."""


class Reference(NamedTuple):
    """A reference to an equation, made of a tag or one group of it."""

    source: str
    kind: str
    identifiers: tuple[str, ...]


def load_table() -> dict:
    """Return the known equations as {source: {kind: {identifier: ...}}}."""
    return tomllib.loads((BOOK / "_data" / "equations.toml").read_text(encoding="utf8"))


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
    """Return the references of a tag, one for each group; ranges follow the order of the table.

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
