"""The installed Chromium: tests look at pages with it, slides and papers are printed by it."""

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
    # Whatever a page asks for, no name resolves; loopback needs no name.
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
]
MISSING = "no Chromium found: install it (Debian: apt install chromium) or set CGMM_CHROMIUM"


def find() -> str | None:
    """Path of a Chromium, if there is one."""
    return os.environ.get("CGMM_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


def launch(engine: Playwright) -> Browser:
    """Start it without a window and cut off from every network."""
    found = find()
    if found is None:
        raise SystemExit(MISSING)
    return engine.chromium.launch(executable_path=found, args=FLAGS)
