"""Write slides for chapters as HTML and PDF: ``python tools/slides.py [NAME ...] [--out DIR]``.

``slides/NN_name.md`` describes the slides of a chapter. A line ``## Title`` begins a slide. A line
``{{ label }}`` inserts the part of the chapter that has this label: a figure, a theorem, an
equation, an exercise, or, for ``guess``, its guess box. If a figure is too tall to be read from the
last row of a lecture hall, ``{{ label rows 1/2 }}`` inserts only the upper one of two rows. In this
way slides stay up to date when the chapter changes. A slide with text that is cut off or too small
is reported as a fault.
"""

from __future__ import annotations

import argparse
import base64
import html
import re
import sys
from functools import cache
from pathlib import Path

import chapter_pieces as chapters
from pages import ROOT
from playwright.sync_api import Page
from print_fonts import FACES, instance
from typeset import browser_page, markdown, print_pdf, typeset

HERE = ROOT / "slides"

INSERTION = re.compile(r"^\{\{ *(\S+)(?: +(.+?))? *\}\}$", re.MULTILINE)
# In pixels; a slide is 720 pixels high. Smaller text cannot be read from the last row of a hall.
SMALLEST_TEXT = 24
# Smallest scale of a figure, relative to ``FIGURE_WIDTH``. Text in figures is 27 pixels high at
# scale 1. It names axes, so it may be smaller than other text.
SMALLEST_FIGURE = 0.54
FIGURE_WIDTH = 1152

# With this script, arrow keys, space and page keys change the slide. Without it one has to scroll.
CHANGE_SLIDES = """<script>
addEventListener("keydown", event => {
  const by = {ArrowRight: 1, PageDown: 1, " ": 1, ArrowLeft: -1, PageUp: -1}[event.key];
  if (!by) return;
  event.preventDefault();
  scrollTo(0, (Math.round(scrollY / innerHeight) + by) * innerHeight);
});
</script>"""

FIND_FAULTS = """([smallestText, smallestFigure, width]) => {
  const found = [];
  for (const slide of document.querySelectorAll("section")) {
    const say = text => found.push(slide.querySelector("h1, h2").textContent.trim() + ": " + text);
    const room = slide.getBoundingClientRect();
    const foot = slide.querySelector("footer").getBoundingClientRect();
    for (const part of slide.querySelectorAll(
        "h1, h2, p, li, img, table, mjx-container > svg, code")) {
      if (part.closest("mjx-assistive-mml")) continue;
      const box = part.getBoundingClientRect();
      if (box.right > room.right - 20 || box.left < room.left + 20) say("wider than the slide");
      if (box.bottom > foot.top + 1 && !part.closest("footer")) say("too much on it");
      if (parseFloat(getComputedStyle(part).fontSize) < smallestText) say("small letters");
    }
    for (const figure of slide.querySelectorAll("img")) {
      const scale = figure.getBoundingClientRect().width / width;
      if (scale < smallestFigure) say("a figure at " + scale.toFixed(2) + " of its size");
    }
  }
  return [...new Set(found)];
}"""


def read_plan(name: str) -> list[tuple[str, str]]:
    """Return (title, text) of each slide of a chapter, as written in its file in slides/."""
    path = HERE / f"{name}.md"
    if not path.exists():
        raise ValueError(f"there are no slides for {name}; write {path}, as for other chapters.")
    parts = re.split(r"^## (.+)\n", path.read_text(encoding="utf8"), flags=re.MULTILINE)
    return [(title, text.strip()) for title, text in zip(parts[1::2], parts[2::2], strict=True)]


def build_slides(name: str) -> list[str]:
    """Return HTML of each slide of a chapter; the first one is the title."""
    chapter = chapters.read_chapter(name)
    title = f"<h1>{markdown(chapter.title)}</h1>"
    sections = [
        f'<section class="title">{title}<div class="body">{markdown(chapter.question)}</div>'
    ]
    for heading, text in read_plan(name):
        head = markdown(heading).replace("<p>", "").replace("</p>", "").strip()
        body = _format_slide(text, chapter)
        sections.append(f'<section><h2>{head}</h2><div class="body">{body}</div>')
    feet = [f"<footer>Chapter {chapter.number} · {n} of {len(sections)}</footer></section>"
            for n in range(1, len(sections) + 1)]  # fmt: skip
    return [slide + foot for slide, foot in zip(sections, feet, strict=True)]


def _format_slide(text: str, chapter: chapters.Chapter) -> str:
    """Return HTML of the text of a slide, with the parts of the chapter that it inserts."""
    parts = INSERTION.split(text)
    content = _format_text(parts[0])
    for label, rows, after in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        if label not in chapter.pieces:
            raise ValueError(f"chapter {chapter.number} has no part with the label {label!r}.")
        content += _format_piece(chapter.pieces[label], rows)
        content += _format_text(after)
    return content


def _format_text(text: str) -> str:
    """Return HTML of Markdown text, or "" if it is empty."""
    return f"<div>{markdown(text)}</div>" if text.strip() else ""


def _format_piece(piece: chapters.Piece, rows: str | None) -> str:
    """Return HTML of a labelled part of a chapter, or of some rows of a figure."""
    if piece.kind == "figure":
        picture = chapters.crop_rows(piece.picture, rows) if rows else piece.picture
        alt = html.escape(piece.text, quote=True)
        tall = ' class="tall"' if chapters.is_tall(picture) else ""
        return f'<img{tall} src="{chapters.data_url(picture)}" alt="{alt}">'
    if piece.kind == "math":
        return markdown(piece.text)
    kind = chapters.KINDS.get(piece.kind)
    head = markdown(f"**{'. '.join(filter(None, [kind, piece.title.lstrip('★ ')]))}**")
    return f'<div class="taken">{head if kind else ""}{markdown(piece.text)}</div>'


@cache
def embed_fonts() -> str:
    """Return style rules that hold the fonts of the book, so that slides need no other file."""
    rules = []
    for face in FACES:
        if face.family.startswith("Source Serif") or face.range:
            continue
        for weight in face.weights:
            content = base64.b64encode(instance(face, weight)).decode()
            rules.append(
                f'@font-face {{ font-family: "{face.family}"; font-style: {face.style}; '
                f"font-weight: {weight}; src: url(data:font/woff2;base64,{content}); }}\n"
            )
    return "".join(rules)


def write_slides(page: Page, name: str, folder: Path) -> list[str]:
    """Write the slides of a chapter; return a message for each fault, e.g. small text."""
    style = embed_fonts() + (HERE / "slides.css").read_text(encoding="utf8")
    title = chapters.read_chapter(name).title
    body = "\n".join(build_slides(name)) + CHANGE_SLIDES
    typeset(page, title, style, body, folder / f"{name}.html")
    faults = page.evaluate(FIND_FAULTS, [SMALLEST_TEXT, SMALLEST_FIGURE, FIGURE_WIDTH])
    print_pdf(page, folder / f"{name}.pdf")
    return faults


def main(arguments: list[str] | None = None) -> int:
    """Write the slides of the named chapters; return 1 if a slide has a fault."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all chapters")
    parser.add_argument("--out", type=Path, default=Path("_build/slides"))
    options = parser.parse_args(arguments)
    faults = []
    with browser_page() as page:
        for name in options.names or chapters.chapter_names():
            faults += [f"{name}: {fault}" for fault in write_slides(page, name, options.out)]
            print(options.out / f"{name}.pdf")
    print("\n".join(faults), file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
