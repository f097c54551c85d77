"""No right answer loses a point, whatever kind of number or container it comes in."""

from __future__ import annotations

import re

import pytest
import sources
import trial
from handed_in import run_here, variants

NAMES = sources.names()

# Wraps what a solution cell defines, so that its functions return the same in another form.
WRAP = """
def _floats(value, kind):
    import numpy as np
    return kind if np.asarray(value).dtype.kind == "f" else None

def _as_variant(value):
    import numpy as np
    if isinstance(value, tuple):
        return tuple(_as_variant(part) for part in value)
    if isinstance(value, (np.ndarray, np.generic, float)) and not isinstance(value, bool):
        return {form}
    return value
"""
FORMS = {
    "float32": "np.asarray(value, _floats(value, np.float32))[()]",
    "longdouble": "np.asarray(value, _floats(value, np.longdouble))[()]",
    "fortran": "np.array(value, order='F')[()]",
    "read-only": "np.broadcast_to(np.asarray(value), np.shape(value))[()]",
    "subclass": "np.asarray(value).view(type('Mine', (np.ndarray,), {}))[()]",
}


def variant(name, form, seed=None):
    """The right submission, every function of which returns the same in another form."""
    notebook = trial.right_submission(name, seed)
    official = {sources.grade_id(cell): cell.source for cell in sources.source(name).cells}
    for cell in notebook.cells:
        if cell.cell_type == "code" and "BEGIN SOLUTION" in official.get(
            sources.grade_id(cell), ""
        ):
            defined = re.findall(r"^def (\w+)", cell.source, re.MULTILINE)
            cell.source += WRAP.replace("{form}", FORMS[form])
            for function in defined:
                cell.source += (
                    f"\ndef {function}(*args, _right={function}, **kwargs):\n"
                    "    return _as_variant(_right(*args, **kwargs))\n"
                )
    notebook.cells = [cell for cell in notebook.cells if trial._matters(cell)]
    return notebook


@pytest.mark.each_value
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", FORMS)
def test_the_form_of_a_right_answer_costs_nothing(name, form):
    rows = run_here("right", name, variant(name, form))
    assert trial.faults_of_the_right(rows) == []


# ------------------------------------------------------------------ written by hand, another way

BY_HAND = [(name, one) for name in NAMES for one in variants(name)]
SEEDS = [None, "spring", "winter27"]


def lost_by(name, one, seed):
    """Checks of the task that a variant loses; no task needs the code of another."""
    submission = trial.wrong_submission(name, one, seed)
    number = one.cell.removeprefix("task-")
    submission.cells = [
        cell for cell in submission.cells
        if sources.grade_id(cell) in ("setup", "task-1-numbers", one.cell)
        or (sources.grade_id(cell) or "").startswith(f"check-{number}-")
    ]  # fmt: skip
    rows = run_here(one.name, name, submission, seed)
    return {row.task: row.message for row in rows
            if row.task.startswith(f"check-{number}-") and row.points < row.max}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "one"), BY_HAND, ids=[f"{n}-{one.cell}-{one.name}" for n, one in BY_HAND]
)
def test_another_right_way_loses_nothing(name, one):
    assert [lost_by(name, one, seed) for seed in SEEDS] == [{}] * len(SEEDS)


@pytest.mark.slow  # boxes; the test above runs the same in this process
def test_variants_lose_nothing_on_the_full_path(boxes):
    name = "12_rca"
    notebooks = {(f"{one.cell}-{one.name}", name): trial.wrong_submission(name, one)
                 for one in variants(name)}  # fmt: skip
    rows = trial.grade_notebooks(notebooks)
    assert trial.lost(rows) == []
    assert len({row.student for row in rows}) == len(notebooks) >= 12
