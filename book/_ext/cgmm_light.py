"""Reduce the weight of the site from 73 MB to under 30.

Notebooks are offered without outputs, figures have palettes or short names, frames of explorers are
files of their own, and what browsers do not ask for is left out. The stored notebooks stay as they
are.
"""

from __future__ import annotations

import json
import re
import shutil
import string
from base64 import b64decode
from decimal import Decimal
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from docutils import nodes
from fontTools.subset import Subsetter
from fontTools.ttLib import TTFont
from PIL import Image
from sphinx.application import Sphinx

# Pages ask for none of these files: maps of scripts, whole fonts of icons, the theme's messages in
# other languages, MathJax's output for slides, what is offered or copied in another folder.
UNUSED = [
    "_static/**/*.map",
    "_static/vendor/fontawesome/**/*.ttf",
    "_static/vendor/fontawesome/**/*.woff2",
    "_static/vendor/mathjax/output/svg*",
    "_static/locales",
    "_static/assignments",
    "_static/readme.png",
    "_static/front.svg",
    "_static/interview.png",
]
# This script replaces icons by drawings and weighs 1.5 MB. The theme's font draws the same icons.
ICON_SCRIPT = "_static/scripts/fontawesome.js"
THEME_SHEET = "_static/styles/pydata-sphinx-theme.css"
# A rule of the theme's style sheet that names the character of an icon, in Font Awesome 6 or 7.
ICON_RULE = re.compile(r'(?:\.fa-[\w-]+(?::{1,2}before)?,?)+\{(?:content|--fa):"[^"]*"\}')
ICON_NAME = re.compile(r"\bfa-[\w-]+")
# Its font, and the characters that style sheets take from it.
ICON_FONT = "_static/vendor/fontawesome/webfonts/fa-solid-900"
ICON_SOURCE = re.compile(
    r'url\([^()]*fa-solid-900\.woff2\) format\("woff2"\),url\([^()]*\.ttf\)[^;}]*'
)
ICON_CHARACTER = re.compile(r'(?:content|--fa): ?"\\([0-9a-f]{4})')
# The largest mean error of a colour, of 255 levels, that a palette may make; no eye sees it.
LARGEST_ERROR = 0.8
FRAME = re.compile(r"data:image/(webp|png);base64,([A-Za-z0-9+/=]{200,})")
FRAMES = "_images/frames"
# Names, operators, punctuation and spaces in code, which have the colour of the listing; and
# neighbours of one kind, such as the lines of a docstring.
PLAIN = re.compile(r'<span class="(?:[nopw]|nn)">([^<]*)</span>')
ALIKE = re.compile(
    r'<span class="([a-z]{1,2}\d?)">[^<]*</span>(?:\s*<span class="\1">[^<]*</span>)+'
)
MARK = re.compile(r"(?!^)<span[^>]*>|</span>(?!$)")
# Elements that keep their spaces, and comments, which are removed.
KEPT = re.compile(r"(<(pre|script|style|textarea)\b.*?</\2>)", re.DOTALL)
UNSAID = re.compile(r"<!--.*?-->", re.DOTALL)
# The book's table of contents, which a listing of a module does without: its links lead back.
CONTENTS = re.compile(r'<nav class="bd-links bd-docs-nav".*?</nav>', re.DOTALL)
SVG = "http://www.w3.org/2000/svg"
ElementTree.register_namespace("", SVG)
ElementTree.register_namespace("xlink", "http://www.w3.org/1999/xlink")
LINK = "{http://www.w3.org/1999/xlink}href"
PATH, GROUP, USE, DEFS = (f"{{{SVG}}}{name}" for name in ("path", "g", "use", "defs"))
GLYPH_SCALE = "scale(0.015625)"
TEXT_SCALE = re.compile(r"scale\((0?\.\d+) -0?\.\d+\)")
TRANSLATE = re.compile(r"translate\((-?[\d.]+) (-?[\d.]+)\)")
ID = re.compile(r'(?<= id=")[^"]+|(?<=#)[\w.-]+(?=["),{])')
KEPT_IDS = {name: name for name in ("dark", "phone", "phone-dark")}
SEE_THROUGH = re.compile(r"\.(l\d+)\{[^}]*(?<!-)opacity")
COMMAND = re.compile(r"([MLQCZz])([^A-Za-z]*)")
NUMBERS = re.compile(r"-?[\d.]+")
IMAGE = re.compile(r'<img (?P<said>[^>]*?src="(?:\.\./)*_images/(?P<name>[^"/]+)"[^>]*?)\s*/?>')


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx. Images are copied before the build is finished."""
    app.connect("html-page-context", move_frames_out)
    app.connect("html-page-context", size_images)
    app.connect("html-page-context", unmark_plain_code)
    app.connect("build-finished", lighten, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


# ------------------------------------------------------------------------------- every page


def move_frames_out(
    app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None
) -> None:
    """Put frames into files: as text in a page they take a third more, and all come at once."""
    if app.builder.name != "html" or "body" not in context:
        return
    folder = Path(app.outdir, FRAMES)
    to_top = "../" * pagename.count("/")

    def file_of(found: re.Match) -> str:
        content = b64decode(found[2])
        name = f"{sha256(content).hexdigest()[:20]}.{found[1]}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
        return f"{to_top}{FRAMES}/{name}"

    context["body"] = FRAME.sub(file_of, context["body"])


def size_images(
    app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None
) -> None:
    """Write the size of each image, so that text does not jump, and load it when it comes near."""
    sources = {name: Path(app.srcdir, path) for path, name in app.builder.images.items()}

    def sized(found: re.Match) -> str:
        attributes = found["said"]
        source = sources.get(found["name"])
        if (
            source is not None
            and source.suffix == ".png"
            and not re.search("width|height", attributes)
        ):
            width, height = _size(source)
            attributes += f' width="{width}" height="{height}"'
        lazy = "" if "loading=" in attributes else ' loading="lazy"'
        return f"<img {attributes}{lazy} />"

    if app.builder.name == "html" and "body" in context:
        context["body"] = IMAGE.sub(sized, context["body"])


def unmark_plain_code(
    app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None
) -> None:
    """Remove marks in listings that change nothing: three megabytes in all."""
    if "body" in context:
        plain = PLAIN.sub(r"\1", context["body"])
        context["body"] = ALIKE.sub(lambda found: MARK.sub("", found[0]), plain)


def _size(path: Path) -> tuple[int, int]:
    with Image.open(path) as image:
        return image.size


# ---------------------------------------------------------------------------- the whole site


def lighten(app: Sphinx, exception: Exception | None) -> None:
    """Remove files that no page asks for, and make the others small."""
    if exception is not None or app.builder.name != "html":
        return
    site = Path(app.outdir)
    drop_icon_rules(site)
    subset_icon_font(site)
    for path in {path for pattern in UNUSED for path in site.glob(pattern)}:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    remove_old_images(site)
    (site / ICON_SCRIPT).write_text("", encoding="utf8")
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf8")
        if path.is_relative_to(site / "_modules"):
            text = CONTENTS.sub("", text)
        path.write_text(unspaced(text), encoding="utf8")
    for path in (site / "_images").glob("*.svg"):
        path.write_text(lean(path.read_text(encoding="utf8")), encoding="utf8")
    for path in site.rglob("*.ipynb"):
        path.write_text(without_outputs(path.read_text(encoding="utf8")), encoding="utf8")
    for path in (site / "_images").glob("*.png"):
        give_palette(path)


def remove_old_images(site: Path) -> None:
    """Remove figures and frames that an earlier build has left, which no page shows."""
    texts = (path.read_text(encoding="utf8") for path in site.rglob("*.html"))
    shown = {name for text in texts for name in re.findall(r"_images/([\w./-]+)", text)}
    for path in (site / "_images").rglob("*.*"):
        if path.relative_to(site / "_images").as_posix() not in shown:
            path.unlink()


def drop_icon_rules(site: Path) -> None:
    """Remove the rules of icons that no page or script names; an unknown form of rule stays."""
    users = [*site.rglob("*.html"), *site.glob("_static/**/*.js")]
    used = {name for path in users for name in ICON_NAME.findall(path.read_text(encoding="utf8"))}

    def keep_used(rule: re.Match) -> str:
        return rule[0] if used.intersection(ICON_NAME.findall(rule[0])) else ""

    sheet = site / THEME_SHEET
    text = ICON_RULE.sub(keep_used, sheet.read_text(encoding="utf8"))
    sheet.write_text(text, encoding="utf8")


def subset_icon_font(site: Path) -> None:
    """Write a font of the icons that style sheets name: 150 kB less on every page."""
    full, sheet = site / f"{ICON_FONT}.ttf", site / THEME_SHEET
    if not full.exists():
        return
    texts = [path.read_text(encoding="utf8") for path in site.glob("_static/**/*.css")]
    used = {int(one, 16) for text in texts for one in ICON_CHARACTER.findall(text)}
    font = TTFont(full)
    subsetter = Subsetter()
    subsetter.populate(unicodes=used)
    subsetter.subset(font)
    font.flavor = "woff"
    font.save(site / f"{ICON_FONT}.woff")
    source = 'url(../vendor/fontawesome/webfonts/fa-solid-900.woff) format("woff")'
    text = ICON_SOURCE.sub(source, sheet.read_text(encoding="utf8"))
    sheet.write_text(text, encoding="utf8")


def unspaced(text: str) -> str:
    """Return a page without comments, indentation and empty lines; code stays as it is.

    Its theme is light until a script sets it: without scripts the theme's own value has no colours.
    """
    text = text.replace('data-theme="auto"', 'data-theme="light"', 1)
    parts = KEPT.split(text)
    parts[::3] = [re.sub(r"\s*\n\s*", "\n", UNSAID.sub("", part)) for part in parts[::3]]
    del parts[2::3]
    return "".join(parts)


def lean(text: str) -> str:
    """Return a figure with short names, short paths and fewer groups, which looks the same."""
    if "xlink:href" not in text:
        return text
    root = ElementTree.fromstring(text)
    root[:] = ungrouped(root)
    join_scales(root)
    for path in root.iter(PATH):
        # Browsers draw a circle less smoothly if rounding keeps them from seeing that it is one.
        write = unspaced_path if "C" in path.get("d", "") else relative
        path.set("d", write(path.get("d", "")))
    gather_marks(root, {*SEE_THROUGH.findall(text)})
    text = ElementTree.tostring(root, encoding="unicode").replace("xlink:href", "href")
    text = text.replace(" />", "/>")
    short = {name: in_letters(n) for n, name in enumerate(re.findall(r' id="([^"]+)"', text))}
    return ID.sub(lambda found: (short | KEPT_IDS).get(found[0], found[0]), text)


def in_letters(n: int) -> str:
    """Return the n-th shortest name: a, b, ... z, aa, ab, ..."""
    letters = string.ascii_lowercase
    return (in_letters(n // 26 - 1) if n >= 26 else "") + letters[n % 26]


def ungrouped(parent: ElementTree.Element) -> list[ElementTree.Element]:
    """Return the children without groups that only name; neighbours with one clip share a group."""
    found: list[ElementTree.Element] = []
    for child in parent:
        child[:] = ungrouped(child)
        child.text, child.tail = (child.text or "").strip(), None
        for one in child if child.tag == GROUP and {*child.keys()} <= {"id"} else [child]:
            if found and [*one.keys()] == ["clip-path"] and found[-1].attrib == one.attrib:
                found[-1].extend(one)
            else:
                found.append(one)
    return found


def join_scales(root: ElementTree.Element) -> None:
    """Put the scale of glyphs, each of which matplotlib divides by 64, into that of their text.

    A figure stays as it is if one of its glyphs is drawn outside of a scaled text.
    """
    glyphs = [one for one in root.iter(PATH) if one.get("transform") == GLYPH_SCALE]
    names = {f"#{one.get('id')}" for one in glyphs}
    texts = [one for one in root.iter(GROUP) if TEXT_SCALE.search(one.get("transform", ""))]
    uses = [one for text in texts for one in text if one.tag == USE]
    are_glyphs = all(one.get(LINK) in names for one in uses)
    is_rest_drawn = any(one.tag not in {USE, DEFS} for text in texts for one in text)
    n_drawn = sum(one.get(LINK) in names for one in root.iter(USE))
    if not are_glyphs or is_rest_drawn or n_drawn != len(uses):
        return
    for one in texts:
        one.set("transform", TEXT_SCALE.sub(_divide_by_64, one.get("transform")))
    for one in uses:
        move_by_units(one)
    for one in glyphs:
        del one.attrib["transform"]


def _divide_by_64(scale: re.Match) -> str:
    size = f"{float(scale[1]) / 64:.7g}"
    return f"scale({size} -{size})"


def move_by_units(glyph: ElementTree.Element) -> None:
    """Write the place of a glyph in its own units, 64 of which were one."""
    if not (found := TRANSLATE.match(glyph.get("transform", ""))):
        return
    x, y = (f"{64 * float(one):.6g}" for one in found.groups())
    rest = glyph.attrib.pop("transform")[found.end() :].strip()
    if rest:
        glyph.set("transform", f"translate({x} {y}) {rest}")
    else:
        glyph.attrib |= {name: value for name, value in (("x", x), ("y", y)) if value != "0"}


def gather_marks(parent: ElementTree.Element, apart: set[str]) -> None:
    """Put runs of marks with one look into a group that has this look, which they inherit.

    Looks in ``apart`` have an opacity, which a group would apply to all its marks at once.
    """
    gathered: list[ElementTree.Element] = []
    for look, run in groupby(parent, key=look_of_mark):
        marks = list(run)
        if look is None or look in apart or len(marks) < 3:
            gathered += marks
            continue
        for one in marks:
            del one.attrib["class"]
        gathered.append(group := ElementTree.Element(GROUP, {"class": look}))
        group[:] = marks
    parent[:] = gathered
    for child in parent:
        if len(child):
            gather_marks(child, apart)


def look_of_mark(one: ElementTree.Element) -> str | None:
    """Return the class of a mark; None for other elements and for marks that are clipped."""
    is_mark = one.tag == USE and "clip-path" not in one.attrib
    return one.get("class") if is_mark else None


def unspaced_path(path: str) -> str:
    """Return the same path without spaces around its letters."""
    return re.sub(r"\s*([A-Za-z])\s*", r"\1", path)


def relative(path: str) -> str:
    """Return the same path by differences of exact decimals: l12-3 for L 57.25 101.15."""
    x, y = Decimal(0), Decimal(0)
    start, written, before = (x, y), [], ""
    for letter, numbers in COMMAND.findall(path):
        ends = [Decimal(one) for one in NUMBERS.findall(numbers)]
        if letter in "zZ":
            (x, y), steps = start, []
        else:
            points = zip(ends[::2], ends[1::2], strict=True)
            steps = [(a - x, b - y) for a, b in points]
            x, y = ends[-2:]
        if letter in "mM":
            start = (x, y)
        # A point after M would be read as one of a line.
        written.append("" if letter == before and letter in "LCQ" else letter.lower())
        for number in (shortest(one) for step in steps for one in step):
            is_apart = number[0] == "-" or written[-1][-1:].isalpha()
            written.append(number if is_apart else f" {number}")
        before = letter
    return "".join(written)


def shortest(number: Decimal) -> str:
    """Return a number without the zeros that say nothing: .5 for 0.50."""
    text = f"{number.normalize():f}"
    return re.sub(r"^(-?)0(?=\.)", r"\1", text) if number else "0"


def without_outputs(text: str) -> str:
    """Return a notebook without outputs, in the shortest form of JSON."""
    notebook = json.loads(text)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell |= {"outputs": [], "execution_count": None}
    return json.dumps(notebook, ensure_ascii=False, separators=(",", ":")) + "\n"


def give_palette(path: Path) -> None:
    """Write a figure with at most 256 colours, unless they would be seen to be others."""
    with Image.open(path) as image:
        if image.mode == "P" or (image.mode == "RGBA" and image.getextrema()[3][0] < 255):
            return
        full = image.convert("RGB")
    # This method keeps the colours exactly if the palette has room for all of them.
    reduced = full.quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    error = np.asarray(reduced.convert("RGB"), dtype=float) - np.asarray(full, dtype=float)
    if np.sqrt(np.mean(error**2)) <= LARGEST_ERROR:
        reduced.save(path, optimize=True)
