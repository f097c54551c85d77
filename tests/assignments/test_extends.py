"""Assignments extend what the chapters show by hand: no task asks for a function of the primer."""

from __future__ import annotations

import ast
import inspect
import re
from difflib import SequenceMatcher

import pytest
import sources
import trial
from examine import error_of

from cgmm import primer

# Two texts that have more than this in common are one text: independent solutions have less.
ALIKE = 0.7
FUNCTIONS = {name: function for name in primer.__all__
             if inspect.isfunction(function := getattr(primer, name))}  # fmt: skip


def shape(text):
    """A tree in which names are numbers, without documentation."""
    names: dict[str, str] = {}
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = names.setdefault(node.id, f"n{len(names)}")
        elif isinstance(node, ast.arg):
            node.arg = names.setdefault(node.arg, f"n{len(names)}")
        elif isinstance(node, ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.dump(tree)


def words(text):
    """The shape of some code as a list: kinds of nodes, what is called, numbers; no names."""
    found = re.findall(r"[A-Z]\w+(?=\()|'\w*'|(?<==)\d[\w.]*", shape(text))
    return [word for word in found if not re.fullmatch(r"Load|Store|Module|arg.*|'n\d+'", word)][2:]


SHOWN = {name: words(inspect.getsource(function)) for name, function in FUNCTIONS.items()}


def asked(name):
    """Of each task with code: its cell, and the function that the official solution defines."""
    for cell in sources.source(name).cells:
        if cell.cell_type == "code" and "BEGIN SOLUTION" in cell.source:
            for node in ast.parse(trial.MARKERS.sub("", cell.source)).body:
                if isinstance(node, ast.FunctionDef):
                    yield sources.grade_id(cell), node


def likest(shape):
    """The function of the primer whose text a solution has most of, and how much."""
    best, of = ALIKE, None
    for name, shown in SHOWN.items():
        match = SequenceMatcher(None, shape, shown, autojunk=False)
        if match.real_quick_ratio() > best and match.quick_ratio() > best and match.ratio() > best:
            best, of = match.ratio(), name
    return of


@pytest.mark.parametrize("name", sources.names())
def test_no_task_asks_for_a_text_of_the_primer(name):
    found = {task: likest(words(ast.unparse(node))) for task, node in asked(name)}
    assert {task: of for task, of in found.items() if of} == {}


def earns_all(name, task, given):
    """Whether a function of the primer, handed in as it stands, passes every check of a task."""
    cells = [cell for cell in sources.source(name).cells if cell.cell_type == "code"]
    text = {sources.grade_id(cell): cell.source for cell in cells}
    space: dict = {"__name__": "__main__"}
    exec(text["setup"], space)
    space |= given
    checks = [text[own] for own in text if (own or "").startswith(task.replace("task", "check"))]
    return not any(error_of(check, space) for check in checks)


@pytest.mark.parametrize("name", sources.names())
def test_no_function_of_the_primer_solves_a_task(name):
    solved = {}
    for task, node in asked(name):
        for of, function in FUNCTIONS.items():
            same = len(inspect.signature(function).parameters) == len(node.args.args)
            if same and earns_all(name, task, {node.name: function}):
                solved[task] = of
    assert solved == {}


def test_a_retyped_function_is_noticed_under_other_names():
    text = """
def my_density(points, centre, C):
    '''Something else.'''
    d = points - centre
    far = (d * np.linalg.solve(C, d.T).T).sum(axis=1)
    return -0.5 * (far + np.linalg.slogdet(2 * np.pi * C).logabsdet)
"""
    assert likest(words(text)) == "log_gaussian"
