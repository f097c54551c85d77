"""Make the grader importable with the course that the tests grade, and start a browser."""

import os
import shutil
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
COURSE = Path(os.environ.setdefault("MARKAPART_COURSE", str(HERE.parents[1])))
sys.path[:0] = [str(HERE.parent), str(HERE)]

from boxes import boxes  # noqa: E402, F401 (the fixture; the lines above say where it is)

# A source distribution has no solutions: nothing can be graded there.
if not (COURSE / "source").is_dir():
    collect_ignore_glob = ["test_*.py"]

BROWSERS = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]


@pytest.fixture(scope="module")
def browser():
    """Return a browser without a window and a network; skip its tests where none is installed."""
    engine = pytest.importorskip("playwright.sync_api").sync_playwright
    path = os.environ.get("CGMM_CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        stop = pytest.fail if os.environ.get("CGMM_REQUIRE_BROWSER") == "1" else pytest.skip
        stop("no Chromium found: install it (Debian: apt install chromium)")
    flags = ["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND"]
    with engine() as started:
        browser = started.chromium.launch(executable_path=path, args=flags)
        yield browser
        browser.close()
