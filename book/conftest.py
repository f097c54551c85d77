"""Kernels of the chapters compute on one thread, as in `make notebooks`, and start warm."""

from __future__ import annotations

import contextlib
import functools
import os

from notebooks import SINGLE_THREAD
from warm_kernels import warm_kernels

os.environ.update(SINGLE_THREAD)

kept_warm = contextlib.ExitStack()


@functools.cache
def keep_warm() -> None:
    """Start the helper process, the first time."""
    kept_warm.enter_context(warm_kernels())


def pytest_runtest_setup(item):
    """Begin before the first cell: workers that run none start no helper."""
    keep_warm()


def pytest_sessionfinish(session):
    """End the helper process after the last kernel."""
    kept_warm.close()
