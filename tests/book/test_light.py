"""Test that the site is small in bytes, and that compressing its files loses nothing."""

import io
import json
import re

import cgmm_dark
import cgmm_download
import cgmm_light
import nbformat
import numpy as np
from built_book import ROOT
from fontTools.ttLib import TTFont
from matplotlib.figure import Figure
from PIL import Image

from cgmm.plot import svg

MOST_BYTES = 30e6
EDITIONS = {"cgmm.pdf", "cgmm.epub"}


def test_the_size_of_the_site_is_bounded(site):
    """The limit is 30 MB; without compression the site has 73 MB."""
    files = [path for path in site.rglob("*") if path.is_file() and path.name not in EDITIONS]
    of = {path.relative_to(site).as_posix(): path.stat().st_size for path in files}
    assert sum(of.values()) < MOST_BYTES, sorted(of.items(), key=lambda one: -one[1])[:20]
    assert not [name for name in of if name.endswith(".map")]


def test_icon_font_has_exactly_the_icons_that_pages_use(site):
    """The complete font would add 156 kB to each page."""
    fonts = list((site / "_static/vendor/fontawesome").rglob("*.*ff*"))
    assert [path.name for path in fonts] == ["fa-solid-900.woff"]
    assert fonts[0].stat().st_size < 5_000
    known = TTFont(fonts[0]).getBestCmap()
    sheet = (site / cgmm_light.THEME_SHEET).read_text(encoding="utf8")
    assert f"{fonts[0].name})" in sheet
    rules = [rule[0] for rule in cgmm_light.ICON_RULE.finditer(sheet)]
    assert len(rules) > 10
    for rule in rules:
        assert int(cgmm_light.ICON_CHARACTER.search(rule)[1], 16) in known, rule


def test_downloaded_notebooks_have_all_code_and_no_outputs(site):
    offered = sorted((site / "_sources/book").glob("*.ipynb"))
    assert len(offered) > 14
    for path in offered:
        cells = json.loads(path.read_text(encoding="utf8"))["cells"]
        stored = json.loads((ROOT / "book" / path.name).read_text(encoding="utf8"))["cells"]
        code, stored_code = (
            ["".join(cell["source"]) for cell in some if cell["cell_type"] == "code"]
            for some in (cells, stored)
        )
        assert code == stored_code
        assert not any(cell.get("outputs") for cell in cells)


def test_downloaded_notebooks_have_no_markup_of_myst(site):
    """Each number in a notebook, in \\tag{2.3} or Fig. 2.4., is one that its page shows."""
    for path in (site / "_sources/book").glob("*.ipynb"):
        cells = nbformat.read(path, as_version=4).cells
        text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
        assert not re.search(
            r"\{[a-z][\w:-]+\}`|`\{[a-z]|^:{3}|^\([\w-]+\)=|#(?:cite|role):", text, re.M
        ), path
        page = (site / f"book/{path.stem}.html").read_text(encoding="utf8")
        for number in re.findall(r"\\tag\{([\w.]+)\}", text):
            assert f"({number})" in page
        captions = re.findall(r"^\*\*(Fig\. [\w.]+)\.\*\* \w", text, re.M)
        # Figures of the directive {figure} keep their caption, but not their number.
        n_drawn = sum("figure" in cell.metadata.get("mystnb", {}) for cell in cells)
        assert captions == re.findall(r'caption-number">(Fig\. [\w.]+\d)', page)[-n_drawn:]


def test_myst_markup_becomes_plain_markdown():
    names = {
        "eq-a": "Equation (2.3)",
        "thm-a": "Theorem 2.1 (Ascent)",
        "ex-a": "Exercise 2.4 (Try)",
    }
    source = """\
(place)=
By {prf:ref}`thm-a`, {eq}`eq-a` and {doc}`02_em`, {term}`weights <weight>` [rise](place).

:::{prf:theorem} Ascent
:label: thm-a
```{math}
:label: eq-a
a \\\\ b
```
:::

::::{solution} ex-a
:class: dropdown
:::{prf:proof}
See {ref}`ex-a`.
:::
::::"""
    assert (
        cgmm_download.plain_text(source, names)
        == """\
By Theorem 2.1, (2.3) and [EM as a lower bound](02_em.ipynb), weights rise.

**Theorem 2.1 (Ascent)**

$$
\\begin{split}a \\\\ b\\end{split}\\tag{2.3}
$$

<details>
<summary><b>Solution to Exercise 2.4</b></summary>

See Exercise 2.4.

</details>"""
    )


def test_images_declare_their_size_and_load_lazily(site):
    text = (site / "book/02_em.html").read_text(encoding="utf8")
    figures = re.findall(r'<img [^>]*src="\.\./_images/[^/"]+\.(?:png|svg)"[^>]*>', text)
    assert figures
    for one in figures:
        assert re.search(r'width="\d+" height="\d+" loading="lazy"', one)


def test_a_compressed_figure_has_the_same_pixels(browser):
    """The figure has all kinds of elements: scatter, curve, clipped marker, text and formulas."""
    figure = Figure(figsize=(4, 3))
    ax = figure.subplots()
    ax.plot(np.sin(np.arange(9)), "o-")
    ax.scatter([0, 4, 8], [0, 0, 1], s=[900, 90, 9], alpha=0.5)
    ax.set(title="Words and $\\hat\\Sigma_k$", xlim=(0, 7), ylim=(-0.8, 0.8))
    before = cgmm_dark.with_dark_colours(svg(figure))
    after = cgmm_light.compress_svg(before)
    assert len(after) < 0.7 * len(before)
    page, shown = browser.new_page(), []
    for text in (before, after):
        page.set_content(text)
        shown.append(np.asarray(Image.open(io.BytesIO(page.screenshot())), dtype=int))
    page.close()
    assert np.ptp(shown[0]) > 100
    # Coordinates are rounded differently in the two files, so edges of letters may differ a little.
    assert np.abs(shown[0] - shown[1]).max() <= 2
    assert " transform" not in re.findall(r'<use href="#\w+" x="[\d.]+"[^>]*>', after)[-1]
    assert "scale(0.015625)" in before
    assert "scale(0.015625)" not in after


def test_images_of_an_earlier_build_are_removed(tmp_path):
    for name in ("shown.svg", "old.svg", "frames/shown.webp", "frames/old.webp"):
        (tmp_path / "_images" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "_images" / name).touch()
    page = '<img src="_images/shown.svg#dark"><script>["../_images/frames/shown.webp"]</script>'
    (tmp_path / "index.html").write_text(page, encoding="utf8")
    cgmm_light.remove_old_images(tmp_path)
    left = {path.name for path in tmp_path.rglob("*.*") if path.is_file()}
    assert left == {"index.html", "shown.svg", "shown.webp"}


def test_compressed_svg_paths_keep_their_points():
    line = "M 1 2.5 \nL 57.25 -0.75 \nL 57.25 101.15 \nz\nM 3 3 \nQ 4 5 6.5 7 \n"
    assert cgmm_light.make_relative(line) == "m1 2.5l56.25-3.25 0 101.9zm2 .5q1 2 3.5 4"
