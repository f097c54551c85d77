"""Write the API pages of the package, book/api/, and list them in the table of contents.

    python tools/api.py

The public names of a subpackage are those in ``__all__`` of its ``__init__``. Each public class has
a page of its own, and so has each file with public names that ``__init__`` does not list. All other
names are documented on the page of their subpackage, file by file. The papers' experiments,
book/reruns/, are not part of the package and share one page. Each name is listed with the chapters
that import it, because they explain it. New subpackages, files and names are found automatically.
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
from imported import resolve
from pages import BOOK, ROOT

FOLDER = BOOK / "api"
CONTENTS = ROOT / "_toc.yml"
# This tool writes all lines of the table of contents below this one.
ENTRY = "      - file: book/api/index\n"
WRITTEN = "<!-- Written by tools/api.py from the package: change that, and run it. -->\n"
# The page of a class begins with at most this many lines of its example.
LINES_OF_EXAMPLE = 6
# Members inherited from these classes are left out, because they are documented elsewhere.
UNDOCUMENTED_BASES = "BaseEstimator, BaseException, Generic, str, tuple"
RERUNS = "book/api/reruns"
INTRODUCTION = """\
The numbers after a name are the chapters that import it. N is the number of points, D the number of
dimensions, K the number of components; the shape of every array is given.
"""


def main() -> None:
    """Write all API pages, and delete pages of names that no longer exist."""
    wanted = build_pages()
    for path in set(FOLDER.rglob("*.md")) - set(wanted):
        path.unlink()
    for path, text in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf8")


def build_pages() -> dict[Path, str]:
    """Return {path: text} of the table of contents and of every API page."""
    found = {CONTENTS: _build_contents(), FOLDER / "index.md": _build_index()}
    for subpackage in subpackages():
        folder = FOLDER / subpackage.itself.short
        found[folder.with_suffix(".md")] = _build_subpackage_page(subpackage)
        for one in subpackage.classes:
            found[folder / f"{one.short}.md"] = _build_class_page(subpackage, one)
        for file in subpackage.with_pages:
            found[folder / f"{file.short}.md"] = _build_file_page(file)
    return found | {FOLDER / "reruns.md": _build_reruns_page()}


def _build_contents() -> str:
    """Return the table of contents with the API pages at its end and its other lines unchanged."""
    before, entry, _ = CONTENTS.read_text(encoding="utf8").partition(ENTRY)
    if not entry:
        raise ValueError(f"{CONTENTS} has no line {ENTRY.strip()!r}: add it as the last one")
    lines = ["        # From here to the end written by tools/api.py.", "        sections:"]
    first = [one for subpackage in subpackages() for one in subpackage.classes if is_estimator(one)]
    lines += [f"          - file: {_document_name(one)}" for one in first]
    for subpackage in subpackages():
        lines.append(f"          - file: {_document_name(subpackage.itself)}")
        below = [one for one in [*subpackage.classes, *subpackage.with_pages] if one not in first]
        lines += ["            sections:"] * bool(below)
        lines += [f"              - file: {_document_name(one)}" for one in below]
    lines.append(f"          - file: {RERUNS}")
    return "".join([before, entry, *(f"{line}\n" for line in lines)])


def _document_name(one: Name) -> str:
    """Return the Sphinx document name of the page of a subpackage, a class or a file."""
    return f"book/{one.name.replace('cgmm', 'api', 1).replace('.', '/')}"


# ------------------------------------------------------------------------------------ pages


def _build_index() -> str:
    """Return the text of the API index: all classes, then each subpackage with its functions."""
    classes = [one for subpackage in subpackages() for one in subpackage.classes]
    parts = [
        _format_page("The package", [".. automodule:: cgmm", "", ".. automodule:: cgmm.__main__"]),
        f"{INTRODUCTION}\n## Estimators\n",
        _format_table([one for one in classes if is_estimator(one)]),
        "## Other classes\n",
        _format_table([one for one in classes if not is_estimator(one)]),
    ]
    for subpackage in subpackages():
        named = [one.link for one in [*subpackage.others, *subpackage.with_pages]]
        itself = subpackage.itself
        about = f":doc:`{itself.name} </{_document_name(itself)}>`: {first_sentence(itself)}"
        parts += [f"## {subpackage.title}\n", _format_rst([about, "", ", ".join(named)])]
    about = f":doc:`reruns </{RERUNS}>`, no part of the package: {first_sentence(reruns()[0])}"
    return "\n".join([*parts, "## The papers' experiments\n", _format_rst([about])])


def _build_subpackage_page(subpackage: Subpackage) -> str:
    """Return the text of a subpackage's page: all public names, then the functions by file."""
    parts = [
        _format_page(subpackage.title, [f".. automodule:: {subpackage.itself.name}"]),
        _format_table([*subpackage.classes, *subpackage.others]),
        _format_rst(_entries_of_file(subpackage, subpackage.itself)),
    ]
    for file in subpackage.without_pages:
        about = [f".. automodule:: {file.name}", "", *_entries_of_file(subpackage, file)]
        parts += [f"## {file.name.removeprefix('cgmm.')}\n", _format_rst(about)]
    if subpackage.with_pages:
        parts += ["## Files with names of their own\n", _format_table(subpackage.with_pages)]
    return "\n".join(part for part in parts if part)


