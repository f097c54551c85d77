"""Turn citations and references from MyST roles into Markdown links.

Notebooks that are read without the build of the book need it: the chapters in JupyterLab
(tools/lab_citations.py) and the notebooks that pages offer for download (cgmm_download.py).
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from urllib.parse import quote

from pybtex.database import BibliographyData, Entry, parse_file
from pybtex.richtext import Text

BOOK = Path(__file__).parents[1]
REFERENCES = BOOK / "references.bib"
CITATION_ROLE = re.compile(r"\{cite:(?P<role>t|p|author|alp)\}`(?P<keys>[\w,\- ]+)`")
WORDS = r"\[(?:\\[\[\]]|[^\[\]\n\\])+\]"
REFERENCE_ROLE = re.compile(r"\{(?P<role>py:\w+|doc)\}`(?P<content>[^`]+)`")


def as_text(source: str) -> str:
    """Replace roles by links; a citation of an unknown work stays as it is."""
    return REFERENCE_ROLE.sub(format_reference, CITATION_ROLE.sub(format_citation, source))


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
