"""Sphinx extension that adds colours for dark pages to each SVG figure.

Each colour keeps its hue, but its lightness is reversed: dark colours become light and light
colours dark, and the colour of the light page becomes that of the dark page. Lightness is measured
in OKLab, in which equal steps look equal. An address that ends in ``.svg#dark`` selects these
colours; addresses that end in ``#phone`` and ``#phone-dark`` select the stacked view that
``cgmm_phone.py`` adds.
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
    r'<img (?P<attributes>[^>]*?src="(?P<way>[^"]*_images/(?P<name>[^"/]+))\.svg"[^>]*?)\s*/?>'
)
# Media query of windows in which panels are stacked. The style sheet has the same width.
NARROW = "screen and (max-width: 40rem)"
STYLE = re.compile(r' style="([^"]*)"')
COLOUR = re.compile(r"#[0-9a-f]{6}\b")
# Lightness of colours on light pages, and of their counterparts on dark pages. The last pair is the
# page itself, #fcfcfb and #121212.
LIGHTNESS = [0.0, 0.8, 0.99]
DARK_LIGHTNESS = [0.95, 0.58, 0.18]
# Matrices from linear RGB to cone responses, and from their cube roots to OKLab (Ottosson 2020).
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
    """Register with Sphinx; images are copied before the event "build-finished"."""
    app.connect("html-page-context", show_both)
    app.connect("build-finished", add_dark_colours, priority=850)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def show_both(
    app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None
) -> None:
    """Replace each figure by a pair of images, one for light pages and one for dark pages."""
    if app.builder.name != "html" or "body" not in context:
        return
    sources = {name: Path(app.srcdir, path) for path, name in app.builder.images.items()}

    def make_pair(found: re.Match) -> str:
        text = sources[f"{found['name']}.svg"].read_text(encoding="utf8")
        attributes = re.sub(
            r' (?:width|height|class|loading)="[^"]*"', "", " " + found["attributes"]
        ).strip()
        attributes += f' {size_attributes(text)} loading="lazy"'
        variants = [("only-light", "", "phone"), ("only-dark", "#dark", "phone-dark")]
        pair = "".join(_format_image(attributes, text, *one) for one in variants)
        style = cgmm_phone.css_variables(text)
        style_attribute = f' style="{style}"' if style else ""
        return f'<span class="cgmm-pair"{style_attribute}>{pair}</span>'

    context["body"] = IMAGE.sub(make_pair, context["body"])


def _format_image(attributes: str, text: str, theme: str, fragment: str, on_phone: str) -> str:
    """Return the HTML of a figure for light or dark pages, with its stacked view if it has one."""
    image = f'<img class="{theme}" {attributes.replace(".svg", f".svg{fragment}")} />'
    if cgmm_phone.stack(text) is None:
        return image
    source = re.search(r'src="([^"]*)"', attributes)[1]
    narrow = f'<source media="{NARROW}" srcset="{source}#{on_phone}" />'
    return f"<picture>{narrow}{image}</picture>"


def add_dark_colours(app: Sphinx, exception: Exception | None) -> None:
    """Add the dark colours and the stacked view to each figure of the built site."""
    if exception is not None or app.builder.name != "html":
        return
    for path in Path(app.outdir, "_images").glob("*.svg"):
        text = cgmm_phone.with_stack(path.read_text(encoding="utf8"))
        path.write_text(with_dark_colours(text), encoding="utf8")


def with_dark_colours(text: str) -> str:
    """Return an SVG whose styles are CSS classes, with dark colours if ``#dark`` is the target."""
    if ' id="dark"' in text:
        return text
    styles = {one: f"l{n}" for n, one in enumerate(dict.fromkeys(STYLE.findall(text)))}
    colours = {
        one: f"--c{n}" for n, one in enumerate(dict.fromkeys(COLOUR.findall(" ".join(styles))))
    }
    # CSS variables are inherited, so they also reach marks that are drawn by ``<use>``.
    light_rules = ";".join(f"{name}:{colour}" for colour, name in colours.items())
    dark_rules = ";".join(f"{name}:{dark(colour)}" for colour, name in colours.items())
    rules = [f":root{{{light_rules}}}", f":root:target,#phone-dark:target~*{{{dark_rules}}}"]
    for rule, name in styles.items():
        rules.append(f".{name}{{{COLOUR.sub(lambda found: f'var({colours[found[0]]})', rule)}}}")
    text = STYLE.sub(lambda found: f' class="{styles[found[1]]}"', text)
    head, tail = text.replace("<svg", '<svg id="dark"', 1).split(">", 1)
    tail = re.sub(r"\n\s*", "\n", tail)
    return f"{head}><style>{''.join(rules)}</style>{tail}"


def size_attributes(text: str) -> str:
    """Return the attributes width and height of an SVG in pixels, 96 per inch."""
    points = [float(re.search(rf' {name}="([\d.]+)pt"', text)[1]) for name in ("width", "height")]
    return 'width="{:.0f}" height="{:.0f}"'.format(*(4 / 3 * one for one in points))


@cache
def dark(colour: str) -> str:
    """Return the colour of the same hue and reversed lightness for a dark page."""
    srgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    lightness, *hue = LAB @ np.cbrt(CONES @ linear)
    reversed_colour = np.array([np.interp(lightness, LIGHTNESS, DARK_LIGHTNESS), *hue])
    linear = np.clip(np.linalg.solve(CONES, np.linalg.solve(LAB, reversed_colour) ** 3), 0, 1)
    srgb = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return "#" + "".join(f"{round(255 * one):02x}" for one in srgb)
