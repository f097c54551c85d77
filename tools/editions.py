"""Shared parts of ``tools/pdf.py`` and ``tools/epub.py``, the two editions of the whole book.

They decide which pages belong to an edition, open pages in a browser, resolve links, and list the
finished editions in the download menu of the site. An *address* is (page, id of an element on it),
e.g. ``("book/02_em", "exercises")``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urlparse

import yaml
from pages import ROOT
from playwright.sync_api import Page

# Pages in this folder are about the package, and are left out of both editions.
PACKAGE = "book/api/"
HEADINGS = """() => [...document.querySelectorAll(".bd-article :is(h1, h2)")].map(heading => {
  const copy = heading.cloneNode(true);
  copy.querySelectorAll(".headerlink, mjx-assistive-mml").forEach(one => one.remove());
  copy.querySelectorAll("mjx-container").forEach((one, n) => {
    one.replaceWith(heading.querySelectorAll("mjx-assistive-mml")[n].textContent);
  });
  return [heading.localName, heading.closest("section").id, copy.textContent.trim()];
})"""
# Content of the script from which the download menu of each page reads the editions.
MENU_SCRIPT = "const EDITIONS = [{}];\n"
KINDS = {"cgmm.pdf": "PDF", "cgmm.epub": "EPUB"}

Address = tuple[str, str]


@dataclass(frozen=True)
class EditedPage:
    """A page of an edition, with (id, title) of the page and of each of its sections."""

    name: str
    part: str
    sections: list[tuple[str, str]]

    @property
    def title(self) -> str:
        return self.sections[0][1]


def list_pages() -> list[tuple[str, str]]:
    """Return (part, page) for each page of an edition, in the order of the table of contents."""
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf8"))
    return [
        (part["caption"], name)
        for part in contents["parts"]
        for name in _flatten_contents(part["chapters"])
        if not name.startswith(PACKAGE)
    ]


def _flatten_contents(entries: list[dict]) -> Iterator[str]:
    """Yield the page of each entry of the table of contents, followed by the pages below it."""
    for entry in entries:
        yield entry["file"]
        yield from _flatten_contents(entry.get("sections", []))


def open_page(page: Page, site: Path, name: str) -> list[tuple[str, str]]:
    """Open a page of the built book; return (id, title) of the page and of each section."""
    page.goto((site / f"{name}.html").as_uri())
    page.evaluate(
        "window.MathJax?.startup?.promise.then(() => document.fonts.ready.then(() => null))"
    )
    return [(id, title) for _, id, title in page.evaluate(HEADINGS)]


def resolve_url(url: str, site: Path) -> Address | str:
    """Return the address in the book to which a URL leads, or the URL if it leads elsewhere."""
    if not url.startswith("file:"):
        return url
    url, fragment = urldefrag(url)
    path = Path(unquote(urlparse(url).path))
    if not path.is_relative_to(site):
        return (path.stem, unquote(fragment))
    return (path.relative_to(site).with_suffix("").as_posix(), unquote(fragment))


def list_in_menu(site: Path) -> None:
    """List the existing editions in the download menu of each page of the site."""
    entries = [
        f'["{name}", "The whole book, {kind}, {(site / name).stat().st_size / 1e6:.0f} MB"]'
        for name, kind in KINDS.items()
        if (site / name).exists()
    ]
    script = MENU_SCRIPT.format(", ".join(entries))
    (site / "_static/editions.js").write_text(script, encoding="utf8")


def run_tool(description: str, file: str, make: Callable[[Path, Path], Any]) -> None:
    """Write an edition as the command line asks, and list it in the menu of the site."""
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument("--site", type=Path, default=Path("_build/html"))
    parser.add_argument("--out", type=Path, default=Path("_build/html") / file)
    options = parser.parse_args()
    make(options.site, options.out)
    list_in_menu(options.site)
    print(f"{options.out}: {options.out.stat().st_size / 1e6:.1f} MB")
