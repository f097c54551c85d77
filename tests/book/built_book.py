"""Build the book, and open its pages in a browser, for the tests of the book."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import editions
import pytest
from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, Request
from sphinx_external_toc.parsing import parse_toc_yaml

ROOT = Path(__file__).parents[2]
# Options of `make book`.
BUILD = ["build", ".", "--all", "-W", "-n", "--keep-going"]
GENERATED = ["genindex", "search", "py-modindex"]
# The pages about the package are alike, so tests open the longest of each kind. test_package_pages
# reads all of them.
PACKAGE = "book/api/"
SAMPLE = [f"{PACKAGE}{name}" for name in ("index", "mixture", "mixture/ConstrainedGaussianMixture")]
# Environment of a process that must not use the network; see no_network/sitecustomize.py.
NO_NETWORK = {"PYTHONPATH": str(Path(__file__).parent / "no_network")}


# Open all folds, and wait until the formulas in them are resized, one animation frame later.
UNFOLD = """async () => {
  for (const fold of document.querySelectorAll("main details")) fold.open = true;
  const closed = "main button.toggle-button[aria-expanded=false]";
  for (const button of document.querySelectorAll(closed)) button.click();
  for (let n = 0; n < 3; n += 1) await new Promise(requestAnimationFrame);
}"""

SMALLEST = 0.7  # smallest scale of a formula, relative to the font size
# List display equations that are cut off without a sign, that scroll, or that are too small, and
# formulas that the tab key reaches although they do not scroll.
FORMULAS = """() => {
  const every = [...document.querySelectorAll(".bd-article mjx-container")];
  const all = every.filter(one => one.offsetWidth);
  const shown = all.filter(one => one.hasAttribute("display"));
  const name = one => one.closest("[id]").id;
  const scrolls = one => one.scrollWidth > one.clientWidth + 1;
  const hasSign = one => one.matches(".cgmm-more-right, .cgmm-more-left") && one.tabIndex === 0;
  const scale = one => parseFloat(one.querySelector("mjx-math").style.fontSize || "100%") / 100;
  return {
    cut: shown.filter(one => scrolls(one) && !hasSign(one)).map(name),
    scroll: all.filter(one => one.matches(".cgmm-scrolls")).map(name),
    small: all.filter(one => scale(one) < SMALLEST).map(name),
    stops: all.filter(one => one.tabIndex === 0 && !one.matches(".cgmm-scrolls")).map(name),
  };
}""".replace("SMALLEST", str(SMALLEST))
# List paragraphs in which a comma or full stop after a formula may wrap to the next line.
STRANDED = r"""() => [...document.querySelectorAll(".bd-article :is(p, li, dd) > .math")]
  .filter(one => /^[,.;:!?)\]’]/.test(one.nextSibling?.data ?? ""))
  .map(one => one.parentElement.textContent.slice(0, 80))"""


def list_pages() -> list[str]:
    """Return the names of all pages, except listings of source code, without building the book."""
    return [*sorted(parse_toc_yaml(ROOT / "_toc.yml")), *GENERATED]


def pages_to_visit() -> list[str]:
    """Return the pages that tests open: all of the book, and a sample of those on the package."""
    return [name for name in list_pages() if not name.startswith(PACKAGE) or name in SAMPLE]


def short_and_complete_editions(chapter: str, appendix: str) -> list:
    """Return the editions of the book to test: two pages, or all pages as a slow test."""
    return [
        pytest.param([("Part II", chapter), ("Back matter", appendix)], id="short"),
        pytest.param(editions.list_pages(), id="book", marks=pytest.mark.slow),
    ]


def build(project: Path) -> str:
    """Copy the sources and build as `make book` does; return its warnings and errors."""
    junk = shutil.ignore_patterns(".ipynb_checkpoints", "__pycache__")
    # The chapters show parts of the package's source code.
    for folder in ("book", "cgmm"):
        shutil.copytree(ROOT / folder, project / folder, ignore=junk)
    for name in ("_config.yml", "_toc.yml"):
        shutil.copy(ROOT / name, project)
    command = shutil.which("jupyter-book", path=str(Path(sys.executable).parent))
    log = project / "network.log"
    log.touch()
    run = subprocess.run(
        [command, *BUILD], cwd=project, capture_output=True, text=True, check=False,
        env=os.environ | NO_NETWORK | {"CGMM_NETWORK_LOG": str(log)},
    )  # fmt: skip
    if run.returncode == 0:
        return ""
    complaints = [line for line in run.stderr.splitlines() if re.search("WARNING|ERROR", line)]
    return "\n".join(complaints) or run.stdout[-3000:] + run.stderr[-3000:]


class Visit:
    """A page opened in the browser, with its requests and error messages."""

    def __init__(self, browser: Browser, site: Path, **options):
        defaults = {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"}
        self.context = browser.new_context(
            reduced_motion="reduce", offline=True, **(defaults | options)
        )
        self.page = page = self.context.new_page()
        self.site = site
        self.requests: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("requestfailed", self._record_missing_file)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", self._record_console_message)

    def _record_missing_file(self, request: Request) -> None:
        # The browser aborts requests when it leaves a page; their files are not missing.
        if request.failure != "net::ERR_ABORTED":
            self.complaints.append(f"missing: {request.url}")

    def _record_console_message(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.complaints.append(f"{message.type}: {message.text}")

    def open(self, name: str, fragment: str = "") -> Page:
        """Open a page by its name in the table of contents, and wait for typeset formulas."""
        self.page.goto((self.site / f"{name}.html").as_uri() + fragment)
        self.page.evaluate("window.MathJax?.startup?.promise.then(() => null)")
        return self.page

    def unfold(self) -> Page:
        """Open every fold of the page, and wait until its contents are laid out."""
        self.page.evaluate(UNFOLD)
        return self.page

    def show(self, *, theme: str = "light", width: int = 1280) -> Page:
        """Set the theme and the width of the open page."""
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.evaluate("theme => document.documentElement.dataset.theme = theme", theme)
        return self.page

    def close(self) -> None:
        """Close the page and clear its storage."""
        self.context.close()


@contextmanager
def open_for_module(
    browser: Browser, site: Path, name: str, fragment: str = "", **options
) -> Iterator[Visit]:
    """Open a page in the body of a fixture, and close it after the last test that uses it."""
    one = Visit(browser, site, **options)
    one.open(name, fragment)
    yield one
    one.close()


def read_frame(explorer: Locator) -> dict[str, str]:
    """Return the picture that an explorer shows, its text alternative and its announcement."""
    image = explorer.locator("img.cgmm-explorer-frame")
    return {
        "picture": image.get_attribute("src"),
        "alternative": image.get_attribute("alt"),
        "announcement": explorer.locator("[role=status]").inner_text(),
    }
