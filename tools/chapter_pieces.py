"""Pieces of a chapter that slides take by label: figures, theorems, equations, exercises."""

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
    """Markdown without roles; of a figure its alternative text."""
    picture: bytes = b""


class Chapter(NamedTuple):
    """A chapter, as far as slides need it."""

    number: int
    title: str
    question: str
    pieces: dict[str, Piece]


def names() -> list[str]:
    """All chapters, in order."""
    return sorted(path.stem for path in BOOK.glob("[0-9][0-9]_*.ipynb"))


def read(name: str) -> Chapter:
    """Read a chapter and everything in it that has a label."""
    notebook = nbformat.read(BOOK / f"{name}.ipynb", as_version=4)
    number = int(name[:2])
    text = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    named = _numbers(text, number)
    pieces = {label: piece for cell in notebook.cells if cell.cell_type == "code"
              for label, piece in _figure(cell)}  # fmt: skip
    for label, piece in _directives(text.splitlines()):
        if piece.kind == "math":
            piece = piece._replace(text=numbered(piece.text, named[label]))
        while label in pieces:  # a second guess
            label += "-again"
        pieces[label] = piece._replace(text=_plain(piece.text, named))
    title = re.search(r"^# (.+)$", text, re.MULTILINE)[1]
    question = re.search(r"^\*\*The question\.\*\* (.+?)\n\n", text, re.MULTILINE | re.DOTALL)
    return Chapter(number, title, without_roles(question[1], named), pieces)


def _numbers(text: str, chapter: int) -> dict[str, str]:
    """Equations by their numbers, as the book prints them, and theorems by their titles."""
    labels = re.findall(r"^:label: (eq-\S+)$", text, re.MULTILINE)
    named = {label: f"({chapter}.{n})" for n, label in enumerate(labels, start=1)}
    for kind, title, label in re.findall(
        r"^:{3,}\{(prf:\w+)\} (.*)\n:label: (\S+)$", text, re.MULTILINE
    ):
        named[label] = f"“{title}”" if title else KINDS.get(kind, "")
    return named


def _figure(cell) -> list[tuple[str, Piece]]:
    about = cell.metadata.get("mystnb", {})
    name = about.get("figure", {}).get("name")
    pictures = [picture for output in cell.outputs if (picture := _picture(output.get("data", {})))]
    if not name or not pictures:
        return []
    content = pictures[0]
    return [(name, Piece("figure", "", about["image"]["alt"], content))]


def _picture(data: dict) -> bytes:
    """Return an output as an SVG or a PNG file."""
    if "image/svg+xml" in data:
        return data["image/svg+xml"].encode()
    return base64.b64decode(data.get("image/png", ""))


def _directives(lines: list[str]) -> list[tuple[str, Piece]]:
    found, place = [], 0
    while place < len(lines):
        opening = OPENING.match(lines[place])
        place += 1
        if not opening:
            continue
        fence, kind, title = opening.groups()
        end = next(
            (n for n, line in enumerate(lines[place:], place) if line.strip() == fence), None
        )
        body = lines[place:end]
        options = {}
        while body and (option := OPTION.match(body[0])):
            options[option[1]] = option[2]
            body = body[1:]
        label = "guess" if (kind, title) == ("admonition", "Guess first") else options.get("label")
        if label:
            found.append((label, Piece(kind, title, "\n".join(body).strip())))
    return found


def _plain(text: str, named: dict[str, str]) -> str:
    """A text without links and what is folded away, its formulas with their numbers."""
    within = re.MULTILINE | re.DOTALL
    text = re.sub(r"^(`{3,}|:{3,})\{dropdown\}.*?^\1$", "", text, flags=within)
    formula = r"^```\{math\}\n:label: (\S+)\n(.*?)^```$"
    text = re.sub(formula, lambda found: numbered(found[2], named[found[1]]), text, flags=within)
    return re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", without_roles(text, named))


def numbered(formula: str, number: str) -> str:
    """A formula in a line of its own, with its number."""
    return f"$$\n{formula.strip()} \\tag{{{number.strip('()')}}}\n$$"


def address(picture: bytes) -> str:
    """A picture as an address that holds it."""
    kind = "svg+xml" if is_svg(picture) else "png"
    return f"data:image/{kind};base64,{base64.b64encode(picture).decode()}"


def is_svg(picture: bytes) -> bool:
    """Return whether a picture is drawn with lines."""
    return picture.startswith(b"<svg")


def is_tall(picture: bytes) -> bool:
    """Return whether text is placed beside a picture, not below it."""
    if is_svg(picture):
        _, _, width, height = _view(picture)
    else:
        width, height = Image.open(io.BytesIO(picture)).size
    return width < 1.7 * height


def _view(picture: bytes) -> list[float]:
    """Return the visible part of an SVG: left, top, width and height in points."""
    return [float(one) for one in re.search(rb' viewBox="([^"]+)"', picture)[1].split()]


def part_of(picture: bytes, part: str) -> bytes:
    """A part of a drawing of lines: ``rows 2/3`` is the middle one of three rows, all equal."""
    wanted = re.fullmatch(r"rows (\d+)/(\d+)", part)
    if not wanted or not is_svg(picture):
        raise ValueError(f'{part!r} is no part of a figure; say "rows 2/3", of one that is an SVG.')
    row, many = map(int, wanted.groups())
    _, _, width, height = _view(picture)
    top, tall = (row - 1) * height / many, height / many
    view = f'width="{width:g}pt" height="{tall:g}pt" viewBox="0 {top:g} {width:g} {tall:g}"'
    text = re.sub(r' (?:width|height|viewBox)="[^"]*"', "", picture.decode(), count=3)
    return text.replace("<svg", f"<svg {view}", 1).encode()
