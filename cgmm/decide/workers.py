"""What long searches share: workers that ignore Ctrl-C, and a bar that says how far they are."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import Any, TextIO


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


def with_bar(done: Iterable[Any], n: int, name: str, out: TextIO | None) -> Iterator[Any]:
    """Hand on what arrives, and draw how much has."""
    for i, item in enumerate(done, start=1):
        yield item
        if out is not None:
            filled = 30 * i // n
            end = "\n" if i == n else ""
            print(f"\r{name} [{'#' * filled:<30}] {i}/{n}", end=end, file=out, flush=True)
