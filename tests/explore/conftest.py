"""Fixtures: an explorer that no test changes, pages in a browser, and a check of open figures."""

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

# Render the widget with a stand-in for the model that Jupyter's widget manager would pass.
WIDGET_HOST = """async ({esm, html, style}) => {
    const url = URL.createObjectURL(new Blob([esm], {type: "text/javascript"}));
    const module = await import(url);
    window.kept = {html}; window.sent = []; window.heard = {};
    const model = {
        get: (name) => window.kept[name], set: (given) => Object.assign(window.kept, given),
        save_changes: () => {}, send: (message) => window.sent.push(message),
        on: (event, act) => { window.heard[event] = act; },
    };
    document.head.append(Object.assign(document.createElement("style"), {textContent: style}));
    const place = document.body.appendChild(document.createElement("div"));
    module.default.render({model, el: place});
}"""


@pytest.fixture(scope="session")
def explorer() -> Explorer:
    return make_explorer()


@pytest.fixture(autouse=True)
def _check_that_figures_are_closed():
    plt.close("all")
    yield
    assert not plt.get_fignums()


@pytest.fixture
def open_url(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Return a function that opens an address; errors of the page's scripts fail the test."""
    errors, contexts = [], []

    def open_in_new_context(url: str, **options) -> Page:
        contexts.append(browser.new_context(**options))
        page = contexts[-1].new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(f"{message.text} {message.location}"))
        page.goto(url)
        return page

    yield open_in_new_context
    for context in contexts:
        context.close()
    # A page may lose its connection to a server that a test has stopped.
    assert not [error for error in errors if "ERR_CONNECTION" not in error]


@pytest.fixture
def open_page(open_url: Callable[..., Page], tmp_path: Path) -> Callable[..., Page]:
    """Return a function that writes HTML to a page and opens it."""

    def open_html(html: str, width: int = 900, **options) -> Page:
        path = tmp_path / "page.html"
        path.write_text(PAGE.format(explorers=html), encoding="utf8")
        return open_url(path.as_uri(), viewport={"width": width, "height": 800}, **options)

    return open_html


@pytest.fixture
def show_widget() -> Callable[..., None]:
    """Return a function that renders a live figure's widget at the end of a page."""
    return lambda page, widget: page.evaluate(
        WIDGET_HOST, {"esm": widget._esm, "html": widget.html, "style": widget._css}
    )
