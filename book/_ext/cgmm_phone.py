"""Add a view for phones to SVG figures, in which panels are stacked instead of side by side.

The view is part of the same SVG and needs only a few hundred bytes: ``figure.svg#phone`` moves the
panels and shows another part of the drawing, and ``figure.svg#phone-dark`` also selects the dark
colours. ``cgmm_narrow.py`` narrows panels that are too wide for a phone. If a figure can be neither
stacked nor narrowed, it keeps the width at which its text is readable, and the reader has to
scroll. ``cgmm_dark.py`` calls this module when it writes pages and figures.

Each panel has a ``ground``, the rectangle of its axes without tick labels and titles, and a
``box``, the rectangle around everything that it draws.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, partial
from itertools import groupby
from typing import NamedTuple
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import cgmm_narrow
import numpy as np
from cgmm_narrow import LINK, SVG, Box, Narrowed

# Width of the text column on a phone 390 pixels wide, and the smallest readable text, in pixels.
COLUMN = 358
SMALLEST = 11
# Space around a panel, in points.
PAD = 4
# Least width of a phone view, as a share of the largest. Letters of 11 pixels would otherwise grow
# to twice their size, because a view fills the column.
LEAST_SHARE = 0.75
STEP = re.compile(r"(translate|rotate|scale)\(([^)]*)\)")
NUMBER = re.compile(r"-?[\d.]+")


class Part(NamedTuple):
    """A panel, and the y axis of a neighbour that it copies if it begins a row."""

    name: str
    box: Box
    ground: Box
    """Rectangle of its axes without tick labels and titles."""
    axis: str = ""
    """Id of the neighbour's y axis; "" if the panel has its own."""
    shift: float = 0.0
    """Distance by which a copy of that axis is moved to the right, in points."""
    left: float = np.inf
    """Left end of the panel together with the copied axis, in points."""
    narrowed: Narrowed | None = None


class Stack(NamedTuple):
    """The view of a figure on a phone: its size and the changes that it makes.

    ``moves`` are the shifts of panels by id, ``axes`` the (panel, axis, shift) of copied axes, and
    ``narrowed`` the narrowed panels by id.
    """

    width: float
    height: float
    moves: dict[str, tuple[float, float]]
    axes: list[tuple[str, str, float]]
    narrowed: dict[str, Narrowed]


# ---------------------------------------------------------------------------- reading a figure


