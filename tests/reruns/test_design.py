"""Test seeds and tasks of experiments, and the records of failures and warnings."""

import warnings
from unittest.mock import Mock

import numpy as np
import pytest
from toy_experiments import draw, make_experiment

from cgmm.kmeans import SearchBudgetError
from reruns import Result, Setting, attempt, seed_of, tasks_of


def test_seeds_depend_on_every_part_of_a_task_and_never_change():
    # The expected seed follows from SHA-256 and numpy's SeedSequence, which will not change.
    iris = Setting("iris", (0.15,))
    others = Setting("wine", (0.15,)), Setting("iris", (0.3,))
    assert seed_of("a", iris, 0, 0) == seed_of("a", Setting("iris", ("0.15",)), "0") == 468878374
    arguments = [("a", iris, 0, 0), ("b", iris, 0, 0), ("a", iris, 1, 0), ("a", iris, 0, 1)]
    arguments += [("a", other, 0, 0) for other in others]
    assert len({seed_of(*one) for one in arguments}) == 6


def test_tasks_have_the_settings_and_realisations_of_the_paper_by_default():
    experiment = make_experiment(draw)
    assert len(tasks_of(experiment)) == 2 * 4
    assert len(tasks_of(experiment, 3, quick=True)) == 3
    assert [(t.setting.values, t.realisation) for t in tasks_of(experiment, 2)] == [
        ((2,), 0), ((10,), 0), ((2,), 1), ((10,), 1)
    ]  # fmt: skip
    # An experiment without randomness has one realisation, however many are requested.
    assert len(tasks_of(make_experiment(draw, realisations=1), 100)) == 2


# ---------------------------------------------------------------------------- attempts


def fail_with(error):
    """Return a function that raises the error."""
    return Mock(side_effect=error)


@pytest.mark.parametrize("error", [ValueError, np.linalg.LinAlgError, SearchBudgetError])
def test_an_expected_error_becomes_a_result_without_value_for_each_quantity(error):
    rows = attempt("rash", ("a", "b"), fail_with(error("it is singular. Use more points.")))
    assert [row[:3] for row in rows] == [("rash", "a", None), ("rash", "b", None)]
    assert {r.reason for r in rows} == {f"{error.__name__}: it is singular"}


@pytest.mark.parametrize("error", [KeyboardInterrupt(), TypeError("a bug"), KeyError("a bug")])
def test_programming_errors_are_not_recorded_as_failures(error):
    with pytest.raises(type(error)):
        attempt("rash", ("a",), fail_with(error))


def test_warnings_are_recorded_once_beside_the_value():
    def warn_twice():
        for _ in range(2):
            warnings.warn("slow, very slow. Do something", UserWarning, stacklevel=1)
        return {"a": 1.0}

    assert attempt("m", ("a",), warn_twice) == [
        Result("m", "a", 1.0, "UserWarning: slow, very slow")
    ]
