"""Test the pages about the package: every method has an entry, and no description is empty."""

import inspect
import re
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest
from bs4 import BeautifulSoup, Tag
from built_book import PACKAGE, list_pages

import cgmm

PAGES = [name for name in list_pages() if name.startswith(PACKAGE)]
# Base classes of scikit-learn whose methods have no entries on our pages.
ELSEWHERE = {"BaseEstimator", "_MetadataRequester", "ReprHTMLMixin", "_HTMLDocumentationLinkMixin"}
REQUEST = re.compile(r"set_\w+_request")
CLASSES = [
    pytest.param(f"{subpackage}.{name}", id=f"{subpackage}.{name}".removeprefix("cgmm."))
    for subpackage in sorted(f"cgmm.{module.name}" for module in iter_modules(cgmm.__path__))
    for name in getattr(import_module(subpackage), "__all__", ())
    if inspect.isclass(getattr(import_module(subpackage), name))
]


@cache
def parse_page(path: Path) -> BeautifulSoup:
    """Parse the HTML of a page once for all tests."""
    return BeautifulSoup(path.read_text(encoding="utf8"), "html.parser")


def parse_page_of_class(site: Path, name: str) -> BeautifulSoup:
    """Parse the page of a class, e.g. cgmm.mixture.ConstrainedGaussianMixture."""
    return parse_page(site / f"book/{name.replace('cgmm.', 'api/').replace('.', '/')}.html")


def list_public_members(cls: type) -> set[str]:
    """Return the public methods and properties that this package or scikit-learn defines."""
    found = [one for one in inspect.classify_class_attrs(cls) if one.kind != "data"]
    return {
        name for name, _, of, _ in found
        if of.__module__.startswith(("cgmm.", "sklearn.")) and of.__name__ not in ELSEWHERE
        and not name.startswith("_") and not REQUEST.fullmatch(name)
    }  # fmt: skip


def find_empty_descriptions(article: Tag) -> list[str]:
    """Return all entries, fields and list items of a page whose description is empty."""
    entries = [
        one.parent.select_one("dt") for one in article.select("dl.py > dd") if not text_of(one)
    ]
    fields = article.select("dl.field-list > dd")
    items = [
        item for field in fields for item in field.select("ul.simple > li, ol > li") or [field]
    ]
    # An item without a description is empty or ends in the dash after its name and type.
    empty = [
        one for one in [*fields, *items]
        if not text_of(one) or text_of(one).endswith("–") or one.select("li:empty, ol:empty")
    ]  # fmt: skip
    return [" ".join(one.get_text().split()) for one in [*entries, *empty]]


def text_of(element: Tag) -> str:
    """Return the text of an element without white space around it."""
    return element.get_text(strip=True)


def test_no_description_is_empty(site):
    for name in PAGES:
        article = parse_page(site / f"{name}.html").select_one("article")
        assert find_empty_descriptions(article) == [], name
        # Every parameter has a type and a description.
        assert not article.select("dl.field-list > dd > strong:only-child"), name


@pytest.mark.parametrize("name", CLASSES)
def test_every_public_method_has_its_entry_and_a_row_in_the_table(site, name):
    subpackage, _, short = name.rpartition(".")
    cls = getattr(import_module(subpackage), short)
    page = parse_page_of_class(site, name)
    entries = {entry["id"] for entry in page.select("dl.py > dt[id]")}
    assert entries >= {name, *(f"{name}.{member}" for member in list_public_members(cls))}
    linked = {link["href"].rpartition(".")[2] for link in page.select("table a.internal")}
    methods = {one for one in list_public_members(cls) if inspect.isroutine(getattr(cls, one))}
    assert linked >= methods
    if hasattr(cls, "get_params"):
        assert page.select("a[href$='sklearn.base.BaseEstimator.html']")


# ------------------------------------------------------------------------------ in a browser


def test_addresses_on_the_former_api_page_redirect_to_new_pages(visit, site):
    page = visit("book/api/numerics").page
    for old, new in [
        ("", "api/index.html"),
        ("#cgmm.mixture.em", "api/mixture.html#cgmm.mixture.em"),
        ("#module-cgmm.inference.gibbs", "api/inference/gibbs.html#module-cgmm.inference.gibbs"),
    ]:
        page.goto((site / "book/api.html").as_uri() + old)
        page.wait_for_url(f"**/book/{new}")


def test_the_former_api_page_links_to_entries_when_scripts_are_off(visit):
    page = visit("book/api", java_script_enabled=False).page
    link = page.locator("[id='cgmm.mixture.em'] a")
    assert link.get_attribute("href") == "api/mixture.html#cgmm.mixture.em"


def test_the_former_api_page_has_each_anchor_once(site):
    anchors = [one["id"] for one in parse_page(site / "book/api.html").select("[id]")]
    assert len(anchors) > 500
    assert len(anchors) == len(set(anchors))


def test_source_pages_link_to_existing_entries(site):
    dead = []
    for path in sorted((site / "_modules").rglob("*.html")):
        for link in re.findall(r'viewcode-back" href="([^"]+)"', path.read_text(encoding="utf8")):
            page, _, anchor = link.partition("#")
            if not parse_page((path.parent / page).resolve()).find(id=anchor):
                dead.append(link)
    assert dead == []


@pytest.mark.parametrize("name", CLASSES)
def test_page_of_a_class_begins_with_a_sentence_and_folds_parameters(site, name):
    page = parse_page_of_class(site, name)
    first = page.select_one("article h1").find_next_sibling()
    assert first.name == "p"
    assert first.get_text(strip=True).endswith(".")
    description = page.select_one("article dl.py > dd")
    paragraphs = description.find_all("p", recursive=False)
    assert len(paragraphs) < 2 or paragraphs[0].get_text() != first.get_text()
    for parameters in page.select(".cgmm-parameters"):
        assert parameters.parent.name == "details"
        assert not parameters.parent.has_attr("open")
