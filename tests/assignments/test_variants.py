"""No right answer loses a point, in whatever way it was found."""

from __future__ import annotations

import pytest
import sources
import trial
from handed_in import run_here, variants

NAMES = sources.names()
BY_HAND = [(name, one) for name in NAMES for one in variants(name)]
SEEDS = [None, "spring"]


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
