"""Find and start the installed Chromium.

Tests open pages in it; slides, papers, the PDF and the EPUB are laid out and printed with it.
"""

from __future__ import annotations

import os
import shutil

from playwright.sync_api import Browser, Playwright

NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # No host name resolves, so that pages cannot reach any network except this machine.
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
]
MISSING = "no Chromium found: install it (Debian: apt install chromium) or set CGMM_CHROMIUM"


def find() -> str | None:
    """Return the path of an installed Chromium, or None."""
    return os.environ.get("CGMM_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


def launch(engine: Playwright) -> Browser:
    """Start Chromium without a window and without access to the network."""
    found = find()
    if found is None:
        raise SystemExit(MISSING)
    return engine.chromium.launch(executable_path=found, args=FLAGS)
