"""What makes the site light: 73 MB without it, under 35 with it.

Notebooks are offered without outputs, figures have palettes, frames of explorers are files of their
own, and what browsers do not ask for is left out. The stored notebooks stay as they are.
"""

from __future__ import annotations

import json
import re
import shutil
from base64 import b64decode
from hashlib import sha256
from pathlib import Path

import numpy as np
from docutils import nodes
from PIL import Image
from sphinx.application import Sphinx

# Maps are for those who debug the theme; fonts have another form that is half as large; the theme's
# words in other languages; all of MathJax's extensions in one file, beside each in its own.
UNUSED = [
    "_static/**/*.map",
    "_static/vendor/fontawesome/**/*.ttf",
    "_static/vendor/fontawesome/**/fa-[br]*.woff2",
    "_static/locales",
    "_static/vendor/mathjax/**/all-packages.js",
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
# Names, punctuation and spaces in code, which have the colour of the listing.
PLAIN = re.compile(r'<span class="[npw]">([^<]*)</span>')
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
        said = found["said"]
        source = sources.get(found["name"])
        if source is not None and source.suffix == ".png" and not re.search("width|height", said):
            width, height = _size(source)
            said += f' width="{width}" height="{height}"'
        return f'<img {said} loading="lazy" />'

    if app.builder.name == "html" and "body" in context:
        context["body"] = IMAGE.sub(sized, context["body"])


def unmark_plain_code(
    app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None
) -> None:
    """Take away marks in listings that change nothing: three megabytes in all."""
    if "body" in context:
        context["body"] = PLAIN.sub(r"\1", context["body"])


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
