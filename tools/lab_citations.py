"""Citations and names of a chapter as text while JupyterLab has it open, in the file roles again.

In a chapter stands {cite:t}`lu2007`, which nothing but the book's build can read. The server gives
out a link in its place, [Lu and Leen [2007]](https://doi.org/...#cite:t:lu2007). What the link says
of its role is enough to write that back: a chapter that is saved unchanged is the same file. Names
of the package and of other chapters are treated alike, and cells that the book folds are folded.
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
ROLE = re.compile(r"\{cite:(?P<role>t|p|author|alp)\}`(?P<keys>[\w,\- ]+)`")
WORDS = r"\[(?:\\[\[\]]|[^\[\]\n\\])+\]"
NAME = re.compile(r"\{(?P<role>py:\w+|doc)\}`(?P<content>[^`]+)`")
NAMED = re.compile(r"\[[^\]\n]+\]\([^\s()]*#role:(?P<role>\w+):(?P<content>[^\s()]+)\)")
LINK = re.compile(WORDS + r"\([^\s()]*#cite:(?P<role>\w+):(?P<keys>[^\s()]+)\)")


class Chapters(AsyncLargeFileManager):
    """Files as they are, notebooks with citations as text."""

    async def get(self, path: str, content: bool = True, *args: Any, **options: Any) -> dict:
        """What the browser is given."""
        model: dict = await super().get(path, content, *args, **options)
        if content and model["type"] == "notebook":
            change(model["content"], as_text)
            for cell in folded(model["content"]):
                cell["metadata"].setdefault("jupyter", {})["source_hidden"] = True
        return model

    async def save(self, model: dict, path: str = "") -> dict:
        """What the browser sends back."""
        if model.get("type") == "notebook" and model.get("content"):
            change(model["content"], as_roles)
            for cell in folded(model["content"]):
                cell["metadata"].pop("jupyter", None)
        return await super().save(model, path)  # type: ignore[no-any-return]


def change(notebook: dict, how: Callable[[str], str]) -> None:
    """Change the text of a notebook, in place."""
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = how(cell["source"])


def folded(notebook: dict) -> list[dict]:
    """The cells whose code the book folds or leaves out."""
    hidden = {"hide-input", "remove-input"}
    return [cell for cell in notebook["cells"] if hidden & set(cell["metadata"].get("tags", ()))]


def as_text(source: str) -> str:
    """Links in place of roles; a work that the bibliography does not know keeps its role."""
    return NAME.sub(named, ROLE.sub(link, source))


def as_roles(source: str) -> str:
    """Roles in place of links; all else as it is."""
    source = NAMED.sub(
        lambda found: f"{{{found['role'].replace('_', ':')}}}`{unquote(found['content'])}`", source
    )
    return LINK.sub(lambda found: role(found["role"], found["keys"].replace("%20", " ")), source)


def named(found: re.Match[str]) -> str:
    """A name of the package as code, a page of the book as a link by its title."""
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
    """The heading of a page of the book; its address if there is no such page."""
    for path in (BOOK / f"{page}.ipynb", BOOK / f"{page}.md"):
        if path.exists():
            return re.search(
                r'^\s*"?# (.+?)(?:\\n",?)?$', path.read_text(encoding="utf8"), re.MULTILINE
            )[1]
    return page


def role(kind: str, keys: str) -> str:
    """The role as a chapter has it."""
    return f"{{cite:{kind}}}`{keys}`"


def link(found: re.Match[str]) -> str:
    """A citation as the page words it, leading to the work where it has a DOI."""
    names = [key.strip() for key in found["keys"].split(",")]
    works = [references().entries.get(name) for name in names]
    if None in works:
        return found[0]
    words = ", ".join(wording(work, found["role"]) for work in works if work)
    words = rf"\[{words}\]" if found["role"] == "p" else words
    doi = next((work.fields["doi"] for work in works if work and "doi" in work.fields), "")
    address = f"https://doi.org/{quote(doi)}" if doi else ""
    return f"[{words}]({address}#cite:{found['role']}:{quote(found['keys'], safe=',')})"


def wording(work: Entry, kind: str) -> str:
    """Authors and year, with brackets or without, or the authors alone."""
    people = work.persons.get("author") or work.persons.get("editor", [])
    last = [str(Text.from_latex(" ".join(one.prelast_names + one.last_names))) for one in people]
    who = " and ".join(last) if len(last) < 3 else f"{last[0]} *et al.*"
    if kind == "author":
        return who
    return rf"{who} \[{work.fields['year']}\]" if kind == "t" else f"{who}, {work.fields['year']}"


@cache
def references() -> BibliographyData:
    """The works that are cited."""
    return parse_file(str(REFERENCES))
