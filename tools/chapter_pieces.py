"""Read the labelled parts of a chapter: figures, theorems, equations, exercises.

``tools/slides.py`` shows these parts on slides, where it refers to them by their labels.
"""

from __future__ import annotations

import base64
import io
import re
from typing import NamedTuple

import nbformat
from pages import BOOK
from PIL import Image
from typeset import without_roles

OPENING = re.compile(r"^(:{3,}|`{3,})\{([\w:]+)\} ?(.*)$")
OPTION = re.compile(r"^:(\w+): *(.*)$")
KINDS = {"prf:theorem": "Theorem", "prf:lemma": "Lemma", "prf:definition": "Definition",
         "prf:assumption": "Assumption", "prf:algorithm": "Algorithm",
         "exercise": "Exercise"}  # fmt: skip


class Piece(NamedTuple):
    """A part of a chapter that has a label."""

    kind: str
    title: str
    text: str
    """Markdown without roles; for a figure, its alternative text."""
    picture: bytes = b""


class Chapter(NamedTuple):
    """The parts of a chapter that its slides use."""

    number: int
    title: str
    question: str
    pieces: dict[str, Piece]


def chapter_names() -> list[str]:
    """Return the names of all chapters, in order."""
    return sorted(path.stem for path in BOOK.glob("[0-9][0-9]_*.ipynb"))


def read_chapter(name: str) -> Chapter:
    """Read a chapter with all its labelled parts."""
    notebook = nbformat.read(BOOK / f"{name}.ipynb", as_version=4)
    number = int(name[:2])
    text = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    references = _reference_texts(text, number)
    pieces = {label: piece for cell in notebook.cells if cell.cell_type == "code"
              for label, piece in _find_figure(cell)}  # fmt: skip
    for label, piece in _find_directives(text.splitlines()):
        if piece.kind == "math":
            piece = piece._replace(text=format_equation(piece.text, references[label]))
        while label in pieces:  # A chapter may have several guess boxes.
            label += "-again"
        pieces[label] = piece._replace(text=_to_plain_markdown(piece.text, references))
    title = re.search(r"^# (.+)$", text, re.MULTILINE)[1]
    question = re.search(r"^\*\*The question\.\*\* (.+?)\n\n", text, re.MULTILINE | re.DOTALL)
    return Chapter(number, title, without_roles(question[1], references), pieces)


def _reference_texts(text: str, chapter: int) -> dict[str, str]:
    """Return {label: text of a reference}: the numbers of equations and the titles of theorems."""
    labels = re.findall(r"^:label: (eq-\S+)$", text, re.MULTILINE)
    references = {label: f"({chapter}.{n})" for n, label in enumerate(labels, start=1)}
    for kind, title, label in re.findall(
        r"^:{3,}\{(prf:\w+)\} (.*)\n:label: (\S+)$", text, re.MULTILINE
    ):
        references[label] = f"“{title}”" if title else KINDS.get(kind, "")
    return references


def _find_figure(cell) -> list[tuple[str, Piece]]:
    """Return the label and the figure of a code cell, or [] if the cell has no labelled figure."""
    about = cell.metadata.get("mystnb", {})
    name = about.get("figure", {}).get("name")
    pictures = [one for output in cell.outputs if (one := _decode_image(output.get("data", {})))]
    if not name or not pictures:
        return []
    content = pictures[0]
    return [(name, Piece("figure", "", about["image"]["alt"], content))]


def _decode_image(data: dict) -> bytes:
    """Return the bytes of an output's SVG or PNG image, or b"" if it has none."""
    if "image/svg+xml" in data:
        return data["image/svg+xml"].encode()
    return base64.b64decode(data.get("image/png", ""))


def _find_directives(lines: list[str]) -> list[tuple[str, Piece]]:
    """Return (label, piece) of each labelled MyST directive, including nested ones."""
    found, position = [], 0
    while position < len(lines):
        opening = OPENING.match(lines[position])
        position += 1
        if not opening:
            continue
        fence, kind, title = opening.groups()
        end = next(
            (n for n, line in enumerate(lines[position:], position) if line.strip() == fence), None
        )
        body = lines[position:end]
        options = {}
        while body and (option := OPTION.match(body[0])):
            options[option[1]] = option[2]
            body = body[1:]
        label = "guess" if (kind, title) == ("admonition", "Guess first") else options.get("label")
        if label:
            found.append((label, Piece(kind, title, "\n".join(body).strip())))
    return found


def _to_plain_markdown(text: str, references: dict[str, str]) -> str:
    """Replace links by their text, remove dropdowns, and number the equations."""
    within = re.MULTILINE | re.DOTALL
    text = re.sub(r"^(`{3,}|:{3,})\{dropdown\}.*?^\1$", "", text, flags=within)
    formula = r"^```\{math\}\n:label: (\S+)\n(.*?)^```$"
    text = re.sub(formula, lambda m: format_equation(m[2], references[m[1]]), text, flags=within)
    return re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", without_roles(text, references))


def format_equation(formula: str, number: str) -> str:
    """Return a displayed formula with its number."""
    return f"$$\n{formula.strip()} \\tag{{{number.strip('()')}}}\n$$"


def data_url(picture: bytes) -> str:
    """Return a ``data:`` URL that contains a picture."""
    kind = "svg+xml" if is_svg(picture) else "png"
    return f"data:image/{kind};base64,{base64.b64encode(picture).decode()}"


def is_svg(picture: bytes) -> bool:
    """Return whether a picture is an SVG file."""
    return picture.startswith(b"<svg")


def is_tall(picture: bytes) -> bool:
    """Return whether a picture is so tall that a slide shows its text beside it, not below."""
    if is_svg(picture):
        _, _, width, height = _view_box(picture)
    else:
        width, height = Image.open(io.BytesIO(picture)).size
    return width < 1.7 * height


def _view_box(picture: bytes) -> list[float]:
    """Return the view box of an SVG: left, top, width and height in points."""
    return [float(one) for one in re.search(rb' viewBox="([^"]+)"', picture)[1].split()]


def crop_rows(picture: bytes, part: str) -> bytes:
    """Return a part of an SVG: ``rows 2/3`` is the second of three rows of equal height."""
    match = re.fullmatch(r"rows (\d+)/(\d+)", part)
    if not match or not is_svg(picture):
        raise ValueError(f'cannot show {part!r} of a figure; write e.g. "rows 2/3", for an SVG.')
    row, n_rows = map(int, match.groups())
    _, _, width, height = _view_box(picture)
    top, span = (row - 1) * height / n_rows, height / n_rows
    view = f'width="{width:g}pt" height="{span:g}pt" viewBox="0 {top:g} {width:g} {span:g}"'
    text = re.sub(r' (?:width|height|viewBox)="[^"]*"', "", picture.decode(), count=3)
    return text.replace("<svg", f"<svg {view}", 1).encode()
