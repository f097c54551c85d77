"""Sphinx extension that reduces the size of the site from 73 MB to under 30 MB.

It removes outputs from the notebooks that readers can download, reduces the colours of PNG figures,
shortens SVG figures and HTML, stores the frames of explorers as files, and deletes files that no
page uses. The notebooks in book/ are not changed.
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

import cgmm_cut
import numpy as np
from docutils import nodes
from fontTools.subset import Subsetter
from fontTools.ttLib import TTFont
from PIL import Image
from sphinx.application import Sphinx

# Files that no page uses: source maps, complete icon fonts, the theme's translations, MathJax's SVG
# output, and files that are copied to another folder.
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
# This script of 1.5 MB replaces icons by SVG drawings. The icon font of the theme has the same
# icons.
ICON_SCRIPT = "_static/scripts/fontawesome.js"
THEME_SHEET = "_static/styles/pydata-sphinx-theme.css"
# A rule of the theme's style sheet that sets the character of an icon, in Font Awesome 6 or 7.
ICON_RULE = re.compile(r'(?:\.fa-[\w-]+(?::{1,2}before)?,?)+\{(?:content|--fa):"[^"]*"\}')
ICON_NAME = re.compile(r"\bfa-[\w-]+")
# The icon font, its address in the style sheet, and the characters that style sheets use.
ICON_FONT = "_static/vendor/fontawesome/webfonts/fa-solid-900"
ICON_SOURCE = re.compile(
    r'url\([^()]*fa-solid-900\.woff2\) format\("woff2"\),url\([^()]*\.ttf\)[^;}]*'
)
ICON_CHARACTER = re.compile(r'(?:content|--fa): ?"\\([0-9a-f]{4})')
# Largest root mean square error of a palette, in 255ths. Errors below it are invisible.
LARGEST_ERROR = 0.8
FRAME = re.compile(r"data:image/(webp|png);base64,([A-Za-z0-9+/=]{200,})")
FRAMES = "_images/frames"
# Marked-up names, operators, punctuation and spaces in code, which have the default colour; and
# neighbouring spans of the same class, such as the lines of a docstring.
PLAIN_CODE = re.compile(r'<span class="(?:[nopw]|nn)">([^<]*)</span>')
SAME_CLASS = re.compile(
    r'<span class="([a-z]{1,2}\d?)">[^<]*</span>(?:\s*<span class="\1">[^<]*</span>)+'
)
INNER_TAG = re.compile(r"(?!^)<span[^>]*>|</span>(?!$)")
# Elements in which spaces are kept, and comments, which are removed.
KEEP_SPACES = re.compile(r"(<(pre|script|style|textarea)\b.*?</\2>)", re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
# The table of contents of the book. It is removed from source listings, which link to other pages.
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
TRANSPARENT_CLASS = re.compile(r"\.(l\d+)\{[^}]*(?<!-)opacity")
COMMAND = re.compile(r"([MLQCZz])([^A-Za-z]*)")
NUMBERS = re.compile(r"-?[\d.]+")
IMAGE = re.compile(
    r'<img (?P<attributes>[^>]*?src="(?:\.\./)*_images/(?P<name>[^"/]+)"[^>]*?)\s*/?>'
)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx; images are copied before the event "build-finished"."""
    app.connect("html-page-context", move_frames_out)
    app.connect("html-page-context", size_images)
    app.connect("html-page-context", remove_needless_markup)
    app.connect("build-finished", reduce_site, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


# ------------------------------------------------------------------------------- every page


def move_frames_out(
    app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None
) -> None:
    """Store the frames of explorers as files, which are smaller and are loaded only when shown."""
    if app.builder.name != "html" or "body" not in context:
        return
    folder = Path(app.outdir, FRAMES)
    to_top = "../" * pagename.count("/")

    def store_frame(found: re.Match) -> str:
        content = b64decode(found[2])
        name = f"{sha256(content).hexdigest()[:20]}.{found[1]}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
        return f"{to_top}{FRAMES}/{name}"

    context["body"] = FRAME.sub(store_frame, cgmm_cut.mark_panels(context["body"]))


def size_images(
    app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None
) -> None:
    """Add the size of each image, so that text does not jump, and load images lazily."""
    sources = {name: Path(app.srcdir, path) for path, name in app.builder.images.items()}

    def add_size(found: re.Match) -> str:
        attributes = found["attributes"]
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
        context["body"] = IMAGE.sub(add_size, context["body"])


def remove_needless_markup(
    app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None
) -> None:
    """Remove markup from code listings that does not change their look, 3 MB in total."""
    if "body" in context:
        plain = PLAIN_CODE.sub(r"\1", context["body"])
        context["body"] = SAME_CLASS.sub(lambda found: INNER_TAG.sub("", found[0]), plain)


def _size(path: Path) -> tuple[int, int]:
    """Return width and height of an image in pixels."""
    with Image.open(path) as image:
        return image.size


# ---------------------------------------------------------------------------- the whole site


def reduce_site(app: Sphinx, exception: Exception | None) -> None:
    """Delete unused files of the built site, and reduce the size of the others."""
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
        path.write_text(compress_html(text), encoding="utf8")
    for path in (site / "_images").glob("*.svg"):
        path.write_text(compress_svg(path.read_text(encoding="utf8")), encoding="utf8")
    for path in site.rglob("*.ipynb"):
        path.write_text(without_outputs(path.read_text(encoding="utf8")), encoding="utf8")
    for path in (site / "_images").glob("*.png"):
        reduce_colours(path)


def remove_old_images(site: Path) -> None:
    """Delete figures and frames from earlier builds, which no page shows any more."""
    texts = (path.read_text(encoding="utf8") for path in site.rglob("*.html"))
    shown = {name for text in texts for name in re.findall(r"_images/([\w./-]+)", text)}
    for path in (site / "_images").rglob("*.*"):
        if path.relative_to(site / "_images").as_posix() not in shown:
            path.unlink()


def drop_icon_rules(site: Path) -> None:
    """Remove the style rules of icons that no page or script uses."""
    users = [*site.rglob("*.html"), *site.glob("_static/**/*.js")]
    used = {name for path in users for name in ICON_NAME.findall(path.read_text(encoding="utf8"))}

    def keep_used(rule: re.Match) -> str:
        return rule[0] if used.intersection(ICON_NAME.findall(rule[0])) else ""

    sheet = site / THEME_SHEET
    text = ICON_RULE.sub(keep_used, sheet.read_text(encoding="utf8"))
    sheet.write_text(text, encoding="utf8")


def subset_icon_font(site: Path) -> None:
    """Write a font with only the icons that style sheets use, which saves 150 kB per page."""
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


def compress_html(text: str) -> str:
    """Return a page without comments, indentation and empty lines, except in code.

    The colour theme is set to light until a script changes it, because the value "auto" shows no
    colours in browsers without scripts.
    """
    text = text.replace('data-theme="auto"', 'data-theme="light"', 1)
    parts = KEEP_SPACES.split(text)
    parts[::3] = [re.sub(r"\s*\n\s*", "\n", COMMENT.sub("", part)) for part in parts[::3]]
    del parts[2::3]
    return "".join(parts)


def compress_svg(text: str) -> str:
    """Return an SVG that looks the same, with shorter ids and paths and fewer groups."""
    if "xlink:href" not in text:
        return text
    root = ElementTree.fromstring(text)
    root[:] = remove_groups(root)
    join_scales(root)
    for path in root.iter(PATH):
        # Keep curves exact: browsers draw circles less smoothly if their numbers are rounded.
        write = remove_spaces if "C" in path.get("d", "") else make_relative
        path.set("d", write(path.get("d", "")))
    group_marks(root, {*TRANSPARENT_CLASS.findall(text)})
    text = ElementTree.tostring(root, encoding="unicode").replace("xlink:href", "href")
    text = text.replace(" />", "/>")
    short = {name: letter_name(n) for n, name in enumerate(re.findall(r' id="([^"]+)"', text))}
    return ID.sub(lambda found: (short | KEPT_IDS).get(found[0], found[0]), text)


def letter_name(n: int) -> str:
    """Return the n-th shortest name: a, b, ... z, aa, ab, ..."""
    letters = string.ascii_lowercase
    return (letter_name(n // 26 - 1) if n >= 26 else "") + letters[n % 26]


def remove_groups(parent: ElementTree.Element) -> list[ElementTree.Element]:
    """Return children without groups that only have an id; merge groups with the same clip path."""
    found: list[ElementTree.Element] = []
    for child in parent:
        child[:] = remove_groups(child)
        child.text, child.tail = (child.text or "").strip(), None
        for one in child if child.tag == GROUP and {*child.keys()} <= {"id"} else [child]:
            if found and [*one.keys()] == ["clip-path"] and found[-1].attrib == one.attrib:
                found[-1].extend(one)
            else:
                found.append(one)
    return found


def join_scales(root: ElementTree.Element) -> None:
    """Move the scale 1/64, which matplotlib writes into each glyph, into the text around it.

    A figure stays unchanged if one of its glyphs is drawn outside of a scaled text.
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
        scale_position(one)
    for one in glyphs:
        del one.attrib["transform"]


def _divide_by_64(scale: re.Match) -> str:
    """Return the scale of a text divided by 64."""
    size = f"{float(scale[1]) / 64:.7g}"
    return f"scale({size} -{size})"


def scale_position(glyph: ElementTree.Element) -> None:
    """Write the position of a glyph in units of the glyph, which are 64 times smaller."""
    if not (found := TRANSLATE.match(glyph.get("transform", ""))):
        return
    x, y = (f"{64 * float(one):.6g}" for one in found.groups())
    rest = glyph.attrib.pop("transform")[found.end() :].strip()
    if rest:
        glyph.set("transform", f"translate({x} {y}) {rest}")
    else:
        glyph.attrib |= {name: value for name, value in (("x", x), ("y", y)) if value != "0"}


def group_marks(parent: ElementTree.Element, transparent: set[str]) -> None:
    """Put neighbouring marks of the same CSS class into a group with this class.

    Classes in ``transparent`` have an opacity, which a group would apply to all its marks together.
    """
    children: list[ElementTree.Element] = []
    for css_class, run in groupby(parent, key=class_of_mark):
        marks = list(run)
        if css_class is None or css_class in transparent or len(marks) < 3:
            children += marks
            continue
        for one in marks:
            del one.attrib["class"]
        children.append(group := ElementTree.Element(GROUP, {"class": css_class}))
        group[:] = marks
    parent[:] = children
    for child in parent:
        if len(child):
            group_marks(child, transparent)


def class_of_mark(one: ElementTree.Element) -> str | None:
    """Return the CSS class of a mark; None for clipped marks and other elements."""
    is_mark = one.tag == USE and "clip-path" not in one.attrib
    return one.get("class") if is_mark else None


def remove_spaces(path: str) -> str:
    """Return the same path without spaces around its letters."""
    return re.sub(r"\s*([A-Za-z])\s*", r"\1", path)


def make_relative(path: str) -> str:
    """Return a path with relative coordinates, computed in decimals: l12-3 for L 57.25 101.15."""
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
        # A command letter may be omitted if repeated, but not after M, where it means L.
        written.append("" if letter == before and letter in "LCQ" else letter.lower())
        for number in (shorten_number(one) for step in steps for one in step):
            is_apart = number[0] == "-" or written[-1][-1:].isalpha()
            written.append(number if is_apart else f" {number}")
        before = letter
    return "".join(written)


def shorten_number(number: Decimal) -> str:
    """Return a number without unnecessary zeros: .5 for 0.50."""
    text = f"{number.normalize():f}"
    return re.sub(r"^(-?)0(?=\.)", r"\1", text) if number else "0"


def without_outputs(text: str) -> str:
    """Return a notebook without outputs, as JSON without spaces."""
    notebook = json.loads(text)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell |= {"outputs": [], "execution_count": None}
    return json.dumps(notebook, ensure_ascii=False, separators=(",", ":")) + "\n"


def reduce_colours(path: Path) -> None:
    """Reduce a PNG to at most 256 colours, unless the difference would be visible."""
    with Image.open(path) as image:
        if image.mode == "P" or (image.mode == "RGBA" and image.getextrema()[3][0] < 255):
            return
        full = image.convert("RGB")
    # This method keeps all colours exactly if there are at most 256.
    reduced = full.quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    error = np.asarray(reduced.convert("RGB"), dtype=float) - np.asarray(full, dtype=float)
    if np.sqrt(np.mean(error**2)) <= LARGEST_ERROR:
        reduced.save(path, optimize=True)