def _entries_of_file(subpackage: Subpackage, file: Name) -> list[str]:
    """Return the directives for those names of a subpackage that are documented with this file."""
    inside = {one.name for one in subpackage.without_pages}
    lines = []
    for one in subpackage.others:
        # A name from another subpackage, or from a file with its own page, is documented at the
        # top of the subpackage's page.
        if (one.home if one.home in inside else subpackage.itself.name) == file.name:
            lines += _format_entry(one)
    return lines


def _build_class_page(subpackage: Subpackage, one: Name) -> str:
    """Return the text of a class's page: its example, its import statement and all its members."""
    where = [subpackage.itself.name]
    if one.short in resolve("cgmm").__all__:
        where = ["cgmm", *where]
    importing = " or ".join(f"``from {package} import {one.short}``" for package in where)
    numbers = _format_chapters(one)
    used = f" Chapters: {numbers}." if numbers else ""
    itself = f":doc:`{subpackage.itself.name} </{_document_name(subpackage.itself)}>`"
    about = f"{importing}; subpackage {itself}.{used}"
    lines = [first_sentence(one), "", *_format_example(one), about, "", *_format_entry(one)]
    return _format_page(one.short, lines)


def _format_example(one: Name) -> list[str]:
    """Return a code block with the first lines of the docstring's example, or [] without one."""
    examples = DocTestParser().get_examples(inspect.getdoc(resolve(one.name)) or "")
    lines = [line for example in examples for line in example.source.splitlines()]
    shown = [f"   {line}" for line in lines[:LINES_OF_EXAMPLE]]
    return [".. code-block:: python", "", *shown, ""] if shown else []


def _build_file_page(file: Name) -> str:
    """Return the page of a file from which its public names are imported directly."""
    lines = [f".. automodule:: {file.name}", ""]
    for one in names_of_file(file):
        lines += _format_entry(one)
    return _format_page(file.name.removeprefix("cgmm."), lines)


def _build_reruns_page() -> str:
    """Return the text of the page that documents every module of the papers' experiments."""
    package, *files = reruns()
    parts = [_format_page("The papers' experiments", _format_module(package))]
    parts += [f"## {file.name}\n\n{_format_rst(_format_module(file))}" for file in files]
    return "\n".join(parts)


def _format_module(module: Name) -> list[str]:
    """Return the directive for a module; without ``__all__`` only its docstring is shown."""
    is_public = hasattr(resolve(module.name), "__all__")
    return [f".. automodule:: {module.name}", *["   :members:", "   :no-value:"] * is_public]


# ---------------------------------------------------------------------------------- pieces


def _format_page(title: str, lines: list[str]) -> str:
    """Return a page that consists of a title and lines of reStructuredText."""
    return f"# {title}\n\n{WRITTEN}\n{_format_rst(lines)}"


def _format_rst(lines: list[str]) -> str:
    """Return a MyST block of reStructuredText, the language of docstrings; "" without lines."""
    text = "\n".join(lines).strip("\n")
    return f"```{{eval-rst}}\n{text}\n```\n" if text else ""


def _format_entry(one: Name) -> list[str]:
    """Return the autodoc directive of a name."""
    kind = {"func": "function", "exc": "exception"}.get(one.role, one.role)
    options = {
        "class": ["   :members:", f"   :inherited-members: {UNDOCUMENTED_BASES}"],
        "exception": ["   :members:", f"   :inherited-members: {UNDOCUMENTED_BASES}"],
        "data": ["   :no-value:"],
    }
    return [f".. auto{kind}:: {one.name}", *options.get(kind, []), ""]


def _format_table(names: list[Name]) -> str:
    """Return a table with a row for each name: its first sentence, and its chapters."""
    if not names:
        return ""
    lines = [".. list-table::", "   :class: cgmm-names", "   :header-rows: 1", ""]
    for cells in [("Name", "What it is", "Chapters"), *map(_format_row, names)]:
        lines += [f"   {' ' if n else '*'} - {cell}".rstrip() for n, cell in enumerate(cells)]
    return _format_rst(lines)


def _format_row(one: Name) -> tuple[str, str, str]:
    """Return the cells of a name's row: link, first sentence and chapters."""
    return one.link, first_sentence(one), _format_chapters(one)


def _format_chapters(one: Name) -> str:
    """Return links to the chapters that import a name, as their numbers."""
    return ", ".join(f":doc:`{int(stem[:2])} </book/{stem}>`" for stem in chapters_of(one))


if __name__ == "__main__":
    main()
