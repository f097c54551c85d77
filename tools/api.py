"""Write the pages of the package, book/api/, and their place in the table of contents.

    python tools/api.py

The public names of a subpackage are those in ``__all__`` of its ``__init__``. Each public class has
a page of its own, and so has each file with public names that ``__init__`` does not list; all else
stands on the page of its subpackage, file by file. The papers' experiments, book/reruns/, are no
part of the package, and have one page. A page says which chapters import a name, because they
explain it. New subpackages, files and names are found without being listed here.
"""

from __future__ import annotations

import inspect
from doctest import DocTestParser
from pathlib import Path

from api_names import (
    Name,
    Subpackage,
    chapters_of,
    first_sentence,
    is_estimator,
    names_of_file,
    reruns,
    subpackages,
)  # fmt: skip
from imported import find
from pages import BOOK, ROOT

FOLDER = BOOK / "api"
CONTENTS = ROOT / "_toc.yml"
# What stands in the table of contents below this line is ours, up to its end.
ENTRY = "      - file: book/api/index\n"
WRITTEN = "<!-- Written by tools/api.py from the package: change that, and run it. -->\n"
# The first screen of a class's page holds this much of its example.
LINES_OF_EXAMPLE = 6
# Where the members that a class inherits end: these document their own.
ENDS = "BaseEstimator, BaseException, Generic, str, tuple"
RERUNS = "book/api/reruns"
INTRODUCTION = """\
Numbers behind a name are those of the chapters that import it. N points have D dimensions, a
mixture has K components; the shape of every array is given.
"""


def main() -> None:
    """Run from the command line: what is not among the pages goes."""
    wanted = pages()
    for path in set(FOLDER.rglob("*.md")) - set(wanted):
        path.unlink()
    for path, text in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf8")


def pages() -> dict[Path, str]:
    """The table of contents and every page with its text, from the package as it is now."""
    found = {CONTENTS: _contents(), FOLDER / "index.md": _index()}
    for subpackage in subpackages():
        found[FOLDER / f"{subpackage.itself.short}.md"] = _subpackage_page(subpackage)
        below = FOLDER / subpackage.itself.short
        found |= {
            below / f"{one.short}.md": _class_page(subpackage, one) for one in subpackage.classes
        }
        found |= {below / f"{file.short}.md": _file_page(file) for file in subpackage.with_pages}
    return found | {FOLDER / "reruns.md": _reruns_page()}


def _contents() -> str:
    """The table of contents: what others wrote, and the pages of the package at its end."""
    before, entry, _ = CONTENTS.read_text(encoding="utf8").partition(ENTRY)
    if not entry:
        raise ValueError(f"{CONTENTS} has no line {ENTRY.strip()!r}: add it as the last one")
    lines = ["        # From here to the end written by tools/api.py.", "        sections:"]
    first = [one for subpackage in subpackages() for one in subpackage.classes if is_estimator(one)]
    lines += [f"          - file: {_document(one)}" for one in first]
    for subpackage in subpackages():
        lines.append(f"          - file: {_document(subpackage.itself)}")
        below = [one for one in [*subpackage.classes, *subpackage.with_pages] if one not in first]
        lines += ["            sections:"] * bool(below)
        lines += [f"              - file: {_document(one)}" for one in below]
    lines.append(f"          - file: {RERUNS}")
    return "".join([before, entry, *(f"{line}\n" for line in lines)])


def _document(one: Name) -> str:
    """Return the name by which Sphinx calls the page of a subpackage, a class or a file."""
    return f"book/{one.name.replace('cgmm', 'api', 1).replace('.', '/')}"


# ------------------------------------------------------------------------------------ pages


def _index() -> str:
    """Return the first page: the classes, then the subpackages with their functions."""
    classes = [one for subpackage in subpackages() for one in subpackage.classes]
    parts = [
        _page("The package", [".. automodule:: cgmm", "", ".. automodule:: cgmm.__main__"]),
        f"{INTRODUCTION}\n## Estimators\n",
        _rst(_table([one for one in classes if is_estimator(one)])),
        "## Other classes\n",
        _rst(_table([one for one in classes if not is_estimator(one)])),
    ]
    for subpackage in subpackages():
        named = [one.link for one in [*subpackage.others, *subpackage.with_pages]]
        itself = subpackage.itself
        about = f":doc:`{itself.name} </{_document(itself)}>`: {first_sentence(itself)}"
        parts += [f"## {subpackage.title}\n", _rst([about, "", ", ".join(named)])]
    about = f":doc:`reruns </{RERUNS}>`, no part of the package: {first_sentence(reruns()[0])}"
    return "\n".join([*parts, "## The papers' experiments\n", _rst([about])])


