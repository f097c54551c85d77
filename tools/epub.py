"""The whole book as an EPUB: ``python tools/epub.py [--site DIR] [--out FILE]``.

The same pages as the paper edition, and laid out by the same book/_static/paper.js: folds are open,
solutions stand at the end of their chapters, code that only draws is left out. Formulas become the
MathML that MathJax writes beside each of them, in the lines of a narrow page; live figures are
pictures of themselves.
"""

from __future__ import annotations

import argparse
import io
import re
import tempfile
import zipfile
from dataclasses import dataclass
from hashlib import sha256
from html import escape, unescape
from pathlib import Path
from urllib.parse import unquote, urlparse

import epub_parts
import pdf_pages
from editions import Address, EditedPage, address, names_by_part, offer, open_page
from PIL import Image
from playwright.sync_api import Page
from pygments.formatters import HtmlFormatter
from typeset import browser_page

HERE = Path(__file__).parent
# Formulas are broken for a column of this width, a small tablet's.
COLUMN = "html .bd-article-container { width: 520px !important; max-width: 520px !important; }"
# The same sources make the same file.
MODIFIED = "2026-01-01T00:00:00Z"
LINK = re.compile(r'<a\b(?P<said>[^>]*?) href="(?P<url>[^"]*)"(?P<more>[^>]*)>')
PICTURE = re.compile(r'(?<= src=")file:[^"]*(?=")')
LIVE = ".bd-article .cgmm-live-stage"

Images = dict[str, bytes]


@dataclass(frozen=True)
class Chapter(EditedPage):
    """With the element that holds its text."""

    body: str

    @property
    def file(self) -> str:
        return f"{Path(self.name).name}.xhtml"

    @property
    def ids(self) -> set[str]:
        return set(re.findall(r' id="([^"]+)"', self.body))


# ------------------------------------------------------------------------------- reading


def read_chapter(page: Page, site: Path, part: str, name: str, images: Images) -> Chapter:
    """Lay a page out for paper, and take from it what a book has."""
    sections = open_page(page, site, name)
    page.add_style_tag(content=COLUMN)
    for stage in page.locator(LIVE).all():
        still = keep(stage.screenshot(), images)
        stage.evaluate("(stage, name) => { stage.dataset.still = name; }", still)
    page.evaluate("layForPaper()")
    body = page.evaluate((HERE / "epub_page.js").read_text(encoding="utf8"))
    body = PICTURE.sub(lambda found: f"images/{copy_image(found[0], images)}", body)
    return Chapter(name, part, sections, body)


def copy_image(url: str, images: Images) -> str:
    """Keep an image of the site under a name of its own; a frame of an explorer becomes a PNG."""
    path = Path(unquote(urlparse(unescape(url)).path))
    if path.suffix == ".svg":
        images[path.name] = in_its_colours(path.read_text(encoding="utf8")).encode()
        return path.name
    if path.suffix == ".png":
        images[path.name] = path.read_bytes()
        return path.name
    content = io.BytesIO()
    with Image.open(path) as image:
        image.convert("RGB").quantize(256).save(content, "PNG", optimize=True)
    return keep(content.getvalue(), images)


def in_its_colours(text: str) -> str:
    """An SVG with colours in the place of their names and links as of old, for every reader."""
    colours = dict(re.findall(r"(--c\d+):(#\w+)", text.partition(":root:target")[0]))
    text = re.sub(r"var\((--c\d+)\)", lambda found: colours[found[1]], text)
    return text.replace(' href="#', ' xlink:href="#')


def keep(content: bytes, images: Images) -> str:
    """Keep a picture that has no name."""
    name = f"{sha256(content).hexdigest()[:20]}.png"
    images[name] = content
    return name


def cover(page: Page, folder: Path) -> bytes:
    """A picture of the paper edition's cover."""
    source = folder / "cover.html"
    front = pdf_pages.cover()
    source.write_text(pdf_pages.PAGE.format(body=front), encoding="utf8")
    page.goto(source.as_uri())
    return page.locator(".cover").screenshot()


# ------------------------------------------------------------------------------- linking


def link(chapter: Chapter, known: dict[str, Chapter], site: Path) -> str:
    """The body of a chapter with links into the EPUB or to the web, and no others."""

    def changed(found: re.Match) -> str:
        target = address(unescape(found["url"]), site)
        href = target if isinstance(target, str) else place(target, known)
        if not href or not re.match(r"https?:|\w+\.xhtml", href):
            return f"<a{found['said']}{found['more']}>"
        return f'<a{found["said"]} href="{escape(href)}"{found["more"]}>'

    return LINK.sub(changed, chapter.body)


