"""Reduce the weight of the site from 73 MB to under 30.

Notebooks are offered without outputs, figures have palettes or short names, frames of explorers are
files of their own, and what browsers do not ask for is left out. The stored notebooks stay as they
are.
"""

from __future__ import annotations

import json
import re
import shutil
from base64 import b64decode
from hashlib import sha256
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from docutils import nodes
from fontTools import subset
from PIL import Image
from sphinx.application import Sphinx

# Maps are for those who debug the theme; fonts of icons that no page shows; the theme's words in
# other languages; assignments, which pages offer from another folder; pictures copied elsewhere.
UNUSED = [
    "_static/**/*.map",
    "_static/vendor/fontawesome/**/*.woff2",
    "_static/vendor/fontawesome/**/fa-[brv]*.ttf",
    "_static/locales",
    "_static/assignments",
    "_static/readme.png",
    "_static/front.svg",
    "_static/interview.png",
]
# Font Awesome has two thousand icons, of which the theme's pages show these.
ICONS = [
    "arrow-up", "magnifying-glass", "bars", "download", "file", "file-pdf", "sun", "moon",
    "circle-half-stroke", "list", "angle-left", "angle-right", "chevron-down", "xmark", "rocket",
]  # fmt: skip
ICON = r'(?<![\w-])"?{}"?:\[(\d+),(\d+),\[[^\]]*\],"[0-9a-f]+","([^"]+)"\]'
# What draws them, as Font Awesome's own script does.
DRAW = """for (const place of document.querySelectorAll(":is(i, span):is(.fas, .fa-solid)")) {
  const name = [...place.classList].find(one => ICONS[one.slice(3)]);
  if (!name) continue;
  const [width, height, path] = ICONS[name.slice(3)];
  const icon = document.createElement("template");
  icon.innerHTML = `<svg class="${place.className} svg-inline--fa" aria-hidden="true"
    viewBox="0 0 ${width} ${height}"><path fill="currentColor" d="${path}"/></svg>`;
  Object.assign(icon.content.firstChild.dataset, place.dataset);
  place.replaceWith(icon.content);
}
"""
# The mean error of a colour, of 255, which a palette may make: none that an eye sees.
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
# What keeps its spaces, and what a page says to nobody.
KEPT = re.compile(r"(<(pre|script|style|textarea)\b.*?</\2>)", re.DOTALL)
UNSAID = re.compile(r"<!--.*?-->", re.DOTALL)
# The style sheet has a line for each icon, which pages draw otherwise, and names their font twice.
NAMED = re.compile(
    r'(?:\.fa-[\w-]+:{1,2}before,?)+\{content:"[^"]*"\}|url\([^)]*/fa-[\w-]+\.woff2\)[^,]*,'
)
# The book's table of contents, which a listing of a module does without: its links lead back.
CONTENTS = re.compile(r'<nav class="bd-links bd-docs-nav".*?</nav>', re.DOTALL)
SIGN = re.compile(r"[\ue000-\uf8ff]|(?<=\\)[ef][0-9a-f]{3}")
SVG = "http://www.w3.org/2000/svg"
ElementTree.register_namespace("", SVG)
ElementTree.register_namespace("xlink", "http://www.w3.org/1999/xlink")
ID = re.compile(r'(?<= id=")[^"]+|(?<=#)[\w.-]+(?=[")])')
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
    """Say how large an image is, so that text does not jump, and load it when it comes near."""
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
    """Take away marks in listings that change nothing: three megabytes in all."""
    if "body" in context:
        plain = PLAIN.sub(r"\1", context["body"])
        context["body"] = ALIKE.sub(lambda found: MARK.sub("", found[0]), plain)


def _size(path: Path) -> tuple[int, int]:
    with Image.open(path) as image:
        return image.size


# ---------------------------------------------------------------------------- the whole site


