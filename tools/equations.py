"""Write the page book/equations.md: for each equation its chapter, its function and its tests.

    python tools/equations.py

The equations and their meanings are listed in book/_data/equations.toml. Functions and tests are
found by their tags (tools/equation_tags.py), chapters by the equations that they cover
(tools/covered.py).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from inspect import isclass, isfunction
from pathlib import Path

from covered import chapter_paths, covered_equations
from equation_grammar import TagError, load_table
from equation_tags import COMPUTED, Name, Site, find_sites, group_by_equation
from pages import BOOK, markdown_table

PAGE = BOOK / "equations.md"
SIGNS = {"eq": "({})", "sect": "§{}", "alg": "{}", "slide": "{}"}
HEADS = {"eq": "Equation", "sect": "Section", "alg": "Algorithm", "slide": "Slide"}
INTRODUCTION = """\
# Equations

<!-- Written by tools/equations.py from book/_data/equations.toml: change these, and run it. -->

Every numbered equation of the five documents behind this book, in our words and letters
({doc}`notation`), with the chapter that explains it, the function that computes it and the file
that tests it. Where no function computes it, the table says why. Functions name the equation in a
comment or in their notes; a link to a module means that one of its private functions does. For
documents with few numbered equations, sections and slides are listed as well.
"""


def main() -> int:
    """Write the page; return the exit status, 1 if a tag is wrong."""
    try:
        PAGE.write_text(build_page(), encoding="utf8")
    except TagError as error:
        print(error)
        return 1
    return 0


# ------------------------------------------------------------------------------------ the page


def build_page() -> str:
    """Return the text of the page."""
    table_of_equations = load_table()
    chapters = {path.stem: covered_equations(path, table_of_equations) for path in chapter_paths()}
    in_package = group_by_equation(find_sites(*COMPUTED), table_of_equations)
    in_tests = group_by_equation(find_sites("tests"), table_of_equations)
    parts = [INTRODUCTION]
    for source, entry in table_of_equations.items():
        parts.append(f"(equations-{source})=\n## {entry['heading']}\n")
        for kind in ["eq", *entry.get("also", [])]:
            rows = list(_format_rows(source, kind, entry, chapters, in_package, in_tests))
            if rows:
                head = (HEADS[kind], "What it says; where it is explained, computed and tested")
                parts.append(markdown_table([head, *rows]))
    return "\n".join(parts)


def _format_rows(
    source: str,
    kind: str,
    entry: dict,
    chapters: dict[str, set[Name]],
    in_package: dict[Name, list[Site]],
    in_tests: dict[Name, list[Site]],
) -> Iterator[tuple[str, str]]:
    """Yield a row for each equation, and for each section or slide that a tag names."""
    for name, about in entry.get(kind, {}).items():
        key = (source, kind, name)
        if kind == "eq" or key in in_package:
            about = about if kind == "eq" else {"says": about[0].upper() + about[1:]}
            where = [
                _format_chapters(stem for stem, keys in chapters.items() if key in keys),
                _format_code(key, in_package.get(key, []), about),
                _format_tests(in_tests.get(key, []), about),
            ]
            sign = SIGNS[kind].format(name).replace("*", r"\*")
            yield sign, f"{about['says']}.<br>{' '.join(filter(None, where))}"


def _format_chapters(stems: Iterable[str]) -> str:
    """Return a sentence with links to chapters, or "" if there are none."""
    linked = [f"{{doc}}`{int(stem[:2])} <{stem}>`" for stem in stems]
    return f"{_format_list('Chapter', linked)}." if linked else ""


def _format_code(key: Name, found: list[Site], about: dict) -> str:
    """Return a sentence with links to the functions of an equation, or why it has none."""
    if found:
        return f"Code: {format_links(found)}."
    if "no_code" not in about:
        raise TagError(f"{' '.join(key)}: no tag in cgmm names it, and no_code gives no reason")
    return f"No code: {about['no_code']}.".replace("*", r"\*")


def _format_tests(found: list[Site], about: dict) -> str:
    """Return a sentence with the test files of an equation, or "" if there are none."""
    # Helper modules have tags too, but pytest collects only files named test_*.
    files = {Path(site.path).stem for site in found if Path(site.path).name.startswith("test_")}
    files |= {Path(holder.partition("::")[0]).stem for holder in about.get("held_by", [])}
    return f"{_format_list('Test', [f'`{file}`' for file in sorted(files)])}." if files else ""


def _format_list(word: str, listed: list[str]) -> str:
    """Return a word and a list, with the word in the plural if the list has several entries."""
    return f"{word}{'s' if len(listed) > 1 else ''} {', '.join(listed)}"


# ------------------------------------------------------------------------------------ the package


def format_links(found: list[Site]) -> str:
    """Return links to the public functions and classes around tags.

    A private function is represented by a link to its file, which is left out if a public function
    of the same file is linked.
    """
    targets = dict.fromkeys((site.path, *find_documented(site.path, site.scope)) for site in found)
    explained = {path for path, role, _ in targets if role != "mod"}
    kept = [(role, name) for path, role, name in targets if role != "mod" or path not in explained]
    return ", ".join(f"{{py:{role}}}`~{name}`" for role, name in kept)


def find_documented(path: str, scope: tuple[str, ...]) -> tuple[str, str]:
    """Return the Sphinx role and the full name of the documented object around a tag.

    A public function is documented under its subpackage, as ``cgmm.mixture.e_step``, unless only
    its own file lists it. A private function is represented by its file, ``cgmm.mixture.loop``.
    """
    file = path.removeprefix("book/").removesuffix(".py").removesuffix("/__init__")
    module = file.replace("/", ".")
    outer, *inner = scope or ("",)
    thing = getattr(import_module(module), outer, None)
    for home in (module.rpartition(".")[0], module):
        package = import_module(home)
        if outer not in getattr(package, "__all__", ()) or getattr(package, outer) is not thing:
            continue
        if not isclass(thing):
            return "func", f"{home}.{outer}"
        if inner and inner[0][0] != "_" and isfunction(getattr(thing, inner[0])):
            return "meth", f"{home}.{outer}.{inner[0]}"
        return "class", f"{home}.{outer}"
    return "mod", module


if __name__ == "__main__":
    sys.exit(main())
