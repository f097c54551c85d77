"""Write the page book/equations.md: where each equation of the five documents is to be found.

    python tools/equations.py

What an equation says stands in book/_data/equations.toml. Functions and tests are found by their
tags (tools/equation_tags.py), chapters by what they cover (tools/covered.py).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from inspect import isclass, isfunction
from pathlib import Path

from covered import chapter_paths, covered
from equation_grammar import TagError, load_table
from equation_tags import COMPUTED, Name, Site, sites, tagged
from pages import BOOK, table

PAGE = BOOK / "equations.md"
SIGNS = {"eq": "({})", "sect": "§{}", "alg": "{}", "slide": "{}"}
HEADS = {"eq": "Equation", "sect": "Section", "alg": "Algorithm", "slide": "Slide"}
INTRODUCTION = """\
# Equations

<!-- Written by tools/equations.py from book/_data/equations.toml: change these, and run it. -->

Every numbered equation of the five documents behind this book, in our words and letters
({doc}`notation`), with the chapter that explains it, the function that computes it and the file of
tests that holds it. Where nothing computes it, the table says why. Functions carry the number in a
comment or in their notes; a link to a module means that one of its inner functions does. Of the
documents that number little, sections and slides are listed as well.
"""


def main() -> int:
    """Run from the command line; return the exit status."""
    try:
        PAGE.write_text(page(), encoding="utf8")
    except TagError as error:
        print(error)
        return 1
    return 0


# ------------------------------------------------------------------------------------ the page


def page() -> str:
    """The page's text, from the table, the tags and the chapters as they are now."""
    known = load_table()
    chapters = {path.stem: covered(path, known) for path in chapter_paths()}
    in_package, in_tests = tagged(sites(*COMPUTED), known), tagged(sites("tests"), known)
    parts = [INTRODUCTION]
    for source, entry in known.items():
        parts.append(f"(equations-{source})=\n## {entry['heading']}\n")
        for kind in ["eq", *entry.get("also", [])]:
            rows = list(_rows(source, kind, entry, chapters, in_package, in_tests))
            if rows:
                head = (HEADS[kind], "What it says; where it is explained, computed and tested")
                parts.append(table([head, *rows]))
    return "\n".join(parts)


def _rows(
    source: str,
    kind: str,
    entry: dict,
    chapters: dict[str, set[Name]],
    in_package: dict[Name, list[Site]],
    in_tests: dict[Name, list[Site]],
) -> Iterator[tuple[str, str]]:
    """A row for every equation; of other kinds only for what the package carries a tag of."""
    for name, about in entry.get(kind, {}).items():
        key = (source, kind, name)
        if kind == "eq" or key in in_package:
            about = about if kind == "eq" else {"says": about[0].upper() + about[1:]}
            where = [
                _chapters(stem for stem, keys in chapters.items() if key in keys),
                _code(key, in_package.get(key, []), about),
                _tests(in_tests.get(key, []), about),
            ]
            sign = SIGNS[kind].format(name).replace("*", r"\*")
            yield sign, f"{about['says']}.<br>{' '.join(filter(None, where))}"


def _chapters(stems: Iterable[str]) -> str:
    linked = [f"{{doc}}`{int(stem[:2])} <{stem}>`" for stem in stems]
    return f"{_counted('Chapter', linked)}." if linked else ""


def _code(key: Name, found: list[Site], about: dict) -> str:
    if found:
        return f"Code: {links(found)}."
    if "no_code" not in about:
        raise TagError(f"{' '.join(key)}: no tag in cgmm names it, and no_code gives no reason")
    return f"No code: {about['no_code']}.".replace("*", r"\*")


def _tests(found: list[Site], about: dict) -> str:
    # Helper modules carry tags too, but only files named test_* are collected.
    files = {Path(site.path).stem for site in found if Path(site.path).name.startswith("test_")}
    files |= {Path(holder.partition("::")[0]).stem for holder in about.get("held_by", [])}
    return f"{_counted('Test', [f'`{file}`' for file in sorted(files)])}." if files else ""


def _counted(word: str, listed: list[str]) -> str:
    return f"{word}{'s' if len(listed) > 1 else ''} {', '.join(listed)}"


# ------------------------------------------------------------------------------------ the package


def links(found: list[Site]) -> str:
    """Links to the public functions and classes around the tags; to a file for an inner one.

    A link to a file is left out where a public function of the same file is linked.
    """
    targets = dict.fromkeys((site.path, *target(site.path, site.scope)) for site in found)
    explained = {path for path, role, _ in targets if role != "mod"}
    kept = [(role, name) for path, role, name in targets if role != "mod" or path not in explained]
    return ", ".join(f"{{py:{role}}}`~{name}`" for role, name in kept)


def target(path: str, scope: tuple[str, ...]) -> tuple[str, str]:
    """Return the role and the full name of what the package's page documents around a tag.

    A public name is that of its subpackage, ``cgmm.mixture.e_step``, unless only its own file lists
    it; a private name is represented by its file, ``cgmm.mixture.loop``.
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
