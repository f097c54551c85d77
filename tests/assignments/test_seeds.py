"""Another word makes other numbers, and they work out as well."""

from __future__ import annotations

import contextlib
import io
import sys
import types

import pytest
import sources
import trial
from examine import error_of

NAMES = sources.names()
WORDS = ["autumn", "autumn26", "autumn27", "spring", "spring27"]
MANY = [f"word{n}" for n in range(40)]


def _printed(name, seed):
    """What the cell with the numbers of task 1 prints."""
    cells = {sources.grade_id(cell): cell.source for cell in sources.source(name, seed).cells}
    space: dict = {}
    exec(cells["setup"], space)
    with contextlib.redirect_stdout(io.StringIO()) as heard:
        exec(cells["task-1-numbers"], space)
    return heard.getvalue()


@pytest.mark.parametrize("name", NAMES)
def test_there_are_many_courses_and_terms_that_follow_each_other_differ(name):
    assert len({_printed(name, word) for word in WORDS}) == len(WORDS)
    assert len({_printed(name, word) for word in MANY}) >= 12


@pytest.mark.parametrize("name", NAMES)
def test_task_1_tells_right_from_wrong_for_any_word(name):
    """Some numbers might make an error come out right by chance."""
    first = [mistake for mistake in sources.mistakes(name) if mistake.cell == "task-1"]
    for word in MANY[:20]:
        for mistake in [None, *first]:
            notebook = (trial.wrong_submission(name, mistake, word) if mistake
                        else trial.right_submission(name, word))  # fmt: skip
            lost = _lost_in_task_1(name, notebook, word)
            assert lost == set(mistake.caught_by if mistake else ()), (word, mistake)


def _lost_in_task_1(name, notebook, seed):
    checks = {sources.grade_id(cell): cell.source for cell in sources.source(name, seed).cells}
    space: dict = {"__name__": "__main__"}
    lost = set()
    for cell in notebook.cells:
        task = sources.grade_id(cell) or ""
        if cell.cell_type == "code" and (task == "setup" or task.startswith(("task-1", "check-1"))):
            text = checks[task] if task.startswith("check") else cell.source
            if error_of(text, space) and task.startswith("check"):
                lost.add(task)
    return lost


@pytest.mark.parametrize("name", NAMES)
def test_the_first_cell_knows_somebody_elses_package_of_our_name(name, monkeypatch):
    cells = {sources.grade_id(cell): cell.source for cell in sources.released(name).cells}
    monkeypatch.setitem(sys.modules, "cgmm", types.ModuleType("cgmm"))
    with pytest.raises(AssertionError, match="somebody else's package"):
        exec(cells["setup"], {})
