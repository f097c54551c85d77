"""Write the page book/errata.md: the errors in the five documents, and the checks that show them.

    python tools/errata.py

The errors are listed in book/_data/errata.toml. A check is a cell of a chapter or a test; a check
that does not exist is an error.
"""

from __future__ import annotations

import json
import re
import tomllib
from functools import cache

from equation_tags import find_test
from pages import BOOK, markdown_table

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
    "dear": "Right, but expensive",
    "refuted": "We were wrong: it is right",
    "read": "By reading",
}
COPY = """\
(errata-copy)=
## Single characters that may be errors of our copy

A wrong letter, index, factor or bracket. Text recognition confuses *D* with *b* and *j* with *i* as
easily as an author does, so the printed page may well be right. The checks show that our copy is
wrong.
"""
INTRODUCTION = """\
# Errata of the five documents

<!-- Written by tools/errata.py from book/_data/errata.toml: change that, and run it. -->

Five good texts, read closely by people who had to run them. Nothing below takes away from what
they found; most of it is a sign, a name or a missing condition, and all of it costs a reader an
evening.

We had the texts as software had read them from the printed pages, with their formulas and captions.
We did not have the pages themselves, their pictures, or errata that the authors or publishers may
have published since. So each entry of the five sections that follow is supported by more than a
single character: by the sentences around it, by a condition, or by numbers that contradict one
another. Errors that could have arisen when the texts were read are listed separately, in {ref}`the
last section <errata-copy>`.

Each entry says what is printed and what is right, in the notation of this book ({doc}`notation`),
and names the check that shows it: a cell of a chapter that is run whenever the book is tested, or a
test of the package.

*Confirmed* means that the check fails for the printed statement. *True under a condition*: the
printed statement fails in one case and holds in another. *Right, but expensive*: there is a cheaper
way to the same result. *By reading*: no program can check the statement.
"""


def main() -> None:
    """Write the page."""
    PAGE.write_text(build_page(), encoding="utf8")


def load_errata() -> dict[str, list[dict]]:
    """Return {document: list of its errors} from the table."""
    return tomllib.loads(TABLE.read_text(encoding="utf8"))


def build_page() -> str:
    """Return the text of the page."""
    parts = [INTRODUCTION]
    doubtful = [("Where", "In our copy; what is right")]
    for source, entries in load_errata().items():
        parts.append(f"(errata-{source})=\n## {HEADINGS[source]}\n\n{{cite:t}}`{source}`.\n")
        sure = [entry for entry in entries if not entry.get("copy")]
        parts.append(markdown_table([("Where", "Printed; what is right"), *map(format_row, sure)]))
        rows = (format_row(entry) for entry in entries if entry.get("copy"))
        doubtful += [(f"{{cite:t}}`{source}`, {where}", words) for where, words in rows]
    return "\n".join([*parts, COPY, markdown_table(doubtful)])


def format_row(entry: dict) -> tuple[str, str]:
    """Return the cells of an error's row: where it is, and what is printed and right."""
    checks = ", ".join(dict.fromkeys(map(format_check, entry["checks"])))
    verdict = VERDICTS[entry["verdict"]] + (f": {checks}." if checks else ".")
    printed = "In our copy: " * bool(entry.get("copy")) + entry["printed"]
    words = f"*{_to_sentence(printed)}*<br>{_to_sentence(entry['right'])}<br>{verdict}"
    return entry["where"], words


def _to_sentence(words: str) -> str:
    """Return words as a sentence, with a capital and a full stop."""
    return f"{words[0].upper()}{words[1:]}."


def format_check(name: str) -> str:
    """Return a check as shown on the page: its chapter, or its test file."""
    require_existing(name)
    if "#" in name:
        stem = name.partition("#")[0]
        return f"chapter {{doc}}`{int(stem[:2])} <{stem}>`"
    return f"`{name.partition('::')[0].removesuffix('.py')}`"


def require_existing(name: str) -> None:
    """Raise LookupError if a check is neither an existing code cell nor an existing test."""
    stem, _, cell = name.partition("#")
    file, _, function = name.partition("::")
    exists = cell in _code_cell_ids(stem) if cell else function in _test_names(file)
    if not exists:
        raise LookupError(f"errata.toml names the check {name}, which does not exist: correct it.")


@cache
def _code_cell_ids(stem: str) -> set[str]:
    """Return the ids of the code cells of a chapter."""
    cells = json.loads((BOOK / f"{stem}.ipynb").read_text(encoding="utf8"))["cells"]
    return {cell["id"] for cell in cells if cell["cell_type"] == "code"}


@cache
def _test_names(file: str) -> set[str]:
    """Return the names of the tests in a test file, or an empty set if there is no such file."""
    path = find_test(file)
    source = path.read_text(encoding="utf8") if path else ""
    return set(re.findall(r"^def (test_\w+)", source, flags=re.MULTILINE))


if __name__ == "__main__":
    main()
