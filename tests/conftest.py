"""What several test modules share: single-threaded kernels, and a browser without a network."""

from __future__ import annotations

import os
from collections.abc import Iterator

import chromium
import pytest
from hypothesis import settings
from notebooks import SINGLE_THREAD
from playwright.sync_api import Browser, sync_playwright

# Before a kernel of nbval starts: it inherits the environment of its worker.
os.environ.update(SINGLE_THREAD)

# A busy machine is no fault of the code; and what is tried is the same every time, but where
# somebody explores: CGMM_EXPLORE=1, as `make fuzz` does.
settings.register_profile("cgmm", deadline=None, derandomize="CGMM_EXPLORE" not in os.environ)
settings.load_profile("cgmm")


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """Path of an installed Chromium; without one the test is skipped, or fails where CI asks."""
    if found := chromium.find():
        return found
    if os.environ.get("CGMM_REQUIRE_BROWSER") == "1":
        pytest.fail(chromium.MISSING)
    pytest.skip(chromium.MISSING)


@pytest.fixture(scope="module")
def browser(chromium_path: str) -> Iterator[Browser]:
    """One headless browser a test module, cut off from every network."""
    with sync_playwright() as engine:
        browser = chromium.launch(engine)
        yield browser
        browser.close()
