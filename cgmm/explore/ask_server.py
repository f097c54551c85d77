"""Serve an interview as a page on this machine only, without a notebook.

The page runs the widget's own script with a small stand-in for anywidget's model, which passes
state and messages through a web socket of tornado. Every request needs the token of the address;
pages of other sites cannot reach it. ``ask.py`` starts it; chapter 15.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Callable
from importlib.resources import files
from typing import Any

from cgmm.explore.interview_widget import SCRIPT, STYLE, InterviewWidget

PAGE = files("cgmm.explore").joinpath("ask.html").read_text(encoding="utf8")
POLICY = (
    "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; "
    "img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'"
)


def serve(asking: InterviewWidget, port: int, announce: Callable[[str], object]) -> None:
    """Serve a page with an interview until the process is interrupted.

    Parameters
    ----------
    asking : InterviewWidget
        The interview and what it shows.
    port : int
        Port on the loopback interface; 0 takes a free one.
    announce : callable
        Called with the address of the page when it can be opened.

    Raises
    ------
    ImportError
        If tornado is missing.
    OSError
        If the port is taken.
    """
    try:
        import tornado.httpserver
        import tornado.netutil
    except ImportError as error:
        raise ImportError(
            "the page needs tornado: install it with pip install 'constrained-mixtures[ask]'"
        ) from error

    async def run() -> None:
        token = secrets.token_urlsafe(16)
        sockets = tornado.netutil.bind_sockets(port, "127.0.0.1")
        server = tornado.httpserver.HTTPServer(_application(asking, token))
        server.add_sockets(sockets)
        announce(f"http://127.0.0.1:{sockets[0].getsockname()[1]}/?token={token}")
        await asyncio.Event().wait()

    asyncio.run(run())


def _application(asking: InterviewWidget, token: str) -> Any:
    """Return the two handlers: the page, and the socket that its script opens."""
    import tornado.web
    import tornado.websocket

    class Guarded(tornado.web.RequestHandler):
        def prepare(self) -> None:
            given = self.get_query_argument("token", "").encode()
            # A foreign name that resolves to this machine would pass as the same site.
            local = self.request.host_name in ("127.0.0.1", "localhost")
            if not (local and secrets.compare_digest(given, token.encode())):
                raise tornado.web.HTTPError(403, reason="Open the address that cgmm printed")

    class PageHandler(Guarded):
        def get(self) -> None:
            nonce = secrets.token_urlsafe(16)
            self.set_header("Content-Security-Policy", POLICY.format(nonce=nonce))
            self.set_header("Referrer-Policy", "no-referrer")
            self.set_header("Cache-Control", "no-store")
            self.write(_page(nonce))

    class Socket(Guarded, tornado.websocket.WebSocketHandler):
        opened: set[Any] = set()

        def open(self, *args: str, **kwargs: str) -> None:
            self.opened.add(self)
            self.write_message(json.dumps(asking.state()))

        def on_close(self) -> None:
            self.opened.discard(self)

        def on_message(self, message: str | bytes) -> None:
            asking.receive(json.loads(message))
            state = json.dumps(asking.state())
            for socket in self.opened:
                socket.write_message(state)

    return tornado.web.Application([("/", PageHandler), ("/socket", Socket)])


def _page(nonce: str) -> str:
    # This page inlines the script and calls ``render`` itself, so the export for anywidget goes.
    script = SCRIPT.replace("export default { render };", "")
    return PAGE.replace("{nonce}", nonce).replace("{style}", STYLE).replace("{script}", script)
