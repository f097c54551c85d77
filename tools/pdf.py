"""Write the whole book as one PDF: ``python tools/pdf.py [--site DIR] [--out FILE]``.

Chromium prints each page of the built book, laid out by book/_static/paper.js with solutions at the
end of their chapters. This tool joins the printed files, adds cover, contents, bookmarks and page
numbers, and makes links between pages of the book lead to the right page of the PDF. The API pages
are left out.

An *address* is a page of the book and an id on it; a *place* is a page of the PDF and a point on
it.
"""

from __future__ import annotations

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
from editions import Address, EditedPage, list_pages, open_page, resolve_url, run_tool
from playwright.sync_api import Page
from print_fonts import use_static_fonts, write_formula_fonts, write_instances
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
# Chromium stores the place of an id only if a link on the same page leads to it, so add such links.
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
    """Index of a page of the PDF, and the point that a link scrolls to the top left."""

    page: int
    left: float
    top: float


Places = dict[Address, Place]
Link = tuple[list[float], Address | str]
"""Rectangle of a link on a sheet, and its target: an address of the book or a URL."""


@dataclass(frozen=True)
class Chapter(EditedPage):
    """A page of the book with its printed PDF."""

    pdf: PdfReader


# -------------------------------------------------------------------------------- printing


def print_chapter(
    page: Page, site: Path, part: str, name: str, folder: Path, number: int, fonts: str
) -> Chapter:
    """Print a page of the built book; ``number`` is the page number of its first sheet."""
    sections = open_page(page, site, name)
    use_static_fonts(page, fonts, folder)
    page.evaluate(ANCHORS)
    title = json.dumps(sections[0][1], ensure_ascii=False)
    page.add_style_tag(content=pdf_pages.FOOT % (title, number))
    path = folder / f"{name.replace('/', '-')}.pdf"
    page.pdf(path=path, format="A4", print_background=True, tagged=True)
    return Chapter(name, part, sections, PdfReader(path))


def print_html(page: Page, body: str, path: Path, fonts: str) -> PdfReader:
    """Print a page from HTML, such as the cover."""
    source = path.with_suffix(".html")
    source.write_text(pdf_pages.PAGE.format(body=body), encoding="utf8")
    page.goto(source.as_uri())
    use_static_fonts(page, fonts, path.parent)
    page.evaluate(ANCHORS.replace(".bd-article", "body"))
    print_pdf(page, path)
    return PdfReader(path)


# ------------------------------------------------------------------------- places and links


def find_places(name: str, pdf: PdfReader, first: int) -> Iterator[tuple[Address, Place]]:
    """Yield (address, place) for each id in a print that begins on page ``first`` of the PDF."""
    for key, target in pdf.named_destinations.items():
        number = pdf.get_destination_page_number(target)
        if number is not None and number >= 0:
            place = Place(first + number, float(target.left or 0), float(target.top or 0))
            yield (name, unquote(key).removeprefix("/")), place
    yield (name, ""), Place(first, 0, float(pdf.pages[0].mediabox.top))


def find_links(name: str, sheet: PageObject, site: Path) -> Iterator[Link]:
    """Yield (rectangle, target) for each link on a sheet; a target is an address or a URL."""
    for reference in sheet.get("/Annots", []):
        note = reference.get_object()
        corners = [float(corner) for corner in note["/Rect"]]
        if "/Dest" in note:
            yield corners, (name, unquote(str(note["/Dest"])).removeprefix("/"))
        elif "/A" in note and "/URI" in note["/A"]:
            yield corners, resolve_url(str(note["/A"]["/URI"]), site)


def make_link(writer: PdfWriter, corners: list[float], target: Place | str) -> DictionaryObject:
    """Return the PDF annotation of a link."""
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


def join_prints(front: PdfReader, chapters: list[Chapter], site: Path) -> PdfWriter:
    """Join cover, contents and chapters, and add links, bookmarks and page labels."""
    prints = [(FRONT, front), *((chapter.name, chapter.pdf) for chapter in chapters)]
    writer = PdfWriter()
    places: Places = {("book/index", ""): Place(1, 0, 842)}
    links = []
    for name, pdf in prints:
        places |= dict(find_places(name, pdf, len(writer.pages)))
        for sheet in pdf.pages:
            links.append(list(find_links(name, sheet, site)))
            sheet.pop("/Annots", None)
            writer.add_page(sheet)
    for sheet, found in zip(writer.pages, links, strict=True):
        resolved = [(corners, resolve(target, places)) for corners, target in found]
        notes = [make_link(writer, corners, place) for corners, place in resolved if place]
        if notes:
            sheet[NameObject("/Annots")] = ArrayObject(map(writer._add_object, notes))
    add_tags(writer, [pdf for _, pdf in prints])
    add_bookmarks(writer, chapters, places)
    label_pages(writer, len(front.pages))
    return writer


def resolve(target: Address | str, places: Places) -> Place | str | None:
    """Return the place of an address or at least of its page, a web URL unchanged, or else None."""
    if isinstance(target, str):
        return target if target.startswith("http") else None
    return places.get(target) or places.get((target[0], ""))


