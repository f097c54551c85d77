"""Write the page book/equations.md: where each equation of the five documents is to be found.

    python tools/equations.py          write the page
    python tools/equations.py --check  change nothing; fail if the page is stale

What an equation says stands in book/_data/equations.toml; functions and tests are found by their tags
(tools/equation_tags.py); chapters by the line **Covers** of their first cell, and by what they cite
in the text. The line is read clause by clause; clauses are parted by semicolons. In each

    {cite:t}`shental2003`, §2.1 (eqs. 1 to 7), §2.2 up to eq. (9)

equations count that are named, and all those of a section (and its subsections, unless some of
these are named too) of which none is named. "The opening of §2" and "§3's teachers" are parts of
a section and count for nothing but themselves.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BOOK = ROOT / "book"

from equation_tags import (
    IDENTIFIER,
    IDENTIFIERS,
    Name,
    Site,
    TagError,
    load_table,
    parse,
    sites,
    tagged,
)

PAGE = BOOK / "equations.md"
SIGNS = {"eq": "({})", "sect": "§{}", "alg": "{}", "slide": "{}"}
NAMES = {"eq": "Equation", "sect": "Section", "alg": "Algorithm", "slide": "Slide"}
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
PLURALS = {"equations": "eqs.", "Equations": "eqs.", "Algorithms": "Algs."}

INTRODUCTION = """\
# Equations

<!-- Written by tools/equations.py from book/_data/equations.toml: change these, and run it. -->

Every numbered equation of the five documents behind this book, in our words and letters
({doc}`notation`), with the chapter that explains it, the function that computes it and the file of
tests that holds it. Where nothing computes it, the table says why. Functions carry the number in a
comment or in their notes; a link to a module means that one of its inner functions does. Of the
documents that number little, sections and slides are listed as well.
"""


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="change nothing, report staleness")
    options = parser.parse_args(arguments)
    try:
        text = page()
    except TagError as error:
        print(error)
        return 1
    if options.check:
        return check(text, PAGE, Path(__file__))
    PAGE.write_text(text, encoding="utf8")
    print(f"{PAGE}: written")
    return 0


def check(text: str, path: Path, tool: Path) -> int:
    """Return 1, and say what to do, if the page is not this text."""
    there = path.read_text(encoding="utf8") if path.exists() else ""
    stale = there != text
    print(f"{path} is stale: run {tool.name}" if stale else f"{path} is up to date.")
    return int(stale)


# ------------------------------------------------------------------------------------ the page


def page() -> str:
    """The page's text, from the table, the tags and the chapters as they are now."""
    table = load_table()
    chapters = {path.stem: covered(path, table) for path in chapter_paths()}
    in_package, in_tests = tagged(sites("cgmm"), table), tagged(sites("tests"), table)
    parts = [INTRODUCTION]
    for source, entry in table.items():
        parts.append(f"(equations-{source})=\n## {entry['heading']}\n")
        for kind in ["eq", *entry.get("also", [])]:
            rows = list(_rows(source, kind, entry, chapters, in_package, in_tests))
            if rows:
                parts.append(_table(kind, rows))
    return "\n".join(parts)


def _rows(source, kind, entry, chapters, in_package, in_tests) -> Iterator[tuple[str, str]]:
    """A row for every equation; of other kinds only for what the package carries a tag of."""
    for name, said in entry.get(kind, {}).items():
        key = (source, kind, name)
        if kind == "eq" or key in in_package:
            said = said if kind == "eq" else {"says": said[0].upper() + said[1:]}
            where = [
                _chapters(stem for stem, keys in chapters.items() if key in keys),
                _code(key, in_package.get(key, []), said),
                _tests(in_tests.get(key, []), said),
            ]
            sign = SIGNS[kind].format(name).replace("*", r"\*")
            yield sign, f"{said['says']}.<br>{' '.join(filter(None, where))}"


