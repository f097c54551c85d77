"""Figures for the dark: each SVG has a second set of colours, as light as they were dark.

A colour keeps its hue. What is dark on paper is light on a dark page, and the lighter a colour, the
darker; the page's own colour becomes that of the dark page. Lightness is that of OKLab, by which
equal steps look equal. An address that ends in ``.svg#dark`` asks for the second set; those that
end in ``#phone`` and ``#phone-dark`` for the stacked view that ``cgmm_phone.py`` adds.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import cgmm_phone
import numpy as np
from docutils import nodes
from sphinx.application import Sphinx

IMAGE = re.compile(
    r'<img (?P<said>[^>]*?src="(?P<way>[^"]*_images/(?P<name>[^"/]+))\.svg"[^>]*?)\s*/?>'
)
# Windows in which figures are stacked; the style sheet has the same width.
NARROW = "screen and (max-width: 40rem)"
LOOK = re.compile(r' style="([^"]*)"')
COLOUR = re.compile(r"#[0-9a-f]{6}\b")
# Lightness on paper and in the dark. The last is the page itself, #fcfcfb and #121212.
LIGHT = [0.0, 0.8, 0.99]
DARK = [0.95, 0.58, 0.18]
# Linear red, green, blue to cones, and their cube roots to OKLab (Ottosson 2020).
CONES = np.array([
    [0.4122214708, 0.5363325363, 0.0514459929],
    [0.2119034982, 0.6806995451, 0.1073969566],
    [0.0883024619, 0.2817188376, 0.6299787005],
])  # fmt: skip
LAB = np.array([
    [0.2104542553, 0.7936177850, -0.0040720468],
    [1.9779984951, -2.4285922050, 0.4505937099],
    [0.0259040371, 0.7827717662, -0.8086757660],
])  # fmt: skip


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx. Images are copied before the build is finished."""
    app.connect("html-page-context", offer_both)
    app.connect("build-finished", give_colours, priority=850)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def offer_both(
    app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None
) -> None:
    """Show each figure in one set of colours on a light page and in the other on a dark one."""
    if app.builder.name != "html" or "body" not in context:
        return
    sources = {name: Path(app.srcdir, path) for path, name in app.builder.images.items()}

    def both(found: re.Match) -> str:
        text = sources[f"{found['name']}.svg"].read_text(encoding="utf8")
        attributes = re.sub(
            r' (?:width|height|class|loading)="[^"]*"', "", " " + found["said"]
        ).strip()
        attributes += f' {size(text)} loading="lazy"'
        sides = [("only-light", "", "phone"), ("only-dark", "#dark", "phone-dark")]
        pair = "".join(_one_side(attributes, text, *side) for side in sides)
        style = cgmm_phone.attributes(text)
        held = f' style="{style}"' if style else ""
        return f'<span class="cgmm-pair"{held}>{pair}</span>'

    context["body"] = IMAGE.sub(both, context["body"])


def _one_side(attributes: str, text: str, look: str, fragment: str, on_phone: str) -> str:
    """Return a figure in one set of colours, with its stacked view for narrow windows."""
    image = f'<img class="{look}" {attributes.replace(".svg", f".svg{fragment}")} />'
    if cgmm_phone.stack(text) is None:
        return image
    source = re.search(r'src="([^"]*)"', attributes)[1]
    narrow = f'<source media="{NARROW}" srcset="{source}#{on_phone}" />'
    return f"<picture>{narrow}{image}</picture>"


def give_colours(app: Sphinx, exception: Exception | None) -> None:
    """Write both sets into each figure."""
    if exception is not None or app.builder.name != "html":
        return
    for path in Path(app.outdir, "_images").glob("*.svg"):
        text = cgmm_phone.with_stack(path.read_text(encoding="utf8"))
        path.write_text(with_both(text), encoding="utf8")


def with_both(text: str) -> str:
    """Return an SVG with styles as classes, and with other colours when its root is the target."""
    if ' id="dark"' in text:
        return text
    looks = {look: f"l{n}" for n, look in enumerate(dict.fromkeys(LOOK.findall(text)))}
    colours = {
        one: f"--c{n}" for n, one in enumerate(dict.fromkeys(COLOUR.findall(" ".join(looks))))
    }
    # As inherited properties colours reach the marks too, which are drawn where they are used.
    light = ";".join(f"{name}:{colour}" for colour, name in colours.items())
    night = ";".join(f"{name}:{dark(colour)}" for colour, name in colours.items())
    rules = [f":root{{{light}}}", f":root:target,#phone-dark:target~*{{{night}}}"]
    for look, name in looks.items():
        rules.append(f".{name}{{{COLOUR.sub(lambda found: f'var({colours[found[0]]})', look)}}}")
    text = LOOK.sub(lambda found: f' class="{looks[found[1]]}"', text)
    head, tail = text.replace("<svg", '<svg id="dark"', 1).split(">", 1)
    tail = re.sub(r"\n\s*", "\n", tail)
    return f"{head}><style>{''.join(rules)}</style>{tail}"


def size(text: str) -> str:
    """Return width and height as attributes, in pixels of which 96 are an inch."""
    points = [float(re.search(rf' {name}="([\d.]+)pt"', text)[1]) for name in ("width", "height")]
    return 'width="{:.0f}" height="{:.0f}"'.format(*(4 / 3 * one for one in points))


@cache
def dark(colour: str) -> str:
    """Return the colour of the same hue for a dark page: dark becomes light."""
    srgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    lightness, *hue = LAB @ np.cbrt(CONES @ linear)
    turned = np.array([np.interp(lightness, LIGHT, DARK), *hue])
    linear = np.clip(np.linalg.solve(CONES, np.linalg.solve(LAB, turned) ** 3), 0, 1)
    srgb = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return "#" + "".join(f"{round(255 * one):02x}" for one in srgb)
