"""Blocks in threads: in order, each once, and an error or an interrupt ends the rest."""

import threading
import time

import pytest

from cgmm.mixture import threads
from cgmm.mixture.threads import AHEAD, TRIALS, workers

N = 3 * AHEAD + 7


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
@pytest.mark.parametrize("places", [[], [None], list(range(N)), [None, *range(N)]])
def test_results_come_in_the_order_of_their_places(n_jobs, places):
    done = []

    def work(place):
        # Places that take long are overtaken.
        time.sleep(0.002 if place in {0, 5} else 0)
        done.append(place)
        return place

    with workers(n_jobs) as over:
        assert list(over(work, places)) == places
    assert sorted(done, key=str) == sorted(places, key=str)


def test_an_engine_answers_in_the_thread_that_asked():
    with workers(3) as over:
        names = list(over(lambda place: (place, threading.get_ident()), [None, *range(20)]))
    assert names[0] == (None, threading.get_ident())


def test_several_threads_work_at_the_same_time():
    together = threading.Barrier(3, timeout=20)
    with workers(3) as over:
        list(over(lambda place: together.wait(), range(3)))


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_the_error_of_the_first_block_is_the_one_that_is_raised(n_jobs):
    begun = []

    def work(place):
        begun.append(place)
        # The later error comes first by the clock.
        time.sleep(0.02 if place == 3 else 0)
        if place in {3, 4}:
            raise ValueError(place)

    with workers(n_jobs) as over, pytest.raises(ValueError, match="3"):
        list(over(work, range(N)))
    assert len(begun) < N


def test_after_an_interrupt_nobody_begins_another_block():
    asked, begun = threading.get_ident(), []

    def work(place):
        begun.append(place)
        if threading.get_ident() == asked:
            raise KeyboardInterrupt
        time.sleep(0.01)

    with workers(3) as over, pytest.raises(KeyboardInterrupt):
        list(over(work, range(AHEAD)))
    assert len(begun) < 6


@pytest.mark.parametrize(("together", "alone"), [(3.0, 2.0), (2.0, 3.0)])
def test_after_some_trials_the_quicker_way_is_kept(monkeypatch, together, alone):
    """By a clock that says how long each pass took: one of three threads, or one of this alone."""
    now, here = 0.0, threading.get_ident()
    monkeypatch.setattr(threads, "perf_counter", lambda: now)
    barrier = threading.Barrier(3, timeout=20)

    def who(place):
        time.sleep(0.02)  # others would take a turn
        return threading.get_ident()

    def who_meets(place):
        barrier.wait()
        return threading.get_ident()

    with workers(3) as over:
        for trial in range(TRIALS):
            passed = over(who if trial % 2 else who_meets, range(3))
            seen = {next(passed)}
            now += 9.0 if trial < 2 else alone if trial % 2 else together
            seen |= set(passed)
            assert (seen == {here}) == (trial % 2 == 1)
        for _ in range(3):
            seen = set(over(who if alone < together else who_meets, range(3)))
            assert (seen == {here}) == (alone < together)
        # Of so many blocks nothing is known yet.
        barrier.reset()
        assert len(set(over(who_meets, [*range(6)]))) == 3