def _chapters(stems: Iterable[str]) -> str:
    linked = [f"{{doc}}`{int(stem[:2])} <{stem}>`" for stem in stems]
    return f"{_counted('Chapter', linked)}." if linked else ""


def _code(key: Name, found: list[Site], said: dict) -> str:
    if found:
        return f"Code: {links(found)}."
    if "no_code" not in said:
        raise TagError(f"{' '.join(key)}: no tag in cgmm names it, and no_code gives no reason")
    return f"No code: {said['no_code']}.".replace("*", r"\*")


def _tests(found: list[Site], said: dict) -> str:
    files = {Path(site.path).stem for site in found}
    files |= {Path(holder.partition("::")[0]).stem for holder in said.get("held_by", [])}
    return f"{_counted('Test', [f'`{file}`' for file in sorted(files)])}." if files else ""


def _counted(word: str, listed: list[str]) -> str:
    return f"{word}{'s' if len(listed) > 1 else ''} {', '.join(listed)}"


def _table(kind: str, rows: list[tuple[str, str]]) -> str:
    head = (NAMES[kind], "What it says; where it is explained, computed and tested")
    lines = [f"| {sign} | {words} |" for sign, words in [head, ("---", "---"), *rows]]
    return "\n".join(lines) + "\n"


# ------------------------------------------------------------------------------------ the package


def links(found: list[Site]) -> str:
    """Links to the public functions and classes around the tags; to a module for an inner one."""
    targets = dict.fromkeys(target(site.path, site.scope) for site in found)
    homes = {name.rsplit(".", depth)[0] for role, name, depth in targets if role != "mod"}
    kept = [(role, name) for role, name, _ in targets if role != "mod" or name not in homes]
    return ", ".join(f"{{py:{role}}}`~{name}`" for role, name in kept)


def target(path: str, scope: tuple[str, ...]) -> tuple[str, str, int]:
    """Role and full name of what the package page documents there, and its depth in the module."""
    module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    public = _public(path)
    if not scope or scope[0] not in public:
        return "mod", module, 0
    methods = public[scope[0]]
    if methods is None:
        return "func", f"{module}.{scope[0]}", 1
    if len(scope) > 1 and scope[1] in methods:
        return "meth", f"{module}.{scope[0]}.{scope[1]}", 2
    return "class", f"{module}.{scope[0]}", 1


@cache
def _public(path: str) -> dict[str, set[str] | None]:
    """Names in ``__all__`` of a module: of a class its documented methods, of a function None."""
    body = ast.parse((ROOT / path).read_text(encoding="utf8")).body
    listed: set[str] = set()
    for node in body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            listed = set(ast.literal_eval(node.value))
    return {
        node.name: _methods(node) if isinstance(node, ast.ClassDef) else None
        for node in body
        if getattr(node, "name", None) in listed
    }


def _methods(node: ast.ClassDef) -> set[str]:
    """Methods that autodoc lists; properties are no methods."""
    functions = [one for one in node.body if isinstance(one, ast.FunctionDef)]
    properties = {f.name for f in functions if "property" in map(ast.unparse, f.decorator_list)}
    named = {f.name for f in functions if ast.get_docstring(f) and not f.name.startswith("_")}
    return named - properties


# ------------------------------------------------------------------------------------ the chapters


def chapter_paths() -> list[Path]:
    """The chapters in the table of contents."""
    contents = (ROOT / "_toc.yml").read_text(encoding="utf8")
    return [BOOK / f"{stem}.ipynb" for stem in re.findall(r"file: book/(\d\d_\w+)", contents)]


def covered(path: Path, table: dict) -> set[Name]:
    """What a chapter covers, {(source, kind, identifier)}; an error for what does not exist."""
    cells = json.loads(path.read_text(encoding="utf8"))["cells"]
    words = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    try:
        return covers(words, table) | cited(words, table)
    except TagError as error:
        raise TagError(f"{path.name}: {error}") from None


def covers(words: str, table: dict) -> set[Name]:
    """What the line **Covers** names."""
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


if __name__ == "__main__":
    sys.exit(main())
