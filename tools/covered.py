"""Find the equations that a chapter covers: those of its line **Covers** and those it cites.

The line stands in a chapter's first cell. It is read clause by clause; clauses are parted by
semicolons. In each, as in

    {cite:t}`shental2003`, §2.1 (eqs. 1 to 7), §2.2 up to eq. (9)

equations count that are named, and all those of a section (and its subsections, unless some of
these are named too) of which none is named. "The opening of §2" and "§3's teachers" are parts of
a section and count for nothing but themselves.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from equation_grammar import IDENTIFIER, IDENTIFIERS, TagError, parse
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
    """The chapters in the table of contents."""
    contents = (ROOT / "_toc.yml").read_text(encoding="utf8")
    return [BOOK / f"{stem}.ipynb" for stem in re.findall(r"file: book/(\d\d_\w+)", contents)]


def covered(path: Path, table: dict) -> set[Name]:
    """Return the set of (source, kind, identifier) that a chapter covers; refuse unknown ones."""
    cells = json.loads(path.read_text(encoding="utf8"))["cells"]
    words = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    try:
        return covers(words, table) | cited(words, table)
    except TagError as error:
        raise TagError(f"{path.name}: {error}") from None


def covers(words: str, table: dict) -> set[Name]:
    """Return the equations that the line **Covers** names."""
    line = re.search(r"\*\*Covers\*\*(.*?)(?:\n\s*\n|\Z)", words, re.DOTALL)
    found: set[Name] = set()
    source = ""
    for clause in plain(line[1] if line else "").split(";"):
        named = [key for key in re.findall(r"\{cite:\w+\}`(\w+)`", clause) if key in table]
        source = named[0] if named else source
        if source:
            found |= {(source, *one) for one in _clause(source, clause, table)}
    return found


def cited(words: str, table: dict) -> set[Name]:
    """Equations cited in the text: ``{cite:p}`lu2007`, eq. 3.1``, or eq. 3.1 of somebody."""
    found = set()
    for match in CITED.finditer(plain(words)):
        source = match["source"] or match["of"]
        if source in table:
            found |= {
                (source, *one) for one in _named(source, match["after"] or match["before"], table)
            }
    return found


def plain(words: str) -> str:
    """Words as tags have them: no escapes, no numbers in parentheses, "eqs." for equations."""
    words = re.sub(r"\s+", " ", words).replace(r"\*", "*")
    words = re.sub(rf"\(({IDENTIFIER})\)", r"\1", words)
    for full, short in (PLURALS | WORDS).items():
        words = re.sub(rf"\b{full} (?=[\d*A-Z])", f"{short} ", words)
    return words


def _named(source: str, listed: str, table: dict) -> set[tuple[str, str]]:
    references = parse(f"[{source}, {listed}]", table)
    return {(ref.kind, identifier) for ref in references for identifier in ref.identifiers}


def _clause(source: str, clause: str, table: dict) -> set[tuple[str, str]]:
    """Equations, algorithms, sections and slides that a clause on one source names."""
    entry = table[source]
    found = {("slide", title) for title in _slides(clause, entry)}
    for match in EQUATIONS.finditer(clause):
        named = _named(source, match["listed"], table)
        found |= _up_to(named, entry) if match["limit"] else named
    homes = {entry["eq"][name]["where"] for kind, name in found if kind == "eq"}
    everything = [*entry.get("sect", {}), *entry.get("app", {})]
    for section, is_alone in _sections(source, clause, table):
        if any(_is_within(home, section) for home in homes):
            continue
        inside = [one for one in everything if is_alone and _is_within(one, section)] or [section]
        found |= {("sect", one) for one in inside}
        equations = entry.get("eq", {}).items()
        found |= {("eq", name) for name, one in equations if one["where"] in inside}
    return found


def _sections(source: str, clause: str, table: dict) -> Iterator[tuple[str, bool]]:
    """Sections and appendices that are named as a whole; whether none of their own is named too."""
    named, partly = set(), set()
    for match in SECTION.finditer(clause):
        word = "App" if match["sign"].startswith("App") else "sect"
        plural = "s" if re.search(" |,", match["ids"]) else ""
        ids = {name for _, name in _named(source, f"{word}{plural}. {match['ids']}", table)}
        (partly if match["part"] or match["whose"] else named).update(ids)
    for section in named:
        others = (named | partly) - {section}
        yield section, not any(_is_within(other, section) for other in others)


def _is_within(name: str, section: str) -> bool:
    return name == section or name.startswith(f"{section}.")


def _up_to(named: set[tuple[str, str]], entry: dict) -> set[tuple[str, str]]:
    """The equations of the same section up to these."""
    (_, last), *_ = named
    where = entry["eq"][last]["where"]
    order = [name for name, one in entry["eq"].items() if _is_within(one["where"], where)]
    return {("eq", name) for name in order[: order.index(last) + 1]}


def _slides(clause: str, entry: dict) -> set[str]:
    """Slides of which the clause has the title, with those within; "up to" one: all before it."""
    titles, found = list(entry.get("slide", {})), set()
    for n, title in enumerate(titles):
        name = re.escape(title.removeprefix("The "))
        match = re.search(rf"(?P<limit>up to (?:the )?)?(?<![\w-]){name}\b", clause, re.IGNORECASE)
        if match:
            found |= {title, *entry["within"].get(title, [])}
            found |= set(titles[:n]) if match["limit"] else set()
    return found
