"""Define fixtures that build the book once for all tests and open its pages in a browser."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from built_book import Visit, build
from filelock import FileLock
from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def built(tmp_path_factory) -> tuple[Path, str]:
    """Return the folder of the built pages, and the warnings of the build.

    If the environment variable CGMM_BOOK names pages that `make book` built without a warning,
    they are used instead of a new build.
    """
    if given := os.environ.get("CGMM_BOOK"):
        return Path(given).resolve(), ""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    project, complaints = shared / "book-project", shared / "book-complaints.txt"
    with FileLock(shared / "book.lock"):
        if not complaints.exists():
            complaints.write_text(build(project), encoding="utf8")
    return project / "_build/html", complaints.read_text(encoding="utf8")


@pytest.fixture(scope="session")
def site(built: tuple[Path, str]) -> Path:
    """Return the folder of the built pages, also if the build gave warnings."""
    folder, complaints = built
    if not (folder / "book/index.html").exists():
        pytest.fail(f"the book was not built: {complaints}", pytrace=False)
    return folder


@pytest.fixture
def visit(browser: Browser, site: Path) -> Iterator[Callable[..., Visit]]:
    """Yield ``visit(name, fragment, **options)``, which opens a page in a new browser context."""
    visits = []

    def visit(name: str, fragment: str = "", **options) -> Visit:
        visits.append(Visit(browser, site, **options))
        visits[-1].open(name, fragment)
        return visits[-1]

    yield visit
    for one in visits:
        one.close()