def lighten(app: Sphinx, exception: Exception | None) -> None:
    """Take away what no reader asks for, and make the rest small."""
    if exception is not None or app.builder.name != "html":
        return
    site = Path(app.outdir)
    for path in [path for pattern in UNUSED for path in site.glob(pattern)]:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    remove_old_frames(site)
    keep_icons(site / "_static/scripts/fontawesome.js")
    keep_signs(site)
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


def remove_old_frames(site: Path) -> None:
    """Remove what an earlier build has left, to which no page leads."""
    texts = (path.read_text(encoding="utf8") for path in site.rglob("*.html"))
    shown = {name for text in texts for name in re.findall(rf"{FRAMES}/([\w.]+)", text)}
    for path in (site / FRAMES).glob("*"):
        if path.name not in shown:
            path.unlink()


def keep_icons(path: Path) -> None:
    """Write those icons that are shown, and what draws them, in the place of all."""
    text = path.read_text(encoding="utf8")
    if text.endswith(DRAW):
        return
    # Of icons in two weights the solid one comes last.
    found = {name: re.findall(ICON.format(name), text)[-1] for name in ICONS}
    path.write_text(f"const ICONS = {json.dumps(found)};\n{DRAW}", encoding="utf8")


def keep_signs(site: Path) -> None:
    """Leave in the font of icons those that a style sheet asks for, such as the signs of boxes."""
    sheets = {path: path.read_text(encoding="utf8") for path in site.glob("_static/**/*.css")}
    for path, text in sheets.items():
        sheets[path] = NAMED.sub("", text)
        path.write_text(sheets[path], encoding="utf8")
    signs = {one for text in sheets.values() for one in SIGN.findall(text)}
    (path,) = site.glob("_static/vendor/fontawesome/**/*.ttf")
    font = subset.load_font(path, options := subset.Options())
    cut = subset.Subsetter(options)
    cut.populate(unicodes=[ord(one) if len(one) == 1 else int(one, 16) for one in signs])
    cut.subset(font)
    subset.save_font(font, path, options)


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
    """A figure with short names and fewer groups, which looks the same."""
    if "xlink:href" not in text:
        return text
    root = ElementTree.fromstring(text)
    root[:] = ungrouped(root)
    for path in root.iter(f"{{{SVG}}}path"):
        path.set("d", re.sub(r"\s*([A-Za-z])\s*", r"\1", path.get("d", "")))
    text = ElementTree.tostring(root, encoding="unicode").replace("xlink:href", "href")
    short = {name: f"i{n}" for n, name in enumerate(re.findall(r' id="([^"]+)"', text))}
    return ID.sub(lambda found: (short | {"dark": "dark"}).get(found[0], found[0]), text)


def ungrouped(parent: ElementTree.Element) -> list[ElementTree.Element]:
    """Return the children without groups that only name; neighbours with one clip share a group."""
    found: list[ElementTree.Element] = []
    for child in parent:
        child[:] = ungrouped(child)
        child.text, child.tail = (child.text or "").strip(), None
        for one in child if child.tag == f"{{{SVG}}}g" and {*child.keys()} <= {"id"} else [child]:
            if found and [*one.keys()] == ["clip-path"] and found[-1].attrib == one.attrib:
                found[-1].extend(one)
            else:
                found.append(one)
    return found


def without_outputs(text: str) -> str:
    """A notebook that is still to be run."""
    notebook = json.loads(text)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell |= {"outputs": [], "execution_count": None}
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"


def give_palette(path: Path) -> None:
    """Write a figure with at most 256 colours, unless they would be seen to be others."""
    with Image.open(path) as image:
        if image.mode == "P" or (image.mode == "RGBA" and image.getextrema()[3][0] < 255):
            return
        full = image.convert("RGB")
    # By the median of colours: few enough of them stay exactly as they were.
    reduced = full.quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    error = np.asarray(reduced.convert("RGB"), dtype=float) - np.asarray(full, dtype=float)
    if np.sqrt(np.mean(error**2)) <= LARGEST_ERROR:
        reduced.save(path, optimize=True)
