"""Who works on the blocks of a fold: this thread, or several. Chapter 3.

numpy lets go of the interpreter in products and elementwise functions, so threads that each work on
a block of their own keep as many cores busy. Whoever is free takes the next block, the thread that
asked too: nothing is handed over but the results. (joblib's threads get a few blocks at a time, and
whoever asks sleeps 10 ms between two looks for an answer: longer than an iteration may take.)

Where a point is few numbers, threads meet at the interpreter more often than they work, and several
are slower than one. So the first passes over the blocks try both, and the others go the quicker
way: the answer is the same.

Linear algebra must not start threads of its own meanwhile: blocks are too small for these to gain
anything, and they cost processor time even where nobody else works.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache
from queue import Empty, SimpleQueue
from threading import Lock
from time import monotonic, perf_counter
from typing import Any

from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

from cgmm.numerics import cut

# Blocks a thread before results are passed on: what waits for its turn takes memory.
AHEAD = 32
# Passes by turns with several threads and with one, before the quicker is kept.
TRIALS = 6
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
        with ThreadPoolExecutor(n_threads - 1) as others:
            yield _Threads(others, n_threads - 1)


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


class _Threads:
    """As ``map``: this thread and others take blocks until none is left, if that is the quicker."""

    def __init__(self, pool: Executor, n_others: int):
        self.pool, self.n_others = pool, n_others
        # Of so many blocks: what the first passes took, by turns with the others and alone.
        self.seconds: dict[int, list[float]] = {}

    def __call__(self, do: Callable[[Any], Any], places: Iterable[Any]) -> Iterator[Any]:
        places, begun = list(places), perf_counter()
        took = self.seconds.setdefault(len(places), [])
        yield from map(do, places) if self._is_alone(took) else self._in_parts(do, places)
        if len(took) < TRIALS:
            took.append(perf_counter() - begun)

    def _is_alone(self, took: list[float]) -> bool:
        if len(took) < TRIALS:
            return len(took) % 2 == 1
        return min(took[1::2]) < min(took[::2])

    def _in_parts(self, do: Callable[[Any], Any], places: list[Any]) -> Iterator[Any]:
        for part in cut(len(places), AHEAD * (self.n_others + 1)):
            yield from _together(self.pool, self.n_others, do, places[part])


def _together(
    pool: Executor, n_others: int, do: Callable[[Any], Any], places: list[Any]
) -> list[Any]:
    """What is done to each place, in their order, or the error of the first that has one."""
    results: list[Any] = [None] * len(places)
    failed: dict[int, Exception] = {}
    # What an engine answers is done in this thread, while others work on the rest.
    mine = [turn for turn, place in enumerate(places) if place is None]
    turns: SimpleQueue[int] = SimpleQueue()
    for turn in sorted(set(range(len(places))) - set(mine)):
        turns.put(turn)

    def take(some: Iterable[int]) -> None:
        for turn in some:
            try:
                results[turn] = do(places[turn])
            except Exception as error:
                failed[turn] = error
                list(_emptied(turns))

    others = [pool.submit(take, _emptied(turns)) for _ in range(min(n_others, turns.qsize()))]
    try:
        take(mine)
        take(_emptied(turns))
    finally:
        # After an interrupt, as after an error, nobody begins another block.
        list(_emptied(turns))
    wait(others)
    if failed:
        raise failed[min(failed)]
    return results


def _emptied(turns: SimpleQueue[int]) -> Iterator[int]:
    """Turns, until nobody has one left."""
    while not turns.empty():
        with suppress(Empty):
            yield turns.get_nowait()


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
