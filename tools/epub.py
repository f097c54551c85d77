"""Write the whole book as an EPUB: ``python tools/epub.py [--site DIR] [--out FILE]``.

The EPUB has the same pages as the PDF, laid out by the same script book/_static/paper.js: folded
parts are open, solutions are at the end of their chapters, and code that only draws is left out.
Formulas are taken from the MathML that MathJax writes beside each of them, with line breaks for a
narrow page. Live figures are replaced by screenshots.
"""

from __future__ import annotations

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
from editions import Address, EditedPage, list_pages, open_page, resolve_url, run_tool
from PIL import Image
from playwright.sync_api import Page
from pygments.formatters import HtmlFormatter
from typeset import browser_page

HERE = Path(__file__).parent
# Lines of formulas are broken for a column of this width, which suits a small tablet.
COLUMN = "html .bd-article-container { width: 520px !important; max-width: 520px !important; }"
# The date is fixed, so that the same sources always give the same file.
MODIFIED = "2026-01-01T00:00:00Z"
LINK = re.compile(r'<a\b(?P<before>[^>]*?) href="(?P<url>[^"]*)"(?P<after>[^>]*)>')
PICTURE = re.compile(r'(?<= src=")file:[^"]*(?=")')
LIVE = ".bd-article .cgmm-live-stage"

Images = dict[str, bytes]


@dataclass(frozen=True)
class Chapter(EditedPage):
    """A page of the EPUB; ``body`` is the HTML of its text."""

    body: str

    @property
    def file(self) -> str:
        return f"{Path(self.name).name}.xhtml"

    @property
    def ids(self) -> set[str]:
        return set(re.findall(r' id="([^"]+)"', self.body))


# ------------------------------------------------------------------------------- reading


def read_chapter(page: Page, site: Path, part: str, name: str, images: Images) -> Chapter:
    """Lay a page of the site out for paper, and return its text; images are added to ``images``."""
    sections = open_page(page, site, name)
    page.add_style_tag(content=COLUMN)
    for stage in page.locator(LIVE).all():
        still = add_png(stage.screenshot(), images)
        stage.evaluate("(stage, name) => { stage.dataset.still = name; }", still)
    page.evaluate("layForPaper()")
    body = page.evaluate((HERE / "epub_page.js").read_text(encoding="utf8"))
    body = PICTURE.sub(lambda found: f"images/{copy_image(found[0], images)}", body)
    return Chapter(name, part, sections, body)


def copy_image(url: str, images: Images) -> str:
    """Add an image of the site to ``images``, frames of explorers as PNG; return its name."""
    path = Path(unquote(urlparse(unescape(url)).path))
    if path.suffix == ".svg":
        images[path.name] = make_svg_portable(path.read_text(encoding="utf8")).encode()
        return path.name
    if path.suffix == ".png":
        images[path.name] = path.read_bytes()
        return path.name
    content = io.BytesIO()
    with Image.open(path) as image:
        image.convert("RGB").quantize(256).save(content, "PNG", optimize=True)
    return add_png(content.getvalue(), images)


def make_svg_portable(text: str) -> str:
    """Replace CSS variables and ``href`` in an SVG, because many e-book readers know neither."""
    colours = dict(re.findall(r"(--c\d+):(#\w+)", text.partition(":root:target")[0]))
    text = re.sub(r"var\((--c\d+)\)", lambda found: colours[found[1]], text)
    return text.replace(' href="#', ' xlink:href="#')


def add_png(content: bytes, images: Images) -> str:
    """Add a PNG to ``images`` under a name made of its hash, and return the name."""
    name = f"{sha256(content).hexdigest()[:20]}.png"
    images[name] = content
    return name


def take_cover_picture(page: Page, folder: Path) -> bytes:
    """Return a screenshot of the cover of the PDF."""
    source = folder / "cover.html"
    front = pdf_pages.cover()
    source.write_text(pdf_pages.PAGE.format(body=front), encoding="utf8")
    page.goto(source.as_uri())
    return page.locator(".cover").screenshot()


# ------------------------------------------------------------------------------- linking


def rewrite_links(chapter: Chapter, by_name: dict[str, Chapter], site: Path) -> str:
    """Return the body of a chapter with links inside the EPUB or to the web; remove all others."""

    def rewrite_link(found: re.Match) -> str:
        target = resolve_url(unescape(found["url"]), site)
        href = target if isinstance(target, str) else link_in_epub(target, by_name)
        if not href or not re.match(r"https?:|\w+\.xhtml", href):
            return f"<a{found['before']}{found['after']}>"
        return f'<a{found["before"]} href="{escape(href)}"{found["after"]}>'

    return LINK.sub(rewrite_link, chapter.body)


def link_in_epub(target: Address, by_name: dict[str, Chapter]) -> str:
    """Return the link to an address in the EPUB, or "" if the EPUB does not have the page."""
    name, id = target
    if name not in by_name:
        return ""
    return by_name[name].file + (f"#{id}" if id in by_name[name].ids else "")


def build_contents(chapters: list[Chapter]) -> str:
    """Return HTML of the table of contents: parts, chapters and their sections."""
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


def list_files(chapters: list[Chapter], images: Images, site: Path) -> dict[str, str | bytes]:
    """Return {file name: content} of the EPUB."""
    by_name = {chapter.name: chapter for chapter in chapters}
    colours = HtmlFormatter(style="a11y-high-contrast-light").get_style_defs(".highlight")
    style = (HERE / "epub_page.css").read_text(encoding="utf8")
    found: dict[str, str | bytes] = {"style.css": style + colours}
    found["nav.xhtml"] = epub_parts.PAGE.format(title="Contents", body=build_contents(chapters))
    for chapter in chapters:
        title, body = escape(chapter.sections[0][1]), rewrite_links(chapter, by_name, site)
        found[chapter.file] = epub_parts.PAGE.format(title=title, body=body)
    return found | {f"images/{name}": content for name, content in sorted(images.items())}


def build_package(chapters: list[Chapter], found: dict[str, str | bytes]) -> str:
    """Return the package document: the list of all files, and the reading order."""
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


def write_archive(found: dict[str, str | bytes], listing: str, out: Path) -> None:
    """Write the archive; as EPUB requires, its first entry is the uncompressed media type."""
    parts = {"META-INF/container.xml": epub_parts.CONTAINER, "book/package.opf": listing}
    parts |= {f"book/{name}": content for name, content in found.items()}
    out.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(zipfile.ZipInfo("mimetype"), "application/epub+zip")
        for name, content in parts.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED, 9)


def make_epub(site: Path, out: Path, names: list[tuple[str, str]] | None = None) -> list[Chapter]:
    """Write the EPUB of a built book, and return its pages."""
    site, images = site.resolve(), Images()
    with tempfile.TemporaryDirectory() as folder, browser_page(800, 1100, scale=2) as page:
        images["cover.png"] = take_cover_picture(page, Path(folder))
        chapters = [
            read_chapter(page, site, part, name, images) for part, name in names or list_pages()
        ]
    found = list_files(chapters, images, site)
    write_archive(found, build_package(chapters, found), out)
    return chapters


if __name__ == "__main__":
    run_tool(__doc__, "cgmm.epub", make_epub)
