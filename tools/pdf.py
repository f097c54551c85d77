"""The whole book as one PDF: ``python tools/pdf.py [--site DIR] [--out FILE]``.

Chromium prints each page of the built book as book/_static/paper.js lays it out, with solutions at
the end of their chapters. Here the prints are joined: links between pages lead to the place in the
PDF, cover and contents come before, and every page has a number. The package is left out.

A *place* is a page of the PDF and a point on it; an *address* a page of the book and an id.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from urllib.parse import unquote

import pdf_pages
import pikepdf
from editions import Address, EditedPage, address, names_by_part, offer, open_page
from playwright.sync_api import Page
from print_fonts import use_static, write_instances, write_maths
from pypdf import PageObject, PdfReader, PdfWriter
from pypdf.generic import (
    ArrayObject,
    BooleanObject,
    DictionaryObject,
    FloatObject,
    NameObject,
    NullObject,
    NumberObject,
    PdfObject,
    TextStringObject,
)
from typeset import browser_page, print_pdf

FRONT = "contents"
# Chromium keeps the places of those ids alone to which a link on the same page leads.
ANCHORS = """() => {
  const article = document.querySelector(".bd-article"), all = document.createElement("div");
  all.style.display = "none";
  for (const one of article.querySelectorAll("[id]")) {
    const link = document.createElement("a");
    link.href = `#${one.id}`;
    all.append(link);
  }
  article.append(all);
}"""


@dataclass(frozen=True)
class Place:
    """A page, counted from the first of the PDF, and the point that a link brings to the top."""

    page: int
    left: float
    top: float


@dataclass(frozen=True)
class Chapter(EditedPage):
    """With its printed pages."""

    pdf: PdfReader


# -------------------------------------------------------------------------------- printing


def print_chapter(
    page: Page, site: Path, part: str, name: str, folder: Path, number: int, fonts: str
) -> Chapter:
    """Print a page of the built book; its first sheet has this number."""
    sections = open_page(page, site, name)
    use_static(page, fonts, folder)
    page.evaluate(ANCHORS)
    title = json.dumps(sections[0][1], ensure_ascii=False)
    page.add_style_tag(content=pdf_pages.FOOT % (title, number))
    path = folder / f"{name.replace('/', '-')}.pdf"
    page.pdf(path=path, format="A4", print_background=True, tagged=True)
    return Chapter(name, part, sections, PdfReader(path))


def print_html(page: Page, body: str, path: Path, fonts: str) -> PdfReader:
    """Print a page that is written here."""
    source = path.with_suffix(".html")
    source.write_text(pdf_pages.PAGE.format(body=body), encoding="utf8")
    page.goto(source.as_uri())
    use_static(page, fonts, path.parent)
    page.evaluate(ANCHORS.replace(".bd-article", "body"))
    print_pdf(page, path)
    return PdfReader(path)


# ------------------------------------------------------------------------- places and links


def places(name: str, pdf: PdfReader, first: int) -> Iterator[tuple[Address, Place]]:
    """Return the pages of a print's ids if its first page is page ``first``."""
    for key, target in pdf.named_destinations.items():
        number = pdf.get_destination_page_number(target)
        if number is not None and number >= 0:
            place = Place(first + number, float(target.left or 0), float(target.top or 0))
            yield (name, unquote(key).removeprefix("/")), place
    yield (name, ""), Place(first, 0, float(pdf.pages[0].mediabox.top))


def links(name: str, sheet: PageObject, site: Path) -> Iterator[tuple[list[float], Address | str]]:
    """Each link of a page of a print: its rectangle, and an address in the book or elsewhere."""
    for reference in sheet.get("/Annots", []):
        note = reference.get_object()
        corners = [float(corner) for corner in note["/Rect"]]
        if "/Dest" in note:
            yield corners, (name, unquote(str(note["/Dest"])).removeprefix("/"))
        elif "/A" in note and "/URI" in note["/A"]:
            yield corners, address(str(note["/A"]["/URI"]), site)


