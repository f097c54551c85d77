"""Write the page book/errata.md: what is wrong in the five documents, and the checks that show it.

    python tools/errata.py

The table is book/_data/errata.toml. A check is a cell of a chapter or a test; one that does not
exist is an error.
"""

from __future__ import annotations

import json
import re
import tomllib
from functools import cache

from equation_tags import find_test
from pages import BOOK, table

PAGE = BOOK / "errata.md"
TABLE = BOOK / "_data" / "errata.toml"
HEADINGS = {
    "shental2003": "Shental et al. 2003",
    "green": "Green",
    "schmidt2016": "Schmidt 2016",
    "barhillel2005": "Bar-Hillel et al. 2005",
    "lu2007": "Lu and Leen 2007",
}
VERDICTS = {
    "confirmed": "Confirmed",
    "qualified": "True under a condition",
    "dear": "Right, but dear",
    "refuted": "We were wrong: it is right",
    "read": "By reading",
}
COPY = """\
(errata-copy)=
## A character, as our copy has it

A wrong letter, index, factor or bracket. A machine that reads print takes a *D* for a *b* and a *j*
for an *i* as easily as an author does, so what is printed may well be right. A check shows that
what our copy has is not.
"""
INTRODUCTION = """\
# Errata of the five documents

<!-- Written by tools/errata.py from book/_data/errata.toml: change that, and run it. -->

Five good texts, read closely by people who had to run them. Nothing below takes away from what
they found; most of it is a sign, a name or a missing condition, and all of it costs a reader an
evening.

What was in hand: the texts as a machine has read them from the printed pages, with their formulas
and captions. What was not: the pages themselves, their pictures, and errata that the authors or
publishers may have printed since. So an entry of the five sections that follow rests on more than a
character: on what the sentences around it say, on a condition, or on numbers that contradict one
another. What a slip in copying could have made stands apart, in {ref}`the last section
<errata-copy>`.

Each entry says what is printed and what is right, in the letters of this book
({doc}`notation`), and names the check that shows it: a cell of a chapter that is run whenever the
book is tested, or a test of the package.

*Confirmed* means that the check fails for what is printed. *True under a condition*: for what is
printed there is a case in which it fails, and one in which it holds. *Right, but dear*: there is a
cheaper way to the same. *By reading*: nothing can be run on it.
"""


def main() -> None:
    """Run from the command line."""
    PAGE.write_text(page(), encoding="utf8")


def load() -> dict[str, list[dict]]:
    """The table: for each document its entries."""
    return tomllib.loads(TABLE.read_text(encoding="utf8"))


def page() -> str:
    """The page's text."""
    parts = [INTRODUCTION]
    doubtful = [("Where", "As our copy has it; what is right")]
    for source, entries in load().items():
        parts.append(f"(errata-{source})=\n## {HEADINGS[source]}\n\n{{cite:t}}`{source}`.\n")
        sure = [entry for entry in entries if not entry.get("copy")]
        parts.append(table([("Where", "Printed; what is right"), *map(_row, sure)]))
        rows = (_row(entry) for entry in entries if entry.get("copy"))
        doubtful += [(f"{{cite:t}}`{source}`, {where}", words) for where, words in rows]
    return "\n".join([*parts, COPY, table(doubtful)])


def _row(entry: dict) -> tuple[str, str]:
    shown = ", ".join(dict.fromkeys(map(link, entry["checks"])))
    verdict = VERDICTS[entry["verdict"]] + (f": {shown}." if shown else ".")
    printed = "As our copy has it: " * bool(entry.get("copy")) + entry["printed"]
    words = f"*{_sentence(printed)}*<br>{_sentence(entry['right'])}<br>{verdict}"
    return entry["where"], words


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."


def link(name: str) -> str:
    """A check as the page shows it: the chapter, or the file of tests."""
    require_existing(name)
    if "#" in name:
        stem = name.partition("#")[0]
        return f"chapter {{doc}}`{int(stem[:2])} <{stem}>`"
    return f"`{name.partition('::')[0].removesuffix('.py')}`"


def require_existing(name: str) -> None:
    """Raise LookupError for a check that is neither a code cell nor a test function."""
    stem, _, cell = name.partition("#")
    file, _, function = name.partition("::")
    there = cell in _cells(stem) if cell else function in _functions(file)
    if not there:
        raise LookupError(f"book/_data/errata.toml names the check {name}, which does not exist.")


@cache
def _cells(stem: str) -> set[str]:
    cells = json.loads((BOOK / f"{stem}.ipynb").read_text(encoding="utf8"))["cells"]
    return {cell["id"] for cell in cells if cell["cell_type"] == "code"}


@cache
def _functions(file: str) -> set[str]:
    path = find_test(file)
    source = path.read_text(encoding="utf8") if path else ""
    return set(re.findall(r"^def (test_\w+)", source, flags=re.MULTILINE))


if __name__ == "__main__":
    main()
