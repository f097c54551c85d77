"""Serve the page of an interview on the loopback interface, without a notebook.

The page runs the same script as the widget. A small object replaces anywidget's model and sends
state and messages through a web socket of tornado. Every request needs the token from the address,
so pages of other sites cannot reach the server. ``ask.py`` calls ``serve``; chapter 15 explains
interviews.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Callable
from importlib.resources import files
from typing import Any

from cgmm.explore.controls import explain_missing_package
from cgmm.explore.interview_widget import SCRIPT, STYLE, InterviewWidget

PAGE = files("cgmm.explore").joinpath("ask.html").read_text(encoding="utf8")
POLICY = (
    "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; "
    "img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'"
)


def serve(interview_widget: InterviewWidget, port: int, announce: Callable[[str], object]) -> None:
    """Serve the page of an interview until the process is interrupted.

    Parameters
    ----------
    interview_widget : InterviewWidget
        The interview, and the rows to show.
    port : int
        Port on the loopback interface; 0 chooses a free one.
    announce : callable
        Function that is called with the address of the page once the server is ready.

    Raises
    ------
    ImportError
        If tornado is missing.
    OSError
        If the port is taken.
    """
    with explain_missing_package("tornado", "the page", "ask"):
        import tornado.httpserver
        import tornado.netutil

    async def run_server() -> None:
        token = secrets.token_urlsafe(16)
        sockets = tornado.netutil.bind_sockets(port, "127.0.0.1")
        server = tornado.httpserver.HTTPServer(_build_application(interview_widget, token))
        server.add_sockets(sockets)
        announce(f"http://127.0.0.1:{sockets[0].getsockname()[1]}/?token={token}")
        await asyncio.Event().wait()

    asyncio.run(run_server())


def _build_application(interview_widget: InterviewWidget, token: str) -> Any:
    """Return a web application with two handlers: one for the page, one for its web socket."""
    import tornado.web
    import tornado.websocket

    class TokenHandler(tornado.web.RequestHandler):
        def prepare(self) -> None:
            received = self.get_query_argument("token", "").encode()
            # The name of another site may resolve to this machine, so check the host name of the
            # request in addition to the token.
            is_local = self.request.host_name in ("127.0.0.1", "localhost")
            if not (is_local and secrets.compare_digest(received, token.encode())):
                raise tornado.web.HTTPError(403, reason="Open the address that cgmm printed")

    class PageHandler(TokenHandler):
        def get(self) -> None:
            nonce = secrets.token_urlsafe(16)
            self.set_header("Content-Security-Policy", POLICY.format(nonce=nonce))
            self.set_header("Referrer-Policy", "no-referrer")
            self.set_header("Cache-Control", "no-store")
            self.write(_build_page(nonce))

    class SocketHandler(TokenHandler, tornado.websocket.WebSocketHandler):
        open_sockets: set[Any] = set()

        def open(self, *args: str, **kwargs: str) -> None:
            self.open_sockets.add(self)
            self.write_message(json.dumps(interview_widget.state()))

        def on_close(self) -> None:
            self.open_sockets.discard(self)

        def on_message(self, message: str | bytes) -> None:
            interview_widget.receive(json.loads(message))
            state = json.dumps(interview_widget.state())
            for socket in self.open_sockets:
                socket.write_message(state)

    return tornado.web.Application([("/", PageHandler), ("/socket", SocketHandler)])


def _build_page(nonce: str) -> str:
    """Return the HTML of the page, with style and script inside."""
    # The page calls ``render`` itself, so remove the export that only anywidget needs.
    script = SCRIPT.replace("export default { render };", "")
    return PAGE.replace("{nonce}", nonce).replace("{style}", STYLE).replace("{script}", script)