def _subpackage_page(subpackage: Subpackage) -> str:
    """Return the page of a subpackage: its public names, then its files with their functions."""
    parts = [
        _page(subpackage.title, [f".. automodule:: {subpackage.itself.name}"]),
        _rst(_table([*subpackage.classes, *subpackage.others])),
        _rst(_entries(subpackage, subpackage.itself)),
    ]
    for file in subpackage.without_pages:
        about = [f".. automodule:: {file.name}", "", *_entries(subpackage, file)]
        parts += [f"## {file.name.removeprefix('cgmm.')}\n", _rst(about)]
    if subpackage.with_pages:
        parts += ["## Files with names of their own\n", _rst(_table(subpackage.with_pages))]
    return "\n".join(part for part in parts if part)


def _entries(subpackage: Subpackage, file: Name) -> list[str]:
    """Return the entries of a subpackage that a file defines and that have no page."""
    inside = {one.name for one in subpackage.without_pages}
    lines = []
    for one in subpackage.others:
        # What another subpackage defines, or a file with a page, stands with the subpackage.
        if (one.home if one.home in inside else subpackage.itself.name) == file.name:
            lines += _entry(one)
    return lines


def _class_page(subpackage: Subpackage, one: Name) -> str:
    """A class: where it is imported from, then its entry with all its members."""
    where = [subpackage.itself.name]
    if one.short in find("cgmm").__all__:
        where = ["cgmm", *where]
    importing = " or ".join(f"``from {package} import {one.short}``" for package in where)
    numbers = _chapters(one)
    used = f" Chapters: {numbers}." if numbers else ""
    itself = f":doc:`{subpackage.itself.name} </{_document(subpackage.itself)}>`"
    about = f"{importing}; subpackage {itself}.{used}"
    return _page(one.short, [first_sentence(one), "", *_example(one), about, "", *_entry(one)])


def _example(one: Name) -> list[str]:
    """Return the first statements of the docstring's example, as a listing; none without one."""
    examples = DocTestParser().get_examples(inspect.getdoc(find(one.name)) or "")
    lines = [line for example in examples for line in example.source.splitlines()]
    shown = [f"   {line}" for line in lines[:LINES_OF_EXAMPLE]]
    return [".. code-block:: python", "", *shown, ""] if shown else []


def _file_page(file: Name) -> str:
    """A file with public names of its own: they are imported from it."""
    lines = [f".. automodule:: {file.name}", ""]
    for one in names_of_file(file):
        lines += _entry(one)
    return _page(file.name.removeprefix("cgmm."), lines)


def _reruns_page() -> str:
    """Return the page of the papers' experiments: each module, with what its ``__all__`` lists."""
    package, *files = reruns()
    parts = [_page("The papers' experiments", _with_members(package))]
    parts += [f"## {file.name}\n\n{_rst(_with_members(file))}" for file in files]
    return "\n".join(parts)


def _with_members(module: Name) -> list[str]:
    """Return the directive for a module; one without ``__all__`` shows its docstring only."""
    is_public = hasattr(find(module.name), "__all__")
    return [f".. automodule:: {module.name}", *["   :members:", "   :no-value:"] * is_public]


# ---------------------------------------------------------------------------------- pieces


def _page(title: str, lines: list[str]) -> str:
    return f"# {title}\n\n{WRITTEN}\n{_rst(lines)}"


def _rst(lines: list[str]) -> str:
    """Lines of reStructuredText, which docstrings are written in; nothing if there are none."""
    text = "\n".join(lines).strip("\n")
    return f"```{{eval-rst}}\n{text}\n```\n" if text else ""


def _entry(one: Name) -> list[str]:
    """The directive that shows it."""
    kind = {"func": "function", "exc": "exception"}.get(one.role, one.role)
    options = {
        "class": ["   :members:", f"   :inherited-members: {ENDS}"],
        "exception": ["   :members:", f"   :inherited-members: {ENDS}"],
        "data": ["   :no-value:"],
    }
    return [f".. auto{kind}:: {one.name}", *options.get(kind, []), ""]


def _table(names: list[Name]) -> list[str]:
    """A row for each name: what it is, and the chapters that import it."""
    if not names:
        return []
    lines = [".. list-table::", "   :class: cgmm-names", "   :header-rows: 1", ""]
    for cells in [("Name", "What it is", "Chapters"), *map(_row, names)]:
        lines += [f"   {' ' if n else '*'} - {cell}".rstrip() for n, cell in enumerate(cells)]
    return lines


def _row(one: Name) -> tuple[str, str, str]:
    return one.link, first_sentence(one), _chapters(one)


def _chapters(one: Name) -> str:
    """Numbers of the chapters that import it, each a link."""
    return ", ".join(f":doc:`{int(stem[:2])} </book/{stem}>`" for stem in chapters_of(one))


if __name__ == "__main__":
    main()
