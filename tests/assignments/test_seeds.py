"""Test that words used as seeds change the numbers of a task, and right solutions still pass."""

import contextlib
import io
import sys
import types

import pytest
from markapart import sources, trial
from markapart.examine import find_error, reference_sizes, run_check
from markapart.forms import ValueSizes
from ungraded import variants

NAMES = sources.names()
WORDS = ["autumn", "autumn26", "autumn27", "spring", "spring27"]
MANY = [f"word{n}" for n in range(40)]


def _capture_numbers_of_task_1(name, seed):
    """Return the printed output of the cell with the numbers of task 1."""
    cells = {sources.grade_id(cell): cell.source for cell in sources.source(name, seed).cells}
    space: dict = {}
    exec(cells["setup"], space)
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(cells["task-1-numbers"], space)
    return output.getvalue()


@pytest.mark.parametrize("name", NAMES)
def test_seeds_of_consecutive_terms_differ(name):
    assert len({_capture_numbers_of_task_1(name, word) for word in WORDS}) == len(WORDS)
    assert len({_capture_numbers_of_task_1(name, word) for word in MANY}) >= 12


@pytest.mark.parametrize("name", NAMES)
def test_task_1_accepts_right_and_rejects_wrong_answers_for_any_seed(name):
    """No seed may have numbers for which a mistake gives the right result by chance."""
    first = [mistake for mistake in sources.mistakes(name) if mistake.cell == "task-1"]
    for word in MANY[:20]:
        for mistake in [None, *first]:
            notebook = (trial.wrong_submission(name, mistake, word) if mistake
                        else trial.right_submission(name, word))  # fmt: skip
            checks = {sources.grade_id(c): c.source for c in sources.source(name, word).cells}
            lost = _lost_in_task(1, notebook, checks, find_error)
            assert set(lost) == set(mistake.caught_by if mistake else ()), (word, mistake)


def _lost_in_task(number, notebook, checks, run_check_of):
    """Return the failed checks of a task with their messages, without code of other tasks."""
    own, lost = {"setup", "task-1-numbers", f"task-{number}"}, {}
    space = {"__name__": "__main__"}
    for cell in notebook.cells:
        task = sources.grade_id(cell) or ""
        if task in own:
            find_error(cell.source, space)
        elif task.startswith(f"check-{number}-") and (message := run_check_of(checks[task], space)):
            lost[task] = message
    return lost


def test_the_first_cell_reports_another_package_named_cgmm(monkeypatch):
    monkeypatch.setitem(sys.modules, "cgmm", types.ModuleType("cgmm"))
    for name in NAMES:
        cells = {sources.grade_id(cell): cell.source for cell in sources.read_released(name).cells}
        with pytest.raises(AssertionError, match="somebody else's package"):
            exec(cells["setup"], {})


VARIANTS = [(name, one) for name in NAMES for one in variants(name)]


@pytest.mark.parametrize(
    ("name", "one"), VARIANTS, ids=[f"{n}-{one.cell}-{one.name}" for n, one in VARIANTS]
)
def test_other_correct_solutions_earn_all_points(name, one):
    for seed in (None, "spring"):
        checks = {sources.grade_id(c): c for c in sources.source(name, seed).cells}

        def run_check_of(check, space, seed=seed):
            forms = ValueSizes(reference_sizes(name, seed)[sources.grade_id(check)])
            return run_check(check.source, space, name, forms)

        submission = trial.wrong_submission(name, one, seed)
        assert _lost_in_task(one.cell[5:], submission, checks, run_check_of) == {}
