"""Test the EPUB: complete and valid, formulas as MathML, nothing cut off on a small tablet."""

import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import epub
import pytest
from bs4 import BeautifulSoup
from built_book import short_and_complete_editions

CHAPTER = "book/07_cannot_links"
XHTML = "{http://www.w3.org/1999/xhtml}"
MATHML = "{http://www.w3.org/1998/Math/MathML}"
# List elements wider than a reader's page, missing pictures, and formulas that remained TeX.
VISIBLE = r"""() => {
  const cut = [...document.querySelectorAll("div.math, pre, table, img")]
    .filter(one => one.scrollWidth > one.clientWidth + 1 || one.offsetLeft + one.offsetWidth > 600);
  const missing = [...document.images].filter(one => !one.naturalWidth).map(one => one.src);
  document.querySelectorAll("pre, code").forEach(one => one.remove());
  const raw = document.body.textContent.match(/\\[a-zA-Z(\[]+|\$\$|\{[a-z:]+\}`/g) ?? [];
  return [...cut.map(one => one.textContent.slice(0, 40)), ...missing, ...raw];
}"""


@pytest.fixture(scope="module", params=short_and_complete_editions(CHAPTER, "book/notation"))
def edition(request, chromium_path, site, tmp_path_factory):
    """Return the EPUB, its unpacked pages, and their names in the book."""
    path: Path = tmp_path_factory.mktemp("epub") / "cgmm.epub"
    # A separate thread is needed because an earlier test may have a browser open in this one.
    with ThreadPoolExecutor(1) as maker:
        maker.submit(epub.make_epub, site, path, request.param).result()
    with zipfile.ZipFile(path) as archive:
        assert archive.namelist()[0] == "mimetype"
        archive.extractall(path.parent)
    return path, path.parent / "book", [name for _, name in request.param]


def page(folder: Path, name: str) -> ET.Element:
    return ET.parse(folder / f"{Path(name).name}.xhtml").getroot()


# All the following tests run on two pages, which are the short edition.
@pytest.mark.slow
def test_the_epub_is_valid(edition):
    path, *_ = edition
    if not (checker := shutil.which("epubcheck")):
        pytest.skip("no epubcheck found (Debian: apt install epubcheck)")
    command = ["java", "-jar", checker] if shutil.which("java") else [checker]
    run = subprocess.run([*command, path], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_every_formula_and_figure_of_a_page_is_in_the_epub(edition, site):
    _, folder, names = edition
    for name in names:
        html = BeautifulSoup((site / f"{name}.html").read_text(encoding="utf8"), "html.parser")
        article, read = html.select_one("article"), page(folder, name)
        assert len(read.findall(f".//{MATHML}math")) == len(article.select(".math"))
        assert len(read.findall(f".//{XHTML}figure")) == len(article.select("figure"))
        assert all(image.get("alt") for image in read.iter(f"{XHTML}img"))


def test_folds_are_open_and_solutions_come_last_in_the_epub(edition):
    _, folder, names = edition
    for name in names:
        tags = {one.tag.removeprefix(XHTML) for one in page(folder, name).iter()}
        assert not tags & {"details", "summary", "button", "script", "form", "svg"}
    text = re.sub(r"\s+", " ", "".join(page(folder, CHAPTER).itertext()))
    assert "Given a graph, take one point for each vertex" in text
    assert text.index("Exercise 7.6 (") < text.index("Solution to Exercise 7.1")


def test_links_of_the_epub_have_targets(edition):
    _, folder, names = edition
    files = [f"{Path(name).name}.xhtml" for name in names]
    ids = {file: {one.get("id") for one in page(folder, file[:-6]).iter()} for file in files}
    within = 0
    for file in ["nav.xhtml", *files]:
        for link in page(folder, file[:-6]).iter(f"{XHTML}a"):
            target, _, id = link.get("href", "https://").partition("#")
            if not re.match(r"https?://", target):
                assert {id} - {""} <= ids[target], (file, target)
                within += 1
    assert within > 15 * len(names)


def test_epub_pages_fit_a_small_tablet(edition, browser):
    _, folder, names = edition
    context = browser.new_context(viewport={"width": 600, "height": 900}, offline=True)
    sheet = context.new_page()
    faults = {}
    for name in names:
        sheet.goto((folder / f"{Path(name).name}.xhtml").as_uri())
        if found := sheet.evaluate(VISIBLE):
            faults[name] = found
    context.close()
    assert faults == {}
