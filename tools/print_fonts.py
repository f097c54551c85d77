"""Make static fonts for printing from the variable fonts of the site.

Chromium converts variable fonts to Type 3 fonts in a PDF. These are large, and have no hints, so
that small text is unevenly spaced. ``tools/pdf.py`` therefore replaces the variable fonts by static
instances before it prints a page.
"""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import NamedTuple

from fontTools.pens.cu2quPen import Cu2QuPen
from fontTools.pens.ttGlyphPen import TTGlyphPen
from fontTools.ttLib import TTFont, newTable
from fontTools.varLib import instancer
from pages import ROOT
from playwright.sync_api import Page

FONTS = ROOT / "book/_static/fonts"
GREEK = "U+370-3FF"


class Face(NamedTuple):
    """A variable font file, and the weights that the book uses."""

    family: str
    file: str
    weights: tuple[int, ...]
    style: str = "normal"
    range: str = ""


# For text of any other weight, the browser uses the nearest of these weights.
FACES = [
    Face("Source Serif 4", "source-serif-4-latin-wght-normal", (400, 650)),
    Face("Source Serif 4", "source-serif-4-latin-wght-italic", (400, 650), style="italic"),
    Face("Source Serif 4", "source-serif-4-greek-wght-normal", (400,), range=GREEK),
    Face("Source Sans 3", "source-sans-3-latin-wght-normal", (400, 620, 650)),
    Face("Source Sans 3", "source-sans-3-latin-wght-italic", (400, 650), style="italic"),
    Face("Source Sans 3", "source-sans-3-greek-wght-normal", (400, 620), range=GREEK),
    Face("Source Code Pro", "source-code-pro-latin-wght-normal", (400, 650)),
]
RULE = (
    '@font-face {{ font-family: "{family} static"; font-weight: {weight}; font-style: {style}; '
    'src: url("{address}");{range} }}'
)
# MathJax declares the fonts of formulas in a style sheet that it adds to the page.
FORMULA_FONTS = "_static/vendor/mathjax/output/chtml/fonts/woff-v2"
FORMULA_FONT_RULES = """() => [...document.querySelectorAll("#MJX-CHTML-styles")].flatMap(
  style => [...style.sheet.cssRules].filter(one => one instanceof CSSFontFaceRule)
                                    .map(one => one.cssText))"""
# Largest error of a converted outline, in thousandths of the font size. It is invisible in print.
OUTLINE_ERROR = 0.5
# CSS variables by which the style sheet of the site selects its font families.
FAMILY_VARIABLES = """html {
  --cgmm-serif: "Source Serif 4 static", serif;
  --pst-font-family-base: "Source Sans 3 static", sans-serif;
  --pst-font-family-heading: "Source Sans 3 static", sans-serif;
  --pst-font-family-monospace: "Source Code Pro static", monospace;
}"""
LOAD_FONTS = """() => Promise.all([...document.fonts].filter(one => one.family.includes("static"))
  .map(one => one.load())).then(() => document.fonts.ready).then(() => null)"""


def write_instances(folder: Path) -> str:
    """Write the static fonts into a folder; return the style sheet that makes pages use them."""
    rules = []
    for face in FACES:
        for weight in face.weights:
            path = folder / f"{face.file}-{weight}.ttf"
            path.write_bytes(instance(face, weight, flavor=None))
            unicode_range = f" unicode-range: {face.range};" if face.range else ""
            rules.append(
                RULE.format(
                    family=face.family, weight=weight, style=face.style, address=path.as_uri(),
                    range=unicode_range,
                )
            )  # fmt: skip
    return "\n".join([*rules, FAMILY_VARIABLES])


def instance(face: Face, weight: int, flavor: str | None = "woff2") -> bytes:
    """Return a variable font at one of its weights, as the content of a file."""
    font = TTFont(FONTS / f"{face.file}.woff2")
    static = instancer.instantiateVariableFont(font, {"wght": weight})
    static.flavor = flavor
    content = io.BytesIO()
    static.save(content)
    return content.getvalue()


def write_formula_fonts(site: Path, folder: Path) -> None:
    """Write the fonts of formulas with TrueType outlines, because others would become Type 3."""
    for path in (site / FORMULA_FONTS).glob("*.woff"):
        font = TTFont(path)
        if "CFF " in font:
            give_true_type_outlines(font)
        font.flavor = None
        font.save(folder / f"{path.stem}.ttf")


def give_true_type_outlines(font: TTFont) -> None:
    """Replace the cubic outlines of a font by the quadratic ones of TrueType."""
    glyphs, outlines = font.getGlyphSet(), {}
    for name in font.getGlyphOrder():
        pen = TTGlyphPen(glyphs)
        glyphs[name].draw(Cu2QuPen(pen, OUTLINE_ERROR, reverse_direction=True))
        outlines[name] = pen.glyph()
    del font["CFF "]
    font["loca"], font["glyf"] = newTable("loca"), newTable("glyf")
    font["glyf"].glyphOrder, font["glyf"].glyphs = font.getGlyphOrder(), outlines
    for name in {"VORG"} & set(font.keys()):
        del font[name]
    maximum_profile = font["maxp"]
    maximum_profile.tableVersion = 0x00010000
    limits = ("maxZones", "maxTwilightPoints", "maxStorage", "maxFunctionDefs", "maxStackElements",
              "maxInstructionDefs", "maxSizeOfInstructions", "maxComponentElements")  # fmt: skip
    for name in limits:
        setattr(maximum_profile, name, 1 if name == "maxZones" else 0)
    font["post"].formatType = 3.0
    font.sfntVersion = "\000\001\000\000"


def use_static_fonts(page: Page, style: str, folder: Path) -> None:
    """Make the open page use the static fonts in a folder."""
    rules = page.evaluate(FORMULA_FONT_RULES)
    changed = [re.sub(r'url\("[^"]*/([^"/]+)\.woff"\)', rf'url("{folder.as_uri()}/\1.ttf")', one)
             for one in rules]  # fmt: skip
    page.add_style_tag(
        content="\n".join([style, *(re.sub(r" format\([^)]*\)", "", one) for one in changed)])
    )
    page.evaluate(LOAD_FONTS)
