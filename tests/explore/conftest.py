"""One explorer for all that only look at it, a page in a browser; and no figure stays open."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from moving_dot import make
from playwright.sync_api import Browser, Page

from cgmm.explore import Explorer

PAGE = """<!doctype html>
<html lang="en" data-theme="light"><head><meta charset="utf-8"><title>Explorers</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
{styles}
</head><body><main class="bd-content" style="display: block"><h1>Explorers</h1>
{explorers}
</main></body></html>"""


def style_sheets(folder: Path) -> str:
    """The theme of the book, from the installed packages, where a built page would have it."""
    links = []
    for name in ("pydata_sphinx_theme", "sphinx_book_theme"):
        package = Path(importlib.util.find_spec(name).origin).parent
        source = package / "theme" / name / "static" / "styles"
        shutil.copytree(source, folder / "_static" / "styles", dirs_exist_ok=True)
    # Sphinx writes this one itself.
    (folder / "_static" / "basic.css").touch()
    for name in ("theme", "pydata-sphinx-theme", "sphinx-book-theme"):
        assert (folder / "_static" / "styles" / f"{name}.css").exists()
        links.append(f'<link rel="stylesheet" href="_static/styles/{name}.css">')
    return "\n".join(links)


@pytest.fixture(scope="session")
def explorer() -> Explorer:
    return make()


@pytest.fixture(autouse=True)
def _no_figure_is_left_over():
    plt.close("all")
    yield
    assert not plt.get_fignums()


@pytest.fixture(scope="module")
def theme(tmp_path_factory) -> tuple[Path, str]:
    """A folder with the book's style sheets, and the links to them."""
    folder = tmp_path_factory.mktemp("theme")
    return folder, style_sheets(folder)


@pytest.fixture
def open_page(browser: Browser, theme: tuple[Path, str]) -> Iterator[Callable[..., Page]]:
    """Open a page of the theme that holds this html; no error may occur on it."""
    errors, contexts = [], []
    folder, styles = theme

    def open_one(html: str, width: int = 900, **options) -> Page:
        path = folder / "page.html"
        path.write_text(PAGE.format(styles=styles, explorers=html), encoding="utf8")
        context = browser.new_context(viewport={"width": width, "height": 800}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(f"{message.text} {message.location}"))
        page.goto(path.as_uri())
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert not errors
