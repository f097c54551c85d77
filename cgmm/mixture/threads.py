"""Who works on the blocks of a fold: this thread, or several. Chapter 3.

numpy lets go of the interpreter in products and elementwise functions, so threads that each work on
a block of their own keep as many cores busy. Linear algebra must not start threads of its own
meanwhile: blocks are too small for these to gain anything, and they cost processor time even where
nobody else works.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from itertools import chain
from threading import Lock
from time import monotonic
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs
from threadpoolctl import ThreadpoolController

# Blocks that a thread takes at once: handing them out costs something, too.
BATCH = 4
# Seconds without a word, where a fit is asked to say how far it is.
SILENCE = 10.0

Over = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
"""As ``map``: a function and what to apply it to; results in the order of what came."""


@contextmanager
def workers(n_jobs: int | None) -> Iterator[Over]:
    """Who applies a function to blocks, as ``map`` does, with linear algebra at one thread."""
    n_threads = effective_n_jobs(n_jobs)
    with ALONE:
        if n_threads == 1:
            yield map
            return
        with Parallel(
            n_threads, backend="threading", return_as="generator", batch_size=BATCH
        ) as parallel:
            yield lambda do, places: _in_threads(parallel, do, places)


def telling(over: Over) -> Over:
    """The same, which says every few seconds how many blocks are done."""

    def tell(do: Callable[[Any], Any], places: Iterable[Any]) -> Iterator[Any]:
        places, said = list(places), monotonic()
        for number, result in enumerate(over(do, places), 1):
            if monotonic() - said >= SILENCE:
                print(f"    block {number} of {len(places)}", flush=True)
                said = monotonic()
            yield result

    return tell


def _in_threads(
    parallel: Parallel, do: Callable[[Any], Any], places: Iterable[Any]
) -> Iterator[Any]:
    """What an engine answers is done in this thread, while others work on the rest."""
    first = [place for place in places if place is None]
    rest = parallel(delayed(do)(place) for place in places if place is not None)
    return chain(map(do, first), rest)


class _LinearAlgebraAlone:
    """Within a ``with``, linear algebra keeps to the thread that calls it; fits may overlap."""

    def __init__(self) -> None:
        self.lock, self.inside = Lock(), 0
        self.limit: AbstractContextManager[Any] = nullcontext()

    def __enter__(self) -> None:
        with self.lock:
            if self.inside == 0:
                self.limit = _controller().limit(limits=1, user_api="blas")
                self.limit.__enter__()
            self.inside += 1

    def __exit__(self, *error: Any) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                self.limit.__exit__(*error)


ALONE = _LinearAlgebraAlone()


@cache
def _controller() -> ThreadpoolController:
    """Which libraries there are; to look takes longer than a small fit."""
    return ThreadpoolController()
