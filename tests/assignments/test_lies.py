"""No cheating function passes a hidden check, and no right one fails because of its form."""

import functools
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
from handed_in import Pair
from markapart import examine, forms, sources
from nbgrader.utils import is_grade

NAMES = sources.names()


class Asked(NamedTuple):
    """A hidden check, the names that it uses, and the calls that the notebook shows."""

    task: str
    text: str
    space: dict
    right: dict
    shown: frozenset


@functools.cache
def tasks_of(name: str) -> list[Asked]:
    """Return every hidden check of an assignment after the right solutions."""
    released = {sources.grade_id(cell): cell.source for cell in sources.read_released(name).cells}
    space, calls, found = {"__name__": "__main__"}, set(), []
    for cell in sources.source(name).cells:
        task = sources.grade_id(cell)
        if cell.cell_type != "code" or not task:
            continue
        if not is_grade(cell):
            assert examine.error_of(cell.source, space) == ""
            continue
        right = {one: space[one] for one in examine.names_used(cell.source, name)}
        space |= {one: _recorded_calls(one, value, calls) for one, value in right.items()}
        assert examine.error_of(released[task], space) == ""
        space |= right
        if "BEGIN HIDDEN" in cell.source:
            found.append(Asked(task, cell.source, dict(space), right, frozenset(calls)))
        # Later checks may use names that the hidden part of this one defines.
        assert examine.error_of(cell.source, space) == ""
    return found


def checks_passed(name, replace, send=True) -> set[str]:
    """Return the hidden checks that pass after ``replace`` has changed the functions."""
    pair, passed = Pair(), set()
    for task, text, space, right, shown in tasks_of(name):
        own = {one: replace(one, value, shown) for one, value in right.items()}
        if send:
            own = {one: pair.teacher.decode(pair.student.encode(f)) for one, f in own.items()}
        known = forms.Forms(examine.reference_sizes(name, None)[task])
        if not examine.run_check(text, space | own, name, known):
            passed.add(task)
    pair.close()
    return passed


def _recorded_calls(one, value, calls):
    def record(*args, **kwargs):
        calls.add((one, forms._digest([args, kwargs])))
        return value(*args, **kwargs)

    return record if callable(value) else value


def with_lies(lie):
    """Return a replacement that is right for calls shown in the notebook, and false elsewhere."""

    def replace_by_lie(value, args):
        if isinstance(value, tuple):
            return tuple(replace_by_lie(part, args) for part in value)
        return lie(value, args)

    def replace(one, value, shown):
        def false_function(*args, **kwargs):
            call = forms._digest([args, kwargs])
            if (one, call) in shown:
                return value(*args, **kwargs)
            try:
                return replace_by_lie(value(*args, **kwargs), args)
            except ValueError:  # as the right function raises where nothing is right
                return replace_by_lie(0.0, args)

        return false_function if callable(value) else replace_by_lie(value, ())

    return replace


def memorised_answers(value, number):
    """Return a lie that overwrites array arguments with a number and returns another one."""

    def lie(like, args):
        for one in args:
            if isinstance(one, np.ndarray):
                one[...] = number
        return np.full_like(like, value)[()]

    return lie


EMPTY = {
    "no rows": lambda like, args: np.empty((0, *np.shape(like)[1:])),
    "no columns": lambda like, args: np.empty((*np.shape(like)[:-1], 0)),
    "none of them": lambda like, args: np.empty((0, *np.shape(like))),
    "flat": lambda like, args: np.empty(0),
}
LIES = {
    **{x: lambda like, args, x=x: np.full_like(like, x)[()] for x in (0, 0.5, 1)},
    "nan": lambda like, args: np.full(np.shape(like), np.nan)[()],
    "counts": lambda like, args: np.arange(np.size(like)).reshape(np.shape(like))[()],
    "none": lambda like, args: None,
    **{f"arguments become {number}": memorised_answers(value, number)
       for value, number in ((0.5, -300), (0, 1), (1, 0))},
}  # fmt: skip
# A number can be guessed. The functions of chapter 16 change their arguments before they return, so
# a false return value comes too late.
GIVEN = {
    "16_many_witnesses": {"check-3-words", "check-3-network"},
}


@pytest.mark.parametrize("name", NAMES)
def test_false_answers_pass_no_hidden_check(name):
    """Submit functions that are right only for the calls shown in the notebook."""
    given = GIVEN.get(name, set())
    found = {label: checks_passed(name, with_lies(lie)) - given for label, lie in LIES.items()}
    found |= {label: checks_passed(name, with_lies(lie)) for label, lie in EMPTY.items()}
    assert not any(found.values()), found


# ------------------------------------------------------------------------------- forms


def equal_only_to_shown(x):
    numbers = np.vectorize(Fraction, otypes=[object])
    return numbers(x)[()] if x.dtype.kind == "f" and np.isfinite(x).all() else x[()]


def in_tuples(rows):
    return tuple(map(in_tuples, rows)) if isinstance(rows, list) else rows


def in_half(x):
    return x.astype(np.float32)[()] if x.dtype.kind == "f" else x[()]


# The first also works where a grader calls functions in its own process, as nbgrader does.
ANYWHERE = {
    "float32": in_half,
    "read-only": lambda x: np.broadcast_to(x, x.shape)[()],
    "subclass": lambda x: x.view(type("Mine", (np.ndarray,), {}))[()],
}
SENT = {
    "lists": lambda x: x.tolist(),
    "tuples": lambda x: in_tuples(x.tolist()),
    "fractions": equal_only_to_shown,
}
FORMS = ANYWHERE | SENT


def like(value, form):
    if isinstance(value, tuple):
        return tuple(like(part, form) for part in value)
    numbers = isinstance(value, float | np.ndarray | np.generic) and np.size(value)
    return FORMS[form](np.asarray(value)) if numbers else value


def converted(form):
    """Return a replacement that gives right results in another form, such as a list."""

    def replace(one, value, shown):
        def truth(*args, **kwargs):
            return like(value(*args, **kwargs), form)

        return truth if callable(value) else like(value, form)

    return replace


@pytest.mark.parametrize("name", NAMES)
def test_correct_answers_of_any_type_pass_every_hidden_check(name):
    every = {one.task for one in tasks_of(name)}
    lost = {form: every - checks_passed(name, converted(form), form in SENT) for form in FORMS}
    assert not any(lost.values()), lost


@pytest.mark.slow  # fits and pictures of all closing cells; their functions are tested above
@pytest.mark.parametrize("name", NAMES)
def test_closing_cells_accept_the_same_types_as_checks(name, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    (closing,) = [cell.source for cell in sources.source(name).cells
                  if cell.cell_type == "code" and not sources.grade_id(cell)]  # fmt: skip
    space = tasks_of(name)[-1].space
    right = {one: space[one] for one in examine.solution_names(name) if callable(space[one])}
    for form in SENT:
        functions = {one: converted(form)(one, function, ()) for one, function in right.items()}
        assert examine.error_of(closing, space | functions) == ""
