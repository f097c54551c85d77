"""Parse equation tags, by which comments and docstrings name the equation that they compute.

    [shental2003, eq. 9]                     [lu2007, Fig. 5, data set 1]
    [lu2007, eqs. C.16 to C.18]              [barhillel2005, Alg. 2, step 3 and eq. 14]
    [lu2007, sect. 2.4.1 and Fig. 2]         [green, "Maximisation step"]

    tag        := [source, group, group, ...]            the last comma may be an "and"
    group      := word identifiers                       word in the plural for several
    identifiers:= 9 | 2.15 and 5.2 | 3 to 5 | C.5, C.8, C.14

The equations, sections and figures that a tag may name are listed in book/_data/equations.toml,
here called the table.
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
    """Raised for a tag that cannot be parsed, or that names something unknown."""


class Tag(NamedTuple):
    """A tag found in a text."""

    text: str
    line: int
    """Number of the line in which the tag begins, from 1."""


class Reference(NamedTuple):
    """A parsed group of a tag: identifiers of one kind in one source."""

    source: str
    kind: str
    identifiers: tuple[str, ...]


def load_table() -> dict:
    """Return the known equations as {source: {kind: {identifier: ...}}}."""
    return tomllib.loads((BOOK / "_data" / "equations.toml").read_text(encoding="utf8"))


# ---------------------------------------------------------------------------- text to tags


def find_tags(text: str) -> list[Tag]:
    """Return all tags of a text, also those broken over two lines; ``[lu2007]`` alone is no tag."""
    return [
        Tag(f"[{match[1]}{_join_lines(match[2])}]", text.count("\n", 0, match.start()) + 1)
        for match in TAG.finditer(text)
    ]


def _join_lines(body: str) -> str:
    """Join the lines of a tag, without the comment signs between them."""
    return re.sub(r"\s*\n\s*(?:#\s*)?", " ", body)


# ---------------------------------------------------------------------------- tags to references


def parse_tag(tag: str, table: dict) -> list[Reference]:
    """Return the references of a tag, one for each group; ranges follow the order of the table.

    Raises TagError if the tag does not follow the grammar, or if the table lacks what it names.
    """
    source, body = TAG.fullmatch(tag).groups() if TAG.fullmatch(tag) else ("", "")
    if not body.startswith(", "):
        raise TagError(f"{tag} is no tag: write [source, eq. 1]")
    if source not in table:
        raise TagError(f"{tag}: no source {source!r}; {suggest_names(source, table)}")
    rest, found = body[2:], []
    while rest:
        reference, end = _parse_first_group(tag, source, rest, table)
        found.append(reference)
        gap = SEPARATOR.match(rest, end)
        if end < len(rest) and (not gap or gap.end() == len(rest)):
            raise TagError(f"{tag}: {rest[end:]!r} is not understood")
        rest = rest[gap.end() :] if gap else ""
    return found


def _parse_first_group(tag: str, source: str, rest: str, table: dict) -> tuple[Reference, int]:
    """Return the reference with which ``rest`` begins, and the position after it."""
    if titles := TITLES.match(rest):
        named = tuple(re.findall('"([^"]+)"', titles[0]))
        return _require_known(tag, Reference(source, "slide", named), table), titles.end()
    group = GROUP.match(rest)
    if not group:
        raise TagError(f"{tag}: {rest!r} does not begin like 'eq. 1' or 'sects. 2 and 3'")
    word = SINGULARS.get(group["word"], group["word"])
    known = list(table[source].get(KINDS[word], {}))
    ids = _expand(tag, group["word"], group["ids"], known)
    if group["part"]:
        ids = _name_parts(tag, ids, group["part"])
    return _require_known(tag, Reference(source, KINDS[word], ids), table), group.end()


def _expand(tag: str, word: str, listed: str, known: list[str]) -> tuple[str, ...]:
    """Return the identifiers of a list, with all between for "3 to 5"; check singular or plural."""
    found: list[str] = []
    for piece in re.split(", and |, | and ", listed):
        first, *more = piece.split(" to ")
        found += _expand_range(tag, first, more[0], known) if more else [first]
    if (word in SINGULARS) != (len(found) > 1):
        right = PLURALS.get(word, word) if len(found) > 1 else SINGULARS[word]
        raise TagError(f"{tag}: '{word}' for {len(found)} of them; write '{right}'")
    return tuple(found)


def _expand_range(tag: str, first: str, last: str, known: list[str]) -> list[str]:
    """Return the known identifiers from the first to the last."""
    for end in (first, last):
        if end not in known:
            raise TagError(f"{tag}: there is no {end}; {suggest_names(end, known)}")
    a, b = known.index(first), known.index(last)
    if a >= b:
        raise TagError(f"{tag}: {last} does not come after {first}")
    return known[a : b + 1]


def _name_parts(tag: str, ids: tuple[str, ...], part: str) -> tuple[str, ...]:
    """Return identifiers of parts of one algorithm or figure, e.g. "2, step 3"."""
    if len(ids) > 1:
        raise TagError(f"{tag}: '{part}' could belong to any of {', '.join(ids)}; name one of them")
    if part in ("left", "right"):
        return (f"{ids[0]}, {part}",)
    word, numbers = re.fullmatch(rf"(.+?) ({IDENTIFIERS})", part).groups()
    one = SINGULARS.get(word, word)
    counted = [str(n) for n in range(1, 100)]
    return tuple(f"{ids[0]}, {one} {number}" for number in _expand(tag, word, numbers, counted))


def _require_known(tag: str, reference: Reference, table: dict) -> Reference:
    """Return a reference unchanged, or raise TagError if the table lacks an identifier of it."""
    known = table[reference.source].get(reference.kind, {})
    for identifier in reference.identifiers:
        if identifier not in known:
            raise TagError(
                f"{tag}: {reference.source} has no {reference.kind} {identifier!r}; "
                f"{suggest_names(identifier, known)}"
            )
    return reference


def suggest_names(name: str, known) -> str:
    """Return a hint with the known names that are most similar to an unknown one."""
    close = get_close_matches(name, known, n=3, cutoff=0)
    return f"nearest: {', '.join(close)}" if close else "there is none"
