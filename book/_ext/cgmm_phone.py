"""Figures for a telephone: panels side by side get a second view in which they stand stacked.

The view is part of the same SVG, so it costs a few hundred bytes: ``figure.svg#phone`` moves panels
and shows another part of the plane, ``figure.svg#phone-dark`` has the colours for the dark as well.
A panel too wide for the telephone is narrowed by ``cgmm_narrow.py``. A figure for which neither is
possible keeps the width at which its letters can be read, and scrolls. ``cgmm_dark.py`` calls this
module when it writes pages and figures.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, partial
from itertools import groupby
from typing import NamedTuple
from xml.etree import ElementTree

import cgmm_narrow
import numpy as np
from cgmm_narrow import LINK, SVG, Box, Narrowed

# The column of a telephone 390 pixels wide, and the smallest letters on it, both in pixels.
COLUMN = 358
SMALLEST = 11
# The space around a panel, in points.
PAD = 4
STEP = re.compile(r"(translate|rotate|scale)\(([^)]*)\)")
NUMBER = re.compile(r"-?[\d.]+")


class Part(NamedTuple):
    """A panel, with the axis of a neighbour that it needs at the left where it begins a row."""

    name: str
    box: Box
    ground: Box
    """Its axes without numbers and titles."""
    axis: str = ""
    """Name of the neighbour's axis, "" if the panel has its own."""
    shift: float = 0.0
    """Distance by which that axis is moved to the right, in points."""
    left: float = np.inf
    """Left end of the panel together with that axis, in points."""
    narrowed: Narrowed | None = None


class Stack(NamedTuple):
    """Size of a figure's view on a telephone, and what is changed for it.

    These are the moves of its panels, ``(panel, axis, shift)`` of copied axes, and narrowed panels.
    """

    width: float
    height: float
    moves: dict[str, tuple[float, float]]
    axes: list[tuple[str, str, float]]
    narrowed: dict[str, Narrowed]


# ---------------------------------------------------------------------------- reading a figure


