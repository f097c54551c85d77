"""Test an explorer in a real JupyterLab on this machine, before and after its first run."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from built_book import ROOT
from jupyter_server.serverapp import list_running_servers
from playwright.sync_api import Browser, Page, expect

SECONDS = 180  # Seconds to start a server, and to run a chapter.
OPTIONS = [
    "--no-browser", "--allow-root", "--expose-app-in-browser", "--ServerApp.ip=127.0.0.1",
    "--LabApp.news_url=", "--LabApp.extension_manager=readonly",
    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
]  # fmt: skip


@pytest.fixture
def open_in_lab(tmp_path, browser: Browser) -> Iterator[Callable[[str], Page]]:
    """Yield a function that opens a copy of a chapter in a JupyterLab on the loopback interface.

    The server has its own settings and trust database, and is shut down after the test.
    """
    folder, log = tmp_path / "notebooks", tmp_path / "lab.log"
    folder.mkdir()
    with log.open("w") as sink:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *OPTIONS, f"--ServerApp.root_dir={folder}"],
            env=lab_environment(tmp_path), stdin=subprocess.DEVNULL, stdout=sink, stderr=sink,
        )  # fmt: skip

    def open_chapter(name: str) -> Page:
        info = wait_for_server(tmp_path / "runtime", server, log)
        shutil.copy(ROOT / "book" / name, folder)
        page = browser.new_context(viewport={"width": 1400, "height": 1000}).new_page()
        page.set_default_timeout(60_000)
        page.goto(f"{info['url']}lab/tree/{name}?token={info['token']}")
        return page

    try:
        yield open_chapter
    finally:
        server.terminate()  # The server stops its kernels.
        server.wait(60)


def lab_environment(home: Path) -> dict[str, str]:
    """Return environment variables that keep JupyterLab's files in ``home``, and its settings."""
    tracker = home / "config/lab/user-settings/@jupyterlab/notebook-extension"
    tracker.mkdir(parents=True)
    whole = json.dumps({"windowingMode": "none"})
    (tracker / "tracker.jupyterlab-settings").write_text(whole, encoding="utf8")
    return os.environ | {
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "IPYTHONDIR": str(home / "ipython"),
        # `make lab` uses this folder of settings, too.
        "JUPYTER_CONFIG_PATH": str(ROOT / "tools/lab"),
    }


def wait_for_server(runtime: Path, server: subprocess.Popen, log: Path) -> dict[str, str]:
    """Wait until the server runs, and return its address and token."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        for info in list_running_servers(str(runtime)):
            return info
        time.sleep(0.2)
    pytest.fail(f"JupyterLab does not start:\n{log.read_text()}")


@pytest.mark.slow  # tests/explore tests the same explorer with a kernel and as a static page.
def test_explorer_works_in_jupyterlab_before_and_after_its_first_run(open_in_lab, tmp_path):
    chapters = sorted((ROOT / "book").glob("*.ipynb"))
    name = next(one.name for one in chapters if "Explorer(" in one.read_text("utf8"))
    trust = [sys.executable, "-m", "jupyter", "trust", str(ROOT / "book" / name)]
    home = {"JUPYTER_DATA_DIR": str(tmp_path / "data")}
    subprocess.run(trust, env=os.environ | home, check=True, capture_output=True)
    notebook = open_in_lab(name)
    notebook.wait_for_function("window.jupyterapp?.shell?.currentWidget?.sessionContext")
    notebook.evaluate("window.jupyterapp.shell.currentWidget.sessionContext.ready")
    # The script of the stored page ran, so the notebook is trusted.
    stored = notebook.locator(".cgmm-explorer[data-ready]").first
    assert_slider_changes_frame(notebook, stored.locator("input[type=range]").first, stored)

    notebook.evaluate("window.jupyterapp.commands.execute('notebook:run-all-cells')")
    live = notebook.locator(".cgmm-explorer-live").first
    live.wait_for(timeout=1000 * SECONDS)
    assert_slider_changes_frame(notebook, live.locator("[role=slider]").first, live)

    # As a widget, the live figure requests a fit from the kernel and draws its two ellipses.
    ask = notebook.get_by_role("button", name="Ask cgmm").first
    ask.wait_for(timeout=1000 * SECONDS)
    ask.click()
    expect(notebook.locator(".cgmm-live .fitted")).to_have_count(2, timeout=1000 * SECONDS)


def assert_slider_changes_frame(page: Page, slider, explorer) -> None:
    """Check that an arrow key on a slider changes the picture and the sentence."""
    image = explorer.locator("img").first
    image.scroll_into_view_if_needed()
    before, text = image.get_attribute("src"), explorer.inner_text()
    slider.focus()
    page.keyboard.press("ArrowRight")
    expect(image).not_to_have_attribute("src", before)
    assert explorer.inner_text() != text
