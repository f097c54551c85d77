"""Threads that work on the blocks of a fit, while linear algebra starts none of its own.

``workers`` is entered once a fit. Results come in the order of the blocks, so the number of threads
changes no digit of a sum. Behind large data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from contextvars import copy_context
from functools import cache, partial
from threading import Lock
from typing import Any

from joblib import effective_n_jobs
from threadpoolctl import OpenBLASController, ThreadpoolController

Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
"""As ``map``: from a function and its arguments to the results, in the order of the arguments."""

# The limit on threads of linear algebra, followed by an entry for each fit that is within it.
LOCK, LIMITS = Lock(), list[Any]()


@contextmanager
def workers(n_jobs: int | None) -> Iterator[Map]:
    """Yield what maps a function over blocks: ``map``, or a pool of ``n_jobs`` threads."""
    n_threads = effective_n_jobs(n_jobs)
    with LOCK, _in_control():  # fits may overlap
        if not LIMITS:
            LIMITS.append(_controller().limit(limits=1, user_api="blas"))
        LIMITS.append(None)
    try:
        with ThreadPoolExecutor(n_threads) if n_threads > 1 else nullcontext() as pool:
            yield map if pool is None else partial(_map_on, pool)
    finally:
        with LOCK, _in_control():
            LIMITS.pop()
            if len(LIMITS) == 1:
                LIMITS.pop().restore_original_limits()


@contextmanager
def _in_control() -> Iterator[None]:
    """Let this thread set limits: threadpoolctl 3.8 and later obey only the first that did."""
    let_go = getattr(OpenBLASController, "clear_controlling_thread", lambda force: None)
    let_go(force=True)
    yield
    let_go(force=True)


def _map_on(
    pool: ThreadPoolExecutor, function: Callable[[Any], Any], blocks: Iterable[Any]
) -> Iterable[Any]:
    """Map a function over blocks on threads that hold back warnings as this one does."""
    blocks = list(blocks)
    contexts = [copy_context() for _ in blocks]
    return pool.map(lambda context, block: context.run(function, block), contexts, blocks)


@cache
def _controller() -> ThreadpoolController:
    """Return the loaded libraries of threads; to look for them takes longer than a small fit."""
    return ThreadpoolController()