def matrix(element: ElementTree.Element) -> np.ndarray:
    """Return the 3 x 3 matrix of an element's transform and place."""
    result = np.eye(3)
    for name, numbers in STEP.findall(element.get("transform", "")):
        a, *more = [float(one) for one in NUMBER.findall(numbers)]
        b = more[0] if more else (a if name == "scale" else 0.0)
        step = np.eye(3)
        if name == "translate":
            step[:2, 2] = a, b
        elif name == "scale":
            step[0, 0], step[1, 1] = a, b
        else:
            turn = np.deg2rad(a)
            step[:2, :2] = [[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]
        result = result @ step
    if element.tag == f"{SVG}use":
        step = np.eye(3)
        step[:2, 2] = float(element.get("x", 0)), float(element.get("y", 0))
        result = result @ step
    return result


def corners(path: ElementTree.Element) -> np.ndarray:
    """Return the corners of the rectangle around a path, or of the rectangle itself."""
    if path.tag == f"{SVG}rect":
        x, y, width, height = (float(path.get(one)) for one in ("x", "y", "width", "height"))
        ends = np.array([[x, y], [x + width, y + height]])
    else:
        numbers = np.array(NUMBER.findall(path.get("d", "")), dtype=float).reshape(-1, 2)
        if not len(numbers):
            return np.empty((0, 3))
        ends = np.array([numbers.min(axis=0), numbers.max(axis=0)])
    (a, b), (c, d) = ends
    return np.array([[a, b, 1], [a, d, 1], [c, b, 1], [c, d, 1]])


def points(element: ElementTree.Element, known: dict, around: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the corners of everything that is drawn; clipped parts count as their clip."""
    if element.tag == f"{SVG}defs":
        return
    if clip := element.get("clip-path"):
        yield corners(known[clip[5:-1]][0]) @ around.T
        return
    here = around @ matrix(element)
    if element.tag == f"{SVG}use":
        shape = known[element.get(LINK)[1:]]
        yield corners(shape) @ (here @ matrix(shape)).T
    elif element.tag == f"{SVG}path":
        yield corners(element) @ here.T
    for child in element:
        yield from points(child, known, here)


def box_of(element: ElementTree.Element, known: dict) -> Box | None:
    """Return the rectangle around everything that an element draws."""
    found = [one for one in points(element, known, np.eye(3)) if len(one)]
    if not found:
        return None
    all_ = np.concatenate(found)[:, :2]
    return Box(*all_.min(axis=0), *all_.max(axis=0))


def parts_of(root: ElementTree.Element) -> list[Part]:
    """Return axes, legends and texts of the figure, from left to right: all but the ground."""
    figure = root.find(f"{SVG}g[@id='figure_1']")
    known = {one.get("id"): one for one in root.iter() if one.get("id")}
    groups = [] if figure is None else [one for one in figure if one.get("id") != "patch_1"]
    drawn = [(one, box) for one in groups if (box := box_of(one, known))]
    grounds = {one.get("id"): ground_of(one, known) for one, _ in drawn}
    donors = [
        (grounds[one.get("id")], axis) for one, _ in drawn if has_letters(axis := y_axis(one))
    ]
    parts = []
    for one, box in drawn:
        name, ground, mine = one.get("id"), grounds.get(one.get("id")), y_axis(one)
        level = [one for one in donors if ground and one[0] and is_level(one[0], ground)]
        if mine is None or has_letters(mine) or not level:
            parts.append(Part(name, box, ground or box))
            continue
        its_ground, axis = level[0]
        shift = ground.left - its_ground.left
        left = box_of(axis, known).left + shift
        parts.append(Part(name, box, ground, axis.get("id"), shift, left))
    return parts


def ground_of(part: ElementTree.Element, known: dict) -> Box | None:
    """Return the rectangle of a panel's axes, to which what it draws is clipped."""
    clipped = [one for one in part.iter() if one.get("clip-path")]
    return box_of(clipped[0] if clipped else part, known)


def y_axis(part: ElementTree.Element) -> ElementTree.Element | None:
    """Return the vertical axis of a panel, the second of its two."""
    found = [one for one in part if one.get("id", "").startswith("matplotlib.axis_")]
    return found[1] if len(found) == 2 else None


def has_letters(axis: ElementTree.Element | None) -> bool:
    """Return True if an axis has numbers or a name."""
    return axis is not None and any(one.get("id", "").startswith("text_") for one in axis.iter())


def is_level(one: Box, other: Box) -> bool:
    """Return True if two panels stand side by side and are equally high."""
    return abs(one.top - other.top) < 0.1 and abs(one.bottom - other.bottom) < 0.1


def smallest_letters(text: str) -> float | None:
    """Return the size of the smallest letters in points; None if there are none."""
    sizes = [100 * float(one) for one in re.findall(r"scale\((0\.\d+) -0\.\d+\)", text)]
    return min(sizes, default=None)


# ---------------------------------------------------------------------------- stacking


@cache
def stack(text: str) -> Stack | None:
    """Return how the panels of a figure are stacked; None if they need not or cannot be."""
    letters = smallest_letters(text)
    if letters is None or 'id="figure_1"' not in text:
        return None
    widest = COLUMN * letters / SMALLEST
    # Comments have the values of ticks.
    keep_comments = ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))
    root = ElementTree.fromstring(text, parser=keep_comments)
    if float(root.get("viewBox").split()[2]) <= widest:
        return None
    parts = parts_of(root)
    columns = columns_of(parts) if parts else []
    known = {one.get("id"): one for one in root.iter() if one.get("id")}
    rows = rows_of(narrow_columns(columns, known, widest), widest)
    return place(rows) if rows else None


def columns_of(parts: list[Part]) -> list[list[Part]]:
    """Return the columns in the order in which they are stacked.

    Panels of one height are read row by row, so each is a column of its own; a panel with a lower
    one below it, which belongs to it, stays on top of that.
    """
    heights = [part.ground.bottom - part.ground.top for part in parts]
    bands = cut(parts, "top", "bottom") if max(heights) < 1.05 * min(heights) else [parts]
    return [column for band in bands for column in cut(band, "left", "right")]


def cut(parts: list[Part], start: str, end: str) -> list[list[Part]]:
    """Return groups of parts, in order, between which a straight line can be drawn."""
    groups: list[list[Part]] = []
    last = -np.inf
    for part in sorted(parts, key=lambda part: getattr(part.box, start)):
        if getattr(part.box, start) > last - 1:
            groups.append([])
        groups[-1].append(part)
        last = max(last, getattr(part.box, end))
    return groups


def narrow_columns(columns: list[list[Part]], known: dict, widest: float) -> list[list[Part]]:
    """Return the columns, with the panels of those narrowed that have no room and can be."""
    wide = [
        part for column in columns for part in column
        if width_of([column]) > widest and not any(one.axis for one in column)
    ]  # fmt: skip
    replaced: dict[str, Part] = {}
    for _, alike in groupby(wide, key=lambda part: np.round(part.ground[::2]).tolist()):
        parts = {part.name: part for part in alike}
        grounds = {name: part.ground for name, part in parts.items()}
        found = cgmm_narrow.narrow(grounds, widest - 2 * PAD, known, partial(box_of, known=known))
        for name, (narrowed, box, ground) in (found or {}).items():
            replaced[name] = parts[name]._replace(box=box, ground=ground, narrowed=narrowed)
    return [
        [replaced[part.name] for part in column]
        if all(part.name in replaced for part in column) else column
        for column in columns
    ]  # fmt: skip