def link_to(writer: PdfWriter, corners: list[float], target: Place | str) -> DictionaryObject:
    """A link of the PDF."""
    note = DictionaryObject()
    note[NameObject("/Type")] = NameObject("/Annot")
    note[NameObject("/Subtype")] = NameObject("/Link")
    note[NameObject("/Rect")] = ArrayObject(map(FloatObject, corners))
    note[NameObject("/Border")] = ArrayObject(map(FloatObject, [0, 0, 0]))
    if isinstance(target, Place):
        there = writer.pages[target.page].indirect_reference
        point = [FloatObject(target.left), FloatObject(target.top), NullObject()]
        note[NameObject("/Dest")] = ArrayObject([there, NameObject("/XYZ"), *point])
    else:
        action = DictionaryObject()
        action[NameObject("/S")] = NameObject("/URI")
        action[NameObject("/URI")] = TextStringObject(target)
        note[NameObject("/A")] = action
    return note


# ---------------------------------------------------------------------------------- joining


def join(front: PdfReader, chapters: list[Chapter], site: Path) -> PdfWriter:
    """Cover, contents and chapters one after the other, with links, bookmarks and page labels."""
    prints = [(FRONT, front), *((chapter.name, chapter.pdf) for chapter in chapters)]
    writer = PdfWriter()
    known: dict[Address, Place] = {("book/index", ""): Place(1, 0, 842)}
    wanted = []
    for name, pdf in prints:
        known |= dict(places(name, pdf, len(writer.pages)))
        for sheet in pdf.pages:
            wanted.append(list(links(name, sheet, site)))
            sheet.pop("/Annots", None)
            writer.add_page(sheet)
    for sheet, found in zip(writer.pages, wanted, strict=True):
        resolved = [(corners, resolve(target, known)) for corners, target in found]
        notes = [link_to(writer, corners, place) for corners, place in resolved if place]
        if notes:
            sheet[NameObject("/Annots")] = ArrayObject(map(writer._add_object, notes))
    add_tags(writer, [pdf for _, pdf in prints])
    add_bookmarks(writer, chapters, known)
    label_pages(writer, len(front.pages))
    return writer


def resolve(target: Address | str, known: dict[Address, Place]) -> Place | str | None:
    """The place of an address, or of its page; None if the paper edition does not have the page."""
    if isinstance(target, str):
        return target if target.startswith("http") else None
    return known.get(target) or known.get((target[0], ""))


def add_tags(writer: PdfWriter, prints: list[PdfReader]) -> None:
    """Join the structures of the prints, which say what is a heading, a table or a paragraph."""
    tree = DictionaryObject({NameObject("/Type"): NameObject("/StructTreeRoot")})
    above = writer._add_object(tree)
    kinds, parents, sheets = ArrayObject(), ArrayObject(), iter(writer.pages)
    for pdf in prints:
        mine = [(next(sheets), sheet.get("/StructParents")) for sheet in pdf.pages]
        if "/StructTreeRoot" not in pdf.trailer["/Root"]:
            continue
        copy = pdf.trailer["/Root"]["/StructTreeRoot"].clone(writer)
        top = copy["/K"].get_object()
        for kind in top if isinstance(top, ArrayObject) else [copy.raw_get("/K")]:
            kind.get_object()[NameObject("/P")] = above
            kinds.append(kind)
        # Pages and elements find each other by number: each print counts from 0.
        offset = parents[-2] + 1 if parents else 0
        for number, own in _leaves(copy["/ParentTree"]):
            parents += [NumberObject(number + offset), own]
        for sheet, number in mine:
            if number is not None:
                sheet[NameObject("/StructParents")] = NumberObject(number + offset)
    numbers = DictionaryObject({NameObject("/Nums"): parents})
    tree[NameObject("/K")], tree[NameObject("/ParentTree")] = kinds, writer._add_object(numbers)
    writer.root_object[NameObject("/StructTreeRoot")] = above
    marked = DictionaryObject({NameObject("/Marked"): BooleanObject(True)})
    writer.root_object[NameObject("/MarkInfo")] = marked


