"""Fixtures: one explorer that tests only read, a browser page, and closed figures."""

from collections.abc import Callable, Iterator
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from moving_dot import make_explorer
from playwright.sync_api import Browser, Page

from cgmm.explore import Explorer

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Explorers</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
</head><body><main><h1>Explorers</h1>
{explorers}
</main></body></html>"""


@pytest.fixture(scope="session")
def explorer() -> Explorer:
    return make_explorer()


@pytest.fixture(autouse=True)
def _check_that_figures_are_closed():
    plt.close("all")
    yield
    assert not plt.get_fignums()


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Page]]:
    """Open a page with this HTML, and fail on any error of its scripts."""
    errors, contexts = [], []

    def open_html(html: str, width: int = 900, **options) -> Page:
        path = tmp_path / "page.html"
        path.write_text(PAGE.format(explorers=html), encoding="utf8")
        context = browser.new_context(viewport={"width": width, "height": 800}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(f"{message.text} {message.location}"))
        page.goto(path.as_uri())
        return page

    yield open_html
    for context in contexts:
        context.close()
    assert not errors