def rows_of(columns: list[list[Part]], widest: float) -> list[list[list[Part]]]:
    """Return as many columns side by side as have room; nothing if one alone has none."""
    rows: list[list[list[Part]]] = []
    for column in columns:
        if rows and width_of([*rows[-1], column]) <= widest:
            rows[-1].append(column)
        elif width_of([column]) <= widest:
            rows.append([column])
        else:
            return []
    return rows


def shifts_of(row: list[list[Part]]) -> list[float]:
    """Return how far each column is moved to the right so that they stand side by side."""
    shifts, x = [], float(PAD)
    for n, column in enumerate(row):
        # The first column shows its own axis, or that of a neighbour.
        left = min(part.box.left if n else min(part.box.left, part.left) for part in column)
        shifts.append(x - left)
        x = max(part.box.right for part in column) + shifts[-1] + 2 * PAD
    return shifts


def width_of(row: list[list[Part]]) -> float:
    """Return the width of a row with the space around it."""
    return max(part.box.right for part in row[-1]) + shifts_of(row)[-1] + PAD


def place(rows: list[list[list[Part]]]) -> Stack:
    """Put the rows one below the other; in a row the axes begin at one height."""
    moves, y = {}, float(PAD)
    for row in rows:
        tops = [min(column, key=lambda part: part.ground.top).ground.top for column in row]
        above = max(
            top - min(part.box.top for part in column)
            for top, column in zip(tops, row, strict=True)
        )
        for dx, top, column in zip(shifts_of(row), tops, row, strict=True):
            moves |= {part.name: (dx, y + above - top) for part in column}
        below = max(
            part.box.bottom - top for top, column in zip(tops, row, strict=True) for part in column
        )
        y += above + below + 3 * PAD
    width = max(width_of(row) for row in rows)
    axes = [(part.name, part.axis, part.shift) for row in rows for part in row[0] if part.axis]
    narrowed = {
        part.name: part.narrowed
        for row in rows
        for column in row
        for part in column
        if part.narrowed
    }
    return Stack(round(width, 1), round(y - 2 * PAD, 1), moves, axes, narrowed)


def with_stack(text: str) -> str:
    """Return an SVG with the two stacked views, if its panels can be stacked."""
    found = stack(text)
    if found is None or "<view" in text:
        return text
    rules = [".y{display:none}view:target~* .y,view:target~.y{display:inline}"] * bool(found.axes)
    for n, (name, (dx, dy)) in enumerate(found.moves.items()):
        text = text.replace(f'<g id="{name}">', f'<g id="{name}" class="m{n}">', 1)
        scales = found.narrowed[name].scales if name in found.narrowed else None
        scale = f" scale({scales[0]:.4f},{scales[1]:.4f})" if scales else ""
        move = f"{{transform:translate({dx:.1f}px,{dy:.1f}px){scale}}}"
        rules.append(f"view:target~* .m{n},view:target~.m{n}{move}")
    if found.narrowed:
        numbers = {name: f"m{n}" for n, name in enumerate(found.moves)}
        panels = {numbers[name]: panel for name, panel in found.narrowed.items()}
        text, more = cgmm_narrow.write(text, panels)
        rules += more
    for name, axis, shift in found.axes:
        # A group without a class would be taken apart.
        text = text.replace(f'<g id="{axis}">', f'<g id="{axis}" class="a">', 1)
        copy = f'<use xlink:href="#{axis}" transform="translate({shift:.2f} 0)" class="y"/>'
        text = re.sub(rf'(<g id="{name}" [^>]*>)', rf"\1{copy}", text, count=1)
    size = f'viewBox="0 0 {found.width} {found.height}"'
    views = f'<view id="phone" {size}/><view id="phone-dark" {size}/>'
    head, tail = text.split(">", 1)
    return f"{head}><style>{''.join(rules)}</style>{views}{tail}"


def attributes(text: str) -> str:
    """Return what the style sheet needs to know of a figure on a telephone, as a style."""
    if found := stack(text):
        return f"--cgmm-stack: {found.width} / {found.height}"
    letters = smallest_letters(text)
    width = re.search(r'viewBox="0 0 ([\d.]+)', text)
    if letters is None or width is None:
        return ""
    needed = float(width[1]) * SMALLEST / letters
    return f"--cgmm-least: {needed:.0f}px" if needed > COLUMN else ""
