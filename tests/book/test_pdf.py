"""Test the book as one PDF: pages, bookmarks, links, and no path of this machine."""

import io
import re
from pathlib import Path

import pdf
import pytest
from bs4 import BeautifulSoup
from built_book import short_and_complete_editions
from pypdf import PdfReader

CHAPTER = "book/13_the_papers_rerun"


@pytest.fixture(scope="module", params=short_and_complete_editions(CHAPTER, "book/bibliography"))
def edition(request, chromium_path, site, tmp_path_factory):
    path: Path = tmp_path_factory.mktemp("pdf") / "cgmm.pdf"
    pdf.make_pdf(site, path, request.param)
    return PdfReader(path), request.param


def top_level(reader):
    return [one for one in reader.outline if not isinstance(one, list)]


def test_bookmarks_are_the_chapters_and_their_sections(edition, site):
    reader, names = edition
    marks = top_level(reader)
    assert len(marks) == 1 + len(names)
    starts = [reader.get_destination_page_number(one) for one in marks]
    assert starts == sorted(set(starts))
    for mark, start, (_, name) in zip(marks[1:], starts[1:], names, strict=True):
        page = BeautifulSoup((site / f"{name}.html").read_text(encoding="utf8"), "html.parser")
        words = "".join(re.findall(r"\w+", page.select_one("article h1").get_text()))
        assert "".join(re.findall(r"\w+", mark.title)) == words
        assert words in "".join(re.findall(r"\w+", reader.pages[start].extract_text()))
    nested = [one for one in reader.outline if isinstance(one, list)]
    assert max(map(len, nested)) > 5


def test_links_lead_within_the_book_or_to_the_web(edition):
    reader, names = edition
    within, elsewhere = 0, []
    for reference in [one for sheet in reader.pages for one in sheet.get("/Annots", [])]:
        note = reference.get_object()
        if "/Dest" in note:
            page = reader.get_page_number(note["/Dest"][0].get_object())
            within += 0 <= page < len(reader.pages)
        else:
            elsewhere.append(note["/A"]["/URI"])
    assert within > 50 * len(names) / 2
    assert [url for url in elsewhere if not url.startswith("https://")] == []


def test_solutions_stand_at_the_end_of_their_chapter(edition):
    reader, names = edition
    start, *later = [reader.get_destination_page_number(one) for one in top_level(reader)][
        1 + [name for _, name in names].index(CHAPTER) :
    ]
    texts = [sheet.extract_text() for sheet in reader.pages[start : later[0]]]
    exercises = [n for n, text in enumerate(texts) if re.search(r"Exercise \d+\.\d+ \(", text)]
    solutions = [n for n, text in enumerate(texts) if "Solution to" in text]
    assert solutions
    assert solutions[0] >= max(n for n in exercises if n <= solutions[0])
    # The last solution may be continued on one more page.
    assert solutions[-1] >= len(texts) - 2


def test_the_pdf_has_a_language_and_tagged_headings(edition):
    """Each page refers to its elements, which form a single tree."""
    reader, names = edition
    root = reader.trailer["/Root"]
    assert root["/Lang"] == "en-GB"
    assert root["/MarkInfo"]["/Marked"]
    tree = root["/StructTreeRoot"]
    assert len(tree["/K"]) == len(names)
    numbers = tree["/ParentTree"]["/Nums"][::2]
    assert numbers == sorted(set(numbers))
    first = reader.page_labels.index("1")
    assert all(sheet["/StructParents"] in numbers for sheet in reader.pages[first:])
    kinds, waiting = set(), list(tree["/K"])
    while waiting:
        one = waiting.pop().get_object()
        if isinstance(one, dict):
            kinds.add(one.get("/S"))
            below = one["/K"].get_object() if "/K" in one else []
            waiting += below if isinstance(below, list) else [below]
    assert {"/H1", "/H2", "/P", "/Table", "/Figure", "/Link"} <= kinds


def list_fonts(reader):
    return [
        font.get_object()
        for sheet in reader.pages
        for font in sheet["/Resources"].get("/Font", {}).values()
    ]


def test_bold_italic_heads_of_tables_have_a_real_font(chromium_path, site, tmp_path):
    """Chromium draws a face that it has to embolden itself as Type 3."""
    pdf.make_pdf(site, tmp_path / "notation.pdf", [("Part I", "book/notation")])
    fonts = list_fonts(PdfReader(tmp_path / "notation.pdf"))
    assert {font["/Subtype"] for font in fonts} == {"/Type0"}


def test_the_pdf_has_no_type_3_fonts_and_a_bounded_size(edition):
    """Chromium turns variable fonts, CFF outlines and missing bold faces into Type 3 fonts."""
    reader, _ = edition
    fonts = list_fonts(reader)
    assert {font["/Subtype"] for font in fonts} == {"/Type0"}
    names = {font["/BaseFont"].partition("+")[2] for font in fonts}
    assert any(name.startswith("SourceSerif4") for name in names)
    assert any(name.startswith("MathJax_Math") for name in names)
    # 15 MB for 600 pages.
    assert reader.stream.seek(0, io.SEEK_END) / len(reader.pages) < 25_000