def matrix(element: Element) -> np.ndarray:
    """Return the (3, 3) matrix of an element's transform and position."""
    result = np.eye(3)
    for name, numbers in STEP.findall(element.get("transform", "")):
        a, *others = [float(one) for one in NUMBER.findall(numbers)]
        b = others[0] if others else (a if name == "scale" else 0.0)
        step = np.eye(3)
        if name == "translate":
            step[:2, 2] = a, b
        elif name == "scale":
            step[0, 0], step[1, 1] = a, b
        else:
            angle = np.deg2rad(a)
            step[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        result = result @ step
    if element.tag == f"{SVG}use":
        step = np.eye(3)
        step[:2, 2] = float(element.get("x", 0)), float(element.get("y", 0))
        result = result @ step
    return result


def corners(path: Element) -> np.ndarray:
    """Return the (4, 3) homogeneous corners of a rectangle or of the rectangle around a path."""
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


def drawn_corners(element: Element, by_id: dict, outer: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the corners of everything that an element draws; clipped parts count as their clip."""
    if element.tag == f"{SVG}defs":
        return
    if clip := element.get("clip-path"):
        yield corners(by_id[clip[5:-1]][0]) @ outer.T
        return
    transform = outer @ matrix(element)
    if element.tag == f"{SVG}use":
        shape = by_id[element.get(LINK)[1:]]
        yield corners(shape) @ (transform @ matrix(shape)).T
    elif element.tag == f"{SVG}path":
        yield corners(element) @ transform.T
    for child in element:
        yield from drawn_corners(child, by_id, transform)


def box_of(element: Element, by_id: dict) -> Box | None:
    """Return the rectangle around everything that an element draws."""
    found = [one for one in drawn_corners(element, by_id, np.eye(3)) if len(one)]
    if not found:
        return None
    all_corners = np.concatenate(found)[:, :2]
    return Box(*all_corners.min(axis=0), *all_corners.max(axis=0))


def find_parts(root: Element) -> list[Part]:
    """Return the axes, legends and texts of a figure, but not its background."""
    figure = root.find(f"{SVG}g[@id='figure_1']")
    by_id = {one.get("id"): one for one in root.iter() if one.get("id")}
    groups = [] if figure is None else [one for one in figure if one.get("id") != "patch_1"]
    drawn = [(one, box) for one in groups if (box := box_of(one, by_id))]
    grounds = {one.get("id"): ground_of(one, by_id) for one, _ in drawn}
    labelled_axes = [
        (grounds[one.get("id")], axis) for one, _ in drawn if has_text(axis := y_axis(one))
    ]
    parts = []
    for one, box in drawn:
        name, ground, own_axis = one.get("id"), grounds.get(one.get("id")), y_axis(one)
        aligned = [
            one for one in labelled_axes if ground and one[0] and are_aligned(one[0], ground)
        ]
        if own_axis is None or has_text(own_axis) or not aligned:
            parts.append(Part(name, box, ground or box))
            continue
        its_ground, axis = aligned[0]
        shift = ground.left - its_ground.left
        left = box_of(axis, by_id).left + shift
        parts.append(Part(name, box, ground, axis.get("id"), shift, left))
    return parts


def ground_of(part: Element, by_id: dict) -> Box | None:
    """Return the rectangle of a panel's axes, to which its curves and marks are clipped."""
    clipped = [one for one in part.iter() if one.get("clip-path")]
    return box_of(clipped[0] if clipped else part, by_id)


def y_axis(part: Element) -> Element | None:
    """Return the y axis of a panel, the second of its two axes; None if it does not have two."""
    found = [one for one in part if one.get("id", "").startswith("matplotlib.axis_")]
    return found[1] if len(found) == 2 else None


def has_text(axis: Element | None) -> bool:
    """Return whether an axis has tick labels or a title."""
    return axis is not None and any(one.get("id", "").startswith("text_") for one in axis.iter())


def are_aligned(one: Box, other: Box) -> bool:
    """Return whether the axes of two panels have the same top and bottom."""
    return abs(one.top - other.top) < 0.1 and abs(one.bottom - other.bottom) < 0.1


def smallest_text(text: str) -> float | None:
    """Return the size of the smallest text of a figure in points; None if it has no text."""
    sizes = [100 * float(one) for one in re.findall(r"scale\((0\.\d+) -0\.\d+\)", text)]
    return min(sizes, default=None)


# ---------------------------------------------------------------------------- stacking


@cache
def stack(text: str) -> Stack | None:
    """Return the phone view of a figure; None if it is unnecessary or impossible."""
    text_size = smallest_text(text)
    if text_size is None or 'id="figure_1"' not in text:
        return None
    max_width = COLUMN * text_size / SMALLEST
    # Keep comments, because they contain the tick labels as text.
    keep_comments = ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))
    root = ElementTree.fromstring(text, parser=keep_comments)
    if float(root.get("viewBox").split()[2]) <= max_width:
        return None
    parts = find_parts(root)
    columns = columns_of(parts) if parts else []
    by_id = {one.get("id"): one for one in root.iter() if one.get("id")}
    rows = rows_of(narrow_columns(columns, by_id, max_width), max_width)
    return place_rows(rows, LEAST_SHARE * max_width) if rows else None


def columns_of(parts: list[Part]) -> list[list[Part]]:
    """Return columns of panels in the order in which they are stacked.

    If all panels have the same height, they are read row by row, so each is a column of its own;
    a legend above or below them is one, too.
    Otherwise panels that are above each other belong together and stay one column.
    """
    axes = [part for part in parts if part.name.startswith("axes")] or parts
    heights = [part.ground.bottom - part.ground.top for part in axes]
    bands = split(parts, "top", "bottom") if max(heights) < 1.05 * min(heights) else [parts]
    return [column for band in bands for column in split(band, "left", "right")]


def split(parts: list[Part], start: str, end: str) -> list[list[Part]]:
    """Split parts into groups, in order, that a straight line separates."""
    groups: list[list[Part]] = []
    last = -np.inf
    for part in sorted(parts, key=lambda part: getattr(part.box, start)):
        if getattr(part.box, start) > last - 1:
            groups.append([])
        groups[-1].append(part)
        last = max(last, getattr(part.box, end))
    return groups


