"""Test seeds, tasks and attempts of experiments."""

import warnings

import numpy as np
import pytest
from toy_experiments import draw, toy

from cgmm.kmeans import SearchBudgetError
from reruns import Result, Setting, attempt, seed_of, tasks_of


def test_a_seed_is_made_of_names_and_stays_what_it_was():
    # From SHA-256 and numpy's SeedSequence, both of which are fixed for good.
    iris = Setting("iris", (0.15,))
    others = Setting("wine", (0.15,)), Setting("iris", (0.3,))
    assert seed_of("a", iris, 0, 0) == seed_of("a", Setting("iris", ("0.15",)), "0") == 468878374
    given = [("a", iris, 0, 0), ("b", iris, 0, 0), ("a", iris, 1, 0), ("a", iris, 0, 1)]
    given += [("a", other, 0, 0) for other in others]
    assert len({seed_of(*one) for one in given}) == 6


def test_tasks_are_those_of_the_paper_by_default():
    experiment = toy(draw)
    assert len(tasks_of(experiment)) == 2 * 4
    assert len(tasks_of(experiment, 3, quick=True)) == 3
    assert [(t.setting.values, t.realisation) for t in tasks_of(experiment, 2)] == [
        ((2,), 0), ((10,), 0), ((2,), 1), ((10,), 1)
    ]  # fmt: skip
    assert len(tasks_of(toy(draw, realisations=1), 100)) == 2  # nothing is random: once


# ---------------------------------------------------------------------------- attempts


def fails(error):
    def measure():
        raise error

    return measure


@pytest.mark.parametrize("error", [ValueError, np.linalg.LinAlgError, SearchBudgetError])
def test_a_failure_is_a_row_for_each_quantity(error):
    rows = attempt("rash", ("a", "b"), fails(error("it is singular. Use more points.")))
    assert [row[:3] for row in rows] == [("rash", "a", None), ("rash", "b", None)]
    assert {r.reason for r in rows} == {f"{error.__name__}: it is singular"}


@pytest.mark.parametrize("error", [KeyboardInterrupt(), TypeError("a bug"), KeyError("a bug")])
def test_programming_errors_are_not_counted_as_failures(error):
    with pytest.raises(type(error)):
        attempt("rash", ("a",), fails(error))


def test_warnings_are_written_down_beside_the_value():
    def measure():
        for _ in range(2):
            warnings.warn("slow, very slow. Do something", UserWarning, stacklevel=1)
        return {"a": 1.0}

    assert attempt("m", ("a",), measure) == [Result("m", "a", 1.0, "UserWarning: slow, very slow")]