def place(target: Address, known: dict[str, Chapter]) -> str:
    """Return the place of an address in the EPUB, or nothing if the page is not in it."""
    name, id = target
    if name not in known:
        return ""
    return known[name].file + (f"#{id}" if id in known[name].ids else "")


def contents(chapters: list[Chapter]) -> str:
    """The table of contents: parts, chapters, their sections."""
    parts: dict[str, list[str]] = {}
    for chapter in chapters:
        (_, title), *sections = chapter.sections
        lines = "".join(
            f'<li><a href="{chapter.file}#{id}">{escape(section)}</a></li>'
            for id, section in sections
            if id in chapter.ids
        )
        below = f"<ol>{lines}</ol>" if lines else ""
        parts.setdefault(chapter.part, []).append(
            f'<li><a href="{chapter.file}">{escape(title)}</a>{below}</li>'
        )
    lines = "\n".join(
        f"<li><span>{escape(part)}</span><ol>{''.join(items)}</ol></li>"
        for part, items in parts.items()
    )
    return f'<nav epub:type="toc"><h1>Contents</h1><ol>\n{lines}\n</ol></nav>'


# ------------------------------------------------------------------------------- writing


def files(chapters: list[Chapter], images: Images, site: Path) -> dict[str, str | bytes]:
    """The content of the EPUB by file name."""
    known = {chapter.name: chapter for chapter in chapters}
    colours = HtmlFormatter(style="a11y-high-contrast-light").get_style_defs(".highlight")
    style = (HERE / "epub_page.css").read_text(encoding="utf8")
    found: dict[str, str | bytes] = {"style.css": style + colours}
    found["nav.xhtml"] = epub_parts.PAGE.format(title="Contents", body=contents(chapters))
    for chapter in chapters:
        title, body = escape(chapter.sections[0][1]), link(chapter, known, site)
        found[chapter.file] = epub_parts.PAGE.format(title=title, body=body)
    return found | {f"images/{name}": content for name, content in sorted(images.items())}


def package(chapters: list[Chapter], found: dict[str, str | bytes]) -> str:
    """The list of everything, and the order in which it is read."""
    items = []
    for n, (name, content) in enumerate(found.items()):
        kind = {"png": "image/png", "svg": "image/svg+xml"}.get(name.split(".")[-1])
        if name in ("nav.xhtml", "style.css", "images/cover.png"):
            continue
        formulas = isinstance(content, str) and "<math" in content
        items.append(
            epub_parts.ITEM.format(
                id=f"item-{n}", href=name, kind=kind or "application/xhtml+xml",
                properties=' properties="mathml"' if formulas else "",
            )
        )  # fmt: skip
    order = {chapter.file for chapter in chapters}
    spine = [f'<itemref idref="item-{n}"/>' for n, name in enumerate(found) if name in order]
    return epub_parts.PACKAGE.format(
        identifier="urn:cgmm:book", title=pdf_pages.TITLE, author=pdf_pages.AUTHOR,
        modified=MODIFIED, items="\n".join(items), spine="\n".join(spine),
    )  # fmt: skip


def write(found: dict[str, str | bytes], listing: str, out: Path) -> None:
    """One archive; its type comes first, and is not compressed."""
    parts = {"META-INF/container.xml": epub_parts.CONTAINER, "book/package.opf": listing}
    parts |= {f"book/{name}": content for name, content in found.items()}
    out.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(zipfile.ZipInfo("mimetype"), "application/epub+zip")
        for name, content in parts.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED, 9)


def make(site: Path, out: Path, names: list[tuple[str, str]] | None = None) -> list[Chapter]:
    """Write the EPUB of a built book."""
    site, images = site.resolve(), Images()
    with tempfile.TemporaryDirectory() as folder, browser_page(800, 1100, scale=2) as page:
        images["cover.png"] = cover(page, Path(folder))
        chapters = [
            read_chapter(page, site, part, name, images) for part, name in names or names_by_part()
        ]
    found = files(chapters, images, site)
    write(found, package(chapters, found), out)
    return chapters


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--site", type=Path, default=Path("_build/html"))
    parser.add_argument("--out", type=Path, default=Path("_build/html/cgmm.epub"))
    options = parser.parse_args()
    chapters = make(options.site, options.out)
    offer(options.site)
    megabytes = options.out.stat().st_size / 1e6
    print(f"{options.out}: {len(chapters)} pages of the book, {megabytes:.1f} MB")


if __name__ == "__main__":
    main()
