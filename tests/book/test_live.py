"""An explorer in a real JupyterLab on this machine: alive before the first run, and after it."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from built_book import ROOT
from playwright.sync_api import Browser, Page, expect

SECONDS_TO_START = 60
SECONDS_TO_RUN = 180
NO_PROXY = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Lab(NamedTuple):
    """A running JupyterLab."""

    address: str
    token: str
    folder: Path


@pytest.fixture
def lab(tmp_path) -> Iterator[Lab]:
    """JupyterLab on loopback, with settings and trust database of its own; always shut down."""
    folder = tmp_path / "notebooks"
    folder.mkdir()
    environment = os.environ | settings(tmp_path)
    prepare_notebook(folder / "live.ipynb", environment)
    port, token = free_port(), secrets.token_hex(16)
    lab = Lab(f"http://127.0.0.1:{port}", token, folder)
    log = tmp_path / "lab.log"
    with log.open("w") as sink:
        server = subprocess.Popen(
            command(lab, port), stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, env=environment
        )
    try:
        wait_until_it_answers(lab, server, log)
        yield lab
    finally:
        stop(lab, server)


def settings(home: Path) -> dict[str, str]:
    """Folders for everything that Jupyter would put into the user's home; every cell rendered."""
    tracker = home / "config/lab/user-settings/@jupyterlab/notebook-extension"
    tracker.mkdir(parents=True)
    whole = json.dumps({"windowingMode": "none"})
    (tracker / "tracker.jupyterlab-settings").write_text(whole, encoding="utf8")
    return {
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "IPYTHONDIR": str(home / "ipython"),
        # As `make lab` does.
        "JUPYTER_CONFIG_PATH": str(ROOT / "tools/lab"),
    }


def prepare_notebook(path: Path, environment: dict[str, str]) -> None:
    """Copy the first chapter that has an explorer; mark it as trusted."""
    chapters = sorted((ROOT / "book").glob("*.ipynb"))
    explores = (one for one in chapters if "Explorer(" in one.read_text("utf8"))
    shutil.copy(next(explores), path)
    trust = [sys.executable, "-m", "jupyter", "trust", str(path)]
    subprocess.run(trust, env=environment, check=True, capture_output=True)


def command(lab: Lab, port: int) -> list[str]:
    options = [
        "--no-browser",
        "--allow-root",
        "--expose-app-in-browser",
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0",
        f"--ServerApp.root_dir={lab.folder}",
        f"--IdentityProvider.token={lab.token}",
        "--LabApp.news_url=",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.extension_manager=readonly",
    ]
    return [sys.executable, "-m", "jupyterlab", *options]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def ask(lab: Lab, path: str, method: str = "GET") -> None:
    header = {"Authorization": f"token {lab.token}"}
    request = urllib.request.Request(f"{lab.address}/{path}", method=method, headers=header)
    NO_PROXY.open(request, timeout=5).close()


def wait_until_it_answers(lab: Lab, server: subprocess.Popen, log: Path) -> None:
    deadline = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < deadline and server.poll() is None:
        try:
            return ask(lab, "api/status")
        except OSError:
            time.sleep(0.2)
    pytest.fail(f"JupyterLab does not start:\n{log.read_text()}")


