"""Draw charts narrower for a telephone: the plane shrinks, letters and marks keep their size.

A chart whose panel is wider than the telephone's column is scaled sideways. A panel with equal
units on both axes, in which a circle has to stay round, is scaled in both directions. Numbers,
names, legends and marks are scaled back at their places by rules of the style sheet inside the SVG.
``cgmm_phone.py`` calls this module for each column of panels that has no room.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np

# Scales are tried in steps from the largest that has room down to this one.
LEAST_SCALE = 0.36
STEP = 0.02
# The space between two texts, and the distance at which a text belongs to an edge, in points.
GAP = 2
NEAR = 9
# A wider shape that is drawn at a place is an area and no mark.
WIDEST_MARK = 30
SVG = "{http://www.w3.org/2000/svg}"
LINK = "{http://www.w3.org/1999/xlink}href"
# The share of a text's width at which it is held while the plane shrinks.
HOLDS = {"start": 0.0, "middle": 0.5, "end": 1.0}


class Box(NamedTuple):
    """A rectangle in points."""

    left: float
    top: float
    right: float
    bottom: float


class Narrowed(NamedTuple):
    """Scales of a panel on a telephone, moves of its texts, and its marks."""

    scales: tuple[float, float]
    """Scales sideways and upright; the second is 1 unless units are equal."""
    moves: dict[str, tuple[float, float] | None]
    """``{"text_3": (20.5, 0.0)}``: the move of each text within the panel; None hides it."""
    marks: list[str]
    """Names of the shapes that are drawn as marks."""


class Text(NamedTuple):
    """A text or legend, the tick to which it belongs, and the end at which a mark stands."""

    name: str
    box: Box
    tick: str = ""
    beside: str = ""


class Panel(NamedTuple):
    """A panel as it was drawn: its axes, its texts, and the names of its marks."""

    ground: Box
    texts: list[Text]
    marks: list[str]


def narrow(
    grounds: dict[str, Box], widest: float, known: dict[str, ElementTree.Element],
    box_of: Callable[[ElementTree.Element], Box | None],
) -> dict[str, tuple[Narrowed, Box, Box]] | None:  # fmt: skip
    """Return how panels below each other are narrowed, all alike; None if they cannot be.

    Parameters
    ----------
    grounds : ``{"axes_1": Box(...)}``, the rectangles of their axes, which are equally wide
    widest : width in points that a panel may have
    known : ``{"text_3": element}``, all named elements of the figure
    box_of : function that returns the rectangle around everything that an element draws

    Returns
    -------
    For each panel how it is drawn, the rectangle around it, and that of its axes.
    """
    elements = [known[name] for name in grounds]
    if any(is_flow_chart(one) for one in elements):
        return None
    is_equal = has_equal_units(elements)
    panels = [read(known[name], ground, known, box_of) for name, ground in grounds.items()]
    width = max(one.right - one.left for one in grounds.values())
    for scale in np.arange(widest / width, LEAST_SCALE, -STEP):
        scales = (float(scale), float(scale) if is_equal else 1.0)
        found = [drawn for one in panels if (drawn := draw(one, scales, widest))]
        if len(found) == len(panels):
            return dict(zip(grounds, found, strict=True))
    return None


def draw(
    panel: Panel, scales: tuple[float, float], widest: float
) -> tuple[Narrowed, Box, Box] | None:
    """Return a panel at these scales; None if its texts have no room."""
    placed = place_texts(panel.texts, panel.ground, scales)
    if placed is None:
        return None
    ground = _scaled(panel.ground, scales)
    boxes = [ground, *(box for box in placed.values() if box)]
    around = Box(*np.min(boxes, axis=0)[:2], *np.max(boxes, axis=0)[2:])
    if _width(around) > widest:
        return None
    moves = {one.name: _move(one.box, placed[one.name], scales) for one in panel.texts}
    return Narrowed(scales, moves, panel.marks), around, ground


def _width(box: Box) -> float:
    return box.right - box.left


# ---------------------------------------------------------------------------- reading a panel


def read(panel: ElementTree.Element, ground: Box, known: dict, box_of: Callable) -> Panel:
    """Return a panel with its axes, texts and marks."""
    places = places_of(panel)
    texts = [one._replace(beside=beside(one.box, places)) for one in texts_of(panel, box_of)]
    return Panel(ground, texts, marks_of(panel, known, box_of))


def texts_of(panel: ElementTree.Element, box_of: Callable) -> list[Text]:
    """Return the texts and legends of a panel, each as one piece."""
    found = []
    for child in panel:
        name = child.get("id", "")
        if name.startswith(("text_", "legend_")):
            if box := box_of(child):
                found.append(Text(name, Box(*box)))
        else:
            is_tick = name.startswith(("xtick_", "ytick_"))
            inner = texts_of(child, box_of)
            found += [one._replace(tick=name) for one in inner] if is_tick else inner
    return found


def places_of(panel: ElementTree.Element) -> list[tuple[float, float]]:
    """Return the positions of the marks in a panel, not counting the ticks of its axes."""
    if panel.get("id", "").startswith("matplotlib.axis"):
        return []
    uses = [one for one in panel if one.tag == f"{SVG}use" and one.get("x")]
    here = [(float(one.get("x")), float(one.get("y"))) for one in uses]
    return here + [place for child in panel for place in places_of(child)]


def beside(box: Box, places: list[tuple[float, float]]) -> str:
    """Return the end of a text at which a mark stands: "start", "end", or "" for neither."""
    level = [x for x, y in places if box.top - GAP < y < box.bottom + GAP]
    gaps = [(box.left - x, "start") for x in level] + [(x - box.right, "end") for x in level]
    gap, end = min((one for one in gaps if one[0] > -GAP), default=(np.inf, ""))
    return end if gap < 2 * NEAR else ""


def marks_of(panel: ElementTree.Element, known: dict, box_of: Callable) -> list[str]:
    """Return the names of shapes that are drawn at a place: markers and ticks, but no areas."""
    used = {one.get(LINK, "#")[1:] for one in panel.iter(f"{SVG}use")}
    shapes = [one for one in sorted(used & known.keys()) if not known[one].get("transform")]
    boxes = {name: box for name in shapes if (box := box_of(known[name]))}
    return [
        name for name, box in boxes.items()
        if box.left - 1 <= 0 <= box.right + 1 and _width(box) <= WIDEST_MARK
    ]  # fmt: skip


def is_flow_chart(panel: ElementTree.Element) -> bool:
    """Return True if a panel without axes has texts in boxes, at whose edges arrows end."""
    texts = [one for one in panel.iter(f"{SVG}g") if one.get("id", "").startswith("text_")]
    are_boxed = any(one.get("id", "").startswith("patch_") for text in texts for one in text)
    return are_boxed and not any(_ticks(panel, axis) for axis in "xy")


def has_equal_units(panels: list[ElementTree.Element]) -> bool:
    """Return True if a unit is as long on both axes of a panel, or if it has no numbers at all."""
    units = [[unit for one in panels if (unit := unit_of(one, axis)) is not None] for axis in "xy"]
    if not all(units):
        return not any(units) and not any(_ticks(one, "y") for one in panels)
    return bool(units[0][0] > 0 and np.isclose(units[0][0], units[1][0], rtol=0.005))


def unit_of(panel: ElementTree.Element, axis: str) -> float | None:
    """Return the length of a unit in points, 0 on a scale that is not linear, None without one.

    Matplotlib leaves the text of each tick as a comment: " -20 ".
    """
    numbers, is_power = [], False
    for tick in _ticks(panel, axis):
        mark = next((one for one in tick.iter(f"{SVG}use") if one.get(axis)), None)
        comment = next((one.text for one in tick.iter(ElementTree.Comment)), "")
        is_power |= "mathdefault" in comment
        try:
            numbers.append((float(mark.get(axis)), float(comment.replace("−", "-"))))
        except (AttributeError, ValueError):
            continue
    if len(numbers) < 2:
        return 0.0 if is_power else None
    lengths = np.abs(np.divide(*np.diff(numbers, axis=0).T))
    return float(lengths.mean()) if np.ptp(lengths) < 0.05 * lengths.mean() else 0.0


def _ticks(panel: ElementTree.Element, axis: str) -> list[ElementTree.Element]:
    return [one for one in panel.iter(f"{SVG}g") if one.get("id", "").startswith(f"{axis}tick_")]


# ---------------------------------------------------------------------------- placing texts


def place_texts(
    texts: list[Text], ground: Box, scales: tuple[float, float]
) -> dict[str, Box | None] | None:
    """Return the new box of each text, None for a hidden one; or None if two would collide."""
    placed = thin_out([one for one in texts if one.tick.startswith("x")], ground, scales)
    if placed is None:
        return None
    known = {one.name: one.box for one in texts}
    for one in texts:
        if one.name in placed:
            continue
        for held in _holds(one, ground):
            box = _held(one.box, held, ground, scales)
            others = [(known[name], other) for name, other in placed.items() if other]
            if not any(_collide((one.box, box), other) for other in others):
                placed[one.name] = box
                break
        else:
            return None
    return placed


def thin_out(
    ticks: list[Text], ground: Box, scales: tuple[float, float]
) -> dict[str, Box | None] | None:
    """Return the boxes of the numbers below an axis: all, or every second or third one."""
    boxes = [_held(one.box, "middle", ground, scales) for one in ticks]
    for step in (1, 2, 3):
        shown = [(ticks[n].box, boxes[n]) for n in range(0, len(ticks), step)]
        if not any(_collide(*pair) for pair in combinations(shown, 2)):
            names = enumerate(one.name for one in ticks)
            return {name: None if n % step else boxes[n] for n, name in names}
    return None


def _holds(text: Text, ground: Box) -> list[str]:
    """Return the points at which a text may be held, the most likely first."""
    if text.beside:
        first = text.beside
    elif text.box.left <= ground.left + NEAR or text.box.right > ground.right:
        first = "start"
    else:
        first = "end" if text.box.right >= ground.right - NEAR else "middle"
    return sorted(HOLDS, key=lambda one: (one != first, one != "middle"))


def _held(text: Box, held: str, ground: Box, scales: tuple[float, float]) -> Box:
    """Return the box of a text that keeps its size while the plane shrinks.

    Beside the axes it keeps its distance from them; within them, the place where it is held.
    """
    new = _scaled(ground, scales)
    width, height = _width(text), text.bottom - text.top
    if text.right <= ground.left + 1:
        left = new.left + text.left - ground.left
    elif text.left >= ground.right - 1:
        left = new.right + text.left - ground.right
    else:
        left = scales[0] * (text.left + HOLDS[held] * width) - HOLDS[held] * width
    if text.bottom <= ground.top + 1:
        top = new.top + text.top - ground.top
    elif text.top >= ground.bottom - 1:
        top = new.bottom + text.top - ground.bottom
    else:
        top = scales[1] * (text.top + height / 2) - height / 2
    return Box(left, top, left + width, top + height)


def _scaled(box: Box, scales: tuple[float, float]) -> Box:
    return Box(*np.multiply(box, scales * 2).tolist())


def _move(old: Box, new: Box | None, scales: tuple[float, float]) -> tuple[float, float] | None:
    """Return the move within the panel after which a text, scaled back, is at its new place."""
    if new is None:
        return None
    return (new.left - old.left) / scales[0], (new.top - old.top) / scales[1]


def _collide(one: tuple[Box, Box], other: tuple[Box, Box]) -> bool:
    """Return True if two texts, each given by its old and new box, overlap more than before."""
    gaps = [
        max(a.left - b.right, b.left - a.right, a.top - b.bottom, b.top - a.bottom)
        for a, b in zip(one, other, strict=True)
    ]
    return gaps[1] < min(GAP, gaps[0]) - 0.1


# ---------------------------------------------------------------------------- writing rules


def write(text: str, panels: dict[str, Narrowed]) -> tuple[str, list[str]]:
    """Return the SVG with classes on its texts, and the rules of narrowed panels, by their class.

    Shapes are scaled back where they are defined, by values that marks inherit from their panel.
    """
    back = "scale(var(--s,1),var(--t,1))"
    rules = [
        "path{vector-effect:var(--v,none)}.t>*{--s:1;--t:1}"
        f"view:target~* .t{{transform:translate(var(--x),var(--y,0px)) {back}}}"
        "view:target~* .h{display:none}"
    ]
    shapes = sorted({mark for one in panels.values() for mark in one.marks})
    if shapes:
        rules.append(f"{','.join(f'#{one}' for one in shapes)}{{transform:{back}}}")
    for name, panel in panels.items():
        across, up = (f"{1 / one:.3f}" for one in panel.scales)
        values = f"--s:{across};" + f"--t:{up};" * (panel.scales[1] != 1) + "--v:non-scaling-stroke"
        rules.append(f"view:target~* .{name},view:target~.{name}{{{values}}}")
        for n, (one, move) in enumerate(panel.moves.items()):
            own = f"{name}t{n}"
            look = f"t {own}" if move else "h"
            text = text.replace(f'<g id="{one}">', f'<g id="{one}" class="{look}">', 1)
            if move:
                up = f";--y:{move[1]:.1f}px" * (panel.scales[1] != 1)
                rules.append(f".{own}{{--x:{move[0]:.1f}px{up}}}")
    return text, rules
