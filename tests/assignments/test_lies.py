"""Test that wrong answers pass no hidden check, and that right answers of any type pass."""

import functools
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
from handed_in import Pair
from markapart import examine, forms, sources
from nbgrader.utils import is_grade

NAMES = sources.names()


class HiddenCheck(NamedTuple):
    """A hidden check, the names that it uses, and the calls that the notebook shows."""

    task: str
    text: str
    space: dict
    right: dict
    shown: frozenset


@functools.cache
def collect_hidden_checks(name: str) -> list[HiddenCheck]:
    """Return all hidden checks of an assignment, after running its right solutions."""
    released = {sources.grade_id(cell): cell.source for cell in sources.read_released(name).cells}
    space, calls, found = {"__name__": "__main__"}, set(), []
    for cell in sources.source(name).cells:
        task = sources.grade_id(cell)
        if cell.cell_type != "code" or not task:
            continue
        if not is_grade(cell):
            assert examine.find_error(cell.source, space) == ""
            continue
        right = {one: space[one] for one in examine.names_used(cell.source, name)}
        space |= {one: _record_calls(one, value, calls) for one, value in right.items()}
        assert examine.find_error(released[task], space) == ""
        space |= right
        if "BEGIN HIDDEN" in cell.source:
            found.append(HiddenCheck(task, cell.source, dict(space), right, frozenset(calls)))
        # Later checks may use names that the hidden part of this one defines.
        assert examine.find_error(cell.source, space) == ""
    return found


def find_passed_checks(name, replace, send=True) -> set[str]:
    """Return the hidden checks that pass after ``replace`` has changed the right functions.

    With ``send``, functions are called over the grader's protocol for arguments and results.
    """
    pair, passed = Pair(), set()
    for task, text, space, right, shown in collect_hidden_checks(name):
        own = {one: replace(one, value, shown) for one, value in right.items()}
        if send:
            own = {one: pair.teacher.decode(pair.student.encode(f)) for one, f in own.items()}
        known = forms.ValueSizes(examine.reference_sizes(name, None)[task])
        if not examine.run_check(text, space | own, name, known):
            passed.add(task)
    pair.close()
    return passed


def _record_calls(function_name, value, calls):
    def record(*args, **kwargs):
        calls.add((function_name, forms._digest([args, kwargs])))
        return value(*args, **kwargs)

    return record if callable(value) else value


def make_false_replacer(fake):
    """Return a ``replace`` that makes functions wrong, except for calls shown in the notebook.

    Wrong results are ``fake(result, arguments)``.
    """

    def fake_result(value, args):
        if isinstance(value, tuple):
            return tuple(fake_result(part, args) for part in value)
        return fake(value, args)

    def replace(function_name, value, shown):
        def false_function(*args, **kwargs):
            call = forms._digest([args, kwargs])
            if (function_name, call) in shown:
                return value(*args, **kwargs)
            try:
                return fake_result(value(*args, **kwargs), args)
            except ValueError:  # The right function refuses these arguments, too.
                return fake_result(0.0, args)

        return false_function if callable(value) else fake_result(value, ())

    return replace


def overwrite_arguments(value, number):
    """Return a ``fake`` that fills array arguments with ``number`` and results with ``value``."""

    def fake(result, args):
        for argument in args:
            if isinstance(argument, np.ndarray):
                argument[...] = number
        return np.full_like(result, value)[()]

    return fake


EMPTY_ANSWERS = {
    "no rows": lambda result, args: np.empty((0, *np.shape(result)[1:])),
    "no columns": lambda result, args: np.empty((*np.shape(result)[:-1], 0)),
    "none of them": lambda result, args: np.empty((0, *np.shape(result))),
    "flat": lambda result, args: np.empty(0),
}
WRONG_ANSWERS = {
    **{x: lambda result, args, x=x: np.full_like(result, x)[()] for x in (0, 0.5, 1)},
    "nan": lambda result, args: np.full(np.shape(result), np.nan)[()],
    "counts": lambda result, args: np.arange(np.size(result)).reshape(np.shape(result))[()],
    "none": lambda result, args: None,
    **{f"arguments become {number}": overwrite_arguments(value, number)
       for value, number in ((0.5, -300), (0, 1), (1, 0))},
}  # fmt: skip
# Wrong answers can pass these hidden checks, because the functions of chapter 16 change their
# arguments, and the checks look at these arguments.
GUESSABLE = {"16_many_witnesses": {"check-3-words", "check-3-network"}}


@pytest.mark.parametrize("name", NAMES)
def test_wrong_answers_pass_no_hidden_check(name):
    """Submit functions that are right only for the calls that the notebook shows."""
    for label, fake in (WRONG_ANSWERS | EMPTY_ANSWERS).items():
        guessable = GUESSABLE.get(name, set()) if label in WRONG_ANSWERS else set()
        assert find_passed_checks(name, make_false_replacer(fake)) <= guessable, label


# ------------------------------------------------------------------------------- types


def to_fractions(x):
    numbers = np.vectorize(Fraction, otypes=[object])
    return numbers(x)[()] if x.dtype.kind == "f" and np.isfinite(x).all() else x[()]


def to_tuples(rows):
    return tuple(map(to_tuples, rows)) if isinstance(rows, list) else rows


def to_float32(x):
    return x.astype(np.float32)[()] if x.dtype.kind == "f" else x[()]


# Types that a grader also meets if it calls functions in its own process, as nbgrader does.
ARRAY_TYPES = {
    "float32": to_float32,
    "read-only": lambda x: np.broadcast_to(x, x.shape)[()],
    "subclass": lambda x: x.view(type("Mine", (np.ndarray,), {}))[()],
}
SENT_TYPES = {
    "lists": lambda x: x.tolist(),
    "tuples": lambda x: to_tuples(x.tolist()),
    "fractions": to_fractions,
}
TYPES = ARRAY_TYPES | SENT_TYPES


def convert(value, kind):
    if isinstance(value, tuple):
        return tuple(convert(part, kind) for part in value)
    numbers = isinstance(value, float | np.ndarray | np.generic) and np.size(value)
    return TYPES[kind](np.asarray(value)) if numbers else value


def make_type_replacer(kind):
    """Return a ``replace`` whose functions return right results as another type, such as a list."""

    def replace(function_name, value, shown):
        def right_function(*args, **kwargs):
            return convert(value(*args, **kwargs), kind)

        return right_function if callable(value) else convert(value, kind)

    return replace


@pytest.mark.parametrize("name", NAMES)
def test_correct_answers_of_any_type_pass_every_hidden_check(name):
    every = {one.task for one in collect_hidden_checks(name)}
    for kind in TYPES:
        replace = make_type_replacer(kind)
        assert find_passed_checks(name, replace, kind in SENT_TYPES) == every, kind


@pytest.mark.slow  # It runs the fits and figures of all closing cells.
@pytest.mark.parametrize("name", NAMES)
def test_closing_cells_accept_the_same_types_as_checks(name, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    (closing,) = [cell.source for cell in sources.source(name).cells
                  if cell.cell_type == "code" and not sources.grade_id(cell)]  # fmt: skip
    space = collect_hidden_checks(name)[-1].space
    right = {one: space[one] for one in examine.solution_names(name) if callable(space[one])}
    for kind in SENT_TYPES:
        replace = make_type_replacer(kind)
        functions = {one: replace(one, function, ()) for one, function in right.items()}
        assert examine.find_error(closing, space | functions) == ""