def _leaves(tree: DictionaryObject) -> Iterator[tuple[int, PdfObject]]:
    """Number and object of each entry of a number tree."""
    found = tree.get_object()
    for below in found.get("/Kids", []):
        yield from _leaves(below)
    entries = found.get("/Nums", [])
    yield from ((int(entries[n]), entries[n + 1]) for n in range(0, len(entries), 2))


def add_bookmarks(writer: PdfWriter, chapters: list[Chapter], known: dict[Address, Place]) -> None:
    """One for each chapter, below it one for each of its sections."""
    writer.add_outline_item(title="Contents", page_number=1)
    for chapter in chapters:
        start = known[chapter.name, ""]
        above = writer.add_outline_item(title=chapter.title, page_number=start.page)
        for id, title in chapter.sections[1:]:
            place = known.get((chapter.name, id), start)
            writer.add_outline_item(title=title, page_number=place.page, parent=above)


def label_pages(writer: PdfWriter, n_front: int) -> None:
    """Roman numbers for what comes before the first chapter; that begins on page 1."""
    writer.set_page_label(0, n_front - 1, style="/r")
    writer.set_page_label(n_front, len(writer.pages) - 1, style="/D", start=1)


# --------------------------------------------------------------------------- cover, contents


def front_matter(chapters: list[Chapter], site: Path) -> str:
    """Cover and contents; page numbers are known before it is, for it has numbers of its own."""
    lines, part, first = [], "", 1
    for chapter in chapters:
        if chapter.part != part:
            part = chapter.part
            lines.append(f'<h2 class="part">{escape(part)}</h2>')
        lines.append(_line("chapter", site, chapter, "", chapter.title, first))
        starts = dict(places(chapter.name, chapter.pdf, first))
        for id, title in chapter.sections[1:]:
            place = starts.get((chapter.name, id))
            if place and re.match(r"\d", title):
                lines.append(_line("section", site, chapter, id, title, place.page))
        first += len(chapter.pdf.pages)
    return pdf_pages.cover() + pdf_pages.CONTENTS.format(lines="\n".join(lines))


def _line(kind: str, site: Path, chapter: Chapter, id: str, title: str, number: int) -> str:
    href = (site / f"{chapter.name}.html").as_uri() + (f"#{id}" if id else "")
    return pdf_pages.LINE.format(kind=kind, href=href, title=escape(title), number=number)


def make(site: Path, out: Path, names: list[tuple[str, str]] | None = None) -> PdfWriter:
    """Write the PDF of a built book."""
    site = site.resolve()
    with tempfile.TemporaryDirectory() as name, browser_page(1000, 1400) as page:
        folder = Path(name)
        fonts = write_instances(folder)
        write_maths(site, folder)
        chapters: list[Chapter] = []
        for part, one in names or names_by_part():
            number = 1 + sum(len(chapter.pdf.pages) for chapter in chapters)
            chapters.append(print_chapter(page, site, part, one, folder, number, fonts))
        front = print_html(page, front_matter(chapters, site), folder / f"{FRONT}.pdf", fonts)
        writer = join(front, chapters, site)
        writer.add_metadata({"/Title": pdf_pages.TITLE, "/Author": pdf_pages.AUTHOR})
        writer.root_object[NameObject("/Lang")] = TextStringObject("en-GB")
        writer.compress_identical_objects(remove_duplicates=True)
        out.parent.mkdir(parents=True, exist_ok=True)
        writer.write(out)
        compress(out)
    return writer


def compress(path: Path) -> None:
    """Pack the many small objects of a PDF, a third of its size, into compressed streams."""
    pikepdf.settings.set_flate_compression_level(9)
    with pikepdf.open(path, allow_overwriting_input=True) as whole:
        packed = pikepdf.ObjectStreamMode.generate
        whole.save(path, object_stream_mode=packed, recompress_flate=True)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--site", type=Path, default=Path("_build/html"))
    parser.add_argument("--out", type=Path, default=Path("_build/html/cgmm.pdf"))
    options = parser.parse_args()
    writer = make(options.site, options.out)
    offer(options.site)
    print(f"{options.out}: {len(writer.pages)} pages, {options.out.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
