"""Shared parts of the PDF and the EPUB: their pages, and their place in the menu.

An *address* is a page of the book and an id on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlparse

import yaml
from pages import ROOT
from playwright.sync_api import Page

# From here on the table of contents lists pages about the package.
PACKAGE = "book/api/"
HEADINGS = """() => [...document.querySelectorAll(".bd-article :is(h1, h2)")].map(heading => {
  const copy = heading.cloneNode(true);
  copy.querySelectorAll(".headerlink, mjx-assistive-mml").forEach(one => one.remove());
  copy.querySelectorAll("mjx-container").forEach((one, n) => {
    one.replaceWith(heading.querySelectorAll("mjx-assistive-mml")[n].textContent);
  });
  return [heading.localName, heading.closest("section").id, copy.textContent.trim()];
})"""
# Read by the menu of downloads of each page.
OFFER = "const EDITIONS = [{}];\n"
KINDS = {"cgmm.pdf": "PDF", "cgmm.epub": "EPUB"}

Address = tuple[str, str]


@dataclass(frozen=True)
class EditedPage:
    """A page of the book; sections are (id, title), the first is the page itself."""

    name: str
    part: str
    sections: list[tuple[str, str]]

    @property
    def title(self) -> str:
        return self.sections[0][1]


def names_by_part() -> list[tuple[str, str]]:
    """(part, page) for every page of the paper edition, in the order of the table of contents."""
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf8"))
    return [
        (part["caption"], name)
        for part in contents["parts"]
        for name in _files(part["chapters"])
        if not name.startswith(PACKAGE)
    ]


def _files(entries: list[dict]) -> Iterator[str]:
    """The pages of a table of contents, each before its sections."""
    for entry in entries:
        yield entry["file"]
        yield from _files(entry.get("sections", []))


def open_page(page: Page, site: Path, name: str) -> list[tuple[str, str]]:
    """Open a page of the built book; (id, title) of its sections, the first is the page itself."""
    page.goto((site / f"{name}.html").as_uri())
    page.evaluate(
        "window.MathJax?.startup?.promise.then(() => document.fonts.ready.then(() => null))"
    )
    return [(id, title) for _, id, title in page.evaluate(HEADINGS)]


def address(url: str, site: Path) -> Address | str:
    """A page of the book and an id on it; elsewhere the address as it is."""
    if not url.startswith("file:"):
        return url
    url, fragment = urldefrag(url)
    path = Path(unquote(urlparse(url).path))
    if not path.is_relative_to(site):
        return (path.stem, unquote(fragment))
    return (path.relative_to(site).with_suffix("").as_posix(), unquote(fragment))


def offer(site: Path) -> None:
    """Put the editions that were made into the menu of each page."""
    made = [
        f'["{name}", "The whole book, {kind}, {(site / name).stat().st_size / 1e6:.0f} MB"]'
        for name, kind in KINDS.items()
        if (site / name).exists()
    ]
    (site / "_static/editions.js").write_text(OFFER.format(", ".join(made)), encoding="utf8")
