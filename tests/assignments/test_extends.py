"""Test that assignments go beyond the chapters: no function of the primer solves a task."""

import ast
import inspect

import pytest
from markapart import sources, trial
from markapart.examine import find_error

from cgmm import primer

FUNCTIONS = {name: function for name in primer.__all__
             if inspect.isfunction(function := getattr(primer, name))}  # fmt: skip


def find_tasks_with_code(name):
    """Yield the id of each task with code, and the function that its solution defines."""
    for cell in sources.source(name).cells:
        if cell.cell_type == "code" and "BEGIN SOLUTION" in cell.source:
            for node in ast.parse(trial.MARKERS.sub("", cell.source)).body:
                if isinstance(node, ast.FunctionDef):
                    yield sources.grade_id(cell), node


def passes_all_checks(name, task, given):
    """Return True if the functions ``given`` pass all checks of a task."""
    cells = [cell for cell in sources.source(name).cells if cell.cell_type == "code"]
    text = {sources.grade_id(cell): cell.source for cell in cells}
    space: dict = {"__name__": "__main__"}
    exec(text["setup"], space)
    space |= given
    checks = [text[own] for own in text if (own or "").startswith(task.replace("task", "check"))]
    return not any(find_error(check, space) for check in checks)


@pytest.mark.parametrize("name", sources.names())
def test_no_primer_function_alone_passes_a_task(name):
    solved = {}
    for task, node in find_tasks_with_code(name):
        for primer_name, function in FUNCTIONS.items():
            same = len(inspect.signature(function).parameters) == len(node.args.args)
            if same and passes_all_checks(name, task, {node.name: function}):
                solved[task] = primer_name
    assert solved == {}
