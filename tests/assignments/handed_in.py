"""Submissions to be graded: the right one, and the right one with something done to it."""

from __future__ import annotations

import nbformat
import sources
import trial


def right(name):
    return nbformat.reads(sources.clean_bytes(trial.right_submission(name)), as_version=4)


def solutions(name):
    """Solution cells that hold code, in order."""
    cells = sources.source(name).cells
    return [sources.grade_id(cell) for cell in cells if "BEGIN SOLUTION" in cell.source][:-1]


def checks_of(name, solution):
    """Checks between a solution and the next one."""
    ids = [sources.grade_id(c) for c in sources.source(name).cells if sources.grade_id(c)]
    after = ids[ids.index(solution) + 1 :]
    stops = [i for i, other in enumerate(after) if not other.startswith("check")]
    return after[: stops[0]]


def at(notebook, name):
    (found,) = [i for i, cell in enumerate(notebook.cells) if sources.grade_id(cell) == name]
    return found


def changed(name, cell, source):
    notebook = right(name)
    notebook.cells[at(notebook, cell)].source = source
    return notebook


def without(name, *cells):
    notebook = right(name)
    notebook.cells = [cell for cell in notebook.cells if sources.grade_id(cell) not in cells]
    return notebook


def text_of(notebook):
    return "\n".join(cell.source for cell in notebook.cells)