def stop(lab: Lab, server: subprocess.Popen) -> None:
    """Ask the server to shut down its kernels and itself; end it if it does not."""
    try:
        ask(lab, "api/shutdown", "POST")
        server.wait(timeout=15)
    except (OSError, subprocess.TimeoutExpired):
        server.terminate()
        try:
            server.wait(timeout=10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


@pytest.fixture
def notebook(lab: Lab, browser: Browser) -> Iterator[Page]:
    """The trusted notebook, opened in JupyterLab and not yet run."""
    context = browser.new_context(viewport={"width": 1400, "height": 1000})
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.goto(f"{lab.address}/lab/tree/live.ipynb?token={lab.token}")
    page.wait_for_function("window.jupyterapp?.shell?.currentWidget?.sessionContext")
    page.evaluate("window.jupyterapp.shell.currentWidget.sessionContext.ready")
    yield page
    context.close()


@pytest.mark.slow  # tests/explore moves the same explorer, with a kernel and in a page
def test_an_explorer_lives_in_jupyterlab(notebook):
    # The script has marked the stored page as ready: the notebook is trusted.
    stored = notebook.locator(".cgmm-explorer[data-ready]").first
    assert_it_moves(notebook, stored.locator("input[type=range]").first, stored)

    notebook.evaluate("window.jupyterapp.commands.execute('notebook:run-all-cells')")
    live = notebook.locator(".cgmm-explorer-live").first
    live.wait_for(timeout=1000 * SECONDS_TO_RUN)
    assert_it_moves(notebook, live.locator("[role=slider]").first, live)

    # The live figure as a widget asks the kernel for a fit, and draws its two ellipses.
    ask = notebook.get_by_role("button", name="Ask cgmm").first
    ask.wait_for(timeout=1000 * SECONDS_TO_RUN)
    ask.click()
    expect(notebook.locator(".cgmm-live .fitted")).to_have_count(2, timeout=1000 * SECONDS_TO_RUN)


def assert_it_moves(page: Page, slider, explorer) -> None:
    """Press the arrow on a slider: another picture, and another sentence."""
    image = explorer.locator("img").first
    image.scroll_into_view_if_needed()
    before, said = image.get_attribute("src"), explorer.inner_text()
    slider.focus()
    page.keyboard.press("ArrowRight")
    expect(image).not_to_have_attribute("src", before)
    assert explorer.inner_text() != said


TYPESET = """() => {
  const here = document.querySelector(".jp-NotebookPanel:not(.lm-mod-hidden)");
  const cells = [...here.querySelectorAll(".jp-MarkdownCell")];
  const folds = [...here.querySelectorAll(".jp-MarkdownCell details")];
  return {
    text: cells.map(one => one.innerText).join("\\n"),
    folds: folds.length,
    open: folds.filter(one => one.open).map(one => one.innerText.slice(0, 60)),
    equations: here.querySelectorAll(".jp-MarkdownCell .katex-display").length,
    boxes: here.querySelectorAll(".jp-MarkdownCell aside").length,
  };
}"""


@pytest.mark.slow  # test_reading_aids reads in the sources that each answer stands in a fold
@pytest.mark.parametrize("chapter", ["01_mixtures", "07_cannot_links"])
def test_chapters_are_typeset_in_jupyterlab_and_no_answer_is_open(lab, browser, chapter):
    path = shutil.copy(ROOT / "book" / f"{chapter}.ipynb", lab.folder)
    cells = json.loads(Path(path).read_text(encoding="utf8"))["cells"]
    source = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    context = browser.new_context(viewport={"width": 1400, "height": 1000})
    page = context.new_page()
    page.goto(f"{lab.address}/lab/tree/{chapter}.ipynb?token={lab.token}")
    page.locator(".jp-MarkdownCell details").first.wait_for(timeout=60_000)
    page.wait_for_function(
        "n => document.querySelectorAll('.jp-MarkdownCell details').length >= n",
        arg=source.count("{dropdown}") + source.count("{solution}"),
        timeout=60_000,
    )
    shown = page.evaluate(TYPESET)
    assert shown["open"] == []
    assert shown["equations"] > 5
    assert shown["boxes"] > 10
    assert not re.search(r"^:::|\{(?:cite|doc|term|prf|numref|py)\b", shown["text"], re.MULTILINE)
    # Citations are authors and years, not keys.
    assert len(re.findall(r"[a-zö.],? \[?\d{4}\]", shown["text"])) > 2, shown["text"][:1500]
    # The title of an erratum names the paper as the page of errata does.
    assert not re.search(r"(?<!Erratum: )\b[a-z]+(?:19|20)\d\d\b", shown["text"])
    context.close()
