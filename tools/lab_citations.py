"""Show citations as text while JupyterLab has a chapter open, and save them as roles again.

Chapters cite with roles such as {cite:t}`lu2007`, which only the build of the book can show. When
JupyterLab opens a chapter, the server replaces each role by a link, such as

    [Lu and Leen [2007]](https://doi.org/...#cite:t:lu2007)

The end of the link stores the role, so that saving an unchanged chapter restores the same file.
References to the package and to other chapters are replaced likewise, and cells that the book folds
are folded in JupyterLab too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager
from pybtex.database import BibliographyData, Entry, parse_file
from pybtex.richtext import Text

BOOK = Path(__file__).parents[1] / "book"
REFERENCES = BOOK / "references.bib"
CITATION_ROLE = re.compile(r"\{cite:(?P<role>t|p|author|alp)\}`(?P<keys>[\w,\- ]+)`")
WORDS = r"\[(?:\\[\[\]]|[^\[\]\n\\])+\]"
REFERENCE_ROLE = re.compile(r"\{(?P<role>py:\w+|doc)\}`(?P<content>[^`]+)`")
REFERENCE_LINK = re.compile(r"\[[^\]\n]+\]\([^\s()]*#role:(?P<role>\w+):(?P<content>[^\s()]+)\)")
CITATION_LINK = re.compile(WORDS + r"\([^\s()]*#cite:(?P<role>\w+):(?P<keys>[^\s()]+)\)")


class Chapters(AsyncLargeFileManager):
    """Contents manager that shows citations in notebooks as text; other files are unchanged."""

    async def get(self, path: str, content: bool = True, *args: Any, **options: Any) -> dict:
        """Return a file for the browser; in notebooks, replace roles and fold hidden code."""
        model: dict = await super().get(path, content, *args, **options)
        if content and model["type"] == "notebook":
            change_markdown(model["content"], as_text)
            for cell in cells_with_hidden_code(model["content"]):
                cell["metadata"].setdefault("jupyter", {})["source_hidden"] = True
        return model

    async def save(self, model: dict, path: str = "") -> dict:
        """Save a file from the browser; in notebooks, restore roles and unfold code."""
        if model.get("type") == "notebook" and model.get("content"):
            change_markdown(model["content"], as_roles)
            for cell in cells_with_hidden_code(model["content"]):
                cell["metadata"].pop("jupyter", None)
        return await super().save(model, path)  # type: ignore[no-any-return]


def change_markdown(notebook: dict, convert: Callable[[str], str]) -> None:
    """Apply a function to each Markdown cell of a notebook, in place."""
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = convert(cell["source"])


def cells_with_hidden_code(notebook: dict) -> list[dict]:
    """Return the cells whose code the book folds or leaves out."""
    hidden = {"hide-input", "remove-input"}
    return [cell for cell in notebook["cells"] if hidden & set(cell["metadata"].get("tags", ()))]


def as_text(source: str) -> str:
    """Replace roles by links; a citation of an unknown work stays as it is."""
    return REFERENCE_ROLE.sub(format_reference, CITATION_ROLE.sub(format_citation, source))


def as_roles(source: str) -> str:
    """Replace links made by ``as_text`` by the original roles."""
    source = REFERENCE_LINK.sub(
        lambda found: f"{{{found['role'].replace('_', ':')}}}`{unquote(found['content'])}`", source
    )
    return CITATION_LINK.sub(restore_citation, source)


def format_reference(found: re.Match[str]) -> str:
    """Return the link for a reference to a page of the book or to a name of the package."""
    kind, content = found["role"], found["content"]
    words, _, target = content.partition(" <")
    target = target.rstrip(">") or words
    address = f"#role:{kind.replace(':', '_')}:{quote(content, safe='')}"
    if kind == "doc":
        file = f"{target}.ipynb" if (BOOK / f"{target}.ipynb").exists() else f"{target}.md"
        return f"[{title(target) if words == content else words}]({file}{address})"
    shown = words if words != content else words.rsplit(".", 1)[-1] if words[0] == "~" else words
    return f"[`{shown}`]({address})"


@cache
def title(page: str) -> str:
    """Return the heading of a page of the book, or the argument if there is no such page."""
    for path in (BOOK / f"{page}.ipynb", BOOK / f"{page}.md"):
        if path.exists():
            return re.search(
                r'^\s*"?# (.+?)(?:\\n",?)?$', path.read_text(encoding="utf8"), re.MULTILINE
            )[1]
    return page


def restore_citation(found: re.Match[str]) -> str:
    """Return the citation role that a link replaces."""
    return f"{{cite:{found['role']}}}`{found['keys'].replace('%20', ' ')}`"


def format_citation(found: re.Match[str]) -> str:
    """Return a link that shows a citation in words and leads to the DOI of the work, if any."""
    names = [key.strip() for key in found["keys"].split(",")]
    works = [references().entries.get(name) for name in names]
    if None in works:
        return found[0]
    words = ", ".join(format_work(work, found["role"]) for work in works if work)
    words = rf"\[{words}\]" if found["role"] == "p" else words
    doi = next((work.fields["doi"] for work in works if work and "doi" in work.fields), "")
    address = f"https://doi.org/{quote(doi)}" if doi else ""
    return f"[{words}]({address}#cite:{found['role']}:{quote(found['keys'], safe=',')})"


def format_work(work: Entry, kind: str) -> str:
    """Return the words for one cited work: authors and year, or only the authors."""
    people = work.persons.get("author") or work.persons.get("editor", [])
    names = [str(Text.from_latex(" ".join(one.prelast_names + one.last_names))) for one in people]
    authors = " and ".join(names) if len(names) < 3 else f"{names[0]} *et al.*"
    if kind == "author":
        return authors
    year = work.fields["year"]
    return rf"{authors} \[{year}\]" if kind == "t" else f"{authors}, {year}"


@cache
def references() -> BibliographyData:
    """Return the bibliography of the book."""
    return parse_file(str(REFERENCES))
