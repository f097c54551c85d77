"""Workers that ignore Ctrl-C."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread


@contextmanager
def deaf_to_interrupts() -> Iterator[None]:
    """Processes that are started here ignore Ctrl-C for good: it is for us to stop them.

    A terminal sends it to all of them, and one that is struck while it starts complains at length.
    """
    if current_thread() is not main_thread():  # only the main thread may change a handler
        yield
        return
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler or signal.SIG_DFL)
