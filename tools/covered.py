"""Find the equations that a chapter covers: those of its line **Covers** and those it cites.

The line is in the first cell of a chapter. Its clauses are separated by semicolons, for example

    {cite:t}`shental2003`, §2.1 (eqs. 1 to 7), §2.2 up to eq. (9)

A clause covers the equations that it names. If it names a section but none of the section's
equations, it covers all of them, including those of subsections, unless subsections are named too.
Parts of a section, as in "the opening of §2" or "§3's teachers", do not add the section's
equations.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from equation_grammar import IDENTIFIER, IDENTIFIERS, TagError, parse_tag
from equation_tags import Name
from pages import BOOK, ROOT

SECTION = re.compile(
    rf"(?P<part>\bof (?:\{{cite:\w+\}}`\w+`, )?)?"
    rf"(?P<sign>§+ ?|App\. )(?P<ids>{IDENTIFIERS})(?P<whose>['’]s)?"
)
EQUATIONS = re.compile(rf"(?P<limit>up to )?(?P<listed>(?:eqs?\.|Algs?\.) {IDENTIFIERS})")
CITED = re.compile(
    rf"\b(?P<source>\w+)`?, (?P<after>eqs?\. {IDENTIFIERS})"
    rf"|(?P<before>eqs?\. {IDENTIFIERS}) of \{{cite:\w+\}}`(?P<of>\w+)`"
)
WORDS = {"equation": "eq.", "Equation": "eq.", "Algorithm": "Alg.", "Appendix": "App."}
PLURALS = {"equations": "eqs.", "Equations": "eqs.", "Algorithms": "Algs.", "Appendices": "App."}


def chapter_paths() -> list[Path]:
    """Return the paths of the chapters that the table of contents lists."""
    contents = (ROOT / "_toc.yml").read_text(encoding="utf8")
    return [BOOK / f"{stem}.ipynb" for stem in re.findall(r"file: book/(\d\d_\w+)", contents)]


def covered_equations(path: Path, table: dict) -> set[Name]:
    """Return the (source, kind, identifier) that a chapter covers; raise TagError if unknown."""
    cells = json.loads(path.read_text(encoding="utf8"))["cells"]
    words = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    try:
        return find_covered(words, table) | find_cited(words, table)
    except TagError as error:
        raise TagError(f"{path.name}: {error}") from None


def find_covered(words: str, table: dict) -> set[Name]:
    """Return the set of (source, kind, identifier) that the line **Covers** names."""
    line = re.search(r"\*\*Covers\*\*(.*?)(?:\n\s*\n|\Z)", words, re.DOTALL)
    found: set[Name] = set()
    source = ""
    for clause in normalise_references(line[1] if line else "").split(";"):
        named = [key for key in re.findall(r"\{cite:\w+\}`(\w+)`", clause) if key in table]
        source = named[0] if named else source
        if source:
            found |= {(source, *one) for one in _parse_clause(source, clause, table)}
    return found


def find_cited(words: str, table: dict) -> set[Name]:
    """Return the equations cited in the text, as in ``{cite:p}`lu2007`, eq. 3.1``."""
    found = set()
    for match in CITED.finditer(normalise_references(words)):
        source = match["source"] or match["of"]
        if source in table:
            listed = match["after"] or match["before"]
            found |= {(source, *one) for one in _parse_list(source, listed, table)}
    return found


def normalise_references(words: str) -> str:
    """Write references as in tags: "eqs. 1 and 2" instead of "equations (1) and (2)"."""
    words = re.sub(r"\s+", " ", words).replace(r"\*", "*")
    words = re.sub(rf"\(({IDENTIFIER})\)", r"\1", words)
    for full, short in (PLURALS | WORDS).items():
        words = re.sub(rf"\b{full} (?=[\d*A-Z])", f"{short} ", words)
    return words


def _parse_list(source: str, listed: str, table: dict) -> set[tuple[str, str]]:
    """Return the set of (kind, identifier) that a list such as "eqs. 1 to 3" names."""
    references = parse_tag(f"[{source}, {listed}]", table)
    return {(ref.kind, identifier) for ref in references for identifier in ref.identifiers}


def _parse_clause(source: str, clause: str, table: dict) -> set[tuple[str, str]]:
    """Return the set of (kind, identifier) that a clause about one source covers."""
    entry = table[source]
    found = {("slide", title) for title in _find_slides(clause, entry)}
    for match in EQUATIONS.finditer(clause):
        named = _parse_list(source, match["listed"], table)
        found |= _equations_up_to(named, entry) if match["limit"] else named
    homes = {entry["eq"][name]["where"] for kind, name in found if kind == "eq"}
    everything = [*entry.get("sect", {}), *entry.get("app", {})]
    for section, is_alone in _find_sections(source, clause, table):
        if any(_is_within(home, section) for home in homes):
            continue
        inside = [one for one in everything if is_alone and _is_within(one, section)] or [section]
        found |= {("sect", one) for one in inside}
        equations = entry.get("eq", {}).items()
        found |= {("eq", name) for name, one in equations if one["where"] in inside}
    return found


def _find_sections(source: str, clause: str, table: dict) -> Iterator[tuple[str, bool]]:
    """Yield each section named as a whole, and whether no subsection of it is named."""
    named, partly = set(), set()
    for match in SECTION.finditer(clause):
        word = "App" if match["sign"].startswith("App") else "sect"
        plural = "s" if re.search(" |,", match["ids"]) else ""
        ids = {name for _, name in _parse_list(source, f"{word}{plural}. {match['ids']}", table)}
        (partly if match["part"] or match["whose"] else named).update(ids)
    for section in named:
        others = (named | partly) - {section}
        yield section, not any(_is_within(other, section) for other in others)


def _is_within(name: str, section: str) -> bool:
    """Return whether a section is the given section or one of its subsections."""
    return name == section or name.startswith(f"{section}.")


def _equations_up_to(named: set[tuple[str, str]], entry: dict) -> set[tuple[str, str]]:
    """Return the equations of a section up to the named one."""
    (_, last), *_ = named
    where = entry["eq"][last]["where"]
    order = [name for name, one in entry["eq"].items() if _is_within(one["where"], where)]
    return {("eq", name) for name in order[: order.index(last) + 1]}


def _find_slides(clause: str, entry: dict) -> set[str]:
    """Return the titles of the slides that a clause names; "up to" includes all slides before."""
    titles, found = list(entry.get("slide", {})), set()
    for n, title in enumerate(titles):
        name = re.escape(title.removeprefix("The "))
        match = re.search(rf"(?P<limit>up to (?:the )?)?(?<![\w-]){name}\b", clause, re.IGNORECASE)
        if match:
            found |= {title, *entry["within"].get(title, [])}
            found |= set(titles[:n]) if match["limit"] else set()
    return found
