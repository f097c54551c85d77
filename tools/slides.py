"""Slides for every chapter, as HTML and as PDF: ``python tools/slides.py [NAME ...] [--out DIR]``.

``slides/NN_name.md`` is the plan of a chapter's slides. A line ``## Title`` begins a
slide; ``{{ label }}`` on a line of its own stands for what bears this label in the chapter: a
figure, a theorem, an equation, an exercise, or ``guess``, its guess box. Of a figure that is too
tall to be read from the last row ``{{ label rows 1/2 }}`` shows the upper one of two rows. So
slides follow the chapter when it changes, and say in their own words only what is pointed at. A
slide on which anything is cut off, or is too small, is refused.
"""

from __future__ import annotations

import argparse
import html
import re
import sys
from pathlib import Path

import chapter_pieces as chapters
from pages import ROOT
from playwright.sync_api import Page
from typeset import browser_page, markdown, print_pdf, typeset

HERE = ROOT / "slides"

TAKEN = re.compile(r"^\{\{ *(\S+)(?: +(.+?))? *\}\}$", re.MULTILINE)
# Of 720 pixels: a fortieth is what is read from the last row of a lecture hall.
SMALLEST_TEXT = 24
# The figures' own letters have 12 points, 27 pixels where a figure is as wide as in the book; they
# name axes, and may be a fiftieth.
SMALLEST_FIGURE = 0.54
FIGURE_WIDTH = 1152

# Arrows, space and page keys turn the slides; without it one scrolls.
TURN = """<script>
addEventListener("keydown", event => {
  const by = {ArrowRight: 1, PageDown: 1, " ": 1, ArrowLeft: -1, PageUp: -1}[event.key];
  if (!by) return;
  event.preventDefault();
  scrollTo(0, (Math.round(scrollY / innerHeight) + by) * innerHeight);
});
</script>"""

FAULTS = """([smallestText, smallestFigure, width]) => {
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


def plan(name: str) -> list[tuple[str, str]]:
    """Titles and texts of a chapter's slides, as its author wrote them."""
    path = HERE / f"{name}.md"
    if not path.exists():
        raise ValueError(f"there are no slides for {name}; write {path}, as the others are.")
    parts = re.split(r"^## (.+)\n", path.read_text(encoding="utf8"), flags=re.MULTILINE)
    return [(title, text.strip()) for title, text in zip(parts[1::2], parts[2::2], strict=True)]


def slides(name: str) -> list[str]:
    """HTML of a chapter's slides, the title first."""
    chapter = chapters.read(name)
    title = f"<h1>{markdown(chapter.title)}</h1>"
    found = [f'<section class="title">{title}<div class="body">{markdown(chapter.question)}</div>']
    for heading, text in plan(name):
        head = markdown(heading).replace("<p>", "").replace("</p>", "").strip()
        found.append(f'<section><h2>{head}</h2><div class="body">{_body(text, chapter)}</div>')
    feet = [f"<footer>Chapter {chapter.number} · {n} of {len(found)}</footer></section>"
            for n in range(1, len(found) + 1)]  # fmt: skip
    return [slide + foot for slide, foot in zip(found, feet, strict=True)]


def _body(text: str, chapter: chapters.Chapter) -> str:
    """A slide's text, with what it takes from the chapter."""
    parts = TAKEN.split(text)
    out = _words(parts[0])
    for label, part, after in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        if label not in chapter.pieces:
            raise ValueError(f"chapter {chapter.number} has nothing that is labelled {label!r}.")
        out += _taken(chapter.pieces[label], part)
        out += _words(after)
    return out


def _words(text: str) -> str:
    return f"<div>{markdown(text)}</div>" if text.strip() else ""


def _taken(piece: chapters.Piece, part: str | None) -> str:
    if piece.kind == "figure":
        picture = chapters.part_of(piece.picture, part) if part else piece.picture
        alt = html.escape(piece.text, quote=True)
        tall = ' class="tall"' if chapters.is_tall(picture) else ""
        return f'<img{tall} src="{chapters.address(picture)}" alt="{alt}">'
    if piece.kind == "math":
        return markdown(piece.text)
    kind = chapters.KINDS.get(piece.kind)
    head = markdown(f"**{'. '.join(filter(None, [kind, piece.title.lstrip('★ ')]))}**")
    return f'<div class="taken">{head if kind else ""}{markdown(piece.text)}</div>'


def write(page: Page, name: str, out: Path) -> list[str]:
    """Write the slides of a chapter; return what cannot be read on them."""
    style = (HERE / "slides.css").read_text(encoding="utf8")
    title = chapters.read(name).title
    typeset(page, title, style, "\n".join(slides(name)) + TURN, out / f"{name}.html")
    faults = page.evaluate(FAULTS, [SMALLEST_TEXT, SMALLEST_FIGURE, FIGURE_WIDTH])
    print_pdf(page, out / f"{name}.pdf")
    return faults


def main(arguments: list[str] | None = None) -> int:
    """Write what the command line asks for; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all chapters")
    parser.add_argument("--out", type=Path, default=Path("_build/slides"))
    options = parser.parse_args(arguments)
    faults = []
    with browser_page() as page:
        for name in options.names or chapters.names():
            faults += [f"{name}: {fault}" for fault in write(page, name, options.out)]
            print(options.out / f"{name}.pdf")
    print("\n".join(faults), file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
