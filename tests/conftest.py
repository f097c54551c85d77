"""What several test modules share: single-threaded kernels, and a browser without a network."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from hypothesis import settings
from notebooks import SINGLE_THREAD
from playwright.sync_api import Browser, sync_playwright

# Before a kernel of nbval starts: it inherits the environment of its worker.
os.environ.update(SINGLE_THREAD)

# A busy machine is no fault of the code; and what CI tries is the same every time.
settings.register_profile("cgmm", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("cgmm")

BROWSERS = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]
BROWSER_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Whatever a page asks for, no name resolves; loopback needs no name.
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
]


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """Path of an installed Chromium; without one the test is skipped, or fails where CI asks."""
    found = os.environ.get("CGMM_CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if found:
        return found
    reason = "no Chromium found: install it (Debian: apt install chromium) or set CGMM_CHROMIUM"
    if os.environ.get("CGMM_REQUIRE_BROWSER") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def browser(chromium_path: str) -> Iterator[Browser]:
    """One headless browser a test module, cut off from every network."""
    with sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=chromium_path, args=BROWSER_FLAGS)
        yield browser
        browser.close()