def narrow_columns(columns: list[list[Part]], by_id: dict, max_width: float) -> list[list[Part]]:
    """Return the columns after narrowing panels that are too wide for a phone, where possible."""
    wide = [
        part for column in columns for part in column
        if width_of([column]) > max_width and not any(one.axis for one in column)
    ]  # fmt: skip
    replaced: dict[str, Part] = {}
    for _, same_width in groupby(wide, key=lambda part: np.round(part.ground[::2]).tolist()):
        parts = {part.name: part for part in same_width}
        grounds = {name: part.ground for name, part in parts.items()}
        measure = partial(box_of, by_id=by_id)
        found = cgmm_narrow.narrow(grounds, max_width - 2 * PAD, by_id, measure)
        for name, (narrowed, box, ground) in (found or {}).items():
            replaced[name] = parts[name]._replace(box=box, ground=ground, narrowed=narrowed)
    return [
        [replaced[part.name] for part in column]
        if all(part.name in replaced for part in column) else column
        for column in columns
    ]  # fmt: skip


def rows_of(columns: list[list[Part]], max_width: float) -> list[list[list[Part]]]:
    """Put columns side by side where they fit, equally many in each row but the last.

    Return [] if a single column is too wide.
    """
    if any(width_of([column]) > max_width for column in columns):
        return []
    n_rows = len(_fill_rows(columns, max_width, len(columns)))
    return _fill_rows(columns, max_width, -(-len(columns) // max(n_rows, 1)))


def _fill_rows(
    columns: list[list[Part]], max_width: float, max_columns: int
) -> list[list[list[Part]]]:
    """Fill one row after the other with at most ``max_columns`` columns."""
    rows: list[list[list[Part]]] = []
    for column in columns:
        is_room = rows and len(rows[-1]) < max_columns
        if is_room and width_of([*rows[-1], column]) <= max_width:
            rows[-1].append(column)
        else:
            rows.append([column])
    return rows


def shifts_of(row: list[list[Part]]) -> list[float]:
    """Return the distances by which the columns of a row move to the right to be side by side."""
    shifts, x = [], float(PAD)
    for n, column in enumerate(row):
        # The first column shows its own axis, or that of a neighbour.
        left = min(part.box.left if n else min(part.box.left, part.left) for part in column)
        shifts.append(x - left)
        x = max(part.box.right for part in column) + shifts[-1] + 2 * PAD
    return shifts


def width_of(row: list[list[Part]]) -> float:
    """Return the width of a row of columns with the space around it."""
    return max(part.box.right for part in row[-1]) + shifts_of(row)[-1] + PAD


def place_rows(rows: list[list[list[Part]]], least: float = 0) -> Stack:
    """Place rows of columns below each other, so that the axes of a row have the same top.

    If the view would be narrower than ``least``, put more space around the columns.
    """
    moves, y = {}, float(PAD)
    widest = max(rows, key=width_of)
    space = max(least - width_of(widest), 0) / (len(widest) + 1)
    for row in rows:
        tops = [min(column, key=lambda part: part.ground.top).ground.top for column in row]
        above = max(
            top - min(part.box.top for part in column)
            for top, column in zip(tops, row, strict=True)
        )
        for n, (dx, top, column) in enumerate(zip(shifts_of(row), tops, row, strict=True)):
            right = dx + (n + 1) * space
            moves |= {part.name: (right, y + above - top) for part in column}
        below = max(
            part.box.bottom - top for top, column in zip(tops, row, strict=True) for part in column
        )
        y += above + below + 3 * PAD
    width = max(width_of(widest), least)
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
    """Return an SVG with a light and a dark phone view, or unchanged if it has no such view."""
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
        text, new_rules = cgmm_narrow.write(text, panels)
        rules += new_rules
    for name, axis, shift in found.axes:
        # cgmm_light.py removes groups without a class, so give it one.
        text = text.replace(f'<g id="{axis}">', f'<g id="{axis}" class="a">', 1)
        copy = f'<use xlink:href="#{axis}" transform="translate({shift:.2f} 0)" class="y"/>'
        text = re.sub(rf'(<g id="{name}" [^>]*>)', rf"\1{copy}", text, count=1)
    size = f'viewBox="0 0 {found.width} {found.height}"'
    views = f'<view id="phone" {size}/><view id="phone-dark" {size}/>'
    head, tail = text.split(">", 1)
    return f"{head}><style>{''.join(rules)}</style>{views}{tail}"


def css_variables(text: str) -> str:
    """Return CSS variables with the size of a figure on a phone; "" if it fits unchanged."""
    if found := stack(text):
        return f"--cgmm-stack: {found.width} / {found.height}"
    text_size = smallest_text(text)
    width = re.search(r'viewBox="0 0 ([\d.]+)', text)
    if text_size is None or width is None:
        return ""
    needed = float(width[1]) * SMALLEST / text_size
    return f"--cgmm-least: {needed:.0f}px" if needed > COLUMN else ""
