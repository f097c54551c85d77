"""Pages in Firefox, where Debian's firefox-esr is installed; Chromium sees all of them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from built_book import FORMULAS, STRANDED, UNFOLD

FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
PAGES = ["book/02_em", "book/07_cannot_links", "book/api/mixture", "book/using", "search"]
WIDTHS = [390, 1280]
# Nothing is asked of a network: no updates, no pages of its own, and a proxy that does not exist.
SETTINGS = {
    "app.update.disabledForTesting": True,
    "browser.startup.page": 0,
    "datareporting.policy.dataSubmissionEnabled": False,
    "network.proxy.http": "127.0.0.1",
    "network.proxy.http_port": 9,
    "network.proxy.ssl": "127.0.0.1",
    "network.proxy.ssl_port": 9,
    "network.proxy.type": 1,
    "toolkit.telemetry.enabled": False,
}
# Formulas are set, and fitted to the width.
FITTED = """async () => {
  while (widthSeen !== innerWidth) await new Promise(requestAnimationFrame);
}"""
SEEN = """() => {
  return JSON.stringify({
    wide: Math.max(0, document.scrollingElement.scrollWidth - innerWidth),
    raw: document.querySelectorAll(".math:not(:has(mjx-container))").length,
    wrong: document.querySelectorAll("mjx-merror").length,
  });
}"""

pytestmark = [
    pytest.mark.skipif(FIREFOX is None, reason="no Firefox: apt install firefox-esr"),
    pytest.mark.slow,  # test_pages asks the same of Chromium
]


class Firefox:
    """One window, driven by WebDriver BiDi, which Firefox speaks without a driver."""

    def __init__(self, address: str):
        # Imported here: it is of jupyter-server, and no test needs it without a Firefox.
        from websocket import create_connection

        self.socket = create_connection(f"{address}/session", suppress_origin=True, timeout=120)
        self.count, self.complaints = 0, []
        self.ask("session.new", capabilities={})
        self.ask("session.subscribe", events=["log.entryAdded"])
        self.window = self.ask("browsingContext.getTree")["contexts"][0]["context"]

    def ask(self, method: str, **parameters) -> dict:
        """Send a command and wait for its answer; what pages complain of meanwhile is kept."""
        self.count += 1
        self.socket.send(json.dumps({"id": self.count, "method": method, "params": parameters}))
        while (answer := json.loads(self.socket.recv())).get("id") != self.count:
            said = answer.get("params", {})
            if said.get("level") == "error":
                self.complaints.append(said.get("text"))
        assert answer["type"] == "success", answer
        return answer["result"]

    def open(self, url: str) -> None:
        self.ask("browsingContext.navigate", context=self.window, url=url, wait="complete")

    def resize(self, width: int) -> None:
        size = {"width": width, "height": 900}
        self.ask("browsingContext.setViewport", context=self.window, viewport=size)

    def run(self, function: str) -> str:
        """The text that a function of the page returns."""
        answer = self.ask(
            "script.evaluate", expression=f"({function})()", target={"context": self.window},
            awaitPromise=True,
        )  # fmt: skip
        assert answer["type"] == "success", answer
        return answer["result"].get("value", "")


@pytest.fixture(scope="module")
def firefox(tmp_path_factory) -> Iterator[Firefox]:
    profile: Path = tmp_path_factory.mktemp("firefox")
    lines = [f"user_pref({json.dumps(key)}, {json.dumps(to)});" for key, to in SETTINGS.items()]
    (profile / "user.js").write_text("\n".join(lines), encoding="utf8")
    command = [FIREFOX, "--headless", "--no-remote", "--profile", profile]
    process = subprocess.Popen(
        [*command, "--remote-debugging-port", "0"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        address = next(filter(None, (re.search(r"ws://[\w.:]+", line) for line in process.stderr)))
        yield Firefox(address[0])
    finally:
        process.terminate()
        process.wait(timeout=30)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_in_firefox(firefox, site, name):
    for width in WIDTHS:
        firefox.resize(width)
        firefox.open((site / f"{name}.html").as_uri())
        firefox.run(FITTED)
        firefox.run(UNFOLD)
        assert json.loads(firefox.run(SEEN)) == {"wide": 0, "raw": 0, "wrong": 0}
        found = json.loads(firefox.run(f"() => JSON.stringify(({FORMULAS})())"))
        assert found["cut"] == found["small"] == found["stops"] == []
        assert len(found["scroll"]) <= 1
        assert json.loads(firefox.run(f"() => JSON.stringify(({STRANDED})())")) == []
    assert not firefox.complaints