def add_tags(writer: PdfWriter, prints: list[PdfReader]) -> None:
    """Join the structure trees of the printed files, which mark headings, tables and paragraphs."""
    tree = DictionaryObject({NameObject("/Type"): NameObject("/StructTreeRoot")})
    parent = writer._add_object(tree)
    kinds, parents, sheets = ArrayObject(), ArrayObject(), iter(writer.pages)
    for pdf in prints:
        own_pages = [(next(sheets), sheet.get("/StructParents")) for sheet in pdf.pages]
        if "/StructTreeRoot" not in pdf.trailer["/Root"]:
            continue
        copy = pdf.trailer["/Root"]["/StructTreeRoot"].clone(writer)
        top = copy["/K"].get_object()
        for kind in top if isinstance(top, ArrayObject) else [copy.raw_get("/K")]:
            kind.get_object()[NameObject("/P")] = parent
            kinds.append(kind)
        # Numbers connect pages with their elements. Each file counts from 0, so shift its numbers.
        offset = parents[-2] + 1 if parents else 0
        for number, elements in _number_tree_entries(copy["/ParentTree"]):
            parents += [NumberObject(number + offset), elements]
        for sheet, number in own_pages:
            if number is not None:
                sheet[NameObject("/StructParents")] = NumberObject(number + offset)
    numbers = DictionaryObject({NameObject("/Nums"): parents})
    tree[NameObject("/K")], tree[NameObject("/ParentTree")] = kinds, writer._add_object(numbers)
    writer.root_object[NameObject("/StructTreeRoot")] = parent
    marked = DictionaryObject({NameObject("/Marked"): BooleanObject(True)})
    writer.root_object[NameObject("/MarkInfo")] = marked


def _number_tree_entries(tree: DictionaryObject) -> Iterator[tuple[int, PdfObject]]:
    """Yield (number, object) for each entry of a PDF number tree."""
    found = tree.get_object()
    for below in found.get("/Kids", []):
        yield from _number_tree_entries(below)
    entries = found.get("/Nums", [])
    yield from ((int(entries[n]), entries[n + 1]) for n in range(0, len(entries), 2))


def add_bookmarks(writer: PdfWriter, chapters: list[Chapter], places: Places) -> None:
    """Add a bookmark for each chapter, and below it one for each of its sections."""
    writer.add_outline_item(title="Contents", page_number=1)
    for chapter in chapters:
        start = places[chapter.name, ""]
        parent = writer.add_outline_item(title=chapter.title, page_number=start.page)
        for id, title in chapter.sections[1:]:
            place = places.get((chapter.name, id), start)
            writer.add_outline_item(title=title, page_number=place.page, parent=parent)


def label_pages(writer: PdfWriter, n_front: int) -> None:
    """Number the pages of the front matter with Roman numerals, and the others from 1."""
    writer.set_page_label(0, n_front - 1, style="/r")
    writer.set_page_label(n_front, len(writer.pages) - 1, style="/D", start=1)


# --------------------------------------------------------------------------- cover, contents


def write_front_matter(chapters: list[Chapter], site: Path) -> str:
    """Return HTML of cover and contents; their own page numbers do not shift those of chapters."""
    lines, part, first = [], "", 1
    for chapter in chapters:
        if chapter.part != part:
            part = chapter.part
            lines.append(f'<h2 class="part">{escape(part)}</h2>')
        lines.append(_format_line("chapter", site, chapter, "", chapter.title, first))
        starts = dict(find_places(chapter.name, chapter.pdf, first))
        for id, title in chapter.sections[1:]:
            place = starts.get((chapter.name, id))
            if place and re.match(r"\d", title):
                lines.append(_format_line("section", site, chapter, id, title, place.page))
        first += len(chapter.pdf.pages)
    return pdf_pages.cover() + pdf_pages.CONTENTS.format(lines="\n".join(lines))


def _format_line(kind: str, site: Path, chapter: Chapter, id: str, title: str, number: int) -> str:
    """Return HTML of a line of the contents, which links to a chapter or a section."""
    href = (site / f"{chapter.name}.html").as_uri() + (f"#{id}" if id else "")
    return pdf_pages.LINE.format(kind=kind, href=href, title=escape(title), number=number)


def make_pdf(site: Path, out: Path, names: list[tuple[str, str]] | None = None) -> PdfWriter:
    """Write the PDF of a built book, and return its writer."""
    site = site.resolve()
    with tempfile.TemporaryDirectory() as name, browser_page(1000, 1400) as page:
        folder = Path(name)
        fonts = write_instances(folder)
        write_formula_fonts(site, folder)
        chapters: list[Chapter] = []
        for part, one in names or list_pages():
            number = 1 + sum(len(chapter.pdf.pages) for chapter in chapters)
            chapters.append(print_chapter(page, site, part, one, folder, number, fonts))
        front = print_html(page, write_front_matter(chapters, site), folder / f"{FRONT}.pdf", fonts)
        writer = join_prints(front, chapters, site)
        writer.add_metadata({"/Title": pdf_pages.TITLE, "/Author": pdf_pages.AUTHOR})
        writer.root_object[NameObject("/Lang")] = TextStringObject("en-GB")
        writer.compress_identical_objects(remove_duplicates=True)
        out.parent.mkdir(parents=True, exist_ok=True)
        writer.write(out)
        compress(out)
    return writer


def compress(path: Path) -> None:
    """Pack the small objects of a PDF, a third of its size, into compressed streams."""
    pikepdf.settings.set_flate_compression_level(9)
    with pikepdf.open(path, allow_overwriting_input=True) as whole:
        packed = pikepdf.ObjectStreamMode.generate
        whole.save(path, object_stream_mode=packed, recompress_flate=True)


if __name__ == "__main__":
    run_tool(__doc__, "cgmm.pdf", make_pdf)
